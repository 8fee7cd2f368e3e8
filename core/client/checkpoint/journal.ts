/**
 * A durable map of text to JSON text in one file (journal-file.ts), for what can be asked for again and only saves the asking: gentle on flash.
 * Changes wait in memory, each as long as its haste allows, and go to the disk together.
 */
import type { Clock } from "../../lifecycle/clock.ts";
import type { Runnable } from "../../lifecycle/run-all.ts";
import type { Log } from "../../observe/log.ts";
import { JournalFile } from "./journal-file.ts";

/**
 * How soon it is on the disk, together with all that waits.
 *
 *   soon      within about a second
 *   thrifty   so too, unless there was much of that lately: then within half a minute
 *   later     within half a minute
 */
export type Haste = "soon" | "thrifty" | "later";

export interface Journal extends Runnable {
  keys(prefix: string): readonly string[];
  /** JSON text. */
  get(key: string): string | undefined;
  /** What is the same already is not written. */
  put(key: string, json: string, haste: Haste): void;
  /** `erase`: its text does not stay in the file either, and soon. */
  delete(key: string, options: { readonly erase: boolean }): void;
  /** Writes what waits. */
  flush(): Promise<void>;
}

interface Options { readonly path: string; readonly clock: Clock; readonly log: Log }

const SOON_MS = 1_000;
const LATER_MS = 30_000;
const RETRY_MS = 60_000;
/** Thrifty writes that need not wait, one more each `LATER_MS`: an endpoint that comes and goes all day wears out the flash no more than if all waited. */
const THRIFTY_MAX = 10;

/** Reads the file, if there is one. Call it before anything else uses the directory. */
export function openJournal(options: Options): Journal { return new WaitingJournal(options); }

class WaitingJournal implements Journal {
  readonly name = "checkpoint";
  readonly #options: Options;
  readonly #file: JournalFile;
  readonly #waiting = new Map<string, string | undefined>(); // not written yet; undefined: to be deleted
  #erasing = false; // what has been deleted must not stay in the file
  #alarm: { readonly dueMs: number; cancel(): void } | undefined; // for the next flush
  #flushing: Promise<void> = Promise.resolve(); // one at a time
  #stopped = false;
  #allowance = THRIFTY_MAX; // of thrifty writes, as of #allowanceMs
  #allowanceMs: number;

  constructor(options: Options) {
    this.#options = options;
    this.#file = new JournalFile(options);
    this.#allowanceMs = options.clock.uptimeMs();
  }

  keys(prefix: string): readonly string[] {
    return [...new Set([...this.#file.keys(), ...this.#waiting.keys()])].filter((key) => key.startsWith(prefix) && (!this.#waiting.has(key) || this.#waiting.get(key) !== undefined));
  }

  get(key: string): string | undefined { return this.#waiting.has(key) ? this.#waiting.get(key) : this.#file.get(key); }

  put(key: string, json: string, haste: Haste): void {
    if (this.get(key) === json) return;
    this.#waiting.set(key, json);
    this.#schedule(this.#delayMs(haste));
  }

  delete(key: string, { erase }: { readonly erase: boolean }): void {
    if (this.get(key) === undefined) return;
    this.#waiting.set(key, undefined);
    this.#erasing ||= erase;
    this.#schedule(this.#delayMs(erase ? "soon" : "thrifty"));
  }

  flush(): Promise<void> {
    const { path, log } = this.#options;
    this.#alarm?.cancel();
    this.#alarm = undefined;
    this.#flushing = this.#flushing.then(() => this.#write()).catch((error: unknown) => {
      log.warn("the checkpoint cannot be written, next try soon", { path, error });
      this.#schedule(RETRY_MS);
    });
    return this.#flushing;
  }

  async run(signal: AbortSignal, ready: () => void): Promise<void> {
    ready();
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    this.#stopped = true;
    await this.flush();
  }

  #delayMs(haste: Haste): number {
    if (haste !== "thrifty") return haste === "soon" ? SOON_MS : LATER_MS;
    const nowMs = this.#options.clock.uptimeMs();
    if (this.#alarm && this.#alarm.dueMs <= nowMs + SOON_MS) return SOON_MS; // goes along, and costs nothing
    this.#allowance = Math.min(THRIFTY_MAX, this.#allowance + (nowMs - this.#allowanceMs) / LATER_MS);
    this.#allowanceMs = nowMs;
    if (this.#allowance < 1) return LATER_MS;
    this.#allowance--;
    return SOON_MS;
  }

  #schedule(delayMs: number): void {
    const { clock } = this.#options;
    const dueMs = clock.uptimeMs() + delayMs;
    if (this.#stopped || (this.#alarm && this.#alarm.dueMs <= dueMs)) return;
    this.#alarm?.cancel();
    const { cancel } = clock.after(delayMs, () => void this.flush());
    this.#alarm = { dueMs, cancel };
  }

  async #write(): Promise<void> {
    if (this.#waiting.size === 0 && !this.#erasing) return;
    const batch = new Map(this.#waiting);
    if (this.#erasing || this.#file.isMostlyPast) await this.#rewrite(batch);
    else await this.#file.append(batch);
    for (const [key, json] of batch) if (this.#waiting.get(key) === json) this.#waiting.delete(key);
  }

  async #rewrite(batch: ReadonlyMap<string, string | undefined>): Promise<void> {
    this.#erasing = false; // what is deleted meanwhile is another rewrite's
    try {
      await this.#file.rewrite(batch);
    } catch (error) {
      this.#erasing = true;
      throw error;
    }
  }
}
