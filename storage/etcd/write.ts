/**
 * One write, compared and carried out by etcd in one transaction, and never reported as failed when it was not.
 *
 * A try whose answer was lost is made again. If the second finds the key changed, that may be the work of the first: then the key's events tell. At
 * most one of them can have followed the expected revision, and ours has our value.
 */
import type { StoreClock } from "../engine.ts";
import { valueText } from "../json-text.ts";
import { refuseMessage, transactionBytes } from "../request-size.ts";
import { StoreError, type Revision, type Row, type StoreEvent } from "../store.ts";
import type { Feed } from "./feed.ts";
import type { Members } from "./members.ts";
import { EQUAL, TARGET_MOD, TXN } from "./messages.ts";
import { rowOf } from "./rows.ts";

export interface Write {
  readonly key: string;
  /** JSON; undefined: delete. */
  readonly text: string | undefined;
  readonly expected: Revision;
  /** Nobody wants it any more: it is not tried again. */
  readonly signal?: AbortSignal | undefined;
}

/** How long events are waited for that tell what became of a write. */
const UNCERTAIN_MS = 15_000;

export async function writeTo({ members, feed, clock }: { readonly members: Members; readonly feed: Feed; readonly clock: StoreClock }, { key, text, expected, signal }: Write): Promise<Revision> {
  const before = feed.revision; // our own event comes later
  const keyBytes = Buffer.from(key);
  if (text !== undefined) refuseMessage(transactionBytes({ keyBytes: keyBytes.length, valueBytes: Buffer.byteLength(text), expected }));
  let uncertain = false;
  const { header, succeeded, responses } = await members.call(TXN, {
    compare: [{ result: EQUAL, target: TARGET_MOD, key: keyBytes, mod_revision: expected }],
    success: [text === undefined ? { request_delete_range: { key: keyBytes } } : { request_put: { key: keyBytes, value: Buffer.from(text) } }],
    failure: [{ request_range: { key: keyBytes } }],
  }, { onUncertain: () => { uncertain = true; }, signal });
  const [response] = responses;
  const done = succeeded && (text !== undefined || (response?.response_delete_range?.deleted ?? 0) > 0);
  if (done) return header!.revision;
  if (uncertain) {
    await reachSoon(feed, clock, header!.revision, key);
    const revision = feed.eventsOf(key, before).find((event) => isOf(event, { key, text, expected }))?.row.revision;
    if (revision !== undefined) return revision;
  }
  const found = response?.response_range?.kvs[0];
  const current: Row | undefined = found && rowOf(found);
  throw new StoreError("conflict", { key, expected, actual: current?.revision ?? 0, current });
}

async function reachSoon(feed: Feed, clock: StoreClock, revision: Revision, key: string): Promise<void> {
  const late = new AbortController();
  const alarm = clock.after(UNCERTAIN_MS, () => late.abort());
  await feed.reach(revision, late.signal);
  alarm.cancel();
  if (feed.revision < revision) throw new StoreError("unavailable", { key, reason: "it is not known whether the write was carried out" });
}

function isOf({ type, row, previous }: StoreEvent, { text, expected }: Write): boolean {
  if ((previous?.revision ?? 0) !== expected) return false;
  return text === undefined ? type === "delete" : type === "put" && valueText(row.value) === text;
}
