/**
 * How many pods and containers the runtime starts at a time. Each start takes some 15 MB until it is over (a shim, runc, the network's plugins) and a tenth to a half of a second of
 * a processor. All pods of a small machine at once, as after a reboot, take all its memory, so that programs are read from the disk again and again while they run, until
 * nothing gets on, heartbeats included; one after the other they are there sooner, the first of them above all.
 *
 *   const turns = startTurns({ max: startsAtATime(machine), clock });
 *   await turns.run(() => cri.call("RuntimeService/RunPodSandbox", …), { signal });
 */
import type { Clock } from "../../core/lifecycle/clock.ts";
import { Places } from "../../core/lifecycle/places.ts";

export interface StartTurns {
  /** `begun`: of a pod that has its sandbox, which goes before those that have nothing yet. Throws the signal's reason if that comes before its turn. */
  run<T>(work: () => Promise<T>, how: { readonly signal: AbortSignal; readonly begun?: boolean }): Promise<T>;
}

/** Starts wait for the disk, too, and for the network's plugins. */
const PER_CPU = 2;
/** Of a machine's memory, which is for the pods. */
const BYTES_PER_START = 64 * 1024 * 1024;
const STARTS_MIN = 2;
/** Longer than this a start keeps nobody waiting: it may hang, as those of a pod whose network is broken do, for minutes. */
const TURN_MS_MAX = 30_000;

export function startsAtATime({ cpus, memoryBytes }: { readonly cpus: number; readonly memoryBytes: number }): number {
  return Math.max(STARTS_MIN, Math.min(PER_CPU * cpus, Math.floor(memoryBytes / BYTES_PER_START)));
}

export function startTurns({ max, clock }: { readonly max: number; readonly clock: Pick<Clock, "after"> }): StartTurns {
  const places = new Places(max);
  return {
    async run(work, { signal, begun = false }) {
      await places.take(signal, { urgent: begun });
      let holds = true;
      const handOn = (): void => {
        if (holds) places.give();
        holds = false;
      };
      const late = clock.after(TURN_MS_MAX, handOn);
      try {
        return await work();
      } finally {
        late.cancel();
        handOn();
      }
    },
  };
}
