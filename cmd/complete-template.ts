/** A pod template as the API server would take it in now, with all its defaults. */
import type { PodTemplateSpec } from "../core/api/gen/core.v1.ts";
import { copyOf } from "../core/api/meta/copy.ts";
import { canonical } from "../core/api/schema/canonical.ts";
import { declaredDefaults } from "../core/api/schema/declared-defaults.ts";
import { builtInFacts } from "../core/api/schema/facts.ts";
import { podTemplates } from "../core/registry/core/pod-template.ts";

export function completeTemplate(template: Readonly<PodTemplateSpec>): PodTemplateSpec {
  const type = builtInFacts.typeOf(podTemplates)!;
  const object = { apiVersion: "v1", kind: "PodTemplate", metadata: { name: "" }, template: copyOf(template) };
  declaredDefaults.apply(type, object);
  podTemplates.defaults?.(object as never);
  return (canonical(type, object).object as unknown as { readonly template: PodTemplateSpec }).template;
}
