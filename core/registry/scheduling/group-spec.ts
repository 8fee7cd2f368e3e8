/**
 * What templates of groups of pods and groups themselves say alike.
 *
 * Source: kubernetes v1.36 pkg/apis/scheduling/v1alpha2/zz_generated.validations.go
 */
import type { PodGroupSchedulingPolicy, PodGroupTemplate } from "../../api/gen/scheduling.v1alpha2.ts";
import { child, type FieldError, index, invalid, notSupported, required, tooMany } from "../../api/meta/field-error.ts";
import { longName, qualifiedName } from "../../api/meta/names.ts";
import { problems } from "../core/checks/values.ts";

/** Fields with a gate of their own, in the order of the API. */
export const GATED = {
  schedulingConstraints: "TopologyAwareWorkloadScheduling", resourceClaims: "DRAWorkloadResourceClaims",
  disruptionMode: "WorkloadAwarePreemption", priorityClassName: "WorkloadAwarePreemption", priority: "WorkloadAwarePreemption",
} as const;

const POLICIES = ["basic", "gang"] as const;
const TOPOLOGIES_MAX = 1;
const MODES = ["Pod", "PodGroup"];
/** Above it are those of the system. */
const PRIORITY_MAX = 1_000_000_000;

/** A name that has to be there. */
export function* named(path: string, name: string | undefined, rule: (name: string) => Iterable<string>): Iterable<FieldError> {
  if (!name) yield required(path);
  else yield* problems(path, name, rule(name));
}

/** One of them, and no more. */
export function* validatePolicy(path: string, policy: Readonly<PodGroupSchedulingPolicy> = {}): Iterable<FieldError> {
  const given = POLICIES.filter((one) => policy[one]), all = POLICIES.map((one) => `\`${one}\``).join(", ");
  if (given.length === 0) yield invalid(path, "", `must specify one of: ${all}`);
  if (given.length > 1) yield invalid(path, `{${given.join(", ")}}`, `must specify exactly one of: ${all}`);
  if (!policy.gang) return;
  const { minCount } = policy.gang, at = child(path, "gang", "minCount");
  if (!minCount) yield required(at);
  else if (minCount < 1) yield invalid(at, minCount, "must be greater than or equal to 1");
}

/** Of the fields with gates what may be given: the others have been dropped. */
export function* validateShared(path: string, { schedulingConstraints, disruptionMode, priorityClassName, priority }: Partial<PodGroupTemplate>): Iterable<FieldError> {
  const { topology = [] } = schedulingConstraints ?? {}, at = child(path, "schedulingConstraints", "topology");
  if (topology.length > TOPOLOGIES_MAX) yield tooMany(at, topology.length, TOPOLOGIES_MAX);
  else for (const [i, { key }] of topology.entries()) yield* named(child(index(at, i), "key"), key, qualifiedName);
  if (disruptionMode !== undefined && !MODES.includes(disruptionMode)) yield notSupported(child(path, "disruptionMode"), disruptionMode, MODES);
  if (priorityClassName) yield* problems(child(path, "priorityClassName"), priorityClassName, longName(priorityClassName));
  if (priority !== undefined && priority > PRIORITY_MAX) yield invalid(child(path, "priority"), priority, `must be less than or equal to ${PRIORITY_MAX}`);
}
