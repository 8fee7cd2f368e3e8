/**
 * Keeps EndpointSlices for every Service with a selector: the addresses and ports of the pods it selects.
 *
 * API:    https://kubernetes.io/docs/concepts/services-networking/endpoint-slices/
 * Source: kubernetes v1.36 pkg/controller/endpointslice, staging/src/k8s.io/endpointslice
 */
import type { Pod, Service } from "../../api/gen/core.v1.ts";
import type { EndpointSlice } from "../../api/gen/discovery.v1.ts";
import { aggregate } from "../../api/meta/aggregate.ts";
import { controllerRef, isDeleting, keyOf, labelsOf, namespaceOf, type ObjectKey, objectKey, type TemplateMeta } from "../../api/meta/object-meta.ts";
import type { Index, Informer } from "../../client/informer.ts";
import { ENDPOINT_SLICES, NODES, PODS, SERVICES } from "../../client/resources.ts";
import { type Controller, itself, mapped, type Watch } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { messageOf } from "../pod-control.ts";
import { sliceMetrics } from "./metrics.ts";
import { type Layout, planSlices, type SlicePlan } from "./plan.ts";
import { addressTypesOf, groupsFor, HEADLESS_LABEL, isHeadless, sameEndpoint, selectedPods, selectsPods, servicesOf } from "./service-endpoints.ts";
import { HINTS_DISABLED, HINTS_ENABLED, usesTopologyMode, withoutHints, withZoneHints, zoneDigest, zoneShares } from "./topology-hints.ts";
import { TriggerTimes } from "./trigger-time.ts";
import { writeSlices } from "./write-slices.ts";

export const SERVICE_NAME_LABEL = "kubernetes.io/service-name";
export const MANAGED_BY_LABEL = "endpointslice.kubernetes.io/managed-by";
const MANAGER = "endpointslice-controller.k8s.io";
const RESERVED = new Set([SERVICE_NAME_LABEL, MANAGED_BY_LABEL, HEADLESS_LABEL]);

/** --max-endpoints-per-slice, unless something else is asked for. */
export const PER_SLICE_MAX = 100;

/** By the service a slice is for. */
export const SLICES_BY_SERVICE: Index<EndpointSlice> = {
  name: "service",
  valuesOf: (slice) => [`${namespaceOf(slice)}/${labelsOf(slice)[SERVICE_NAME_LABEL] ?? ""}`],
};

export function endpointSliceController({ client, informers, events, metrics, perSliceMax = PER_SLICE_MAX }: Pick<ControllerDeps, "client" | "informers" | "events" | "metrics"> & { readonly perSliceMax?: number | undefined }): Controller {
  const services = informers.of(SERVICES);
  const pods = informers.of(PODS);
  const slices = informers.of(ENDPOINT_SLICES);
  const nodes = informers.of(NODES);
  const sliceClient = client.resource(ENDPOINT_SLICES);
  const recorder = events.from({ component: "endpoint-slice-controller" });
  const triggers = new TriggerTimes();
  const meter = metrics && sliceMetrics(metrics, { perSliceMax });
  const hinted = new Set<ObjectKey>(); // services whose endpoints have hints by zone
  const waiting = new Map<ObjectKey, ReadonlySet<string>>(); // services with pods on nodes of these names, of which there are none

  return {
    name: "endpoint_slice",
    workers: 5,
    retry: { minMs: 1000, maxMs: 1_000_000 }, // endpointslice_controller.go defaultSyncBackOff, maxSyncBackOff
    watches: [
      itself(services),
      servicesOfPods({ pods, services }),
      mapped(nodes, ({ object, old, deleted }) => (!deleted && old !== undefined && zoneDigest(old) === zoneDigest(object) ? [] : [...services.list()].filter(usesTopologyMode).map(keyOf))),
      mapped(nodes, ({ object, old }) => (old === undefined ? [...waiting].flatMap(([key, names]) => (names.has(object.metadata.name) ? [key] : [])) : [])), // the next try may be minutes away
      mapped(slices, ({ object, old, deleted }) => (!deleted && old !== undefined && isForTheSame(old, object) ? [] : (old === undefined ? [object] : [old, object]).filter(isOurs).map(serviceKey))),
    ],

    async reconcile(key, { signal }) {
      const service = services.get(key);
      if (service === undefined) {
        hinted.delete(key);
        waiting.delete(key);
        meter?.gone(key);
        triggers.forget(key); // its slices are taken by the garbage collector
        return;
      }
      if (!selectsPods(service)) return;
      const selected = selectedPods(pods, service);
      const triggerTime = triggers.changedAt(service, selected);
      const ours = slices.by(SLICES_BY_SERVICE, key).filter((slice) => isOurs(slice) && !isDeleting(slice));
      const addressTypes = addressTypesOf(service);
      const metadata = metadataFor(service);
      const owner = `Service ${key}`;
      try {
        const problems: string[] = [], absent = new Set<string>();
        const plans: SlicePlan[] = [];
        for (const addressType of addressTypes) {
          const [existing, others] = partition(ours.filter((slice) => slice.addressType === addressType), (slice) => isOwnedBy(slice, service));
          const { groups: found, skipped } = groupsFor(service, selected, addressType, (name) => nodes.get(objectKey("", name)));
          for (const { metadata: { name }, spec: { nodeName = "" } } of skipped) {
            absent.add(nodeName);
            problems.push(`skipping Pod ${name} for Service ${key}: Node ${nodeName} Not Found`);
          }
          if (absent.size > 0) waiting.set(key, absent);
          else waiting.delete(key);
          const own = planHinted(service, key, existing, { addressType, groups: found, metadata, perSliceMax, placeholder: true, triggerTime });
          const plan = { ...own, remove: [...own.remove, ...others] };
          plans.push(plan);
          try {
            await writeSlices(plan, { client: sliceClient, slices, owner, mayCreate: !isDeleting(service), signal });
          } catch (error) { // the other family has its endpoints all the same
            if (signal.aborted) throw error;
            problems.push(messageOf(error));
          }
        }
        const others = { create: [], update: [], remove: ours.filter((slice) => !addressTypes.includes(slice.addressType)) };
        meter?.synced(key, service, ours, [...plans, others]);
        await writeSlices(others, { client: sliceClient, slices, owner, mayCreate: false, signal });
        if (problems.length > 0) throw new Error(aggregate(problems));
        meter?.ended("success");
      } catch (error) {
        meter?.ended("error");
        if (!signal.aborted) recorder.event(service, "Warning", "FailedToUpdateEndpointSlices", `Error updating Endpoint Slices for Service ${key}: ${messageOf(error)}`);
        throw error;
      }
    },
  };

  /** Where the service asks for it, each endpoint is for a zone. */
  function planHinted(service: Readonly<Service>, key: ObjectKey, existing: readonly Readonly<EndpointSlice>[], layout: Layout): SlicePlan {
    const tell = (type: "Normal" | "Warning", reason: string, what: string): void => recorder.event(service, type, reason, `${what}, addressType: ${layout.addressType}`);
    if (!usesTopologyMode(service)) {
      if (hinted.delete(key)) tell("Warning", "TopologyAwareHintsDisabled", HINTS_DISABLED);
      return planSlices(existing, layout);
    }
    const { plan, problem } = withZoneHints(planSlices(existing.map(withoutHints), layout), existing, { shares: zoneShares(nodes.list()), layout });
    if (problem !== undefined) {
      hinted.delete(key);
      tell("Warning", "TopologyAwareHintsDisabled", problem);
    } else if (!hinted.has(key)) {
      hinted.add(key);
      const wereThere = existing.some(({ endpoints }) => endpoints?.some(({ hints }) => hints !== undefined)); // before this process
      if (!wereThere) tell("Normal", "TopologyAwareHintsEnabled", HINTS_ENABLED);
    }
    return plan;
  }
}

function isOurs(slice: Readonly<EndpointSlice>): boolean { return labelsOf(slice)[MANAGED_BY_LABEL] === MANAGER; }

/** A slice of the same name's Service of before is not: it goes, and a new one comes. */
function isOwnedBy(slice: Readonly<EndpointSlice>, service: Readonly<Service>): boolean {
  return (slice.metadata.ownerReferences ?? []).some(({ apiVersion, kind, uid }) => apiVersion === "v1" && kind === "Service" && uid === service.metadata.uid);
}

function partition<T>(all: readonly T[], is: (one: T) => boolean): [readonly T[], readonly T[]] { return [all.filter(is), all.filter((one) => !is(one))]; }

/** Nothing but what surrounds it has changed: it may have lost its owner, as when a Service goes without its slices. */
function isForTheSame(old: Readonly<EndpointSlice>, slice: Readonly<EndpointSlice>): boolean {
  return old.metadata.generation === slice.metadata.generation && serviceKey(old) === serviceKey(slice) && isOurs(old) === isOurs(slice) && isDeleting(old) === isDeleting(slice);
}

export function serviceKey(slice: Readonly<EndpointSlice>): ObjectKey { return objectKey(namespaceOf(slice), labelsOf(slice)[SERVICE_NAME_LABEL] ?? ""); }

function metadataFor(service: Readonly<Service>): TemplateMeta {
  const inherited = Object.fromEntries(Object.entries(labelsOf(service)).filter(([name]) => !RESERVED.has(name)));
  return {
    generateName: `${service.metadata.name}-`, namespace: namespaceOf(service), ownerReferences: [controllerRef(service)],
    labels: { ...inherited, ...(isHeadless(service) ? { [HEADLESS_LABEL]: "" } : {}), [SERVICE_NAME_LABEL]: service.metadata.name, [MANAGED_BY_LABEL]: MANAGER },
  };
}

/** The services whose endpoints a change of a pod can change: those that select it, or did; where it has other labels and nothing else, those that did not, or do not any more. */
export function servicesOfPods({ pods, services }: { readonly pods: Informer<Pod>; readonly services: Informer<Service> }): Watch {
  return mapped(pods, ({ object, old, deleted }) => {
    const isShownAlike = !deleted && old !== undefined && sameEndpoint(object, old);
    const isSelectedAlike = old !== undefined && Bun.deepEquals(labelsOf(object), labelsOf(old));
    if (isShownAlike && isSelectedAlike) return [];
    const now = new Set(servicesOf(services, object).map(keyOf));
    if (old === undefined || isSelectedAlike) return now;
    const before = new Set(servicesOf(services, old).map(keyOf));
    return isShownAlike ? now.symmetricDifference(before) : now.union(before);
  });
}
