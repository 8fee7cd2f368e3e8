/**
 * A request's body → a canonical object, or the 400 the API server would answer with, word for word.
 *
 *   const { object, warnings } = decodeBody({ bytes, encoding, expected: { group: "apps", version: "v1", kind: "Deployment" }, fieldValidation: "Warn" });
 *
 * A body without kind or apiVersion is taken for what was expected. Unknown fields are dropped, duplicates merged; `fieldValidation` says whether
 * silently (Ignore), with a warning each (Warn), or not at all: Strict refuses the object. Defaults are not applied here.
 *
 * Source: kubernetes v1.36 apiserver/pkg/endpoints/handlers/{create,rest}.go, apimachinery/pkg/runtime/serializer/{json,protobuf,versioning}
 */
import { errorText } from "../meta/error-text.ts";
import { goQuote } from "../meta/go-quote.ts";
import { formatApiVersion, parseApiVersion, type GroupVersion, type GroupVersionKind } from "../meta/gvk.ts";
import { badRequest, type StatusError } from "../meta/status-error.ts";
import { canonical } from "../schema/canonical.ts";
import { diagnose, diagnoseUntyped } from "../schema/diagnose.ts";
import { builtInFacts, type Facts, type StructType } from "../schema/facts.ts";
import { withQuantities } from "../schema/quantities-written.ts";
import { mergeRepeated } from "../schema/merge-repeated.ts";
import { isRetiredKind } from "../schema/retired-kinds.ts";
import { readCbor } from "./cbor/items.ts";
import { cborNotation } from "./cbor/notation.ts";
import { cborTypeMeta, type TypedCbor, typedCbor } from "./cbor/typed.ts";
import { cborObject } from "./cbor/values.ts";
import { endlessNumber, jsonNodeOf, type JsonNode, type JsonObject, type JsonValue, parseJsonDocument } from "./json-document.ts";
import { decodeText, parseJson } from "./json.ts";
import type { Encoding } from "./negotiate.ts";
import { protobufCodec, unwrapEnvelope } from "./protobuf.ts";
import { readYaml as readYamlText } from "./yaml.ts";
import { yamlTextOf } from "./yaml-octets.ts";

export type FieldValidation = "Ignore" | "Warn" | "Strict";

export interface BodyRequest {
  /** What does not fit is told without a word of the kind. */
  readonly isOptions?: boolean;
  readonly bytes: Uint8Array;
  readonly encoding: Encoding;
  /** What the endpoint takes. */
  readonly expected: GroupVersionKind;
  readonly fieldValidation: FieldValidation;
  /** Group versions the endpoint takes besides `expected`'s: pods/eviction takes policy/v1beta1 too. */
  readonly accepts?: (groupVersion: GroupVersion) => boolean;
  readonly facts?: Facts;
}

/** Carries apiVersion and kind, whatever the body said. */
export interface DecodedBody {
  readonly object: JsonObject;
  readonly gvk: GroupVersionKind;
  readonly warnings: readonly string[];
  /** See Canonical. */
  readonly emptied?: readonly string[] | undefined;
  readonly respelled?: ReadonlySet<object>;
  /** As it was sent. */
  readonly sent: object;
}

/** Errors in a body without a type: the caller adds what its own schema does not know, then calls enforceFieldValidation. */
export interface DecodedUntyped { readonly object: JsonObject; readonly gvk: GroupVersionKind; readonly strict: readonly string[] }

/** Go names no better word for the place where kinds are registered. */
const SCHEME = "pkg/api/legacyscheme/scheme.go:30";
const SCHEMES: Readonly<Record<string, string>> = {
  "apiextensions.k8s.io": "pkg/apiserver/apiserver.go:55", "apiregistration.k8s.io": "pkg/apiserver/scheme/scheme.go:28",
};
const SCHEME_OPTIONS = "pkg/apis/meta/internalversion/scheme/register.go:27";
const META = { group: "meta.k8s.io", version: "v1" } as const;
/** Kinds that are registered beside the options of a delete. */
const META_KINDS: ReadonlySet<string> = new Set(["Status", "ListOptions", "GetOptions", "DeleteOptions", "CreateOptions", "UpdateOptions", "PatchOptions"]);
const SUMMARY_BYTES_MAX = 30;
const KIND_TARGET = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }";

/** Throws a StatusError, 400. */
export function decodeBody(request: BodyRequest): DecodedBody { return decodeRead(request, readBody(request)); }

function decodeRead(request: BodyRequest, body: ReadBody): DecodedBody {
  const { expected, bytes, facts = builtInFacts } = request;
  const { gvk } = body;
  const type = typeFor(gvk, expected, facts);
  const source = withReset({ ...body.object(type), apiVersion: formatApiVersion(gvk), kind: gvk.kind });
  const { object, clean, emptied, respelled } = canonical(type, source);
  let strict: readonly string[] = body.unknown?.(type) ?? body.duplicatesText;
  if (!body.isTyped && (!clean || body.document || body.hasFractions)) {
    const found = diagnose(type, body.document ?? body.careful?.() ?? jsonNodeOf(source));
    if (found.error !== undefined) throw request.isOptions ? badRequest(found.error) : unfit(gvk, expected, found.error);
    strict = [...strict, ...found.strict];
  }
  const warnings = enforceFieldValidation({ strict, gvk, expected, fieldValidation: request.fieldValidation });
  refuseConversion(gvk, expected);
  const accepts = request.accepts ?? ((groupVersion) => formatApiVersion(groupVersion) === formatApiVersion(expected));
  if (!accepts(gvk)) throw badRequest(`the API version in the data (${formatApiVersion(gvk)}) does not match the expected API version (${formatApiVersion(expected)})`);
  return { object, gvk, warnings, emptied, ...(respelled && { respelled }), sent: source };

  function typeFor(actual: GroupVersionKind, wanted: GroupVersionKind, all: Facts): StructType {
    if (!request.isOptions && isForeign(actual, wanted)) throw unfit(actual, wanted, notRegistered(actual, schemeOf(wanted)));
    const found = all.typeOf(actual) ?? (request.accepts?.(actual) && !request.isOptions && actual.kind === wanted.kind ? all.typeOf(wanted) : undefined);
    if (found) return found;
    if (isRetiredKind(actual)) {
      refuseConversion(actual, wanted);
      return all.typeOf(wanted)!;
    }
    if (bytes.length === 0) throw unrecognized(wanted, "empty data", bytes);
    throw unfit(actual, wanted, notRegistered(actual, schemeOf(wanted)));
  }
}

/** An empty list of managedFields asks for them to be reset, as one with an empty entry does; empty lists are not kept. Of a custom resource an empty list is as if it had not been sent. */
export function withReset<T extends object>(source: T): T {
  const { metadata } = (source ?? {}) as { readonly metadata?: { readonly managedFields?: unknown } | null };
  const given = metadata?.managedFields;
  return Array.isArray(given) && given.length === 0 ? { ...source, metadata: { ...metadata, managedFields: [{}] } } : source;
}

/** The options in the body of a request, which upstream reads without a word of what was expected. Throws a StatusError, 400. */
export function decodeOptions({ bytes, encoding, expected }: Pick<BodyRequest, "bytes" | "encoding" | "expected">): JsonObject {
  let body: ReadBody;
  try {
    body = readers[encoding](bytes, { ...expected, ...META }, expected); // what does not say of what version it is, is of this one
  } catch (error) {
    throw badRequest(errorText(error), error);
  }
  const { gvk } = body;
  if (gvk.kind !== expected.kind) throw badRequest(isOfMeta(gvk) ? `converting (v1.${gvk.kind}) to (v1.${expected.kind}): unknown conversion` : notRegistered(gvk, SCHEME_OPTIONS));
  return decodeRead({ bytes, encoding, expected, fieldValidation: "Ignore", accepts: () => true, isOptions: true }, body).object;
}

function isOfMeta({ group, version, kind }: GroupVersionKind): boolean { return version === META.version && (group === "" || group === META.group) && META_KINDS.has(kind); }

/** For custom resources: any object with a kind. Throws a StatusError, 400. */
export function decodeUntypedBody({ bytes, encoding, expected, fieldValidation }: Pick<BodyRequest, "bytes" | "encoding" | "expected"> & Partial<Pick<BodyRequest, "fieldValidation">>): DecodedUntyped {
  const body = readBody({ bytes, encoding, expected: { group: "", version: "", kind: "" } }, expected);
  if (!body.object(undefined)["kind"]) {
    const why = `Object 'Kind' is missing in '${body.shown?.() ?? decodeText(bytes)}'`;
    throw fieldValidation === "Ignore" && !body.shown ? unfit(expected, expected, why) : unrecognized(expected, why, bytes); // upstream has a decoder for each
  }
  if (body.shown && !body.object(undefined)["apiVersion"]) throw unfit(body.gvk, expected, `Object 'apiVersion' is missing in '${body.shown()}'`);
  const endless = body.hasFractions ? endlessNumber(body.careful!()) : undefined;
  if (endless !== undefined) throw unfit(body.gvk, expected, endless);
  const strict = [...body.duplicatesText, ...(body.document ? diagnoseUntyped(body.document) : [])];
  return { object: body.object(undefined), gvk: body.gvk, strict };
}

/** Returns the warnings to send, or throws the 400 that Strict demands. */
export function enforceFieldValidation({ strict, gvk, expected, fieldValidation }: {
  readonly strict: readonly string[]; readonly gvk: GroupVersionKind; readonly expected: GroupVersionKind; readonly fieldValidation: FieldValidation;
}): readonly string[] {
  if (strict.length === 0 || fieldValidation === "Ignore") return [];
  if (fieldValidation === "Warn") return strict.flatMap(strictWarnings);
  throw unfit(gvk, expected, `strict decoding error: ${strict.join(", ")}`);
}

/** What is said of YAML in one breath where it is refused, are warnings of their own. */
export function strictWarnings(text: string): string[] {
  return text.startsWith(YAML_ERRORS) ? text.slice(YAML_ERRORS.length).split("\n").map((line) => line.trim()) : [text];
}
const YAML_ERRORS = "yaml: unmarshal errors:\n";

interface ReadBody {
  readonly gvk: GroupVersionKind;
  readonly document: JsonNode | undefined;
  /** Read field by field as the type has them: what does not fit goes without a word. */
  readonly isTyped?: boolean;
  /** Numbers that may be whole and are not written so, which no integer is in Go. */
  readonly hasFractions?: boolean;
  /** With the digits of its numbers, for who tells of them. Absent: there was no text of JSON. */
  readonly careful?: () => JsonNode;
  /** Duplicates as the YAML reader words them. */
  readonly duplicatesText: readonly string[];
  /** Of CBOR: what is told of a field that is not known, and the body for people. */
  readonly unknown?: (type: StructType) => readonly string[];
  readonly shown?: () => string;
  object(type: StructType | undefined): JsonObject;
}

function readBody({ bytes, encoding, expected }: Pick<BodyRequest, "bytes" | "encoding" | "expected">, named = expected): ReadBody {
  try {
    return readers[encoding](bytes, expected, named);
  } catch (error) {
    throw unrecognized(named, errorText(error), bytes, error);
  }
}

const readers: Readonly<Record<Encoding, (bytes: Uint8Array, expected: GroupVersionKind, named: GroupVersionKind) => ReadBody>> = { json: readJson, yaml: readYaml, protobuf: readProtobuf, cbor: readCborBody };

function readProtobuf(bytes: Uint8Array, expected: GroupVersionKind): ReadBody {
  const { apiVersion, kind, raw } = unwrapEnvelope(bytes);
  const groupVersion = apiVersion === "" ? expected : parseApiVersion(apiVersion);
  const gvk = { group: groupVersion.group, version: groupVersion.version, kind: kind === "" ? expected.kind : kind };
  const object = (type: StructType | undefined): JsonObject => {
    if (!type) return {};
    try { return protobufCodec.readMessage(type, raw); }
    catch (error) { throw unfit(gvk, expected, errorText(error), error); }
  };
  return { gvk, document: undefined, isTyped: true, duplicatesText: [], object };
}

/** The item is read as the type once: what is told of it is asked for after it. `named`: what is told to be expected. */
function readCborBody(bytes: Uint8Array, expected: GroupVersionKind, named: GroupVersionKind): ReadBody {
  const { item, meta } = withPrefix("unable to determine group/version/kind: ", () => {
    const read = readCbor(bytes);
    return { item: read, meta: cborTypeMeta(read) };
  });
  const gvk = withDefaults(meta, expected);
  const fit = <T>(read: () => T): T => {
    try { return read(); } catch (error) { throw unfit(withDefaults(meta, named), named, errorText(error), error); }
  };
  let typed: TypedCbor | undefined;
  const typedAs = (type: StructType): TypedCbor => (typed ??= fit(() => typedCbor(type, item)));
  let untyped: JsonObject | undefined;
  return {
    gvk, document: undefined, isTyped: true, duplicatesText: [],
    object: (type) => (type ? typedAs(type).object : (untyped ??= fit(() => cborObject(item)))),
    unknown: (type) => typedAs(type).unknown,
    shown: () => cborNotation(item),
  };
}

function readJson(bytes: Uint8Array, expected: GroupVersionKind): ReadBody {
  const { meta, value, document, hasFractions } = withPrefix("couldn't get version/kind; json parse error: ", () => {
    const parsed = parseJson(decodeText(bytes));
    return { ...parsed, meta: typeMetaOf(parsed.value) };
  });
  const careful = (): JsonNode => parseJsonDocument(decodeText(bytes));
  return { gvk: withDefaults(meta, expected), document, hasFractions, careful, duplicatesText: [], object: (type) => objectOf(type && (document || hasFractions) ? withQuantities(type, document ? mergeRepeated(type, document) : careful()) : value) };
}

function readYaml(bytes: Uint8Array, expected: GroupVersionKind): ReadBody {
  const { value, duplicates, json } = readYamlText(yamlTextOf(bytes));
  const meta = withPrefix("couldn't get version/kind; json parse error: ", () => typeMetaOf(value));
  const gvk = withDefaults(meta, expected), careful = json === undefined ? undefined : () => parseJsonDocument(json);
  return { gvk, document: undefined, hasFractions: careful !== undefined, ...(careful && { careful }), duplicatesText: duplicates, object: (type) => objectOf(type && careful ? withQuantities(type, careful()) : value) };
}

function objectOf(value: JsonValue): JsonObject { return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {}; }

function withPrefix<T>(prefix: string, read: () => T): T {
  try { return read(); }
  catch (error) { throw new Error(prefix + errorText(error), { cause: error }); }
}

export interface TypeMeta { readonly apiVersion: string; readonly kind: string }

/** Throws what Go's decoder has to say to a body that is no object, or whose kind is no string. */
export function typeMetaOf(value: JsonValue): TypeMeta {
  if (value === null) return { apiVersion: "", kind: "" };
  if (typeof value !== "object" || Array.isArray(value)) throw new Error(`json: cannot unmarshal ${jsonNodeOf(value).kind} into Go value of type ${KIND_TARGET}`);
  const meta = { apiVersion: "", kind: "" };
  for (const key in value) { // here, and nowhere else, names count however they are spelled
    const name = key.length === 4 && key.toLowerCase() === "kind" ? "kind" : key.length === 10 && key.toLowerCase() === "apiversion" ? "apiVersion" : undefined;
    const found = name && value[key];
    if (name === undefined || found === undefined || found === null) continue;
    if (typeof found !== "string") throw new Error(`json: cannot unmarshal ${jsonNodeOf(found).kind} into Go struct field .${name} of type string`);
    meta[name] = found;
  }
  return meta;
}

function withDefaults({ apiVersion, kind }: TypeMeta, expected: GroupVersionKind): GroupVersionKind {
  const { group, version } = parseApiVersion(apiVersion);
  const unversioned = version === "" && (group === "" || group === expected.group);
  return { kind: kind === "" ? expected.kind : kind, group: unversioned ? expected.group : group, version: unversioned ? expected.version : version };
}

/** A kind we know, but not the one this endpoint stores. */
function refuseConversion(gvk: GroupVersionKind, expected: GroupVersionKind): void {
  if (gvk.kind === expected.kind) return; // of another version or group: `accepts` decides
  throw unfit(gvk, expected, noConversion(gvk, expected));
}

/** Why an object of one kind is none of another. */
export function noConversion(gvk: GroupVersionKind, expected: GroupVersionKind): string { return `converting (${gvk.version}.${gvk.kind}) to (${goPackage(expected.group)}.${expected.kind}): unknown conversion`; }
function notRegistered(gvk: GroupVersionKind, scheme: string): string { return `no kind ${goQuote(gvk.kind)} is registered for version ${goQuote(formatApiVersion(gvk))} in scheme ${goQuote(scheme)}`; }
function schemeOf({ group }: GroupVersionKind): string { return SCHEMES[group] ?? SCHEME; }
/** Upstream's servers of groups that have a scheme of their own know no kinds of others but those of the API itself. */
function isForeign({ group, version, kind }: GroupVersionKind, expected: GroupVersionKind): boolean {
  return Object.hasOwn(SCHEMES, expected.group) && group !== expected.group && !(group === "" && version === "v1" && META_KINDS.has(kind));
}

/** Why what a patch has made of an object is one of another kind; undefined: it is not. */
export function kindError(value: JsonValue, expected: GroupVersionKind, scheme = schemeOf(expected)): string | undefined {
  try {
    const gvk = withDefaults(withPrefix("couldn't get version/kind; json parse error: ", () => typeMetaOf(value)), expected);
    if (isRetiredKind(gvk) && gvk.kind === "Scale" && expected.kind === "Scale") return retiredScaleError(value);
    return isForeign(gvk, expected) || (!builtInFacts.typeOf(gvk) && !isRetiredKind(gvk)) ? notRegistered(gvk, scheme) : gvk.kind === expected.kind ? undefined : noConversion(gvk, expected);
  } catch (error) {
    return errorText(error);
  }
}

/** Its selector was a map. */
function retiredScaleError(value: JsonValue): string | undefined {
  const { status } = value as { readonly status?: { readonly selector?: unknown } | null };
  return typeof status?.selector === "string" ? "json: cannot unmarshal string into Go struct field ScaleStatus.status.selector of type map[string]string" : undefined;
}

/** The Go package of a group's internal types. */
export function goPackage(group: string): string { return group === "" || group === "events.k8s.io" ? "core" : group === "internal.apiserver.k8s.io" ? "apiserverinternal" : group.split(".")[0]!; }

function unfit(gvk: GroupVersionKind, expected: GroupVersionKind, why: string, cause?: unknown): StatusError {
  return badRequest(`${gvk.kind} in version ${goQuote(gvk.version)} cannot be handled as a ${expected.kind}: ${why}`, cause);
}

function unrecognized(expected: GroupVersionKind, why: string, bytes: Uint8Array, cause?: unknown): StatusError {
  return badRequest(`the object provided is unrecognized (must be of type ${expected.kind}): ${why} (${summarize(bytes)})`, cause);
}

function summarize(bytes: Uint8Array): string {
  if (bytes.length === 0) return "<empty>";
  const start = bytes.subarray(0, SUMMARY_BYTES_MAX);
  const text = bytes[0] === 0x7b ? decodeText(start) : Buffer.from(start).toString("hex");
  return bytes.length > SUMMARY_BYTES_MAX ? `${text} ...` : text;
}
