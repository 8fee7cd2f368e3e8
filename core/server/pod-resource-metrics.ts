/**
 * /metrics/resources: what every pod asks for and may use at most, as the scheduler counts it. Upstream has it on the scheduler's own port; here the API server tells it, too.
 *
 * Source: kubernetes v1.36 pkg/scheduler/metrics/resources/resources.go
 */
import { podResources } from "../admission/pod-resources.ts";
import type { Pod } from "../api/gen/core.v1.ts";
import { addQuantity, parseQuantity, type Quantity } from "../api/meta/quantity.ts";
import { type Labels, metricsRegistry } from "../observe/metrics.ts";
import { shown } from "./health.ts";
import type { PathHandler } from "./scope.ts";

const HELP = "broken down by pod. This shows the resource usage the scheduler and kubelet expect per pod for resources along with the unit for the resource if any.";
const FAMILIES = ["kube_pod_resource_limit", "kube_pod_resource_request"];

/** `pods` is asked each time. */
export function podResourceMetrics(pods: () => Iterable<Readonly<Pod>>): PathHandler {
  const metrics = metricsRegistry();
  metrics.gaugeFrom("kube_pod_resource_limit", `[STABLE] Resources limit for workloads on the cluster, ${HELP}`, () => samples(pods(), "limits"));
  metrics.gaugeFrom("kube_pod_resource_request", `[STABLE] Resources requested by workloads on the cluster, ${HELP}`, () => samples(pods(), "requests"));
  return (request) => (request.path === "/metrics/resources" ? shown(metrics, request, (family) => FAMILIES.includes(family)) : undefined);
}

function* samples(pods: Iterable<Readonly<Pod>>, which: "requests" | "limits"): Iterable<readonly [Labels, number]> {
  for (const pod of pods) {
    const { metadata: { namespace = "", name }, spec } = pod;
    if (isOver(pod)) continue;
    for (const [resource, quantity] of withOverhead(pod, which)) {
      if (quantity.isZero) continue;
      const priority = spec.priority === undefined || spec.priority === null ? "" : String(spec.priority);
      yield [{ namespace, node: spec.nodeName ?? "", pod: name, priority, resource, scheduler: spec.schedulerName ?? "", unit: unitOf(resource) }, quantity.approximate()];
    }
  }
}

/** What was never on a node is waiting, whatever its phase. */
function isOver({ spec, status }: Readonly<Pod>): boolean {
  return Boolean(spec.nodeName) && (status?.phase === "Succeeded" || status?.phase === "Failed");
}

function withOverhead(pod: Readonly<Pod>, which: "requests" | "limits"): ReadonlyMap<string, Quantity> {
  const { overhead } = pod.spec;
  const total = podResources(pod, which);
  if (!overhead) return total;
  const sum = new Map(total);
  for (const [resource, text] of Object.entries(overhead)) {
    const own = total.get(resource);
    if (own && !own.isZero) sum.set(resource, addQuantity(own, parseQuantity(text)));
    else if (which === "requests") sum.set(resource, parseQuantity(text)); // what has no limit gets none by its overhead
  }
  return sum;
}

function unitOf(resource: string): string {
  switch (resource) {
    case "cpu": return "cores";
    case "memory": case "storage": case "ephemeral-storage": return "bytes";
    default: return resource.startsWith("hugepages-") ? "bytes" : resource.startsWith("attachable-volumes-") ? "integer" : "";
  }
}
