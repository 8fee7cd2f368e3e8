/**
 * How many processes, open files and sockets a control group has, of those that are in it and not in one below.
 *
 * Source: kubernetes v1.36 google/cadvisor container/libcontainer/handler.go (processStatsFromProcs)
 */
import { readdirSync, readlinkSync } from "node:fs";
import type { Cgroups } from "../../os/cgroup.ts";

export interface ProcessFigures { readonly processes: number; readonly fileDescriptors: number; readonly sockets: number }

/** Open files that are looked at in one go: some milliseconds, and a proxy has a hundred thousand. */
const AT_ONCE = 2_000;

export async function processFigures(cgroups: Pick<Cgroups, "text">, path: string, proc = "/proc"): Promise<ProcessFigures | undefined> {
  const text = cgroups.text(path, "cpu", "cgroup.procs");
  if (text === undefined) return undefined;
  const pids = text.split("\n").filter((pid) => pid !== "");
  let fileDescriptors = 0, sockets = 0, looked = 0;
  for (const pid of pids) {
    for (const fd of openFiles(`${proc}/${pid}/fd`)) {
      fileDescriptors++;
      if (isSocket(`${proc}/${pid}/fd/${fd}`)) sockets++;
      if (++looked % AT_ONCE === 0) await new Promise(setImmediate);
    }
  }
  return { processes: pids.length, fileDescriptors, sockets };
}

/** How many files a process may have open, by the text of its file of limits; -1: any number. Undefined: it does not say. */
export function openFilesLimit(limits: string): number | undefined {
  const soft = /^Max open files\s+(\S+)/m.exec(limits)?.[1];
  return soft === undefined ? undefined : soft === "unlimited" ? -1 : Number(soft);
}

function openFiles(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return []; // the process has ended
  }
}

function isSocket(path: string): boolean {
  try {
    return readlinkSync(path).startsWith("socket:");
  } catch {
    return false; // closed meanwhile
  }
}
