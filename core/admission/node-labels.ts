/**
 * Which labels a node may put on itself: those that describe it, and none that would steer pods to it.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/kubelet/pkg/apis/well_known_labels.go, plugin/pkg/admission/noderestriction
 */
type Labels = Readonly<Record<string, string>>;

const KUBELET_LABELS: ReadonlySet<string> = new Set([
  "kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone",
  "failure-domain.beta.kubernetes.io/region", "beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type", "kubernetes.io/os", "kubernetes.io/arch",
  "beta.kubernetes.io/os", "beta.kubernetes.io/arch",
]);
const KUBELET_NAMESPACES = ["kubelet.kubernetes.io", "node.kubernetes.io"];
const RESTRICTED_NAMESPACE = "node-restriction.kubernetes.io";

/** Sorted keys of labels that differ and that a node may not set, change or remove on itself. */
export function forbiddenNodeLabels(next: Labels = {}, old: Labels = {}): string[] {
  const changed = [...new Set([...Object.keys(next), ...Object.keys(old)])].filter((key) => next[key] !== old[key]);
  return changed.filter((key) => isWithin(namespaceOf(key), [RESTRICTED_NAMESPACE]) || (isWithin(namespaceOf(key), ["kubernetes.io", "k8s.io"]) && !isKubeletLabel(key))).sort();
}

function isKubeletLabel(key: string): boolean { return KUBELET_LABELS.has(key) || isWithin(namespaceOf(key), KUBELET_NAMESPACES); }

function namespaceOf(key: string): string { return key.includes("/") ? key.slice(0, key.indexOf("/")) : ""; }

function isWithin(namespace: string, parents: readonly string[]): boolean { return parents.some((parent) => namespace === parent || namespace.endsWith(`.${parent}`)); }
