/** Lets through so many a second on the average, and `burst` at once. Full at first. */
import type { Clock } from "./clock.ts";

export interface TokenBucketOptions { readonly perSecond: number; readonly burst: number; readonly clock: Pick<Clock, "uptimeMs"> }

/** Returns what says whether one more may. */
export function tokenBucket({ perSecond, burst, clock }: TokenBucketOptions): () => boolean {
  let tokens = burst, atMs = clock.uptimeMs();
  return () => {
    const nowMs = clock.uptimeMs();
    tokens = Math.min(burst, tokens + ((nowMs - atMs) / 1000) * perSecond);
    atMs = nowMs;
    if (tokens < 1) return false;
    tokens--;
    return true;
  };
}
