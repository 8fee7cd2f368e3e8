/** Seals anew what is not sealed as it should be: after encryption was turned on or off, and after a key was replaced. */
import { type Row, type Store, StoreError } from "../store.ts";
import { type EncryptionRule, isStale, prefixOf, providersOf } from "./encryption.ts";

/** Rows looked at before others get a turn. */
const PAGE = 500;

export interface Rewritten {
  readonly rewritten: number;
  /** How many rows each prefix has sealed now, "" those that are not sealed. Of resources with a rule, and of what was stale. */
  readonly rows: Readonly<Record<string, number>>;
}

/**
 * One pass over everything. A row somebody else writes meanwhile is left to them: it is sealed as it should be then. One that nobody can open stays as it is. `beneath` is the store under
 * `store`. Ends early when `signal` aborts.
 */
export async function rewriteStale({ beneath, store, rules, signal }: { readonly beneath: Store; readonly store: Store; readonly rules: () => readonly EncryptionRule[]; readonly signal: AbortSignal }): Promise<Rewritten> {
  let rewritten = 0;
  const rows: Record<string, number> = {};
  for (let after: string | undefined; !signal.aborted; ) {
    const page = await beneath.list({ prefix: "/registry/", limit: PAGE, ...(after === undefined ? {} : { after }) });
    for (const row of page.rows) {
      if (signal.aborted) break;
      if (isUnreadable(row)) continue;
      if (isStale(rules(), row)) {
        if (await sealAnew(store, row.key)) rewritten++;
      } else if (providersOf(rules(), row.key).length === 0) continue;
      const now = await beneath.get(row.key);
      if (now) rows[prefixOf(now.value)] = (rows[prefixOf(now.value)] ?? 0) + 1;
    }
    after = page.rows.at(-1)?.key;
    if (!page.more || after === undefined) break;
  }
  return { rewritten, rows };
}

/** What somebody else has damaged stays as it is. */
function isUnreadable(row: Row): boolean {
  try {
    return row.value === undefined;
  } catch (error) {
    if (error instanceof StoreError && error.code === "corrupt") return true;
    throw error;
  }
}

/** False: somebody else has written it, or nobody can open it. */
async function sealAnew(store: Store, key: string): Promise<boolean> {
  try {
    const row = await store.get(key);
    if (row) await store.put(key, row.value, row.revision);
    return row !== undefined;
  } catch (error) {
    if (error instanceof StoreError && (error.code === "conflict" || error.code === "corrupt")) return false;
    throw error;
  }
}
