/**
 * Load balancers without a cloud: a Service of type LoadBalancer is reached at the addresses of the nodes. Nothing runs for it: the service proxy of each node
 * takes packets to those addresses as it takes those of any other load balancer, so sources, policies and endpoints are its business.
 *
 *   Service ─▶ plan.ts ─▶ status.loadBalancer.ingress: the ready nodes' external addresses, or else internal ones; with externalTrafficPolicy Local only of
 *                          nodes that have endpoints
 *
 * Services with a loadBalancerClass are left to whom it names.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/cloud-provider/controllers/service (events, which nodes)
 */
import { isDeepStrictEqual } from "node:util";
import type { LoadBalancerIngress, Node, Service } from "../../api/gen/core.v1.ts";
import type { EndpointSlice } from "../../api/gen/discovery.v1.ts";
import { ifFound } from "../../api/meta/if-found.ts";
import { keyOf, labelsOf, namespaceOf, type ObjectKey, objectKey } from "../../api/meta/object-meta.ts";
import type { Index } from "../../client/informer.ts";
import { ENDPOINT_SLICES, NODES, SERVICES } from "../../client/resources.ts";
import { settleEach } from "../../lifecycle/settle-all.ts";
import { type Controller, mapped } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { isOurs, nodePortsOf, planLoadBalancer, type ReservedPort } from "./plan.ts";

const SERVICE_NAME = "kubernetes.io/service-name";
const ALL = objectKey("", "all");
/** Ours write as upstream's do, of which none gives addresses. */
const FIELD_MANAGER = "kube-controller-manager";
/** Cloud controllers hold a Service with it until its load balancer is gone. Ours leave nothing behind, but a Service may come with it from another cluster. */
const CLEANUP_FINALIZER = "service.kubernetes.io/load-balancer-cleanup";
const SLICES: Index<EndpointSlice> = { name: "service of slice", valuesOf: (slice) => serviceKey(slice) ?? [] };
const OURS: Index<Service> = { name: "load balanced", valuesOf: (service) => (isOurs(service) ? ["yes"] : []) };
const NODE_PORTS: Index<Service> = { name: "node port", valuesOf: nodePortsOf };

export interface ServiceLbOptions extends Pick<ControllerDeps, "client" | "informers" | "events"> { readonly reserved: readonly ReservedPort[] }

export function serviceLbController({ client, informers, events, reserved }: ServiceLbOptions): Controller {
  const services = informers.of(SERVICES);
  const nodes = informers.of(NODES);
  const slices = informers.of(ENDPOINT_SLICES);
  const serviceClient = client.resource(SERVICES);
  const recorder = events.from({ component: "service-controller" });
  const refused = new Map<ObjectKey, string>(); // said once, not at every change of a node

  const balanced = new Map<ObjectKey, Readonly<Service>>(); // that have addresses

  const ours = (): ObjectKey[] => services.by(OURS, "yes").map(keyOf);

  const isPublished = (service: Readonly<Service>, ingress: readonly LoadBalancerIngress[]): boolean => isDeepStrictEqual(plain(service.status?.loadBalancer?.ingress ?? []), plain(ingress));

  async function publish(service: Readonly<Service>, ingress: readonly LoadBalancerIngress[], signal: AbortSignal): Promise<void> {
    if (isPublished(service, ingress)) return;
    const next = { ...service, status: { ...service.status, loadBalancer: ingress.length > 0 ? { ingress: [...ingress] } : {} } };
    await services.caughtUp([await serviceClient.updateStatus(next, { signal })], signal);
  }

  /** `service` as it was, or is; what the API has of its addresses it may have taken away by itself. */
  async function remove(service: Readonly<Service>, now: Readonly<Service> | undefined, signal: AbortSignal): Promise<void> {
    recorder.event(service, "Normal", "DeletingLoadBalancer", "Deleting load balancer");
    if (now !== undefined && now.spec?.type !== "LoadBalancer") await publish(now, [], signal);
    recorder.event(service, "Normal", "DeletedLoadBalancer", "Deleted load balancer");
    balanced.delete(keyOf(service));
  }

  /** Whom nobody else answers for may go. */
  async function release(service: Readonly<Service>, signal: AbortSignal): Promise<void> {
    const { finalizers = [] } = service.metadata;
    if (service.spec?.loadBalancerClass !== undefined || !finalizers.includes(CLEANUP_FINALIZER)) return;
    await serviceClient.updateStatus({ ...service, metadata: { ...service.metadata, finalizers: finalizers.filter((one) => one !== CLEANUP_FINALIZER) } }, { signal });
  }

  async function ensure(service: Readonly<Service>, ingress: readonly LoadBalancerIngress[], signal: AbortSignal): Promise<void> {
    if (ingress.length === 0) warnOnce(service, "UnAvailableLoadBalancer", "There are no available nodes for LoadBalancer");
    else refused.delete(keyOf(service));
    const isFirst = !service.status?.loadBalancer?.ingress?.length;
    if (ingress.length > 0) balanced.set(keyOf(service), service);
    if (isPublished(service, ingress)) return;
    if (isFirst) recorder.event(service, "Normal", "EnsuringLoadBalancer", "Ensuring load balancer");
    await publish(service, ingress, signal);
    if (isFirst) recorder.event(service, "Normal", "EnsuredLoadBalancer", "Ensured load balancer");
    else if (ingress.length > 0) recorder.event(service, "Normal", "UpdatedLoadBalancer", "Updated load balancer with new hosts");
  }

  function warnOnce(service: Readonly<Service>, reason: string, message: string): void {
    const key = keyOf(service);
    if (refused.get(key) !== message) recorder.event(service, "Warning", reason, message);
    refused.set(key, message);
  }

  return {
    name: "service-lb",
    workers: 1,
    watches: [
      // What one Service gives up another may have waited for
      mapped(services, ({ object, old, deleted }) => [keyOf(object), ...(isOurs(object) || (old !== undefined && isOurs(old)) || isOtherPort(object, deleted ? undefined : old) ? ours() : [])]),
      mapped(nodes, ({ object, old, deleted }) => (deleted || old === undefined || !isDeepStrictEqual(relevant(object), relevant(old)) ? ours() : [])),
      mapped(slices, ({ object }) => (serviceKey(object) ?? []).filter((key) => services.get(key)?.spec?.externalTrafficPolicy === "Local")),
    ],
    async reconcile(key, { signal }) {
      const service = services.get(key);
      if (service === undefined || !isOurs(service)) {
        refused.delete(key);
        const before = balanced.get(key) ?? (service?.spec?.type !== "LoadBalancer" && service?.status?.loadBalancer?.ingress?.length ? service : undefined);
        if (before !== undefined) await remove(before, service, signal);
        if (service !== undefined) await release(services.get(key) ?? service, signal);
        return;
      }
      const plan = planLoadBalancer(service, { nodes: [...nodes.list()], slices: slices.by(SLICES, key), rivals: services.by(OURS, "yes"), nodePortsAt: (port) => services.by(NODE_PORTS, port), reserved });
      if ("refusal" in plan) {
        balanced.delete(key);
        warnOnce(service, "SyncLoadBalancerFailed", `Error syncing load balancer: failed to ensure load balancer: ${plan.refusal}`);
        return publish(service, [], signal);
      }
      await ensure(service, plan.ingress, signal);
    },
  };
}

/** Where nobody gives them any more: addresses that were given before are taken back, those alone. Whoever sees to load balancers now finds none, or its own. */
export function noServiceLbController({ client, informers }: Pick<ServiceLbOptions, "client" | "informers">): Controller {
  const services = informers.of(SERVICES);
  return {
    name: "service-lb", workers: 1, starts: [ALL], watches: [], reads: [services],
    async reconcile(_key, { signal }) {
      const given = [...services.list()].filter((one) => one.status?.loadBalancer?.ingress?.length && one.spec?.loadBalancerClass === undefined && isGivenByUs(one));
      await settleEach(given, 1, (service) => ifFound(client.resource(SERVICES).updateStatus({ ...service, status: { ...service.status, loadBalancer: {} } }, { signal })));
    },
  };
}

/** Whether the addresses are what a controller of ours has written: no other writes in that name. */
function isGivenByUs({ metadata: { managedFields = [] } }: Readonly<Service>): boolean {
  return managedFields.some(({ manager, subresource, fieldsV1 }) => manager === FIELD_MANAGER && subresource === "status" && isDeepStrictEqual((fieldsV1 as StatusFields | undefined)?.["f:status"]?.["f:loadBalancer"]?.["f:ingress"], {}));
}

interface StatusFields { readonly "f:status"?: { readonly "f:loadBalancer"?: { readonly "f:ingress"?: unknown } } }

/** Others of its node ports are taken, or free. */
function isOtherPort(object: Readonly<Service>, old: Readonly<Service> | undefined): boolean { return nodePortsOf(object).join() !== (old === undefined ? "" : nodePortsOf(old).join()); }

/** Heartbeats change no address. */
function relevant({ metadata, spec, status }: Readonly<Node>): unknown {
  return [metadata.labels, metadata.deletionTimestamp, spec?.taints, status?.addresses, status?.conditions?.find(({ type }) => type === "Ready")?.status];
}

function serviceKey(slice: Readonly<EndpointSlice>): ObjectKey[] | undefined {
  const name = labelsOf(slice)[SERVICE_NAME];
  return name === undefined ? undefined : [objectKey(namespaceOf(slice), name)];
}

function plain(value: unknown): unknown { return JSON.parse(JSON.stringify(value)); }
