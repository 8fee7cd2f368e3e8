/**
 * What is said again and again: a few times in full, then every ten minutes while it lasts, with how often it was kept back. A node whose server is away for a month would fill its card,
 * and whoever comes to look would find one sentence a hundred thousand times and not what was said before it.
 */

const TIMES = 3;
const AGAIN_MS = 600_000;
/** More than this at once, and the one that was said longest ago is forgotten. */
const KNOWN_MAX = 256;

interface Said { readonly sinceMs: number; readonly times: number; readonly kept: number }

export class Repeats {
  readonly #said = new Map<string, Said>(); // in the order in which they were said last

  /** How often the same was kept back since it was last said; undefined: this is kept back, too. */
  next(what: string, nowMs: number): number | undefined {
    const before = this.#said.get(what), isLate = before !== undefined && nowMs - before.sinceMs >= AGAIN_MS;
    const lasts = isLate && before.kept > 0;
    const said = before === undefined || isLate ? { sinceMs: nowMs, times: lasts ? TIMES : 1, kept: 0 }
      : before.times < TIMES ? { ...before, times: before.times + 1 } : { ...before, kept: before.kept + 1 };
    this.#said.delete(what);
    this.#said.set(what, said);
    if (this.#said.size > KNOWN_MAX) this.#said.delete(this.#said.keys().next().value!);
    return said.kept > 0 ? undefined : lasts ? before.kept : 0;
  }
}
