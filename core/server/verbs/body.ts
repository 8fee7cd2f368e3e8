/** The object in a request's body: decoded, checked as `fieldValidation` asks, in the version it is stored in, and defaulted. */
import { decodeBody, decodeUntypedBody, enforceFieldValidation, type FieldValidation, kindError, withReset } from "../../api/codec/body.ts";
import { type JsonObject, type JsonValue, jsonNodeOf } from "../../api/codec/json-document.ts";
import { jsonText } from "../../api/codec/json.ts";
import { type Encoding, negotiateInput } from "../../api/codec/negotiate.ts";
import { copyOf } from "../../api/meta/copy.ts";
import { invalid as invalidField } from "../../api/meta/field-error.ts";
import { formatApiVersion, formatGvk, type GroupVersion, type GroupVersionKind } from "../../api/meta/gvk.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { badRequest, internalError, invalid, StatusError, statusError } from "../../api/meta/status-error.ts";
import { jsonKindOf } from "../../api/patch/json-value.ts";
import { canonical } from "../../api/schema/canonical.ts";
import { diagnoseValue } from "../../api/schema/diagnose-value.ts";
import { diagnose, type Diagnosis } from "../../api/schema/diagnose.ts";
import { builtInFacts, type StructType } from "../../api/schema/facts.ts";
import { wrapIntegers } from "../../api/schema/wrap-integers.ts";
import { MalformedError } from "../../registry/apiextensions/custom/embedded.ts";
import type { RequestBody } from "../request.ts";
import { bodyOf, type Scope } from "../scope.ts";

/** Where the kinds are registered that the Scale of a custom resource is read with, in Go's words. */
const CUSTOM_SCALE_SCHEME = "k8s.io/client-go/scale/util.go:146";

/** The body as an object of the request's resource or subresource, in the storage version, defaulted. Throws 400, 415. */
export async function decodeObject(scope: Scope): Promise<ApiObject> { return (await bodyReader(scope))(); }

/** Makes the object of the body anew each time it is called: cheaper than a copy for the one write in thousands that is prepared again. */
export async function bodyReader(scope: Scope): Promise<() => ApiObject> {
  const body = await bodyOf(scope);
  const read = readerOf(scope, body);
  let isRecorded = false;
  return () => {
    const object = read();
    const { apiVersion } = object;
    const finished = finishObject(scope, object);
    if (!isRecorded) scope.audit?.requestObject(finished.apiVersion === apiVersion || scope.served.custom ? finished : scope.served.fromStorage(finished)); // in the version it was sent in, defaulted
    isRecorded = true;
    return finished;
  };
}

/** What server-side apply has merged of `applied`, checked and defaulted like a body. Throws 500 for what fits the schema and is no object all the same: a text that is no base64. */
export function appliedObject(scope: Scope, value: unknown, applied: Partial<ApiObject>): ApiObject {
  const { object, error } = readValue(scope, value, { keepNulls: true, isMap: true }); // unknown fields have been refused, or may be there and are pruned in silence
  if (error !== undefined) {
    const { namespace = "", name = "" } = applied.metadata ?? {};
    const gvk = formatGvk(expectedKind(scope));
    throw statusError({ code: 500, reason: "", message: `failed to convert new object (${namespace}/${name}; ${gvk}) to proper version: unable to convert unstructured object to ${gvk}: ${error}` });
  }
  return finishObject(scope, object);
}

interface Patched {
  /** The patch, as an error shows it. */
  readonly shown: () => string;
  readonly repeated: readonly string[];
  readonly old: Readonly<ApiObject>;
  /** What it says of its kind counts: all but strategic merge patches are read again as a body is. */
  readonly namesKind: boolean;
}

/** What a patch has made of an object. What does not fit is the patch's fault, and told as such. Throws 422. */
export function patchedObject(scope: Scope, value: unknown, { shown, repeated, old, namesKind }: Patched): ApiObject {
  const expected = expectedKind(scope);
  const isTyped = builtInFacts.typeOf(expected) !== undefined;
  const isCustomScale = isTyped && scope.served.custom !== undefined;
  if (namesKind && isTyped && !isCustomScale && !Array.isArray(value) && !(value as Partial<ApiObject>).apiVersion) refuseWithoutVersion(scope, value as JsonObject, { shown, repeated });
  const another = !namesKind ? undefined : isTyped ? kindError(value as JsonValue, expected, isCustomScale ? CUSTOM_SCALE_SCHEME : undefined) : customKindError(value as JsonObject);
  if (another !== undefined && !isTyped) throw unfitPatch(shown(), another);
  if (!isTyped && !(value as Partial<ApiObject>).apiVersion) throw internalError(new Error("Object 'apiVersion' is missing in 'object has no apiVersion field'"));
  const kept = keptSpec(scope, old);
  const { object, error, strict } = readValue(scope, value, { isMap: !namesKind, ...(kept === undefined ? {} : { known: { spec: kept } }) });
  const findings = [...repeated, ...strict];
  const refused = another ?? error ?? (findings.length > 0 && fieldValidationOf(scope) === "Strict" ? `strict decoding error: ${findings.join(", ")}` : undefined);
  if (refused !== undefined) throw unfitPatch(shown(), refused);
  if (fieldValidationOf(scope) === "Warn") scope.warnings.push(...findings);
  return finishObject(scope, object, kept);
}

/** What says of no version what it is, is read as the server holds such objects: nothing of it has a name there, and none of it is read. Throws. */
function refuseWithoutVersion(scope: Scope, value: JsonObject, { shown, repeated }: Pick<Patched, "shown" | "repeated">): never {
  const findings = [...repeated, ...Object.keys(value).filter((name) => name !== "apiVersion" && name !== "kind").sort().map((name) => `unknown field ${JSON.stringify(name)}`)];
  const validation = fieldValidationOf(scope);
  if (findings.length > 0 && validation === "Strict") throw unfitPatch(shown(), `strict decoding error: ${findings.join(", ")}`);
  if (validation === "Warn") scope.warnings.push(...findings);
  throw badRequest(`the name of the object (${scope.info.name} based on URL) was undeterminable: name must be provided`);
}

/** Why what a patch has made of a custom resource is of no kind. */
function customKindError(value: JsonObject): string | undefined {
  if (Array.isArray(value)) return kindError(value, { group: "", version: "", kind: "" });
  for (const name of ["kind", "apiVersion"] as const) {
    const given = value[name] ?? "";
    if (typeof given !== "string") return `couldn't get version/kind; json parse error: json: cannot unmarshal ${jsonKindOf(given)} into Go struct field .${name} of type string`;
  }
  if (!value["kind"]) return `Object 'Kind' is missing in '${jsonText(value)}'`;
  const version = (value["apiVersion"] ?? "") as string;
  return version.split("/").length > 2 ? `unexpected GroupVersion string: ${version}` : undefined;
}

export function unfitPatch(shown: string, why: string): Error { return invalid({ group: "", kind: "" }, "", [invalidField("patch", shown, why)]); }

/** The spec that a write of the status leaves as it is, whatever it says of it: where a patch says nothing, it need not be looked at. Undefined: there is none such. */
export function keptSpec({ served, info }: Scope, old: Readonly<ApiObject> | undefined): object | undefined {
  return info.subresource === "status" && served.keepsSpec ? (old as { readonly spec?: object } | undefined)?.spec : undefined;
}

export function expectedKind({ served, info }: Scope): GroupVersionKind {
  const { group, version, kind } = served.row;
  const sub = info.subresource === "" ? undefined : served.row.subresources.find(({ name }) => name === info.subresource);
  return sub?.kind ?? { group, version, kind };
}

/** Throws 415 at once, and what is wrong with the body when it is read. */
function readerOf(scope: Scope, body: RequestBody): () => ApiObject {
  if (body.type === "value") return () => fitting(scope, body.value).object;
  const { bytes, contentType } = body, expected = expectedKind(scope);
  const typed = builtInFacts.typeOf(expected) !== undefined;
  const encoding = negotiateInput(contentType, { custom: !typed, cbor: scope.request.cbor });
  return () => (typed ? readTyped : readUntyped)(scope, { bytes, encoding, expected });
}

interface Encoded { readonly bytes: Buffer; readonly encoding: Encoding; readonly expected: GroupVersionKind }

function readUntyped(scope: Scope, { bytes, encoding, expected }: Encoded): ApiObject {
  const { object: value, gvk, strict } = decodeUntypedBody({ bytes, encoding, expected, fieldValidation: fieldValidationOf(scope) });
  const { object, error, strict: unknown } = readValue(scope, value);
  if (error !== undefined) throw unfit({ ...gvk, wanted: expected.kind }, error);
  warn(scope, gvk, [...strict, ...unknown], expected);
  checkVersion(value, expected);
  return object;
}

function readTyped(scope: Scope, { bytes, encoding, expected }: Encoded): ApiObject {
  const isCustomScale = scope.served.custom !== undefined;
  const { object, warnings, emptied, respelled, sent } = explained(isCustomScale, () => decodeBody({ bytes, encoding, expected, fieldValidation: fieldValidationOf(scope), ...(expected.kind === "Eviction" ? { accepts: isEvictionVersion } : {}) }));
  scope.warnings.push(...warnings);
  if (emptied) scope.sentEmpty = emptied;
  scope.respelled = respelled;
  scope.sent = sent;
  return object as unknown as ApiObject;
}

/** Upstream fails to tell what is wrong with the Scale of a custom resource: it looks for its kind where only the definition's own are. */
function explained<T>(isCustomScale: boolean, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw isCustomScale && error instanceof StatusError && error.code === 400 ? badRequest(`no kind is registered for the type v1.Scale in scheme "pkg/apiserver/customresource_handler.go:781"`, error) : error;
  }
}

/** What clients of before policy/v1 send is the same by another name. Source: kubernetes v1.36 pkg/registry/core/pod/storage/eviction.go AcceptsGroupVersion */
function isEvictionVersion({ group, version }: GroupVersion): boolean { return group === "policy" && (version === "v1" || version === "v1beta1"); }

/** Throws 400. */
function fitting(scope: Scope, value: unknown): { readonly object: ApiObject; readonly strict: readonly string[] } {
  const { object, error, strict } = readValue(scope, value);
  const expected = expectedKind(scope);
  if (error !== undefined) throw unfit({ ...expected, wanted: expected.kind }, error);
  return { object, strict };
}

function unfit({ kind, version, wanted }: { readonly kind: string; readonly version: string; readonly wanted: string }, why: string): Error {
  return badRequest(`${kind} in version ${JSON.stringify(version)} cannot be handled as a ${wanted}: ${why}`);
}

function checkVersion(value: JsonObject, expected: GroupVersionKind): void {
  const given = String(value["apiVersion"] ?? "");
  const wanted = formatApiVersion(expected);
  if (given !== wanted) throw badRequest(`the API version in the data (${given}) does not match the expected API version (${wanted})`);
}

interface Reading {
  /** Canonical parts it may have as they are. */
  readonly known?: object;
  /** Of custom resources: nulls that the schema does not want stay. */
  readonly keepNulls?: boolean;
  /** Was never a text: what does not fit is told as the converter of maps tells it. */
  readonly isMap?: boolean;
}

/** `error`: why it is no object of this kind; `strict`: what of it is not known. */
function readValue(scope: Scope, value: unknown, { known, keepNulls = false, isMap = false }: Reading = {}): { readonly object: ApiObject; readonly error?: string | undefined; readonly strict: readonly string[] } {
  const gvk = expectedKind(scope);
  const type = builtInFacts.typeOf(gvk);
  if (!type) return readCustom(scope, value, keepNulls);
  const { object, clean, emptied, respelled } = canonical(type, withReset({ ...(value as object), apiVersion: formatApiVersion(gvk), kind: gvk.kind }), known);
  if (emptied) scope.sentEmpty = emptied;
  scope.respelled = respelled;
  scope.sent = value as object;
  if (clean && !(isMap && isOddlyNamed(value))) return { object: object as unknown as ApiObject, strict: [] };
  const wrapped = isMap && !clean ? wrapIntegers(type, value) : value;
  if (wrapped !== value) return readValue(scope, wrapped, { ...(known && { known }), isMap });
  return { object: object as unknown as ApiObject, ...(isMap ? diagnoseMap(type, value) : diagnose(type, jsonNodeOf(value))) };
}

/** Also what the converter takes and no object here has: bytes as a list of numbers. */
function diagnoseMap(type: StructType, value: unknown): Diagnosis {
  const found = diagnoseValue(type, value);
  return found.error === undefined ? { error: diagnose(type, jsonNodeOf(value)).error, strict: found.strict } : found;
}

/** Its kind is what was expected, whatever it says; a text it is all the same. */
function isOddlyNamed(value: unknown): boolean {
  const { apiVersion = "", kind = "" } = value as Partial<ApiObject>;
  return [apiVersion, kind].some((name) => typeof name !== "string" && name !== null);
}

function readCustom({ served }: Scope, value: unknown, keepNulls: boolean): { readonly object: ApiObject; readonly error?: string | undefined; readonly strict: readonly string[] } {
  const strict: string[] = [];
  const object = copyOf(value as object) as JsonObject;
  if (!served.custom) return { object: object as unknown as ApiObject, strict };
  try {
    return { object: served.custom.decode(object, { keepNulls, report: (path) => void strict.push(`unknown field ${JSON.stringify(path)}`) }), strict };
  } catch (error) {
    if (!(error instanceof MalformedError)) throw error;
    return { object: object as unknown as ApiObject, error: error.message, strict: [] };
  }
}

function finishObject({ served, info }: Scope, object: ApiObject, kept?: object): ApiObject {
  object.metadata ??= {} as ApiObject["metadata"];
  if (info.subresource !== "" && served.definition.subresources?.[info.subresource]?.type !== "part" && info.subresource !== "status") return object;
  const stored = served.toStorage(object);
  served.applyDefaults(stored, kept);
  return stored;
}

/** Has been checked with the other options of the write: write-options.ts. */
function fieldValidationOf({ request: { query } }: Scope): FieldValidation {
  return (query.get("fieldValidation") || "Warn") as FieldValidation;
}

function warn(scope: Scope, gvk: GroupVersionKind, strict: readonly string[], expected = gvk): void {
  if (strict.length > 0) scope.warnings.push(...enforceFieldValidation({ strict, gvk, expected, fieldValidation: fieldValidationOf(scope) }));
}
