/** KubeletApi over the workers and the runtime: see kubelet-api.ts. The messages are upstream's. Source: kubernetes v1.36 pkg/kubelet/kubelet_pods.go */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { ContainerStatus, Pod } from "../../core/api/gen/core.v1.ts";
import { timestamp } from "../../core/lifecycle/clock.ts";
import type { KubeletContext } from "./context.ts";
import { KubeletApiError, type KubeletApi, type PodName, type StatsSummary } from "./kubelet-api.ts";
import { allContainers, findContainer, isStaticPod } from "./pod-spec.ts";
import type { PodManager } from "./pod-manager.ts";
import type { PodWorker } from "./pod-worker.ts";
import { containerNamed, type RuntimeContainer, summarizeRuntime } from "./runtime-pod.ts";

interface Deps {
  readonly context: KubeletContext;
  readonly manager: PodManager;
  readonly statsSummary: (signal: AbortSignal) => Promise<StatsSummary>;
  readonly cadvisorMetrics: (signal: AbortSignal) => Promise<string>;
  readonly unhealthyReason: () => string | undefined;
  readonly logDir: string;
}

export function kubeletApi({ context: { settings, cri, clock }, manager, statsSummary, cadvisorMetrics, unhealthyReason, logDir }: Deps): KubeletApi {
  function workerOf({ namespace, name, uid }: PodName): PodWorker {
    const found = [...manager.workers()].filter(({ pod }) => pod.metadata.namespace === namespace && pod.metadata.name === name && (!uid || pod.metadata.uid === uid || isStaticPod(pod)));
    const newest = found.toSorted((a, b) => (a.pod.metadata.creationTimestamp < b.pod.metadata.creationTimestamp ? 1 : -1))[0];
    if (!newest) throw new KubeletApiError("pod-not-found", `pod "${name}" does not exist`);
    return newest;
  }

  function withStatus(worker: PodWorker): Pod {
    return { ...worker.pod, status: worker.status };
  }

  /** The container that runs under that name (default: the only, or the first one); `missing`: what is said if none does. */
  function runningContainer(name: PodName, container: string, missing = (wanted: string): string => `container not found ("${wanted}")`): RuntimeContainer {
    const { pod, runtime } = workerOf(name);
    const wanted = container || pod.spec.containers[0]?.name || "";
    const found = containerNamed(runtime, wanted);
    if (found?.state !== "running") throw new KubeletApiError("unavailable", missing(wanted));
    return found;
  }

  function logContainer(name: PodName, container: string, previous: boolean): { readonly worker: PodWorker; readonly found: RuntimeContainer } {
    const worker = workerOf(name);
    const { pod, runtime, status } = worker;
    const full = `${pod.metadata.name}_${pod.metadata.namespace ?? ""}`;
    if (container === "" && allContainers(pod.spec).length > 1) throw new KubeletApiError("bad-request", `a container name must be specified for pod ${pod.metadata.name}`);
    const wanted = container || pod.spec.containers[0]?.name || "";
    if (!findContainer(pod.spec, wanted)) throw new KubeletApiError("container-not-found", `container "${wanted}" not found in pod "${full}"`);
    const all = runtime.containers.filter((one) => one.name === wanted);
    const said = [...(status.containerStatuses ?? []), ...(status.initContainerStatuses ?? []), ...(status.ephemeralContainerStatuses ?? [])].find((one) => one.name === wanted);
    const { terminated: last } = said?.lastState ?? {};
    if (previous) {
      const ended = all[0]?.state === "running" ? all[1] : all.find(({ id, state }) => state === "exited" && !currentId(said)?.endsWith(`//${id}`));
      if (!ended) throw last?.containerID ? removed(last.containerID) : new KubeletApiError("bad-request", `previous terminated container "${wanted}" in pod "${pod.metadata.name}" not found`);
      return { worker, found: ended };
    }
    const found = all.find(({ state }) => state === "running" || state === "exited");
    if (found) return { worker, found };
    throw noLog(said, `container "${wanted}" in pod "${pod.metadata.name}"`);
  }

  return {
    nodeName: settings.nodeName,
    logDir,
    pods: () => [...manager.workers()].filter(({ stage }) => stage !== "finished").map(withStatus),
    pod(name) {
      try {
        return withStatus(workerOf(name));
      } catch (error) {
        if (error instanceof KubeletApiError) return undefined;
        throw error;
      }
    },
    async runningPods(signal) {
      return [...(await summarizeRuntime(cri, signal)).values()].filter(({ running }) => running).map(({ uid, name, namespace }) => ({
        apiVersion: "v1", kind: "Pod", metadata: { name, namespace, uid, creationTimestamp: null },
        spec: { containers: (manager.worker(uid)?.runtime.containers ?? []).filter(({ state }) => state === "running").map((container) => ({ name: container.name, image: container.image })) }, status: {},
      }));
    },
    logFile(name, container, { previous = false }) {
      const { worker, found } = logContainer(name, container, previous);
      return {
        path: found.logPath || join(settings.podLogsDir, `${worker.pod.metadata.namespace ?? ""}_${worker.pod.metadata.name}_${worker.uid}`, found.name, `${found.restartCount}.log`),
        running: () => worker.runtime.containers.find(({ id }) => id === found.id)?.state === "running",
      };
    },
    async exec(name, container, command, { tty = false, stdin = false, stdout = false, stderr = false }, signal) {
      const { id } = runningContainer(name, container);
      const { url = "" } = await cri.call("RuntimeService/Exec", { container_id: id, cmd: [...command], tty, stdin, stdout, stderr: stderr && !tty }, { signal });
      return url;
    },
    async attach(name, container, { stdin = false, stdout = false, stderr = false }, signal) {
      const { id, name: found } = runningContainer(name, container, (wanted) => `container ${wanted} not found in pod ${name.name}_${name.namespace}`);
      const tty = findContainer(workerOf(name).pod.spec, found)?.container.tty ?? false;
      const { url = "" } = await cri.call("RuntimeService/Attach", { container_id: id, tty, stdin, stdout, stderr: stderr && !tty }, { signal });
      return url;
    },
    async portForward(name, ports, signal) {
      const sandbox = workerOf(name).runtime.sandboxes.find(({ ready }) => ready);
      if (!sandbox) throw new KubeletApiError("unavailable", `pod not found ("${name.name}_${name.namespace}")`);
      const { url = "" } = await cri.call("RuntimeService/PortForward", { pod_sandbox_id: sandbox.id, port: [...ports] }, { signal });
      return url;
    },
    async run(name, container, command, signal) {
      const { id } = runningContainer(name, container);
      const { stdout = new Uint8Array(), stderr = new Uint8Array(), exit_code: exitCode = 0 } = await cri.call("RuntimeService/ExecSync", { container_id: id, cmd: [...command] }, { signal, timeoutMs: 0 });
      return { stdout, stderr, exitCode };
    },
    async checkpoint(name, container, timeoutSeconds, signal) {
      const { pod, runtime } = workerOf(name);
      if (!findContainer(pod.spec, container)) throw new KubeletApiError("container-not-found", `container ${container} does not exist`);
      const failed = (why: string): string => `checkpointing of ${name.namespace}/${name.name}/${container} failed (${why})`;
      const found = containerNamed(runtime, container);
      if (found?.state !== "running") throw new KubeletApiError("unavailable", failed(`container ${container} not found`));
      const directory = join(settings.dataDir, "checkpoints");
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const location = join(directory, `checkpoint-${pod.metadata.name}_${pod.metadata.namespace ?? ""}-${container}-${timestamp(clock.nowMs())}.tar`);
      try {
        await cri.call("RuntimeService/CheckpointContainer", { container_id: found.id, location, timeout: timeoutSeconds }, { signal, timeoutMs: timeoutSeconds * 1000 });
      } catch (cause) {
        throw new KubeletApiError("unavailable", failed((cause as Error).message), { cause });
      }
      return location;
    },
    statsSummary,
    cadvisorMetrics,
    unhealthyReason,
  };
}

/** Of the container that is told of now, not as the one before. */
function currentId({ state, containerID }: Partial<ContainerStatus> = {}): string | undefined { return state?.terminated?.containerID ?? (state?.running ? containerID : undefined); }

/** Of a container that the runtime has nothing of, by what is told of it. */
function noLog(said: ContainerStatus | undefined, which: string): KubeletApiError {
  const refused = (why: string): KubeletApiError => new KubeletApiError("bad-request", `${which} ${why}`);
  if (!said) return refused("is not available");
  const { state = {}, lastState, containerID } = said;
  if (state.running) return removed(containerID ?? "");
  const ended = state.terminated?.containerID || lastState?.terminated?.containerID;
  if (state.terminated ?? lastState?.terminated) return ended ? removed(ended) : refused("is terminated");
  if (!state.waiting) return refused("is waiting to start - no logs yet");
  const { reason = "" } = state.waiting;
  return refused(`is waiting to start: ${reason === "ErrImagePull" ? "image can't be pulled" : reason === "ImagePullBackOff" ? "trying and failing to pull image" : reason}`);
}

function removed(containerID: string): KubeletApiError { return new KubeletApiError("no-log", `unable to retrieve container logs for ${containerID}`); }
