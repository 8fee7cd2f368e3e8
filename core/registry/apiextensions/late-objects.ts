/**
 * Objects that come when their definition has gone: whoever makes one was let in before, and then a webhook took its time, or it was at another server, which had not heard of the end yet.
 * Nobody would see them until there is a definition of that name again, whose first objects they would be: they go as those before them did.
 *
 * Upstream leaves them in the store.
 */
import type { Clock } from "../../lifecycle/clock.ts";
import { type WorkQueue, workQueue } from "../../lifecycle/work-queue.ts";
import type { ResourceStore } from "../generic/store.ts";

/** So long one may still come: a request takes a minute at most. */
const LATE_MS = 60_000;

interface Followed { readonly store: ResourceStore; stop(): void }

export class LateObjects {
  /** Names of definitions of which some have come, perhaps. */
  readonly queue: WorkQueue<string>;
  readonly #clock: Clock;
  readonly #followed = new Map<string, Followed>();

  constructor(clock: Clock) {
    this.#clock = clock;
    this.queue = workQueue(clock);
  }

  /** From here on what comes to the store of a definition that is about to go is looked at. */
  follow(name: string, store: ResourceStore): void {
    this.#followed.get(name)?.stop();
    const ignore = store.cache.listen(({ type }) => { if (type !== "DELETED") this.queue.add(name); });
    const followed: Followed = {
      store,
      stop: () => {
        end.cancel();
        ignore();
        if (this.#followed.get(name) === followed) this.#followed.delete(name);
      },
    };
    const end = this.#clock.after(LATE_MS, () => followed.stop());
    this.#followed.set(name, followed);
    this.queue.add(name);
  }

  /** Where there is something that came late; undefined: nobody looks for that any more. */
  storeOf(name: string): ResourceStore | undefined { return this.#followed.get(name)?.store; }

  stop(): void {
    for (const followed of [...this.#followed.values()]) followed.stop();
  }
}
