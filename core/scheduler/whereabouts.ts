/**
 * Where certain pods are: how many on each node, and by the values of a label of their nodes ("zone": a has 3, b has 5). What was asked for once is kept up to date pod by pod,
 * so that in a large cluster a decision does not add it up anew.
 *
 * Source: kubernetes v1.36 pkg/scheduler/framework/plugins/podtopologyspread, interpodaffinity: their counts by topology pair, there once for each pod to be placed
 */
import { labelAt, labelsOf } from "../api/meta/object-meta.ts";
import type { NodeInfo } from "./node-info.ts";

type Nodes = ReadonlyMap<string, NodeInfo>;
/** How many; no zeros. */
export type Counts = ReadonlyMap<string, number>;

/** Labels that are told apart at a time; those of pods in a cluster are few. */
const LABELS_MAX = 16;

/** What is known by label: by those that are required, and by the key. The former may be thousands, of each of thousands of keys. */
class ByLabel<T> {
  readonly #known = new Map<string, Map<string, T>>();
  #size = 0;

  of({ topologyKey, required }: Label, make: () => T): T {
    const known = this.#known.get(idOf(required))?.get(topologyKey);
    if (known !== undefined) return known;
    if (this.#size >= LABELS_MAX) this.clear();
    const made = make(), same = this.#known.get(idOf(required));
    if (same) same.set(topologyKey, made);
    else this.#known.set(idOf(required), new Map([[topologyKey, made]]));
    this.#size++;
    return made;
  }

  *all(): Iterable<T> { for (const known of this.#known.values()) yield* known.values(); }

  clear(): void {
    this.#known.clear();
    this.#size = 0;
  }
}

/** Of lists that are asked with again and again. */
const ids = new WeakMap<readonly string[], string>();

function idOf(required: readonly string[]): string {
  if (required.length < 2) return required[0] ?? "";
  let id = ids.get(required);
  if (id === undefined) ids.set(required, (id = required.join(" ")));
  return id;
}

interface Label {
  readonly topologyKey: string;
  /** Labels without which a node does not count. */
  readonly required: readonly string[];
}

export class Whereabouts {
  readonly #nodes: Nodes;
  readonly #perNode = new Map<string, number>();
  readonly #byLabel = new ByLabel<Label & { readonly counts: Map<string, number> }>();

  constructor(nodes: Nodes) {
    this.#nodes = nodes;
  }

  /** By name of node. */
  get perNode(): Counts { return this.#perNode; }

  /** By value of `topologyKey`; nodes that lack it, or one of `required`, are left out. Valid until a pod comes or goes. */
  by(topologyKey: string, required: readonly string[] = []): Counts {
    const label: Label = { topologyKey, required };
    return this.#byLabel.of(label, () => {
      const counts = new Map<string, number>();
      for (const [name, count] of this.#perNode) add(counts, valueOn(this.#nodes.get(name), label), count);
      return { ...label, counts };
    }).counts;
  }

  move(node: string, by: number): void {
    add(this.#perNode, node, by);
    for (const label of this.#byLabel.all()) add(label.counts, valueOn(this.#nodes.get(node), label), by);
  }

  /** Nodes are there, are gone or have other labels. */
  nodesChanged(): void { this.#byLabel.clear(); }
}

/** How many nodes there are, by the values of their labels. */
export class Domains {
  readonly #nodes: Nodes;
  readonly #byLabel = new ByLabel<Counts>();

  constructor(nodes: Nodes) {
    this.#nodes = nodes;
  }

  /** As Whereabouts.by, of nodes. */
  by(topologyKey: string, required: readonly string[] = []): Counts {
    return this.#byLabel.of({ topologyKey, required }, () => {
      const counts = new Map<string, number>();
      for (const info of this.#nodes.values()) add(counts, valueOn(info, { topologyKey, required }), 1);
      return counts;
    });
  }

  nodesChanged(): void { this.#byLabel.clear(); }
}

function valueOn(info: NodeInfo | undefined, { topologyKey, required }: Label): string | undefined {
  if (!info?.node) return undefined;
  const labels = labelsOf(info.node);
  for (const key of required) if (labelAt(labels, key) === undefined) return undefined;
  return labelAt(labels, topologyKey);
}

function add(counts: Map<string, number>, value: string | undefined, by: number): void {
  if (value === undefined) return;
  const count = (counts.get(value) ?? 0) + by;
  if (count === 0) counts.delete(value);
  else counts.set(value, count);
}
