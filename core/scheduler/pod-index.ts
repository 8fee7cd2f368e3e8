/**
 * Which pods are where, answered by selector: how many pods on each node match, and what the affinity terms of placed pods say. Kept up to date
 * pod by pod, so that placing one pod does not read all the others.
 */
import type { Pod } from "../api/gen/core.v1.ts";
import { namespaceOf } from "../api/meta/object-meta.ts";
import { type AffinityTerm, type AffinityTerms, hasTerms } from "./affinity-terms.ts";
import type { NodeInfo, PlacedPod } from "./node-info.ts";

/** How many by name of node; no zeros. */
export type PerNode = ReadonlyMap<string, number>;

export interface PodQuery {
  /** The same key always means the same pods. */
  readonly key: string;
  /** Only pods in these are counted; undefined: in any. */
  readonly namespaces: readonly string[] | undefined;
  matches(pod: Readonly<Pod>): boolean;
}

export type TermKind = keyof AffinityTerms;

/** Placed pods that have the same term, by node. */
export interface TermHolders { readonly term: AffinityTerm; readonly perNode: Map<string, number> }

/** Queries that are kept up to date; the one that was not asked for longest goes first. Each costs a look at every pod that comes or goes. */
const QUERIES_MAX = 64;

export class PodIndex {
  readonly #nodes: ReadonlyMap<string, NodeInfo>;
  readonly #queries = new Map<string, { readonly query: PodQuery; readonly perNode: Map<string, number> }>();
  readonly #holders: Readonly<Record<TermKind, Map<string, TermHolders>>> = { affinity: new Map(), antiAffinity: new Map(), preferred: new Map(), preferredAnti: new Map() };

  constructor(nodes: ReadonlyMap<string, NodeInfo>) {
    this.#nodes = nodes;
  }

  /** Valid until a pod comes or goes. */
  count(query: PodQuery): PerNode {
    let known = this.#queries.get(query.key);
    this.#queries.delete(query.key); // to the end, if it was there
    if (!known) {
      if (this.#queries.size >= QUERIES_MAX) this.#queries.delete(this.#queries.keys().next().value!);
      known = { query, perNode: new Map() };
      for (const { name, pods } of this.#nodes.values())
        for (const { pod } of pods.values()) if (isMeant(query, pod)) add(known.perNode, name, 1);
    }
    this.#queries.set(query.key, known);
    return known.perNode;
  }

  /** The distinct terms of placed pods. */
  holders(kind: TermKind): Iterable<TermHolders> {
    return this.#holders[kind].values();
  }

  podMoved({ pod, terms }: PlacedPod, node: string, by: 1 | -1): void {
    for (const { query, perNode } of this.#queries.values()) if (isMeant(query, pod)) add(perNode, node, by);
    if (!hasTerms(terms)) return;
    for (const kind of ["affinity", "antiAffinity", "preferred", "preferredAnti"] as const)
      for (const term of terms[kind]) {
        let held = this.#holders[kind].get(term.key);
        if (!held) this.#holders[kind].set(term.key, (held = { term, perNode: new Map() }));
        add(held.perNode, node, by);
        if (held.perNode.size === 0) this.#holders[kind].delete(term.key);
      }
  }
}

function isMeant({ namespaces, matches }: PodQuery, pod: Readonly<Pod>): boolean {
  return (namespaces === undefined || namespaces.includes(namespaceOf(pod))) && matches(pod);
}

function add(perNode: Map<string, number>, node: string, by: number): void {
  const count = (perNode.get(node) ?? 0) + by;
  if (count === 0) perNode.delete(node);
  else perNode.set(node, count);
}
