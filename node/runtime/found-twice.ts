/** Takes away what should not be there. What is just being made, or is about to end, can look the same for a moment: only what is found twice in a row goes. */
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Log } from "../../core/observe/log.ts";

/** Between two looks. */
const PERIOD_MS = 60_000;

export interface Litter<T> {
  /** For the log: what is looked for. */
  readonly what: string;
  find(): readonly T[] | Promise<readonly T[]>;
  /** The same in two looks: the same one. */
  keyOf(one: T): string;
  remove(one: T): void;
}

/** Until `signal` aborts. A look that fails is told, and the next one comes. */
export async function removeFoundTwice<T>({ what, find, keyOf, remove }: Litter<T>, { clock, log }: { readonly clock: Pick<Clock, "every">; readonly log: Log }, signal: AbortSignal): Promise<void> {
  let before: ReadonlySet<string> = new Set();
  for await (const _ of clock.every(PERIOD_MS, signal)) {
    try {
      const now = await find();
      for (const one of now) if (before.has(keyOf(one))) remove(one);
      before = new Set(now.map(keyOf));
    } catch (error) {
      log.warn(`could not look for ${what}, the next look is in a minute`, { error });
    }
  }
}
