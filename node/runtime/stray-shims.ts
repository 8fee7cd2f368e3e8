/**
 * Shims that containerd has forgotten. It can lose one whose connection breaks while a container is being made (its client was killed just then): the directory of the task is removed,
 * the process stays, with nobody to end it.
 *
 * A stray is one whose working directory is no more. One that is about to end is in that state as well, for a moment.
 */
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Log } from "../../core/observe/log.ts";
import { removeFoundTwice } from "./found-twice.ts";
import type { ProcessIdentity } from "./process-identity.ts";
import { endShim, type Shim, shimsOf } from "./shims.ts";

/** What /proc shows behind the path of a directory that has been removed. */
const REMOVED = " (deleted)";

interface Options {
  /** containerd's, by which its shims are known. */
  readonly socket: string;
  readonly find?: ((socket: string) => readonly Stray[]) | undefined;
  readonly end?: ((process: ProcessIdentity) => void) | undefined;
}

type Stray = Pick<Shim, "pid" | "startTicks" | "id">;

/** Ends them, until `signal` aborts. */
export async function endStrayShims({ socket, find = strayShims, end = endShim }: Options, { clock, log }: { readonly clock: Pick<Clock, "every">; readonly log: Log }, signal: AbortSignal): Promise<void> {
  await removeFoundTwice({
    what: "shims that containerd has forgotten", find: () => find(socket), keyOf: ({ pid, startTicks }) => `${pid} ${startTicks}`,
    remove(stray) {
      log.warn("containerd has forgotten a shim, ending it", { id: stray.id, pid: stray.pid });
      end(stray);
    },
  }, { clock, log }, signal);
}

/** Shims of this containerd whose task is no more. */
export function strayShims(socket: string): Shim[] {
  return shimsOf(socket).filter(({ directory }) => directory.endsWith(REMOVED));
}
