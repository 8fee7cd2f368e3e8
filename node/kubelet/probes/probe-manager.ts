/**
 * A worker for every probe of every container of every pod, and what they found out.
 *
 * A verdict counts once it came failureThreshold or successThreshold times in a row. After liveness or startup gave up, the worker waits for
 * the restarted container. A probe starts at its own time, not with all others when the kubelet starts.
 *
 * Source: kubernetes v1.36 pkg/kubelet/prober/{prober_manager,worker}.go
 */
import type { Container, ContainerStatus, Pod, PodStatus, Probe } from "../../../core/api/gen/core.v1.ts";
import type { EventRecorder } from "../../../core/client/events.ts";
import { Elapsed } from "../../../core/lifecycle/elapsed.ts";
import type { Random } from "../../../core/lifecycle/random.ts";
import type { Log } from "../../../core/observe/log.ts";
import { type Counter, DEFAULT_BUCKETS, type Histogram, type Labels, type Metrics } from "../../../core/observe/metrics.ts";
import { containerReference, isSidecar, isTerminalPhase, type NamedContainer, restartsAfter } from "../pod-spec.ts";
import type { ProbeKind, ProbeResult, ProbeResults } from "./probe-results.ts";
import { FailedProbeError, type ProbeDeps, runProbe } from "./prober.ts";

/** The pod as it is now, and what was last said of it. */
export interface ProbedPod { readonly pod: Pod; readonly status: PodStatus }

export interface ProbeManager extends ProbeResults {
  /** Starts workers for the probes of `pod` that have none yet. */
  add(pod: Pod): void;
  /** A container became started, or is not ready yet: look now rather than at the next tick. */
  trigger(podUid: string, container: string): void;
  /** Liveness and startup end with the pod's deletion; readiness goes on until its containers are gone. */
  stopLiveness(podUid: string): void;
  remove(podUid: string): void;
}

interface Deps extends ProbeDeps {
  readonly random: Random;
  readonly log: Log;
  readonly events: EventRecorder;
  readonly startedMs: number;
  readonly signal: AbortSignal;
  readonly find: (podUid: string) => ProbedPod | undefined;
  readonly onResult: (podUid: string, kind: ProbeKind, result: ProbeResult) => void;
  readonly metrics: Pick<Metrics, "counter" | "histogram">;
}

const KINDS: readonly ProbeKind[] = ["startup", "liveness", "readiness"];
const TITLES: Readonly<Record<ProbeKind, string>> = { startup: "Startup", liveness: "Liveness", readiness: "Readiness" };
const OUTCOMES = ["successful", "failed", "unknown"] as const;
const INITIAL: Readonly<Record<ProbeKind, ProbeResult>> = { startup: "unknown", liveness: "success", readiness: "failure" };

interface Worker { readonly stop: AbortController; trigger: () => void }

export function probeManager(deps: Deps): ProbeManager {
  const { clock, random, signal, log, metrics } = deps;
  const counted = metrics.counter("prober_probe_total", "[BETA] Cumulative number of a liveness, readiness or startup probe for a container by result.");
  const took = metrics.histogram("prober_probe_duration_seconds", "[ALPHA] Duration in seconds for a probe response.", DEFAULT_BUCKETS);
  const results: Readonly<Record<ProbeKind, Map<string, ProbeResult>>> = { startup: new Map(), liveness: new Map(), readiness: new Map() }; // by container id
  const workers = new Map<string, Worker>(); // by uid/container/kind

  async function runWorker(key: string, podUid: string, spec: NamedContainer, kind: ProbeKind, probe: Probe, worker: Worker): Promise<void> {
    const quit = AbortSignal.any([signal, worker.stop.signal]);
    const periodMs = (probe.periodSeconds ?? 10) * 1000;
    const watch = new ContainerWatch({ ...deps, counted, took }, results[kind], { podUid, spec, kind, probe });
    if (clock.uptimeMs() - deps.startedMs < periodMs) await clock.sleep(random.next() * periodMs, quit);
    while (!quit.aborted) {
      const beganMs = clock.uptimeMs();
      const goOn = await watch.tick(quit).catch((error: unknown) => {
        if (!quit.aborted) log.warn("probe worker failed, next try in one period", { podUid, container: spec.container.name, kind, error });
        return true;
      });
      if (!goOn || quit.aborted) break;
      const triggered = new AbortController();
      worker.trigger = () => triggered.abort();
      await clock.sleep(Math.max(0, periodMs - (clock.uptimeMs() - beganMs)), AbortSignal.any([quit, triggered.signal])); // however long it took
    }
    watch.forget();
    watch.uncount();
    if (workers.get(key) === worker) workers.delete(key);
  }

  function stop(podUid: string, kinds: readonly ProbeKind[]): void {
    for (const [key, { stop: controller }] of workers) {
      if (!key.startsWith(`${podUid}/`) || !kinds.some((kind) => key.endsWith(`/${kind}`))) continue;
      controller.abort();
      workers.delete(key);
    }
  }

  return {
    startup: (id) => results.startup.get(id),
    liveness: (id) => results.liveness.get(id),
    readiness: (id) => results.readiness.get(id),
    probes: (podUid, name, kind) => workers.has(`${podUid}/${name}/${kind}`),
    add(pod) {
      for (const spec of probedContainers(pod)) {
        for (const kind of KINDS) {
          const probe = spec.container[`${kind}Probe`];
          const key = `${pod.metadata.uid}/${spec.container.name}/${kind}`;
          if (!probe || workers.has(key)) continue;
          const worker: Worker = { stop: new AbortController(), trigger: () => undefined };
          workers.set(key, worker);
          void runWorker(key, pod.metadata.uid, spec, kind, probe, worker);
        }
      }
    },
    trigger: (podUid, name) => workers.get(`${podUid}/${name}/readiness`)?.trigger(),
    stopLiveness(podUid) {
      stop(podUid, ["startup", "liveness"]);
    },
    remove(podUid) {
      stop(podUid, KINDS);
    },
  };

  function probedContainers({ spec }: Pod): (NamedContainer & { readonly container: Container })[] {
    return [
      ...(spec.initContainers ?? []).map((container, index) => ({ kind: "init" as const, container, index })).filter(({ container }) => isSidecar(container)),
      ...spec.containers.map((container, index) => ({ kind: "container" as const, container, index })),
    ];
  }
}

interface Watched { readonly podUid: string; readonly spec: NamedContainer; readonly kind: ProbeKind; readonly probe: Probe }

interface Counts { readonly counted: Counter; readonly took: Histogram }

/** The container a worker looks at: a new one, with a new id, after each restart. */
class ContainerWatch {
  readonly #deps: Deps & Counts;
  readonly #results: Map<string, ProbeResult>;
  readonly #watched: Watched;
  #containerId = "";
  #age: Elapsed;
  #last: ProbeResult | undefined;
  #run = 0;
  #onHold = false;
  #labels: Labels | undefined;

  constructor(deps: Deps & Counts, results: Map<string, ProbeResult>, watched: Watched) {
    this.#deps = deps;
    this.#results = results;
    this.#watched = watched;
    this.#age = new Elapsed(deps.clock);
  }

  /** Probes once if it is time; false when there is nothing left to probe. */
  async tick(signal: AbortSignal): Promise<boolean> {
    const { podUid, spec, kind, probe } = this.#watched;
    const found = this.#deps.find(podUid);
    if (!found) return true;
    const { pod, status } = found;
    if (isTerminalPhase(status.phase)) return false;
    const container = [...(status.containerStatuses ?? []), ...(status.initContainerStatuses ?? [])].find(({ name }) => name === spec.container.name);
    if (!container?.containerID) return true;
    const { running, terminated } = container.state ?? {};
    const isOver = terminated !== undefined && !restartsAfter(spec.container, pod.spec, terminated.exitCode) && !(spec.kind === "init" && isSidecar(spec.container));
    if (isOver && !this.#knows(container)) return false; // for good, before we looked: nothing has changed, and whoever heard that it had would look again, and start us again
    this.#follow(container);
    if (this.#onHold) return true;
    if (!running) {
      this.#set("failure");
      return !isOver;
    }
    if (pod.metadata.deletionTimestamp && kind !== "readiness") {
      this.#set("success");
      return false;
    }
    if (this.#age.sinceMs(running.startedAt ?? "") < (probe.initialDelaySeconds ?? 0) * 1000) return true;
    if ((container.started === true) === (kind === "startup")) return true;
    await this.#probe(pod, status, signal);
    return true;
  }

  forget(): void {
    this.#results.delete(this.#containerId);
  }

  /** Nobody probes it any more: its series go, too. */
  uncount(): void {
    if (this.#labels === undefined) return;
    const { counted, took } = this.#deps;
    for (const result of OUTCOMES) counted.remove({ ...this.#labels, result });
    took.remove(withoutUid(this.#labels));
  }

  #count(result: (typeof OUTCOMES)[number], seconds: number): void {
    const { counted, took } = this.#deps;
    counted.inc({ ...this.#labels, result });
    if (result !== "failed") took.observe(seconds, withoutUid(this.#labels ?? {}));
  }

  #knows(container: ContainerStatus): boolean { return idOf(container) === this.#containerId; }

  #follow(container: ContainerStatus): void {
    if (this.#knows(container)) return;
    const { state, started } = container;
    this.forget();
    this.#containerId = idOf(container);
    this.#age = new Elapsed(this.#deps.clock);
    this.#onHold = false;
    this.#last = undefined;
    this.#run = 0;
    const { kind } = this.#watched;
    const startedMs = Date.parse(state?.running?.startedAt ?? "");
    const { clock } = this.#deps, nowMs = clock.nowMs();
    const adopted = startedMs < nowMs - (clock.uptimeMs() - this.#deps.startedMs) || startedMs > nowMs; // before us, or before the clock was set back
    if (kind === "startup" && adopted && started === true) this.#set("success");
    else if (!adopted) this.#set(INITIAL[kind]);
  }

  async #probe(pod: Pod, status: PodStatus, signal: AbortSignal): Promise<void> {
    const { spec, kind, probe } = this.#watched;
    this.#labels = { probe_type: TITLES[kind], container: spec.container.name, pod: pod.metadata.name, namespace: pod.metadata.namespace ?? "", pod_uid: pod.metadata.uid };
    const about = containerReference(pod, spec);
    const beganMs = this.#deps.clock.uptimeMs();
    const seconds = (): number => (this.#deps.clock.uptimeMs() - beganMs) / 1000;
    let result: ProbeResult;
    try {
      const verdict = await runProbe(this.#deps, { probe, pod, container: spec.container, containerId: this.#containerId, podIp: status.podIP ?? "" }, signal);
      if (signal.aborted) return;
      if (verdict.result === "failure") this.#deps.events.event(about, "Warning", "Unhealthy", `${TITLES[kind]} probe failed: ${verdict.output}`);
      if (verdict.result === "warning") this.#deps.events.event(about, "Warning", "ProbeWarning", `${TITLES[kind]} probe warning: ${verdict.output}`);
      result = verdict.result === "failure" ? "failure" : "success";
    } catch (error) {
      if (signal.aborted) return;
      this.#deps.events.event(about, "Warning", "Unhealthy", `${TITLES[kind]} probe errored and resulted in ${error instanceof FailedProbeError ? "failure" : "unknown"} state: ${(error as Error).message}`);
      this.#count("unknown", seconds());
      return;
    }
    this.#count(result === "success" ? "successful" : "failed", seconds());
    this.#run = this.#last === result ? this.#run + 1 : 1;
    this.#last = result;
    if (this.#run < (result === "failure" ? probe.failureThreshold ?? 3 : probe.successThreshold ?? 1)) return;
    this.#set(result);
    if (kind === "startup" || (kind === "liveness" && result === "failure")) {
      this.#onHold = true; // until the container is another one
      this.#run = 0;
    }
  }

  #set(result: ProbeResult): void {
    const before = this.#results.get(this.#containerId);
    this.#results.set(this.#containerId, result);
    if (before !== result) this.#deps.onResult(this.#watched.podUid, this.#watched.kind, result);
  }
}

function idOf({ containerID = "" }: ContainerStatus): string {
  return containerID.replace(/^.*:\/\//, "");
}

function withoutUid({ pod_uid: _, ...labels }: Labels): Labels {
  return labels;
}
