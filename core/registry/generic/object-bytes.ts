/**
 * An object's JSON, in which the parts that it has in common with the version before are copied, not written again: a pod that is bound, reported on and deleted keeps its spec or its
 * status, and who owns what of it, which are most of its bytes.
 */
import { isEscaped, jsonText } from "../../api/codec/json.ts";
import { assemble, type Piece } from "../../api/codec/pieces.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";

export interface ObjectBytes {
  readonly bytes: Buffer;
  readonly parts: readonly PartBytes[];
  /** Where its metadata is. */
  readonly metadataStart: number;
  readonly metadataEnd: number;
}

/** Where the bytes of a part are. Parts are frozen: the same part has the same bytes. */
interface PartBytes { readonly part: object; readonly start: number; readonly end: number }

/** Shorter ones are written as fast as they are looked up. */
const PART_LENGTH_MIN = 128;
/** Parts are looked for one by one, and remembered as long as the object: who has more has those written again. */
const PARTS_MAX = 64;
/** How deep the members are that most versions leave as they are: metadata.managedFields[0].fieldsV1. */
const OPENED: readonly string[] = ["metadata", "managedFields"];
/** The JSON of parts that many objects have, which was written when they were looked for (shared-parts.ts). */
const texts = new WeakMap<object, string>();

/** `part` is frozen, and JSON.stringify writes it so. */
export function keepText(part: object, text: string): void {
  if (text.length >= PART_LENGTH_MIN && !isEscaped(text) && !texts.has(part)) texts.set(part, text);
}

/** Names and the like, which JSON writes as they are. */
const PLAIN = /^[\w.:-]*$/;

export function objectBytes(object: Readonly<ApiObject>, before?: ObjectBytes): ObjectBytes {
  const pieces: Piece[] = [], parts: PartBytes[] = [];
  let text = "", length = 0;
  let metadataStart = 0, metadataEnd = 0;

  function flush(): void {
    pieces.push(text);
    length += Buffer.byteLength(text);
    text = "";
  }

  function part(value: object): void {
    if (copied(value)) return;
    const written = texts.get(value) ?? jsonText(value);
    if (written.length < PART_LENGTH_MIN || parts.length >= PARTS_MAX) {
      text += written;
      return;
    }
    flush();
    pieces.push(written);
    const start = length;
    length += Buffer.byteLength(written);
    parts.push({ part: value, start, end: length });
  }

  /** With the parts that are in it, whether the version before has it, too. */
  function copied(value: object): boolean {
    const known = before?.parts.find((one) => one.part === value);
    if (!known) return false;
    flush();
    pieces.push({ bytes: before!.bytes, start: known.start, end: known.end });
    const by = length - known.start;
    for (const { part: within, start, end } of before!.parts) if (start >= known.start && end <= known.end && parts.length < PARTS_MAX) parts.push({ part: within, start: start + by, end: end + by });
    length += known.end - known.start;
    return true;
  }

  function metadata(of: object): void {
    metadataStart = length + Buffer.byteLength(text);
    members(of);
    metadataEnd = length + Buffer.byteLength(text);
  }

  function members(of: object): void {
    let separator = "{";
    for (const name in of) {
      const member = (of as Record<string, unknown>)[name];
      if (member === undefined) continue;
      text += `${separator}${scalar(name)}:`;
      separator = ",";
      if (typeof member !== "object" || member === null) text += scalar(member);
      else if (!OPENED.includes(name)) part(member);
      else if (Array.isArray(member)) list(member);
      else if (of === object && name === "metadata") metadata(member);
      else members(member);
    }
    text += separator === "{" ? "{}" : "}";
  }

  /** Who deletes or binds an object leaves it as it is. */
  function list(of: readonly unknown[]): void {
    if (copied(of)) return;
    const start = length + Buffer.byteLength(text);
    items(of);
    const end = length + Buffer.byteLength(text);
    if (end - start >= PART_LENGTH_MIN && parts.length < PARTS_MAX) parts.push({ part: of, start, end });
  }

  function items(of: readonly unknown[]): void {
    let separator = "[";
    for (const item of of) {
      text += separator;
      separator = ",";
      if (typeof item === "object" && item !== null && !Array.isArray(item)) members(item);
      else text += jsonText(item);
    }
    text += separator === "[" ? "[]" : "]";
  }

  members(object);
  flush();
  return { bytes: assemble(pieces, length), parts, metadataStart, metadataEnd };
}

function scalar(value: unknown): string { return typeof value === "string" && PLAIN.test(value) ? `"${value}"` : jsonText(value); }
