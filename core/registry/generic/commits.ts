/**
 * The way of one resource's objects into storage, and back out of the watch cache: a write resolves once it is durable and visible to reads.
 */
import type { GroupResource } from "../../api/meta/gvk.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { alreadyExists, conflict, internalError, serviceUnavailable, StatusError, statusError } from "../../api/meta/status-error.ts";
import { type Revision, type Store, StoreError } from "../../../storage/store.ts";
import { Cached, deepFreeze, storedOf } from "./cached.ts";
import type { OwnTexts } from "./resource.ts";
import { SharedParts } from "./shared-parts.ts";
import type { StoredForm, WriteOptions } from "./stored-resource.ts";
import { unreadable } from "./unreadable.ts";
import type { ResourceCache } from "./resource-cache.ts";
import type { WatchCache } from "./watch-cache.ts";

interface Deps {
  readonly store: Store;
  /** Of everything, and what of it is this resource's. */
  readonly all: WatchCache;
  readonly cache: ResourceCache;
  readonly form: StoredForm | undefined;
  readonly groupResource: GroupResource;
  readonly ownTexts?: OwnTexts | undefined;
}

type Recognized = ReturnType<SharedParts["recognize"]>;
const NEVER_MET: Recognized = { texts: { whole: undefined, outline: undefined }, spec: undefined };

interface Putting {
  readonly recognized?: Recognized;
  readonly ahead?: WriteOptions["ahead"];
  readonly span?: WriteOptions["span"];
}

export class Commits {
  readonly #deps: Deps;
  readonly #shared: SharedParts;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#shared = new SharedParts(deps.ownTexts);
  }

  /** As its resource shows it. */
  async shown(entry: Cached, signal: AbortSignal): Promise<Readonly<ApiObject>> {
    const { form } = this.#deps;
    if (!form) return entry.stored;
    await form.ready([entry.object], signal);
    return form.shown(entry.object);
  }

  /** Looks whether an object with this spec, or one of its outline, was stored before. `spec`: as it was, canonical; `texts`: what `put` wants to know of it. */
  recognize({ spec }: ApiObject & { readonly spec?: unknown }): Recognized { return this.#deps.form ? NEVER_MET : this.#shared.recognize(spec); }

  async stored(object: ApiObject, signal: AbortSignal): Promise<ApiObject> {
    return this.#deps.form ? this.#deps.form.stored(object, signal) : object;
  }

  /** `before`: what is replaced; undefined: nothing is there. Throws 409 AlreadyExists if there is; a StoreError "conflict" where another version is: then the caller prepares the write again. */
  async put(key: string, object: ApiObject, before: Cached | undefined, signal: AbortSignal, { recognized = NEVER_MET, ahead, span }: Putting = {}): Promise<Cached> {
    const { store, cache, form, groupResource } = this.#deps;
    try {
      span?.event("About to Encode");
      const value = storedOf(this.#shared.share(object, before?.object, recognized.spec), { byName: form !== undefined });
      span?.event("Encode succeeded");
      if (before) span?.event("Transaction prepared");
      const revision = await store.put(key, value, before?.revision ?? 0, signal, (row) => cache.expect(row, ahead));
      span?.event(before ? "Txn call completed" : "Txn call succeeded");
      await this.#seen(revision, signal);
      if (before) span?.event("Transaction committed");
      const spec = value["spec"];
      if (typeof spec === "object" && spec !== null) this.#shared.remember(recognized.texts, spec);
      const entry = cache.get(key);
      return entry?.revision === revision ? entry : cache.entryOf({ key, value, revision });
    } catch (error) {
      if (error instanceof StoreError && error.code !== "conflict") span?.event("Txn call failed", { err: error.message });
      if (error instanceof StoreError && error.code === "conflict") {
        if (!before) throw alreadyExists(groupResource, object.metadata.name);
        throw error;
      }
      throw asStatus(error);
    }
  }

  /** `named`: the client named the version it wants gone, so that losing to a newer one is its to know. `last`: what it is when it goes, where that is another than it was. */
  async remove(current: Cached, { named = false, last }: { readonly named?: boolean; readonly last?: ApiObject | undefined }, signal: AbortSignal): Promise<{ removed: Cached } | { removed?: undefined; newer: Cached | undefined }> {
    const { store, cache, form, groupResource } = this.#deps;
    const final = last && storedOf(last, { byName: form !== undefined });
    const stays = final && cache.ending(current.key, current.revision, final);
    try {
      const revision = await store.delete(current.key, current.revision, signal);
      await this.#seen(revision, signal);
      return { removed: cache.deleted(current.key, revision) ?? cache.entryOf({ key: current.key, value: final ?? storedOf(current.stored, { byName: form !== undefined }), revision }) };
    } catch (error) {
      stays?.();
      if (!(error instanceof StoreError) || error.code !== "conflict") throw asStatus(error);
      if (named) throw conflict(groupResource, current.object.metadata.name);
      return { newer: error.current && cache.entryOf(error.current) };
    }
  }

  /** What nobody can read goes as it is. False: it is another one by now. */
  async removeUnreadable(key: string, revision: number, signal: AbortSignal): Promise<boolean> {
    const { store } = this.#deps;
    try {
      await this.#seen(await store.delete(key, revision, signal), signal);
      return true;
    } catch (error) {
      if (error instanceof StoreError && error.code === "conflict") return false;
      throw asStatus(error);
    }
  }

  /** Waits until reads see what is written. Whoever does not wait for it has written it all the same: what belongs to it is not taken back. */
  async #seen(revision: Revision, signal: AbortSignal): Promise<void> {
    await this.#deps.all.reach(revision, signal).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
  }

  /** What `put` would come to. */
  dryRun(key: string, object: ApiObject, exists: boolean): Cached {
    if (exists) throw alreadyExists(this.#deps.groupResource, object.metadata.name);
    return new Cached(key, deepFreeze(this.#deps.cache.read(object)), 0);
  }
}

/** What a failing store means to a client. */
export function asStatus(error: unknown): unknown {
  if (!(error instanceof StoreError)) return error;
  if (error.code === "full") return fullStatus(error);
  if (error.code === "too-large") return statusError({ code: 500, reason: "", message: String(error.fields["reason"]), cause: error }); // in etcd's words, as upstream does
  if (error.code === "closed" || error.code === "unavailable") return serviceUnavailable("the store is not available");
  if (error.code === "key-away") return internalError(new Error(String(error.fields["reason"]), { cause: error }));
  if (error.code === "corrupt") return unreadable(error);
  return error;
}

/** A store may have a limit of its own, however much room there is on its disk: then in etcd's words, as upstream, and what to do. */
function fullStatus(error: StoreError): StatusError {
  const { reason, remedy } = error.fields;
  return String(reason).endsWith("database space exceeded") ? statusError({ code: 500, reason: "", message: `${String(reason)}: ${String(remedy)}`, cause: error })
    : statusError({ code: 507, reason: "", message: "the server's disk is full: free some space and try again", cause: error });
}

/** Whether the store refused what was too large for it. Source: kubernetes v1.36 apiserver/pkg/endpoints/handlers/rest.go isTooLargeError */
export function isRequestTooLarge(error: unknown): boolean { return error instanceof StatusError && error.cause instanceof StoreError && error.cause.code === "too-large"; }
