/**
 * The statuses of the Gateway API's objects, where its CRDs are installed, and a GatewayClass coracle, so that a Gateway can name one. What they ask for is served by
 * node/ingress.
 *
 *   core/ingress/gateway.ts plans ─▶ status of GatewayClasses, Gateways, HTTPRoutes, GRPCRoutes, TLSRoutes, TCPRoutes and BackendTLSPolicies of ours
 */
import type { Service } from "../../api/gen/core.v1.ts";
import type { Condition } from "../../api/gen/meta.v1.ts";
import { ifFound } from "../../api/meta/if-found.ts";
import { type ApiObject, keyOf, labelsOf, type NewObject, type ObjectKey, objectKey, splitKey } from "../../api/meta/object-meta.ts";
import { isAlreadyExists } from "../../api/meta/status-error.ts";
import type { ResourceClient } from "../../client/client.ts";
import { CONFIG_MAPS, INGRESS_CLASSES, INGRESSES, NAMESPACES, SECRETS, SERVICES } from "../../client/resources.ts";
import { authorityNames, authorityProblem, type PlannedAncestor } from "../../ingress/backend-tls.ts";
import { condition, type StatusCondition } from "../../ingress/conditions.ts";
import { knowsFeatures, SUPPORTED_FEATURES } from "../../ingress/gateway-features.ts";
import { isFrontService, ownServiceName } from "../../ingress/gateway-fronts.ts";
import type { GatewaySource } from "../../ingress/gateway-source.ts";
import { parametersProblem } from "../../ingress/gateway-status.ts";
import { type AnyRoute, BACKEND_TLS_POLICIES, type BackendTlsPolicy, GATEWAY_CLASSES, GATEWAY_CONTROLLER, GATEWAY_GROUP, GATEWAYS, type Gateway, type GatewayClass, GRPC_ROUTES, type GrpcRoute, HTTP_ROUTES, type HttpRoute, type ListenerStatus, type ParentStatus, type PolicyAncestor, TCP_ROUTES, type TcpRoute, TLS_ROUTES, type TlsRoute } from "../../ingress/gateway-types.ts";
import { planGateways } from "../../ingress/gateway.ts";
import { grants } from "../../ingress/http-route-rules.ts";
import { INGRESS_SERVICE, isOurIngress, isSecure } from "../../ingress/ingress-class.ts";
import { keyPairProblem } from "../../ingress/key-pair.ts";
import { timestamp } from "../../lifecycle/clock.ts";
import { settleEach } from "../../lifecycle/settle-all.ts";
import { type Controller, mapped, type Watch } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import type { ReservedPort } from "../servicelb/plan.ts";
import { holdsPorts, nodePortProblem } from "./node-ports.ts";

type PlannedParent = Omit<ParentStatus, "conditions"> & { readonly conditions: readonly StatusCondition[] };

const ALL = objectKey("", "all");
const CLASS: NewObject<GatewayClass> = { apiVersion: `${GATEWAY_GROUP}/v1`, kind: "GatewayClass", metadata: { name: "coracle" }, spec: { controllerName: GATEWAY_CONTROLLER } };

export interface GatewayControllerOptions extends Pick<ControllerDeps, "client" | "informers" | "clock"> {
  readonly source: GatewaySource;
  /** Ports of the nodes that are not given away; undefined: nobody gives them away. */
  readonly reserved?: readonly ReservedPort[] | undefined;
}

export function gatewayController({ client, informers, clock, source, reserved }: GatewayControllerOptions): Controller {
  const ingresses = informers.of(INGRESSES), classes = informers.of(INGRESS_CLASSES);
  const services = informers.of(SERVICES), namespaces = informers.of(NAMESPACES), secrets = informers.of(SECRETS), configMaps = informers.of(CONFIG_MAPS);
  const classClient = client.resource(GATEWAY_CLASSES), gatewayClient = client.resource(GATEWAYS), routeClient = client.resource(HTTP_ROUTES), grpcClient = client.resource(GRPC_ROUTES), tlsClient = client.resource(TLS_ROUTES), tcpClient = client.resource(TCP_ROUTES), policyClient = client.resource(BACKEND_TLS_POLICIES);
  let offered = false; // the class: once in this process, so that who deletes it is rid of it

  const checked = new WeakMap<object, { readonly problem: string | undefined }>(); // a Secret or ConfigMap that changes is another object

  function problemOf(what: string, object: { readonly data?: Record<string, string> | undefined } | undefined, problemIn: (data: Record<string, string> | undefined) => string | undefined): string | undefined {
    if (!object) return `${what} not found`;
    let found = checked.get(object);
    if (!found) checked.set(object, (found = { problem: problemIn(object.data) }));
    return found.problem && `${what} ${found.problem}`;
  }
  const certificateProblem = (namespace: string, name: string): string | undefined => problemOf(`secret ${namespace}/${name}`, secrets.get(objectKey(namespace, name)), keyPairProblem);
  const authorityProblemOf = (namespace: string, name: string): string | undefined => problemOf(`configmap ${namespace}/${name}`, configMaps.get(objectKey(namespace, name)), authorityProblem);

  const addressesOfService = (service: Readonly<Service> | undefined): string[] => (service?.status?.loadBalancer?.ingress ?? []).flatMap(({ ip, hostname }) => ip ?? hostname ?? []);

  /** Where nobody gives its own Service an address outside, it is reached from inside the cluster. */
  function addressesOf(gateway: ObjectKey, hasOwn: boolean): readonly string[] {
    if (!hasOwn) return addressesOfService(services.get(objectKey(INGRESS_SERVICE.namespace, INGRESS_SERVICE.name)));
    const service = services.get(objectKey(splitKey(gateway).namespace, ownServiceName(gateway))), balanced = addressesOfService(service);
    return balanced.length > 0 ? balanced : (service?.spec?.clusterIPs ?? []);
  }

  async function writeRoute<R extends AnyRoute>(resource: ResourceClient<R>, route: R, ours: readonly PlannedParent[], signal: AbortSignal): Promise<void> {
    const before = route.status?.parents ?? [];
    const dates = ours.map((one): ParentStatus => ({ ...one, conditions: dated(one.conditions, before.find(({ parentRef, controllerName }) => controllerName === GATEWAY_CONTROLLER && Bun.deepEquals(parentRef, one.parentRef))?.conditions) }));
    const parents = [...before.filter(({ controllerName }) => controllerName !== GATEWAY_CONTROLLER), ...dates];
    if (parents.length > 0 || before.length > 0) await write<R>(resource, route, { parents }, signal);
  }

  async function writePolicy(policy: BackendTlsPolicy, ours: readonly PlannedAncestor[], signal: AbortSignal): Promise<void> {
    const before = policy.status?.ancestors ?? [];
    const dates = ours.map((one): PolicyAncestor => ({ ...one, conditions: dated(one.conditions, before.find(({ ancestorRef, controllerName }) => controllerName === GATEWAY_CONTROLLER && Bun.deepEquals(ancestorRef, one.ancestorRef))?.conditions) }));
    const ancestors = [...before.filter(({ controllerName }) => controllerName !== GATEWAY_CONTROLLER), ...dates];
    if (ancestors.length > 0 || before.length > 0) await write<BackendTlsPolicy>(policyClient, policy, { ancestors }, signal);
  }

  async function write<T extends ApiObject>(resource: ResourceClient<T>, object: T, status: unknown, signal: AbortSignal): Promise<void> {
    const before = (object as { readonly status?: unknown }).status;
    if (Bun.deepEquals(JSON.parse(JSON.stringify(before ?? {})), JSON.parse(JSON.stringify(status)))) return;
    await ifFound(resource.updateStatus({ ...object, status }, { signal }));
  }

  /** A condition keeps its time as long as it keeps its status. */
  function dated(next: readonly StatusCondition[], before: readonly Condition[] = []): Condition[] {
    return next.map((one) => {
      const old = before.find(({ type }) => type === one.type);
      return { ...one, lastTransitionTime: old?.status === one.status ? old.lastTransitionTime : timestamp(clock.nowMs()) };
    });
  }

  /** Whether a policy names this ConfigMap. */
  function isAuthority(object: ApiObject): boolean {
    return source.objects()?.tlsPolicies.some((policy) => policy.metadata.namespace === object.metadata.namespace && authorityNames(policy).includes(object.metadata.name)) ?? false;
  }

  return {
    name: "gateway",
    workers: 1,
    starts: [ALL],
    watches: [
      watchOf(source),
      mapped(services, ({ object, old, deleted }) => (deleted || old === undefined || object.spec.type !== old.spec.type || isFrontService(object) || holdsPorts(object, old) ? [ALL] : [])),
      mapped(ingresses, ({ object, old, deleted }) => (isSecure(object) !== (old !== undefined && isSecure(old)) || deleted ? [ALL] : [])),
      mapped(namespaces, ({ object, old, deleted }) => (deleted || old === undefined || !Bun.deepEquals(object.metadata.labels, old.metadata.labels) ? [ALL] : [])),
      mapped(configMaps, ({ object, old, deleted }) => (isAuthority(object) && (deleted || old === undefined || !Bun.deepEquals(object.data, old.data)) ? [ALL] : [])),
      mapped(secrets, ({ object, old, deleted }) => (object.type === "kubernetes.io/tls" && (deleted || old === undefined || !Bun.deepEquals(object.data, old.data)) ? [ALL] : [])),
    ],
    async reconcile(_key, { signal }) {
      const objects = source.objects();
      if (!objects) return;
      if (!offered && !objects.classes.some(({ spec }) => spec.controllerName === GATEWAY_CONTROLLER)) await classClient.create(CLASS, { signal }).catch((error: unknown) => { if (!isAlreadyExists(error)) throw error; });
      offered = true;
      const plan = planGateways({
        ...objects, namespaces: new Map([...namespaces.list()].map((one) => [one.metadata.name, labelsOf(one)])), addressesOf,
        portProblem: nodePortProblem(services, reserved), hasSecureIngress: [...ingresses.list()].some((one) => isSecure(one) && isOurIngress(one, classes)),
        serviceOf: (namespace, name) => services.get(objectKey(namespace, name)), certificateProblem, authorityProblem: authorityProblemOf, isGranted: grants(objects.grants),
      });
      const writes: (() => Promise<void>)[] = [];
      for (const one of objects.classes)
        if (one.spec.controllerName === GATEWAY_CONTROLLER) {
          const accepted = condition("Accepted", parametersProblem(one.spec.parametersRef), { reason: "Accepted", message: "Handled by coracle", observedGeneration: one.metadata.generation ?? 0 });
          writes.push(() => write<GatewayClass>(classClient, one, { ...one.status, conditions: dated([accepted], one.status?.conditions), ...(knowsFeatures(objects.bundleVersion) && { supportedFeatures: SUPPORTED_FEATURES }) }, signal));
        }
      for (const gateway of objects.gateways) {
        const status = plan.gatewayStatus.get(keyOf(gateway));
        if (status)
          writes.push(() => write<Gateway>(
            gatewayClient, gateway,
            {
              ...status, conditions: dated(status.conditions, gateway.status?.conditions),
              listeners: status.listeners.map((one): ListenerStatus => ({ ...one, conditions: dated(one.conditions, gateway.status?.listeners?.find(({ name }) => name === one.name)?.conditions) })),
            },
            signal,
          ));
      }
      for (const policy of objects.tlsPolicies) writes.push(() => writePolicy(policy, plan.policyStatus.get(policy) ?? [], signal));
      for (const route of objects.routes) writes.push(() => writeRoute<HttpRoute>(routeClient, route, plan.routeStatus.get(route) ?? [], signal));
      for (const route of objects.tlsRoutes) writes.push(() => writeRoute<TlsRoute>(tlsClient, route, plan.routeStatus.get(route) ?? [], signal));
      for (const route of objects.tcpRoutes) writes.push(() => writeRoute<TcpRoute>(tcpClient, route, plan.routeStatus.get(route) ?? [], signal));
      for (const route of objects.grpcRoutes) writes.push(() => writeRoute<GrpcRoute>(grpcClient, route, plan.routeStatus.get(route) ?? [], signal));
      await settleEach(writes, 1, (one) => one()); // what is refused of one, or has changed meanwhile, keeps nothing from the others
    },
  };
}

/** All of them together: a change of one concerns the others. */
export function watchOf(source: GatewaySource, key = ALL): Watch {
  return {
    whenSynced: async () => {}, // there may be nothing to wait for
    subscribe: (add) => source.onChange(() => add(key)),
  };
}
