/**
 * Sockets of shims that are no more. A shim takes its own away when it ends in order; one that was killed leaves it, and containerd, which may have forgotten it, never looks there again.
 *
 * A socket that nobody listens on is dead. One that is just being made is in that state as well, for a moment.
 */
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Log } from "../../core/observe/log.ts";
import { removeFoundTwice } from "./found-twice.ts";

/** containerd's, wherever its other files are. */
const DIRECTORY = "/run/containerd/s";

/** Removes them, until `signal` aborts. */
export async function removeDeadSockets({ directory = DIRECTORY }: { readonly directory?: string | undefined }, { clock, log }: { readonly clock: Pick<Clock, "every">; readonly log: Log }, signal: AbortSignal): Promise<void> {
  await removeFoundTwice({
    what: "sockets that shims have left", find: () => deadSockets(directory), keyOf: (path) => path,
    remove(path) {
      log.info("a shim that is no more has left its socket, removed", { path });
      rmSync(path, { force: true });
    },
  }, { clock, log }, signal);
}

async function deadSockets(directory: string): Promise<string[]> {
  if (!existsSync(directory)) return [];
  const bound = new Set(readFileSync("/proc/net/unix", "utf8").split("\n").map((line) => line.slice(line.indexOf("/"))));
  const silent = readdirSync(directory, { withFileTypes: true }).filter((entry) => entry.isSocket()).map(({ name }) => join(directory, name)).filter((path) => !bound.has(path));
  const refused = await Promise.all(silent.map(isRefused)); // who listens may be in another network namespace
  return silent.filter((_, at) => refused[at]);
}

function isRefused(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path, () => { socket.destroy(); resolve(false); });
    socket.on("error", (error: NodeJS.ErrnoException) => resolve(error.code === "ECONNREFUSED"));
  });
}
