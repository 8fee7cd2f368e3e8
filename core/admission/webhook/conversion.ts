/**
 * Conversion webhooks: others change the version of custom resources.
 *
 *   conversionBy(definition, deps)                        undefined where nothing but the name of the version changes
 *   await convert(objects, "example.com/v2", signal)      in the same order; of metadata only labels and annotations may come back changed
 *
 * Source: kubernetes v1.36 apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go
 */
import type { CustomResourceDefinition } from "../../api/gen/apiextensions.v1.ts";
import { aggregate } from "../../api/meta/aggregate.ts";
import { type FieldError, formatFieldError, invalid, tooLong } from "../../api/meta/field-error.ts";
import { jsonText } from "../../api/codec/json.ts";
import { formatApiVersion, formatGvk, gvkOf, parseApiVersion } from "../../api/meta/gvk.ts";
import { goQuote } from "../../api/meta/go-quote.ts";
import { validateLabels } from "../../api/meta/label-selector.ts";
import { qualifiedName } from "../../api/meta/names.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { statusError } from "../../api/meta/status-error.ts";
import { isMap, textOf } from "../../api/patch/json-value.ts";
import { ask, type CallDeps } from "./call.ts";
import type { ConversionFailure, ConversionMeter } from "./conversion-metrics.ts";
import { decodeObject, decodeReview } from "./conversion-response.ts";
import { REVIEW_VERSIONS, refuseOtherType, type ReviewVersion } from "./review-type.ts";

export type Conversion = (objects: readonly Readonly<ApiObject>[], apiVersion: string, signal: AbortSignal) => Promise<ApiObject[]>;

/** Of the client upstream calls webhooks with. */
const TIMEOUT_SECONDS = 30;
/** Source: kubernetes v1.36 apimachinery/pkg/api/validation/objectmeta.go TotalAnnotationSizeLimitB */
const ANNOTATIONS_BYTES_MAX = 256 * 1024;
const GROUP = "apiextensions.k8s.io";
const KIND = "ConversionReview";

export function conversionBy({ metadata: { name }, spec: { conversion } }: Readonly<CustomResourceDefinition>, { meter, ...deps }: CallDeps & { readonly meter?: ConversionMeter | undefined }): Conversion | undefined {
  const { webhook, strategy } = conversion ?? {};
  if (strategy !== "Webhook" || !webhook?.clientConfig) return undefined;
  const { clientConfig: config, conversionReviewVersions } = webhook;
  const version = conversionReviewVersions.find((one): one is ReviewVersion => REVIEW_VERSIONS.includes(one as ReviewVersion));

  async function convert(objects: readonly Readonly<ApiObject>[], apiVersion: string, signal: AbortSignal): Promise<ApiObject[]> {
    const all: ApiObject[] = [];
    for (const batch of batchesOf(objects)) all.push(...(await measured(batch, apiVersion, signal)));
    return all;
  }

  async function measured(objects: readonly Readonly<ApiObject>[], apiVersion: string, signal: AbortSignal): Promise<ApiObject[]> {
    const done = meter?.converts({ name, from: gvkOf(objects[0]!).version, to: parseApiVersion(apiVersion).version });
    let succeeded = false;
    try {
      const all = await convertBatch(objects, apiVersion, signal);
      succeeded = true;
      return all;
    } finally {
      done?.(succeeded);
    }
  }

  async function convertBatch(objects: readonly Readonly<ApiObject>[], apiVersion: string, signal: AbortSignal): Promise<ApiObject[]> {
    const first = objects[0]!;
    if (!version) throw failure("no supported conversion review versions");
    const kind = formatGvk(gvkOf(first));
    const uid = deps.random.uuid();
    const review = { kind: KIND, apiVersion: `${GROUP}/${version}`, request: { uid, desiredAPIVersion: apiVersion, objects: objects.map(unversioned) }, response: { uid: "", convertedObjects: null, result: { metadata: {} } } };
    const asked = meter?.asks();
    try {
      const answer = await ask({ config, review, timeoutSeconds: TIMEOUT_SECONDS, signal }, deps);
      const all = restored(objects, convertedOf(answer, { uid, version }), apiVersion);
      asked?.();
      return all;
    } catch (error) {
      asked?.(error instanceof Misfit ? error.failure : error instanceof Malformed ? "malformed_response" : "call");
      if (error instanceof Misfit && objects.length > 1) return await oneByOne(objects, apiVersion, signal);
      if (error instanceof Misfit) throw failure(error.isAll ? error.message : `conversion webhook for ${kind} returned ${error.message}`, error);
      throw failure(`conversion webhook for ${kind} failed: ${(error as Error).message}`, error);
    }
  }

  /** As upstream always asks: what is wrong with the first that does not fit is then told of that one. */
  async function oneByOne(objects: readonly Readonly<ApiObject>[], apiVersion: string, signal: AbortSignal): Promise<ApiObject[]> {
    const all: ApiObject[] = [];
    for (const object of objects) all.push(...(await convertBatch([object], apiVersion, signal)));
    return all;
  }

  return convert;
}

/** Of what is asked at once: what comes back is to fit into one answer, and to be there in time. Upstream asks for each object. */
const BATCH_OBJECTS_MAX = 200, BATCH_BYTES_MAX = 1024 * 1024;

/** Each is looked for when it is its turn: others have theirs while the one before is waited for. */
function* batchesOf(objects: readonly Readonly<ApiObject>[]): Iterable<readonly Readonly<ApiObject>[]> {
  let batch: Readonly<ApiObject>[] = [];
  let left = BATCH_BYTES_MAX;
  for (const object of objects) {
    const bytes = objects.length === 1 ? 0 : jsonText(object).length;
    if (batch.length > 0 && (left < bytes || batch.length >= BATCH_OBJECTS_MAX)) {
      yield batch;
      batch = [];
      left = BATCH_BYTES_MAX;
    }
    batch.push(object);
    left -= bytes;
  }
  if (batch.length > 0) yield batch;
}

/** As it is stored: the store knows its version. What is left of an object for one who applies may have no metadata. */
function unversioned(object: Readonly<ApiObject>): object {
  if (!("metadata" in object)) return object;
  const { resourceVersion: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}

function metadataOf({ metadata }: { readonly metadata?: ApiObject["metadata"] }): Partial<ApiObject["metadata"]> { return metadata ?? {}; }

/** What came back is not what was asked for. */
class Misfit extends Error {
  override readonly name = "Misfit";
  /** Nothing else is told. */
  readonly isAll: boolean;
  readonly failure: ConversionFailure;
  constructor(message: string, { isAll = false, failure = "invalid_converted_object", ...options }: ErrorOptions & { readonly isAll?: boolean; readonly failure?: ConversionFailure } = {}) {
    super(message, options);
    this.isAll = isAll;
    this.failure = failure;
  }
}

/** A review came back, and no answer in it. */
class Malformed extends Error {
  override readonly name = "Malformed";
}

function failure(message: string, cause?: unknown): Error { return statusError({ code: 500, reason: "", message, cause }); }

/** Throws an Error that says why there is nothing. */
function convertedOf(answer: unknown, { uid, version }: { readonly uid: string; readonly version: ReviewVersion }): readonly unknown[] {
  const { apiVersion, kind, response } = decodeReview(answer, version);
  refuseOtherType({ apiVersion, kind }, { group: GROUP, version, kind: KIND });
  if (version === "v1") {
    const given = formatGvk(gvkOf({ apiVersion, kind }));
    const expected = formatGvk({ group: GROUP, version, kind: KIND });
    if (given !== expected) throw new Malformed(`expected webhook response of ${expected}, got ${given}`);
  }
  if (!response) throw new Malformed("no response provided");
  const { uid: told, status, message, convertedObjects } = response;
  if (version === "v1" && told !== uid) throw new Malformed(`expected response.uid=${goQuote(uid)}, got ${goQuote(told)}`);
  if (status !== "Success") throw new Malformed(message || `response.result.status was '${status}', not 'Success'`);
  return convertedObjects;
}

/** Throws Misfit. */
function restored(objects: readonly Readonly<ApiObject>[], converted: readonly unknown[], apiVersion: string): ApiObject[] {
  if (converted.length !== objects.length) throw new Misfit(`${converted.length} objects, expected ${objects.length}`, { failure: "partial_response" });
  return objects.map((original, i) => {
    const object = decoded(converted[i]);
    const given = gvkOf({ apiVersion: textOf(object["apiVersion"]), kind: textOf(object["kind"]) });
    if (formatApiVersion(given) !== apiVersion) throw new Misfit(`invalid object at index 0: invalid groupVersion (expected ${apiVersion}, received ${formatApiVersion(given)})`);
    if (given.kind !== original.kind) throw new Misfit(`invalid object at index 0: invalid kind (expected ${original.kind}, received ${given.kind})`);
    return withMetadata(object, original);
  });
}

function decoded(value: unknown): Readonly<Record<string, unknown>> {
  try {
    return decodeObject(value);
  } catch (cause) {
    throw new Misfit((cause as Error).message, { cause, isAll: true });
  }
}

const IDENTITY = [["name", "name"], ["namespace", "namespace"], ["uid", "UID"]] as const;

/** Throws Misfit. */
function withMetadata(object: Readonly<Record<string, unknown>>, original: Readonly<ApiObject>): ApiObject {
  const { metadata: told } = object;
  const identity = isMap(told) ? told : {};
  for (const [field, name] of IDENTITY) {
    const [before, after] = [metadataOf(original)[field] ?? "", identity[field] ?? ""];
    if (before !== after) throw new Misfit(`invalid object: must have the same ${name}: ${before} != ${textOf(after)}`);
  }
  if (told === undefined) throw new Misfit(`invalid metadata: missing metadata in converted object`);
  if (!isMap(told)) throw new Misfit(`invalid metadata: invalid metadata of type ${goType(told)} in converted object`);
  const { labels: _, annotations: __, ...kept } = metadataOf(original);
  const changed = Object.fromEntries((["labels", "annotations"] as const).flatMap((field) => {
    const value = told[field];
    if (value === undefined || value === null) return [];
    return [[field, checked(field, value, original)]];
  }));
  return { ...object, metadata: { ...kept, ...changed } } as unknown as ApiObject;
}

function checked(field: "labels" | "annotations", value: unknown, original: Readonly<ApiObject>): Readonly<Record<string, string>> {
  if (!isMap(value)) throw new Misfit(`invalid metadata: invalid metadata.${field} of type ${goType(value)} in converted object`);
  for (const [key, text] of Object.entries(value)) if (typeof text !== "string") throw new Misfit(`invalid metadata: metadata.${field}[${key}] must be a string, but is ${goType(text)} in converted object`);
  const texts = value as Readonly<Record<string, string>>;
  const errors = Bun.deepEquals(metadataOf(original)[field] ?? {}, texts) ? [] : field === "labels" ? validateLabels(texts, "metadata.labels") : annotationErrors(texts);
  if (errors.length > 0) throw new Misfit(`invalid metadata: ${aggregate(errors.map(formatFieldError))}`);
  return texts;
}

function annotationErrors(annotations: Readonly<Record<string, string>>): FieldError[] {
  const bytes = Object.entries(annotations).reduce((sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value), 0);
  return [
    ...Object.keys(annotations).flatMap((key) => qualifiedName(key.toLowerCase()).map((problem) => invalid("metadata.annotation", key, problem))),
    ...(bytes > ANNOTATIONS_BYTES_MAX ? [tooLong("metadata.annotation", ANNOTATIONS_BYTES_MAX)] : []),
  ];
}
function goType(value: unknown): string {
  if (value === null) return "<nil>";
  if (Array.isArray(value)) return "[]interface {}";
  switch (typeof value) {
    case "string": return "string";
    case "boolean": return "bool";
    case "number": return Number.isInteger(value) ? "int64" : "float64";
    case "bigint": return "int64";
    default: return "map[string]interface {}";
  }
}
