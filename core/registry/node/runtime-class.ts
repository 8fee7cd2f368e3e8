/**
 * RuntimeClass (node.k8s.io/v1): a way of running containers that some nodes have.
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/runtime-class-v1/
 * Source: kubernetes v1.36 pkg/registry/node/runtimeclass/strategy.go, pkg/apis/node/validation/validation.go, pkg/api/node/util.go
 */
import type { Toleration } from "../../api/gen/core.v1.ts";
import type { RuntimeClass } from "../../api/gen/node.v1.ts";
import { duplicate, type FieldError, index, required } from "../../api/meta/field-error.ts";
import { validateLabels } from "../../api/meta/label-selector.ts";
import { internalForm } from "../../api/schema/internal-form.ts";
import { immutable, isDns1123Label } from "../core/checks/values.ts";
import { roundResourceList } from "../core/checks/resources.ts";
import { podRules } from "../core/pod/rules.ts";
import { validateTolerations } from "../core/pod/validation/affinity.ts";
import { validateContainerResources } from "../core/pod/validation/resources.ts";
import { deprecatedNodeLabel } from "../core/pod/warnings.ts";
import { defineResource } from "../generic/resource.ts";

export const runtimeClasses = defineResource<RuntimeClass>({
  anyFinalizer: true,
  group: "node.k8s.io", version: "v1", kind: "RuntimeClass", plural: "runtimeclasses",
  generation: false, updateOrder: "change last", createOnUpdate: true, unconditionalUpdate: false,
  defaults({ overhead }) { roundResourceList(overhead?.podFixed); },
  *validate({ handler, overhead, scheduling }): Iterable<FieldError> {
    if (!handler) yield required("handler");
    else yield* isDns1123Label("handler", handler);
    if (overhead) yield* validateContainerResources("overhead", { limits: overhead.podFixed }, new Set(), podRules(false));
    if (!scheduling) return;
    yield* validateLabels(scheduling.nodeSelector, "scheduling.nodeSelector");
    yield* validateUniqueTolerations("scheduling.tolerations", scheduling.tolerations ?? []);
  },
  validateUpdate: (next, old) => immutable("handler", next.handler, old.handler),
  *warnings({ scheduling }) {
    for (const label of Object.keys(scheduling?.nodeSelector ?? {})) {
      const text = deprecatedNodeLabel(label);
      if (text !== undefined) yield `scheduling.nodeSelector: ${text}`;
    }
  },
});

function* validateUniqueTolerations(path: string, tolerations: readonly Toleration[]): Iterable<FieldError> {
  yield* validateTolerations(path, tolerations, false);
  const seen = new Set<string>();
  for (const [i, toleration] of tolerations.entries()) {
    const { key = "", operator = "", value = "", effect = "" } = toleration;
    const id = JSON.stringify([key, operator, value, effect]);
    if (seen.has(id)) yield duplicate(index(path, i), internalForm("io.k8s.api.core.v1.Toleration", toleration));
    seen.add(id);
  }
}
