/**
 * Every five minutes etcd forgets what is older than five minutes. All servers of all clusters that share an etcd take part, one of them does it:
 * whoever is first to write the key on which they, and kube-apiservers, agree. Its version counts rounds; its value is the revision that was compacted.
 *
 *   round n   nobody else was here since I looked: compact to the revision of that time, and remember the one of now
 *             somebody was: remember what they made of it
 *
 * Source: kubernetes v1.36 apiserver/pkg/storage/etcd3/compact.go (the key and the rules)
 */
import type { StoreClock } from "../engine.ts";
import type { Revision, StoreError } from "../store.ts";
import type { Members } from "./members.ts";
import { COMPACT, EQUAL, TARGET_VERSION, TXN } from "./messages.ts";

const KEY = Buffer.from("compact_rev_key");
export const COMPACT_EVERY_MS = 5 * 60_000;

interface Round { readonly version: number; readonly revision: Revision }

export interface CompactorOptions {
  readonly members: Members;
  readonly clock: StoreClock;
  readonly everyMs: number;
  readonly onCompacted: (revision: Revision) => void;
  readonly onTrouble: (error: StoreError) => void;
}

/** Begins at once. Returns how to end it. */
export function startCompactor({ members, clock, everyMs, onCompacted, onTrouble }: CompactorOptions): () => void {
  let round: Round = { version: 0, revision: 0 };
  let timer = clock.after(everyMs, tick);
  let stopped = false;

  function tick(): void {
    void next().catch(onTrouble).finally(() => {
      if (!stopped) timer = clock.after(everyMs, tick);
    });
  }

  async function next(): Promise<void> {
    const { version, revision } = round;
    const { header, succeeded, responses } = await members.call(TXN, {
      compare: [{ result: EQUAL, target: TARGET_VERSION, key: KEY, version }],
      success: [{ request_put: { key: KEY, value: Buffer.from(String(revision)) } }],
      failure: [{ request_range: { key: KEY } }],
    });
    round = { version: succeeded ? version + 1 : responses[0]?.response_range?.kvs[0]?.version ?? 0, revision: header!.revision };
    if (!succeeded || revision === 0) return;
    await compactTo(members, revision);
    onCompacted(revision);
  }

  return () => {
    stopped = true;
    timer.cancel();
  };
}

/** Throws "future". What is compacted already stays so. */
export async function compactTo(members: Members, revision: Revision): Promise<void> {
  try {
    await members.call(COMPACT, { revision });
  } catch (error) {
    if ((error as StoreError).code !== "compacted") throw error;
  }
}
