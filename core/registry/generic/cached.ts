/**
 * One object of the world, held once: frozen, with its bytes (JSON, protobuf) beside it once somebody has asked for them, and as long as somebody does.
 * Lists are concatenations of those bytes; watchers and in-process informers share the object.
 */
import { keysInOrder } from "../../api/codec/json-document.ts";
import { jsonText } from "../../api/codec/json.ts";
import type { Part } from "../../api/codec/pieces.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import type { Revision, Row } from "../../../storage/store.ts";
import { objectBytes, type ObjectBytes } from "./object-bytes.ts";

/** A row of a Table as JSON, but for its age, which goes in at `ageAt`. */
export interface RowBytes { readonly bytes: Buffer; readonly ageAt: number; readonly createdMs: number }

export class Cached {
  readonly key: string;
  readonly object: Readonly<ApiObject>;
  readonly revision: Revision;
  /** What a write begins with: `object`, where readers are not shown less than is stored. */
  readonly stored: Readonly<ApiObject>;
  #json: ObjectBytes | undefined;
  #before: ObjectBytes | undefined; // of the version before, until #json is made
  #typeEnd = 1; // of #json: where its other members begin, if kind and apiVersion come first
  #metadata: Part | undefined; // of #json, if that was there
  #protobuf: Uint8Array | undefined;
  #metadataProtobuf: Uint8Array | undefined;
  #row: RowBytes | "changes" | undefined;
  #used = false; // since forgetUnused was last called

  /** `before`: what it replaces; bytes that both have in common are taken from there. */
  constructor(key: string, object: Readonly<ApiObject>, revision: Revision, before?: Cached, stored = object) {
    this.key = key;
    this.object = object;
    this.stored = stored;
    this.revision = revision;
    this.#before = before && (before.#json ?? before.#before);
  }

  /** The object as the API writes it, in the version it is stored in. */
  json(): Buffer {
    this.#used = true;
    return (this.#json ??= this.#encode()).bytes;
  }

  /** Its JSON as it stands in a list that says for all items what they are: without kind, apiVersion and the brace before them. */
  itemJson(): Part {
    const bytes = this.json();
    return { bytes, start: this.#typeEnd, end: bytes.length };
  }

  /** Its metadata as the API writes it; `alone`: where that is otherwise than within the object. */
  metadataJson(alone?: (object: Readonly<ApiObject>) => object): Part {
    this.#used = true;
    return (this.#metadata ??= alone ? wholeOf(alone(this.object)) : this.#cutMetadata());
  }

  /** The message of the object, in the version it is stored in, which `encode` makes of it the first time. */
  protobuf(encode: (object: Readonly<ApiObject>) => Uint8Array): Uint8Array {
    this.#used = true;
    return (this.#protobuf ??= encode(this.object));
  }

  /** The message of its metadata alone, which `make` makes of it the first time, or cuts out of the object's own where that is at hand. */
  metadataProtobuf(make: (metadata: Readonly<ApiObject["metadata"]>, own: Uint8Array | undefined) => Uint8Array): Uint8Array {
    this.#used = true;
    return (this.#metadataProtobuf ??= make(this.object.metadata, this.#protobuf));
  }

  /** What a Table says of it, as `make` has it the first time; undefined where that tells the time. */
  row(make: () => RowBytes | undefined): RowBytes | undefined {
    this.#used = true;
    const row = (this.#row ??= make() ?? "changes");
    return row === "changes" ? undefined : row;
  }

  /** Lets go of the bytes, if nobody has asked for any since this was last called. Returns how many that were. */
  forgetUnused(): number {
    const wasUsed = this.#used;
    this.#used = false;
    return wasUsed ? 0 : this.forget();
  }

  /** Of its JSON, where that is at hand. */
  get jsonLength(): number | undefined { return this.#json?.bytes.length; }

  get bytesHeld(): number {
    return ((this.#json ?? this.#before)?.bytes.length ?? 0) + (this.#protobuf?.length ?? 0) + (this.#metadataProtobuf?.length ?? 0) + (this.#metadata && this.#metadata.bytes !== this.#json?.bytes ? this.#metadata.end : 0) + (typeof this.#row === "object" ? this.#row.bytes.length : 0);
  }

  /** Lets go of the bytes: what is overwritten is asked for no more, but by who lags. Returns how many that were. */
  forget(): number {
    const bytes = this.bytesHeld;
    this.#json = this.#before = this.#metadata = this.#protobuf = this.#metadataProtobuf = this.#row = undefined;
    return bytes;
  }

  #encode(): ObjectBytes {
    const { kind, apiVersion } = this.object;
    const encoded = objectBytes(this.object, this.#before);
    this.#before = undefined;
    const start = `{"kind":"${kind}","apiVersion":"${apiVersion}",`;
    this.#typeEnd = encoded.bytes.toString("latin1", 0, start.length) === start ? start.length : 1;
    return encoded;
  }

  /** A part of the object's own bytes where those are at hand: then it costs nothing to keep. */
  #cutMetadata(): Part {
    return this.#json ? { bytes: this.#json.bytes, start: this.#json.metadataStart, end: this.#json.metadataEnd } : wholeOf(this.object.metadata);
  }
}

function wholeOf(value: object): Part {
  const bytes = Buffer.from(jsonText(value));
  return { bytes, start: 0, end: bytes.length };
}

/** What readers are shown of an object as it is stored. */
export type Reading = (stored: Readonly<ApiObject>) => Readonly<ApiObject>;

/** A row as the API shows it: the revision is its resourceVersion, which is not stored. `before`: what it replaces. */
export function cachedOf({ key, value, revision }: Row, { before, read }: { readonly before?: Cached | undefined; readonly read?: Reading | undefined } = {}): Cached {
  const row = value as unknown as ApiObject;
  const stored = deepFreeze({ ...row, metadata: { ...row.metadata, resourceVersion: String(revision) } });
  return new Cached(key, read ? deepFreeze(read(stored)) : stored, revision, before, stored);
}

/** What is stored of an object: all but its resourceVersion, whose place among the fields is kept. `byName`: fields are in the order of their names, as those of custom resources. */
export function storedOf(object: Readonly<ApiObject>, { byName = false }: { readonly byName?: boolean } = {}): Readonly<Record<string, unknown>> {
  if (byName) return { ...object, metadata: keysInOrder({ ...object.metadata, resourceVersion: "" }) };
  const { name, generateName, namespace, uid, resourceVersion: _, ...rest } = object.metadata;
  const metadata = { name, ...(generateName && { generateName }), ...(namespace && { namespace }), uid, resourceVersion: "", ...rest };
  return { ...object, metadata };
}

/** Freezes `value` and all the objects it holds, not arrays: see storage/mvcc/freeze-json.ts. An object that is frozen already is taken to be so to its leaves. */
export function deepFreeze<T>(value: T): T {
  if (Array.isArray(value)) for (const item of value) deepFreeze(item);
  if (typeof value !== "object" || value === null || Array.isArray(value) || Object.isFrozen(value) || ArrayBuffer.isView(value)) return value;
  Object.freeze(value);
  for (const name in value) deepFreeze((value as Record<string, unknown>)[name]);
  return value;
}
