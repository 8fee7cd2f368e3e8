/**
 * ReplicaSet (apps/v1): so many pods of one template.
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/replica-set-v1/
 * Source: kubernetes v1.36 pkg/registry/apps/replicaset/strategy.go, pkg/apis/apps/v1/defaults.go, pkg/apis/apps/validation/validation.go
 */
import type { ReplicaSet, ReplicaSetStatus } from "../../api/gen/apps.v1.ts";
import type { FieldError } from "../../api/meta/field-error.ts";
import { immutable, nonNegative } from "../core/checks/values.ts";
import { defaultPodTemplate, dropDisabledTemplateFields, podNameWarnings, templateWarnings } from "../core/pod/template.ts";
import { statusPart } from "../core/status-part.ts";
import { defineResource } from "../generic/resource.ts";
import { replicasView, validateAtMost, validateCounts, validateReplicas } from "./workload.ts";

export const replicaSets = defineResource<ReplicaSet>({
  group: "apps", version: "v1", kind: "ReplicaSet", plural: "replicasets",

  defaults({ spec }) {
    defaultPodTemplate((spec.template ??= {}));
    spec.replicas ??= 1;
  },
  prepareForCreate(set) {
    set.status = { replicas: 0 };
    dropDisabledTemplateFields(set.spec.template);
  },
  prepareForUpdate(next, old) { dropDisabledTemplateFields(next.spec.template, old.spec.template); },

  *validate({ spec }, old) {
    yield* nonNegative("spec.replicas", spec.replicas);
    yield* nonNegative("spec.minReadySeconds", spec.minReadySeconds);
    yield* validateReplicas("spec", { selector: spec.selector, template: spec.template, old: old?.spec.template });
  },
  validateUpdate: (next, old) => immutable("spec.selector", next.spec.selector, old.spec.selector),
  *warnings(next, old) {
    if (!old) yield* podNameWarnings(next.metadata.name);
    if (next.metadata.generation !== old?.metadata.generation) yield* templateWarnings("spec.template", next.spec.template);
  },
  fields: ({ status }) => ({ "status.replicas": String(status?.replicas ?? 0) }),

  subresources: {
    status: statusPart<ReplicaSet>({ validate: ({ status }) => validateStatus("status", status ?? { replicas: 0 }) }),
    scale: replicasView<ReplicaSet>(),
  },
});

function* validateStatus(path: string, status: Readonly<ReplicaSetStatus>): Iterable<FieldError> {
  const { replicas = 0, fullyLabeledReplicas = 0, readyReplicas = 0, availableReplicas = 0, observedGeneration, terminatingReplicas } = status;
  yield* validateCounts(path, { replicas, fullyLabeledReplicas, readyReplicas, availableReplicas, observedGeneration, terminatingReplicas });
  yield* validateAtMost(path, { fullyLabeledReplicas, readyReplicas, availableReplicas }, replicas, "cannot be greater than status.replicas");
  yield* validateAtMost(path, { availableReplicas }, readyReplicas, "cannot be greater than readyReplicas");
}
