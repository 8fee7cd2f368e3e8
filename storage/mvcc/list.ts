/**
 * A page of the rows as they were at some revision: the current rows, with what changed since undone.
 */
import { compareKeys } from "../keys.ts";
import type { Listing, ListOptions, Revision, Row } from "../store.ts";
import type { Rows } from "./rows.ts";

/** `then`: what differs between now and `revision` (History.since). */
export function listRows(rows: Rows, { prefix, after, limit = 0 }: ListOptions, revision: Revision, then: ReadonlyMap<string, Row | undefined>): Listing {
  const undone = [...then]
    .filter(([key]) => after === undefined || compareKeys(key, after) > 0)
    .sort(([a], [b]) => compareKeys(a, b));
  const page: Row[] = [];
  let next = 0; // in `undone`

  /** Takes undone rows that come before `key`; false once the page is full. */
  function takeUndone(key: string | undefined): boolean {
    for (; next < undone.length && (key === undefined || compareKeys(undone[next]![0], key) <= 0); next++) {
      const row = undone[next]![1];
      if (!row) continue;
      if (limit > 0 && page.length === limit) return false;
      page.push(row);
    }
    return true;
  }

  let full = false;
  for (const row of rows.range(prefix, after)) {
    if (undone.length > 0 && !takeUndone(row.key)) full = true;
    if (limit > 0 && page.length === limit) full = true;
    if (full) break;
    if (!then.has(row.key)) page.push(row);
  }
  if (!full) takeUndone(undefined);

  const remaining = limit > 0 && page.length === limit ? countAfter(rows, prefix, page[limit - 1]!.key, undone) : 0;
  return { rows: page, revision, more: remaining > 0, remaining };
}

function countAfter(rows: Rows, prefix: string, after: string, undone: readonly (readonly [key: string, row: Row | undefined])[]): number {
  let count = rows.count(prefix, after);
  for (const [key, row] of undone) if (compareKeys(key, after) > 0) count += (row ? 1 : 0) - (rows.get(key) ? 1 : 0);
  return count;
}
