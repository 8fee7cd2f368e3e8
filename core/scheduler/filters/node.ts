/** Filters on what a node is: its name, whether it takes pods, its taints, its labels. */
import type { Node, NodeSelector, Pod, Taint } from "../../api/gen/core.v1.ts";
import { tolerationsOf } from "../../api/meta/tolerations.ts";
import { nodeChanged } from "../changes.ts";
import { matchesNode, matchesNodeSelector } from "../node-selector.ts";
import type { Filter } from "../plugin.ts";
import { unresolvable } from "../rejection.ts";

export const nodeName: Filter = {
  name: "NodeName",
  ofNode: true,
  prepare({ pod: { spec } }) {
    return spec.nodeName ? { reject: ({ name }) => (name === spec.nodeName ? undefined : unresolvable("node(s) didn't match the requested node name")) } : undefined;
  },
  mayHelp: (_pod, change) => nodeChanged(change, ({ metadata }) => metadata.name),
};

const UNSCHEDULABLE: Taint = { key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" };

export const nodeUnschedulable: Filter = {
  name: "NodeUnschedulable",
  judgesTaints: true,
  ofNode: true,
  prepare({ pod }) {
    return tolerationsOf(pod.spec.tolerations).of(UNSCHEDULABLE) ? undefined : { reject: ({ node }) => (node.spec.unschedulable ? unresolvable("node(s) were unschedulable") : undefined) };
  },
  mayHelp: (pod, change) => (change.of === "pod" && tolerationsChanged(pod, change) && tolerationsOf(change.object.spec.tolerations).of(UNSCHEDULABLE) !== undefined) || (nodeChanged(change, ({ spec }) => spec.unschedulable ?? false) && change.of === "node" && !change.object.spec.unschedulable),
};

export const taintToleration: Filter = {
  name: "TaintToleration",
  judgesTaints: true,
  ofNode: true,
  prepare: ({ pod }) => ({ reject: ({ node }) => (untoleratedTaint(pod, node) ? unresolvable("node(s) had untolerated taint(s)") : undefined) }),
  mayHelp: (pod, change) => tolerationsChanged(pod, change)
    || (change.of === "node" && !change.deleted && (!change.old || untoleratedTaint(pod, change.old) !== undefined) && !untoleratedTaint(pod, change.object)),
};

function tolerationsChanged(pod: Readonly<Pod>, change: Parameters<Filter["mayHelp"]>[1]): boolean {
  return change.of === "pod" && change.object.metadata.uid === pod.metadata.uid && !Bun.deepEquals(change.object.spec.tolerations, change.old?.spec.tolerations);
}

/** A taint that keeps the pod off. */
export function untoleratedTaint({ spec }: Readonly<Pod>, node: Readonly<Node>): Taint | undefined {
  const { taints } = node.spec;
  if (!taints || taints.length === 0) return undefined;
  const tolerations = tolerationsOf(spec.tolerations);
  return taints.find((taint) => taint.effect !== "PreferNoSchedule" && !tolerations.of(taint));
}

const NOT_MATCHED = "node(s) didn't match Pod's node affinity/selector";
const NOT_ENFORCED = "node(s) didn't match scheduler-enforced node affinity";

/** `addedAffinity`: what the profile asks of nodes for all its pods. */
export function nodeAffinity({ addedAffinity }: { readonly addedAffinity?: NodeSelector | undefined } = {}): Filter {
  const takes = (node: Readonly<Node>, pod: Readonly<Pod>): boolean => (!addedAffinity || matchesNodeSelector(addedAffinity, node)) && matchesNode(pod, node);
  return {
    name: "NodeAffinity",
    ofNode: true,
    prepare({ pod }) {
      const { nodeSelector, affinity } = pod.spec;
      const required = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
      if (!addedAffinity && !required && Object.keys(nodeSelector ?? {}).length === 0) return undefined;
      const onlyNodes = required && namedNodes(required);
      if (onlyNodes?.size === 0) return { refused: "pod affinity terms conflict" };
      return {
        onlyNodes,
        reject({ node }) {
          if (addedAffinity && !matchesNodeSelector(addedAffinity, node)) return unresolvable(NOT_ENFORCED);
          return matchesNode(pod, node) ? undefined : unresolvable(NOT_MATCHED);
        },
      };
    },
    mayHelp: (pod, change) => change.of === "node" && !change.deleted && takes(change.object, pod) && !(change.old && takes(change.old, pod)),
  };
}

/** Where every term names nodes (pods of DaemonSets), there is no need to look at others. */
function namedNodes({ nodeSelectorTerms }: NodeSelector): Set<string> | undefined {
  const names = new Set<string>();
  for (const { matchFields } of nodeSelectorTerms ?? []) {
    const lists = (matchFields ?? []).filter(({ key, operator }) => key === "metadata.name" && operator === "In").map(({ values }) => new Set(values ?? []));
    if (lists.length === 0) return undefined;
    for (const name of lists.reduce((some, more) => some.intersection(more))) names.add(name);
  }
  return (nodeSelectorTerms ?? []).length > 0 ? names : undefined;
}
