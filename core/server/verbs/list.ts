/**
 * list: from the one copy of the world, unless a page goes on from another or an exact version is asked for; those go back to the store.
 *
 * Source: kubernetes v1.36 apiserver/pkg/storage/cacher/delegator/interface.go ShouldDelegateList
 */
import type { ListMeta } from "../../api/meta/object-meta.ts";
import { badRequest, CONTINUE_INCONSISTENT, isExpired, LIST_EXPIRED, resourceExpired } from "../../api/meta/status-error.ts";
import type { Cached } from "../../registry/generic/cached.ts";
import type { Selection } from "../../registry/generic/selection.ts";
import type { ListAnswer } from "../answer.ts";
import type { Scope } from "../scope.ts";
import type { Span } from "../tracing/tracer.ts";
import { decodeContinue, encodeContinue } from "./continue-token.ts";
import { type Listing, listingOf, type ListOptions } from "./options.ts";
import { reach } from "./reach.ts";
import { converted, initialized, objectsOf, readyToSelect, selectedNow } from "./selected-now.ts";
import { cachePart } from "./traced.ts";

/** `forDeletion`: of what is to go, which is not read from upstream's cache. */
export async function listObjects(scope: Scope, { forDeletion = false }: { readonly forDeletion?: boolean } = {}): Promise<ListAnswer> {
  const { served, server: { cache }, signal } = scope, listing = listingOf(scope);
  const { options, selection, isOne } = listing;
  if (options.continue !== "") {
    const { revision, after } = decodeContinue(options.continue, served.store!.prefixOf(selection.namespace));
    if (options.resourceVersion !== "" && options.resourceVersion !== "0") throw badRequest("specifying resource version is not allowed when using continue");
    await cache.fresh(signal);
    return listFrom(scope, options.resourceVersion === "0" ? { ...options, limit: 0 } : options, selection, { revision: revision < 0 ? cache.revision : revision, after });
  }
  // pages of a list that names a version are of exactly that version, if nothing else is said; one object has no pages
  const isExact = options.versionMatch === "Exact" || (options.versionMatch === "" && options.limit > 0 && !isOne && Number(options.resourceVersion) > 0);
  if (!isExact) return listNow(scope, listing, forDeletion);
  await reach(scope, options.resourceVersion); // said as it was asked: a number here is not as large as one there may be
  return listFrom(scope, options, selection, { revision: Number(options.resourceVersion), after: undefined });
}

function listNow(scope: Scope, listing: Listing, forDeletion: boolean): Promise<ListAnswer> {
  const part = cachePart(scope, "cacher.GetList");
  const list = listCached(scope, listing, forDeletion, part);
  return part ? list.finally(() => part.end()) : list;
}

async function listCached(scope: Scope, { options, selection }: Listing, forDeletion: boolean, part: Span | undefined): Promise<ListAnswer> {
  const { served, signal } = scope;
  const limit = options.resourceVersion === "0" ? 0 : options.limit; // whoever takes what there is gets all of it
  part?.event("Ready");
  await reachToList(scope, options.resourceVersion);
  part?.event("watchCache fresh enough");
  signal.throwIfAborted();
  const isCached = selection.matches !== undefined || selection.name !== undefined || (!forDeletion && limit === 0); // pages of all there is are not
  if (isCached) await initialized(scope);
  let looked = 0;
  const { revision, found } = await selectedNow(scope, selection, { isCached, looked: (objects) => (looked = objects) });
  part?.event("Listed items from cache", { count: looked });
  const entries = limit > 0 ? found.slice(0, limit) : found;
  part?.event("Filtered items", { count: entries.length });
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

/** Only told for lists without selectors, which can be counted without reading on. */
function remaining({ matches, name }: Selection, left: number): ListMeta { return matches || name !== undefined ? {} : { remainingItemCount: left }; }

/** Rows that are read at once where few of them are what is looked for. Source: kubernetes v1.36 apiserver/pkg/storage/etcd3/store.go maxLimit */
const ROWS_MAX = 10_000;

/** A snapshot at a revision, from the store: as many rows as are wanted, then twice as many each time, for behind one of many servers each time is a way to etcd. */
async function listFrom(scope: Scope, options: ListOptions, selection: Selection, from: { readonly revision: number; readonly after: string | undefined }): Promise<ListAnswer> {
  const { served, signal, span, server: { tracer } } = scope, store = served.store!;
  const prefix = store.prefixOf(selection.namespace);
  await reach(scope, String(from.revision)); // another server may be ahead of this one
  const entries: Cached[] = [];
  let after = from.after, fetched = 0;
  for (let rows = options.limit; ; rows = Math.max(rows, Math.min(rows * 2, ROWS_MAX))) {
    const asked = { prefix, after, limit: Math.max(rows, 0), revision: from.revision };
    const page = await (span && tracer ? tracer.within(span, () => store.listAt(asked)) : store.listAt(asked)).catch((error: unknown) => {
      throw expired(error, options, prefix);
    });
    fetched += page.entries.length;
    await readyToSelect(scope, selection, () => page.entries, false);
    const isFull = (): boolean => options.limit > 0 && entries.length >= options.limit;
    let seen = 0;
    for (; seen < page.entries.length && !isFull(); seen++) {
      const entry = page.entries[seen]!;
      if ((selection.name === undefined || entry.object.metadata.name === selection.name) && (selection.matches?.(entry.object) ?? true)) entries.push(entry);
    }
    after = page.entries[seen - 1]?.key;
    const isAll = after === undefined || (!page.more && seen === page.entries.length);
    if (!isAll && !isFull()) continue;
    store.cache.counts.storeList(fetched, entries.length);
    await served.ready(objectsOf(entries), signal);
    const next: ListMeta = isAll ? {} : { continue: encodeContinue(from.revision, after!, prefix), ...remaining(selection, page.remaining) };
    return { type: "list", served, entries, metadata: { resourceVersion: String(from.revision), ...next } };
  }
}

/** A list that was begun may go on from where it was, as the newest state is; the token for that comes with the refusal. */
function expired(error: unknown, options: ListOptions, prefix: string): unknown {
  if (!isExpired(error)) return error;
  if (options.continue === "") return resourceExpired(LIST_EXPIRED);
  return resourceExpired(CONTINUE_INCONSISTENT, encodeContinue(-1, decodeContinue(options.continue, prefix).after, prefix));
}
