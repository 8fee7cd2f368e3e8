/**
 * Shims that containerd has forgotten. It can lose one whose connection breaks while a container is being made (its client was killed just then): the directory of the task is removed,
 * the process stays, with nobody to end it.
 *
 * A shim runs in its task's directory, so a stray is one whose working directory is no more. One that is about to end is in that state as well, for a moment.
 */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Log } from "../../core/observe/log.ts";
import { removeFoundTwice } from "./found-twice.ts";
import { commandLines, identify, type ProcessIdentity, signalProcess } from "./process-identity.ts";

const SHIM = /(^|\/)containerd-shim-runc-v2$/;
/** What /proc shows behind the path of a directory that has been removed. */
const REMOVED = " (deleted)";

interface Options {
  /** containerd's, by which its shims are known. */
  readonly socket: string;
  readonly find?: ((socket: string) => readonly Stray[]) | undefined;
  readonly end?: ((process: ProcessIdentity) => void) | undefined;
}

interface Stray extends ProcessIdentity { readonly id: string }

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

/** With the first processes of its containers, where there are any: they would go on beside those that are made in their place. */
function endShim(shim: ProcessIdentity): void {
  for (const pid of [...childrenOf(shim.pid), shim.pid]) {
    const process = pid === shim.pid ? shim : identify(pid);
    if (process) signalProcess(process, "SIGKILL");
  }
}

/** Shims of this containerd whose task is no more. */
export function strayShims(socket: string): Stray[] {
  return commandLines().flatMap(({ pid, args }) => {
    if (!SHIM.test(args[0] ?? "") || !args.includes(socket) || !directoryOf(pid)?.endsWith(REMOVED)) return [];
    const identity = identify(pid);
    return identity ? [{ ...identity, id: args[args.indexOf("-id") + 1] ?? "" }] : [];
  });
}

function childrenOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((thread) => readFileSync(`/proc/${pid}/task/${thread}/children`, "utf8").split(" ").filter((child) => child !== "").map(Number));
  } catch {
    return []; // it has just ended
  }
}

function directoryOf(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return undefined; // it has just ended
  }
}
