/**
 * What is said again and again: a few times in full, then every ten minutes while it lasts, with how often it was kept back. A node whose server is away for a month would fill its card,
 * and whoever comes to look would find one sentence a hundred thousand times and not what was said before it.
 *
 * What was kept back is said when the ten minutes are over, whether or not it comes again: what is told when it begins, and began a fourth time, may last since.
 */
import type { Clock } from "../lifecycle/clock.ts";

const TIMES = 3;
const AGAIN_MS = 600_000;
/** More than this at once, and the one that was said longest ago is forgotten. */
const KNOWN_MAX = 256;

/** `kept`: how often the same was kept back since it was last said. `agoMs`: how long ago it was so. */
type Say = (kept: number, agoMs: number) => void;

interface Said { readonly sinceMs: number; readonly times: number; readonly kept: number; readonly lastMs: number; readonly say: Say }

export class Repeats {
  readonly #clock: Pick<Clock, "uptimeMs" | "after">;
  readonly #said = new Map<string, Said>(); // in the order in which they were said last

  constructor(clock: Pick<Clock, "uptimeMs" | "after">) {
    this.#clock = clock;
  }

  /** Says it, or keeps it back and returns false. */
  tell(what: string, say: Say): boolean {
    const nowMs = this.#clock.uptimeMs();
    const before = this.#said.get(what), isLate = before !== undefined && nowMs - before.sinceMs >= AGAIN_MS;
    const lasts = isLate && before.kept > 0;
    const said = before === undefined || isLate ? { sinceMs: nowMs, times: lasts ? TIMES : 1, kept: 0, lastMs: nowMs, say }
      : { ...before, ...(before.times < TIMES ? { times: before.times + 1 } : { kept: before.kept + 1 }), lastMs: nowMs, say };
    this.#remember(what, said);
    if (said.kept === 0) say(lasts ? before.kept : 0, 0);
    else if (said.kept === 1) this.#clock.after(said.sinceMs + AGAIN_MS - nowMs, () => this.#tellKept(what, said.sinceMs));
    return said.kept === 0;
  }

  #tellKept(what: string, sinceMs: number): void {
    const said = this.#said.get(what);
    if (said?.sinceMs !== sinceMs || said.kept === 0) return;
    this.#remember(what, { ...said, sinceMs: sinceMs + AGAIN_MS, kept: 0 });
    said.say(said.kept, this.#clock.uptimeMs() - said.lastMs);
  }

  #remember(what: string, said: Said): void {
    this.#said.delete(what);
    this.#said.set(what, said);
    if (this.#said.size > KNOWN_MAX) this.#said.delete(this.#said.keys().next().value!);
  }
}
