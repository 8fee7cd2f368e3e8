/**
 * Containers whose end has not been told. A shim that hangs, or has lost that a process ended, leaves containerd sure that it runs: nothing starts in its place, and a pod that is deleted
 * stays for ever. When the shim ends containerd counts all of its containers as ended, and the pod goes its way.
 *
 * Of each task there is a directory until its end has been heard of, with
 *
 *   init.pid   the number of its first process, a child of the shim
 *   sandbox    the id of the pod's sandbox, by which its shim goes; not there in the sandbox's own
 *
 * so a missed end is a directory without such a process, of a task that containerd says runs. One that has just ended is in that state as well, for a moment.
 */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Log } from "../../core/observe/log.ts";
import type { Cri } from "../cri/client.ts";
import { removeFoundTwice } from "./found-twice.ts";
import { parentOf } from "./process-identity.ts";
import { endShim, type Shim, shimsOf } from "./shims.ts";

interface MissedExit { readonly id: string; readonly shim: Shim }

/** Ends the shims of such containers, until `signal` aborts. `socket`: containerd's, by which its shims are known. */
export async function endShimsThatMissedExits({ socket }: { readonly socket: string }, { cri, clock, log }: { readonly cri: Pick<Cri, "call">; readonly clock: Pick<Clock, "every">; readonly log: Log }, signal: AbortSignal): Promise<void> {
  await removeFoundTwice({
    what: "containers whose end was missed", keyOf: ({ id }) => id,
    async find() {
      const missed = endedTasks(shimsOf(socket));
      if (missed.length === 0) return [];
      const running = await runningTasks(cri, signal);
      return missed.filter(({ id }) => running.has(id));
    },
    remove({ id, shim }) {
      log.warn("a container has ended and containerd does not know, ending its shim", { id, sandbox: shim.id, pid: shim.pid });
      endShim(shim);
    },
  }, { clock, log }, signal);
}

/** Tasks whose first process is no more, though their directory is there. */
function endedTasks(shims: readonly Shim[]): MissedExit[] {
  const shimOf = new Map(shims.map((shim) => [shim.id, shim]));
  const places = new Set(shims.map(({ directory }) => dirname(directory)));
  return [...places].flatMap((place) => readdirSync(place).flatMap((id) => {
    const shim = shimOf.get(textOf(join(place, id, "sandbox")) ?? id);
    const first = Number(textOf(join(place, id, "init.pid")));
    return shim && first > 0 && parentOf(first) !== shim.pid ? [{ id, shim }] : [];
  }));
}

/** What containerd says runs: containers and sandboxes, by id. */
async function runningTasks(cri: Pick<Cri, "call">, signal: AbortSignal): Promise<ReadonlySet<string>> {
  const [{ containers = [] }, { items = [] }] = await Promise.all([
    cri.call("RuntimeService/ListContainers", { filter: { state: { state: "CONTAINER_RUNNING" } } }, { signal }),
    cri.call("RuntimeService/ListPodSandbox", { filter: { state: { state: "SANDBOX_READY" } } }, { signal }),
  ]);
  return new Set([...containers, ...items].map(({ id = "" }) => id));
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    return undefined; // not there, or no more
  }
}
