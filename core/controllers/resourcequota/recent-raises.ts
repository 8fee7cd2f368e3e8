/**
 * What admission has added to quotas of late and has not been seen yet: what it was for may not be there, and is not counted for want of being seen. What is not seen after a while was never written.
 * Of a quota that has just appeared nobody knows what was added before.
 */
import type { ResourceQuota } from "../../api/gen/core.v1.ts";
import { keyOf, type ObjectKey } from "../../api/meta/object-meta.ts";
import { compareQuantity, type Quantity, subQuantity } from "../../api/meta/quantity.ts";
import { addTo, type Amounts, amountsOf, growth, withoutZeros } from "../../api/quota/amounts.ts";
import type { Clock } from "../../lifecycle/clock.ts";
import type { Change } from "../controller.ts";

/** An object that admission let through is in our copy long before. */
export const UNSEEN_MS = 2_000;
/** Between two counts at the source, which cost a list each, and admission another try. */
const BETWEEN_MS = 250;

interface Raise { readonly unseen: Map<string, Quantity>; readonly atMs: number }
/** By uptime. */
interface Seen { readonly sinceMs: number; raises: readonly Raise[]; takenMs?: number }

export class RecentRaises {
  readonly #clock: Pick<Clock, "uptimeMs">;
  readonly #seen = new Map<ObjectKey, Seen>();

  constructor(clock: Pick<Clock, "uptimeMs">) { this.#clock = clock; }

  note({ object, old, deleted }: Change<ResourceQuota>): void {
    const key = keyOf(object), atMs = this.#clock.uptimeMs(), seen = this.#seen.get(key);
    if (deleted) this.#seen.delete(key);
    else if (old === undefined || seen === undefined) this.#seen.set(key, { sinceMs: atMs, raises: [] });
    else {
      const before = amountsOf(old.status?.used), unseen = withoutZeros(growth(amountsOf(object.status?.used), before)) as Raise["unseen"];
      for (const name of unseen.keys()) if (!before.has(name)) unseen.delete(name); // it was not counted at all: what is new is the count
      if (unseen.size > 0) seen.raises = [...young(seen.raises, atMs), { unseen, atMs }];
    }
  }

  /** So much has come that a quota counts: what was added first is what has come. */
  appeared(key: ObjectKey, amounts: Amounts): void {
    const seen = this.#seen.get(key);
    if (seen === undefined) return;
    for (const [name, amount] of amounts) {
      let rest = amount;
      for (const { unseen } of seen.raises) {
        const left = unseen.get(name);
        if (left === undefined) continue;
        if (compareQuantity(left, rest) > 0) {
          unseen.set(name, subQuantity(left, rest));
          break;
        }
        unseen.delete(name);
        rest = subQuantity(rest, left);
      }
    }
    seen.raises = seen.raises.filter(({ unseen }) => unseen.size > 0);
  }

  /** How long it is before a quota may be counted that says too much. */
  leftMs(key: ObjectKey): number {
    const seen = this.#seen.get(key);
    return seen === undefined ? 0 : Math.max(0, seen.sinceMs + UNSEEN_MS - this.#clock.uptimeMs(), (seen.takenMs ?? Number.NEGATIVE_INFINITY) + BETWEEN_MS - this.#clock.uptimeMs());
  }

  /** To be asked before it is counted. */
  take(key: ObjectKey): Amounts {
    const sum = new Map<string, Quantity>(), seen = this.#seen.get(key);
    if (seen === undefined) return sum;
    seen.takenMs = this.#clock.uptimeMs();
    seen.raises = young(seen.raises, seen.takenMs);
    for (const { unseen } of seen.raises) for (const [name, quantity] of unseen) addTo(sum, name, quantity);
    return sum;
  }
}

function young(raises: readonly Raise[], nowMs: number): readonly Raise[] { return raises.filter(({ atMs }) => nowMs - atMs < UNSEEN_MS); }
