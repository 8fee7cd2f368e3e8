/**
 * Ends containers: preStop, then the stop signal, then SIGKILL, within the grace period. Sidecars go last, in reverse order, each once the
 * containers that need it are gone or time is up.
 *
 * Source: kubernetes v1.36 pkg/kubelet/kuberuntime/{kuberuntime_container,kuberuntime_termination_order}.go
 */
import type { Container, EphemeralContainer, Pod } from "../../core/api/gen/core.v1.ts";
import { asDouble } from "../../core/api/meta/go-integer.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import { settleAll } from "../../core/lifecycle/settle-all.ts";
import type { Log } from "../../core/observe/log.ts";
import type { Cri } from "../cri/client.ts";
import { isCriNotFound } from "../cri/client.ts";
import { type HookDeps, runHook } from "./hooks.ts";
import type { EventRecorder } from "../../core/client/events.ts";
import type { KillReason } from "./plan.ts";
import { allContainers, containerReference, isSidecar, type NamedContainer } from "./pod-spec.ts";
import { podIps, type RuntimeContainer, type RuntimePod } from "./runtime-pod.ts";

export interface KillDeps { readonly cri: Cri; readonly clock: Clock; readonly events: EventRecorder; readonly log: Log; readonly version: string; readonly metrics: HookDeps["metrics"] }

/** A container is always given at least this long. */
const GRACE_SECONDS_MIN = 2;
/** So many fit in the nanoseconds that the runtime reckons with: 292 years. With more it would kill at once. */
const GRACE_SECONDS_MAX = 9_223_372_036;
/** How long the runtime may take on top of the grace period before we stop waiting for its answer. */
const STOP_OVERHEAD_MS = 120_000;

export interface ContainerKill {
  readonly pod: Pod;
  readonly runtime: RuntimePod;
  readonly container: RuntimeContainer;
  readonly spec: NamedContainer;
  readonly message?: string;
  readonly reason?: KillReason;
  readonly graceSeconds?: number | undefined;
  /** Resolves when this container's turn has come. */
  readonly turn?: (graceSeconds: number) => Promise<void>;
}

export async function killContainer(deps: KillDeps, kill: ContainerKill, signal: AbortSignal): Promise<void> {
  const { cri, clock, events } = deps;
  const { pod, container, spec, message = "", reason = "" } = kill;
  const startedMs = clock.uptimeMs();
  const graceSeconds = Math.min(GRACE_SECONDS_MAX, asDouble(kill.graceSeconds ?? gracePeriodSeconds(pod, spec.container, reason)));
  const left = (): number => graceSeconds - Math.floor((clock.uptimeMs() - startedMs) / 1000);
  events.event(containerReference(pod, spec), "Normal", "Killing", message || `Stopping container ${spec.container.name}`);

  const gone = new AbortController();
  const hasHook = spec.container.lifecycle?.preStop && graceSeconds > 0 && container.state === "running";
  const hook = hasHook ? runPreStop(deps, kill, graceSeconds, { signal, gone: gone.signal }) : Promise.resolve();
  await waitAtMost(clock, graceSeconds, hook, signal); // one that takes longer goes on until its container is killed
  signal.throwIfAborted();
  if (kill.turn && left() > 0) await kill.turn(left());
  const timeout = Math.max(GRACE_SECONDS_MIN, left());
  try {
    await cri.call("RuntimeService/StopContainer", { container_id: container.id, timeout }, { signal, timeoutMs: timeout * 1000 + STOP_OVERHEAD_MS });
  } catch (error) {
    if (!isCriNotFound(error)) throw error;
  } finally {
    gone.abort();
  }
  await hook;
}

/** Never throws. */
async function runPreStop({ cri, clock, events, log, metrics, version }: KillDeps, { pod, runtime, container, spec }: ContainerKill, graceSeconds: number, { signal, gone }: { readonly signal: AbortSignal; readonly gone: AbortSignal }): Promise<void> {
  const handler = spec.container.lifecycle!.preStop!;
  const timeoutMs = (graceSeconds + GRACE_SECONDS_MIN) * 1000;
  try {
    await runHook({ cri, clock, events, metrics, version }, { pod, container: spec.container, containerId: container.id, podIp: podIps(runtime)[0] ?? "", handler, timeoutMs }, AbortSignal.any([signal, gone]));
  } catch (error) {
    if (signal.aborted || (handler.sleep && gone.aborted)) return;
    events.event(containerReference(pod, spec), "Warning", "FailedPreStopHook", "PreStopHook failed");
    log.warn("preStop hook failed", { pod: pod.metadata.name, namespace: pod.metadata.namespace, container: spec.container.name, error });
  }
}

/** For `done`, or until the time is up. */
async function waitAtMost(clock: Clock, seconds: number, done: Promise<unknown>, signal: AbortSignal): Promise<void> {
  const waiting = new AbortController();
  await Promise.race([done, clock.sleep(seconds * 1000, AbortSignal.any([signal, waiting.signal]))]);
  waiting.abort();
}

function gracePeriodSeconds({ metadata, spec }: Pod, { startupProbe, livenessProbe }: Container | EphemeralContainer, reason: KillReason): number {
  if (metadata.deletionGracePeriodSeconds !== undefined) return metadata.deletionGracePeriodSeconds;
  const ofProbe = reason === "StartupProbe" ? startupProbe?.terminationGracePeriodSeconds : reason === "LivenessProbe" ? livenessProbe?.terminationGracePeriodSeconds : undefined;
  return ofProbe ?? spec.terminationGracePeriodSeconds ?? GRACE_SECONDS_MIN;
}

/** All containers, then the sandboxes. Throws when something could not be stopped: it is then worth trying again. */
export async function killPod(deps: KillDeps, pod: Pod, runtime: RuntimePod, { graceSeconds, signal }: { readonly graceSeconds: number | undefined; readonly signal: AbortSignal }): Promise<void> {
  const alive = runtime.containers.filter(({ state }) => state === "running" || state === "unknown");
  const specs = new Map(allContainers(pod.spec).map((spec) => [spec.container.name, spec]));
  const order = terminationOrder(pod, alive.map(({ name }) => name), deps.clock, signal);
  await settleAll(alive.map(async (container) => {
    const spec = specs.get(container.name) ?? rememberedSpec(container);
    try {
      await killContainer(deps, { pod, runtime, container, spec, graceSeconds, turn: (seconds) => order.turn(container.name, seconds) }, signal);
    } finally {
      order.ended(container.name);
    }
  }));
  await settleAll(runtime.sandboxes.map(({ id }) => deps.cri.call("RuntimeService/StopPodSandbox", { pod_sandbox_id: id }, { signal }).catch((error: unknown) => {
    if (!isCriNotFound(error)) throw error;
  })));
}

/** Of a container whose spec nobody has any more: the pod was deleted while we were away. */
function rememberedSpec({ name, spec }: RuntimeContainer): NamedContainer {
  return { kind: "container", container: { name, ...(spec.preStop ? { lifecycle: { preStop: spec.preStop } } : {}) } };
}

interface TerminationOrder { turn(name: string, seconds: number): Promise<void>; ended(name: string): void }

/** App containers at once; the last sidecar when they are gone; the one before it when that is gone. Nobody waits for those that were only put in to look around (ephemeral ones). */
function terminationOrder(pod: Pod, alive: readonly string[], clock: Clock, signal: AbortSignal): TerminationOrder {
  const ends = new Map(alive.map((name) => [name, Promise.withResolvers<void>()]));
  const init = pod.spec.initContainers ?? [];
  const position = new Map([...pod.spec.containers.map(({ name }) => [name, init.length] as const), ...init.map((container, i) => [container.name, isSidecar(container) ? i : -1] as const)]);
  return {
    async turn(name, seconds) {
      const mine = position.get(name) ?? -1;
      if (mine < 0) return;
      const before = alive.filter((other) => other !== name && (position.get(other) ?? -1) > mine);
      await waitAtMost(clock, seconds, Promise.all(before.map((other) => ends.get(other)!.promise)), signal);
    },
    ended: (name) => ends.get(name)?.resolve(),
  };
}
