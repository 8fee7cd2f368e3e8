/**
 * Holds back writes to an object that is written again and again: others write it, too, and disagree.
 *
 * Source: kubernetes v1.36 apiserver/pkg/util/flowcontrol/apf_controller.go shouldDelayUpdate
 */

/** Writes to one object within a minute. */
const WRITES_MAX = 6;
const MINUTE_MS = 60_000;

export class WriteLimit {
  readonly #writtenMs = new Map<string, readonly number[]>();

  /** Whether it may be written now; if so, that counts. */
  take(name: string, nowMs: number): boolean {
    const recent = (this.#writtenMs.get(name) ?? []).filter((atMs) => nowMs - atMs <= MINUTE_MS);
    const may = recent.length < WRITES_MAX;
    this.#writtenMs.set(name, may ? [...recent, nowMs] : recent);
    return may;
  }

  /** Only these are there any more. */
  keep(names: ReadonlySet<string>): void {
    for (const name of this.#writtenMs.keys()) if (!names.has(name)) this.#writtenMs.delete(name);
  }
}
