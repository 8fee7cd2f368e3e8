/** Which process is meant, beyond its number: numbers are given again. Source: proc_pid_stat(5). */
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";

export interface ProcessIdentity {
  readonly pid: number;
  /** In clock ticks since the machine booted. */
  readonly startTicks: number;
}

/** The process with that number now; undefined if there is none, or only its remains. */
export function identify(pid: number): ProcessIdentity | undefined {
  const fields = statOf(pid);
  return fields && { pid, startTicks: Number(fields[19]) };
}

/** The number of its parent; undefined if there is no such process, or only its remains. */
export function parentOf(pid: number): number | undefined {
  const fields = statOf(pid);
  return fields && Number(fields[1]);
}

/** From the state on. */
function statOf(pid: number): readonly string[] | undefined {
  const path = `/proc/${pid}/stat`;
  if (!existsSync(path)) return undefined;
  try {
    const stat = readFileSync(path, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" "); // the name before it may hold anything
    return fields[0] === "Z" || fields[0] === "X" ? undefined : fields;
  } catch (error) {
    if (["ENOENT", "ESRCH"].includes((error as NodeJS.ErrnoException).code ?? "")) return undefined; // it ended just now
    throw error;
  }
}

export function isAlive(process: ProcessIdentity): boolean {
  return identify(process.pid)?.startTicks === process.startTicks;
}

/** Every process's command line, by number. */
export function commandLines(): { pid: number; args: readonly string[] }[] {
  return eachProcess((pid) => ({ pid, args: readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").slice(0, -1) }));
}

/** The path of every process's program. */
export function runningPrograms(): string[] {
  return eachProcess((pid) => readlinkSync(`/proc/${pid}/exe`));
}

function eachProcess<T>(look: (pid: number) => T): T[] {
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name)).flatMap((name) => {
    try {
      return [look(Number(name))];
    } catch {
      return []; // it ended while we looked, or is the kernel's own and has no program
    }
  });
}

/** A signal to that very process; one that has ended is fine. */
export function signalProcess(target: ProcessIdentity, signal: NodeJS.Signals): void {
  if (!isAlive(target)) return;
  try {
    process.kill(target.pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
