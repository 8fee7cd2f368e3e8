/**
 * What is left here of pods that nobody knows any more: containers, volumes, control groups, logs. It is looked for whenever the runtime has listed its pods; what cannot be removed keeps nothing
 * else, and is tried again then.
 *
 * Source: kubernetes v1.36 pkg/kubelet/kubelet_pods.go HandlePodCleanups
 */
import type { Pod } from "../../core/api/gen/core.v1.ts";
import type { Log } from "../../core/observe/log.ts";
import type { Cri } from "../cri/client.ts";
import { removePodLogs } from "./garbage.ts";
import { notedLogDirectories } from "./logs/log-directories.ts";
import { containerNamed, readRuntimePod, type RuntimePod } from "./runtime-pod.ts";
import type { WorkerDeps } from "./worker-deps.ts";

interface Deps {
  readonly context: WorkerDeps["context"];
  readonly cri: Cri;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** It has a worker. */
  isCaredFor(uid: string): boolean;
  /** Or the runtime has something of it, which is to be ended first. */
  isThere(uid: string): boolean;
  /** Has it ended by a worker of its own. */
  end(pod: Pod): void;
}

/** `inRuntime`: uids of the pods that the runtime has. Throws nothing. */
export async function sweepLeftovers(inRuntime: readonly string[], deps: Deps): Promise<void> {
  const { context, log, signal, isCaredFor, isThere } = deps;
  const attempt = async (work: () => Promise<void>, facts: { readonly uid?: string } = {}): Promise<void> => {
    if (signal.aborted) return;
    await work().catch((error: unknown) => {
      if (!signal.aborted) log.warn("leftovers of pods not removed, next try at the next list", { ...facts, error });
    });
  };
  for (const uid of inRuntime) if (!isCaredFor(uid)) await attempt(() => endOrphan(uid, deps), { uid });
  await attempt(() => removeLeftBehind(deps));
  await attempt(() => context.volumes.sweep(signal));
  await attempt(async () => {
    for (const directory of await notedLogDirectories(context.settings.dataDir)) if (!isThere(directory.uid)) await removePodLogs(context, directory);
  });
}

async function endOrphan(uid: string, { context, cri, log, signal, isCaredFor, end }: Deps): Promise<void> {
  const runtime = await readRuntimePod(cri, uid, signal);
  if (isCaredFor(uid) || (runtime.containers.length === 0 && runtime.sandboxes.length === 0)) return;
  log.info("ending a pod that the API server does not know", { uid, pod: runtime.name, namespace: runtime.namespace });
  end(rememberedPod(runtime));
  context.metrics.orphaned();
}

/** One that cannot be removed does not keep the others. */
async function removeLeftBehind({ context: { volumes, cgroups, userNamespaces, metrics }, log, signal, isThere }: Deps): Promise<void> {
  const left = [...await volumes.leftBehind()].filter((uid) => !isThere(uid));
  let failed = 0;
  for (const uid of left) {
    try {
      await volumes.release(uid, { keepMessages: false, signal });
      cgroups.remove(uid);
      await userNamespaces.release(uid);
    } catch (error) {
      signal.throwIfAborted();
      failed++;
      log.warn("what a pod has left on the disk is not removed, next try at the next list", { uid, error });
    }
  }
  metrics.leftoversRemoved({ all: left.length, failed });
}

/** A pod as its containers remember it. */
function rememberedPod(runtime: RuntimePod): Pod {
  const names = [...new Set(runtime.containers.map(({ name }) => name))];
  const grace = names.flatMap((name) => containerNamed(runtime, name)?.spec.gracePeriodSeconds ?? []);
  return {
    apiVersion: "v1", kind: "Pod", metadata: { name: runtime.name, namespace: runtime.namespace, uid: runtime.uid, resourceVersion: "", creationTimestamp: "" },
    spec: {
      containers: names.map((name) => {
        const preStop = containerNamed(runtime, name)?.spec.preStop;
        return { name, ...(preStop ? { lifecycle: { preStop } } : {}) };
      }),
      ...(grace.length > 0 ? { terminationGracePeriodSeconds: Math.max(...grace) } : {}),
    },
  };
}
