/** ReplicationController (v1): what ReplicaSets have replaced. Source: kubernetes v1.36 pkg/registry/core/replicationcontroller/strategy.go */
import { child, type FieldError, forbidden, invalid, notSupported, required } from "../../api/meta/field-error.ts";
import type { PodTemplateSpec, ReplicationController, ReplicationControllerStatus } from "../../api/gen/core.v1.ts";
import { selectorFromSet } from "../../api/meta/label-selector.ts";
import { dns1123Label, longName } from "../../api/meta/names.ts";
import { scaleView } from "../autoscaling/scale.ts";
import { defineResource } from "../generic/resource.ts";
import { nonNegative } from "./checks/values.ts";
import { defaultPodTemplate, dropDisabledTemplateFields, templateWarnings, validatePodTemplate } from "./pod/template.ts";
import { statusPart } from "./status-part.ts";

const TEMPLATE = "spec.template";

export const replicationControllers = defineResource<ReplicationController>({
  group: "", version: "v1", kind: "ReplicationController", plural: "replicationcontrollers",
  defaultPropagation: "Orphan", anyBase: true, validateName: longName,

  defaults(controller) {
    const spec = (controller.spec ??= {});
    if (spec.template) defaultPodTemplate(spec.template);
    const labels = spec.template?.metadata?.labels;
    if (labels && Object.keys(spec.selector ?? {}).length === 0) spec.selector = { ...labels };
    labelAsPods(controller);
    spec.replicas ??= 1;
  },
  prepareForCreate(controller) {
    controller.status = { replicas: 0 };
    dropDisabledTemplateFields(controller.spec.template);
  },
  prepareForUpdate(next, old) { dropDisabledTemplateFields(next.spec.template, old.spec.template); },

  *validate({ spec }, old) {
    yield* nonNegative("spec.minReadySeconds", spec.minReadySeconds);
    if (Object.keys(spec.selector ?? {}).length === 0) yield required("spec.selector");
    if (spec.replicas === undefined) yield required("spec.replicas");
    else yield* nonNegative("spec.replicas", spec.replicas);
    yield* validateRunsForever(TEMPLATE, spec.template, spec.selector ?? {}, old?.spec.template);
  },
  *warnings({ metadata, spec }, old) {
    const texts = old ? [] : dns1123Label(metadata.name);
    if (texts.length > 0) yield `metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended: [${texts.join(" ")}]`;
    if (!old || metadata.generation !== old.metadata.generation) yield* templateWarnings(TEMPLATE, (old ?? { spec }).spec.template); // upstream mistakes one template for the other
  },
  fields: ({ status }) => ({ "status.replicas": String(status?.replicas ?? 0) }),

  subresources: {
    status: statusPart<ReplicationController>({ prepare: labelAsPods, validate: ({ status }) => validateStatus("status", status) }),
    scale: scaleView<ReplicationController>({
      replicas: ({ spec }) => spec.replicas ?? 0,
      current: ({ status }) => status?.replicas ?? 0,
      selector: ({ spec }) => selectorFromSet(spec.selector).toString(),
      setReplicas(object, replicas) { object.spec = { ...object.spec, replicas }; },
    }),
  },
});

/** One without labels has those of its pods. Mutates. */
function labelAsPods({ metadata, spec }: ReplicationController): void {
  const labels = spec.template?.metadata?.labels;
  if (labels && Object.keys(metadata.labels ?? {}).length === 0) metadata.labels = { ...labels };
}

function* validateRunsForever(path: string, template: PodTemplateSpec | undefined, selector: Readonly<Record<string, string>>, old: PodTemplateSpec | undefined): Iterable<FieldError> {
  if (!template) { yield required(path); return; }
  if (Object.keys(selector).length > 0 && !selectorFromSet(selector).matches(template.metadata?.labels))
    yield invalid(child(path, "metadata", "labels"), template.metadata?.labels ?? null, "`selector` does not match template `labels`");
  yield* validatePodTemplate(path, template, old);
  if (template.spec?.restartPolicy !== "Always") yield notSupported(child(path, "spec", "restartPolicy"), template.spec?.restartPolicy ?? "", ["Always"]);
  if (template.spec?.activeDeadlineSeconds !== undefined)
    yield forbidden(child(path, "spec", "activeDeadlineSeconds"), "activeDeadlineSeconds in ReplicationController is not Supported");
}

function* validateStatus(path: string, status: ReplicationControllerStatus | undefined): Iterable<FieldError> {
  const { replicas = 0, fullyLabeledReplicas = 0, readyReplicas = 0, availableReplicas = 0, observedGeneration = 0 } = status ?? {};
  const counts = { replicas, fullyLabeledReplicas, readyReplicas, availableReplicas, observedGeneration };
  for (const [field, value] of Object.entries(counts)) yield* nonNegative(child(path, field), value);
  for (const field of ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"] as const)
    if (counts[field] > replicas) yield invalid(child(path, field), counts[field], "cannot be greater than status.replicas");
  if (availableReplicas > readyReplicas) yield invalid(child(path, "availableReplicas"), availableReplicas, "cannot be greater than readyReplicas");
}
