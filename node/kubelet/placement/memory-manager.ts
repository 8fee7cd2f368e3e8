/**
 * Memory of containers by NUMA node, kept in memory_manager_state.
 *
 * Source: kubernetes v1.36 pkg/kubelet/cm/memorymanager/{memory_manager,policy_none}.go
 */
import { join } from "node:path";
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import type { Log } from "../../../core/observe/log.ts";
import { readStateFile, stateFile } from "../../os/state-file.ts";
import { isSidecar } from "../pod-spec.ts";
import { isReliedOn, type MemoryCheckpoint, readMemory, storedMemory } from "./checkpoint.ts";
import { type Block, hintsOfBlocks, isPinned, memoryHints, memoryOfPod, type MemoryState, type NodeState, type Reusable, validMemory, wantedMemory, withMemory, withoutMemory } from "./memory-policy.ts";
import type { PlacementMetrics } from "./placement-metrics.ts";
import type { PodAdmission, Provider } from "./provider.ts";

const MEMORY_STATE_FILE = "memory_manager_state";
const NOTHING: MemoryState = { machineState: {}, entries: {} };

export interface MemoryManager extends Provider {
  blocksOf(podUid: string, container: string): readonly Block[];
  /** All that may be given out. */
  allocatable(): readonly Block[];
  /** Where the container's memory must lie; none: anywhere. */
  nodesOf(podUid: string, container: string): readonly number[];
  /** The container starts: what is left of the init containers before it is free. */
  starts(pod: Pod, container: string): void;
  /** What was given out is on disk. */
  written(): Promise<void>;
}

interface Deps {
  readonly dataDir: string;
  /** Which life of the machine this is (boot-id.ts). */
  readonly boot: string;
  /** With nothing given out; undefined: memory is not placed. */
  readonly machine: Record<string, NodeState> | undefined;
  readonly metrics: PlacementMetrics;
  readonly log: Log;
}

/** Throws an Error for the user when the state file does not fit the policy or the machine, and something that runs may rely on it. */
export function memoryManager({ dataDir, boot, machine, metrics, log }: Deps): MemoryManager {
  const path = join(dataDir, MEMORY_STATE_FILE);
  const file = stateFile(path);
  const name = machine ? "Static" : "None";
  let state = restored();
  file.save(() => storedMemory({ policy: name, state, boot }));

  function restored(): MemoryState {
    let found: MemoryCheckpoint | undefined;
    try {
      const read = (found = readStateFile(path, log, readMemory));
      const differs = read !== undefined && read.policy !== name;
      if (differs && Object.keys(read.state.entries).length > 0) throw new Error(`[memorymanager] configured policy "${name}" differs from state checkpoint policy "${read.policy}"`);
      return machine ? validMemory(machine, differs ? NOTHING : (read?.state ?? NOTHING)) : NOTHING;
    } catch (cause) {
      if (!isReliedOn(found, { boot, isEmpty: Object.keys(found?.state.entries ?? {}).length === 0 })) {
        log.warn("where containers' memory was to lie is void: the machine, or its settings, are others, and nothing of before runs", { file: path, error: cause });
        return machine ? validMemory(machine, NOTHING) : NOTHING;
      }
      throw new Error(`could not restore state from checkpoint: ${(cause as Error).message}, please drain this node and delete the memory manager checkpoint file "${path}" before restarting Kubelet`, { cause });
    }
  }

  function become(next: MemoryState): void {
    if (next === state) return;
    state = next;
    file.save(() => storedMemory({ policy: name, state, boot }));
  }

  const blocksOf = (podUid: string, container: string): readonly Block[] => state.entries[podUid]?.[container] ?? [];

  function admission(pod: Pod): PodAdmission {
    const { uid } = pod.metadata;
    const before = state;
    const reusable: Reusable = new Map();
    return {
      hints(container) {
        const mine = state.entries[uid]?.[container.name];
        return mine ? hintsOfBlocks(mine, wantedMemory(container)) : memoryHints(state.machineState, wantedMemory(container), reusable);
      },
      podHints() {
        const wishes = memoryOfPod(pod);
        const mine = [...(pod.spec.initContainers ?? []), ...pod.spec.containers].map((container) => state.entries[uid]?.[container.name]).find((blocks) => blocks !== undefined);
        if (wishes.size === 0) return new Map();
        return mine ? hintsOfBlocks(mine, wishes) : memoryHints(state.machineState, wishes, reusable);
      },
      allocate: (container, hint) => metrics.memoryPinning(() => become(withMemory(state, { pod, container, hint, reusable }))),
      rollBack: () => become(before),
    };
  }

  return {
    begin: (pod) => (machine && isPinned(pod) ? admission(pod) : { hints: () => new Map(), podHints: () => new Map(), allocate: () => undefined, rollBack: () => undefined }),
    release: (podUid) => become(withoutMemory(state, podUid)),
    retain(podUids) { for (const uid of Object.keys(state.entries)) if (!podUids.has(uid)) become(withoutMemory(state, uid)); },
    blocksOf,
    written: async () => { if (machine) await file.written(); },
    allocatable: () => Object.entries(state.machineState).flatMap(([node, { memoryMap }]) => Object.entries(memoryMap).filter(([, { allocatable }]) => allocatable > 0).map(([type, { allocatable: size }]) => ({ numaAffinity: [Number(node)], type, size }))),
    nodesOf: (podUid, container) => [...new Set(blocksOf(podUid, container).flatMap(({ numaAffinity }) => numaAffinity))].toSorted((a, b) => a - b),
    starts(pod, container) {
      const init = pod.spec.initContainers ?? [];
      const index = init.findIndex((one) => one.name === container);
      become(withoutMemory(state, pod.metadata.uid, init.slice(0, index < 0 ? undefined : index).filter((one) => !isSidecar(one)).map((one) => one.name)));
    },
  };
}
