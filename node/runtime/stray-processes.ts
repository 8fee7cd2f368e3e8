/**
 * Processes of containers that containerd counts as ended, or does not know. It takes a container whose state it could not ask for when it began for one that has ended, and when the
 * runtime's program was damaged just then, or would not run, that was all of them: what was started in their place met their ports, files and locks.
 *
 * Such a process is a child of a shim, in a control group named by a container that does not run. One that is being made, or has just ended, is in that state as well, for a moment.
 */
import { readFileSync } from "node:fs";
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Log } from "../../core/observe/log.ts";
import type { Cri } from "../cri/client.ts";
import { removeFoundTwice } from "./found-twice.ts";
import { identify, type ProcessIdentity, signalProcess } from "./process-identity.ts";
import { childrenOf, shimsOf } from "./shims.ts";

interface Options {
  /** containerd's, by which its shims are known. */
  readonly socket: string;
  /** Of the containers in whose control groups a process is, the outermost first. */
  readonly containersOf?: ((pid: number) => readonly string[]) | undefined;
}

interface Stray extends ProcessIdentity { readonly id: string; readonly sandbox: string }

/** Ends them, until `signal` aborts. */
export async function endStrayProcesses({ socket, containersOf = containersOfProcess }: Options, { cri, clock, log }: { readonly cri: Pick<Cri, "call">; readonly clock: Pick<Clock, "every">; readonly log: Log }, signal: AbortSignal): Promise<void> {
  await removeFoundTwice<Stray>({
    what: "processes of containers that have ended", keyOf: ({ pid, startTicks }) => `${pid} ${startTicks}`,
    async find() {
      const children = shimsOf(socket).flatMap(({ pid, id: sandbox }) => childrenOf(pid).flatMap((child) => {
        const process = identify(child);
        return process ? [{ ...process, sandbox, ids: containersOf(child) }] : [];
      }));
      if (children.length === 0) return [];
      const alive = await notEnded(cri, signal);
      return children.flatMap(({ ids, ...process }) => (ids.length > 0 && !ids.some((id) => alive.has(id)) ? [{ ...process, id: ids[0]! }] : []));
    },
    remove(stray) {
      log.warn("a container has ended for containerd and a process of it has not, ending that", { id: stray.id, sandbox: stray.sandbox, pid: stray.pid });
      signalProcess(stray, "SIGKILL");
    },
  }, { clock, log }, signal);
}

/** Containers that run, or are to, and all sandboxes: those are the kubelet's to end. */
async function notEnded(cri: Pick<Cri, "call">, signal: AbortSignal): Promise<ReadonlySet<string>> {
  const [{ containers = [] }, { items = [] }] = await Promise.all([cri.call("RuntimeService/ListContainers", {}, { signal }), cri.call("RuntimeService/ListPodSandbox", {}, { signal })]);
  return new Set([...containers.filter(({ state }) => state !== "CONTAINER_EXITED"), ...items].map(({ id = "" }) => id));
}

function containersOfProcess(pid: number): readonly string[] {
  try {
    return containersIn(readFileSync(`/proc/${pid}/cgroup`, "utf8"));
  } catch {
    return []; // it has just ended
  }
}

/** `text`: of cgroups(7), a line for each hierarchy. A container may have control groups of its own, and containers in them. Those outside of pods are somebody else's, whom containerd serves as well. */
export function containersIn(text: string): readonly string[] {
  const ofPods = text.split("\n").filter((line) => line.includes("/kubepods"));
  return [...new Set(ofPods.flatMap((line) => line.match(/(?<=[/-])[0-9a-f]{64}(?=[/.]|$)/g) ?? []))];
}
