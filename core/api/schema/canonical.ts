/**
 * Canonical objects: what Go's decoder, one round through storage, and Go's encoder would make of a value.
 *
 *   fields in the struct's order · map keys sorted · unknown fields gone · empty optional values gone · required ones there, zero if need be
 *   quantities, times and durations in their one spelling · empty lists are absent, or null where the field must be written (once they have been stored)
 *
 * So two objects mean the same exactly if their JSON is the same, and JSON.stringify of a canonical object is what the API server sends.
 * A value that does not fit (a wrong type, an unknown field) is dropped and `clean` is false: diagnose.ts then finds the words for it.
 */
import { formatDurationNs, parseDurationNs } from "../meta/duration.ts";
import { canonicalQuantity, isHeldAlike } from "../meta/quantity.ts";
import { canonicalMicroTime, canonicalTime } from "./canonical-time.ts";
import { setKey, type JsonObject, type JsonValue } from "../codec/json-document.ts";
import type { FieldInfo, ListType, MapType, Scalar, SpecialType, StructType, Type } from "./facts.ts";

/**
 * `emptied`: a list or a map was sent empty that is left out of the object, which of the object's own fields among them. It may say something to those who compare what was sent with what is stored.
 * `respelled`: what in the object, and in a list, was sent otherwise: with an empty list that is left out, an amount or a time in another spelling. Absent: nothing was.
 */
export interface Canonical { readonly object: JsonObject; readonly clean: boolean; readonly emptied?: readonly string[] | undefined; readonly respelled?: ReadonlySet<object> }

const INT32_MAX = 2 ** 31 - 1;

/**
 * What was sent: an empty list in a field that must be written is still one, so that it has an owner, as upstream's memory has it until it is stored.
 * A fresh object; arbitrary JSON inside it (RawExtension, FieldsV1, CRD defaults) is shared with `value`, and so is what `value` has as it is from `known`, which is canonical.
 */
export function canonical(type: StructType, value: unknown, known?: object): Canonical {
  const walk = new Walk("sent");
  const object = walk.struct(type, value, known);
  return { object, clean: walk.clean, emptied: walk.emptied ? ownEmptied(value, object) : undefined, ...(walk.respelled && { respelled: walk.respelled }) };
}

/**
 * What is stored. For objects we made ourselves: throws if they do not fit their type, because that is a bug of ours. What `object` has taken over as it is from `known`, which is
 * canonical (a status from the object that is replaced, or the containers of its spec), is not walked again. `forgot`: told if what was sent empty is stored as none.
 */
export function canonicalOwn<T extends object>(type: StructType, object: T, known?: Readonly<T>, forgot?: () => void): T {
  const walk = new Walk("stored");
  const result: Canonical = { object: walk.struct(type, object, known, true), clean: walk.clean };
  if (!result.clean) throw new Error(`not a valid ${type.goName}: ${JSON.stringify(object).slice(0, 500)}`);
  if (walk.forgot) forgot?.();
  return result.object as unknown as T;
}

function ownEmptied(value: unknown, object: JsonObject): string[] {
  return Object.entries(value as object).filter(([name, field]) => typeof field === "object" && field !== null && isEmptyObject(field as JsonValue) && object[name] === undefined).map(([name]) => name);
}

/** What was sent, as it is shown before it is stored: empty lists are empty. */
export function canonicalSent<T extends object>(type: StructType, object: T): T { return canonical(type, object).object as unknown as T; }

/** Built-in objects are stored as protobuf, which does not tell an empty list from none; the rest is stored as JSON. */
function forgetsEmpty(type: StructType): boolean { return type.name.startsWith("io.k8s.api."); }

/** An empty list that is not taken for one that was left out, and validation refuses: it is never stored. Source: pkg/apis/autoscaling/v2/defaults.go copyHPAScalingRules, pkg/apis/core/validation/validation.go validateFieldAllowList */
const TOLD_APART: ReadonlySet<string> = new Set([
  "io.k8s.api.autoscaling.v2.HPAScalingRules.policies",
  ...["v1", "v1beta2", "v1beta1"].flatMap((version) =>
    ["ResourceSliceSpec.sharedCounters", "ResourceSliceSpec.devices", "DeviceAttribute.ints", "DeviceAttribute.bools", "DeviceAttribute.strings", "DeviceAttribute.versions"].map((list) => `io.k8s.api.resource.${version}.${list}`)),
  "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps.dependencies",
  ...["ports", "resizePolicy", "restartPolicyRules"].map((list) => `io.k8s.api.core.v1.EphemeralContainer.${list}`),
]);

/** What plug-ins are shown so, who have the last word on it. Source: plugin/pkg/admission/runtimeclass/admission.go */
const SHOWN_WITHIN = "io.k8s.api.core.v1.Pod.spec";

/** Lists and maps of the same kind in a struct that others may have them in: which, by the struct's own place. */
const METADATA_OF_TEMPLATES: readonly string[] = ["ownerReferences", "finalizers", "managedFields"];
const TOLD_APART_WITHIN: Readonly<Record<string, readonly string[]>> = {
  "io.k8s.api.core.v1.EphemeralContainer.resources": ["limits", "requests", "claims"], "io.k8s.api.core.v1.PodSpec.resources": ["claims"], [SHOWN_WITHIN]: ["overhead"],
  "io.k8s.api.core.v1.PersistentVolumeClaimTemplate.metadata": METADATA_OF_TEMPLATES,
  ...Object.fromEntries(["v1", "v1beta2", "v1beta1"].map((version) => [`io.k8s.api.resource.${version}.ResourceClaimTemplateSpec.metadata`, METADATA_OF_TEMPLATES])),
};

/** What describes an object is nothing that it does. */
const OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
/** Lists that are filled in where they are empty. */
const DEFAULTED: ReadonlySet<string> = new Set(["io.k8s.api.networking.v1.NetworkPolicySpec.policyTypes"]);

/** Where the fields of a type stand, and which of them are written although they are absent. Objects have few of the fields that they could have. */
interface Layout {
  readonly places: ReadonlyMap<string, number>;
  readonly written: readonly number[];
  /** See TOLD_APART_WITHIN. Absent: there are none. */
  readonly toldApart?: ReadonlyMap<number, { readonly names: readonly string[]; readonly isShown: boolean }>;
}

class Layouts {
  readonly #known = new Map<StructType, Layout>();

  of(type: StructType): Layout {
    const known = this.#known.get(type);
    if (known) return known;
    const toldApart = type.fields.flatMap((field, place) => {
      const within = `${type.name}.${field.name}`, names = TOLD_APART_WITHIN[within];
      return names ? [[place, { names, isShown: within === SHOWN_WITHIN }] as const] : [];
    });
    const layout: Layout = {
      places: new Map(type.fields.map(({ name }, place) => [name, place])), written: type.fields.flatMap((field, place) => (isWrittenAbsent(field) ? [place] : [])), ...(toldApart.length > 0 && { toldApart: new Map(toldApart) }),
    };
    this.#known.set(type, layout);
    return layout;
  }
}

const layouts = new Layouts();

/** As Walk.#absent has it. */
function isWrittenAbsent({ omitZero, omitEmpty, pointer, type }: FieldInfo): boolean {
  if (omitZero) return false;
  if (pointer) return !omitEmpty;
  return !omitEmpty || type.kind === "struct" || (type.kind === "special" && type.special !== "fieldsV1" && type.special !== "any");
}

/** Those of `names` that `sent` has empty are so in `struct`, too, unless they go. Whether there are any. */
function keepEmpty(names: readonly string[], sent: unknown, struct: JsonValue | undefined, go: boolean): boolean {
  if (typeof sent !== "object" || sent === null || struct === undefined) return false;
  let found = false;
  for (const name of names) {
    const value = (sent as JsonObject)[name];
    if (typeof value !== "object" || value === null || !isEmptyObject(value)) continue;
    found = true;
    if (!go) (struct as JsonObject)[name] ??= value;
  }
  return found;
}

/** Nearly always they are in order already. */
function sortedKeys(source: object): readonly string[] {
  const keys = Object.keys(source);
  for (let i = 1; i < keys.length; i++) if (keys[i - 1]! > keys[i]!) return keys.sort();
  return keys;
}

function ascending(a: number, b: number): number { return a - b; }

class Walk {
  clean = true;
  /** Whether a list or a map was sent empty, and is stored as none. */
  forgot = false;
  emptied = false;
  respelled: Set<object> | undefined;
  /** Of the value that was read last. */
  #isRespelled = false;
  #lists = 0; // that the walk is in
  readonly #form: "sent" | "stored";

  constructor(form: "sent" | "stored") { this.#form = form; }

  /** What `value` has from `known` as it is stays so; `deep`: so does what its structs have. */
  struct(type: StructType, value: unknown, known?: unknown, deep = false): JsonObject {
    const source = this.#objectOf(value);
    const { places, written, toldApart } = layouts.of(type);
    const given: number[] = [];
    let last = -1;
    let ordered = true;
    for (const key in source) {
      const raw = source[key];
      if (raw === undefined) continue;
      const place = places.get(key);
      if (place === undefined) { this.clean = false; continue; }
      if (raw === null) continue;
      if (place < last) ordered = false;
      last = place;
      given.push(place);
    }
    if (!ordered) given.sort(ascending);
    const out: JsonObject = {};
    let next = 0; // of `written`
    for (const place of given) {
      for (; next < written.length && written[next]! < place; next++) this.#fill(out, type.fields[written[next]!]!);
      if (written[next] === place) next++;
      const field = type.fields[place]!;
      const raw = source[field.name];
      const before = typeof raw === "object" ? (known as JsonObject | undefined)?.[field.name] ?? undefined : undefined;
      const result = raw === before ? before as JsonValue : this.#present(type, field, raw, deep ? before : undefined);
      if (this.#isRespelled) this.#note(out);
      if (result !== undefined) out[field.name] = result;
      const within = toldApart?.get(place);
      if (within && keepEmpty(within.names, raw, result, within.isShown && this.#form === "stored") && within.isShown) this.forgot = true;
    }
    for (; next < written.length; next++) this.#fill(out, type.fields[written[next]!]!);
    return out;
  }

  #note(container: object): void {
    this.#isRespelled = false;
    if (this.#lists > 0) (this.respelled ??= new Set()).add(container);
  }

  #fill(out: JsonObject, field: FieldInfo): void {
    out[field.name] = this.#absent(field)!;
    if (field.type.kind === "special" && field.type.special === "quantity") this.#note(out); // no amount is not yet `0`
  }

  #objectOf(value: unknown): Readonly<Record<string, unknown>> {
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
    if (value !== null && value !== undefined) this.clean = false;
    return {};
  }

  /** What is written for a field that is not there, undefined for nothing. */
  #absent(field: FieldInfo): JsonValue | undefined {
    if (field.omitZero) return undefined;
    if (field.pointer) return field.omitEmpty ? undefined : null;
    const { type } = field;
    // omitempty does not reach structs, so those that are not pointers are always written
    if (type.kind === "struct") return this.struct(type, {});
    if (type.kind === "special") return type.special === "fieldsV1" || type.special === "any" ? (field.omitEmpty ? undefined : null) : zeroOf(type);
    return field.omitEmpty ? undefined : zeroOf(type);
  }

  #present(owner: StructType, field: FieldInfo, raw: unknown, known: unknown): JsonValue | undefined {
    const { type } = field;
    const value = this.value(type, raw, known);
    if (value === WRONG) { this.clean = false; return this.#absent(field); }
    if (field.pointer) return value;
    if (type.kind === "list" ? (value as JsonValue[]).length === 0 : type.kind === "map" && isEmptyObject(value)) {
      if (field.omitEmpty) {
        this.#isRespelled = true;
        if (TOLD_APART.has(`${owner.name}.${field.name}`)) return value;
        if (owner.name !== OBJECT_META && !DEFAULTED.has(`${owner.name}.${field.name}`)) this.emptied = true;
        return undefined;
      }
      if (this.#form !== "stored" || !forgetsEmpty(owner) || field.name === "items") return value;
      this.forgot = true;
      return null;
    }
    if (type.kind === "scalar" && field.omitEmpty && (value === "" || value === 0 || value === false)) return undefined;
    if (type.kind === "special" && field.omitZero && value === null) return undefined;
    return value;
  }

  value(type: Type, raw: unknown, known?: unknown): JsonValue {
    if (raw === null || raw === undefined) { // of a list or a map: a field that is null is one that is not there
      if (type.kind === "struct") return this.struct(type, {});
      return type.kind === "scalar" && type.scalar === "bytes" ? "" : zeroOf(type); // no bytes come back from the store as such
    }
    switch (type.kind) {
      case "scalar": return scalar(type.scalar, raw);
      case "struct": return typeof raw === "object" && !Array.isArray(raw) ? this.struct(type, raw, known, true) : WRONG;
      case "list": return this.#list(type, raw);
      case "map": return this.#map(type, raw);
      case "special": return this.#special(type, raw);
    }
  }

  #list({ items }: ListType, raw: unknown): JsonValue {
    if (!Array.isArray(raw)) return WRONG;
    const list: JsonValue[] = [];
    this.#lists++;
    for (const item of raw as unknown[]) {
      const value = this.value(items, item);
      if (this.#isRespelled) this.#note(list);
      if (value === WRONG) this.clean = false;
      else list.push(value);
    }
    this.#lists--;
    return list;
  }

  #map({ values }: MapType, raw: unknown): JsonValue {
    if (typeof raw !== "object" || Array.isArray(raw)) return WRONG;
    const source = raw as Record<string, unknown>;
    const map: JsonObject = {};
    for (const key of sortedKeys(source)) {
      if (source[key] === undefined) continue;
      const value = this.value(values, source[key]);
      if (this.#isRespelled) this.#note(map);
      if (value === WRONG) this.clean = false;
      else setKey(map, key, value);
    }
    return map;
  }

  #special({ special, schema }: SpecialType, raw: unknown): JsonValue {
    switch (special) {
      case "time":
        if (typeof raw !== "string") return WRONG;
        this.#isRespelled ||= raw.includes(".");
        return orWrong(canonicalTime(raw));
      case "microTime": return typeof raw === "string" ? orWrong(canonicalMicroTime(raw)) : WRONG;
      case "duration": return typeof raw === "string" ? attempt(() => formatDurationNs(parseDurationNs(raw))) : WRONG;
      case "quantity": return typeof raw === "string" || typeof raw === "number" || typeof raw === "bigint" ? this.#quantity(String(raw)) : WRONG;
      case "intOrString": return typeof raw === "string" ? raw : scalar("int32", raw);
      case "schemaOrBool": return typeof raw === "boolean" ? raw : typeof raw === "object" && !Array.isArray(raw) ? this.struct(schema!, raw) : WRONG;
      case "schemaOrArray":
        if (Array.isArray(raw)) return raw.length === 0 ? null : raw.map((item) => this.struct(schema!, item));
        return typeof raw === "object" ? this.struct(schema!, raw) : null;
      case "schemaOrStringArray":
        if (!Array.isArray(raw)) return typeof raw === "object" ? this.struct(schema!, raw) : null;
        return raw.length === 0 ? null : raw.every((item) => typeof item === "string") ? raw : WRONG;
      case "rawExtension": case "fieldsV1": case "json": case "any": return raw as JsonValue;
    }
  }

  #quantity(written: string): JsonValue {
    const text = attempt(() => canonicalQuantity(written));
    if (text !== written && text !== WRONG && !isHeldAlike(written, text as string)) this.#isRespelled = true;
    return text;
  }
}

function orWrong(time: string | null | undefined): JsonValue { return time === undefined ? WRONG : time; }

/** Marks a value that does not fit; never leaves this file. */
const WRONG = Symbol("wrong type") as unknown as JsonValue;

function attempt(parse: () => string): JsonValue {
  try { return parse(); }
  catch { return WRONG; } // diagnose.ts parses again, to report it
}

function scalar(kind: Scalar, raw: unknown): JsonValue {
  switch (kind) {
    case "string": return typeof raw === "string" ? raw : WRONG;
    case "bool": return typeof raw === "boolean" ? raw : WRONG;
    case "int32": return typeof raw === "number" && Number.isInteger(raw) && raw <= INT32_MAX && raw >= -INT32_MAX - 1 ? raw + 0 : WRONG;
    case "int64": return typeof raw === "bigint" || (typeof raw === "number" && Number.isSafeInteger(raw)) ? raw : WRONG;
    case "float64": return typeof raw === "number" || typeof raw === "bigint" ? Number(raw) : WRONG;
    case "bytes": return bytes(raw);
  }
}

function bytes(raw: unknown): JsonValue {
  if (Array.isArray(raw)) return raw.every((item) => item === null || (Number.isInteger(item) && item >= 0 && item < 256)) ? Buffer.from(raw as number[]).toString("base64") : WRONG;
  if (typeof raw !== "string") return WRONG;
  const text = /[\r\n]/.test(raw) ? raw.replace(/[\r\n]/g, "") : raw;
  return isBase64(text) ? Buffer.from(text, "base64").toString("base64") : WRONG;
}

/** Standard alphabet, padded: what Go's base64.StdEncoding reads. */
export function isBase64(text: string): boolean { return text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text); }

function zeroOf(type: Type): JsonValue {
  switch (type.kind) {
    case "scalar": return type.scalar === "string" ? "" : type.scalar === "bool" ? false : type.scalar === "bytes" ? null : 0;
    case "list": case "map": case "struct": return null;
    case "special":
      switch (type.special) {
        case "duration": return "0s";
        case "quantity": return "0";
        case "intOrString": return 0;
        case "schemaOrBool": return false;
        default: return null;
      }
  }
}

function isEmptyObject(value: JsonValue): boolean {
  for (const _key in value as JsonObject) return false;
  return true;
}
