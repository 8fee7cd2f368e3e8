/** Whether a node has the labels and the name that a pod, a volume or a device asks for. */
import type { Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod } from "../api/gen/core.v1.ts";

export function matchesNode({ spec }: Readonly<Pod>, node: Readonly<Node>): boolean {
  const labels = node.metadata.labels ?? {};
  for (const name in spec.nodeSelector) if (labels[name] !== spec.nodeSelector[name]) return false;
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return !required || matchesNodeSelector(required, node);
}

export function matchesNodeSelector({ nodeSelectorTerms }: NodeSelector, node: Readonly<Node>): boolean {
  return (nodeSelectorTerms ?? []).some((term) => matchesTerm(term, node));
}

export function matchesTerm(term: NodeSelectorTerm, node: Readonly<Node>): boolean {
  const matchExpressions = term.matchExpressions ?? [];
  const matchFields = term.matchFields ?? [];
  if (matchExpressions.length === 0 && matchFields.length === 0) return false; // an empty term matches nothing
  const labels = node.metadata.labels ?? {};
  return matchExpressions.every((requirement) => matchesRequirement(requirement, labels[requirement.key]))
    && matchFields.every((requirement) => matchesRequirement(requirement, requirement.key === "metadata.name" ? node.metadata.name : undefined));
}

function matchesRequirement({ operator, values }: NodeSelectorRequirement, actual: string | undefined): boolean {
  switch (operator) {
    case "In": return actual !== undefined && (values ?? []).includes(actual);
    case "NotIn": return actual === undefined || !(values ?? []).includes(actual);
    case "Exists": return actual !== undefined;
    case "DoesNotExist": return actual === undefined;
    case "Gt": return isWhole(actual) && isWhole(values?.[0]) && Number(actual) > Number(values![0]);
    case "Lt": return isWhole(actual) && isWhole(values?.[0]) && Number(actual) < Number(values![0]);
    default: return false;
  }
}

/** As numbers in labels and taints are written. */
export function isWhole(text: string | undefined): boolean {
  return text !== undefined && /^[-+]?\d+$/.test(text);
}
