/**
 * What items of CBOR say, as JSON has it: byte strings are texts, or the base64, base64url or hex of bytes where a tag says so; times are told in RFC 3339; other tags are passed over.
 *
 * Source: kubernetes v1.36 apimachinery/pkg/runtime/serializer/cbor/internal/modes/decode.go, github.com/fxamacker/cbor/v2 decode.go
 */
import { goQuote } from "../../meta/go-quote.ts";
import { timeParseError } from "../../schema/time-parse-error.ts";
import { type JsonObject, type JsonValue, setKey } from "../json-document.ts";
import { decodeText } from "../json.ts";
import { CborBadText, CborBytes, CborError, CborFloat, type CborItem, CborMap, CborSimple, CborTag, majorTypeOf, unacceptable } from "./items.ts";

/** The item in tags that say what its bytes are to be written as. Undefined: none does. */
export type LaterEncoding = "base64url" | "base64" | "hex" | undefined;

const TIME = 0, EPOCH = 1, SELF_DESCRIBED = 55799;
const LATER = new Map<number | bigint, LaterEncoding>([[21, "base64url"], [22, "base64"], [23, "hex"]]);
const INT64_MAX = 2n ** 63n - 1n;
const YEAR_10000_SECONDS = 253_402_300_800, YEAR_0_SECONDS = -62_167_219_200;

/** An item that is not of the type it is read as. Of structs the outermost is told, as upstream's library names it. */
export class CborTypeError extends CborError {
  readonly #mismatch: readonly [item: CborItem, type: string, why: string];

  constructor(item: CborItem, type: string, why = "", field = "") {
    super(`cbor: cannot unmarshal ${majorTypeOf(item)} into ${field === "" ? "Go value" : `Go struct field ${field}`} of type ${type}${why === "" ? "" : ` (${why})`}`);
    this.#mismatch = [item, type, why];
  }

  inField(field: string): CborTypeError { return new CborTypeError(...this.#mismatch, field); }
}

/** Throws CborError. */
export function cborValue(item: CborItem, later?: LaterEncoding): JsonValue {
  const bare = content(item);
  switch (typeof bare) {
    case "string": case "boolean": case "number": return bare;
    case "bigint": return integer(bare, "int64");
    default:
      if (bare === null) return null;
      if (bare instanceof CborBytes) return bytesText(bare, later);
      if (bare instanceof CborFloat) return bare.value;
      if (bare instanceof CborMap) return mapOf(bare, (value) => cborValue(value, later), "string", later);
      if (bare instanceof CborTag) return bare.number === TIME || bare.number === EPOCH ? timeText(bare) : cborValue(bare.content, laterOf(bare, later));
      if (isList(bare)) return bare.map((one) => cborValue(one, later));
      throw refused(bare);
  }
}

/** Throws CborError for a body that is no map. */
export function cborObject(item: CborItem): JsonObject {
  const bare = withoutTags(item);
  if (bare === null) return {};
  if (!(bare instanceof CborMap)) throw new CborTypeError(bare, "map[string]interface {}");
  return cborValue(item) as JsonObject;
}

/** A text, whichever way it is written. Undefined: null. `type`: what is told it is no. */
export function cborText(item: CborItem, type: string, later?: LaterEncoding): string | undefined {
  const bare = content(item);
  if (typeof bare === "string") return bare;
  if (bare === null) return undefined;
  if (bare instanceof CborBytes) return bytesText(bare, later);
  if (bare instanceof CborTag) return cborText(bare.content, type, laterOf(bare, later));
  if (bare instanceof CborBadText || bare instanceof CborSimple) throw refused(bare);
  refuseEndless(bare, type);
  throw new CborTypeError(bare, type);
}

/** Upstream sees that such an integer is too large before it sees that none is wanted. Throws. */
export function refuseEndless(item: CborItem, type: string): void {
  if (typeof item === "bigint" && item < -INT64_MAX - 1n) throw new CborTypeError(item, type, `${item} overflows Go's int64`);
}

/** A map with texts for keys, each there once. That one is there twice is told before anything else that is wrong. */
export function mapOf(map: CborMap, read: (value: CborItem) => JsonValue, keyType: string, later: LaterEncoding): JsonObject {
  const object: JsonObject = {}, seen = new Set<string>();
  const { flat } = map;
  let key = "", problem: unknown;
  for (let i = 0; i < flat.length; i += 2) {
    let value: JsonValue;
    try {
      key = cborText(flat[i]!, keyType, later) ?? key; // a null leaves the key before it
      value = read(flat[i + 1]!);
    } catch (error) {
      problem ??= error;
      continue;
    }
    if (seen.has(key)) throw duplicate(goQuote(key), i / 2);
    seen.add(key);
    setKey(object, key, value);
  }
  if (problem !== undefined) throw problem;
  return object;
}

export function duplicate(key: string, index: number): CborError { return new CborError(`cbor: found duplicate map key ${key} at map element index ${index}`); }

/** Without the tag that says it is CBOR. Throws for a tag that has something in it that it must not have. */
export function content(item: CborItem): CborItem {
  let bare = item;
  while (bare instanceof CborTag && bare.number === SELF_DESCRIBED) bare = bare.content;
  for (let tag = bare; tag instanceof CborTag; tag = tag.content) checkTag(tag);
  return bare;
}

export function withoutTags(item: CborItem): CborItem {
  let bare = content(item);
  while (bare instanceof CborTag) bare = bare.content;
  return bare;
}

export function laterOf({ number }: CborTag, later: LaterEncoding): LaterEncoding { return LATER.get(number) ?? later; }

/** Throws for what upstream's integer of this type does not hold. */
export function integer(value: number | bigint, type: "int32" | "int64", shown: string = type, note = type === "int64" ? "Go's int64" : type): number | bigint {
  const max = type === "int32" ? 2 ** 31 - 1 : INT64_MAX, min = type === "int32" ? -(2 ** 31) : -INT64_MAX - 1n;
  if (value > max || value < min) throw new CborTypeError(value, shown, `${value} overflows ${note}`);
  return value;
}

/** Of what is never read: a text that is none, a simple value nobody knows. */
export function refused(item: CborBadText | CborSimple): CborError { return item instanceof CborSimple ? unacceptable("primitives", `simple value ${item.value} is not recognized`) : new CborError("cbor: invalid UTF-8 string"); }

export function isList(item: CborItem): item is readonly CborItem[] { return Array.isArray(item); }

function bytesText({ bytes }: CborBytes, later: LaterEncoding): string { return later === undefined ? decodeText(bytes) : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString(later); }

function checkTag({ number, content: inside }: CborTag): void {
  const type = majorTypeOf(inside);
  if (number === TIME && type !== "UTF-8 text string") throw new CborError(`cbor: tag number 0 must be followed by text string, got ${type}`);
  if (number === EPOCH && !type.endsWith(" integer") && !(inside instanceof CborFloat)) throw new CborError(`cbor: tag number 1 must be followed by integer or floating-point number, got ${type}`);
}

function timeText({ number, content: inside }: CborTag): string {
  if (number === TIME) {
    if (inside instanceof CborBadText) throw refused(inside);
    const text = inside as string, problem = timeParseError(text, "plain");
    if (problem !== undefined) throw new CborError(`cbor: cannot set ${text} for time.Time: ${problem}`);
    return text;
  }
  const seconds = inside instanceof CborFloat ? inside.value : Number(integer(inside as number | bigint, "int64", "time.Time"));
  if (seconds >= YEAR_10000_SECONDS || seconds < YEAR_0_SECONDS) throw new CborError("cbor: decoded time cannot be represented in RFC3339 format with sub-second precision: Time.MarshalText: year outside of range [0,9999]");
  const fraction = Math.trunc((seconds % 1) * 1e9), below = fraction < 0 ? 1 : 0;
  const text = new Date((Math.trunc(seconds) - below) * 1000).toISOString().slice(0, 19), nanoseconds = fraction + below * 1e9;
  return nanoseconds === 0 ? `${text}Z` : `${text}.${String(nanoseconds).padStart(9, "0").replace(/0+$/, "")}Z`;
}
