/**
 * The protobuf messages behind types whose JSON is a plain value: a Time is {seconds, nanos}, a Quantity {string}, a RawExtension {raw}.
 */
import { canonicalQuantity } from "../meta/quantity.ts";
import { formatDurationNs, parseDurationNs } from "../meta/duration.ts";
import { parseTime } from "../meta/time.ts";
import { writableTime } from "../schema/canonical-time.ts";
import type { Special } from "../schema/facts.ts";
import type { JsonValue } from "./json-document.ts";
import { decodeText, jsonText, parseJson } from "./json.ts";
import { LENGTH_DELIMITED, ProtobufError, VARINT, type BackwardWriter, type WireReader } from "../../protobuf/wire.ts";

const MICROS_PER_S = 1_000_000;
/** 0001-01-01T00:00:00Z: no time. */
const ZERO_SECONDS = -62_135_596_800;
const INT_OR_STRING_IS_STRING = 1;
const UTF8 = new TextEncoder();

/** Special types whose message holds a schema are the caller's: their message nests another. */
export type PlainSpecial = Exclude<Special, "schemaOrBool" | "schemaOrArray" | "schemaOrStringArray">;

export function isPlainSpecial(special: Special): special is PlainSpecial { return !special.startsWith("schemaOr"); }

/** Writes the content of the message; null and undefined are Go's zero value. */
export function writeSpecial(writer: BackwardWriter, special: PlainSpecial, value: unknown): void {
  switch (special) {
    case "time": case "microTime":
      if (typeof value === "string") writeTime(writer, value, special === "microTime");
      break;
    case "duration": writer.int64(typeof value === "string" ? parseDurationNs(value) : 0); writer.tag(1, VARINT); break;
    case "quantity": writer.text(value === null || value === undefined ? "0" : canonicalQuantity(value as string)); writer.tag(1, LENGTH_DELIMITED); break;
    case "intOrString": {
      const isText = typeof value === "string";
      writer.text(isText ? value : ""); writer.tag(3, LENGTH_DELIMITED);
      writer.int64(typeof value === "number" ? value : 0); writer.tag(2, VARINT);
      writer.varint(isText ? INT_OR_STRING_IS_STRING : 0); writer.tag(1, VARINT);
      break;
    }
    case "rawExtension": case "fieldsV1": case "json": case "any":
      if (value === null || value === undefined) break;
      writer.bytes(value instanceof Uint8Array ? value : UTF8.encode(jsonText(value)));
      writer.tag(1, LENGTH_DELIMITED);
      break;
  }
}

/** `decodeRaw` reads a RawExtension that is protobuf itself. */
export function readSpecial(reader: WireReader, special: PlainSpecial, decodeRaw: (bytes: Uint8Array) => JsonValue): JsonValue {
  let first: number | bigint = 0, second: number | bigint = 0;
  let bytes: Uint8Array | undefined, text = "", empty = true;
  while (!reader.done) {
    empty = false;
    const tag = reader.varint();
    const field = Math.floor(tag / 8), wireType = tag & 7;
    if (wireType === VARINT && field === 1) first = reader.int64();
    else if (wireType === VARINT && field === 2) second = reader.int64();
    else if (wireType === LENGTH_DELIMITED && field === 1) bytes = reader.bytes();
    else if (wireType === LENGTH_DELIMITED && field === 3) text = reader.text();
    else reader.skip(wireType);
  }
  switch (special) {
    case "time": return empty ? null : formatTime(Number(first));
    case "microTime": return empty ? null : formatTime(Number(first), Math.trunc(Number(second) / 1000));
    case "duration": return formatDurationNs(BigInt(first));
    case "quantity": return bytes === undefined || bytes.length === 0 ? "0" : decodeText(bytes);
    case "intOrString": return Number(first) === INT_OR_STRING_IS_STRING ? text : Number(BigInt.asIntN(32, BigInt(second)));
    case "rawExtension": case "fieldsV1": case "json": case "any": return bytes === undefined || bytes.length === 0 ? null : decodeRaw(bytes);
  }
}

export function readRawJson(bytes: Uint8Array): JsonValue { return parseJson(decodeText(bytes)).value; }

function writeTime(writer: BackwardWriter, text: string, micro: boolean): void {
  const ms = parseTime(text);
  if (ms === undefined) throw new ProtobufError(`not a time: ${text}`);
  const micros = micro ? Number(/\.(\d{1,6})/.exec(text)?.[1]?.padEnd(6, "0") ?? 0) % MICROS_PER_S : 0;
  writer.int64(micros * 1000); writer.tag(2, VARINT);
  writer.int64(Math.floor(ms / 1000)); writer.tag(1, VARINT);
}

/** `micros` may be less than none, or more than a second, as in Go. */
function formatTime(seconds: number, micros?: number): string | null {
  const carry = Math.floor((micros ?? 0) / MICROS_PER_S), rest = (micros ?? 0) - carry * MICROS_PER_S;
  if (seconds + carry === ZERO_SECONDS && rest === 0) return null;
  const time = writableTime((seconds + carry) * 1000);
  return micros === undefined ? time : `${time.slice(0, -1)}.${String(rest).padStart(6, "0")}Z`;
}
