/**
 * The annotation in which kubectl's client-side apply remembers what it applied, and how a server-side apply by kubectl takes over from it.
 *
 * What the annotation mentions and the live object still has may be taken without a conflict; and as long as the annotation is
 * there, it is kept up to date, so that going back to client-side apply works.
 *
 * Source: kubernetes v1.36 apimachinery/pkg/util/managedfields/internal/{lastapplied,lastappliedmanager,lastappliedupdater}.go
 */
import { jsonText, parseJson } from "../../codec/json.ts";
import { inKeyOrder } from "../../codec/json-document.ts";
import { byteLength } from "../../meta/byte-length.ts";
import { isMap, type JsonMap, valueAt } from "../json-value.ts";
import type { SchemaNode } from "../schema.ts";
import { compareObjects } from "./compare.ts";
import { difference, type FieldSet } from "./field-set.ts";
import { fieldSetOf } from "./to-set.ts";
import { TypedError } from "./typed-error.ts";
import { validateTyped } from "./validate-typed.ts";

const LAST_APPLIED_ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration";
/** kubernetes v1.36 apimachinery/pkg/api/validation/objectmeta.go TotalAnnotationSizeLimitB */
const ANNOTATIONS_BYTES_MAX = 256 * 1024;

/** Undefined if there is no annotation, or none that helps. */
export function allowedByLastApplied(schema: SchemaNode, live: JsonMap, { apiVersion, kind }: { readonly apiVersion: string; readonly kind: string }): FieldSet | undefined {
  const text = annotationOf(live);
  if (text === undefined) return undefined;
  try {
    const last = parseJson(text).value;
    if (!isMap(last) || last["apiVersion"] !== apiVersion || last["kind"] !== kind) return undefined;
    validateTyped(schema, last);
    validateTyped(schema, live);
    const { modified, added, removed } = compareObjects(schema, last, live);
    return difference(difference(difference(fieldSetOf(schema, last), modified), added), removed);
  } catch (error) {
    if (error instanceof TypedError || error instanceof SyntaxError || (error as Error).name === "JsonSyntaxError") return undefined;
    throw error;
  }
}

function annotationOf(object: JsonMap): string | undefined {
  const metadata = object["metadata"];
  const annotations = isMap(metadata) ? metadata["annotations"] : undefined;
  const text = isMap(annotations) ? annotations[LAST_APPLIED_ANNOTATION] : undefined;
  return typeof text === "string" && text !== "" ? text : undefined;
}

/** The object with the annotation renewed, if it has one; without it, if it would be too long. */
export function withLastApplied(object: JsonMap, applied: JsonMap): JsonMap {
  if (annotationOf(object) === undefined) return object;
  const metadata = object["metadata"] as JsonMap;
  const annotations: Record<string, unknown> = { ...(metadata["annotations"] as JsonMap), [LAST_APPLIED_ANNOTATION]: `${jsonText(inKeyOrder(withoutAnnotation(applied)))}\n` };
  const size = Object.entries(annotations).reduce((sum, [key, value]) => sum + byteLength(key) + byteLength(String(value)), 0);
  if (size > ANNOTATIONS_BYTES_MAX) delete annotations[LAST_APPLIED_ANNOTATION];
  return { ...object, metadata: { ...metadata, annotations } };
}

function withoutAnnotation(applied: JsonMap): JsonMap {
  const metadata = applied["metadata"];
  const annotations = isMap(metadata) ? metadata["annotations"] : undefined;
  if (!isMap(metadata) || annotations === undefined) return applied;
  if (!isMap(annotations)) { // null says the same as nothing
    const { annotations: _, ...rest } = metadata;
    return { ...applied, metadata: rest };
  }
  if (valueAt(annotations, LAST_APPLIED_ANNOTATION) === undefined) return applied;
  const { [LAST_APPLIED_ANNOTATION]: _, ...rest } = annotations;
  return { ...applied, metadata: { ...metadata, annotations: rest } };
}
