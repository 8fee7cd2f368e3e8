/**
 * Processors of containers, kept in cpu_manager_state: those that a container has for itself, and those that all others share. What runs is moved when the shared
 * ones change, at once and again every reconcile period.
 *
 * Source: kubernetes v1.36 pkg/kubelet/cm/cpumanager/{cpu_manager,policy_none}.go
 */
import { join } from "node:path";
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Runnable } from "../../../core/lifecycle/run-all.ts";
import type { Log } from "../../../core/observe/log.ts";
import type { Cri } from "../../cri/client.ts";
import { readStateFile, stateFile } from "../../os/state-file.ts";
import { isSidecar } from "../pod-spec.ts";
import type { RuntimePod } from "../runtime-pod.ts";
import { type CpuCheckpoint, isReliedOn, readCpus, storedCpus } from "./checkpoint.ts";
import { checkCores, chooseCpus, cpuHints, type CpuPolicy, type CpuState, validState, wantedByPod, wantedCpus, withCpus, withoutPod } from "./cpu-policy.ts";
import { type CpuSet, formatCpuSet, NO_CPUS, sorted } from "./cpu-set.ts";
import type { PlacementMetrics } from "./placement-metrics.ts";
import type { PodAdmission, Provider } from "./provider.ts";

const CPU_STATE_FILE = "cpu_manager_state";
const NOTHING: CpuState = { shared: NO_CPUS, owned: new Map() };

export interface CpuManager extends Provider {
  readonly parts: readonly Runnable[];
  /** Those the container has for itself. */
  exclusive(podUid: string, container: string): CpuSet;
  /** Those it may run on; empty: all. */
  affinity(podUid: string, container: string): CpuSet;
  hasExclusive(podUid: string): boolean;
  /** Those that may be given out. */
  assignable(): number[];
  /** What was given out is on disk. */
  written(): Promise<void>;
}

interface Deps {
  readonly dataDir: string;
  /** Which life of the machine this is (boot-id.ts). */
  readonly boot: string;
  /** Undefined: nobody gets a processor alone. */
  readonly policy: CpuPolicy | undefined;
  readonly reconcileMs: number;
  readonly cri: Pick<Cri, "call">;
  readonly runtimes: () => Iterable<RuntimePod>;
  readonly metrics: PlacementMetrics;
  readonly clock: Clock;
  readonly log: Log;
}

/** Throws an Error for the user when the state file does not fit the policy or the machine, and something that runs may rely on it. */
export function cpuManager({ dataDir, boot, policy, reconcileMs, cri, runtimes, metrics, clock, log }: Deps): CpuManager {
  const path = join(dataDir, CPU_STATE_FILE);
  const file = stateFile(path);
  const name = policy ? "static" : "none";
  let state = restored();
  let changed = Promise.withResolvers<void>();
  const applied = new Map<string, string>(); // container id → what we told the runtime last
  const begun = state;
  if (policy) metrics.cpusAre({ machine: policy.machine, state, reserved: policy.reserved });
  file.save(() => storedCpus({ policy: name, state: begun, boot }));

  function restored(): CpuState {
    let found: CpuCheckpoint | undefined;
    try {
      const read = (found = readStateFile(path, log, readCpus));
      const differs = read !== undefined && read.policy !== name;
      if (differs && read.state.owned.size > 0) throw new Error(`configured policy "${name}" differs from state checkpoint policy "${read.policy}"`);
      return policy ? validState(policy, differs ? NOTHING : (read?.state ?? NOTHING)) : NOTHING;
    } catch (cause) {
      if (!isReliedOn(found, { boot, isEmpty: found?.state.owned.size === 0 })) {
        log.warn("which processors containers had is void: the machine, or its settings, are others, and nothing of before runs", { file: path, error: cause });
        return policy ? validState(policy, NOTHING) : NOTHING;
      }
      throw new Error(`could not restore state from checkpoint: ${(cause as Error).message}, please drain this node and delete the CPU manager checkpoint file "${path}" before restarting Kubelet`, { cause });
    }
  }

  function become(next: CpuState): void {
    if (next === state) return;
    state = next;
    file.save(() => storedCpus({ policy: name, state, boot }));
    if (policy) metrics.cpusAre({ machine: policy.machine, state, reserved: policy.reserved });
    changed.resolve();
  }

  const exclusive = (podUid: string, container: string): CpuSet => state.owned.get(podUid)?.get(container) ?? NO_CPUS;
  const affinity = (podUid: string, container: string): CpuSet => state.owned.get(podUid)?.get(container) ?? state.shared;

  async function reconcile(signal: AbortSignal): Promise<void> {
    const seen = new Set<string>();
    for (const { uid, containers } of runtimes()) {
      for (const { id, name: container, state: running, resources } of containers) {
        if (running !== "running") continue;
        seen.add(id);
        const wanted = formatCpuSet(affinity(uid, container));
        if (wanted === "" || wanted === (applied.get(id) ?? resources?.cpuset_cpus)) continue;
        try {
          await cri.call("RuntimeService/UpdateContainerResources", { container_id: id, linux: { cpuset_cpus: wanted } }, { signal });
          applied.set(id, wanted);
        } catch (error) {
          if (signal.aborted) return;
          log.warn("container not moved to its processors, next try at the next reconcile", { pod: uid, container, cpus: wanted, error });
        }
      }
    }
    for (const id of applied.keys()) if (!seen.has(id)) applied.delete(id);
  }

  const reconciler: Runnable = {
    name: "cpu-manager",
    async run(signal, ready) {
      ready();
      while (!signal.aborted) {
        changed = Promise.withResolvers();
        await reconcile(signal);
        const idle = new AbortController();
        await Promise.race([changed.promise, clock.sleep(reconcileMs, AbortSignal.any([signal, idle.signal]))]);
        idle.abort();
      }
    },
  };

  function admission(static_: CpuPolicy, pod: Pod): PodAdmission {
    const { uid } = pod.metadata;
    const before = state;
    let reusable: CpuSet = NO_CPUS; // of init containers that end
    const hintsFor = (count: number, mine: CpuSet): ReturnType<PodAdmission["hints"]> => {
      const had = mine.size === count;
      return new Map([["cpu", cpuHints(static_, had ? { available: mine, reusable: NO_CPUS, count } : { available: state.shared.difference(static_.reserved), reusable: reusable.union(mine), count })]]);
    };
    return {
      hints(container) {
        const count = wantedCpus(pod, container);
        const mine = exclusive(uid, container.name);
        if (count === 0) return new Map();
        return mine.size > 0 && mine.size !== count ? new Map([["cpu", []]]) : hintsFor(count, mine);
      },
      podHints() {
        const count = wantedByPod(pod);
        if (count === 0) return new Map();
        const all = [...(pod.spec.initContainers ?? []), ...pod.spec.containers];
        if (all.some((container) => ![0, wantedCpus(pod, container)].includes(exclusive(uid, container.name).size))) return new Map([["cpu", []]]);
        return hintsFor(count, all.reduce((sum, { name: container }) => sum.union(exclusive(uid, container)), NO_CPUS));
      },
      allocate(container, { nodes }) {
        const count = wantedCpus(pod, container);
        if (count === 0) return;
        metrics.cpuPinning(static_.options.fullPcpusOnly, () => {
          checkCores(static_, state, count);
          const had = exclusive(uid, container.name);
          const cpus = had.size > 0 ? had : chooseCpus(static_, state, { count, nodes, reusable });
          if (had.size === 0) {
            become(withCpus(state, { podUid: uid, container: container.name, cpus }));
            metrics.cpusGiven(static_.machine, cpus);
          }
          const init = (pod.spec.initContainers ?? []).find(({ name: other }) => other === container.name);
          reusable = init && !isSidecar(init) ? reusable.union(cpus) : reusable.difference(cpus);
        });
      },
      rollBack: () => become(before),
    };
  }

  return {
    parts: policy ? [reconciler] : [],
    begin: (pod) => (policy ? admission(policy, pod) : { hints: () => new Map(), podHints: () => new Map(), allocate: () => undefined, rollBack: () => undefined }),
    release: (podUid) => become(withoutPod(state, podUid)),
    retain(podUids) { for (const uid of state.owned.keys()) if (!podUids.has(uid)) become(withoutPod(state, uid)); },
    exclusive, affinity,
    written: async () => { if (policy) await file.written(); }, // a full disk is no reason to start nothing where nothing is given out
    hasExclusive: (podUid) => (state.owned.get(podUid)?.size ?? 0) > 0,
    assignable: () => (policy ? sorted(policy.machine.all.difference(policy.reserved)) : []),
  };
}
