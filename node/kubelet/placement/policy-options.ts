/**
 * Options of the CPU manager's and the topology manager's policies, by upstream's names. Throws an Error in upstream's words.
 *
 * Source: kubernetes v1.36 pkg/kubelet/cm/{cpumanager,topologymanager}/policy_options.go
 */
import { parseGoBool } from "../../../core/api/meta/go-bool.ts";
import type { CpuOptions } from "./cpu-policy.ts";

type Texts = Readonly<Record<string, string>>;
type Stage = "Alpha" | "Beta" | undefined;

const CPU_OPTIONS: Readonly<Record<string, readonly [field: keyof CpuOptions, stage: Stage]>> = {
  "full-pcpus-only": ["fullPcpusOnly", undefined], "strict-cpu-reservation": ["strictReservation", undefined], "prefer-align-cpus-by-uncorecache": ["byUncoreCache", undefined],
  "distribute-cpus-across-numa": ["distributeAcrossNuma", "Beta"], "align-by-socket": ["alignBySocket", "Alpha"], "distribute-cpus-across-cores": ["distributeAcrossCores", "Alpha"],
};

const EXCLUSIVE: readonly (readonly [string, string])[] = [
  ["full-pcpus-only", "distribute-cpus-across-cores"], ["distribute-cpus-across-numa", "distribute-cpus-across-cores"],
  ["prefer-align-cpus-by-uncorecache", "distribute-cpus-across-cores"], ["prefer-align-cpus-by-uncorecache", "distribute-cpus-across-numa"],
];

/** `gate`: whether a feature gate is on. */
export function cpuOptions(given: Texts, gate: (name: string) => boolean): CpuOptions {
  const result: Record<keyof CpuOptions, boolean> = { fullPcpusOnly: false, distributeAcrossNuma: false, distributeAcrossCores: false, alignBySocket: false, strictReservation: false, byUncoreCache: false };
  for (const [name, text] of Object.entries(given)) {
    const option = CPU_OPTIONS[name];
    if (!option) throw new Error(`unknown CPU Manager Policy option: "${name}"`);
    const [field, stage] = option;
    if (stage && !gate(`CPUManagerPolicy${stage}Options`)) throw new Error(`CPU Manager Policy ${stage}-level Options not enabled, but option "${name}" provided`);
    result[field] = bool(name, text);
  }
  for (const [a, b] of EXCLUSIVE) if (result[CPU_OPTIONS[a]![0]] && result[CPU_OPTIONS[b]![0]]) throw new Error(`static policy options ${a} and ${b} can not be used at the same time`);
  return result;
}

export interface TopologyOptions { readonly preferClosest: boolean; readonly nodesMax: number }

/** More NUMA nodes than these make too many sets of nodes to look at. */
const NODES_MAX = 8;

export function topologyOptions(given: Texts): TopologyOptions {
  let result: TopologyOptions = { preferClosest: false, nodesMax: NODES_MAX };
  for (const [name, text] of Object.entries(given)) {
    if (name === "prefer-closest-numa-nodes") result = { ...result, preferClosest: bool(name, text) };
    else if (name === "max-allowable-numa-nodes") result = { ...result, nodesMax: nodesMax(name, text) };
    else throw new Error(`unknown Topology Manager Policy option: "${name}"`);
  }
  return result;
}

function nodesMax(name: string, text: string): number {
  if (!/^[-+]?\d+$/.test(text)) throw new Error(`unable to convert policy option to integer "${name}": strconv.Atoi: parsing "${text}": invalid syntax`);
  if (Number(text) < NODES_MAX) throw new Error(`the minimum value of "${name}" should not be less than ${NODES_MAX}`);
  return Number(text);
}

function bool(name: string, text: string): boolean {
  const value = parseGoBool(text);
  if (value !== undefined) return value;
  throw new Error(`bad value for option "${name}": strconv.ParseBool: parsing "${text}": invalid syntax`);
}
