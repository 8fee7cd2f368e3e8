/**
 * Who owns which fields, as JSON and back. The same few sets are in thousands of objects, and come back in every replacement of one: a text that was written or read
 * lately is the very set it was then, which costs nothing to compare with and is held once.
 */
import type { JsonObject, JsonValue } from "./json-document.ts";
import { decodeText, jsonText, parseJson } from "./json.ts";

/** Sets known at a time, twice: when so many are new, those that have not been met since go. */
const SETS_MAX = 300;
/** Longer ones are somebody's own. */
const TEXT_MAX = 4_096;
const UTF8 = new TextEncoder();

export class FieldSets {
  readonly #bytes = new WeakMap<object, Uint8Array>();
  #lately = new Map<string, JsonValue>();
  #before = new Map<string, JsonValue>();

  /** Of a set that is frozen, to its leaves: the same bytes each time. Do not change them. */
  encode(set: object): Uint8Array {
    const known = this.#bytes.get(set);
    if (known) return known;
    const text = jsonText(set);
    const bytes = UTF8.encode(text);
    if (!Object.isFrozen(set)) return bytes;
    this.#bytes.set(set, bytes);
    this.#keep(text, set as JsonObject);
    return bytes;
  }

  /** Frozen. Throws JsonSyntaxError. */
  decode(bytes: Uint8Array): JsonValue {
    const text = decodeText(bytes);
    const known = this.#lately.get(text) ?? this.#before.get(text);
    const set = known ?? frozen(parseJson(text).value);
    this.#keep(text, set);
    return set;
  }

  #keep(text: string, set: JsonValue): void {
    if (text.length > TEXT_MAX || this.#lately.get(text) === set) return;
    if (this.#lately.size >= SETS_MAX) {
      this.#before = this.#lately;
      this.#lately = new Map();
    }
    this.#lately.set(text, set);
  }
}

function frozen(value: JsonValue): JsonValue {
  if (typeof value !== "object" || value === null) return value;
  for (const member of Object.values(value)) frozen(member);
  Object.freeze(value);
  return value;
}
