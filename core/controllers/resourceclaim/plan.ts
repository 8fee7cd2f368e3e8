/**
 * What is to be done about a ResourceClaim: whom it is still reserved for, whether it keeps its devices, and whether it is still wanted.
 *
 * Source: kubernetes v1.36 pkg/controller/resourceclaim/controller.go syncClaim, handleClaim
 */
import type { Pod, PodResourceClaim } from "../../api/gen/core.v1.ts";
import type { ResourceClaim, ResourceClaimConsumerReference, ResourceClaimTemplate } from "../../api/gen/resource.v1.ts";
import { controllerOf, hasFinalizer, isDeleting, type NewObject, namespaceOf } from "../../api/meta/object-meta.ts";
import { isTerminal } from "../pod-state.ts";

export const FINALIZER = "resource.kubernetes.io/delete-protection";
export const POD_CLAIM = "resource.kubernetes.io/pod-claim-name";
/** Leaves room for the hyphen and five letters that make it unique. */
const BASE_MAX = 57;

export interface ClaimPlan {
  /** Absent: as they are. */
  readonly reservedFor?: readonly ResourceClaimConsumerReference[];
  readonly deallocate: boolean;
  readonly removeFinalizer: boolean;
  /** It was made for a pod that will not run any more. */
  readonly remove: boolean;
}

/** It will not run, or not again. */
export function isDone(pod: Readonly<Pod>): boolean {
  return isTerminal(pod) || (isDeleting(pod) && !pod.spec.nodeName);
}

export function isPod({ apiGroup = "", resource }: ResourceClaimConsumerReference): boolean {
  return apiGroup === "" && resource === "pods";
}

/** `users`: the pods that `reservedFor` names, by uid, as far as they exist. `owner`: the pod it was made for, if known. */
export function planClaim(claim: Readonly<ResourceClaim>, { users, owner }: { readonly users: ReadonlyMap<string, Readonly<Pod>>; readonly owner: Readonly<Pod> | undefined }): ClaimPlan {
  const before = claim.status?.reservedFor ?? [];
  const left = before.filter((one) => {
    const pod = users.get(one.uid);
    return !isPod(one) || (pod !== undefined && !isDone(pod)); // of others than pods nothing is known
  });
  const ours = hasFinalizer(claim, FINALIZER);
  const made = controllerOf(claim);
  const remove = left.length === 0 && made?.kind === "Pod" && owner !== undefined && (owner.metadata.uid !== made.uid || isDone(owner)) && !isDeleting(claim);
  if (left.length < before.length) {
    const deallocate = left.length === 0 && ours;
    return { reservedFor: left, deallocate, removeFinalizer: ours && (deallocate || !claim.status?.allocation), remove };
  }
  const ending = ours && isDeleting(claim) && left.length === 0;
  return { deallocate: ending && claim.status?.allocation !== undefined, removeFinalizer: ending, remove };
}

/** The claim that a pod's template stands for. */
export function claimFrom(template: Readonly<ResourceClaimTemplate>, pod: Readonly<Pod>, { name }: PodResourceClaim): NewObject<ResourceClaim> {
  const { metadata = {}, spec } = template.spec;
  return {
    apiVersion: "resource.k8s.io/v1", kind: "ResourceClaim",
    metadata: {
      namespace: namespaceOf(pod), generateName: generateName(pod.metadata.name, name),
      ownerReferences: [{ apiVersion: "v1", kind: "Pod", name: pod.metadata.name, uid: pod.metadata.uid, controller: true }],
      annotations: { ...metadata.annotations, [POD_CLAIM]: name },
      ...(metadata.labels ? { labels: { ...metadata.labels } } : {}),
    },
    spec: structuredClone(spec),
  };
}

/** Both names are seen in it: each is cut in proportion. */
function generateName(pod: string, claim: string): string {
  const whole = `${pod}-${claim}-`;
  if (whole.length <= BASE_MAX) return whole;
  return `${pod.slice(0, Math.trunc((pod.length * BASE_MAX) / whole.length))}-${claim.slice(0, Math.trunc((claim.length * BASE_MAX) / whole.length))}`;
}
