/**
 * What the containers of a pod need together: the sum of those that run side by side, or what the init containers need at their highest.
 *
 * Source: kubernetes v1.36 component-helpers/resource/helpers.go AggregateContainerRequests
 */
import type { PodSpec } from "../../../api/gen/core.v1.ts";
import { type ResourceList, ResourceSum } from "../checks/resources.ts";
import { isSidecar } from "./containers.ts";

export function containerRequests(spec: Readonly<PodSpec>): ResourceSum { return aggregate(spec, "requests"); }
export function containerLimits(spec: Readonly<PodSpec>): ResourceSum { return aggregate(spec, "limits"); }

function aggregate(spec: Readonly<PodSpec>, which: "requests" | "limits"): ResourceSum {
  const total = new ResourceSum();
  for (const { resources } of spec.containers ?? []) total.add(resources?.[which] as ResourceList | undefined);
  const sidecars = new ResourceSum();
  const peak = new ResourceSum();
  for (const container of spec.initContainers ?? []) {
    const own = container.resources?.[which] as ResourceList | undefined;
    if (isSidecar(container)) {
      total.add(own);
      sidecars.add(own);
      peak.max(sidecars);
    } else peak.max(new ResourceSum().add(own).addAll(sidecars));
  }
  return total.max(peak);
}
