/**
 * Which pods are where, answered by selector: how many pods match on each node or by a label of nodes, and what the affinity terms of placed pods say. Kept up to date
 * pod by pod, so that placing one pod does not read all the others.
 */
import type { Pod } from "../api/gen/core.v1.ts";
import type { LabelSelector } from "../api/meta/label-selector.ts";
import { namespaceOf } from "../api/meta/object-meta.ts";
import { type AffinityTerm, type AffinityTerms, hasTerms } from "./affinity-terms.ts";
import { areFoundByLabel, LabelledPods } from "./labelled-pods.ts";
import type { NodeInfo, PlacedPod } from "./node-info.ts";
import { Domains, Whereabouts } from "./whereabouts.ts";

export interface PodQuery {
  /** The same key always means the same pods. */
  readonly key: string;
  /** Only pods in these are counted; undefined: in any. */
  readonly namespaces: readonly string[] | undefined;
  /** All that it matches, each of these selects. */
  readonly selectors?: readonly LabelSelector[] | undefined;
  matches(pod: Readonly<Pod>): boolean;
}

export type TermKind = keyof AffinityTerms;

/** Placed pods that have the same term. */
export interface TermHolders { readonly term: AffinityTerm; readonly where: Whereabouts }

/** Queries that are kept up to date; the one that was not asked for longest goes first. Each costs a look at every pod that comes or goes. */
const QUERIES_MAX = 64;

export class PodIndex {
  readonly domains: Domains;
  readonly #nodes: ReadonlyMap<string, NodeInfo>;
  readonly #queries = new Map<string, { readonly query: PodQuery; readonly where: Whereabouts }>();
  readonly #holders: Readonly<Record<TermKind, Map<string, TermHolders>>> = { affinity: new Map(), antiAffinity: new Map(), preferred: new Map(), preferredAnti: new Map() };

  /** Of all pods there are, once they have been looked for. */
  #labelled: LabelledPods | undefined;

  constructor(nodes: ReadonlyMap<string, NodeInfo>) {
    this.#nodes = nodes;
    this.domains = new Domains(nodes);
  }

  /** Where the pods are that `query` means. */
  where(query: PodQuery): Whereabouts {
    let known = this.#queries.get(query.key);
    this.#queries.delete(query.key); // to the end, if it was there
    if (!known) {
      if (this.#queries.size >= QUERIES_MAX) this.#queries.delete(this.#queries.keys().next().value!);
      known = { query, where: new Whereabouts(this.#nodes) };
      for (const [node, { pod }] of this.#among(query)) if (isMeant(query, pod)) known.where.move(node, 1);
    }
    this.#queries.set(query.key, known);
    return known.where;
  }

  /** Placed pods among which are all that `query` means. */
  *#among({ selectors = [] }: PodQuery): Iterable<readonly [node: string, placed: PlacedPod]> {
    if (!areFoundByLabel(selectors)) return yield* this.#all();
    if (!this.#labelled) {
      this.#labelled = new LabelledPods();
      for (const [node, { pod }] of this.#all()) this.#labelled.move(pod, node, 1);
    }
    for (const [uid, node] of this.#labelled.among(selectors)) yield [node, this.#nodes.get(node)!.pods.get(uid)!];
  }

  *#all(): Iterable<readonly [node: string, placed: PlacedPod]> {
    for (const { name, pods } of this.#nodes.values()) for (const placed of pods.values()) yield [name, placed];
  }

  /** The distinct terms of placed pods. */
  holders(kind: TermKind): Iterable<TermHolders> {
    return this.#holders[kind].values();
  }

  /** After it was put on the node, or taken off it. */
  podMoved({ pod, terms }: PlacedPod, node: string, by: 1 | -1): void {
    this.#labelled?.move(pod, node, by);
    for (const { query, where } of this.#queries.values()) if (isMeant(query, pod)) where.move(node, by);
    if (!hasTerms(terms)) return;
    for (const kind of ["affinity", "antiAffinity", "preferred", "preferredAnti"] as const)
      for (const term of terms[kind]) {
        let held = this.#holders[kind].get(term.key);
        if (!held) this.#holders[kind].set(term.key, (held = { term, where: new Whereabouts(this.#nodes) }));
        held.where.move(node, by);
        if (held.where.perNode.size === 0) this.#holders[kind].delete(term.key);
      }
  }

  /** A node is there, is gone or has other labels. */
  nodesChanged(): void {
    this.domains.nodesChanged();
    for (const { where } of this.#queries.values()) where.nodesChanged();
    for (const holders of Object.values(this.#holders)) for (const { where } of holders.values()) where.nodesChanged();
  }
}

function isMeant({ namespaces, matches }: PodQuery, pod: Readonly<Pod>): boolean {
  return (namespaces === undefined || namespaces.includes(namespaceOf(pod))) && matches(pod);
}
