/** containerd's shims: one process a pod, in which the runtime's containers have their parent. It runs in its task's directory. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { commandLines, identify, type ProcessIdentity, signalProcess } from "./process-identity.ts";

export interface Shim extends ProcessIdentity {
  /** Of its pod's sandbox. */
  readonly id: string;
  /** As /proc shows it: one that has been removed ends with " (deleted)". */
  readonly directory: string;
}

const SHIM = /(^|\/)containerd-shim-runc-v2$/;

/** Those of the containerd with that socket. */
export function shimsOf(socket: string): Shim[] {
  return commandLines().flatMap(({ pid, args }) => {
    if (!SHIM.test(args[0] ?? "") || !args.includes(socket)) return [];
    const identity = identify(pid), directory = directoryOf(pid);
    return identity && directory ? [{ ...identity, id: args[args.indexOf("-id") + 1] ?? "", directory }] : [];
  });
}

/** With the first processes of its containers, where there are any: they would go on beside those that are made in their place. */
export function endShim(shim: ProcessIdentity): void {
  for (const pid of [...childrenOf(shim.pid), shim.pid]) {
    const process = pid === shim.pid ? shim : identify(pid);
    if (process) signalProcess(process, "SIGKILL");
  }
}

export function childrenOf(pid: number): number[] {
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
