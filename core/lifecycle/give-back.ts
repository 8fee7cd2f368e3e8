/**
 * Memory that work leaves behind and nobody needs any more: what was kept in case it is asked for again, garbage that the engine would keep until it wants the room, and the
 * machine code of what ran often for a while, starting up above all. It is given back when the process has little else to do; machine code when it has next to nothing.
 */
import type { Clock } from "./clock.ts";
import type { Runnable } from "./run-all.ts";

export interface GiveBackOptions {
  readonly clock: Clock;
  /** Processor time of all threads of this process so far. */
  readonly cpuMs: () => number;
  /** How long it has waited for a processor so far; 0 where nobody tells. Who waits is not at rest, however little he gets done beside others. */
  readonly waitedMs: () => number;
  /** Of all objects, of which garbage is looked for. */
  readonly heapBytes: () => number;
  /** Lets go of what has not been asked for since this was last called. Returns about how many bytes. */
  readonly forget: () => number;
  /** Has garbage taken away, beside what runs. */
  readonly collect: () => void;
  /** Takes it away now, and compiled code too, which is compiled again when it is needed: everything waits meanwhile, some 30 ms for each 100 MB of objects. */
  readonly shrink: () => void;
}

const PERIOD_MS = 10_000;
const FORGET_EVERY = 3;
/** A node with a few pods takes one to three per cent of a processor: compiled code may go. */
const QUIET_CPU = 0.05;
/** A server of a thousand nodes at rest takes a fifth of one: garbage may go, if it is this many times as much, because somebody waits meanwhile. */
const CALM_CPU = 0.3;
const CALM_TIMES = 3;
/** So much work makes garbage worth looking for. */
const COLLECT_CPU_MS = 4_000;
const COLLECT_BYTES = 4 * 1024 * 1024;
/** Of more objects everybody would wait for long, and compiled code is little beside them. */
const SHRINK_HEAP_BYTES_MAX = 256 * 1024 * 1024;
/** What has just started is not over with it. */
const STARTED_MS = 60_000;
/** So much work was worth being compiled for: to do that again must not be what all time goes into. */
const SHRINK_CPU_MS = 60_000;

export function giveBack({ clock, cpuMs, waitedMs, heapBytes, forget, collect, shrink }: GiveBackOptions): Runnable {
  async function run(signal: AbortSignal, ready: () => void): Promise<void> {
    ready();
    const startMs = clock.uptimeMs();
    let wantedMs = cpuMs() + waitedMs(), collectedMs = 0, shrunkMs: number | undefined;
    let bytes = 0, tick = 0;
    for await (const _ of clock.every(PERIOD_MS, signal)) {
      if (tick++ % FORGET_EVERY === 0) bytes += forget();
      const nowMs = cpuMs(), wanted = nowMs + waitedMs();
      const busy = (wanted - wantedMs) / PERIOD_MS;
      wantedMs = wanted;
      if (busy >= CALM_CPU || tick === 1) continue;
      const isQuiet = busy < QUIET_CPU, times = isQuiet ? 1 : CALM_TIMES;
      if (isQuiet && (shrunkMs === undefined ? clock.uptimeMs() - startMs >= STARTED_MS : nowMs - shrunkMs >= SHRINK_CPU_MS) && heapBytes() <= SHRINK_HEAP_BYTES_MAX) {
        shrink();
        shrunkMs = collectedMs = nowMs;
        bytes = 0;
      } else if (nowMs - collectedMs >= COLLECT_CPU_MS * times || bytes >= COLLECT_BYTES * times) {
        collect();
        collectedMs = nowMs;
        bytes = 0;
      }
    }
  }
  return { name: "memory given back", run };
}
