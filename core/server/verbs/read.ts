/** get, list and watch. Lists and watches are served from the one copy of the world; only continued lists go back to the store. */
import { isUtf8 } from "node:buffer";
import { posix } from "node:path";
import { jsonText, parseJson } from "../../api/codec/json.ts";
import type { JsonValue } from "../../api/codec/json-document.ts";
import { formatGvk, parseApiVersion } from "../../api/meta/gvk.ts";
import type { ApiObject, ListMeta } from "../../api/meta/object-meta.ts";
import { badRequest, CONTINUE_INCONSISTENT, isExpired, isTooLarge, LIST_EXPIRED, resourceExpired, resourceVersionTooLarge, StatusError, tooManyRequests } from "../../api/meta/status-error.ts";
import { jsonKindOf } from "../../api/patch/json-value.ts";
import { isTrue } from "../../api/request/query.ts";
import { canonicalOwn } from "../../api/schema/canonical.ts";
import { builtInFacts } from "../../api/schema/facts.ts";
import type { Clock } from "../../lifecycle/clock.ts";
import type { CacheEvent } from "../../registry/generic/audience.ts";
import { Cached } from "../../registry/generic/cached.ts";
import type { Subresource } from "../../registry/generic/resource.ts";
import type { Selection } from "../../registry/generic/selection.ts";
import { STATUS_PART } from "../../registry/generic/status-part.ts";
import { Changes } from "../../registry/generic/changes.ts";
import { type Answer, type BookmarkItem, type ErrorItem, type ListAnswer, stored, type WatchItem } from "../answer.ts";
import { NotServed } from "../not-served.ts";
import type { Scope } from "../scope.ts";
import { badVersion, integer, type ListOptions, listingOf, versionError } from "./options.ts";

/** How long a read waits for a revision that has not been reached yet. Source: apiserver storage/cacher blockTimeout */
const REACH_TIMEOUT_MS = 3_000;
/** Watches end after this long if nothing else is set, so that clients spread over servers; each adds up to as much again. Source: --min-request-timeout */
const WATCH_MS_MIN = 1_800_000;
/** Initial events sent at once: whoever reads slowly need not have all of them in our memory. */
const INITIAL_EVENTS_MAX = 250;
/** Between bookmarks of a quiet watch. Source: apiserver storage/cacher bookmarkFrequency */
const BOOKMARK_PERIOD_MS = 60_000;
/** The last one comes so long before the end of the watch: whoever goes on from there has missed least. Source: apiserver storage/cacher/cache_watcher.go nextBookmarkTime */
const BOOKMARK_BEFORE_END_MS = 2_000;
/** Those of many watches fall together: a processor that sleeps is woken once for all. */
const BOOKMARK_STEP_MS = 5_000;
/** How long a watch waits for a conversion that fails. Source: kubernetes v1.36 apiserver/pkg/storage/cacher/cacher.go MaxInternalErrorRetryDuration */
const CONVERTING_MS_MAX = 30_000;
/** How long after a conversion has failed it is asked for again. */
const CONVERT_AGAIN_MS = 1_000;

export async function getObject(scope: Scope): Promise<Answer> {
  const { info, served, request, signal } = scope;
  if (request.query.has("export") && isTrue(request.query.get("export"))) throw badRequest("the export parameter, deprecated since v1.14, is no longer supported");
  const resourceVersion = request.query.get("resourceVersion") ?? "";
  const wrong = versionError(resourceVersion);
  if (wrong) throw badVersion(wrong);
  scope.span?.event("About to Get from storage");
  await reach(scope, resourceVersion);
  const entry = served.store!.known(info.namespace, info.name);
  const view = subresourceOf(scope);
  await served.ready([entry.object], signal);
  if (view?.type === "view") return viewAnswer(scope, (view.show ?? view.read)(served.custom ? served.fromStorage(entry.object) : entry.object));
  return stored(200, served, entry);
}

/** A view can be printed as what it is (Scale). */
export function viewAnswer({ served }: Scope, object: ApiObject): Answer {
  return { type: "object", status: 200, object: served.custom ? written(object) : object, printedAs: { group: parseApiVersion(object.apiVersion).group, kind: object.kind }, printer: served.custom?.scalePrinter, viewOf: served.custom ? served : undefined };
}

/** As Go writes it: without what is zero. */
function written(view: ApiObject): ApiObject {
  const type = builtInFacts.typeOf({ ...parseApiVersion(view.apiVersion), kind: view.kind });
  return type ? canonicalOwn(type, view) : view;
}

/** Undefined for the resource itself. Throws 404 for a subresource that nobody answers for. */
export function subresourceOf({ info, served }: Scope): Subresource | undefined {
  if (info.subresource === "") return undefined;
  const found = served.definition.subresources?.[info.subresource] ?? (info.subresource === "status" ? STATUS_PART : undefined);
  if (!found) throw new NotServed();
  return found;
}

/** Waits until reads may be served that are "not older than" `resourceVersion`; "" is the newest, "0" is whatever there is. */
async function reach({ server: { cache, clock }, signal }: Scope, resourceVersion: string): Promise<void> {
  if (resourceVersion === "0") return;
  if (resourceVersion === "") return cache.fresh(signal);
  const wanted = Number(resourceVersion);
  if (cache.revision >= wanted) return;
  const late = new AbortController();
  const timer = clock.after(REACH_TIMEOUT_MS, () => late.abort(resourceVersionTooLarge(BigInt(resourceVersion), cache.revision)));
  try {
    await cache.reach(wanted, AbortSignal.any([signal, late.signal]));
  } finally {
    timer.cancel();
  }
}

/** `forDeletion`: of what is to go, which is not read from upstream's cache. */
export async function listObjects(scope: Scope, { forDeletion = false }: { readonly forDeletion?: boolean } = {}): Promise<ListAnswer> {
  const { served, server, signal } = scope;
  const { options, selection, isOne } = listingOf(scope);
  if (options.continue !== "") {
    const { revision, after } = decodeContinue(options.continue, served.store!.prefixOf(selection.namespace));
    if (options.resourceVersion !== "" && options.resourceVersion !== "0") throw badRequest("specifying resource version is not allowed when using continue");
    await server.cache.fresh(signal);
    return listFrom(scope, options.resourceVersion === "0" ? { ...options, limit: 0 } : options, selection, { revision: revision < 0 ? server.cache.revision : revision, after });
  }
  // pages of a list that names a version are of exactly that version, if nothing else is said; one object has no pages
  const isExact = options.versionMatch === "Exact" || (options.versionMatch === "" && options.limit > 0 && !isOne && Number(options.resourceVersion) > 0);
  if (isExact) await reach(scope, options.resourceVersion); // said as it was asked: a number here is not as large as one there may be
  if (isExact) return listFrom(scope, options, selection, { revision: Number(options.resourceVersion), after: undefined });
  const limit = options.resourceVersion === "0" ? 0 : options.limit; // whoever takes what there is gets all of it
  await reachToList(scope, options.resourceVersion);
  signal.throwIfAborted();
  const isCached = selection.matches !== undefined || selection.name !== undefined || (!forDeletion && limit === 0); // pages of all there is are not
  if (isCached) await initialized(scope);
  let looked = 0;
  const { revision, found } = await selectedNow(scope, selection, { isCached, looked: (objects) => (looked = objects) });
  const entries = limit > 0 ? found.slice(0, limit) : found;
  served.store!.cache.counts.list(selection.nodeName === undefined ? "" : "f:spec.nodeName", looked, entries.length);
  const last = found.length > entries.length ? entries.at(-1) : undefined;
  const next: ListMeta = last ? { continue: encodeContinue(revision, last.key, served.store!.prefixOf(selection.namespace)), ...remaining(selection, found.length - entries.length) } : {};
  await converted(scope, entries, isCached);
  return { type: "list", served, entries, metadata: { resourceVersion: String(revision), ...next } };
}

/** `reach`, with how long it took. */
async function reachToList(scope: Scope, resourceVersion: string): Promise<void> {
  const { served: { store }, server: { clock } } = scope, { counts } = store!.cache;
  const startMs = clock.uptimeMs();
  try {
    await reach(scope, resourceVersion);
    if (resourceVersion === "") counts.consistentReads.served++;
  } catch (error) {
    if (resourceVersion === "") counts.consistentReads.failed++;
    throw error;
  } finally {
    if (resourceVersion !== "0") counts.waited(clock.uptimeMs() - startMs, { group: store!.resource.group, resource: store!.resource.plural });
  }
}

/** What is selected, and the revision it is of: what happens while it is converted comes after it. Throws as `converted` does. */
async function selectedNow(scope: Scope, selection: Selection, { isCached = true, looked }: { readonly isCached?: boolean; readonly looked?: (objects: number) => void } = {}): Promise<{ readonly revision: number; readonly found: readonly Cached[] }> {
  const { served, server: { cache: { revision } } } = scope, store = served.store!, { matches } = selection;
  if (!served.custom || !matches) return { revision, found: store.select(selection, looked) };
  const all = store.cache.under(store.prefixOf(selection.namespace)), named = store.select({ ...selection, matches: undefined }, looked);
  await readyToSelect(scope, selection, () => all, isCached);
  return { revision, found: named.filter(({ object }) => matches(object)) };
}

/** What is selected by fields is selected by those of the version that is asked for. */
function readyToSelect(scope: Scope, { matches }: Selection, entries: () => Iterable<Cached>, isCached = true): Promise<void> | undefined {
  return scope.served.custom && matches ? converted(scope, entries(), isCached) : undefined;
}

/** Upstream's cache has nothing, either, as long as anything of the resource is stored in a version that is gone. Throws 429. */
async function initialized(scope: Scope): Promise<void> {
  const { served: { custom, store } } = scope;
  const unknown = custom && store!.cache.under(store!.prefixOf("")).find(({ object }) => !custom.knows(object));
  if (unknown) await converted(scope, [unknown], true);
}

/** Upstream answers lists and watches from a cache of the version, which has nothing as long as something cannot be converted: the client is to try again. Throws 429, and what went wrong where the list is read from the store. */
async function converted({ served, server: { clock }, signal }: Scope, entries: Iterable<Cached>, isCached: boolean): Promise<void> {
  const { custom } = served;
  try {
    await served.ready(objectsOf(entries), signal);
  } catch (error) {
    if (!isCached || !custom || !(error instanceof StatusError)) throw error;
    const nowMs = clock.uptimeMs();
    custom.failingSinceMs ??= nowMs;
    throw tooManyRequests(`storage is (re)initializing: failed to list ${formatGvk(served.row)}: ${error.message}`, retryAfter(nowMs - custom.failingSinceMs));
  }
  if (isCached && custom) custom.failingSinceMs = undefined;
}

/** Seconds, the more the longer it has been so. Source: kubernetes v1.36 apiserver/pkg/storage/cacher/util.go calculateRetryAfterForUnreadyCache */
function retryAfter(failingMs: number): number { return Math.floor(Math.min(30, Math.max(1, Math.exp((0.06 * failingMs) / 1000)))); }

function* objectsOf(entries: Iterable<Cached>): Iterable<Readonly<ApiObject>> {
  for (const { object } of entries) yield object;
}

/** Only told for lists without selectors, which can be counted without reading on. */
function remaining({ matches, name }: Selection, left: number): ListMeta { return matches || name !== undefined ? {} : { remainingItemCount: left }; }

/** A snapshot at a revision, page by page, from the store. */
async function listFrom(scope: Scope, options: ListOptions, selection: Selection, from: { revision: number; after: string | undefined }): Promise<ListAnswer> {
  const { served, signal } = scope;
  const store = served.store!;
  const prefix = store.prefixOf(selection.namespace);
  await reach(scope, String(from.revision)); // another server may be ahead of this one
  const entries: Cached[] = [];
  let after = from.after, fetched = 0;
  for (;;) {
    const wanted = options.limit > 0 ? options.limit - entries.length : 0;
    const page = await store.listAt({ prefix, after, limit: wanted, revision: from.revision }).catch((error: unknown) => {
      throw expired(error, options, prefix);
    });
    fetched += page.entries.length;
    await readyToSelect(scope, selection, () => page.entries, false);
    for (const entry of page.entries)
      if ((selection.name === undefined || entry.object.metadata.name === selection.name) && (selection.matches?.(entry.object) ?? true)) entries.push(entry);
    after = page.entries.at(-1)?.key;
    const metadata = { resourceVersion: String(from.revision) };
    const isLast = !page.more || after === undefined || (options.limit > 0 && entries.length >= options.limit);
    if (isLast) {
      store.cache.counts.storeList(fetched, entries.length);
      await served.ready(objectsOf(entries), signal);
    }
    if (!page.more || after === undefined) return { type: "list", served, entries, metadata };
    if (options.limit > 0 && entries.length >= options.limit) {
      const left = selection.matches || selection.name !== undefined ? {} : { remainingItemCount: page.remaining };
      return { type: "list", served, entries, metadata: { ...metadata, continue: encodeContinue(from.revision, after, prefix), ...left } };
    }
  }
}

/** A list that was begun may go on from where it was, as the newest state is; the token for that comes with the refusal. */
function expired(error: unknown, options: ListOptions, prefix: string): unknown {
  if (!isExpired(error)) return error;
  if (options.continue === "") return resourceExpired(LIST_EXPIRED);
  return resourceExpired(CONTINUE_INCONSISTENT, encodeContinue(-1, decodeContinue(options.continue, prefix).after, prefix));
}

const CONTINUE_VERSION = "meta.k8s.io/v1";

/** Opaque to clients; the form of upstream's, so that tools which peek into it are not surprised. */
function encodeContinue(revision: number, after: string, prefix: string): string {
  return Buffer.from(JSON.stringify({ v: CONTINUE_VERSION, rv: revision, start: `${after.slice(prefix.length)}\u0000` })).toString("base64url");
}

interface ContinueToken { readonly v?: string; readonly rv?: number; readonly start?: string }

/** Where a list goes on. The token cannot lead out of `prefix`. Throws 400. Source: kubernetes v1.36 apiserver/pkg/storage/continue.go */
function decodeContinue(token: string, prefix: string): { readonly revision: number; readonly after: string } {
  const { v = "", rv = 0, start = "" } = readContinue(token);
  if (v !== CONTINUE_VERSION) throw badContinue(`: server does not recognize this encoded version ${v}`);
  if (rv === 0) throw badContinue(`: incorrect encoded start resourceVersion (version ${CONTINUE_VERSION})`);
  if (start === "") throw badContinue(`: encoded start key empty (version ${CONTINUE_VERSION})`);
  const path = start.startsWith("/") ? start : `/${start}`;
  if (posix.normalize(path) !== path) throw badContinue(`: ${start}`);
  return { revision: rv, after: prefix + path.slice(1).replace(/\u0000$/, "") };
}

function readContinue(token: string): ContinueToken {
  const written = token.replace(/[\r\n]/g, ""), wrong = token.search(/[^\w\r\n-]/);
  const illegal = wrong < 0 && written.length % 4 === 1 ? token.length - 1 : wrong;
  if (illegal >= 0) throw badContinue(`: illegal base64 data at input byte ${illegal}`);
  try {
    return tokenIn(parseJson(textOf(Buffer.from(written, "base64url"))).value);
  } catch (error) {
    throw badContinue(`: ${(error as Error).message}`);
  }
}

const TOKEN_FIELDS: Readonly<Record<string, string>> = { v: "string", rv: "int64", start: "string" };

/** As Go reads it: names in any case, null is nothing. Throws an Error in its words. */
function tokenIn(value: JsonValue): ContinueToken {
  if (value === null) return {};
  const kind = jsonKindOf(value);
  if (kind !== "object") throw new Error(`json: cannot unmarshal ${kind} into Go value of type storage.continueToken`);
  const token: Record<string, unknown> = {};
  for (const [key, given] of Object.entries(value)) {
    const name = key.toLowerCase(), type = Object.hasOwn(TOKEN_FIELDS, name) ? TOKEN_FIELDS[name] : undefined;
    if (type === undefined || given === null) continue;
    const isNumber = typeof given === "number" || typeof given === "bigint";
    if (type === "string" ? typeof given !== "string" : !isNumber || !isInt64(given))
      throw new Error(`json: cannot unmarshal ${jsonKindOf(given)}${type === "int64" && isNumber ? ` ${jsonText(given)}` : ""} into Go struct field continueToken.${name} of type ${type}`);
    token[name] = isNumber ? Number(given) : given;
  }
  return token;
}

function isInt64(value: number | bigint): boolean { return typeof value === "bigint" ? BigInt.asIntN(64, value) === value : Number.isSafeInteger(value); }

/** Throws for what begins as no text does: Go tells of the byte as of a character. */
function textOf(bytes: Buffer): string {
  if (bytes.length > 0 && bytes[0]! > 0x7f && !isUtf8(bytes)) throw new Error(`invalid character '${String.fromCharCode(bytes[0]!)}' looking for beginning of value`);
  return bytes.toString();
}

function badContinue(why: string): StatusError {
  return badRequest(`invalid continue token: continue key is not valid${why}`);
}

export async function watchObjects(scope: Scope): Promise<Answer> {
  const { request, served, server } = scope;
  const { query } = request;
  const startMs = server.clock.uptimeMs();
  const { options, selection } = listingOf(scope);
  const sendInitial = query.has("sendInitialEvents") ? isTrue(query.get("sendInitialEvents")) : options.resourceVersion === "" || options.resourceVersion === "0";
  const bookmarks = isTrue(query.get("allowWatchBookmarks"));
  const streaming = sendInitial && bookmarks; // asked for or not: who takes bookmarks is told when there is no more of the beginning
  const fromNow = sendInitial || options.resourceVersion === "" || options.resourceVersion === "0";
  const unreached = fromNow ? await reach(scope, options.resourceVersion).then(() => undefined, tooLarge) : undefined;
  if (unreached) return { type: "watch", served, batches: refusedWatch(scope, unreached), eventSized: scope.watched?.eventSized };
  if (sendInitial) await initialized(scope);
  const { revision, found: initial } = sendInitial ? await selectedNow(scope, selection) : { revision: server.cache.revision, found: [] };
  const after = fromNow ? revision : Number(options.resourceVersion);
  served.store!.cache.counts.initial += initial.length;
  await converted(scope, initial, true);

  const seconds = integer(query, "timeoutSeconds");
  const timeoutMs = seconds ? Math.max(0, seconds) * 1000 : (server.watchMsMin ?? WATCH_MS_MIN) * (1 + server.random.next());
  return { type: "watch", served, eventSized: scope.watched?.eventSized, batches: watchBatches(scope, { startMs, selection, after, initial, streaming, bookmarks, timeoutMs }) };
}

function tooLarge(error: unknown): Error {
  if (!isTooLarge(error)) throw error;
  return error as Error;
}

/** What does not come is told of as an event: upstream waits for it in its cache, where a watch has begun already. */
async function* refusedWatch({ watched }: Scope, error: Error): AsyncIterable<readonly ErrorItem[]> {
  watched?.began();
  try {
    yield [{ type: "ERROR", error }];
  } finally {
    watched?.ended();
  }
}

interface WatchPlan {
  /** Of the server's uptime. */
  readonly startMs: number;
  readonly selection: Selection;
  readonly after: number;
  readonly initial: readonly Cached[];
  readonly streaming: boolean;
  readonly bookmarks: boolean;
  readonly timeoutMs: number;
}

async function* watchBatches(scope: Scope, plan: WatchPlan): AsyncIterable<readonly (WatchItem | BookmarkItem | ErrorItem)[]> {
  const { served, server } = scope;
  const { cache } = served.store!, topic = served.store!.topicOf(plan.selection);
  const ended = new AbortController();
  const signal = AbortSignal.any([scope.signal, ended.signal]);
  const retired = served.custom?.retired;
  const timer = server.clock.after(plan.timeoutMs, () => ended.abort());
  let changes: Changes | undefined;
  const bookmark = new BookmarkTimer(server.clock, { endMs: server.clock.uptimeMs() + plan.timeoutMs, ring: () => changes?.wake() });
  const retire = (): void => {
    changes?.stop();
    changes?.wake();
  };
  retired?.addEventListener("abort", retire, { once: true });
  scope.watched?.began();
  try {
    if (plan.timeoutMs === 0) return; // it was over before it began
    await reachToFollow(scope, plan.after);
    changes = new Changes(cache, { after: plan.after, signal, topic }); // from here on nothing is missed, however long it takes to send what there is already
    if (retired?.aborted) changes.stop();
    for (let i = 0; i < plan.initial.length; i += INITIAL_EVENTS_MAX) {
      const entries = plan.initial.slice(i, i + INITIAL_EVENTS_MAX);
      scope.watched?.events(entries.length);
      yield entries.map((entry) => ({ type: "ADDED", entry }) as const);
    }
    if (plan.streaming) {
      scope.watched?.events(1);
      yield [{ type: "BOOKMARK", resourceVersion: String(plan.after), initialEventsEnd: true }];
      scope.watched?.listed(server.clock.uptimeMs() - plan.startMs);
    }
    if (plan.bookmarks) bookmark.wait();
    while (!changes.isOver) {
      const batch = changes.take();
      if (!batch) {
        if (retired?.aborted) return; // what happened before is told: that the last objects went with their definition
        if (!bookmark.isDue) {
          await changes.happens();
          continue;
        }
        scope.watched?.events(1);
        yield [{ type: "BOOKMARK", resourceVersion: String(server.cache.revision) }];
        bookmark.wait();
        continue;
      }
      const items = served.custom ? await convertedOf(scope, batch, plan.selection, retired ? AbortSignal.any([signal, retired]) : signal) : selectedOf(batch, plan.selection);
      if (!items) return;
      if (items.length > 0) {
        scope.watched?.events(items.length);
        yield items;
      }
    }
  } catch (error) {
    if (signal.aborted || retired?.aborted) return;
    if (!isExpired(error)) throw error;
    yield [{ type: "ERROR", error }];
  } finally {
    timer.cancel();
    bookmark.cancel();
    retired?.removeEventListener("abort", retire);
    changes?.stop();
    ended.abort();
    scope.watched?.ended();
  }
}

/** What happened is told once it can be converted: a webhook that fails for a while costs a watch nothing but that. Undefined: it has failed for too long, and who watches is to list again. */
async function convertedOf({ served, server: { clock } }: Scope, batch: readonly CacheEvent[], selection: Selection, signal: AbortSignal): Promise<readonly WatchItem[] | undefined> {
  const startMs = clock.uptimeMs();
  for (;;) {
    try {
      if (selection.matches) await served.ready(batch.flatMap(({ entry, previous }) => (previous ? [entry.object, previous.object] : [entry.object])), signal);
      const items = selectedOf(batch, selection);
      await served.ready(items.map(({ entry }) => entry.object), signal);
      return items;
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      if (clock.uptimeMs() - startMs >= CONVERTING_MS_MAX) return undefined;
      await clock.sleep(CONVERT_AGAIN_MS, signal);
      signal.throwIfAborted();
    }
  }
}

/** A version that does not come is of a history that is lost: the disk had not kept what it said it had. Upstream waits for it, and misses what happens meanwhile; here it is 410, so that the client lists again. */
async function reachToFollow(scope: Scope, revision: number): Promise<void> {
  try {
    await reach(scope, String(revision));
  } catch (error) {
    throw isTooLarge(error) ? resourceExpired(`Too large resource version: ${revision}, current: ${scope.server.cache.revision}`) : error;
  }
}

/** When a bookmark is due, of which `ring` tells. What has happened already comes first: a bookmark promises that it was sent. */
class BookmarkTimer {
  readonly #clock: Clock;
  readonly #lastMs: number;
  readonly #ring: () => void;
  #alarm: { cancel(): void } | undefined;
  isDue = false;

  /** `endMs`: of the watch, in the clock's uptime. */
  constructor(clock: Clock, { endMs, ring }: { readonly endMs: number; readonly ring: () => void }) {
    this.#clock = clock;
    this.#lastMs = endMs - BOOKMARK_BEFORE_END_MS;
    this.#ring = ring;
  }

  wait(): void {
    this.isDue = false;
    const nowMs = this.#clock.uptimeMs();
    const dueMs = Math.min(Math.ceil((nowMs + BOOKMARK_PERIOD_MS) / BOOKMARK_STEP_MS) * BOOKMARK_STEP_MS, this.#lastMs);
    if (dueMs <= nowMs) return;
    this.#alarm = this.#clock.after(dueMs - nowMs, () => {
      this.isDue = true;
      this.#ring();
    });
  }

  cancel(): void { this.#alarm?.cancel(); }
}

/** What changes look like to a watcher who sees only a part of the resource. Events that look the same to all are handed on as they are: so watchers share them. */
function selectedOf(events: readonly CacheEvent[], selection: Selection): readonly WatchItem[] {
  if (selection.namespace === "" && selection.name === undefined && !selection.matches) return events;
  const items: WatchItem[] = [];
  for (const event of events) {
    const item = selected(event, selection);
    if (item) items.push(item);
  }
  return items;
}

function selected(event: CacheEvent, { namespace, name, matches }: Selection): WatchItem | undefined {
  const { type, entry, previous } = event;
  const { metadata } = entry.object;
  if ((namespace !== "" && metadata.namespace !== namespace) || (name !== undefined && metadata.name !== name)) return undefined;
  if (!matches) return event;
  const before = previous !== undefined && matches(previous.object);
  if (type === "DELETED") return before ? event : undefined;
  const now = matches(entry.object);
  if (now) return before === (type === "MODIFIED") ? event : { type: before ? "MODIFIED" : "ADDED", entry };
  return before ? { type: "DELETED", entry: leftBehind(previous, entry.revision) } : undefined;
}
/** To a watcher whose selector an object no longer matches, it is deleted: as it was, under the revision of the change. */
function leftBehind(previous: Cached, revision: number): Cached {
  const object = { ...previous.object, metadata: { ...previous.object.metadata, resourceVersion: String(revision) } };
  return new Cached(previous.key, Object.freeze(object), revision);
}
