/**
 * Dead containers and sandboxes. Of each container of a living pod the newest dead one is kept, for its status and its log, or as many as the node's settings say;
 * everything older goes. Of a pod that is gone everything goes.
 *
 * Source: kubernetes v1.36 pkg/kubelet/kuberuntime/kuberuntime_gc.go
 */
import { readdir, readlink, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { ifThere } from "../../core/lifecycle/if-there.ts";
import { settleAll } from "../../core/lifecycle/settle-all.ts";
import { isCriNotFound } from "../cri/client.ts";
import type { KubeletContext } from "./context.ts";
import type { Kept } from "./kept.ts";
import { forgetLogDirectory, type LogOwner } from "./logs/log-directories.ts";
import type { RuntimeContainer, RuntimePod, RuntimeSandbox } from "./runtime-pod.ts";
import { countOfLog, logLinkName } from "./start-container.ts";
import { podLogDirectory } from "./volumes/pod-directories.ts";

export interface Garbage { readonly containers: readonly RuntimeContainer[]; readonly sandboxes: readonly RuntimeSandbox[] }

type Context = Pick<KubeletContext, "cri" | "settings" | "log">;

/** What nobody needs any more. `kept`: absent, the pod is gone, or may lose what is left of it. */
export function garbageOf(runtime: RuntimePod, kept: (Kept & { readonly nowMs: number }) | undefined): Garbage {
  const dead = new Map<string, number>(); // by container name
  const containers = runtime.containers.filter(({ name, state, finishedAtMs }) => {
    if (state === "running" || state === "unknown") return false;
    const newer = dead.get(name) ?? 0;
    if (state === "created") return !kept || newer > 0;
    dead.set(name, newer + 1);
    if (!kept || newer === 0) return !kept;
    return kept.perContainer >= 0 && newer >= kept.perContainer && (finishedAtMs > kept.nowMs || kept.nowMs - finishedAtMs >= kept.ageMinMs); // of a time to come: before the clock was set back
  });
  const left = new Set(runtime.containers.filter((container) => !containers.includes(container)).map(({ sandboxId }) => sandboxId));
  const sandboxes = runtime.sandboxes.filter(({ id, ready }, i) => !ready && !left.has(id) && !(kept && i === 0));
  return { containers, sandboxes };
}

export async function removeGarbage(context: Context, garbage: Garbage, signal: AbortSignal): Promise<void> {
  await settleAll(garbage.containers.map((container) => removeContainer(context, container, signal)));
  await settleAll(garbage.sandboxes.map(async ({ id }) => {
    await gone(context.cri.call("RuntimeService/StopPodSandbox", { pod_sandbox_id: id }, { signal })); // one that has only died has its network yet
    await gone(context.cri.call("RuntimeService/RemovePodSandbox", { pod_sandbox_id: id }, { signal }));
  }));
}

/** With its log, unless the next one of its name goes on counting from it; and with those of earlier ones that were left for that. */
export async function removeContainer(context: Context, { id, logPath }: RuntimeContainer, signal: AbortSignal, { keepLog = false }: { readonly keepLog?: boolean } = {}): Promise<void> {
  await removeLogs(logPath, { keepLast: keepLog });
  await gone(context.cri.call("RuntimeService/RemoveContainer", { container_id: id }, { signal }));
  await removeLink(context, id);
}

async function removeLogs(path: string, { keepLast }: { readonly keepLast: boolean }): Promise<void> {
  if (path === "") return;
  const name = basename(path), count = countOfLog(name);
  const isOwn = (file: string): boolean => file === name || file.startsWith(`${name}.`);
  const isEarlier = (file: string): boolean => countOfLog(file) >= 0 && countOfLog(file) < count;
  for (const file of await namesIn(dirname(path))) if (isEarlier(file) || (!keepLast && isOwn(file))) await rm(join(dirname(path), file), { force: true });
}

async function removeLink({ settings: { containerLogsDir } }: Context, id: string): Promise<void> {
  if (containerLogsDir === "") return;
  for (const name of await namesIn(containerLogsDir)) if (name.endsWith(`-${id}.log`)) await rm(join(containerLogsDir, name), { force: true });
}

/** All the logs of a pod that is gone, and the links that led to them. */
export async function removePodLogs({ settings: { dataDir, podLogsDir, containerLogsDir } }: Context, pod: LogOwner): Promise<void> {
  const directory = podLogDirectory(podLogsDir, pod);
  await rm(directory, { recursive: true, force: true });
  await forgetLogDirectory(dataDir, pod.uid);
  if (containerLogsDir === "") return;
  const prefix = logLinkName({ metadata: pod }, "", "").replace(/-\.log$/, "");
  for (const name of await namesIn(containerLogsDir)) {
    if (name.startsWith(prefix) && (await readlink(join(containerLogsDir, name)).catch(() => "" /* no link: not ours */)).startsWith(`${directory}/`)) await rm(join(containerLogsDir, name), { force: true });
  }
}

async function namesIn(directory: string): Promise<readonly string[]> { return (await ifThere(readdir(directory))) ?? []; }

async function gone(call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (error) {
    if (!isCriNotFound(error)) throw error;
  }
}
