/**
 * Carries out a plan for a pod: what to kill, then the sandbox, then what to start, in the plan's order. Decides nothing but what an error makes
 * it decide: a plain init container that cannot be started holds up those after it, anything else does not.
 *
 * Source: kubernetes v1.36 pkg/kubelet/kuberuntime/kuberuntime_manager.go (SyncPod)
 */
import type { Pod } from "../../core/api/gen/core.v1.ts";
import { settleAll } from "../../core/lifecycle/settle-all.ts";
import type { PodSandboxConfig } from "../cri/gen/runtime.v1.ts";
import { containerHash } from "./containers/labels.ts";
import type { KubeletContext } from "./context.ts";
import { type CrashBackoff, formatSeconds } from "./crash-backoff.ts";
import { removeContainer } from "./garbage.ts";
import { ImageError } from "./images/puller.ts";
import { killContainer, killPod } from "./kill.ts";
import type { PodPlan } from "./plan.ts";
import { containerReference, formatPod, isHostNetwork, isSidecar, type NamedContainer, podReference, usesUserNamespace } from "./pod-spec.ts";
import { containerResources } from "./resources/linux-resources.ts";
import { podIps, readRuntimePod, type RuntimePod } from "./runtime-pod.ts";
import { ensureImage, majorMinor, startContainer, StartError } from "./start-container.ts";
import { sandboxConfigOf, startSandbox } from "./start-sandbox.ts";
import type { WaitingReason } from "./status/container-status.ts";
import type { ReadyVolume } from "./volumes/ready-volume.ts";

export interface Applied {
  /** Containers that could not be started, and why. Those that could are not in it. */
  readonly waiting: ReadonlyMap<string, WaitingReason>;
  readonly started: readonly string[];
  /** When it is worth trying those again; undefined: nothing waits. */
  readonly retryAtMs: number | undefined;
  /** Why running containers do not have the limits they are to have; undefined: they have. */
  readonly resizeError: string | undefined;
}

export interface ApplyFacts {
  readonly pod: Pod;
  readonly runtime: RuntimePod;
  readonly plan: PodPlan;
  readonly volumes: ReadonlyMap<string, ReadyVolume>;
  readonly backoff: CrashBackoff;
  /** The pod's address is known: before its containers ask for it. */
  readonly onSandbox: (runtime: RuntimePod) => void;
}

/** What failed for another reason than waiting is tried again this soon. */
const RETRY_MS = 10_000;
const PULL_ERROR_SHOWN_MS = 5_000;

/** Throws when the pod could not be killed or has no sandbox: an error the worker backs off from. */
export async function applyPlan(context: KubeletContext, facts: ApplyFacts, signal: AbortSignal): Promise<Applied> {
  const { pod, plan } = facts;
  const runtime = await clearTheWay(context, facts, signal);
  const resizeError = await updateAll(context, facts, signal);
  if (plan.reset.length > 0) return { waiting: new Map(), started: [], retryAtMs: context.clock.nowMs(), resizeError };
  const isNew = plan.createSandbox;
  const { sandbox, sandboxId } = isNew ? await newSandbox(context, pod, plan.attempt, signal) : { sandbox: await sandboxConfigOf(context, pod, plan.attempt), sandboxId: plan.sandboxId };
  const now = isNew ? await withSandbox(context, pod, signal) : runtime;
  if (isNew) facts.onSandbox(now);
  const applied = await startAll(context, { ...facts, runtime: now, volumes: facts.volumes }, { sandbox, sandboxId }, signal);
  if (isNew && applied.waiting.size > 0 && usesUserNamespace(pod)) context.metrics.startedUserNamespacedPodsError(); // also when a container is what did not start
  return { ...applied, resizeError };
}

/** One after the other, to the first that the runtime refuses: why. What else is to be done for the pod does not wait for it. */
async function updateAll({ cri, machine, placement }: KubeletContext, { pod, plan }: ApplyFacts, signal: AbortSignal): Promise<string | undefined> {
  try {
    for (const { container, spec } of plan.update) await cri.call("RuntimeService/UpdateContainerResources", {
      container_id: container.id, linux: { ...containerResources(pod, spec.container, machine), ...placement.pinning(pod.metadata.uid, spec.container.name) },
    }, { signal });
    return undefined;
  } catch (error) {
    signal.throwIfAborted();
    return (error as Error).message;
  }
}

async function clearTheWay(context: KubeletContext, { pod, runtime, plan }: ApplyFacts, signal: AbortSignal): Promise<RuntimePod> {
  const { cri, clock, events, log, metrics, settings } = context;
  const deps = { cri, clock, events, log, metrics, version: majorMinor(settings.version) };
  if (plan.createSandbox && plan.sandboxId !== "") events.event(podReference(pod), "Normal", "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.");
  for (const { container, spec, alive } of plan.reset) {
    if (alive) await killContainer(deps, { pod, runtime, container, spec, message: "killing", reason: "RestartAllContainers", graceSeconds: 0 }, signal);
    await removeContainer(context, container, signal, { keepLog: true });
  }
  if (!plan.killPod) {
    await settleAll(plan.kill.map(({ container, spec, message, reason }) => killContainer(deps, { pod, runtime, container, spec, message, reason }, signal)));
    return runtime;
  }
  await killPod(deps, pod, runtime, { graceSeconds: undefined, signal });
  if (!plan.createSandbox) return runtime;
  const init = new Set((pod.spec.initContainers ?? []).map(({ name }) => name));
  await settleAll(runtime.containers.filter(({ name }) => init.has(name)).map((container) => removeContainer(context, container, signal, { keepLog: true }))); // they run again, from the first, and are counted on
  return runtime;
}

async function newSandbox(context: KubeletContext, pod: Pod, attempt: number, signal: AbortSignal): Promise<{ readonly sandbox: PodSandboxConfig; readonly sandboxId: string }> {
  try {
    const problem = isHostNetwork(pod) ? undefined : context.networkProblem();
    if (problem !== undefined) {
      context.events.event(podReference(pod), "Warning", "NetworkNotReady", `network is not ready: ${problem}`);
      throw new Error(`network is not ready: ${problem}`);
    }
    const sandbox = await sandboxConfigOf(context, pod, attempt);
    return { sandbox, sandboxId: await startSandbox(context, pod, sandbox, signal) };
  } catch (cause) {
    signal.throwIfAborted();
    context.metrics.startedPodsError();
    if (usesUserNamespace(pod)) context.metrics.startedUserNamespacedPodsError();
    const { message } = cause as Error;
    if (!message.startsWith("network is not ready")) context.events.event(podReference(pod), "Warning", "FailedCreatePodSandBox", `Failed to create pod sandbox: ${message}`);
    throw new Error(`failed to "CreatePodSandbox" for "${formatPod(pod)}" with CreatePodSandboxError: "Failed to create sandbox for pod \\"${formatPod(pod)}\\": ${message}"`, { cause });
  }
}

/** The pod as it is once it has one. */
async function withSandbox({ cri, events }: KubeletContext, pod: Pod, signal: AbortSignal): Promise<RuntimePod> {
  try {
    return await readRuntimePod(cri, pod.metadata.uid, signal);
  } catch (error) {
    signal.throwIfAborted();
    events.event(podReference(pod), "Warning", "FailedPodSandBoxStatus", `Unable to get pod sandbox status: ${(error as Error).message}`);
    throw error;
  }
}

async function startAll(context: KubeletContext, { pod, runtime, plan, volumes, backoff }: ApplyFacts, { sandbox, sandboxId }: { readonly sandbox: PodSandboxConfig; readonly sandboxId: string }, signal: AbortSignal): Promise<Omit<Applied, "resizeError">> {
  const waiting = new Map<string, WaitingReason>();
  const started: string[] = [];
  const retries: number[] = [];
  let heldUp = false;

  for (const spec of plan.start) {
    if (heldUp) break;
    const { container, kind } = spec;
    const holdsUp = kind === "init" && !isSidecar(container);
    const crash = crashWait(context, pod, spec, runtime, backoff);
    if (crash) {
      waiting.set(container.name, { reason: "CrashLoopBackOff", message: crash.message });
      retries.push(crash.untilMs);
      heldUp = holdsUp;
      continue;
    }
    try {
      context.metrics.startedContainers(kind);
      const ready = await withImages(context, { pod, spec, sandbox }, volumes, signal);
      await countingImageVolumes(context, container, ready, async () => await startContainer(context, { pod, spec, runtime, sandboxId, sandbox, podIps: podIps(runtime), volumes: ready }, signal));
      started.push(container.name);
    } catch (error) {
      if (!(error instanceof StartError)) throw error;
      context.metrics.startedContainersError(kind, error.reason);
      waiting.set(container.name, { reason: error.reason, message: error.message });
      retries.push(retryAfter(error.reason, context.images.waitsUntilMs(pod.metadata.uid, container.image ?? ""), context.clock.nowMs()));
      heldUp = holdsUp;
    }
  }
  return { waiting, started, retryAtMs: retries.length > 0 ? Math.min(...retries) : undefined };
}

/** A failed pull shows its error for a moment, and from then on that it waits. */
function retryAfter(reason: StartError["reason"], pullAtMs: number | undefined, nowMs: number): number {
  if (pullAtMs === undefined) return nowMs + RETRY_MS;
  return reason === "ImagePullBackOff" ? pullAtMs : Math.min(pullAtMs, nowMs + PULL_ERROR_SHOWN_MS);
}

/** Whether the container ended too recently to be started again; if not, its next wait will be longer. */
function crashWait({ clock, events }: KubeletContext, pod: Pod, spec: NamedContainer, runtime: RuntimePod, backoff: CrashBackoff): { readonly message: string; readonly untilMs: number } | undefined {
  const { container } = spec;
  const ended = runtime.containers.find(({ name, state }) => name === container.name && state === "exited");
  if (!ended) return undefined;
  const key = `${container.name}/${containerHash(container)}/${JSON.stringify(container.resources ?? {})}`; // with other resources it may run: it does not wait for what was before
  const wait = backoff.waiting(key, ended.finishedAtMs, clock.nowMs());
  if (!wait) {
    backoff.retried(key, ended.finishedAtMs, clock.nowMs());
    return undefined;
  }
  events.event(containerReference(pod, spec), "Warning", "BackOff", `Back-off restarting failed container ${container.name} in pod ${formatPod(pod)}`);
  return { message: `back-off ${formatSeconds(wait.delayMs)} restarting failed container=${container.name} pod=${formatPod(pod)}`, untilMs: wait.untilMs };
}

async function countingImageVolumes({ metrics }: KubeletContext, { volumeMounts = [] }: NamedContainer["container"], volumes: ReadonlyMap<string, ReadyVolume>, start: () => Promise<void>): Promise<void> {
  const mounts = volumeMounts.filter(({ name }) => volumes.get(name)?.image);
  const count = (failed: boolean): void => metrics.imageVolumes({ requested: new Set(mounts.map(({ name }) => name)).size, mounted: mounts.length, failed });
  try {
    await start();
    count(false);
  } catch (error) {
    count(error instanceof StartError && error.reason === "CreateContainerError" && error.message.startsWith("ImageVolumeMountFailed"));
    throw error;
  }
}

/** Pulls what this container mounts as image volumes, which are the pod's; from then on they are named by id. */
async function withImages(context: KubeletContext, { pod, spec, sandbox }: { readonly pod: Pod; readonly spec: NamedContainer; readonly sandbox: PodSandboxConfig }, volumes: ReadonlyMap<string, ReadyVolume>, signal: AbortSignal): Promise<ReadonlyMap<string, ReadyVolume>> {
  const mounted = new Set((spec.container.volumeMounts ?? []).map(({ name }) => name));
  const wanted = [...volumes].filter(([name, { image }]) => image && mounted.has(name));
  if (wanted.length === 0) return volumes;
  const result = new Map(volumes);
  for (const [name, volume] of wanted) {
    try {
      const image = await ensureImage(context, { pod, sandbox }, { about: podReference(pod), image: volume.image!.reference, policy: volume.image!.policy }, signal);
      result.set(name, { ...volume, image: { reference: image.id ?? "", policy: volume.image!.policy } });
    } catch (cause) {
      signal.throwIfAborted();
      const reason = cause instanceof ImageError ? cause.reason : "CreateContainerError";
      context.events.event(containerReference(pod, spec), "Warning", "Failed", `Error: ${cause instanceof ImageError ? reason : (cause as Error).message}`);
      throw new StartError(reason, (cause as Error).message, cause);
    }
  }
  return result;
}
