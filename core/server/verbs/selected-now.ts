/** What of a resource a list or a watch begins with, in the version that is asked for: custom resources may first have to be converted. */
import { formatGvk } from "../../api/meta/gvk.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { StatusError, tooManyRequests } from "../../api/meta/status-error.ts";
import type { Cached } from "../../registry/generic/cached.ts";
import type { Selection } from "../../registry/generic/selection.ts";
import type { Scope } from "../scope.ts";

/** What is selected, and the revision it is of: what happens while it is converted comes after it. Throws as `converted` does. */
export async function selectedNow(scope: Scope, selection: Selection, { isCached = true, looked }: { readonly isCached?: boolean; readonly looked?: (objects: number) => void } = {}): Promise<{ readonly revision: number; readonly found: readonly Cached[] }> {
  const { served, server: { cache: { revision } } } = scope, store = served.store!, { matches } = selection;
  if (!served.custom || !matches) return { revision, found: store.select(selection, looked) };
  const all = store.cache.under(store.prefixOf(selection.namespace)), named = store.select({ ...selection, matches: undefined }, looked);
  await readyToSelect(scope, selection, () => all, isCached);
  return { revision, found: named.filter(({ object }) => matches(object)) };
}

/** What is selected by fields is selected by those of the version that is asked for. */
export function readyToSelect(scope: Scope, { matches }: Selection, entries: () => Iterable<Cached>, isCached = true): Promise<void> | undefined {
  return scope.served.custom && matches ? converted(scope, entries(), isCached) : undefined;
}

/** Upstream's cache has nothing, either, as long as anything of the resource is stored in a version that is gone. Throws 429. */
export async function initialized(scope: Scope): Promise<void> {
  const { served: { custom, store } } = scope;
  const unknown = custom && store!.cache.under(store!.prefixOf("")).find(({ object }) => !custom.knows(object));
  if (unknown) await converted(scope, [unknown], true);
}

/** Upstream answers lists and watches from a cache of the version, which has nothing as long as something cannot be converted: the client is to try again. Throws 429, and what went wrong where the list is read from the store. */
export async function converted({ served, server: { clock }, signal }: Scope, entries: Iterable<Cached>, isCached: boolean): Promise<void> {
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

export function* objectsOf(entries: Iterable<Cached>): Iterable<Readonly<ApiObject>> {
  for (const { object } of entries) yield object;
}
