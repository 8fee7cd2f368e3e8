/**
 * Pods spread over zones, nodes or other domains: no domain may have more than `maxSkew` pods more than the one with the fewest.
 *
 * Source: kubernetes v1.36 pkg/scheduler/framework/plugins/podtopologyspread/{common,filtering}.go
 */
import type { Node, Pod, TopologySpreadConstraint } from "../../api/gen/core.v1.ts";
import { LabelSelector, labelSelector } from "../../api/meta/label-selector.ts";
import { labelsOf, namespaceOf } from "../../api/meta/object-meta.ts";
import { nodeChanged } from "../changes.ts";
import type { Cluster } from "../cluster.ts";
import { type Filter, type LiveNode, resolvable, unresolvable } from "../plugin.ts";
import type { PerNode } from "../pod-index.ts";
import { matchesNode, untoleratedTaint } from "./node.ts";

const SKEW = "node(s) didn't match pod topology spread constraints";
const NO_LABEL = `${SKEW} (missing required label)`;

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
  const pinned = (constraint.matchLabelKeys ?? []).filter((key) => labels[key] !== undefined).map((key) => ({ key, operator: "=" as const, values: [labels[key]!] }));
  return pinned.length === 0 || selector.nothing ? selector : new LabelSelector([...selector.requirements, ...pinned]);
}

/** Whether what runs on `node` counts. */
export function counts({ honorAffinity, honorTaints }: Constraint, pod: Readonly<Pod>, node: Readonly<Node>): boolean {
  return (!honorAffinity || matchesNode(pod, node)) && (!honorTaints || untoleratedTaint(pod, node) === undefined);
}

export function hasAllLabels(node: Readonly<Node>, constraints: readonly Constraint[]): boolean {
  const labels = labelsOf(node);
  return constraints.every(({ topologyKey }) => labels[topologyKey] !== undefined);
}

/** How many pods of the same namespace match, by node; those that are on their way out do not count. */
export function matchingPods({ selector }: Constraint, pod: Readonly<Pod>, cluster: Cluster): PerNode {
  const namespace = namespaceOf(pod);
  if (selector.empty || selector.nothing) return new Map();
  return cluster.pods.count({ key: `spread ${namespace} ${selector}`, namespaces: [namespace], matches: (other) => isMeant(selector, namespace, other) });
}

function isMeant(selector: LabelSelector, namespace: string, pod: Readonly<Pod>): boolean {
  return namespaceOf(pod) === namespace && pod.metadata.deletionTimestamp == null && selector.matches(labelsOf(pod));
}

export function podTopologySpread(defaults: SpreadDefaults = SYSTEM_DEFAULTS): Filter {
  return {
    name: "PodTopologySpread",
    prepare({ pod }, cluster) {
      const constraints = constraintsOf(pod, "DoNotSchedule", defaults, cluster);
      if (constraints.length === 0) return undefined;
      const domains = constraints.map((constraint) => domainsOf(constraint, constraints, pod, cluster));
      const fewestIn = (counted: ReadonlyMap<string, number>, { minDomains }: Constraint): number => (counted.size < minDomains ? 0 : least(counted.values()));
      const fewest = domains.map((counted, i) => fewestIn(counted, constraints[i]!));
      const selfMatches = constraints.map(({ selector }) => (selector.matches(labelsOf(pod)) ? 1 : 0));
      return {
        reject({ node }) {
          for (const [i, { topologyKey, maxSkew }] of constraints.entries()) {
            const value = labelsOf(node)[topologyKey];
            if (value === undefined) return unresolvable(NO_LABEL);
            if ((domains[i]!.get(value) ?? 0) + selfMatches[i]! - fewest[i]! > maxSkew) return resolvable(SKEW);
          }
          return undefined;
        },
        podMoved({ pod: moved }, { node }: LiveNode, by) {
          if (!hasAllLabels(node, constraints)) return;
          for (const [i, constraint] of constraints.entries()) {
            if (!isMeant(constraint.selector, namespaceOf(pod), moved) || constraint.selector.empty || !counts(constraint, pod, node)) continue;
            const value = labelsOf(node)[constraint.topologyKey]!;
            domains[i]!.set(value, (domains[i]!.get(value) ?? 0) + by);
            fewest[i] = fewestIn(domains[i]!, constraint);
          }
        },
      };
    },
    mayHelp(pod, change, cluster) {
      const constraints = constraintsOf(pod, "DoNotSchedule", defaults, cluster);
      switch (change.of) {
        case "pod": return change.object.metadata.uid === pod.metadata.uid;
        case "node":
          return change.deleted ? hasAllLabels(change.object, constraints)
            : nodeChanged(change, ({ metadata, spec }) => [constraints.map(({ topologyKey }) => metadata.labels?.[topologyKey]), metadata.labels, spec.taints]);
        case "placed pod": {
          if (namespaceOf(change.object) !== namespaceOf(pod)) return false;
          const before = change.old && !change.deleted ? change.old : undefined;
          const matches = (other: Readonly<Pod>): boolean => constraints.some(({ selector }) => isMeant(selector, namespaceOf(pod), other));
          if (change.deleted) return constraints.some(({ selector }) => selector.matches(labelsOf(change.object)));
          return before === undefined ? matches(change.object) : matches(before) !== matches(change.object);
        }
        default: return false;
      }
    },
  };
}

function domainsOf(constraint: Constraint, constraints: readonly Constraint[], pod: Readonly<Pod>, cluster: Cluster): Map<string, number> {
  const perNode = matchingPods(constraint, pod, cluster);
  const domains = new Map<string, number>();
  for (const { name, node } of cluster.nodes()) {
    if (!hasAllLabels(node, constraints) || !counts(constraint, pod, node)) continue;
    const value = labelsOf(node)[constraint.topologyKey]!;
    domains.set(value, (domains.get(value) ?? 0) + (perNode.get(name) ?? 0));
  }
  return domains;
}

function least(numbers: Iterable<number>): number {
  let lowest = Infinity;
  for (const number of numbers) if (number < lowest) lowest = number;
  return lowest;
}
