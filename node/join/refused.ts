/**
 * That this machine was refused, on its disk: a service manager starts it again every few seconds, for as long as nobody looks, and each request that it makes is an object of the cluster's
 * for an hour.
 */
import { createHash } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { backoffMs } from "../../core/lifecycle/backoff.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import { fileText } from "../../core/lifecycle/file-text.ts";
import type { Log } from "../../core/observe/log.ts";
import { writeDurably } from "../../core/pki/durable-file.ts";

interface Refused { readonly times: number; readonly lastMs: number; /** A hash: another token is another try. */ readonly token: string }

/** At the most so long after somebody has let it in again, it is. */
const AGAIN = { minMs: 10_000, maxMs: 120_000 };

export interface Refusals {
  /** Returns when it is time to ask again with this token: at once unless it was refused lately. */
  patience(token: string, signal: AbortSignal): Promise<void>;
  note(token: string): Promise<void>;
  forget(): Promise<void>;
}

export function refusalsIn(dir: string, { clock, log }: { readonly clock: Pick<Clock, "nowMs" | "sleep">; readonly log: Pick<Log, "warn"> }): Refusals {
  const path = join(dir, "refused.json");
  const hash = (token: string): string => createHash("sha256").update(token).digest("hex").slice(0, 16);

  async function before(token: string): Promise<Refused | undefined> {
    const found = read(await fileText(path));
    return found?.token === hash(token) ? found : undefined;
  }

  return {
    async patience(token, signal) {
      const last = await before(token);
      if (!last) return;
      const wholeMs = backoffMs(last.times, AGAIN);
      const waitMs = Math.min(wholeMs, last.lastMs + wholeMs - clock.nowMs()); // of a clock that was ahead, too
      if (waitMs <= 0) return;
      log.warn("the server has refused this machine, it asks again a little later", { times: last.times, inSeconds: Math.ceil(waitMs / 1000) });
      await clock.sleep(waitMs, signal);
      signal.throwIfAborted();
    },
    async note(token) {
      const refused: Refused = { times: ((await before(token))?.times ?? 0) + 1, lastMs: clock.nowMs(), token: hash(token) };
      await writeDurably(path, `${JSON.stringify(refused)}\n`);
    },
    forget: () => rm(path, { force: true }),
  };
}

function read(text: string | undefined): Refused | undefined {
  try {
    const { times, lastMs, token } = JSON.parse(text ?? "{}") as Partial<Refused>;
    return Number.isInteger(times) && Number.isFinite(lastMs) && token !== undefined ? { times: times!, lastMs: lastMs!, token } : undefined;
  } catch {
    return undefined; // a power cut's
  }
}
