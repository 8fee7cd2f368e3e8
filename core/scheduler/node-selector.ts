/** Whether a node has the labels and the name that a pod, a volume or a device asks for. */
import type { Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod } from "../api/gen/core.v1.ts";
import { isLessInteger } from "../api/meta/go-integer.ts";

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
    case "Gt": return isLessInteger(values?.[0], actual);
    case "Lt": return isLessInteger(actual, values?.[0]);
    default: return false;
  }
}
