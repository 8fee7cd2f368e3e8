/**
 * What goes wrong again and again is told once, not at each try: when it begins, when it goes wrong otherwise, and every ten minutes while it lasts, so that it stands at the end of every log.
 * The tries between go to the debug level.
 */
import type { Clock } from "../lifecycle/clock.ts";
import type { Log } from "./log.ts";

const AGAIN_MS = 600_000;

export interface Trouble {
  tell(error: unknown, fields?: Record<string, unknown>): void;
  over(): void;
}

/** `message`: what cannot be done. */
export function trouble(message: string, { log, clock }: { readonly log: Log; readonly clock: Pick<Clock, "uptimeMs"> }): Trouble {
  let told: { readonly what: string; readonly atMs: number } | undefined;
  return {
    tell(error, fields = {}) {
      const what = String(error), nowMs = clock.uptimeMs();
      const isNews = told?.what !== what || nowMs - told.atMs >= AGAIN_MS;
      log[isNews ? "error" : "debug"](message, { error, ...fields });
      if (isNews) told = { what, atMs: nowMs };
    },
    over() {
      told = undefined;
    },
  };
}
