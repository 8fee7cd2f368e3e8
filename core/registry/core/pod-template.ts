/** PodTemplate (v1): a template of pods that stands by itself. Source: kubernetes v1.36 pkg/registry/core/podtemplate/strategy.go */
import type { PodTemplate } from "../../api/gen/core.v1.ts";
import { defineResource } from "../generic/resource.ts";
import { defaultPodTemplate, dropDisabledTemplateFields, templateWarnings, validatePodTemplate } from "./pod/template.ts";

export const podTemplates = defineResource<PodTemplate>({
  group: "", version: "v1", kind: "PodTemplate", plural: "podtemplates",
  defaults(object) { defaultPodTemplate((object.template ??= {})); },
  prepareForCreate({ template }) { dropDisabledTemplateFields(template); },
  prepareForUpdate(next, old) { dropDisabledTemplateFields(next.template, old.template); },
  validate: ({ template }, old) => validatePodTemplate("template", template, old?.template),
  *warnings({ metadata, template }, old) { if (!old || metadata.generation !== old.metadata.generation) yield* templateWarnings("template", template); },
});
