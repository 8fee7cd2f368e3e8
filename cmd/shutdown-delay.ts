/**
 * A server that goes on serving for a while after it was told to stop: balancers see that it is not ready any more, and agents that the Service kubernetes does not name it, before it refuses anybody.
 *
 *   const stop = shutdownDelay({ asked, ms, clock });
 *   runAll([…, stop.leftEarly(part)], stop.signal)
 *
 * Source: kubernetes v1.36 apiserver/pkg/server/genericapiserver.go ShutdownDelayDuration
 */
import { aborted } from "../core/lifecycle/aborted.ts";
import type { Clock } from "../core/lifecycle/clock.ts";
import type { Runnable } from "../core/lifecycle/run-all.ts";

export interface ShutdownDelay {
  /** Ends what serves. */
  readonly signal: AbortSignal;
  isLeaving(): boolean;
  /** A part that ends as soon as it is asked for. */
  leftEarly(part: Runnable): Runnable;
}

export function shutdownDelay({ asked, ms, clock }: { readonly asked: AbortSignal; readonly ms: number; readonly clock: Pick<Clock, "after"> }): ShutdownDelay {
  const late = new AbortController();
  if (ms > 0) asked.addEventListener("abort", () => void clock.after(ms, () => late.abort(asked.reason)), { once: true });
  const signal = ms > 0 ? late.signal : asked;
  return {
    signal,
    isLeaving: () => asked.aborted,
    leftEarly: (part) => ({
      name: part.name,
      async run(end, ready) {
        await part.run(AbortSignal.any([end, asked]), ready);
        await aborted(end);
      },
    }),
  };
}
