/** Notes once a day, on the Secret of a legacy token, that it is still in use. Source: kubernetes v1.36 pkg/serviceaccount/legacy.go */
import type { Secret } from "../api/gen/core.v1.ts";
import type { ResourceClient } from "../client/client.ts";
import type { Clock } from "../lifecycle/clock.ts";
import type { Log } from "../observe/log.ts";

const LAST_USED_LABEL = "kubernetes.io/legacy-token-last-used";
const DAY_MS = 86_400_000;

export function legacyTokenUse({ secrets, clock, log }: { readonly secrets: ResourceClient<Secret>; readonly clock: Clock; readonly log: Log }): (secret: Readonly<Secret>, signal: AbortSignal) => Promise<void> {
  const day = (ms: number): string => new Date(ms).toISOString().slice(0, 10);
  return async (secret, signal) => {
    const today = day(clock.nowMs());
    const lastUsed = secret.metadata.labels?.[LAST_USED_LABEL];
    if (lastUsed === today || lastUsed === day(clock.nowMs() + DAY_MS)) return; // tomorrow: another server's clock is ahead
    try {
      await secrets.patch(secret, "application/merge-patch+json", { metadata: { uid: secret.metadata.uid, labels: { [LAST_USED_LABEL]: today } } }, { signal });
    } catch (error) {
      log.warn("use of a legacy token could not be noted", { secret: `${secret.metadata.namespace}/${secret.metadata.name}`, error });
    }
  };
}
