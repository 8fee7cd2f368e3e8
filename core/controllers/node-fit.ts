/**
 * Whether a node is one that a pod may be on: its node selector and required node affinity.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go
 */
import type { Node, NodeSelectorRequirement, NodeSelectorTerm, PodSpec } from "../api/gen/core.v1.ts";
import { isLessInteger } from "../api/meta/go-integer.ts";
import { labelsOf } from "../api/meta/object-meta.ts";

export function fitsNode({ nodeSelector = {}, affinity }: Readonly<PodSpec>, node: Readonly<Node>): boolean {
  const labels = labelsOf(node);
  if (!Object.entries(nodeSelector).every(([key, value]) => labels[key] === value)) return false;
  const required = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return required === undefined || required.nodeSelectorTerms.some((term) => matchesTerm(term, node));
}

/** All of a term must hold; an empty one holds for no node. */
function matchesTerm({ matchExpressions = [], matchFields = [] }: Readonly<NodeSelectorTerm>, node: Readonly<Node>): boolean {
  if (matchExpressions.length + matchFields.length === 0) return false;
  const labels = labelsOf(node);
  return matchExpressions.every((requirement) => meets(requirement, Object.hasOwn(labels, requirement.key) ? labels[requirement.key] : undefined))
    && matchFields.every((requirement) => requirement.key === "metadata.name" && meets(requirement, node.metadata.name));
}

function meets({ operator, values = [] }: Readonly<NodeSelectorRequirement>, held: string | undefined): boolean {
  switch (operator) {
    case "In": return held !== undefined && values.includes(held);
    case "NotIn": return held === undefined || !values.includes(held);
    case "Exists": return held !== undefined;
    case "DoesNotExist": return held === undefined;
    case "Gt": return isLessInteger(values[0], held);
    case "Lt": return isLessInteger(held, values[0]);
  }
}
