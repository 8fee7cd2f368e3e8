/** How new what is read must be: whoever names a version waits until this server knows it. */
import { resourceVersionTooLarge } from "../../api/meta/status-error.ts";
import type { Scope } from "../scope.ts";

/** How long a read waits for a revision that has not been reached yet. Source: apiserver storage/cacher blockTimeout */
const REACH_TIMEOUT_MS = 3_000;

/** Waits until reads may be served that are "not older than" `resourceVersion`; "" is the newest, "0" is whatever there is. */
export async function reach({ server: { cache, clock }, signal }: Scope, resourceVersion: string): Promise<void> {
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
