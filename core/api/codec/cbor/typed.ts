/**
 * Items of CBOR read as a type of the API: what the API server's library makes of them, and why it refuses them. It is stricter than JSON's: integers are no floats, quantities no numbers,
 * a key that is there twice ends it. Fields that are not known are passed over; of those the library tells of one.
 *
 * Source: kubernetes v1.36 apimachinery/pkg/runtime/serializer/cbor, apimachinery UnmarshalCBOR methods, apiextensions v1/marshal.go, github.com/fxamacker/cbor/v2 decode.go
 */
import { errorText } from "../../meta/error-text.ts";
import { goQuote } from "../../meta/go-quote.ts";
import { parseDurationNs } from "../../meta/duration.ts";
import { parseQuantity, withoutSpaces } from "../../meta/quantity.ts";
import { jsonKindOf } from "../../patch/json-value.ts";
import { base64Problem } from "../../schema/diagnose.ts";
import { Facts, type Scalar, type SpecialType, type StructType, type Type } from "../../schema/facts.ts";
import { goTypeName } from "../../schema/go-type-name.ts";
import { timeParseError } from "../../schema/time-parse-error.ts";
import { inKeyOrder, type JsonObject, type JsonValue, setKey } from "../json-document.ts";
import { CborBadText, CborBytes, CborError, CborFloat, type CborItem, CborMap, CborSimple, CborTag, majorTypeOf } from "./items.ts";
import { cborText, cborValue, CborTypeError, content, duplicate, integer, isList, type LaterEncoding, laterOf, mapOf, refused, refuseEndless, withoutTags } from "./values.ts";

/** `unknown`: what is told of a field that is not known, if there is one. */
export interface TypedCbor { readonly object: JsonObject; readonly unknown: readonly string[] }

/** Throws CborError. */
export function typedCbor(type: StructType, item: CborItem): TypedCbor {
  const reading = new Reading();
  const object = reading.value(type, item, undefined) ?? {};
  return { object: object as JsonObject, unknown: reading.unknown === undefined ? [] : [`cbor: found unknown field at map element index ${reading.unknown}`] };
}

const TYPE_META = new Facts(["P apimachinery/meta/v1\nT TypeMeta\n kind - s\n apiVersion - s"]).structNamed("io.k8s.apimachinery.meta.v1.TypeMeta")!;

/** What it says that it is. Throws CborError. */
export function cborTypeMeta(item: CborItem): { readonly apiVersion: string; readonly kind: string } {
  const { object } = typedCbor(TYPE_META, item);
  return { apiVersion: (object["apiVersion"] ?? "") as string, kind: (object["kind"] ?? "") as string };
}

class Reading {
  /** Where a field that is not known stands in its map: the first, but that of a struct itself goes before those below it. */
  unknown: number | undefined;

  value(type: Type, item: CborItem, later: LaterEncoding): JsonValue {
    if (type.kind === "special") return this.#special(type, item);
    const bare = content(item);
    if (bare === null) return null;
    if (bare instanceof CborTag) return this.value(type, bare.content, laterOf(bare, later));
    if (bare instanceof CborBadText || bare instanceof CborSimple) throw refused(bare);
    refuseEndless(bare, goTypeName(type));
    switch (type.kind) {
      case "struct": return this.#struct(type, bare, later);
      case "map":
        if (!(bare instanceof CborMap)) throw new CborTypeError(bare, goTypeName(type));
        return mapOf(bare, (value) => this.value(type.values, value, later), /^map\[(.*?)\]/.exec(goTypeName(type))?.[1] ?? "string", later);
      case "list":
        if (!isList(bare)) throw new CborTypeError(bare, goTypeName(type));
        return bare.map((one) => this.value(type.items, one, later));
      case "scalar": return scalar(type.scalar, goTypeName(type), bare, later);
    }
  }

  #struct(type: StructType, item: CborItem, later: LaterEncoding): JsonValue {
    if (!(item instanceof CborMap)) throw new CborTypeError(item, goTypeName(type), isList(item) ? "cannot decode CBOR array to struct without toarray option" : "");
    const object: JsonObject = {}, seen = new Set<string | number | bigint>();
    const before = this.unknown;
    let own: number | undefined, problem: unknown;
    this.unknown = undefined;
    for (let i = 0; i < item.flat.length; i += 2) {
      const key = this.#key(item.flat[i]!, (error) => void (problem ??= error));
      if (key === undefined) continue;
      if (seen.has(key)) throw duplicate(typeof key === "string" ? goQuote(key) : String(key), i / 2);
      seen.add(key);
      const field = typeof key === "string" ? type.field(key) : undefined;
      if (!field) { own ??= i / 2; continue; }
      try {
        setKey(object, field.name, this.value(field.type, item.flat[i + 1]!, later));
      } catch (error) {
        problem ??= error instanceof CborTypeError ? error.inField(`${goTypeName(type)}.${field.name}`) : error;
      }
    }
    if (problem !== undefined) throw problem;
    this.unknown = before ?? own ?? this.unknown;
    return object;
  }

  #key(item: CborItem, report: (problem: unknown) => void): string | number | bigint | undefined {
    try {
      return fieldName(item);
    } catch (error) {
      report(error);
      return undefined;
    }
  }

  /** They read what they are given by themselves: tags around it do not count. */
  #special({ special, schema }: SpecialType, item: CborItem): JsonValue {
    switch (special) {
      case "time": case "microTime": return checkedText(item, (text) => timeParseError(text, special === "microTime" ? "micro" : "plain"));
      case "quantity": return checkedText(item, (text) => problemOf(() => parseQuantity(withoutSpaces(text))));
      case "duration": return durationText(item);
      case "intOrString": return intOrString(item);
      case "rawExtension": return transcoded(item, "failed to transcode RawExtension to JSON: failed to parse RawExtension bytes as CBOR: ");
      case "fieldsV1": return withoutTags(item) === null || withoutTags(item) instanceof CborMap ? transcoded(item, "failed to transcode FieldsV1 to JSON: metav1.FieldsV1 cbor invalid: ") : noFields(item);
      case "json": case "any": return inKeyOrder(cborValue(item)) as JsonValue;
      case "schemaOrBool":
        if (item instanceof CborMap) return schemaOf(schema!, item);
        if (typeof item !== "boolean") throw new CborError("boolean or JSON schema expected");
        return item;
      case "schemaOrArray": return item instanceof CborMap ? schemaOf(schema!, item) : isList(item) ? item.map((one) => schemaOf(schema!, one)) : null;
      case "schemaOrStringArray": return item instanceof CborMap ? schemaOf(schema!, item) : isList(item) ? item.map((one) => cborText(one, "string") ?? "") : null;
    }
  }
}

/** A decoder within a decoder, which knows all fields. */
function schemaOf(schema: StructType, item: CborItem): JsonValue {
  const { object, unknown } = typedCbor(schema, item);
  if (unknown[0] !== undefined) throw new CborError(unknown[0]);
  return object;
}

function scalar(type: Scalar, goType: string, item: CborItem, later: LaterEncoding): JsonValue {
  switch (type) {
    case "string": return cborText(item, goType, later) ?? null;
    case "bytes": return bytes(item, goType, later);
    case "bool":
      if (typeof item === "boolean") return item;
      break;
    case "float64":
      if (item instanceof CborFloat) return item.value;
      if (typeof item === "number" || typeof item === "bigint") return Number(item);
      break;
    case "int32": case "int64":
      if (typeof item === "number" || typeof item === "bigint") return integer(item, type, goType, goType);
      break;
  }
  throw new CborTypeError(item, goType);
}

/** As base64. Bytes without a tag are base64 already. */
function bytes(item: CborItem, goType: string, later: LaterEncoding): JsonValue {
  if (isList(item)) return Buffer.from(item.map((one) => octet(one))).toString("base64");
  if (!(item instanceof CborBytes)) throw new CborTypeError(item, goType);
  if (later !== undefined) return Buffer.from(item.bytes).toString("base64");
  const text = Buffer.from(item.bytes).toString("latin1"), problem = base64Problem(text);
  if (problem !== undefined) throw new CborError(`cbor: failed to decode base64 from byte string: ${problem}`);
  return text;
}

function octet(item: CborItem): number {
  const bare = withoutTags(item);
  if (bare === null) return 0;
  if (typeof bare !== "number" || bare < 0) throw new CborTypeError(bare, "uint8");
  if (bare > 255) throw new CborTypeError(bare, "uint8", `${bare} overflows uint8`);
  return bare;
}

function fieldName(item: CborItem): string | number | bigint {
  if (typeof item === "string") return item;
  if (item instanceof CborBytes) return cborText(item, "string")!;
  if (item instanceof CborBadText) throw refused(item);
  if (typeof item === "number") return item;
  if (typeof item === "bigint" && item < -(2n ** 63n)) throw new CborTypeError(item, "int64", `-1-${-1n - item} overflows Go's int64`);
  if (typeof item === "bigint") return BigInt.asIntN(64, item);
  throw new CborTypeError(item, "string", `map key is of type ${majorTypeOf(item)} and cannot be used to match struct field name`);
}

function checkedText(item: CborItem, problem: (text: string) => string | undefined): JsonValue {
  const text = cborText(item, "string");
  const why = text === undefined ? undefined : problem(text);
  if (why !== undefined) throw new CborError(why);
  return text ?? null;
}

/** It is read by way of JSON. */
function durationText(item: CborItem): JsonValue {
  let value: JsonValue;
  try { value = cborValue(item); } catch (error) { throw new CborError(`cbor: cannot transcode from cbor to json: ${(error as Error).message}`, { cause: error }); }
  if (value === null) return null;
  if (typeof value !== "string") throw new CborError(`json: cannot unmarshal ${jsonKindOf(value)} into Go value of type string`);
  const why = problemOf(() => parseDurationNs(value));
  if (why !== undefined) throw new CborError(why);
  return value;
}

function intOrString(item: CborItem): JsonValue {
  const bare = withoutTags(item);
  if (typeof bare === "string" || bare instanceof CborBytes || bare === null) return cborText(item, "string") ?? null;
  if (typeof bare === "number" || typeof bare === "bigint") return integer(bare, "int32");
  if (bare instanceof CborBadText || bare instanceof CborSimple) throw refused(bare);
  throw new CborTypeError(bare, "int32");
}

function transcoded(item: CborItem, prefix: string): JsonValue {
  try { return inKeyOrder(cborValue(item)) as JsonValue; } catch (error) { throw new CborError(prefix + (error as Error).message, { cause: error }); }
}

function noFields(item: CborItem): never { throw new CborError(`failed to transcode FieldsV1 to JSON: metav1.FieldsV1 cbor invalid: ${new CborTypeError(withoutTags(item), "map[string]interface {}").message}`); }

function problemOf(parse: () => unknown): string | undefined {
  try { parse(); } catch (error) { return errorText(error); }
  return undefined;
}
