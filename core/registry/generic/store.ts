/**
 * Create, read, update, delete and watch the objects of one resource: all that resources share.
 *
 *   verbs ──▶ ResourceStore ──▶ storage (compare-then-write) ──▶ watch ──▶ WatchCache ──▶ reads, watches
 *
 * Writes are compare-then-write loops: a write that lost a race is prepared again from the newer object, unless the client named the version
 * it wants to replace. A write resolves once it is durable and visible to reads.
 *
 * Source: kubernetes v1.36 apiserver/pkg/registry/generic/registry/store.go, apiserver/pkg/registry/rest/{create,update,delete}.go
 */
import type { GroupResource } from "../../api/meta/gvk.ts";
import { type FieldError, invalid as invalidField } from "../../api/meta/field-error.ts";
import { dns1123Subdomain } from "../../api/meta/names.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { alreadyExists, conflict, generateNameConflict, invalid, isAlreadyExists, notFound, resourceVersionTooOld, serviceUnavailable, StatusError, statusError } from "../../api/meta/status-error.ts";
import { keepTimesIfUnchanged } from "../../api/patch/apply/timestamps.ts";
import type { Clock } from "../../lifecycle/clock.ts";
import { type Random, safeSuffix } from "../../lifecycle/random.ts";
import { type Revision, type Row, type Store, StoreError } from "../../../storage/store.ts";
import { Cached, cachedOf, deepFreeze, storedOf } from "./cached.ts";
import { checkDeletePreconditions, type DeleteOptions, finishedBy, planDelete } from "./deletion.ts";
import { fillForCreate, keepForUpdate, validateMeta, validateMetaUpdate } from "./object-meta.ts";
import type { Resource, Subresource, WriteContext } from "./resource.ts";
import type { Topic } from "./audience.ts";
import { ON_NODE } from "./label-index.ts";
import type { Selection } from "./selection.ts";
import { SharedParts } from "./shared-parts.ts";
import { ROOT, type ResourceCache, type WatchCache } from "./watch-cache.ts";

/** What the store must know of a resource's row. */
export interface StoredResource {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
  readonly hasStatus: boolean;
  /** The object in its canonical form: fields in order, empty ones gone. `known`: a canonical one, parts of which it may have. */
  canonical(object: ApiObject, known?: Readonly<ApiObject>): ApiObject;
  /** Where objects are not stored as this store shows them: other versions, older schemas. */
  readonly form?: StoredForm | undefined;
}

/** How custom resources pass between storage and a version they are served in. */
export interface StoredForm {
  /** Makes sure that `shown` has what it needs of others (a webhook). Throws what the client is to be told. */
  ready(stored: Iterable<Readonly<ApiObject>>, signal: AbortSignal): Promise<void>;
  shown(stored: Readonly<ApiObject>): Readonly<ApiObject>;
  stored(object: Readonly<ApiObject>, signal: AbortSignal): Promise<ApiObject>;
}

export interface WriteOptions {
  readonly context: WriteContext;
  readonly signal: AbortSignal;
  /** Validating admission: the last word before the write. Throws to refuse. */
  validate?(next: Readonly<ApiObject>, old: Readonly<ApiObject> | undefined): Promise<void>;
  warn?(text: string): void;
}

export interface UpdateOptions extends WriteOptions {
  /** Absent: the object itself. */
  readonly subresource?: Extract<Subresource, { type: "part" }> | undefined;
  readonly preconditions?: DeleteOptions["preconditions"];
  /** The client sent all of the object: where the resource asks for it, with the version it replaces. What was made from the object as it is needs none. */
  readonly isReplacement?: boolean;
}

export interface Written {
  readonly entry: Cached;
  /** For an update: whether the object was created by it. */
  readonly created: boolean;
}

/** Names tried before a generateName gives up. */
const GENERATE_NAME_TRIES = 8; // apiserver pkg/registry/generic/registry/store.go maxNameGenerationCreateAttempts
const GENERATED_NAME_BYTES_MAX = 63;
const GENERATED_SUFFIX_LENGTH = 5;

interface Deps {
  readonly store: Store;
  readonly cache: WatchCache;
  readonly clock: Clock;
  readonly random: Random;
}

export class ResourceStore {
  readonly resource: StoredResource;
  readonly definition: Resource;
  readonly cache: ResourceCache;
  readonly #prefix: string;
  readonly #shared = new SharedParts();
  readonly #deps: Deps;
  readonly #groupResource: GroupResource;

  constructor(resource: StoredResource, definition: Resource, deps: Deps) {
    this.resource = resource;
    this.definition = definition;
    this.#prefix = `${ROOT}${resource.group || "core"}/${resource.plural}/`;
    this.#deps = deps;
    this.#groupResource = { group: resource.group, resource: resource.plural };
    this.cache = deps.cache.resource(this.#prefix);
  }

  keyOf(namespace: string, name: string): string {
    return this.resource.namespaced ? `${this.#prefix}${namespace}/${name}` : this.#prefix + name;
  }

  /** Throws 404. */
  async get(namespace: string, name: string, signal: AbortSignal): Promise<Cached> {
    await this.#deps.cache.fresh(signal);
    return this.cache.get(this.keyOf(namespace, name)) ?? fail(notFound(this.#groupResource, name));
  }

  /** What is in the cache now, in key order. */
  select({ namespace, name, nodeName, label: wanted, matches }: Selection): readonly Cached[] {
    const label = nodeName === undefined ? wanted : { key: ON_NODE, value: nodeName };
    if (label && matches && name === undefined) return this.cache.labelled(this.prefixOf(namespace), label.key, label.value).filter(({ object }) => matches(object));
    const entry = name !== undefined && (namespace !== "" || !this.resource.namespaced) ? this.cache.get(this.keyOf(namespace, name)) : undefined;
    const all = name === undefined || (namespace === "" && this.resource.namespaced) ? this.cache.under(this.prefixOf(namespace)) : entry ? [entry] : [];
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
    return { entries: listing.rows.map((row) => this.#entryOf(row)), more: listing.more, remaining: listing.remaining, revision: listing.revision };
  }

  /** A row that has not changed since is in the cache, with its bytes. */
  #entryOf(row: Row): Cached {
    const entry = this.cache.get(row.key);
    return entry?.revision === row.revision ? entry : cachedOf(row);
  }

  /** `object` is fresh and of the storage version; its metadata names it. Throws 409 AlreadyExists, 422, or what `validate` throws. */
  async create(object: ApiObject, options: WriteOptions): Promise<Cached> {
    const { metadata } = object;
    const generateName = metadata.name ? undefined : metadata.generateName;
    for (let tries = 1; ; tries++) {
      if (generateName) metadata.name = this.#generatedName(generateName);
      try {
        return await this.#createOnce(object, options);
      } catch (error) {
        if (!generateName || !isAlreadyExists(error)) throw this.#namedTaken(error, metadata);
        if (tries >= GENERATE_NAME_TRIES) throw generateNameConflict(this.#groupResource, metadata.name);
      }
    }
  }

  /** Tells of a name that is only about to be free. */
  #namedTaken(error: unknown, { namespace = "", name }: ApiObject["metadata"]): unknown {
    if (!isAlreadyExists(error) || !(error instanceof StatusError)) return error;
    const taken = this.cache.get(this.keyOf(namespace, name));
    if (!taken?.object.metadata.deletionTimestamp) return error;
    return new StatusError({ ...error.status, message: `object is being deleted: ${error.message}` });
  }

  #generatedName(base: string): string {
    return base.slice(0, GENERATED_NAME_BYTES_MAX - GENERATED_SUFFIX_LENGTH) + safeSuffix(this.#deps.random, GENERATED_SUFFIX_LENGTH);
  }

  async #createOnce(draft: ApiObject, { context, signal, validate, warn }: WriteOptions): Promise<Cached> {
    const { definition } = this;
    const given = draft.metadata.resourceVersion;
    fillForCreate(draft, context, definition.generation !== false);
    if (this.resource.hasStatus && !definition.keepsStatusOnCreate) delete (draft as { status?: unknown }).status;
    definition.prepareForCreate?.(draft, context);
    const allocation = await definition.allocate?.(draft, undefined, context);
    try {
      const object = this.resource.canonical(draft);
      this.#check(object, [...this.#metaErrors(object), ...(definition.validate?.(object) ?? [])]);
      if (warn) for (const text of definition.warnings?.(object, undefined) ?? []) warn(text);
      await validate?.(deepFreeze(object), undefined);
      if (given && given !== "0" && !context.dryRun) throw statusError({ code: 500, reason: "", message: "resourceVersion should not be set on objects to be created" });
      const key = this.keyOf(object.metadata.namespace ?? "", object.metadata.name);
      const entry = context.dryRun ? this.#dryRun(key, object, this.cache.get(key) !== undefined) : await this.#put(key, await this.#stored(object, signal), 0, signal);
      if (context.dryRun) allocation?.rollback();
      else allocation?.commit();
      return entry;
    } catch (error) {
      allocation?.rollback();
      throw error;
    }
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
    let current = this.cache.get(key);
    for (;;) {
      options.signal.throwIfAborted();
      if (!current) {
        if (!options.createMissing) throw notFound(this.#groupResource, name);
        try {
          const draft = await transform(undefined);
          if (options.isReplacement) this.#replacesNothing(key, draft);
          return { entry: await this.create(draft, options), created: true };
        } catch (error) {
          if (!isAlreadyExists(error)) throw error;
          current = await this.get(namespace, name, options.signal);
          continue;
        }
      }
      const next = await transform(await this.#shown(current, options.signal));
      const outcome = await this.#updateOnce(current, next, options);
      if (outcome.entry) return { entry: outcome.entry, created: false };
      current = outcome.newer;
    }
  }

  async #updateOnce(current: Cached, draft: ApiObject, options: UpdateOptions): Promise<{ entry: Cached } | { entry?: undefined; newer: Cached | undefined }> {
    const { definition } = this;
    const { context, signal, subresource } = options;
    const old = await this.#shown(current, signal);
    this.#checkPreconditions(current, { uid: draft.metadata.uid || undefined, ...options.preconditions });
    const named = this.#checkVersion(draft, old, options.isReplacement ?? false);
    keepForUpdate(draft, old);
    const keepsStatus = this.resource.hasStatus && !subresource;
    if (keepsStatus) copyField(draft, old, "status");
    if (subresource) subresource.prepare(draft, old, context);
    else definition.prepareForUpdate?.(draft, old, context);
    if (subresource?.generation !== false && this.#bumpsGeneration(draft, old)) draft.metadata.generation = (old.metadata.generation ?? 0) + 1;
    const allocation = subresource ? undefined : await definition.allocate?.(draft, old, context);
    try {
      draft.metadata.resourceVersion = old.metadata.resourceVersion;
      const next = keepTimesIfUnchanged(old, this.resource.canonical(draft, old));
      const own = subresource ? subresource.validate?.(next, old) : [...(definition.validate?.(next, old) ?? []), ...(definition.validateUpdate?.(next, old) ?? [])];
      this.#check(next, [...this.#metaErrors(next), ...validateMetaUpdate(next, old), ...(own ?? [])]);
      if (options.warn && !subresource) for (const text of definition.warnings?.(next, old) ?? []) options.warn(text);
      await options.validate?.(deepFreeze(next), old);
      if (finishedBy(next, definition)) {
        if (!context.dryRun) {
          const outcome = await this.#remove(current, named, signal);
          if (!outcome.removed) return { newer: outcome.newer };
        }
        allocation?.commit();
        return { entry: new Cached(current.key, deepFreeze(next), current.revision) };
      }
      const stored = await this.#stored(next, signal);
      if (Bun.deepEquals(stored, current.object)) {
        allocation?.rollback();
        return { entry: current };
      }
      const entry = context.dryRun ? this.#dryRun(current.key, next, false) : await this.#put(current.key, stored, current.revision, signal);
      if (context.dryRun) allocation?.rollback();
      else allocation?.commit();
      return { entry };
    } catch (error) {
      allocation?.rollback();
      if (error instanceof StoreError && error.code === "conflict") {
        if (named) throw conflict(this.#groupResource, old.metadata.name);
        return { newer: error.current && cachedOf(error.current) };
      }
      throw error;
    }
  }

  /** Whether the client named the version it replaces; refuses it when that is not the current one. */
  #checkVersion(next: ApiObject, old: Readonly<ApiObject>, isReplacement: boolean): boolean {
    const { resourceVersion } = next.metadata;
    if (!resourceVersion || resourceVersion === "0") {
      if (isReplacement && this.definition.unconditionalUpdate === false)
        throw invalid({ group: this.resource.group, kind: this.resource.plural }, old.metadata.name, [invalidField("metadata.resourceVersion", 0, "must be specified for an update")]);
      return false;
    }
    if (resourceVersion !== old.metadata.resourceVersion) throw conflict(this.#groupResource, old.metadata.name);
    return true;
  }

  #bumpsGeneration(next: ApiObject, old: Readonly<ApiObject>): boolean {
    const { generation } = this.definition;
    if (generation === false) return false;
    if (generation) return generation(next, old);
    const names = new Set([...Object.keys(next), ...Object.keys(old)]);
    for (const name of ["metadata", "status", "apiVersion", "kind"]) names.delete(name);
    return [...names].some((name) => !Bun.deepEquals((next as unknown as Fields)[name], (old as unknown as Fields)[name]));
  }

  /** Deletes, or marks for deletion when grace or finalizers hold the object. `done`: it is gone. */
  async delete(namespace: string, name: string, deleteOptions: DeleteOptions, options: WriteOptions): Promise<{ readonly entry: Cached; readonly done: boolean }> {
    const { context, signal } = options;
    let current: Cached | undefined = await this.get(namespace, name, signal);
    for (;;) {
      signal.throwIfAborted();
      if (!current) throw notFound(this.#groupResource, name);
      checkDeletePreconditions({ group: this.resource.group, resource: this.resource.kind }, current.object, deleteOptions.preconditions);
      const shown = await this.#shown(current, signal);
      await options.validate?.(shown, shown);
      const plan = planDelete(current.object, this.definition, deleteOptions, context.nowMs);
      if (plan.type === "keep") return { entry: current, done: false };
      if (context.dryRun) return { entry: current, done: plan.type === "remove" };
      if (plan.type === "remove") {
        const outcome = await this.#remove(current, false, signal);
        if (outcome.removed) return { entry: outcome.removed, done: true };
        current = outcome.newer;
        continue;
      }
      if (this.definition.generation !== false && plan.next.metadata.generation !== undefined && !current.object.metadata.deletionTimestamp) plan.next.metadata.generation++;
      try {
        return { entry: await this.#put(current.key, plan.next, current.revision, signal), done: false };
      } catch (error) {
        if (!(error instanceof StoreError) || error.code !== "conflict") throw error;
        current = error.current && cachedOf(error.current);
      }
    }
  }

  async #remove(current: Cached, named: boolean, signal: AbortSignal): Promise<{ removed: Cached } | { removed?: undefined; newer: Cached | undefined }> {
    try {
      const revision = await this.#deps.store.delete(current.key, current.revision);
      await this.#deps.cache.reach(revision, signal);
      const object = { ...current.object, metadata: { ...current.object.metadata, resourceVersion: String(revision) } };
      return { removed: new Cached(current.key, deepFreeze(object), revision) };
    } catch (error) {
      if (!(error instanceof StoreError) || error.code !== "conflict") throw asStatus(error);
      if (named) throw conflict(this.#groupResource, current.object.metadata.name);
      return { newer: error.current && cachedOf(error.current) };
    }
  }

  async #put(key: string, object: ApiObject, expected: Revision, signal: AbortSignal): Promise<Cached> {
    try {
      const value = storedOf(this.#shared.share(object));
      const revision = await this.#deps.store.put(key, value, expected);
      await this.#deps.cache.reach(revision, signal);
      const entry = this.cache.get(key);
      return entry?.revision === revision ? entry : cachedOf({ key, value, revision });
    } catch (error) {
      if (error instanceof StoreError && error.code === "conflict") {
        if (expected === 0) throw alreadyExists(this.#groupResource, object.metadata.name);
        throw error; // the caller prepares the write again
      }
      throw asStatus(error);
    }
  }

  /** Throws 409 when the object is not the one that was meant. */
  /** A replacement of what is not there: of one object in particular it is refused, of a version of it it is a new object. */
  #replacesNothing(key: string, draft: ApiObject): void {
    const { uid, name } = draft.metadata;
    if (uid) this.#checkPreconditions({ key, object: { metadata: { name, uid: "", resourceVersion: "" } } }, { uid });
    draft.metadata.resourceVersion = "";
  }

  #checkPreconditions({ key, object: { metadata } }: { readonly key: string; readonly object: { readonly metadata: Pick<ApiObject["metadata"], "name" | "uid" | "resourceVersion"> } }, preconditions: DeleteOptions["preconditions"]): void {
    for (const [name, field] of [["UID", "uid"], ["ResourceVersion", "resourceVersion"]] as const) {
      const wanted = preconditions?.[field];
      if (wanted === undefined || wanted === metadata[field]) continue;
      const why = `Precondition failed: ${name} in precondition: ${wanted}, ${name} in object meta: ${metadata[field]}`;
      throw conflict(this.#groupResource, metadata.name, `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0, AdditionalErrorMsg: ${why}`);
    }
  }

  /** As this store shows it. */
  async #shown(entry: Cached, signal: AbortSignal): Promise<Readonly<ApiObject>> {
    const { form } = this.resource;
    if (!form) return entry.object;
    await form.ready([entry.object], signal);
    return form.shown(entry.object);
  }

  async #stored(object: ApiObject, signal: AbortSignal): Promise<ApiObject> {
    return this.resource.form ? this.resource.form.stored(object, signal) : object;
  }

  #dryRun(key: string, object: ApiObject, exists: boolean): Cached {
    if (exists) throw alreadyExists(this.#groupResource, object.metadata.name);
    return new Cached(key, deepFreeze(object), 0);
  }

  #metaErrors(object: Readonly<ApiObject>): Iterable<FieldError> {
    return validateMeta(object, this.resource.namespaced, this.definition.validateName ?? dns1123Subdomain, { anyFinalizer: this.definition.anyFinalizer ?? false });
  }

  #check(object: Readonly<ApiObject>, errors: readonly FieldError[]): void {
    if (errors.length > 0) throw invalid(this.#groupKind(), object.metadata.name ?? "" /* a body may have none */, errors);
  }

  #groupKind(): { group: string; kind: string } {
    return { group: this.resource.group, kind: this.resource.kind };
  }
}

type Fields = Record<string, unknown>;

function copyField(next: ApiObject, old: Readonly<ApiObject>, name: string): void {
  const value = (old as unknown as Fields)[name];
  if (value === undefined) delete (next as unknown as Fields)[name];
  else (next as unknown as Fields)[name] = value;
}

/** What a failing store means to a client. */
function asStatus(error: unknown): unknown {
  if (!(error instanceof StoreError)) return error;
  if (error.code === "full") return statusError({ code: 507, reason: "", message: "the server's disk is full: free some space and try again", cause: error });
  if (error.code === "too-large") return statusError({ code: 500, reason: "", message: String(error.fields["reason"]), cause: error }); // in etcd's words, as upstream does
  if (error.code === "closed" || error.code === "unavailable") return serviceUnavailable("the store is not available");
  return error;
}

function fail(error: Error): never {
  throw error;
}

