/**
 * What time it is for the server, as its answers say it. Either clock may be wrong, and each is set when it likes: what the server gives an end to, as tokens, ends by its clock.
 *
 * Told to the second, and late by as long as the answer took. Between answers it goes on by uptime.
 */
import type { Clock } from "../lifecycle/clock.ts";

export interface ServerClock {
  /** Milliseconds since the Unix epoch; undefined until it was told. */
  readonly nowMs: () => number | undefined;
  /** `date`: the header of an answer. One that is none says nothing. */
  readonly told: (date: string) => void;
}

export function serverClock(clock: Pick<Clock, "uptimeMs">): ServerClock {
  let bootMs: number | undefined; // what it said when our uptime was 0
  return {
    nowMs: () => (bootMs === undefined ? undefined : bootMs + clock.uptimeMs()),
    told(date) {
      const ms = Date.parse(date);
      if (!Number.isNaN(ms)) bootMs = ms - clock.uptimeMs();
    },
  };
}
