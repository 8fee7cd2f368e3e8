/** Which processor lies where: the questions the CPU manager asks. Pure. Source: kubernetes v1.36 pkg/kubelet/cm/cpumanager/topology/topology.go */
import type { CpuPlace } from "../../os/cpu-topology.ts";
import { type CpuSet, sorted } from "./cpu-set.ts";

/** From the smallest to the largest. Cores are named by their lowest processor. */
export type Level = "core" | "uncoreCache" | "numaNode" | "socket";

export interface CpuMachine {
  readonly places: ReadonlyMap<number, CpuPlace>;
  readonly all: CpuSet;
  readonly cores: number;
  readonly sockets: number;
  readonly numaNodes: readonly number[];
  readonly cpusPerCore: number;
  readonly cpusPerSocket: number;
  readonly cpusPerUncoreCache: number;
}

export function cpuMachine(places: readonly CpuPlace[]): CpuMachine {
  const by = new Map(places.map((place) => [place.cpu, place]));
  const count = (level: Level): number => new Set(places.map((place) => place[level])).size;
  const per = (units: number): number => (units === 0 ? 0 : Math.floor(places.length / units));
  const [cores, sockets] = [count("core"), count("socket")];
  return { places: by, all: new Set(by.keys()), cores, sockets, numaNodes: sorted(new Set(places.map(({ numaNode }) => numaNode))), cpusPerCore: per(cores), cpusPerSocket: per(sockets), cpusPerUncoreCache: per(count("uncoreCache")) };
}

/** Those of `cpus` that lie in one of these. */
export function cpusIn({ places }: CpuMachine, cpus: CpuSet, level: Level, ids: Iterable<number>): CpuSet {
  const wanted = new Set(ids);
  return new Set([...cpus].filter((cpu) => wanted.has(places.get(cpu)?.[level] ?? Number.NaN)));
}

/** The cores, sockets, … these processors lie in. */
export function unitsOf({ places }: CpuMachine, cpus: Iterable<number>, level: Level): number[] {
  return sorted(new Set([...cpus].flatMap((cpu) => places.get(cpu)?.[level] ?? [])));
}
