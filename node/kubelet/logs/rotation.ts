/**
 * Keeps the logs of running containers small: a file that has grown too large is put aside with a time stamp, older ones are compressed, the
 * oldest removed.
 *
 *   0.log   0.log.20260102-030405   0.log.20260102-020405.gz   …   at most `filesMax` together
 *
 * Source: kubernetes v1.36 pkg/kubelet/logs/container_log_manager.go
 */
import { createReadStream, createWriteStream } from "node:fs";
import { readdir, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import { ifThere } from "../../../core/lifecycle/if-there.ts";
import type { Runnable } from "../../../core/lifecycle/run-all.ts";
import type { Log } from "../../../core/observe/log.ts";
import { type Cri, isCriNotFound } from "../../cri/client.ts";

interface RunningLog { readonly containerId: string; readonly path: string }

interface Deps {
  readonly cri: Pick<Cri, "call">;
  readonly clock: Clock;
  readonly log: Log;
  readonly running: () => Iterable<RunningLog>;
  /** Negative: they may grow. */
  readonly bytesMax: number;
  readonly filesMax: number;
  /** How many at once, and how often. */
  readonly workers: number;
  readonly periodMs: number;
}

const COMPRESSED = ".gz";
const UNFINISHED = ".tmp";

export function logRotation(deps: Deps): Runnable {
  const { clock, log, running, workers, periodMs } = deps;

  async function work(waiting: RunningLog[], signal: AbortSignal): Promise<void> {
    for (let one = waiting.pop(); one && !signal.aborted; one = waiting.pop()) {
      const { path } = one;
      await rotateIfLarge(deps, one, signal).catch((error: unknown) => {
        if (!signal.aborted && !isCriNotFound(error)) log.warn("container log not rotated, next try soon", { path, error });
      });
    }
  }

  return {
    name: "log-rotation",
    async run(signal, ready) {
      ready();
      for await (const _ of clock.every(periodMs, signal)) {
        const waiting = [...running()].toReversed();
        await Promise.all(Array.from({ length: workers }, () => work(waiting, signal)));
      }
    },
  };
}

/** Returns whether it was put aside. */
export async function rotateIfLarge({ cri, clock, bytesMax, filesMax }: Pick<Deps, "cri" | "clock" | "bytesMax" | "filesMax">, { containerId, path }: RunningLog, signal: AbortSignal): Promise<boolean> {
  if (path === "" || bytesMax < 0) return false;
  const found = await ifThere(stat(path));
  if (!found) {
    await cri.call("RuntimeService/ReopenContainerLog", { container_id: containerId }, { signal }); // someone removed it
    return false;
  }
  if (found.size < bytesMax) return false;

  const directory = dirname(path);
  const name = basename(path);
  const all = (await readdir(directory)).filter((file) => file.startsWith(`${name}.`));
  const useful = oldestFirst(all.filter((file) => !file.endsWith(UNFINISHED) && !all.includes(`${file}${COMPRESSED}`)), `${name}.${stamp(clock.nowMs())}`);
  const keep = useful.slice(Math.max(0, useful.length - Math.max(0, filesMax - 2)));
  for (const file of all) if (!keep.includes(file)) await rm(join(directory, file), { force: true });
  for (const file of keep) if (!file.endsWith(COMPRESSED)) await compress(join(directory, file));

  const aside = `${path}.${stamp(clock.nowMs())}`;
  await rename(path, aside);
  try {
    await cri.call("RuntimeService/ReopenContainerLog", { container_id: containerId }, { signal });
  } catch (error) {
    await rename(aside, path); // the runtime goes on writing to it: it must stay where readers look
    throw error;
  }
  return true;
}

/** By what their names say, but for those of a time to come: they are of before the clock was set back. `now`: what one would be called now. */
function oldestFirst(files: readonly string[], now: string): string[] {
  const sorted = files.toSorted();
  const isAhead = (file: string): boolean => file.slice(0, now.length) > now;
  return [...sorted.filter(isAhead), ...sorted.filter((file) => !isAhead(file))];
}

async function compress(path: string): Promise<void> {
  const { mode } = await stat(path);
  const unfinished = `${path}${UNFINISHED}`;
  try {
    await pipeline(createReadStream(path), createGzip(), createWriteStream(unfinished, { mode }));
  } catch (error) {
    await rm(unfinished, { force: true }); // a full disk has no room for it
    throw error;
  }
  await rename(unfinished, `${path}${COMPRESSED}`);
  await rm(path, { force: true });
}

/** Go's 20060102-150405, UTC. */
function stamp(ms: number): string {
  return new Date(ms).toISOString().slice(0, 19).replace(/[-:]/g, "").replace("T", "-");
}
