/** What changes look like to a watcher who sees only a part of the resource. */
import type { CacheEvent } from "../../registry/generic/audience.ts";
import { Cached } from "../../registry/generic/cached.ts";
import type { Selection } from "../../registry/generic/selection.ts";
import type { WatchItem } from "../answer.ts";

/** Events that look the same to all are handed on as they are: so watchers share them. */
export function itemsOf(events: readonly CacheEvent[], selection: Selection): readonly WatchItem[] {
  if (selection.namespace === "" && selection.name === undefined && !selection.matches) return events;
  const items: WatchItem[] = [];
  for (const event of events) {
    const item = itemOf(event, selection);
    if (item) items.push(item);
  }
  return items;
}

function itemOf(event: CacheEvent, { namespace, name, matches }: Selection): WatchItem | undefined {
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
