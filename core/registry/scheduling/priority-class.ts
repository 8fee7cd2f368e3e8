/**
 * PriorityClass (scheduling.k8s.io/v1): a name for how important pods are.
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/priority-class-v1/
 * Source: kubernetes v1.36 pkg/registry/scheduling/priorityclass/{strategy.go,storage/storage.go}, pkg/apis/scheduling/{v1/defaults,v1/helpers,validation/validation}.go
 */
import { type FieldError, forbidden } from "../../api/meta/field-error.ts";
import type { PriorityClass } from "../../api/gen/scheduling.v1.ts";
import { immutable, oneOf } from "../core/checks/values.ts";
import { defineResource } from "../generic/resource.ts";

const SYSTEM_PREFIX = "system-";
const USER_PRIORITY_MAX = 1_000_000_000;
/** Of the classes the cluster makes itself. */
const SYSTEM_VALUES: ReadonlyMap<string, number> = new Map([["system-node-critical", 2_000_001_000], ["system-cluster-critical", 2_000_000_000]]);

export const priorityClasses = defineResource<PriorityClass>({
  group: "scheduling.k8s.io", version: "v1", kind: "PriorityClass", plural: "priorityclasses",
  generation: () => false, // one from the start, and it stays at that
  defaults(object) { object.preemptionPolicy ??= "PreemptLowerPriority"; },
  undeletable: (name) => (SYSTEM_VALUES.has(name) ? "this is a system priority class and cannot be deleted" : undefined),
  *validate(object, old) {
    if (old) return;
    const { metadata: { name = "" }, value = 0, preemptionPolicy } = object;
    if (name.startsWith(SYSTEM_PREFIX)) {
      const problem = systemClassProblem(object);
      if (problem !== undefined) yield forbidden("metadata.name", `priority class names with '${SYSTEM_PREFIX}' prefix are reserved for system use only. error: ${problem}`);
    } else if (value > USER_PRIORITY_MAX) yield forbidden("value", `maximum allowed value of a user defined priority is ${USER_PRIORITY_MAX}`);
    if (preemptionPolicy !== undefined) yield* oneOf("preemptionPolicy", preemptionPolicy, ["PreemptLowerPriority", "Never"]);
  },
  *validateUpdate(next, old): Iterable<FieldError> {
    if ((next.value ?? 0) !== (old.value ?? 0)) yield forbidden("value", "may not be changed in an update.");
    yield* immutable("preemptionPolicy", next.preemptionPolicy, old.preemptionPolicy);
  },
});

function systemClassProblem({ metadata: { name }, value = 0, globalDefault = false }: Readonly<PriorityClass>): string | undefined {
  const expected = SYSTEM_VALUES.get(name);
  if (expected === undefined) return `${name} is not a known system priority class`;
  if (value !== expected) return `value of ${name} PriorityClass must be ${expected}`;
  return globalDefault ? `globalDefault of ${name} PriorityClass must be false` : undefined;
}
