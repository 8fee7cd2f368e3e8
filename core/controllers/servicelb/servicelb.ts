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
import { keyOf, labelsOf, namespaceOf, type ObjectKey, objectKey } from "../../api/meta/object-meta.ts";
import type { Index } from "../../client/informer.ts";
import { ENDPOINT_SLICES, NODES, SERVICES } from "../../client/resources.ts";
import { type Controller, mapped } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { isOurs, planLoadBalancer, type ReservedPort } from "./plan.ts";

const SERVICE_NAME = "kubernetes.io/service-name";
const SLICES: Index<EndpointSlice> = { name: "service of slice", valuesOf: (slice) => serviceKey(slice) ?? [] };
const OURS: Index<Service> = { name: "load balanced", valuesOf: (service) => (isOurs(service) ? ["yes"] : []) };

export interface ServiceLbOptions extends Pick<ControllerDeps, "client" | "informers" | "events"> { readonly reserved: readonly ReservedPort[] }

export function serviceLbController({ client, informers, events, reserved }: ServiceLbOptions): Controller {
  const services = informers.of(SERVICES);
  const nodes = informers.of(NODES);
  const slices = informers.of(ENDPOINT_SLICES);
  const serviceClient = client.resource(SERVICES);
  const recorder = events.from({ component: "service-controller" });
  const refused = new Map<ObjectKey, string>(); // said once, not at every change of a node

  const ours = (): ObjectKey[] => services.by(OURS, "yes").map(keyOf);

  async function publish(service: Readonly<Service>, ingress: readonly LoadBalancerIngress[], signal: AbortSignal): Promise<void> {
    if (isDeepStrictEqual(plain(service.status?.loadBalancer?.ingress ?? []), plain(ingress))) return;
    const next = { ...service, status: { ...service.status, loadBalancer: ingress.length > 0 ? { ingress: [...ingress] } : {} } };
    await services.caughtUp([await serviceClient.updateStatus(next, { signal })], signal);
  }

  return {
    name: "service-lb",
    workers: 1,
    watches: [
      // What one Service gives up another may have waited for
      mapped(services, ({ object, old, deleted }) => [...(deleted ? [] : [keyOf(object)]), ...(isOurs(object) || (old !== undefined && isOurs(old)) ? ours() : [])]),
      mapped(nodes, ({ object, old, deleted }) => (deleted || old === undefined || !isDeepStrictEqual(relevant(object), relevant(old)) ? ours() : [])),
      mapped(slices, ({ object }) => (serviceKey(object) ?? []).filter((key) => services.get(key)?.spec?.externalTrafficPolicy === "Local")),
    ],
    async reconcile(key, { signal }) {
      const service = services.get(key);
      if (service === undefined || !isOurs(service)) {
        refused.delete(key);
        if (service !== undefined && service.spec?.type !== "LoadBalancer" && service.status?.loadBalancer?.ingress?.length) await publish(service, [], signal);
        return;
      }
      const plan = planLoadBalancer(service, { nodes: [...nodes.list()], slices: slices.by(SLICES, key), rivals: services.by(OURS, "yes"), reserved });
      if ("refusal" in plan) {
        if (refused.get(key) !== plan.refusal) recorder.event(service, "Warning", "SyncLoadBalancerFailed", `Error syncing load balancer: failed to ensure load balancer: ${plan.refusal}`);
        refused.set(key, plan.refusal);
        return publish(service, [], signal);
      }
      refused.delete(key);
      const isFirst = !service.status?.loadBalancer?.ingress?.length && plan.ingress.length > 0;
      await publish(service, plan.ingress, signal);
      if (isFirst) recorder.event(service, "Normal", "EnsuredLoadBalancer", "Ensured load balancer");
    },
  };
}

/** Heartbeats change no address. */
function relevant({ metadata, spec, status }: Readonly<Node>): unknown {
  return [metadata.labels, metadata.deletionTimestamp, spec?.taints, status?.addresses, status?.conditions?.find(({ type }) => type === "Ready")?.status];
}

function serviceKey(slice: Readonly<EndpointSlice>): ObjectKey[] | undefined {
  const name = labelsOf(slice)[SERVICE_NAME];
  return name === undefined ? undefined : [objectKey(namespaceOf(slice), name)];
}

function plain(value: unknown): unknown { return JSON.parse(JSON.stringify(value)); }
