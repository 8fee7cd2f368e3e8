/**
 * Canonical custom resources: keys sorted at every level, as Go writes a map, and metadata as every object's metadata is.
 *
 * What is in the rest of the object is its schema's business. `clean` is false if metadata did not fit; diagnose() has the words for it.
 */
import { inKeyOrder, type JsonObject } from "../codec/json-document.ts";
import { canonical, type Canonical } from "./canonical.ts";
import { builtInFacts } from "./facts.ts";

export function canonicalCustom(object: JsonObject): Canonical {
  const type = builtInFacts.structNamed("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")!;
  const metadata = canonical(type, object["metadata"] ?? {});
  return { object: inKeyOrder({ ...object, metadata: metadata.object }) as JsonObject, clean: metadata.clean };
}
