/**
 * One object of the world, held once: frozen, with its bytes (JSON, protobuf) beside it once somebody has asked for them.
 * Lists are concatenations of those bytes; watchers and in-process informers share the object.
 */
import { jsonText } from "../../api/codec/json.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import type { Revision, Row } from "../../../storage/store.ts";

export class Cached {
  readonly key: string;
  readonly object: Readonly<ApiObject>;
  readonly revision: Revision;
  #json: Buffer | undefined;
  #metadata: Buffer | undefined;
  #protobuf: Uint8Array | undefined;

  constructor(key: string, object: Readonly<ApiObject>, revision: Revision) {
    this.key = key;
    this.object = object;
    this.revision = revision;
  }

  /** The object as the API writes it, in the version it is stored in. */
  json(): Buffer {
    return (this.#json ??= Buffer.from(jsonText(this.object)));
  }

  /** Its metadata as the API writes it. */
  metadataJson(): Buffer {
    return (this.#metadata ??= this.#cutMetadata());
  }

  /** The message of the object, in the version it is stored in, which `encode` makes of it the first time. */
  protobuf(encode: (object: Readonly<ApiObject>) => Uint8Array): Uint8Array {
    return (this.#protobuf ??= encode(this.object));
  }

  /** A part of the object's own bytes where those are at hand: then it costs nothing to keep. */
  #cutMetadata(): Buffer {
    const bytes = Buffer.from(jsonText(this.object.metadata));
    if (!this.#json) return bytes;
    const start = this.#json.indexOf(METADATA) + METADATA.length;
    const part = this.#json.subarray(start, start + bytes.length);
    return part.equals(bytes) ? part : bytes;
  }
}

const METADATA = Buffer.from('"metadata":');

/** A row as the API shows it: the revision is its resourceVersion, which is not stored. */
export function cachedOf({ key, value, revision }: Row): Cached {
  const stored = value as unknown as ApiObject;
  return new Cached(key, deepFreeze({ ...stored, metadata: { ...stored.metadata, resourceVersion: String(revision) } }), revision);
}

/** What is stored of an object: all but its resourceVersion, whose place among the fields is kept. */
export function storedOf(object: Readonly<ApiObject>): Readonly<Record<string, unknown>> {
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
