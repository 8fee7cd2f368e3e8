/** Filters on what a node is: its name, whether it takes pods, its taints, its labels. */
import type { Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, Taint, Toleration } from "../../api/gen/core.v1.ts";
import type { Filter } from "../plugin.ts";

export const nodeName: Filter = {
  name: "NodeName",
  preemptable: false,
  reject: ({ pod }, { name }) => (pod.spec.nodeName && pod.spec.nodeName !== name ? ["node(s) didn't match the requested node name"] : []),
};

const UNSCHEDULABLE: Taint = { key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" };

export const nodeUnschedulable: Filter = {
  name: "NodeUnschedulable",
  preemptable: false,
  reject: ({ pod }, { node }) => (node.spec.unschedulable && !isTolerated(UNSCHEDULABLE, pod.spec.tolerations ?? []) ? ["node(s) were unschedulable"] : []),
};

export const taintToleration: Filter = {
  name: "TaintToleration",
  preemptable: false,
  reject({ pod }, { node }) {
    const taint = (node.spec.taints ?? []).find(({ effect, ...rest }) => effect !== "PreferNoSchedule" && !isTolerated({ effect, ...rest }, pod.spec.tolerations ?? []));
    return taint ? ["node(s) had untolerated taint(s)"] : [];
  },
};

/** Source: component-helpers scheduling/corev1 ToleratesTaint */
export function isTolerated(taint: Taint, tolerations: readonly Toleration[]): boolean {
  return tolerations.some((toleration) => {
    if (toleration.effect && toleration.effect !== taint.effect) return false;
    if (toleration.key && toleration.key !== taint.key) return false;
    switch (toleration.operator) {
      case "Exists": return true;
      case "Lt": return Number(taint.value) < Number(toleration.value);
      case "Gt": return Number(taint.value) > Number(toleration.value);
      default: return (toleration.key ?? "") !== "" && (toleration.value ?? "") === (taint.value ?? "");
    }
  });
}

export const nodeAffinity: Filter = {
  name: "NodeAffinity",
  preemptable: false,
  reject: ({ pod }, { node }) => (matchesNode(pod, node) ? [] : ["node(s) didn't match Pod's node affinity/selector"]),
};

export function matchesNode({ spec }: Readonly<Pod>, node: Readonly<Node>): boolean {
  const labels = node.metadata.labels ?? {};
  for (const [name, value] of Object.entries(spec.nodeSelector ?? {})) if (labels[name] !== value) return false;
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return !required || matchesNodeSelector(required, node);
}

export function matchesNodeSelector({ nodeSelectorTerms }: NodeSelector, node: Readonly<Node>): boolean {
  return (nodeSelectorTerms ?? []).some((term) => matchesTerm(term, node));
}

export function matchesTerm({ matchExpressions = [], matchFields = [] }: NodeSelectorTerm, node: Readonly<Node>): boolean {
  if (matchExpressions.length === 0 && matchFields.length === 0) return false; // an empty term matches nothing
  const labels = node.metadata.labels ?? {};
  return matchExpressions.every((requirement) => matchesRequirement(requirement, labels[requirement.key]))
    && matchFields.every((requirement) => matchesRequirement(requirement, requirement.key === "metadata.name" ? node.metadata.name : undefined));
}

function matchesRequirement({ operator, values = [] }: NodeSelectorRequirement, actual: string | undefined): boolean {
  switch (operator) {
    case "In": return actual !== undefined && values.includes(actual);
    case "NotIn": return actual === undefined || !values.includes(actual);
    case "Exists": return actual !== undefined;
    case "DoesNotExist": return actual === undefined;
    case "Gt": return isWhole(actual) && isWhole(values[0]) && Number(actual) > Number(values[0]);
    case "Lt": return isWhole(actual) && isWhole(values[0]) && Number(actual) < Number(values[0]);
    default: return false;
  }
}

function isWhole(text: string | undefined): boolean {
  return text !== undefined && /^-?\d+$/.test(text);
}
