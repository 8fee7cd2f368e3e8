/**
 * One object of the world, held once: frozen, with its JSON bytes beside it once somebody has asked for them.
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

  constructor(key: string, object: Readonly<ApiObject>, revision: Revision) {
    this.key = key;
    this.object = object;
    this.revision = revision;
  }

  /** The object as the API writes it, in the version it is stored in. */
  json(): Buffer {
    return (this.#json ??= Buffer.from(jsonText(this.object)));
  }
}

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
