/**
 * Does `work` `count` times, 1 then 2 then 4 … at once, stopping after the first batch with an error.
 * When every call would be refused (a quota, say) that costs one request instead of `count`.
 *
 * Source: kubernetes v1.36 pkg/controller/replicaset/replica_set.go slowStartBatch
 */
import { settleAll } from "../lifecycle/settle-all.ts";

export async function slowStart(count: number, work: (index: number) => Promise<void>): Promise<void> {
  for (let done = 0, batch = 1; done < count; done += batch, batch *= 2) {
    const from = done;
    await settleAll(Array.from({ length: Math.min(batch, count - done) }, (_, i) => work(from + i)));
  }
}
