/** Sets of processors, as the kernel and upstream write them: "0-3,8". Source: kubernetes v1.36 vendor/k8s.io/utils/cpuset */

export type CpuSet = ReadonlySet<number>;

export const NO_CPUS: CpuSet = new Set();

export function sorted(set: Iterable<number>): number[] {
  return [...set].toSorted((a, b) => a - b);
}

export function formatCpuSet(set: CpuSet): string {
  const ranges: [first: number, last: number][] = [];
  for (const cpu of sorted(set)) {
    const range = ranges.at(-1);
    if (range && range[1] === cpu - 1) range[1] = cpu;
    else ranges.push([cpu, cpu]);
  }
  return ranges.map(([first, last]) => (first === last ? String(first) : `${first}-${last}`)).join(",");
}

/** Throws an Error in Go's words. */
export function parseCpuSet(text: string): CpuSet {
  const cpus = new Set<number>();
  if (text === "") return cpus;
  for (const range of text.split(",")) {
    const dash = range.indexOf("-");
    const first = whole(dash < 0 ? range : range.slice(0, dash));
    const last = dash < 0 ? first : whole(range.slice(dash + 1));
    if (first > last) throw new Error(`invalid range "${range}" (${first} > ${last})`);
    for (let cpu = first; cpu <= last; cpu++) cpus.add(cpu);
  }
  return cpus;
}

function whole(text: string): number {
  if (!/^[-+]?\d+$/.test(text)) throw new Error(`strconv.Atoi: parsing "${text}": invalid syntax`);
  return Number(text);
}

export function sameCpus(a: CpuSet, b: CpuSet): boolean {
  return a.size === b.size && a.isSubsetOf(b);
}
