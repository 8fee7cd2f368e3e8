/**
 * ReplicaSet (apps/v1): so many pods of one template.
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/replica-set-v1/
 * Source: kubernetes v1.36 pkg/registry/apps/replicaset/strategy.go, pkg/apis/apps/{v1/defaults,validation/validation}.go
 */
import type { ReplicaSet } from "../../api/gen/apps.v1.ts";
import { immutable, nonNegative } from "../core/checks/values.ts";
import { defaultPodTemplate, dropDisabledTemplateFields, templateWarnings } from "../core/pod/template.ts";
import { statusPart } from "../core/status-part.ts";
import { defineResource } from "../generic/resource.ts";
import { countsNonNegative, countsWithin } from "./counts.ts";
import { replicasView } from "./replicas-view.ts";
import { podNameWarnings, replicatedTemplate, requiredSelector } from "./selected-template.ts";

const TEMPLATE = "spec.template";

export const replicaSets = defineResource<ReplicaSet>({
  group: "apps", version: "v1", kind: "ReplicaSet", plural: "replicasets",

  defaults({ spec }) {
    defaultPodTemplate((spec.template ??= { metadata: {}, spec: { containers: [] } }));
    spec.replicas ??= 1;
  },
  prepareForCreate({ spec }) { dropDisabledTemplateFields(spec.template); },
  prepareForUpdate(next, old) { dropDisabledTemplateFields(next.spec.template, old.spec.template); },

  *validate({ spec }, old) {
    yield* nonNegative("spec.replicas", spec.replicas);
    yield* nonNegative("spec.minReadySeconds", spec.minReadySeconds);
    yield* requiredSelector("spec.selector", spec.selector, "deployment"); // upstream's word here too
    yield* replicatedTemplate(TEMPLATE, "spec.selector", { selector: spec.selector, template: spec.template, old: old?.spec.template });
  },
  validateUpdate: (next, old) => immutable("spec.selector", next.spec.selector, old.spec.selector),
  *warnings({ metadata, spec }, old) {
    if (!old) yield* podNameWarnings(metadata.name);
    if (!old || metadata.generation !== old.metadata.generation) yield* templateWarnings(TEMPLATE, spec.template);
  },

  subresources: {
    status: statusPart<ReplicaSet>({
      *validate({ status }) {
        if (!status) return;
        yield* countsNonNegative("status", status, ["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration", "terminatingReplicas"]);
        yield* countsWithin("status", status, [
          ["fullyLabeledReplicas", "replicas", "cannot be greater than status.replicas"],
          ["readyReplicas", "replicas", "cannot be greater than status.replicas"],
          ["availableReplicas", "replicas", "cannot be greater than status.replicas"],
          ["availableReplicas", "readyReplicas", "cannot be greater than readyReplicas"],
        ]);
      },
    }),
    scale: replicasView<ReplicaSet>(),
  },
});
