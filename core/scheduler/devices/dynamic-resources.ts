/** The plugin DynamicResources: pods go where devices are, or can be had, for their ResourceClaims. */
import { errorText } from "../../api/meta/error-text.ts";
import type { Candidate } from "../candidate.ts";
import { nodeChanged } from "../changes.ts";
import type { Cluster } from "../cluster.ts";
import { type Filter, type Score, toHighest } from "../plugin.ts";
import { unresolvable } from "../rejection.ts";
import { podClaimsOf } from "./claims.ts";
import { isExtendedResource } from "./extended-resources.ts";
import { deviceNeeds, DevicePlan, type DeviceTimeouts, Unfinished } from "./plan.ts";

/** Source: DynamicResourcesBindingTimeoutDefault, DynamicResourcesFilterTimeoutDefault */
const TIMEOUTS: DeviceTimeouts = { bindingTimeoutMs: 600_000, filterTimeoutMs: 10_000 };

export const DYNAMIC_RESOURCES = "DynamicResources";

/** One plan for an attempt, however many ask for it. */
export function devicePlan(candidate: Candidate, cluster: Cluster, timeouts = TIMEOUTS): DevicePlan | { readonly refused: string } | undefined {
  if ((candidate.pod.spec.resourceClaims ?? []).length === 0 && !Object.keys(candidate.requests).some(isExtendedResource)) return undefined;
  let known = cluster.devicePlans.get(candidate);
  if (!known) cluster.devicePlans.set(candidate, (known = { plan: made(candidate, cluster, timeouts) }));
  return known.plan;
}

function made(candidate: Candidate, { devices, clocks }: Cluster, timeouts: DeviceTimeouts): DevicePlan | { readonly refused: string } | undefined {
  const needs = deviceNeeds(candidate, devices);
  return needs === undefined || "refused" in needs ? needs : new DevicePlan(candidate.pod, needs, { devices, clocks, timeouts });
}

export function dynamicResources(timeouts = TIMEOUTS): Filter {
  return {
    name: DYNAMIC_RESOURCES,
    prepare(candidate, cluster) {
      const plan = devicePlan(candidate, cluster, timeouts);
      if (!plan || "refused" in plan) return plan;
      return {
        reject({ node }) {
          try {
            const here = plan.on(node);
            return "reason" in here ? unresolvable(here.reason) : undefined;
          } catch (error) {
            if (error instanceof Unfinished) throw error;
            // no node can take the pod: the attempt fails with why
            throw new Error(`running "DynamicResources" filter plugin: ${errorText(error)}`, { cause: error });
          }
        },
      };
    },
    mayHelp(pod, change, { devices }) {
      const lacksClaims = (other: Candidate["pod"]): boolean => "refused" in podClaimsOf(other, devices); // then it cannot be helped yet
      switch (change.of) {
        case "pod": return change.object.metadata.uid === pod.metadata.uid && !lacksClaims(change.object) && (!Bun.deepEquals(change.object.status?.resourceClaimStatuses, change.old?.status?.resourceClaimStatuses) || !Bun.deepEquals(
          change.object.status?.extendedResourceClaimStatus, change.old?.status?.extendedResourceClaimStatus,
        ));
        case "resource claim": {
          const { object, old, deleted } = change;
          if (lacksClaims(pod)) return false;
          if (deleted) return object.status?.allocation !== undefined;
          return (old?.status?.allocation !== undefined && !object.status?.allocation) || (isOwn(pod, object.metadata) && (!old || !Bun.deepEquals(old.status, object.status)));
        }
        case "resource slice": case "device class": return !change.deleted;
        case "node": return nodeChanged(change, ({ metadata, status }) => [metadata.labels, status?.allocatable]);
        default: return false;
      }
    },
  };
}

function isOwn({ metadata, spec, status }: Candidate["pod"], claim: { readonly namespace?: string | undefined; readonly name: string }): boolean {
  return claim.namespace === metadata.namespace && ((spec.resourceClaims ?? []).some(({ resourceClaimName }) => resourceClaimName === claim.name) || (status?.resourceClaimStatuses ?? []).some(({ resourceClaimName }) => resourceClaimName === claim.name));
}

/** Nodes where the devices asked for first are free are better. */
export const dynamicResourcesScore: Score = {
  name: DYNAMIC_RESOURCES,
  weight: 2,
  prepare(candidate, cluster) {
    const plan = devicePlan(candidate, cluster);
    if (!plan || "refused" in plan || !plan.claims.some(({ spec }) => (spec.devices?.requests ?? []).some(({ firstAvailable = [] }) => firstAvailable.length > 0))) return undefined;
    return { score: ({ node }) => plan.scoreOn(node), normalize: toHighest };
  },
};
