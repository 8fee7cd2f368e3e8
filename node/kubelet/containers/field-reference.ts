/**
 * The downward API: what `fieldRef` and `resourceFieldRef` point at, as text.
 *
 * Source: kubernetes v1.36 pkg/fieldpath/fieldpath.go, pkg/apis/core/pods/helpers.go, pkg/api/v1/resource/helpers.go
 */
import type { Container, EphemeralContainer, Pod, ResourceFieldSelector, ResourceList } from "../../../core/api/gen/core.v1.ts";
import { goQuote } from "../../../core/api/meta/go-quote.ts";
import { parseQuantity } from "../../../core/api/meta/quantity.ts";

export interface FieldFacts {
  readonly pod: Pod;
  readonly podIps: readonly string[];
  readonly hostIps: readonly string[];
}

/** Throws an Error when there is no such field. */
export function fieldValue(path: string, { pod, podIps, hostIps }: FieldFacts): string {
  switch (path) {
    case "metadata.name": return pod.metadata.name;
    case "metadata.namespace": return pod.metadata.namespace ?? "";
    case "metadata.uid": return pod.metadata.uid;
    case "metadata.labels": return formatMap(pod.metadata.labels);
    case "metadata.annotations": return formatMap(pod.metadata.annotations);
    case "spec.nodeName": return pod.spec.nodeName ?? "";
    case "spec.serviceAccountName": return pod.spec.serviceAccountName ?? "";
    case "spec.restartPolicy": return pod.spec.restartPolicy ?? "";
    case "spec.schedulerName": return pod.spec.schedulerName ?? "";
    case "status.phase": return pod.status?.phase ?? "";
    case "status.hostIP": return hostIps[0] ?? "";
    case "status.hostIPs": return hostIps.join(",");
    case "status.podIP": return podIps[0] ?? "";
    case "status.podIPs": return podIps.join(",");
  }
  const [, map, key] = /^metadata\.(labels|annotations)\['(.*)'\]$/.exec(path) ?? [];
  if (map !== undefined && key !== undefined) return pod.metadata[map as "labels" | "annotations"]?.[key] ?? "";
  throw new Error(`unsupported fieldPath: ${path}`);
}

/** One key="value" a line, by key. */
function formatMap(map: Readonly<Record<string, string>> = {}): string {
  return Object.entries(map).toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([key, value]) => `${key}=${goQuote(value)}`).join("\n");
}

/** `allocatable`: stands in for a limit that is not set, or none, before it what the pod may use as a whole. */
export function resourceValue({ resource, divisor }: ResourceFieldSelector, container: Container | EphemeralContainer, { allocatable, podLevel }: { readonly allocatable: ResourceList; readonly podLevel: ResourceList | undefined }): string {
  const [kind, name = ""] = [resource.slice(0, resource.indexOf(".")), resource.slice(resource.indexOf(".") + 1)];
  if ((kind !== "limits" && kind !== "requests") || !/^(cpu|memory|ephemeral-storage|hugepages-.+)$/.test(name)) throw new Error(`unsupported container resource : ${resource}`);
  const set = parseQuantity(container.resources?.[kind]?.[name] ?? "0");
  const others = kind === "limits" && !name.startsWith("hugepages-") ? [podLevel?.[name], allocatable[name]].map((text) => parseQuantity(text ?? "0")) : [];
  const value = [set, ...others].find(({ isZero }) => !isZero) ?? set;
  const unit = parseQuantity(divisor ?? "1");
  const scale = unit.isZero ? parseQuantity("1") : unit;
  const milli = name === "cpu";
  const [amount, by] = milli ? [value.milliValue(), scale.milliValue()] : [value.value(), scale.value()];
  return String((amount + by - 1n) / by);
}
