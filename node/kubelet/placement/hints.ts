/**
 * Where a container's processors, memory and devices may lie together. Whoever gives something out says on which NUMA nodes it could (hints);
 * the policy finds the nodes all can agree on, or refuses. Pure.
 *
 * Source: kubernetes v1.36 pkg/kubelet/cm/topologymanager/{policy*,numa_info}.go, bitmask/bitmask.go
 */

/** A set of NUMA nodes: bit n is node n. */
export type NodeMask = bigint;

export interface Hint {
  /** Undefined: anywhere. */
  readonly nodes: NodeMask | undefined;
  /** Nothing narrower could do. */
  readonly preferred: boolean;
}

/** By resource; no entries: no opinion. An empty list: nowhere. */
export type Hints = ReadonlyMap<string, readonly Hint[] | undefined>;

export const ANYWHERE: Hint = { nodes: undefined, preferred: false };

export type TopologyPolicy = "none" | "best-effort" | "restricted" | "single-numa-node";

export interface MergeOptions {
  readonly policy: Exclude<TopologyPolicy, "none">;
  readonly nodes: readonly number[];
  /** Between nodes, by node; given: sets of the same size are compared by how near their nodes are. */
  readonly distances?: ReadonlyMap<number, readonly number[]> | undefined;
}

export function maskOf(nodes: Iterable<number>): NodeMask {
  let mask = 0n;
  for (const node of nodes) mask |= 1n << BigInt(node);
  return mask;
}

export function nodesIn(mask: NodeMask): number[] {
  const nodes: number[] = [];
  for (let node = 0, rest = mask; rest > 0n; node++, rest >>= 1n) if (rest & 1n) nodes.push(node);
  return nodes;
}

export function isIn(mask: NodeMask, node: number): boolean {
  return node >= 0 && ((mask >> BigInt(node)) & 1n) === 1n;
}

/** Every set of these nodes, the small ones first. */
export function* masks(nodes: readonly number[]): Generator<NodeMask> {
  for (let size = 1; size <= nodes.length; size++) for (const combination of combinations(nodes, size)) yield maskOf(combination);
}

export function* combinations(items: readonly number[], size: number, from = 0): Generator<readonly number[]> {
  if (size === 0) {
    yield [];
    return;
  }
  for (let i = from; i <= items.length - size; i++) for (const rest of combinations(items, size - 1, i + 1)) yield [items[i]!, ...rest];
}

export function isNarrower(a: NodeMask, b: NodeMask): boolean {
  const [x, y] = [nodesIn(a).length, nodesIn(b).length];
  return x === y ? a < b : x < y;
}

/** The hint all agree on best, and whether the policy takes a container with it. */
export function mergeHints(options: MergeOptions, providers: readonly Hints[]): { readonly hint: Hint; readonly admitted: boolean } {
  const lists = providers.flatMap((hints): (readonly Hint[])[] => (hints.size === 0 ? [[{ nodes: undefined, preferred: true }]] : [...hints.values()].map((list) => (list === undefined ? [{ nodes: undefined, preferred: true }] : list.length === 0 ? [ANYWHERE] : list))));
  const single = options.policy === "single-numa-node";
  const considered = single ? lists.map((list) => list.filter(({ nodes, preferred }) => preferred && (nodes === undefined || nodesIn(nodes).length === 1))) : lists;
  const all = maskOf(options.nodes);
  const best = bestOf(options, all, considered) ?? { nodes: all, preferred: false };
  const hint = single && best.nodes === all ? { nodes: undefined, preferred: best.preferred } : best;
  return { hint, admitted: options.policy === "best-effort" || hint.preferred };
}

interface Merged { readonly nodes: NodeMask; readonly preferred: boolean }

function bestOf(options: MergeOptions, all: NodeMask, lists: readonly (readonly Hint[])[]): Merged | undefined {
  const widest = Math.max(0, ...lists.map((list) => {
    const sets = list.flatMap(({ nodes }) => (nodes === undefined ? [] : [nodes]));
    return sets.length === 0 ? 0 : Math.min(...sets.map((set) => nodesIn(set).length));
  }));
  let best: Merged | undefined;
  for (const permutation of permutations(lists)) {
    const sets = permutation.flatMap(({ nodes }) => (nodes === undefined ? [] : [nodes]));
    const merged = { nodes: sets.reduce((sum, set) => sum & set, all), preferred: permutation.every(({ preferred }) => preferred) && sets.every((set) => set === sets[0]) };
    best = better(options, best, merged, widest);
  }
  return best;
}

function* permutations(lists: readonly (readonly Hint[])[], from = 0): Generator<readonly Hint[]> {
  if (from === lists.length) {
    yield [];
    return;
  }
  for (const hint of lists[from]!) for (const rest of permutations(lists, from + 1)) yield [hint, ...rest];
}

/** `widest`: as many nodes as the resource that needs most of them needs: a hint that is not preferred is best when it has just so many. */
function better(options: MergeOptions, current: Merged | undefined, candidate: Merged, widest: number): Merged | undefined {
  const size = nodesIn(candidate.nodes).length;
  if (size === 0) return current;
  if (!current) return candidate;
  if (current.preferred !== candidate.preferred) return current.preferred ? current : candidate;
  const nearer = (): Merged => (candidate.nodes === current.nodes || isFirst(options, current.nodes, candidate.nodes) ? current : candidate);
  if (current.preferred) return nearer();
  const sizeNow = nodesIn(current.nodes).length;
  if (sizeNow > widest) return nearer();
  if (sizeNow === widest) return size === widest ? nearer() : current;
  if (size > widest) return current;
  if (size === widest || size > sizeNow) return candidate;
  return size < sizeNow ? current : nearer();
}

function isFirst({ policy, distances }: MergeOptions, a: NodeMask, b: NodeMask): boolean {
  if (policy === "single-numa-node" || !distances || nodesIn(a).length !== nodesIn(b).length) return isNarrower(a, b);
  const [x, y] = [averageDistance(a, distances), averageDistance(b, distances)];
  return x === y ? a < b : x < y;
}

function averageDistance(mask: NodeMask, distances: ReadonlyMap<number, readonly number[]>): number {
  const nodes = nodesIn(mask);
  return nodes.flatMap((from) => nodes.map((to) => distances.get(from)?.[to] ?? 0)).reduce((sum, distance) => sum + distance, 0) / nodes.length ** 2;
}
