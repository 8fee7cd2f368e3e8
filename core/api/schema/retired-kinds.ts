/**
 * Kinds in versions that upstream's scheme still knows and no server of v1.36 serves. An object of one is read all the same: a patch that says so patches,
 * and who sends one where another version is wanted is told of the version, not that there is no such kind.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/{api,apiextensions-apiserver,kube-aggregator} register.go
 */
import { formatApiVersion, type GroupVersionKind } from "../meta/gvk.ts";

const RBAC = ["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"];
const FLOWS = ["FlowSchema", "PriorityLevelConfiguration"];

export const RETIRED_KINDS: ReadonlyMap<string, readonly string[]> = new Map(Object.entries({
  "admission.k8s.io/v1beta1": ["AdmissionReview"],
  "apiextensions.k8s.io/v1beta1": ["CustomResourceDefinition"],
  "apiregistration.k8s.io/v1beta1": ["APIService"],
  "apps/v1beta1": ["Deployment", "DeploymentRollback", "Scale", "StatefulSet", "ControllerRevision"],
  "apps/v1beta2": ["Deployment", "Scale", "StatefulSet", "DaemonSet", "ReplicaSet", "ControllerRevision"],
  "authorization.k8s.io/v1beta1": ["SelfSubjectRulesReview", "SelfSubjectAccessReview", "SubjectAccessReview", "LocalSubjectAccessReview"],
  "batch/v1beta1": ["CronJob"],
  "discovery.k8s.io/v1beta1": ["EndpointSlice"],
  "events.k8s.io/v1beta1": ["Event"],
  "extensions/v1beta1": ["Deployment", "DeploymentRollback", "Scale", "DaemonSet", "Ingress", "ReplicaSet", "NetworkPolicy"],
  "flowcontrol.apiserver.k8s.io/v1beta1": FLOWS,
  "flowcontrol.apiserver.k8s.io/v1beta2": FLOWS,
  "imagepolicy.k8s.io/v1alpha1": ["ImageReview"],
  "node.k8s.io/v1alpha1": ["RuntimeClass"],
  "node.k8s.io/v1beta1": ["RuntimeClass"],
  "policy/v1beta1": ["PodDisruptionBudget", "Eviction"],
  "rbac.authorization.k8s.io/v1alpha1": RBAC,
  "rbac.authorization.k8s.io/v1beta1": RBAC,
  "scheduling.k8s.io/v1beta1": ["PriorityClass"],
}));

export function isRetiredKind(gvk: GroupVersionKind): boolean { return RETIRED_KINDS.get(formatApiVersion(gvk))?.includes(gvk.kind) === true; }
