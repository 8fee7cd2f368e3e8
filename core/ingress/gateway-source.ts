/**
 * The Gateway API's objects, once its CRDs are there: until then nothing is listed or watched but whether they are.
 *
 *   const source = gatewaySource(informers);
 *   source.onChange(recompute);
 *   source.objects()      undefined: there is no Gateway API in this cluster, or it has not been read yet
 */
import type { CustomResourceDefinition } from "../api/gen/apiextensions.v1.ts";
import { isConditionTrue } from "../api/meta/conditions.ts";
import { annotationsOf, type ApiObject, objectKey } from "../api/meta/object-meta.ts";
import type { ResourceRef } from "../client/client.ts";
import type { Informer } from "../client/informer.ts";
import type { Informers } from "../client/informer-factory.ts";
import { CUSTOM_RESOURCE_DEFINITIONS } from "../client/resources.ts";
import { BACKEND_TLS_POLICIES, GATEWAY_CLASSES, GATEWAYS, type Gateway, type GatewayClass, type GatewayResources, GRPC_ROUTES, HTTP_ROUTES, type HttpRoute, REFERENCE_GRANTS, type ReferenceGrant, TCP_ROUTES, TLS_ROUTES } from "./gateway-types.ts";

export interface GatewayObjects extends GatewayResources {
  readonly grants: readonly ReferenceGrant[];
  /** Of the CRDs; undefined: they do not say. */
  readonly bundleVersion: string | undefined;
}

export interface GatewaySource {
  objects(): GatewayObjects | undefined;
  /** Called after each change. Returns what ends that. */
  onChange(handler: () => void): () => void;
}

/** Of all its CRDs the one that matters. */
const GATEWAY_CRD = "httproutes.gateway.networking.k8s.io";
const BUNDLE_VERSION = "gateway.networking.k8s.io/bundle-version";

const FOREVER = new AbortController().signal;

interface Opened { readonly classes: Informer<GatewayClass>; readonly gateways: Informer<Gateway>; readonly routes: Informer<HttpRoute>; readonly grants: Informer<ReferenceGrant> }

export function gatewaySource(informers: Informers): GatewaySource {
  const definitions = informers.of(CUSTOM_RESOURCE_DEFINITIONS, { fieldSelector: `metadata.name=${GATEWAY_CRD}` });
  const handlers = new Set<() => void>();
  const tell = (): void => { for (const handler of handlers) handler(); };
  const grpcRoutes = whereDefined(informers, GRPC_ROUTES, tell), tlsRoutes = whereDefined(informers, TLS_ROUTES, tell), tcpRoutes = whereDefined(informers, TCP_ROUTES, tell), tlsPolicies = whereDefined(informers, BACKEND_TLS_POLICIES, tell);
  let opened: Opened | undefined;

  definitions.onChange(({ object, deleted }) => {
    if (!opened && isServed(object, deleted)) {
      opened = { classes: informers.of(GATEWAY_CLASSES), gateways: informers.of(GATEWAYS), routes: informers.of(HTTP_ROUTES), grants: informers.of(REFERENCE_GRANTS) };
      for (const informer of Object.values(opened) as Informer<ApiObject>[]) informer.onChange(tell);
      const { classes, gateways, routes } = opened;
      void Promise.all([classes, gateways, routes].map((one) => one.whenSynced(FOREVER))).then(tell); // an empty list is no change
    }
    tell();
  });

  return {
    objects() {
      const definition = definitions.get(objectKey("", GATEWAY_CRD));
      if (!opened || !opened.classes.synced || !opened.gateways.synced || !opened.routes.synced || !definition) return undefined;
      return {
        classes: [...opened.classes.list()], gateways: [...opened.gateways.list()], routes: [...opened.routes.list()], grpcRoutes: grpcRoutes(), tlsRoutes: tlsRoutes(),
        tcpRoutes: tcpRoutes(), tlsPolicies: tlsPolicies(), grants: [...opened.grants.list()], bundleVersion: annotationsOf(definition)[BUNDLE_VERSION],
      };
    },
    onChange(handler) {
      handlers.add(handler);
      return () => void handlers.delete(handler);
    },
  };
}

/** Objects of a kind that some versions of the Gateway API came without, or in another version than ours. */
function whereDefined<R extends ApiObject>(informers: Informers, resource: ResourceRef<R>, tell: () => void): () => readonly R[] {
  const name = `${resource.plural}.${resource.group}`;
  const definitions = informers.of(CUSTOM_RESOURCE_DEFINITIONS, { fieldSelector: `metadata.name=${name}` });
  let routes: Informer<R> | undefined;
  definitions.onChange(({ object, deleted }) => {
    if (!routes && isServed(object, deleted) && object.spec.versions.some((one) => one.name === resource.version && one.served)) {
      routes = informers.of(resource);
      routes.onChange(tell);
    }
    tell();
  });
  return () => (definitions.get(objectKey("", name)) ? [...(routes?.list() ?? [])] : []);
}

function isServed({ status }: Readonly<CustomResourceDefinition>, deleted: boolean | undefined): boolean {
  return !deleted && isConditionTrue(status?.conditions, "Established");
}
