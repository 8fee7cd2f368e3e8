/**
 * Templates of pods, wherever they stand: defaults, validation, warnings.
 *
 * Source: kubernetes v1.36 pkg/apis/core/validation/validation.go ValidatePodTemplateSpec
 */
import { child, type FieldError, forbidden } from "../../../api/meta/field-error.ts";
import type { PodTemplateSpec } from "../../../api/gen/core.v1.ts";
import { validateLabels } from "../../../api/meta/label-selector.ts";
import { validateAnnotations } from "../checks/annotations.ts";
import { dropDisabledFields } from "./disabled-fields.ts";
import { podRules } from "./rules.ts";
import { validateProfilesAgree } from "./validation/security.ts";
import { validatePodAnnotations, validatePodSpec } from "./validation/spec.ts";
import { podWarnings } from "./warnings.ts";

export { defaultPodTemplate } from "./defaults.ts";

type Template = Readonly<PodTemplateSpec> | undefined;

/** `old`: the template it replaces; what that holds already is let pass. */
export function* validatePodTemplate(path: string, template: Template, old?: Template): Iterable<FieldError> {
  const { metadata = {}, spec = { containers: [] } } = template ?? {};
  const rules = podRules(false, old);
  yield* validateTemplateMeta(path, template, old);
  yield* validatePodSpec(child(path, "spec"), spec, undefined, rules);
  yield* validateProfilesAgree(child(path, "spec"), metadata, spec);
  if (spec.ephemeralContainers?.length) yield forbidden(child(path, "spec", "ephemeralContainers"), "ephemeral containers not allowed in pod template");
}

export function* validateTemplateMeta(path: string, template: Template, old?: Template): Iterable<FieldError> {
  const { metadata = {}, spec = { containers: [] } } = template ?? {};
  yield* validateLabels(metadata.labels, child(path, "labels"));
  yield* validateAnnotations(child(path, "annotations"), metadata.annotations);
  yield* validatePodAnnotations(child(path, "annotations"), metadata.annotations ?? {}, spec, podRules(false, old));
}

/** Mutates. */
export function dropDisabledTemplateFields(template: PodTemplateSpec | undefined, old?: Template): void {
  if (template?.spec) dropDisabledFields(template.spec, old?.spec);
}

export function* templateWarnings(path: string, template: Template): Iterable<string> {
  if (template?.spec) yield* podWarnings(path, template.spec, template.metadata ?? {});
}
