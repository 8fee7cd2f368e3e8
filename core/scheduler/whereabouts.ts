/**
 * Where certain pods are: how many on each node, and by the values of a label of their nodes ("zone": a has 3, b has 5). What was asked for once is kept up to date pod by pod,
 * so that in a large cluster a decision does not add it up anew.
 *
 * Source: kubernetes v1.36 pkg/scheduler/framework/plugins/podtopologyspread, interpodaffinity: their counts by topology pair, there once for each pod to be placed
 */
import { labelsOf } from "../api/meta/object-meta.ts";
import type { NodeInfo } from "./node-info.ts";

type Nodes = ReadonlyMap<string, NodeInfo>;
/** How many; no zeros. */
export type Counts = ReadonlyMap<string, number>;

/** Labels that are told apart at a time; those of pods in a cluster are few. */
const LABELS_MAX = 16;

interface Label {
  readonly topologyKey: string;
  /** Labels without which a node does not count. */
  readonly required: readonly string[];
}

export class Whereabouts {
  readonly #nodes: Nodes;
  readonly #perNode = new Map<string, number>();
  readonly #byLabel = new Map<string, Label & { readonly counts: Map<string, number> }>();

  constructor(nodes: Nodes) {
    this.#nodes = nodes;
  }

  /** By name of node. */
  get perNode(): Counts { return this.#perNode; }

  /** By value of `topologyKey`; nodes that lack it, or one of `required`, are left out. Valid until a pod comes or goes. */
  by(topologyKey: string, required: readonly string[] = []): Counts {
    const id = idOf(topologyKey, required);
    let known = this.#byLabel.get(id);
    if (!known) {
      if (this.#byLabel.size >= LABELS_MAX) this.#byLabel.clear();
      this.#byLabel.set(id, (known = { topologyKey, required, counts: new Map() }));
      for (const [name, count] of this.#perNode) add(known.counts, valueOn(this.#nodes.get(name), known), count);
    }
    return known.counts;
  }

  move(node: string, by: number): void {
    add(this.#perNode, node, by);
    for (const label of this.#byLabel.values()) add(label.counts, valueOn(this.#nodes.get(node), label), by);
  }

  /** Nodes are there, are gone or have other labels. */
  nodesChanged(): void { this.#byLabel.clear(); }
}

/** How many nodes there are, by the values of their labels. */
export class Domains {
  readonly #nodes: Nodes;
  readonly #byLabel = new Map<string, Counts>();

  constructor(nodes: Nodes) {
    this.#nodes = nodes;
  }

  /** As Whereabouts.by, of nodes. */
  by(topologyKey: string, required: readonly string[] = []): Counts {
    const id = idOf(topologyKey, required);
    let known = this.#byLabel.get(id);
    if (!known) {
      if (this.#byLabel.size >= LABELS_MAX) this.#byLabel.clear();
      const counts = new Map<string, number>();
      for (const info of this.#nodes.values()) add(counts, valueOn(info, { topologyKey, required }), 1);
      this.#byLabel.set(id, (known = counts));
    }
    return known;
  }

  nodesChanged(): void { this.#byLabel.clear(); }
}

function idOf(topologyKey: string, required: readonly string[]): string { return required.length === 0 ? topologyKey : `${topologyKey} ${required.join(" ")}`; }

function valueOn(info: NodeInfo | undefined, { topologyKey, required }: Label): string | undefined {
  if (!info?.node) return undefined;
  const labels = labelsOf(info.node);
  for (const key of required) if (labels[key] === undefined) return undefined;
  return labels[topologyKey];
}

function add(counts: Map<string, number>, value: string | undefined, by: number): void {
  if (value === undefined) return;
  const count = (counts.get(value) ?? 0) + by;
  if (count === 0) counts.delete(value);
  else counts.set(value, count);
}
