/**
 * Quality of service: Guaranteed when everything has limits and requests equal to them, BestEffort when nothing has either, else Burstable.
 *
 * Source: kubernetes v1.36 pkg/apis/core/helper/qos/qos.go
 */
import type { Pod, PodQOSClass, ResourceRequirements } from "../../../api/gen/core.v1.ts";
import { parseQuantity } from "../../../api/meta/quantity.ts";
import { type ResourceList, ResourceSum } from "../checks/resources.ts";

export function qosOf(pod: Readonly<Pod>): PodQOSClass { return pod.status?.qosClass || computeQos(pod); }

export function computeQos({ spec }: Readonly<Pod>): PodQOSClass {
  const all = [...(spec?.containers ?? []), ...(spec?.initContainers ?? [])].map(({ resources }) => resources);
  const parts: readonly (ResourceRequirements | undefined)[] = spec?.resources ? [spec.resources] : all;
  const requests = new ResourceSum();
  const limits = new ResourceSum();
  let everyPartLimited = true;
  for (const part of parts) {
    requests.add(computeOf(part?.requests));
    const limited = computeOf(part?.limits);
    limits.add(limited);
    // Limits of the pod as a whole need not be there; if they are, both must be.
    const matters = !spec?.resources || Object.keys(part?.limits ?? {}).length > 0;
    if (matters && !("cpu" in limited && "memory" in limited)) everyPartLimited = false;
  }
  if (requests.size === 0 && limits.size === 0) return "BestEffort";
  return everyPartLimited && requests.equals(limits) ? "Guaranteed" : "Burstable";
}

const COMPUTE = ["cpu", "memory"] as const;

/** CPU and memory, where they are more than nothing. */
function computeOf(list: ResourceList | undefined): ResourceList {
  const found: Record<string, string> = {};
  for (const name of COMPUTE) {
    const value = list?.[name];
    if (value !== undefined && parseQuantity(value).sign > 0) found[name] = value;
  }
  return found;
}
