/**
 * Rows of one resource that cannot be read: what somebody else has written into the store, or sealed with a key that nobody has any more. They cost what stands in them, not the server:
 * whoever asks for such an object, or lists where it is, is told of its key, and nothing is taken for deleted. A DELETE with ignoreStoreReadErrorWithClusterBreakingPotential mends it; and so
 * does time, where only a key service was away (`mendingUnreadable`).
 *
 * Source: kubernetes v1.36 apiserver/pkg/storage/etcd3/store.go, apiserver/pkg/storage/errors/storage.go
 */
import { internalError, type StatusCause, type StatusError, statusError } from "../../api/meta/status-error.ts";
import type { Clock } from "../../lifecycle/clock.ts";
import type { Runnable } from "../../lifecycle/run-all.ts";
import type { Log } from "../../observe/log.ts";
import { isUnreadable, type Revision, type StoreError } from "../../../storage/store.ts";
import type { Cached } from "./cached.ts";
import { keepsFieldsOf } from "./switched-on.ts";

/** The feature gate with which what cannot be read is told, and deleted, as upstream does it. */
export const UNSAFE_DELETION = "AllowUnsafeMalformedObjectDeletion";

export interface UnreadableRow {
  readonly revision: Revision;
  readonly error: StoreError;
  /** As it could last be read. */
  readonly last: Cached | undefined;
}

export class Unreadable {
  readonly #rows = new Map<string, UnreadableRow>();

  get(key: string): UnreadableRow | undefined { return this.#rows.get(key); }
  keys(): Iterable<string> { return this.#rows.keys(); }
  set(key: string, row: UnreadableRow): void { this.#rows.set(key, row); }
  delete(key: string): void { this.#rows.delete(key); }

  /** Throws 500 if it is one. */
  refuse(key: string): void {
    const found = this.#rows.get(key);
    if (found) throw unreadable(found.error);
  }

  /** Throws 500 if one of them is there. */
  refuseUnder(prefix: string): void {
    const errors: StoreError[] = [];
    for (const [key, { error }] of this.#rows) if (key.startsWith(prefix)) errors.push(error);
    if (errors.length > 0) throw keepsFieldsOf(UNSAFE_DELETION) ? storageReadError(prefix, errors) : unreadable(errors[0]!);
  }
}

/** What somebody is told of it. */
export function unreadable(error: StoreError): StatusError {
  return internalError(new Error(keepsFieldsOf(UNSAFE_DELETION) ? corruptObject(error) : `unable to transform key ${JSON.stringify(error.fields["key"])}: ${String(error.fields["reason"])}`, { cause: error }));
}

function corruptObject({ fields: { key, reason } }: StoreError): string {
  return `StorageError: corrupt object, Code: 7, Key: ${String(key)}, ResourceVersion: 0, AdditionalErrorMsg: data from the storage is not transformable revision=0: ${String(reason)}`;
}

const TOLD_OF_MAX = 100;

/** Of a list: which rows it is. */
function storageReadError(prefix: string, errors: readonly StoreError[]): StatusError {
  const [, , group = "", kind = ""] = prefix.split("/"), resource = group === "core" ? kind : `${kind}.${group}`;
  const causes: StatusCause[] = errors.slice(0, TOLD_OF_MAX).map((error) => ({ reason: "UnexpectedServerResponse", message: corruptObject(error), field: String(error.fields["key"]) }));
  if (errors.length > TOLD_OF_MAX) causes.push({ reason: "FieldValueTooMany", message: "too many errors, the list is truncated" });
  const details = { name: "list", ...(group !== "core" && { group }), kind, causes };
  return statusError({ code: 500, reason: "StorageReadError", message: `failed to read one or more ${resource} from the storage`, details, cause: errors[0] });
}

/** The error of what was read, if a row is what cannot be; other errors are thrown. */
export function unlessUnreadable<T>(read: () => T): { readonly value: T; readonly error?: undefined } | { readonly value?: undefined; readonly error: StoreError } {
  try {
    return { value: read() };
  } catch (error) {
    if (!isUnreadable(error) || error.fields["key"] === undefined) throw error;
    return { error };
  }
}

/** As often as a key service that is not well is asked how it is. */
const LOOK_EVERY_MS = 10_000;

/** Looks now and then whether what could not be read can be. */
export function mendingUnreadable({ cache, clock, log }: { readonly cache: { mendUnreadable(signal: AbortSignal): Promise<readonly string[]> }; readonly clock: Pick<Clock, "every">; readonly log: Log }): Runnable {
  return {
    name: "what could not be read",
    async run(signal, ready) {
      ready();
      for await (const _ of clock.every(LOOK_EVERY_MS, signal)) {
        const keys = await cache.mendUnreadable(signal);
        if (keys.length > 0) log.info("objects that could not be read can be again", { keys });
      }
    },
  };
}
