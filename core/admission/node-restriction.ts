/**
 * NodeRestriction: a kubelet changes its own Node, its own lease, and pods that run on it; nothing else, and not everything about those.
 * What it may read is the node authorizer's business (core/authz/node.ts).
 *
 * Source: kubernetes v1.36 plugin/pkg/admission/noderestriction/admission.go, pkg/api/pod/util.go (HasAPIObjectReference)
 */
import type { TokenRequest } from "../api/gen/authentication.v1.ts";
import type { CertificateSigningRequest } from "../api/gen/certificates.v1.ts";
import type { CSIDriver } from "../api/gen/storage.v1.ts";
import type { PodCertificateRequest } from "../api/gen/certificates.v1beta1.ts";
import type { Node, PersistentVolume, PersistentVolumeClaim, Pod, ServiceAccount, Volume } from "../api/gen/core.v1.ts";
import type { ResourceSlice } from "../api/gen/resource.v1.ts";
import { goQuote } from "../api/meta/go-quote.ts";
import { driverOfSource } from "../api/meta/in-tree-volumes.ts";
import type { ApiObject } from "../api/meta/object-meta.ts";
import { isNotFound, notFound, type StatusError, statusError } from "../api/meta/status-error.ts";
import { askedOf } from "../api/request/attributes.ts";
import type { Authorizer } from "../authz/authorizer.ts";
import { MIRROR_POD_ANNOTATION, nodeNameOf } from "../authz/node.ts";
import type { Lookup } from "../client/lookup.ts";
import { parseCertificateRequest } from "../pki/certificate-request.ts";
import { forbiddenNodeLabels } from "./node-labels.ts";
import { apiReferenceOf } from "./pod-api-references.ts";
import type { AdmissionPlugin, AdmissionRequest } from "./plugin.ts";
import { refusal, sameStrings, sameValue } from "./refuse.ts";

export interface NodeRestrictionDeps {
  readonly pods: Lookup<Pod>;
  readonly nodes: Lookup<Node>;
  readonly claims: Lookup<PersistentVolumeClaim>;
  readonly volumes: Lookup<PersistentVolume>;
  readonly csiDrivers: Lookup<CSIDriver>;
  readonly serviceAccounts: Lookup<ServiceAccount>;
  readonly authorizer: Authorizer;
  /** Nodes may ask for certificates for their pods. */
  readonly certifiesPods: boolean;
}

type Check = (node: string, request: AdmissionRequest) => void | Promise<void>;

export function nodeRestriction(deps: NodeRestrictionDeps): AdmissionPlugin {
  const checks: Readonly<Record<string, Check>> = {
    "pods": podCheck(deps), "nodes": checkNode, "persistentvolumeclaims": checkClaim, "serviceaccounts": tokenCheck(deps), "leases.coordination.k8s.io": checkLease,
    "csinodes.storage.k8s.io": checkCsiNode, "resourceslices.resource.k8s.io": checkSlice, "certificatesigningrequests.certificates.k8s.io": checkCertificateRequest,
    "podcertificaterequests.certificates.k8s.io": podCertificateCheck(deps),
  };
  return {
    name: "NodeRestriction",
    handles: ({ user, operation }) => operation !== "CONNECT" && nodeNameOf(user) !== undefined,
    async admit(request) {
      const node = nodeNameOf(request.user)!;
      if (node === "") throw refusal(request, `could not determine node from user ${goQuote(request.user.name)}`);
      await checks[request.group === "" ? request.resource : `${request.resource}.${request.group}`]?.(node, request);
    },
  };
}

function podCheck({ pods, nodes }: NodeRestrictionDeps): Check {
  async function existing({ namespace, name, signal }: AdmissionRequest): Promise<Readonly<Pod>> {
    const pod = await pods.find(namespace, name, signal);
    if (!pod) throw notFound({ group: "", resource: "pod" }, name);
    return pod;
  }

  return async (node, request) => {
    const { operation, subresource } = request;
    if (subresource === "status") return checkPodStatus(node, request);
    if (subresource === "eviction") {
      if (operation !== "CREATE") throw refusal(request, `unexpected operation ${operation}`);
      if ((await existing(request)).spec.nodeName !== node) throw refusal(request, `node ${node} can only evict pods with spec.nodeName set to itself`);
      return;
    }
    if (subresource !== "") throw refusal(request, `unexpected pod subresource ${goQuote(subresource)}, only 'status' and 'eviction' are allowed`);
    if (operation === "CREATE") return await checkMirrorPod(node, request, nodes);
    if (operation !== "DELETE") throw refusal(request, `unexpected operation ${goQuote(operation)}, node ${goQuote(node)} can only create and delete mirror pods`);
    if ((await existing(request)).spec.nodeName !== node) throw refusal(request, `node ${goQuote(node)} can only delete pods with spec.nodeName set to itself`);
  };
}

async function checkMirrorPod(node: string, request: AdmissionRequest, nodes: Lookup<Node>): Promise<void> {
  const pod = request.object as Pod;
  const quoted = goQuote(node);
  if (pod.metadata.annotations?.[MIRROR_POD_ANNOTATION] === undefined) throw refusal(request, `pod does not have ${goQuote(MIRROR_POD_ANNOTATION)} annotation, node ${quoted} can only create mirror pods`);
  if (pod.spec.nodeName !== node) throw refusal(request, `node ${quoted} can only create pods with spec.nodeName set to itself`);
  const owners = pod.metadata.ownerReferences ?? [];
  if (owners.length > 1) throw refusal(request, `node ${quoted} can only create pods with a single owner reference set to itself`);
  const [owner] = owners;
  if (owner?.apiVersion !== "v1" || owner.kind !== "Node" || owner.name !== node) throw refusal(request, `node ${quoted} can only create pods with an owner reference set to itself`);
  if (owner.controller !== true) throw refusal(request, `node ${quoted} can only create pods with a controller owner reference set to itself`);
  if (owner.blockOwnerDeletion === true) throw refusal(request, `node ${quoted} must not set blockOwnerDeletion on an owner reference`);
  const found = await nodes.find("", node, request.signal);
  if (!found) throw notFound({ group: "", resource: "node" }, node);
  if (owner.uid !== found.metadata.uid) throw refusal(request, `node ${node} UID mismatch: expected ${owner.uid} got ${found.metadata.uid}`);
  const reference = apiReferenceOf(pod);
  if (reference.error !== undefined) throw refusal(request, `error checking mirror pod for API references: ${reference.error}`);
  if (reference.resource !== undefined) throw refusal(request, `node ${quoted} can not create pods that reference ${reference.resource}`);
}

function checkPodStatus(node: string, request: AdmissionRequest): void {
  const { operation, object, oldObject } = request;
  if (operation !== "UPDATE") throw refusal(request, `unexpected operation ${goQuote(operation)}`);
  const pod = object as Pod;
  const old = oldObject as Readonly<Pod>;
  const quoted = goQuote(node);
  if (old.spec.nodeName !== node) throw refusal(request, `node ${quoted} can only update pod status for pods with spec.nodeName set to itself`);
  if (!sameStrings(old.metadata.labels, pod.metadata.labels)) throw refusal(request, `node ${quoted} cannot update labels through pod status`);
  if (!sameValue(old.status?.resourceClaimStatuses, pod.status?.resourceClaimStatuses)) throw refusal(request, `node ${quoted} cannot update resource claim statues`);
  if (!sameValue(old.status?.extendedResourceClaimStatus, pod.status?.extendedResourceClaimStatus)) throw refusal(request, `node ${quoted} cannot update extended resource claim status`);
}

function checkNode(node: string, request: AdmissionRequest): void {
  const { operation, name, object, oldObject } = request;
  const quoted = goQuote(node);
  if (name !== node) throw refusal(request, `node ${quoted} is not allowed to modify node ${goQuote(name)}`);
  if (operation === "CREATE") {
    const created = object as Node;
    if (created.spec?.configSource) throw refusal(request, `node ${quoted} is not allowed to create pods with a non-nil configSource`);
    const labels = forbiddenNodeLabels(created.metadata.labels);
    if (labels.length > 0) throw refusal(request, `node ${quoted} is not allowed to set the following labels: ${labels.join(", ")}`);
    checkPodCidrs(node, request);
  } else if (operation === "UPDATE") {
    const next = object as Node;
    const old = oldObject as Readonly<Node>;
    if (next.spec?.configSource && !sameValue(next.spec.configSource, old.spec?.configSource)) throw refusal(request, `node ${quoted} is not allowed to update configSource to a new non-nil configSource`);
    if (!sameValue(next.spec?.taints, old.spec?.taints)) throw refusal(request, `node ${quoted} is not allowed to modify taints`);
    if (!sameValue(next.metadata.ownerReferences, old.metadata.ownerReferences)) throw refusal(request, `node ${quoted} is not allowed to modify ownerReferences`);
    const labels = forbiddenNodeLabels(next.metadata.labels, old.metadata.labels);
    if (labels.length > 0) throw refusal(request, `is not allowed to modify labels: ${labels.join(", ")}`);
    checkPodCidrs(node, request);
  }
}

/**
 * No kubelet says which addresses its pods have, and upstream lets it. To all other nodes it is where the packets for these go: it could be any machine's beside the cluster. What is there already,
 * validation keeps.
 */
function checkPodCidrs(node: string, request: AdmissionRequest): void {
  const has = (one: unknown): boolean => {
    const { podCIDR, podCIDRs } = (one as Readonly<Node> | undefined)?.spec ?? {};
    return Boolean(podCIDR) || (podCIDRs?.length ?? 0) > 0;
  };
  if (has(request.object) && !has(request.oldObject)) throw refusal(request, `node ${goQuote(node)} is not allowed to set podCIDRs`);
}

function checkClaim(node: string, request: AdmissionRequest): void {
  const { subresource, operation, object, oldObject } = request;
  if (subresource !== "status") throw refusal(request, "may only update PVC status");
  if (operation !== "UPDATE") throw refusal(request, `unexpected operation ${goQuote(operation)}`);
  const rest = ({ metadata: { resourceVersion: _, managedFields: __, ...metadata }, status = {}, ...claim }: PersistentVolumeClaim): unknown => {
    const { capacity: ___, conditions: ____, allocatedResources: _____, allocatedResourceStatuses: ______, ...others } = status;
    return { ...claim, metadata, status: others };
  };
  if (!sameValue(rest(object as PersistentVolumeClaim), rest(oldObject as PersistentVolumeClaim)))
    throw refusal(request, `node ${goQuote(node)} is not allowed to update fields other than status.quantity and status.conditions`);
}

function checkLease(node: string, request: AdmissionRequest): void {
  if (request.namespace !== "kube-node-lease") throw refusal(request, 'can only access leases in the "kube-node-lease" system namespace');
  const name = request.operation === "CREATE" ? request.object?.metadata.name : request.name;
  if (name !== node) throw refusal(request, "can only access node lease with the same name as the requesting node");
}

function checkCsiNode(node: string, request: AdmissionRequest): void {
  const name = request.operation === "CREATE" ? request.object?.metadata.name : request.name;
  if (name !== node) throw refusal(request, "can only access CSINode with the same name as the requesting node");
}

function checkSlice(node: string, request: AdmissionRequest): void {
  const { operation } = request;
  if (operation !== "CREATE" && operation !== "DELETE") return;
  const slice = (operation === "CREATE" ? request.object : request.oldObject) as ResourceSlice | undefined;
  if (slice?.spec.nodeName !== node) throw refusal(request, `can only ${operation.toLowerCase()} ResourceSlice with the same NodeName as the requesting node`);
}

const NODE_SIGNERS: ReadonlySet<string> = new Set(["kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet"]);

function checkCertificateRequest(node: string, request: AdmissionRequest): void {
  if (request.operation !== "CREATE") return;
  const { spec } = request.object as CertificateSigningRequest;
  if (!NODE_SIGNERS.has(spec.signerName)) return;
  if (commonNameOf(request, spec.request) !== `system:node:${node}`) throw refusal(request, `can only create a node CSR with CN=system:node:${node}`);
}

function commonNameOf(request: AdmissionRequest, base64: string | null | undefined): string {
  try {
    return parseCertificateRequest(Buffer.from(base64 ?? "", "base64").toString("latin1")).subject.commonName;
  } catch (error) {
    throw refusal(request, `unable to parse csr: ${(error as Error).message}`);
  }
}

/** What it is about may be news that has not come yet: no refusal. */
function notYet(message: string): StatusError { return statusError({ code: 500, reason: "", message }); }

/** Certificates for pods that run on the node: what the request says of them, of their account and of the node is so. */
function podCertificateCheck({ pods, nodes, serviceAccounts, certifiesPods }: NodeRestrictionDeps): Check {
  async function found<T extends ApiObject>(lookup: Lookup<T>, kind: string, name: string, { namespace, signal }: { readonly namespace: string; readonly signal: AbortSignal }): Promise<Readonly<T>> {
    const object = await lookup.find(namespace, name, signal);
    if (object) return object;
    const missing = notFound({ group: "", resource: kind.replace(" ", "") }, name);
    throw notYet(`while retrieving ${kind} ${goQuote(namespace === "" ? name : `${namespace}/${name}`)} named in the PodCertificateRequest: ${missing.message}`);
  }

  return async (nodeName, request) => {
    const { operation, subresource, namespace, signal } = request;
    if (!certifiesPods) throw refusal(request, "PodCertificateRequest feature gate is disabled");
    if (operation !== "CREATE") throw refusal(request, `unexpected operation ${operation}`);
    if (subresource !== "") throw refusal(request, `unexpected subresource ${subresource}`);
    const { spec } = request.object as PodCertificateRequest;
    if (spec.nodeName !== nodeName) throw refusal(request, `PodCertificateRequest.Spec.NodeName=${goQuote(spec.nodeName)}, which is not the requesting node ${goQuote(nodeName)}`);
    const ofPod = goQuote(`${namespace}/${spec.podName}`);
    const node = await found(nodes, "node", spec.nodeName, { namespace: "", signal });
    if (node.metadata.uid !== spec.nodeUID) throw notYet(`PodCertificateRequest for pod ${ofPod} names node UID ${goQuote(spec.nodeUID)}, inconsistent with the running node (${goQuote(node.metadata.uid)})`);
    const pod = await found(pods, "pod", spec.podName, { namespace, signal });
    if (spec.podUID !== pod.metadata.uid) throw notYet(`PodCertificateRequest for pod ${ofPod} contains pod UID (${goQuote(spec.podUID)}) which differs from running pod ${goQuote(pod.metadata.uid)}`);
    if (pod.spec.nodeName !== spec.nodeName) throw refusal(request, `pod ${ofPod} is not running on node ${goQuote(spec.nodeName)} named in the PodCertificateRequest`);
    if (pod.metadata.annotations?.[MIRROR_POD_ANNOTATION] !== undefined) throw refusal(request, `pod ${ofPod} is a mirror pod`);
    const { serviceAccountName = "" } = pod.spec;
    if (spec.serviceAccountName !== serviceAccountName) throw refusal(request, `PodCertificateRequest for pod ${ofPod} contains serviceAccountName (${goQuote(spec.serviceAccountName)}) that differs from running pod (${goQuote(serviceAccountName)})`);
    const account = await found(serviceAccounts, "service account", spec.serviceAccountName, { namespace, signal });
    if (spec.serviceAccountUID !== account.metadata.uid)
      throw notYet(`PodCertificateRequest for pod ${ofPod} names service account UID ${goQuote(spec.serviceAccountUID)}, which differs from the running service account (${goQuote(account.metadata.uid)})`);
  };
}

/** Tokens for pods that run on the node, and for audiences those pods ask for. */
function tokenCheck({ pods, claims, volumes, csiDrivers, authorizer }: NodeRestrictionDeps): Check {
  /** The audiences that a volume has tokens for. Throws 404 for what is missing on the way to its driver. */
  async function audiencesOf(volume: Readonly<Volume>, { metadata: { namespace = "", name } }: Readonly<Pod>, signal: AbortSignal): Promise<readonly string[]> {
    const claimName = volume.persistentVolumeClaim?.claimName ?? (volume.ephemeral ? `${name}-${volume.name}` : undefined);
    const driverName = claimName === undefined ? driverOfSource(volume) : driverOfSource((await bound(namespace, claimName, signal)).spec);
    if (driverName === undefined) return [];
    const driver = await csiDrivers.find("", driverName, signal);
    if (!driver) throw notFound({ group: "storage.k8s.io", resource: "csidriver" }, driverName);
    return (driver.spec.tokenRequests ?? []).map(({ audience }) => audience);
  }

  async function bound(namespace: string, claimName: string, signal: AbortSignal): Promise<Readonly<PersistentVolume>> {
    const claim = await claims.find(namespace, claimName, signal);
    if (!claim) throw notFound({ group: "", resource: "persistentvolumeclaim" }, claimName);
    const volumeName = claim.spec?.volumeName ?? "";
    const volume = volumeName === "" ? undefined : await volumes.find("", volumeName, signal);
    if (!volume) throw notFound({ group: "", resource: "persistentvolume" }, volumeName);
    return volume;
  }

  /** Throws an Error when it is not known because something is missing. */
  async function podAsksFor(pod: Readonly<Pod>, audience: string, signal: AbortSignal): Promise<boolean> {
    if (pod.spec.volumes?.some(({ projected }) => projected?.sources?.some(({ serviceAccountToken: token }) => token && (token.audience ?? "") === audience))) return true;
    const missing = new Set<string>();
    for (const volume of pod.spec.volumes ?? []) {
      try {
        if ((await audiencesOf(volume, pod, signal)).includes(audience)) return true;
      } catch (error) {
        if (!isNotFound(error)) throw error;
        missing.add((error as Error).message);
      }
    }
    if (missing.size > 0) throw new Error(`error validating audience ${goQuote(audience)}: ${missing.size > 1 ? `[${[...missing].join(", ")}]` : [...missing][0]}`);
    return false;
  }

  return async (_node, request) => {
    const { operation, subresource, namespace, name, object, user, signal } = request;
    if (operation !== "CREATE" || subresource !== "token") return;
    const { boundObjectRef: ref, audiences: given } = (object as unknown as TokenRequest).spec;
    const audiences = (given as string[] | null) ?? []; // null when there are none
    if (ref?.apiVersion !== "v1" || ref.kind !== "Pod" || !ref.name) throw refusal(request, "node requested token not bound to a pod");
    if (!ref.uid) throw refusal(request, "node requested token with a pod binding without a uid");
    const pod = await pods.find(namespace, ref.name, signal);
    if (!pod) throw notFound({ group: "", resource: "pod" }, ref.name);
    if (ref.uid !== pod.metadata.uid) throw refusal(request, `the UID in the bound object reference (${ref.uid}) does not match the UID in record. The object might have been deleted and then recreated`);
    if (pod.spec.nodeName !== nodeNameOf(user)) throw refusal(request, "node requested token bound to a pod scheduled on a different node");
    if (audiences.length > 1) throw refusal(request, "node may only request 0 or 1 audiences");
    const audience = audiences[0] ?? "";
    if (await podAsksFor(pod, audience, signal).catch((error: Error) => { throw refusal(request, error.message); })) return;
    const { decision } = await authorizer.authorize(askedOf(user, { verb: "request-serviceaccounts-token-audience", group: "", version: "v1", resource: audience, namespace, name }));
    if (decision !== "allow") throw refusal(request, `audience ${goQuote(audience)} not found in pod spec volume, ${user.name} is not authorized to request tokens for this audience`);
  };
}
