/**
 * What commands have not read when they end. `kubectl exec -i`, and `kubectl cp` to a disk that is full, may send more than pipes hold. containerd tells the end of the output and the exit code
 * once somebody has read the rest, and nobody will: its shim holds both ends of the command's stdin. Here it is read, and thrown away.
 *
 *   <state>/io.containerd.grpc.v1.cri/containers/<container>/io/<n>/<exec>-stdin      what waits for the shim
 *   <state>/io.containerd.runtime.v2.task/k8s.io/<container>/<exec>.pid               the command
 *
 * What a command leaves running may have its stdin, and read on: then nothing is taken.
 */
import { constants, lstatSync, readdirSync, readlinkSync } from "node:fs";
import { open, readdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { Clock } from "../../core/lifecycle/clock.ts";
import { fileTextSync } from "../../core/lifecycle/file-text.ts";
import { ifThere, ifThereSync } from "../../core/lifecycle/if-there.ts";
import type { Log } from "../../core/observe/log.ts";
import { commandLines, parentOf } from "./process-identity.ts";
import { shimsOf } from "./shims.ts";

/** Somebody is waiting for an answer that is there. */
const PERIOD_MS = 5_000;
/** What a pipe holds, and as much again: its writer waits with some more. */
const PIECE_BYTES = 128 * 1024;
/** In one look: somebody may write without end. */
const BYTES_MAX = 1024 * 1024;
const SUFFIX = "-stdin";

interface Paths { readonly state: string; readonly socket: string }
interface Command { readonly container: string; readonly exec: string; readonly pipe: string }

/** Until `signal` aborts. */
export async function readUnreadStdin(paths: Paths, { clock, log }: { readonly clock: Pick<Clock, "every">; readonly log: Log }, signal: AbortSignal): Promise<void> {
  for await (const _ of clock.every(PERIOD_MS, signal)) {
    try {
      for (const command of await commandsOf(paths)) {
        if (!hasEnded(paths, command) || isReadOn(paths, command)) continue;
        const bytes = (await ifThere(readAll(command.pipe))) ?? 0;
        if (bytes > 0) log.debug("a command has ended without reading what was sent to it", { container: command.container, bytes });
      }
    } catch (error) {
      log.warn("could not look for what commands have not read", { error });
    }
  }
}

/** Those that have a stdin. */
async function commandsOf({ state }: Paths): Promise<Command[]> {
  const containers = join(state, "io.containerd.grpc.v1.cri/containers");
  const found: Command[] = [];
  for (const container of (await ifThere(readdir(containers))) ?? []) {
    const places = (await ifThere(readdir(join(containers, container, "io")))) ?? [];
    if (places.length < 2) continue; // its own
    for (const place of places) {
      const directory = join(containers, container, "io", place);
      const name = ((await ifThere(readdir(directory))) ?? []).find((one) => one.endsWith(SUFFIX) && !one.startsWith(container));
      if (name !== undefined) found.push({ container, exec: name.slice(0, -SUFFIX.length), pipe: join(directory, name) });
    }
  }
  return found;
}

function taskOf({ state }: Paths, { container }: Command): string { return join(state, "io.containerd.runtime.v2.task/k8s.io", container); }

/** One that is just being started has no number yet. */
function hasEnded(paths: Paths, command: Command): boolean {
  const pid = pidIn(join(taskOf(paths, command), `${command.exec}.pid`));
  return pid > 0 && parentOf(pid) === undefined;
}

/** Whether somebody reads from a pipe that the shim writes to, and that is not the stdin of a command that runs, or of a container of the pod. */
function isReadOn(paths: Paths, command: Command): boolean {
  const sandboxOf = (task: string): string => (fileTextSync(join(task, "sandbox")) ?? basename(task)).trim();
  const own = taskOf(paths, command), sandbox = sandboxOf(own);
  const shim = shimsOf(paths.socket).find(({ id }) => id === sandbox);
  if (!shim) return true; // nothing is known
  const tasks = readdirSync(dirname(own)).map((name) => join(dirname(own), name)).filter((task) => sandboxOf(task) === sandbox);
  const running = tasks.flatMap((task) => (ifThereSync(() => readdirSync(task)) ?? []).filter((name) => name.endsWith(".pid")).map((name) => pidIn(join(task, name))));
  const others = new Set(running.map((pid) => pipeAt(pid, { fd: "0", end: READ })));
  const written = new Set(pipesOf(shim.pid, WRITE).filter((pipe) => !others.has(pipe)));
  return commandLines().some(({ pid }) => pid !== shim.pid && pipesOf(pid, READ).some((pipe) => written.has(pipe)));
}

/** Of the links in /proc: what may be done with what is open. */
const READ = 0o400, WRITE = 0o200;

function pipesOf(pid: number, end: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => pipeAt(pid, { fd, end }) ?? []);
  } catch {
    return []; // it has just ended
  }
}

function pipeAt(pid: number, { fd, end }: { readonly fd: string; readonly end: number }): string | undefined {
  const link = `/proc/${pid}/fd/${fd}`;
  try {
    const target = readlinkSync(link);
    return target.startsWith("pipe:") && (lstatSync(link).mode & end) !== 0 ? target : undefined;
  } catch {
    return undefined; // closed, or ended
  }
}

/** What is there now. */
async function readAll(path: string): Promise<number> {
  await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const piece = Buffer.alloc(PIECE_BYTES);
  let bytes = 0;
  while (bytes < BYTES_MAX) {
    const { bytesRead } = await file.read(piece).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "EAGAIN") return { bytesRead: 0 };
      throw error;
    });
    if (bytesRead === 0) break;
    bytes += bytesRead;
  }
  return bytes;
}

function pidIn(path: string): number { return Number(fileTextSync(path)); }
