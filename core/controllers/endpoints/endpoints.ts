/**
 * Keeps an Endpoints object for every Service with a selector, and for those of the cluster's own that have none: what EndpointSlices replaced, still read by many.
 *
 * Source: kubernetes v1.36 pkg/controller/endpoint
 */
import type { Endpoints } from "../../api/gen/core.v1.ts";
import { ifFound } from "../../api/meta/if-found.ts";
import { annotationsOf, keyOf, labelsOf, namespaceOf, type NewObject } from "../../api/meta/object-meta.ts";
import { isNamespaceTerminating } from "../../api/meta/status-error.ts";
import { isOurSlice } from "../../client/our-slices.ts";
import { ENDPOINT_SLICES, ENDPOINTS, PODS, SERVICES } from "../../client/resources.ts";
import { type Controller, delayed, itself, mapped, nameOfKey, type Watch } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { serviceKey, servicesOfPods, SLICES_BY_SERVICE } from "../endpointslice/endpointslice.ts";
import { TRIGGER_TIME } from "../endpointslice/plan.ts";
import { HEADLESS_LABEL, isHeadless, selectedPods, selectsPods } from "../endpointslice/service-endpoints.ts";
import { TriggerTimes } from "../endpointslice/trigger-time.ts";
import { messageOf } from "../pod-control.ts";
import { sameToApi } from "../same.ts";
import { repackSubsets, subsetsFor, subsetsOf, truncateSubsets } from "./plan.ts";

const MANAGED_BY_LABEL = "endpoints.kubernetes.io/managed-by";
const OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity";
const TRUNCATED = "truncated";
/** The cluster's own have a slice for each node: where a thousand nodes come at once, Endpoints of all of them are not written a thousand times. */
const BATCH_MS = 1000;
/** What has slices anyway gets no copies of them. */
export const SKIP_MIRROR_LABEL = "endpointslice.kubernetes.io/skip-mirror";
/** Endpoints that are somebody's lock, not a service's. */
export const LEADER_ANNOTATION = "control-plane.alpha.kubernetes.io/leader";

export function endpointsController({ client, informers, events }: Pick<ControllerDeps, "client" | "informers" | "events">): Controller {
  const services = informers.of(SERVICES);
  const pods = informers.of(PODS);
  const slices = informers.of(ENDPOINT_SLICES);
  const endpoints = informers.of(ENDPOINTS);
  const endpointsClient = client.resource(ENDPOINTS);
  const recorder = events.from({ component: "endpoint-controller" });
  const triggers = new TriggerTimes();

  /** Those that vanish, and those that are there when we start: their service may have gone while nobody looked. Not those that appear: their service may follow. */
  const leftovers: Watch = {
    whenSynced: (signal) => endpoints.whenSynced(signal),
    subscribe(add) {
      let starting = true;
      const end = endpoints.onChange(({ object, deleted }) => {
        if ((deleted || starting || !endpoints.synced) && annotationsOf(object)[LEADER_ANNOTATION] === undefined) add(keyOf(object));
      });
      starting = false;
      return end;
    },
  };

  return {
    name: "endpoint",
    workers: 5,
    watches: [itself(services), servicesOfPods({ pods, services }), delayed(mapped(slices, ({ object }) => (isOurSlice(object) ? [serviceKey(object)] : [])), BATCH_MS), leftovers],

    async reconcile(key, { signal }) {
      const service = services.get(key);
      const held = endpoints.get(key);
      if (service === undefined) {
        triggers.forget(key);
        await ifFound(endpointsClient.delete(nameOfKey(key), {}, { signal }));
        return;
      }
      const own = selectsPods(service) ? [] : slices.by(SLICES_BY_SERVICE, key).filter(isOurSlice);
      if (!selectsPods(service) && own.length === 0) return;
      const selected = selectsPods(service) ? selectedPods(pods, service) : [];
      const triggerTime = triggers.changedAt(service, selected);
      const { subsets, truncated } = truncateSubsets(own.length > 0 ? subsetsOf(service, own) : subsetsFor(service, selected));
      const { [HEADLESS_LABEL]: _h, [MANAGED_BY_LABEL]: _m, ...inherited } = labelsOf(service);
      const labels = { ...inherited, ...(isHeadless(service) ? { [HEADLESS_LABEL]: "" } : {}), [MANAGED_BY_LABEL]: "endpoint-controller", ...(own.length > 0 ? { [SKIP_MIRROR_LABEL]: "true" } : {}) };
      const { [TRIGGER_TIME]: _t, [OVER_CAPACITY]: before, ...kept } = held === undefined ? {} : annotationsOf(held);
      const unchanged = held !== undefined && sameToApi(labelsOf(held), labels) && before === (truncated ? TRUNCATED : undefined)
        && (sameToApi(held.subsets ?? [], subsets) || sameToApi(repackSubsets(held.subsets ?? []), subsets));
      if (unchanged) return;
      const annotations = { ...kept, ...(triggerTime === undefined ? {} : { [TRIGGER_TIME]: triggerTime }), ...(truncated ? { [OVER_CAPACITY]: TRUNCATED } : {}) };
      const draft: NewObject<Endpoints> = { apiVersion: "v1", kind: "Endpoints", metadata: { name: service.metadata.name, namespace: namespaceOf(service), labels, annotations }, subsets: [...subsets] };
      try {
        const written = held === undefined
          ? await endpointsClient.create(draft, { signal })
          : await endpointsClient.update({ ...held, metadata: { ...held.metadata, labels, annotations }, subsets: [...subsets] }, { signal });
        await endpoints.caughtUp([written], signal);
      } catch (error) {
        if (held === undefined && isNamespaceTerminating(error)) return;
        if (!signal.aborted) {
          const about = { apiVersion: "v1", kind: "Endpoints", name: service.metadata.name, namespace: namespaceOf(service) };
          if (held === undefined) recorder.event(about, "Warning", "FailedToCreateEndpoint", `Failed to create endpoint for service ${key}: ${messageOf(error)}`);
          else recorder.event(about, "Warning", "FailedToUpdateEndpoint", `Failed to update endpoint ${key}: ${messageOf(error)}`);
        }
        throw error;
      }
    },
  };
}
