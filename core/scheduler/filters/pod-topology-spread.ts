/**
 * Pods spread over zones, nodes or other domains: no domain may have more than `maxSkew` pods more than the one with the fewest.
 *
 * Source: kubernetes v1.36 pkg/scheduler/framework/plugins/podtopologyspread/{common,filtering}.go
 */
import type { Node, Pod, TopologySpreadConstraint } from "../../api/gen/core.v1.ts";
import { LabelSelector, labelSelector } from "../../api/meta/label-selector.ts";
import { labelAt, labelsOf, namespaceOf } from "../../api/meta/object-meta.ts";
import type { Cluster } from "../cluster.ts";
import type { LiveNode } from "../node-info.ts";
import { matchesNode } from "../node-selector.ts";
import type { Filter } from "../plugin.ts";
import { resolvable, unresolvable } from "../rejection.ts";
import type { Counts, Whereabouts } from "../whereabouts.ts";
import { untoleratedTaint } from "./node.ts";

const SKEW = "node(s) didn't match pod topology spread constraints";
const TOO_SKEWED = resolvable(SKEW);
const LACKS_LABEL = unresolvable(`${SKEW} (missing required label)`);
const NO_PODS: Counts = new Map();

export interface Constraint {
  readonly maxSkew: number;
  readonly topologyKey: string;
  readonly selector: LabelSelector;
  readonly minDomains: number;
  /** Whether nodes that the pod's node affinity, or their taints, keep it from count as well. */
  readonly honorAffinity: boolean;
  readonly honorTaints: boolean;
}

export type Action = "DoNotSchedule" | "ScheduleAnyway";

/** For pods without constraints of their own, over their siblings. */
export interface SpreadDefaults {
  readonly constraints: readonly TopologySpreadConstraint[];
  /** Upstream's own defaults also spread over nodes that lack one of the labels. */
  readonly system: boolean;
}

/** Source: podtopologyspread/plugin.go systemDefaultConstraints */
export const SYSTEM_DEFAULTS: SpreadDefaults = {
  system: true,
  constraints: [
    { topologyKey: "kubernetes.io/hostname", whenUnsatisfiable: "ScheduleAnyway", maxSkew: 3 },
    { topologyKey: "topology.kubernetes.io/zone", whenUnsatisfiable: "ScheduleAnyway", maxSkew: 5 },
  ],
};

export function constraintsOf(pod: Readonly<Pod>, action: Action, defaults: SpreadDefaults, cluster: Cluster): Constraint[] {
  const own = pod.spec.topologySpreadConstraints ?? [];
  if (own.length > 0) return own.filter(({ whenUnsatisfiable }) => whenUnsatisfiable === action).map((one) => read(one, selectorFor(one, pod)));
  const wanted = defaults.constraints.filter(({ whenUnsatisfiable }) => whenUnsatisfiable === action);
  const siblings = wanted.length > 0 ? cluster.owners.siblings(pod) : undefined;
  return siblings ? wanted.map((one) => read(one, siblings)) : [];
}

function read({ maxSkew, topologyKey, minDomains, nodeAffinityPolicy, nodeTaintsPolicy }: TopologySpreadConstraint, selector: LabelSelector): Constraint {
  return { maxSkew, topologyKey, selector, minDomains: minDomains ?? 1, honorAffinity: nodeAffinityPolicy !== "Ignore", honorTaints: nodeTaintsPolicy === "Honor" };
}

function selectorFor(constraint: TopologySpreadConstraint, pod: Readonly<Pod>): LabelSelector {
  const selector = labelSelector(constraint.labelSelector);
  const labels = labelsOf(pod);
  const pinned = (constraint.matchLabelKeys ?? []).filter((key) => labelAt(labels, key) !== undefined).map((key) => ({ key, operator: "=" as const, values: [labelAt(labels, key)!] }));
  return pinned.length === 0 || selector.nothing ? selector : new LabelSelector([...selector.requirements, ...pinned]);
}

/** Whether what runs on `node` counts. */
function counts({ honorAffinity, honorTaints }: Constraint, pod: Readonly<Pod>, node: Readonly<Node>): boolean {
  return (!honorAffinity || matchesNode(pod, node)) && (!honorTaints || untoleratedTaint(pod, node) === undefined);
}

export function hasAll(node: Readonly<Node>, keys: readonly string[]): boolean {
  const labels = labelsOf(node);
  return keys.every((key) => labelAt(labels, key) !== undefined);
}

export function keysOf(constraints: readonly Constraint[]): string[] { return [...new Set(constraints.map(({ topologyKey }) => topologyKey))]; }

/** Where pods of the same namespace match; those that are on their way out do not count. */
export function matchingPods({ selector }: Constraint, pod: Readonly<Pod>, cluster: Cluster): Whereabouts | undefined {
  const namespace = namespaceOf(pod);
  if (selector.empty || selector.nothing) return undefined;
  return cluster.pods.where({ key: `spread ${namespace} ${selector}`, namespaces: [namespace], selectors: [selector], matches: (other) => isMeant(selector, namespace, other) });
}

/** How many of them by domain, on nodes that count and have all of `labels`. */
export function matchingPodsByDomain(constraint: Constraint, labels: readonly string[], { pod, cluster }: { readonly pod: Readonly<Pod>; readonly cluster: Cluster }): Counts {
  const where = matchingPods(constraint, pod, cluster);
  if (!where) return NO_PODS;
  if (!isChoosy(constraint, pod)) return where.by(constraint.topologyKey, labels);
  const found = new Map<string, number>();
  for (const [name, count] of where.perNode) {
    const node = cluster.node(name)?.node;
    const value = node && hasAll(node, labels) && counts(constraint, pod, node) ? labelAt(labelsOf(node), constraint.topologyKey) : undefined;
    if (value !== undefined) found.set(value, (found.get(value) ?? 0) + count);
  }
  return found;
}

/** Whether nodes may not count, for this pod. */
function isChoosy({ honorAffinity, honorTaints }: Constraint, { spec }: Readonly<Pod>): boolean {
  return honorTaints || (honorAffinity && (spec.nodeSelector !== undefined || spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution !== undefined));
}

function isMeant(selector: LabelSelector, namespace: string, pod: Readonly<Pod>): boolean {
  return namespaceOf(pod) === namespace && pod.metadata.deletionTimestamp == null && selector.matches(labelsOf(pod));
}

export function podTopologySpread(defaults: SpreadDefaults = SYSTEM_DEFAULTS): Filter {
  return {
    name: "PodTopologySpread",
    judgesTaints: true,
    prepare({ pod }, cluster) {
      const constraints = constraintsOf(pod, "DoNotSchedule", defaults, cluster);
      if (constraints.length === 0) return undefined;
      const keys = keysOf(constraints);
      const spreads = constraints.map((constraint) => new Spread(constraint, keys, { pod, cluster }));
      return {
        reject({ node }) {
          const labels = labelsOf(node);
          for (const spread of spreads) {
            const value = labelAt(labels, spread.constraint.topologyKey);
            if (value === undefined) return LACKS_LABEL;
            if (spread.isSkewedBy(value)) return TOO_SKEWED;
          }
          return undefined;
        },
        podMoved({ pod: moved }, { node }: LiveNode, by) {
          if (!hasAll(node, keys)) return;
          for (const spread of spreads) {
            const { constraint, constraint: { selector, topologyKey } } = spread;
            if (isMeant(selector, namespaceOf(pod), moved) && !selector.empty && counts(constraint, pod, node)) spread.move(labelAt(labelsOf(node), topologyKey)!, by);
          }
        },
      };
    },
    mayHelp(pod, change, cluster) {
      const constraints = constraintsOf(pod, "DoNotSchedule", defaults, cluster);
      switch (change.of) {
        case "pod":
          return change.object.metadata.uid === pod.metadata.uid && change.old !== undefined && ((constraints.some(({ honorTaints }) => honorTaints) && !Bun.deepEquals(change.old.spec.tolerations, change.object.spec.tolerations))
            || constraints.some(({ selector }) => selector.matches(labelsOf(change.old!)) !== selector.matches(labelsOf(change.object))) || !isSpreadAlike(constraintsOf(change.old, "DoNotSchedule", defaults, cluster), constraints));
        case "node": {
          const { object: node, old } = change;
          const keys = keysOf(constraints);
          const counts = hasAll(node, keys);
          if (change.deleted || !old) return counts;
          return hasAll(old, keys) !== counts || (counts && (keys.some((key) => labelsOf(node)[key] !== labelsOf(old)[key]) || !Bun.deepEquals(node.spec.taints ?? [], old.spec.taints ?? [])));
        }
        case "placed pod": {
          if (namespaceOf(change.object) !== namespaceOf(pod)) return false;
          const before = change.old && !change.deleted ? change.old : undefined;
          const matches = (selector: LabelSelector, other: Readonly<Pod> | undefined): boolean => other !== undefined && isMeant(selector, namespaceOf(pod), other);
          if (change.deleted) return constraints.some(({ selector }) => selector.matches(labelsOf(change.object)));
          return constraints.some(({ selector }) => matches(selector, before) !== matches(selector, change.object));
        }
        default: return false;
      }
    },
  };
}

/** Whether the same pods count: by default those that the same services and controllers select. */
function isSpreadAlike(some: readonly Constraint[], others: readonly Constraint[]): boolean {
  return some.length === others.length && some.every(({ selector }, i) => `${selector}` === `${others[i]!.selector}`);
}

/** What one constraint says of domains. */
class Spread {
  readonly constraint: Constraint;
  /** Domains that count, and how many pods are in those that have any. */
  readonly #domains: number;
  #pods: Counts;
  #moved: Map<string, number> | undefined;
  readonly #own: 0 | 1;
  /** In any domain. */
  #fewest: number;

  constructor(constraint: Constraint, keys: readonly string[], { pod, cluster }: { readonly pod: Readonly<Pod>; readonly cluster: Cluster }) {
    this.constraint = constraint;
    this.#domains = domainsOf(constraint, keys, { pod, cluster });
    this.#pods = matchingPodsByDomain(constraint, keys, { pod, cluster });
    this.#own = constraint.selector.matches(labelsOf(pod)) ? 1 : 0;
    this.#fewest = this.#least();
  }

  /** Whether the pod would make the domain too full. */
  isSkewedBy(domain: string): boolean { return (this.#pods.get(domain) ?? 0) + this.#own - this.#fewest > this.constraint.maxSkew; }

  move(domain: string, by: 1 | -1): void {
    this.#pods = this.#moved ??= new Map(this.#pods);
    const count = (this.#moved.get(domain) ?? 0) + by;
    if (count === 0) this.#moved.delete(domain);
    else this.#moved.set(domain, count);
    this.#fewest = this.#least();
  }

  #least(): number {
    if (this.#domains < this.constraint.minDomains || this.#pods.size < this.#domains) return 0;
    let lowest = Number.POSITIVE_INFINITY;
    for (const count of this.#pods.values()) if (count < lowest) lowest = count;
    return lowest;
  }
}

/** How many. */
function domainsOf(constraint: Constraint, keys: readonly string[], { pod, cluster }: { readonly pod: Readonly<Pod>; readonly cluster: Cluster }): number {
  if (!isChoosy(constraint, pod)) return cluster.pods.domains.by(constraint.topologyKey, keys).size;
  const found = new Set<string>();
  for (const { node } of cluster.nodes()) if (hasAll(node, keys) && counts(constraint, pod, node)) found.add(labelAt(labelsOf(node), constraint.topologyKey)!);
  return found.size;
}
