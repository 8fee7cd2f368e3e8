/** When a watch is told how far it has come, though nothing of what it selects has happened. */
import type { Clock } from "../../lifecycle/clock.ts";

/** Between bookmarks of a quiet watch. Source: apiserver storage/cacher bookmarkFrequency */
const BOOKMARK_PERIOD_MS = 60_000;
/** The last one comes so long before the end of the watch: whoever goes on from there has missed least. Source: apiserver storage/cacher/cache_watcher.go nextBookmarkTime */
const BOOKMARK_BEFORE_END_MS = 2_000;
/** Those of many watches fall together: a processor that sleeps is woken once for all. */
const BOOKMARK_STEP_MS = 5_000;

/** When a bookmark is due, of which `ring` tells. What has happened already comes first: a bookmark promises that it was sent. */
export class BookmarkTimer {
  readonly #clock: Clock;
  readonly #lastMs: number;
  readonly #ring: () => void;
  #alarm: { cancel(): void } | undefined;
  isDue = false;

  /** `endMs`: of the watch, in the clock's uptime. */
  constructor(clock: Clock, { endMs, ring }: { readonly endMs: number; readonly ring: () => void }) {
    this.#clock = clock;
    this.#lastMs = endMs - BOOKMARK_BEFORE_END_MS;
    this.#ring = ring;
  }

  wait(): void {
    this.isDue = false;
    const nowMs = this.#clock.uptimeMs();
    const dueMs = Math.min(Math.ceil((nowMs + BOOKMARK_PERIOD_MS) / BOOKMARK_STEP_MS) * BOOKMARK_STEP_MS, this.#lastMs);
    if (dueMs <= nowMs) return;
    this.#alarm = this.#clock.after(dueMs - nowMs, () => {
      this.isDue = true;
      this.#ring();
    });
  }

  cancel(): void { this.#alarm?.cancel(); }
}
