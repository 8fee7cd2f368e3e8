/**
 * Whoever has lost a race for an object waits until it is his turn with it: a hundred who change one object at once would otherwise each prepare their change a hundred times.
 *
 *   const turn = await turns.take(key, signal);
 *   … read, change, write: mostly nobody is in the way …
 *   turn.end();
 *
 * A turn is courtesy, not a lock: nobody is kept from writing, and who takes long (a webhook is asked) lets the next one have a go meanwhile.
 */
import type { Clock } from "../../lifecycle/clock.ts";
import { until } from "../../lifecycle/until.ts";

/** So long others wait for one. A write takes some milliseconds, on a slow card some fifty. */
const HELD_MS_MAX = 100;

export interface Turn {
  /** Somebody else may have his meanwhile. */
  readonly isOver: boolean;
  end(): void;
}

export class KeyTurns {
  readonly #clock: Pick<Clock, "after">;
  /** By key, those who wait; there while somebody has the turn. */
  readonly #waiting = new Map<string, (() => void)[]>();

  constructor(clock: Pick<Clock, "after">) {
    this.#clock = clock;
  }

  /** Throws when `signal` aborts before it comes. */
  async take(key: string, signal: AbortSignal): Promise<Turn> {
    const queue = this.#waiting.get(key);
    if (!queue) {
      this.#waiting.set(key, []);
      return this.#begin(key);
    }
    let isMine = false;
    let go = (): void => undefined;
    await until(signal, (done) => {
      go = () => {
        isMine = true;
        done();
      };
      queue.push(go);
    });
    if (!isMine) {
      queue.splice(queue.indexOf(go), 1);
      throw signal.reason;
    }
    return this.#begin(key);
  }

  #begin(key: string): Turn {
    let isOver = false;
    const end = (): void => {
      if (isOver) return;
      isOver = true;
      late.cancel();
      this.#next(key);
    };
    const late = this.#clock.after(HELD_MS_MAX, end);
    return { get isOver() { return isOver; }, end };
  }

  #next(key: string): void {
    const next = this.#waiting.get(key)?.shift();
    if (next) next();
    else this.#waiting.delete(key);
  }
}
