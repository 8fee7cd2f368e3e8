/**
 * What to do about a pod that should run, from its spec and what the runtime has of it. Pure: no I/O, no clock.
 *
 *   sandbox        there is exactly one that is ready, with the right network: else all is stopped and made anew
 *   init           in order, each to its end; a sidecar (restartPolicy Always) only until it has started, and it stays
 *   app containers all at once, once the last init container is through
 *   ephemeral      once each, never again
 *
 * A container's rule may say that all begin anew (RestartAllContainers): then every container is taken away, and the next plan starts with the first.
 * A container is restarted as its policy says, and when its hash changed or a liveness or startup probe gave up on it.
 *
 * Source: kubernetes v1.36 pkg/kubelet/kuberuntime/kuberuntime_manager.go (computePodActions), kuberuntime_container.go (computeInitContainerActions),
 *         pkg/kubelet/kuberuntime/util/util.go (PodSandboxChanged)
 */
import type { Container, Pod } from "../../core/api/gen/core.v1.ts";
import { isDeleting } from "../../core/api/meta/object-meta.ts";
import { isOfOtherDefinition } from "./containers/labels.ts";
import { allContainers, isHostNetwork, isSidecar, mayRestartAll, type NamedContainer, restartRule, restartsAfter } from "./pod-spec.ts";
import type { ProbeResults } from "./probes/probe-results.ts";
import { containerNamed, type RuntimeContainer, type RuntimePod, type RuntimeSandbox } from "./runtime-pod.ts";

export type KillReason = "" | "RestartAllContainers" | "StartupProbe" | "LivenessProbe" | "Unknown";

export interface ContainerToKill {
  readonly container: RuntimeContainer;
  readonly spec: NamedContainer;
  readonly message: string;
  readonly reason: KillReason;
}

export interface ContainerToReset { readonly container: RuntimeContainer; readonly spec: NamedContainer; readonly alive: boolean }

export interface PodPlan {
  /** Stop every container and sandbox, first. */
  readonly killPod: boolean;
  readonly createSandbox: boolean;
  /** Of the sandbox in use, or the one that is replaced: then the user is told. */
  readonly sandboxId: string;
  readonly attempt: number;
  readonly kill: readonly ContainerToKill[];
  /** Running containers whose limits change. */
  readonly update: readonly { readonly container: RuntimeContainer; readonly spec: NamedContainer }[];
  /** To be ended and taken away, in this order; nothing else is done then. Those whose end asked for it come last: what is left tells us to go on. */
  readonly reset: readonly ContainerToReset[];
  /** In this order. When a plain init container cannot be started, those after it have to wait. */
  readonly start: readonly NamedContainer[];
}

interface Draft { killPod: boolean; kill: ContainerToKill[]; update: { container: RuntimeContainer; spec: NamedContainer }[]; start: NamedContainer[] }

/** What a running container's limits need: see resources/resize.ts. */
export type ResizeDecision = (spec: NamedContainer, seen: RuntimeContainer) => "none" | "update" | "restart";

export interface PlanFacts { readonly pod: Pod; readonly runtime: RuntimePod; readonly probes: ProbeResults; readonly resize?: ResizeDecision }

export function planPod({ pod, runtime, probes, resize = () => "none" }: PlanFacts): PodPlan {
  const { changed, attempt, sandboxId } = sandboxChange(pod, runtime.sandboxes);
  // Before the sandbox: with one of its containers left, a pod that has lost it, as by a reboot, might have had its one run.
  if (restartsAll(pod, runtime)) return { killPod: false, createSandbox: false, sandboxId, attempt, kill: [], update: [], start: [], reset: containersToReset(pod, runtime) };
  if (changed) return planNewSandbox(pod, runtime, { attempt, sandboxId });

  const named = allContainers(pod.spec);
  const draft: Draft = { killPod: false, kill: [], update: [], start: named.filter(({ kind, container }) => kind === "ephemeral" && !containerNamed(runtime, container.name)) };
  const initialized = planInit({ pod, runtime, probes, resize }, draft);
  if (initialized && !draft.killPod) planApp({ pod, runtime, probes, resize }, draft);
  return { killPod: draft.killPod, createSandbox: false, sandboxId, attempt, kill: draft.kill, update: draft.update, start: draft.start, reset: [] };
}

/** Some container has ended in a way that all are to begin anew after. */
export function restartsAll(pod: Pod, runtime: RuntimePod): boolean {
  return mayRestartAll(pod.spec) && [...(pod.spec.initContainers ?? []), ...pod.spec.containers].some((container) => {
    const seen = containerNamed(runtime, container.name);
    return seen?.state === "exited" && restartRule(container, seen.exitCode) === "RestartAllContainers";
  });
}

function containersToReset(pod: Pod, runtime: RuntimePod): ContainerToReset[] {
  const byName = Map.groupBy(runtime.containers, ({ name }) => name);
  const all = (kind: "init" | "container"): (ContainerToReset & { readonly asked: boolean })[] => allContainers(pod.spec).filter((spec) => spec.kind === kind).flatMap((spec) => (byName.get(spec.container.name) ?? []).map((container) => ({
    container, spec, alive: container.state !== "exited", asked: container.state === "exited" && restartRule(spec.container, container.exitCode) === "RestartAllContainers",
  })));
  const ordered = [...all("container"), ...all("init")];
  return [...ordered.filter(({ asked }) => !asked), ...ordered.filter(({ asked }) => asked)].map(({ container, spec, alive }) => ({ container, spec, alive }));
}

/** Whether the pod needs a new sandbox, and the number it would have. */
export function sandboxChange(pod: Pod, sandboxes: readonly RuntimeSandbox[]): { readonly changed: boolean; readonly attempt: number; readonly sandboxId: string } {
  const [newest] = sandboxes;
  if (!newest) return { changed: true, attempt: 0, sandboxId: "" };
  const next = newest.attempt + 1;
  if (sandboxes.filter(({ ready }) => ready).length > 1 || !newest.ready) return { changed: true, attempt: next, sandboxId: newest.id };
  if (newest.hostNetwork !== isHostNetwork(pod)) return { changed: true, attempt: next, sandboxId: "" };
  if (!newest.hostNetwork && newest.ips.length === 0) return { changed: true, attempt: next, sandboxId: newest.id };
  return { changed: false, attempt: newest.attempt, sandboxId: newest.id };
}

function planNewSandbox(pod: Pod, runtime: RuntimePod, { attempt, sandboxId }: { attempt: number; sandboxId: string }): PodPlan {
  const kill: Omit<PodPlan, "createSandbox" | "start"> = { killPod: true, sandboxId, attempt, kill: [], update: [], reset: [] };
  const nothing: PodPlan = { ...kill, createSandbox: false, start: [] };
  if (pod.spec.restartPolicy === "Never" && attempt !== 0 && runtime.containers.length > 0) return nothing; // it had its one run

  const named = allContainers(pod.spec);
  const apps = named.filter(({ kind, container }) => kind === "container" && !(policyOf(container, pod) === "OnFailure" && hasSucceeded(runtime, container.name)));
  const hasRun = pod.spec.containers.some(({ name }) => containerNamed(runtime, name) !== undefined);
  if (apps.length === 0 && hasRun) return nothing;
  const init = named.filter(({ kind }) => kind === "init");
  return { ...kill, createSandbox: true, start: init.length > 0 ? init.slice(0, 1) : apps };
}

function policyOf(container: { readonly restartPolicy?: string | undefined }, pod: Pod): string {
  return container.restartPolicy ?? pod.spec.restartPolicy ?? "Always";
}

function hasSucceeded(runtime: RuntimePod, name: string): boolean {
  const container = containerNamed(runtime, name);
  return container?.state === "exited" && container.exitCode === 0;
}

/** Returns whether initialization is over. Looks from the last init container back to the newest one there is a trace of. */
function planInit({ pod, runtime, probes, resize }: Required<PlanFacts>, draft: Draft): boolean {
  const init = pod.spec.initContainers ?? [];
  if (init.length === 0) return true;
  const last = init.length - 1;
  let initialized = pod.spec.containers.some(({ name }) => ["created", "running"].includes(containerNamed(runtime, name)?.state ?? ""));
  let later = initialized; // something after the one we look at has a trace: it was through once
  const start: number[] = [];

  const through = (i: number): void => {
    if (i === last) initialized = true;
    else if (!later) start.push(i + 1);
  };
  const replace = (i: number, container: RuntimeContainer, message: string, reason: KillReason): void => {
    draft.kill.push({ container, spec: { kind: "init", container: init[i]! }, message, reason });
    start.push(i);
  };

  for (let i = last; i >= 0; i--) {
    const spec = init[i]!;
    const sidecar = isSidecar(spec);
    const seen = containerNamed(runtime, spec.name);
    if (!seen) {
      if (later && sidecar) start.push(i);
      continue;
    }
    if (later && !sidecar) continue;
    const restarts = policyOf(spec, pod) !== "Never" || (seen.state === "exited" && restartsAfter(spec, pod.spec, seen.exitCode)); // what is unknown has no exit code

    if (seen.state === "created") start.push(i);
    else if (seen.state === "running") {
      const resizeIt = (): void => {
        const named = { kind: "init" as const, container: spec, index: i };
        const decision = resize(named, seen);
        if (decision === "restart") replace(i, seen, `Container ${spec.name} resize requires restart`, "");
        if (decision === "update") draft.update.push({ container: seen, spec: named });
      };
      if (sidecar) planRunningSidecar({ spec, seen, probes, through: () => through(i), replace: (message, reason) => replace(i, seen, message, reason), resize: resizeIt });
      else resizeIt();
    } else if (sidecar) {
      if (seen.state === "unknown") replace(i, seen, `Init container is in "unknown" state, try killing it before restart`, "Unknown");
      else start.push(i);
    } else if (seen.state === "exited" && seen.exitCode === 0 && seen.reason !== "OOMKilled") through(i);
    else if (!restarts) {
      draft.killPod = true;
      draft.start = [];
      return false;
    } else if (seen.state === "unknown") replace(i, seen, `Init container is in "unknown" state, try killing it before restart`, "Unknown");
    else start.push(i);

    later = true;
  }
  if (!later) start.push(0);
  for (const i of start.toReversed()) draft.start.push({ kind: "init", container: init[i]! });
  return initialized;
}

interface RunningSidecar {
  readonly spec: Container;
  readonly seen: RuntimeContainer;
  readonly probes: ProbeResults;
  through(): void;
  replace(message: string, reason: KillReason): void;
  resize(): void;
}

function planRunningSidecar({ spec, seen, probes, through, replace, resize }: RunningSidecar): void {
  if (spec.startupProbe) {
    const startup = probes.startup(seen.id);
    if (startup === "failure") replace(`Init container ${spec.name} failed startup probe`, "StartupProbe");
    if (startup !== "success") return;
  }
  through();
  if (isOfOtherDefinition(seen.spec.hash, spec)) replace(`Init container ${spec.name} definition changed`, "");
  else if (spec.livenessProbe && probes.liveness(seen.id) === "failure") replace(`Init container ${spec.name} failed liveness probe`, "LivenessProbe");
  else resize();
}

function planApp({ pod, runtime, probes, resize }: Required<PlanFacts>, draft: Draft): void {
  let kept = 0;
  let started = 0;
  for (const spec of allContainers(pod.spec).filter(({ kind }) => kind === "container")) {
    const { container } = spec;
    const seen = containerNamed(runtime, container.name);
    if (seen?.state !== "running") {
      if (!shouldStart(pod, spec, seen)) continue;
      draft.start.push(spec);
      started++;
      if (seen?.state === "unknown") draft.kill.push({ container: seen, spec, message: `Container is in "unknown" state, try killing it before restart`, reason: "Unknown" });
      continue;
    }
    const decision = resize(spec, seen);
    const fault = faultOf(spec, seen, probes);
    if (!fault && decision === "restart") {
      draft.start.push(spec);
      started++;
      draft.kill.push({ container: seen, spec, message: `Container ${container.name} resize requires restart`, reason: "" });
      continue;
    }
    if (!fault) {
      if (decision === "update") draft.update.push({ container: seen, spec });
      kept++;
      continue;
    }
    const restart = fault.always || policyOf(container, pod) !== "Never";
    if (restart) {
      draft.start.push(spec);
      started++;
    }
    draft.kill.push({ container: seen, spec, message: restart ? `${fault.message}, will be restarted` : fault.message, reason: fault.reason });
  }
  if (kept === 0 && started === 0) {
    draft.killPod = true;
    draft.start = draft.start.filter(({ kind }) => kind !== "init");
  }
}

/** Whether an app container that does not run should. */
export function shouldStart(pod: Pod, { container }: NamedContainer, seen: RuntimeContainer | undefined): boolean {
  if (isDeleting(pod)) return false;
  if (!seen || seen.state === "unknown" || seen.state === "created") return true;
  return seen.state === "exited" && restartsAfter(container, pod.spec, seen.exitCode);
}

function faultOf({ container }: NamedContainer, seen: RuntimeContainer, probes: ProbeResults): { message: string; reason: KillReason; always: boolean } | undefined {
  if (isOfOtherDefinition(seen.spec.hash, container)) return { message: `Container ${container.name} definition changed`, reason: "", always: true };
  if (probes.liveness(seen.id) === "failure") return { message: `Container ${container.name} failed liveness probe`, reason: "LivenessProbe", always: false };
  if (probes.startup(seen.id) === "failure") return { message: `Container ${container.name} failed startup probe`, reason: "StartupProbe", always: false };
  return undefined;
}
