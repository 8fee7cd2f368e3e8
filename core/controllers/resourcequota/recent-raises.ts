/**
 * What admission has added to quotas of late: what it was for may not be there yet, and is not counted for want of being seen. Of a quota that has just appeared nobody knows what was added before.
 */
import type { ResourceQuota } from "../../api/gen/core.v1.ts";
import { keyOf, type ObjectKey } from "../../api/meta/object-meta.ts";
import { add, type Amounts, amountsOf, growth, withoutZeros } from "../../api/quota/amounts.ts";
import type { Clock } from "../../lifecycle/clock.ts";
import type { Change } from "../controller.ts";

/** An object that admission let through is there long before. */
const QUIET_MS = 2_000;

interface Raise { readonly added: Amounts; readonly atMs: number }
/** By uptime. `waitingMs`: since when less is counted than is noted, though something is being added. */
interface Seen { readonly sinceMs: number; raises: readonly Raise[]; waitingMs?: number | undefined }

export class RecentRaises {
  readonly #clock: Pick<Clock, "uptimeMs">;
  readonly #seen = new Map<ObjectKey, Seen>();

  constructor(clock: Pick<Clock, "uptimeMs">) { this.#clock = clock; }

  note({ object, old, deleted }: Change<ResourceQuota>): void {
    const key = keyOf(object), nowMs = this.#clock.uptimeMs(), seen = this.#seen.get(key);
    if (deleted) this.#seen.delete(key);
    else if (old === undefined || seen === undefined) this.#seen.set(key, { sinceMs: nowMs, raises: [] });
    else {
      const before = amountsOf(old.status?.used), added = withoutZeros(growth(amountsOf(object.status?.used), before));
      for (const name of added.keys()) if (!before.has(name)) added.delete(name); // it was not counted at all: what is new is the count
      if (added.size > 0) seen.raises = [...young(seen.raises, nowMs), { added, atMs: nowMs }];
    }
  }

  /** How long it is worth to wait before a quota is counted that says too much: until nothing is being added, but, where that does not end, no longer than that takes. */
  leftMs(key: ObjectKey): number {
    const seen = this.#seen.get(key), nowMs = this.#clock.uptimeMs();
    if (seen === undefined) return 0;
    const unknownMs = seen.sinceMs + QUIET_MS - nowMs, lastMs = seen.raises.at(-1)?.atMs;
    if (unknownMs > 0 || lastMs === undefined) return Math.max(0, unknownMs);
    seen.waitingMs ??= nowMs;
    return Math.max(0, Math.min(lastMs, seen.waitingMs) + QUIET_MS - nowMs);
  }

  /** To be asked before it is counted. */
  take(key: ObjectKey): Amounts {
    const seen = this.#seen.get(key);
    if (seen === undefined) return new Map();
    seen.waitingMs = undefined;
    seen.raises = young(seen.raises, this.#clock.uptimeMs());
    return seen.raises.reduce<Amounts>((sum, { added }) => add(sum, added), new Map());
  }
}

function young(raises: readonly Raise[], nowMs: number): readonly Raise[] { return raises.filter(({ atMs }) => nowMs - atMs < QUIET_MS); }
