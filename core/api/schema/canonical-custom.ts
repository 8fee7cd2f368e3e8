/**
 * Canonical custom resources: keys sorted at every level, as Go writes a map, and metadata as every object's metadata is.
 *
 * What is in the rest of the object is its schema's business. `clean` is false if metadata did not fit; diagnose() has the words for it.
 */
import { setKey, type JsonObject, type JsonValue } from "../codec/json-document.ts";
import { canonical, type Canonical } from "./canonical.ts";
import { builtInFacts } from "./facts.ts";

export function canonicalCustom(object: JsonObject): Canonical {
  const type = builtInFacts.structNamed("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")!;
  const metadata = canonical(type, object["metadata"] ?? {});
  return { object: sorted({ ...object, metadata: metadata.object }) as JsonObject, clean: metadata.clean };
}

function sorted(value: JsonValue): JsonValue {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(sorted);
  const object: JsonObject = {};
  for (const key of Object.keys(value).sort()) if (value[key] !== undefined) setKey(object, key, sorted(value[key]));
  return object;
}
