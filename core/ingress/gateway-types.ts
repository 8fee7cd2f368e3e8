/**
 * What of the Gateway API (v1) is read here. Its types come with its CRDs, not with Kubernetes.
 *
 * API: https://gateway-api.sigs.k8s.io/reference/spec/
 */
import type { Condition, LabelSelector } from "../api/gen/meta.v1.ts";
import type { ApiObject } from "../api/meta/object-meta.ts";
import type { ResourceRef } from "../client/client.ts";

export const GATEWAY_GROUP = "gateway.networking.k8s.io";
export const GATEWAY_CONTROLLER = "coracle.io/gateway-controller";

export interface ParametersRef { readonly group: string; readonly kind: string; readonly name: string }

export interface GatewayClass extends ApiObject {
  readonly spec: { readonly controllerName: string; readonly parametersRef?: ParametersRef };
  readonly status?: { readonly conditions?: readonly Condition[]; readonly supportedFeatures?: readonly { readonly name: string }[] };
}

export interface ObjectRef { readonly group?: string; readonly kind?: string; readonly name: string; readonly namespace?: string }

export interface Listener {
  readonly name: string;
  readonly hostname?: string;
  readonly port: number;
  readonly protocol: string;
  readonly tls?: { readonly mode?: string; readonly certificateRefs?: readonly ObjectRef[] };
  readonly allowedRoutes?: { readonly namespaces?: { readonly from?: string; readonly selector?: LabelSelector }; readonly kinds?: readonly { readonly group?: string; readonly kind: string }[] };
}

/** Without a value: any. */
export interface GatewayAddress { readonly type?: string; readonly value?: string }

export interface ListenerStatus { readonly name: string; readonly supportedKinds: readonly { readonly group: string; readonly kind: string }[]; readonly attachedRoutes: number; readonly conditions: readonly Condition[] }
export interface GatewayStatus { readonly addresses?: readonly { readonly type: string; readonly value: string }[]; readonly conditions?: readonly Condition[]; readonly listeners?: readonly ListenerStatus[] }
export interface Gateway extends ApiObject {
  readonly spec: { readonly gatewayClassName: string; readonly listeners: readonly Listener[]; readonly addresses?: readonly GatewayAddress[]; readonly infrastructure?: { readonly parametersRef?: ParametersRef } };
  readonly status?: GatewayStatus;
}

export interface ParentRef extends ObjectRef { readonly sectionName?: string; readonly port?: number }
export interface HeaderValue { readonly name: string; readonly value: string }
export interface HeaderFilter { readonly set?: readonly HeaderValue[]; readonly add?: readonly HeaderValue[]; readonly remove?: readonly string[] }
export interface PathModifier { readonly type: string; readonly replaceFullPath?: string; readonly replacePrefixMatch?: string }
export interface CorsFilter {
  readonly allowOrigins?: readonly string[];
  readonly allowCredentials?: boolean;
  readonly allowMethods?: readonly string[];
  readonly allowHeaders?: readonly string[];
  readonly exposeHeaders?: readonly string[];
  readonly maxAge?: number;
}
export interface HttpRouteFilter {
  readonly type: string;
  readonly requestHeaderModifier?: HeaderFilter;
  readonly responseHeaderModifier?: HeaderFilter;
  readonly requestRedirect?: { readonly scheme?: string; readonly hostname?: string; readonly path?: PathModifier; readonly port?: number; readonly statusCode?: number };
  readonly cors?: CorsFilter;
  readonly urlRewrite?: { readonly hostname?: string; readonly path?: PathModifier };
  readonly requestMirror?: { readonly backendRef: BackendRef; readonly percent?: number; readonly fraction?: { readonly numerator: number; readonly denominator?: number } };
}
export interface BackendRef extends ObjectRef { readonly port?: number; readonly weight?: number; readonly filters?: readonly HttpRouteFilter[] }
export interface HttpRouteMatch {
  readonly path?: { readonly type?: string; readonly value?: string };
  readonly headers?: readonly { readonly type?: string; readonly name: string; readonly value: string }[];
  readonly queryParams?: readonly { readonly type?: string; readonly name: string; readonly value: string }[];
  readonly method?: string;
}
export interface HttpRouteRule {
  readonly matches?: readonly HttpRouteMatch[];
  readonly filters?: readonly HttpRouteFilter[];
  readonly backendRefs?: readonly BackendRef[];
  readonly timeouts?: { readonly request?: string; readonly backendRequest?: string };
}
export interface ParentStatus { readonly parentRef: ParentRef; readonly controllerName: string; readonly conditions: readonly Condition[] }
export interface HttpRoute extends ApiObject {
  readonly spec: { readonly parentRefs?: readonly ParentRef[]; readonly hostnames?: readonly string[]; readonly rules?: readonly HttpRouteRule[] };
  readonly status?: { readonly parents?: readonly ParentStatus[] };
}

export interface GrpcRouteMatch {
  readonly method?: { readonly type?: string; readonly service?: string; readonly method?: string };
  readonly headers?: readonly { readonly type?: string; readonly name: string; readonly value: string }[];
}
export interface GrpcRouteRule { readonly matches?: readonly GrpcRouteMatch[]; readonly filters?: readonly HttpRouteFilter[]; readonly backendRefs?: readonly BackendRef[] }
export interface GrpcRoute extends ApiObject { readonly spec: { readonly parentRefs?: readonly ParentRef[]; readonly hostnames?: readonly string[]; readonly rules?: readonly GrpcRouteRule[] }; readonly status?: HttpRoute["status"] }

export interface TlsRoute extends ApiObject {
  readonly spec: { readonly parentRefs?: readonly ParentRef[]; readonly hostnames?: readonly string[]; readonly rules?: readonly { readonly backendRefs?: readonly BackendRef[] }[] };
  readonly status?: HttpRoute["status"];
}
export type TcpRoute = TlsRoute;
export type AnyRoute = HttpRoute | GrpcRoute | TlsRoute;

export interface ReferenceGrant extends ApiObject {
  readonly spec: {
    readonly from: readonly { readonly group: string; readonly kind: string; readonly namespace: string }[];
    readonly to: readonly { readonly group: string; readonly kind: string; readonly name?: string }[];
  };
}

export interface BackendTlsPolicy extends ApiObject {
  readonly spec: {
    readonly targetRefs: readonly { readonly group?: string; readonly kind: string; readonly name: string; readonly sectionName?: string }[];
    readonly validation: {
      readonly caCertificateRefs?: readonly { readonly group?: string; readonly kind?: string; readonly name: string }[];
      readonly wellKnownCACertificates?: string;
      readonly hostname: string;
      readonly subjectAltNames?: readonly { readonly type: string; readonly hostname?: string; readonly uri?: string }[];
    };
  };
  readonly status?: { readonly ancestors?: readonly PolicyAncestor[] };
}
export interface PolicyAncestor { readonly ancestorRef: ParentRef; readonly controllerName: string; readonly conditions: readonly Condition[] }

export const GATEWAY_CLASSES: ResourceRef<GatewayClass> = { group: GATEWAY_GROUP, version: "v1", plural: "gatewayclasses", kind: "GatewayClass", namespaced: false };
export const GATEWAYS: ResourceRef<Gateway> = { group: GATEWAY_GROUP, version: "v1", plural: "gateways", kind: "Gateway", namespaced: true };
export const HTTP_ROUTES: ResourceRef<HttpRoute> = { group: GATEWAY_GROUP, version: "v1", plural: "httproutes", kind: "HTTPRoute", namespaced: true };
export const GRPC_ROUTES: ResourceRef<GrpcRoute> = { group: GATEWAY_GROUP, version: "v1", plural: "grpcroutes", kind: "GRPCRoute", namespaced: true };
export const TLS_ROUTES: ResourceRef<TlsRoute> = { group: GATEWAY_GROUP, version: "v1", plural: "tlsroutes", kind: "TLSRoute", namespaced: true };
export const TCP_ROUTES: ResourceRef<TcpRoute> = { group: GATEWAY_GROUP, version: "v1", plural: "tcproutes", kind: "TCPRoute", namespaced: true };
export const BACKEND_TLS_POLICIES: ResourceRef<BackendTlsPolicy> = { group: GATEWAY_GROUP, version: "v1", plural: "backendtlspolicies", kind: "BackendTLSPolicy", namespaced: true };
export const REFERENCE_GRANTS: ResourceRef<ReferenceGrant> = { group: GATEWAY_GROUP, version: "v1beta1", plural: "referencegrants", kind: "ReferenceGrant", namespaced: true };

/** All there are of each kind. */
export interface GatewayResources {
  readonly classes: readonly GatewayClass[];
  readonly gateways: readonly Gateway[];
  readonly routes: readonly HttpRoute[];
  readonly grpcRoutes: readonly GrpcRoute[];
  readonly tlsRoutes: readonly TlsRoute[];
  readonly tcpRoutes: readonly TcpRoute[];
  readonly tlsPolicies: readonly BackendTlsPolicy[];
}
