/**
 * Canonical custom resources: keys sorted at every level, as Go writes a map, metadata too, which has what every object's metadata has.
 *
 * What is in the rest of the object is its schema's business. `clean` is false if metadata did not fit; diagnose() has the words for it.
 */
import { inKeyOrder, type JsonObject } from "../codec/json-document.ts";
import { gvkOf } from "../meta/gvk.ts";
import type { ApiObject, ObjectMeta } from "../meta/object-meta.ts";
import { canonical, type Canonical } from "./canonical.ts";
import { builtInFacts } from "./facts.ts";

export function canonicalCustom(object: JsonObject): Canonical {
  const metadata = canonical(META, object["metadata"] ?? {});
  return { object: inKeyOrder({ ...object, metadata: metadata.object }) as JsonObject, clean: metadata.clean };
}

/** Metadata as it is written alone: a custom resource's like that of any object. */
export function metadataAlone(object: Readonly<ApiObject>): object {
  if (isShownApart(object)) return withoutGeneration(object.metadata);
  return builtInFacts.typeOf(gvkOf(object)) ? object.metadata : canonical(META, object.metadata).object;
}

/** Upstream holds the generation of a DaemonSet's template as a field, and makes an annotation of it where it shows all of the object. */
const TEMPLATE_GENERATION = "deprecated.daemonset.template.generation";

/** Whether its metadata alone is not that of the object. */
export function isShownApart({ kind, metadata }: Readonly<ApiObject>): boolean { return kind === "DaemonSet" && metadata.annotations?.[TEMPLATE_GENERATION] !== undefined; }

function withoutGeneration(whole: Readonly<ObjectMeta>): object {
  const { annotations: { [TEMPLATE_GENERATION]: _, ...annotations } = {}, ...metadata } = whole;
  return Object.keys(annotations).length > 0 ? { ...whole, annotations } : metadata;
}

const META = builtInFacts.structNamed("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")!;
