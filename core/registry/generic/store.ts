/**
 * Create, read, update, delete and watch the objects of one resource: all that resources share.
 *
 *   verbs ──▶ ResourceStore ──▶ Commits ──▶ storage (compare-then-write) ──▶ watch ──▶ WatchCache ──▶ reads, watches
 *
 * create.ts and update.ts prepare what is written, deletion.ts decides what a delete comes to, refusals.ts has what a write is refused for.
 * Writes are compare-then-write loops: a write that lost a race is prepared again from the newer object, unless the client named the version
 * it wants to replace.
 *
 * Source: kubernetes v1.36 apiserver/pkg/registry/generic/registry/store.go, apiserver/pkg/registry/rest/delete.go
 */
import { keysInOrder } from "../../api/codec/json-document.ts";
import { integerAfter } from "../../api/meta/go-integer.ts";
import type { GroupResource } from "../../api/meta/gvk.ts";
import { checkNameParameter } from "../../api/meta/name-parameter.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { conflict, isAlreadyExists, notFound, resourceVersionTooOld } from "../../api/meta/status-error.ts";
import { breathers } from "../../lifecycle/breather.ts";
import type { Clock } from "../../lifecycle/clock.ts";
import type { Random } from "../../lifecycle/random.ts";
import { type Revision, type Row, type Store, StoreError } from "../../../storage/store.ts";
import type { Topic } from "./audience.ts";
import { Cached, deepFreeze } from "./cached.ts";
import { asStatus, Commits } from "./commits.ts";
import { create } from "./create.ts";
import { checkStoredPreconditions, type DeleteOptions, type DeletePlan, planDelete } from "./deletion.ts";
import { KeyTurns, type Turn } from "./key-turns.ts";
import { ON_NODE } from "./label-index.ts";
import { inOrder } from "./object-meta.ts";
import { refuseAny, refuseOthers, refuseUnread } from "./refusals.ts";
import type { Resource } from "./resource.ts";
import type { Selection } from "./selection.ts";
import type { DeletingOptions, StoredResource, UpdateOptions, WriteOptions, Written } from "./stored-resource.ts";
import type { Target } from "./target.ts";
import { unlessUnreadable, unreadable } from "./unreadable.ts";
import { updateOnce } from "./update.ts";
import type { ResourceCache } from "./resource-cache.ts";
import { ROOT, type WatchCache } from "./watch-cache.ts";

interface Deps {
  readonly store: Store;
  readonly cache: WatchCache;
  readonly clock: Clock;
  readonly random: Random;
}

interface Updating extends UpdateOptions {
  readonly createMissing?: boolean;
  /** Somebody else was first: waits until it is our turn. */
  lost(signal: AbortSignal): Promise<void>;
}

type Updated = (now: Readonly<ApiObject>, old: Readonly<ApiObject>) => void;

export class ResourceStore {
  readonly resource: StoredResource;
  readonly definition: Resource;
  readonly cache: ResourceCache;
  readonly #prefix: string;
  readonly #deps: Deps;
  readonly #groupResource: GroupResource;
  readonly #commits: Commits;
  readonly #target: Target;
  readonly #told: Updated[] = [];
  readonly #turns: KeyTurns;

  constructor(resource: StoredResource, definition: Resource, deps: Deps) {
    this.resource = resource;
    this.definition = definition;
    this.#prefix = `${ROOT}${resource.group || "core"}/${resource.plural}/`;
    this.#deps = deps;
    this.#groupResource = { group: resource.askedIn ?? resource.group, resource: resource.plural };
    this.cache = deps.cache.resource(this.#prefix);
    if (definition.onRead) this.cache.readAs(definition.onRead);
    const { store, cache: all, random, clock } = deps;
    this.#turns = new KeyTurns(clock);
    this.#commits = new Commits({ store, all, cache: this.cache, form: resource.form, groupResource: this.#groupResource, ownTexts: definition.ownTexts });
    this.#target = { resource, definition, groupResource: this.#groupResource, cache: this.cache, commits: this.#commits, random, breathers: breathers(clock), keyOf: (namespace, name) => this.keyOf(namespace, name) };
  }

  /** `told` of what this server updates, as it is now and as it was; not of what other servers do. */
  onUpdated(told: Updated): void { this.#told.push(told); }

  keyOf(namespace: string, name: string): string {
    return this.resource.namespaced ? `${this.#prefix}${namespace}/${name}` : this.#prefix + name;
  }

  /** As it is now. Throws as `known` does. */
  async get(namespace: string, name: string, signal: AbortSignal): Promise<Cached> {
    checkNameParameter(name);
    await this.#deps.cache.fresh(signal);
    return this.known(namespace, name);
  }

  /** As this server has heard of it, whether or not the store can be asked. Throws 404, and 400 for what cannot be a name. */
  known(namespace: string, name: string): Cached {
    checkNameParameter(name);
    return this.cache.get(this.keyOf(namespace, name)) ?? fail(notFound(this.#groupResource, name));
  }

  /** What is in the cache now, in key order. `looked` is told at how many objects. */
  select({ namespace, name, nodeName, label: wanted, isFound, matches }: Selection, looked?: (objects: number) => void): readonly Cached[] {
    const label = nodeName === undefined ? wanted : { key: ON_NODE, value: nodeName };
    if (label && matches && name === undefined) {
      const found = this.cache.labelled(this.prefixOf(namespace), label.key, label.value);
      looked?.(found.length);
      return isFound ? found : found.filter(({ object }) => matches(object));
    }
    const entry = name !== undefined && (namespace !== "" || !this.resource.namespaced) ? this.cache.get(this.keyOf(namespace, name)) : undefined;
    const all = name === undefined || (namespace === "" && this.resource.namespaced) ? this.cache.under(this.prefixOf(namespace)) : entry ? [entry] : [];
    looked?.(all.length);
    const named = name === undefined || entry ? all : all.filter(({ object }) => object.metadata.name === name);
    return matches ? named.filter(({ object }) => matches(object)) : named;
  }

  /** What a watcher of `selection` needs to hear of; undefined: everything. */
  topicOf({ namespace, name, nodeName }: Selection): Topic | undefined {
    if (name !== undefined && (namespace !== "" || !this.resource.namespaced)) return { of: "key", value: this.keyOf(namespace, name) };
    if (nodeName !== undefined) return { of: "node", value: nodeName };
    return namespace === "" || !this.resource.namespaced ? undefined : { of: "prefix", value: this.prefixOf(namespace) };
  }

  prefixOf(namespace: string): string {
    return namespace === "" || !this.resource.namespaced ? this.#prefix : `${this.#prefix}${namespace}/`;
  }

  /** The state at an older revision, read from the store: what a continue token points into. Throws 410 once that is forgotten. */
  async listAt(options: { readonly prefix: string; readonly after?: string | undefined; readonly limit: number; readonly revision: Revision }) {
    const { after, ...rest } = options;
    const listing = await this.#deps.store.list({ ...rest, ...(after !== undefined ? { after } : {}) }).catch((error: unknown) => {
      throw error instanceof StoreError && error.code === "compacted" ? resourceVersionTooOld(options.revision, this.#deps.store.revision) : asStatus(error);
    });
    return { entries: listing.rows.map((row) => this.#readEntry(row)), more: listing.more, remaining: listing.remaining, revision: listing.revision };
  }

  /** A row that has not changed since is in the cache, with its bytes. Throws 500 if it cannot be read. */
  #readEntry(row: Row): Cached {
    const entry = this.cache.unreadableRevision(row.key) === undefined ? this.cache.get(row.key) : undefined;
    if (entry?.revision === row.revision) return entry;
    const { value, error } = unlessUnreadable(() => this.cache.entryOf(row));
    if (error) throw unreadable(error);
    return value;
  }

  isUnreadable(namespace: string, name: string): boolean { return this.cache.unreadableRevision(this.keyOf(namespace, name)) !== undefined; }

  /** Deletes what nobody can read, without asking anybody. False: it can be read, or is not there. */
  async deleteUnreadable(namespace: string, name: string, { context, signal }: Pick<DeletingOptions, "context" | "signal">): Promise<boolean> {
    const key = this.keyOf(namespace, name);
    await this.#deps.cache.fresh(signal);
    const revision = this.cache.unreadableRevision(key);
    if (revision === undefined) return false;
    if (!context.dryRun && !(await this.#commits.removeUnreadable(key, revision, signal))) throw conflict(this.#groupResource, name, "it was written meanwhile");
    return true;
  }

  /** `object` is fresh and of the storage version; its metadata names it. Throws 409 AlreadyExists, 422, or what `validate` throws. */
  async create(object: ApiObject, options: WriteOptions): Promise<Cached> {
    return await create(this.#target, object, options);
  }

  /**
   * Replaces an object by what `transform` makes of it. `transform` gets the object as it is (frozen) and returns a fresh one of the storage version;
   * it runs again when the write lost a race. With `createMissing` it is called with undefined if there is none.
   */
  async update(
    namespace: string,
    name: string,
    transform: (old: Readonly<ApiObject> | undefined) => Promise<ApiObject>,
    options: UpdateOptions & { readonly createMissing?: boolean },
  ): Promise<Written> {
    const key = this.keyOf(namespace, name);
    await this.#deps.cache.fresh(options.signal);
    const turns = this.#turns;
    let turn: Turn | undefined;
    try {
      return await this.#update({ namespace, name, key }, transform, { ...options, async lost(signal) { if (turn?.isOver !== false) turn = await turns.take(key, signal); } });
    } finally {
      turn?.end();
    }
  }

  async #update({ namespace, name, key }: { readonly namespace: string; readonly name: string; readonly key: string }, transform: (old: Readonly<ApiObject> | undefined) => Promise<ApiObject>, options: Updating): Promise<Written> {
    let current = this.cache.get(key);
    options.span?.event("initial value restored");
    for (;;) {
      options.signal.throwIfAborted();
      if (!current) {
        if (!options.createMissing) throw notFound(this.#groupResource, name);
        refuseAny(this.#target, { namespace, name }, options.preconditions, options.context);
        try {
          const draft = await transform(undefined);
          refuseUnread(draft.metadata.resourceVersion);
          if (!options.context.dryRun) draft.metadata.resourceVersion = ""; // of a version of what is not there it is a new object
          return { entry: await this.create(draft, options), created: true };
        } catch (error) {
          if (!isAlreadyExists(error)) throw error;
          await this.#deps.cache.fresh(options.signal);
          current = this.cache.get(key);
          if (!current) throw error; // a webhook may say so as well
          continue;
        }
      }
      refuseOthers(this.#target, current, options.preconditions, options.context); // before anybody is asked what they think of the change
      const old = await this.#commits.shown(current, options.signal);
      const next = await transform(old);
      const outcome = await updateOnce(this.#target, current, next, options);
      if (outcome.entry) {
        if (this.#told.length > 0 && !options.context.dryRun) {
          const now = await this.#commits.shown(outcome.entry, options.signal);
          for (const told of this.#told) told(now, old);
        }
        return { entry: outcome.entry, created: false };
      }
      if (outcome.newer) await options.lost(options.signal);
      current = this.#newest(key, outcome.newer);
      options.span?.event("Retry value restored");
    }
  }

  /** What somebody else has written while we waited, too. */
  #newest(key: string, found: Cached | undefined): Cached | undefined {
    const now = this.cache.get(key);
    return now && found && now.revision > found.revision ? now : found;
  }

  /** Deletes, or marks for deletion when grace or finalizers hold the object. `done`: it is gone. */
  async delete(namespace: string, name: string, deleteOptions: DeleteOptions, { context, signal, ask }: DeletingOptions): Promise<{ readonly entry: Cached; readonly done: boolean }> {
    let current: Cached | undefined = await this.get(namespace, name, signal), written: Cached | undefined;
    for (;;) {
      signal.throwIfAborted();
      if (!current && written) return { entry: written, done: true }; // what we marked has gone by somebody else
      if (!current) throw notFound(this.#groupResource, name);
      checkStoredPreconditions(current.object, deleteOptions.preconditions, { resource: this.resource, marksItself: this.definition.markDeleting !== undefined });
      const plan = planDelete(current.stored, this.definition, deleteOptions, context.nowMs);
      const found = ask && (await this.#commits.shown(current, signal));
      if (found && (plan.type !== "keep" || plan.asked)) await ask(found, found);
      if (plan.type === "keep") return { entry: current, done: false };
      if (this.resource.form && !context.dryRun) await this.#commits.stored((found ?? (await this.#commits.shown(current, signal))) as ApiObject, signal); // what cannot be stored any more does not go either, as upstream writes it before it goes
      const marked = this.#marked(plan, current);
      if (plan.type === "remove") {
        if (context.dryRun) return this.#wouldRemove(current, marked);
        if (found && plan.steps === 2) await this.#askAgain(current, { marked, found, ask, signal });
        const outcome = await this.#commits.remove(current, { last: marked }, signal);
        if (outcome.removed) return this.#removed(current, outcome.removed, context);
        current = outcome.newer;
        continue;
      }
      if (context.dryRun) return plan.goes ? this.#wouldRemove(current, marked) : { entry: this.#commits.dryRun(current.key, marked!, false), done: false };
      const put = await this.#replaced(current, marked!, signal);
      if (put.entry && !plan.goes) return { entry: put.entry, done: false };
      if (!put.entry) {
        current = put.newer;
        continue;
      }
      written = put.entry;
      if (found) await ask(await this.#commits.shown(written, signal), found);
      const outcome = await this.#commits.remove(written, {}, signal);
      if (outcome.removed) return this.#removed(current, outcome.removed, context);
      current = outcome.newer;
    }
  }

  async #removed(current: Cached, entry: Cached, context: WriteOptions["context"]): Promise<{ readonly entry: Cached; readonly done: boolean }> {
    await this.definition.afterDelete?.(current.object, context);
    return { entry, done: true };
  }

  /** What a removal would answer. */
  #wouldRemove(current: Cached, last: ApiObject | undefined): { readonly entry: Cached; readonly done: boolean } {
    return { entry: last ? new Cached(current.key, deepFreeze(last), current.revision, current) : current, done: true };
  }

  /** `newer`: what somebody else has put there instead. */
  async #replaced(current: Cached, next: ApiObject, signal: AbortSignal): Promise<{ readonly entry: Cached } | { readonly entry?: undefined; readonly newer: Cached | undefined }> {
    try {
      return { entry: await this.#commits.put(current.key, next, current, signal) };
    } catch (error) {
      if (!(error instanceof StoreError) || error.code !== "conflict") throw error;
      return { newer: error.current && this.cache.entryOf(error.current) };
    }
  }

  /** Of the second step of a removal. Who is refused there has done the first: the object stays marked. */
  async #askAgain(current: Cached, { marked, found, ask, signal }: { readonly marked: ApiObject | undefined; readonly found: Readonly<ApiObject>; readonly ask: NonNullable<DeletingOptions["ask"]>; readonly signal: AbortSignal }): Promise<void> {
    try {
      await ask(marked ? deepFreeze(marked) : found, found);
    } catch (error) {
      if (marked) await this.#commits.put(current.key, marked, current, signal).catch(() => undefined); // somebody else was first
      throw error;
    }
  }

  /** What a deletion makes of an object: what is left of it, or what it is when it goes. */
  #marked(plan: DeletePlan, current: Cached): ApiObject | undefined {
    const made = plan.type === "mark" ? plan.next : plan.type === "remove" ? plan.last : undefined;
    const marked = made && (this.resource.form ? { ...made, metadata: keysInOrder(made.metadata) } : inOrder(made));
    const { markDeleting } = this.definition; // a definition that knows of grace looks after the generation itself
    if (marked?.metadata.generation && !markDeleting && !current.object.metadata.deletionTimestamp) marked.metadata.generation = integerAfter(marked.metadata.generation);
    return marked;
  }
}

function fail(error: Error): never {
  throw error;
}

