/**
 * A token on the command line is for this process alone: what a process was called with everybody on the machine may read, and with the token join a machine. k3s hides all arguments.
 *
 * Linux: /proc/self/mem is what /proc/PID/cmdline is read from, between arg_start and arg_end. Where there is none, nothing is hidden.
 *
 * API: proc_pid_stat(5), proc_pid_mem(5)
 */
import { closeSync, openSync, readFileSync, writeSync } from "node:fs";

const TOKEN = Buffer.from("--token");
const NUL = 0, EQUALS = 0x3d;
const HIDDEN = 0x2a; // *
/** Of what follows the program's name in /proc/PID/stat, which is its second field. */
const ARG_START = 48 - 3;

export function hideToken(): void {
  try {
    const cmdline = readFileSync("/proc/self/cmdline"), stat = readFileSync("/proc/self/stat", "latin1");
    const argStart = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[ARG_START]);
    const values = tokensIn(cmdline);
    if (!(argStart > 0) || values.length === 0) return;
    const memory = openSync("/proc/self/mem", "r+");
    try {
      for (const [from, to] of values) writeSync(memory, Buffer.alloc(to - from, HIDDEN), 0, to - from, argStart + from);
    } finally {
      closeSync(memory);
    }
  } catch {
    // it is not Linux, or /proc is not as usual
  }
}

/** Where its values begin and end. Pure. */
export function tokensIn(cmdline: Buffer): (readonly [number, number])[] {
  const found: (readonly [number, number])[] = [];
  let isNext = false;
  for (let at = 0; at < cmdline.length; ) {
    const end = cmdline.indexOf(NUL, at) < 0 ? cmdline.length : cmdline.indexOf(NUL, at);
    const argument = cmdline.subarray(at, end);
    if (isNext) found.push([at, end]);
    else if (argument.subarray(0, TOKEN.length).equals(TOKEN) && argument[TOKEN.length] === EQUALS) found.push([at + TOKEN.length + 1, end]);
    isNext = !isNext && argument.equals(TOKEN);
    at = end + 1;
  }
  return found.filter(([from, to]) => to > from);
}
