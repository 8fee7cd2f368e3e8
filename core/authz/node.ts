/**
 * Nodes: a kubelet may read what the pods on its node refer to, and nothing of other nodes.
 *
 *   node ← pod ← Secret, ConfigMap, ServiceAccount, ResourceClaim, PersistentVolumeClaim ← PersistentVolume ← Secret
 *
 * Upstream keeps a graph for this; here each arrow is an index of an informer, which needs no code to keep it up to date and answers with a
 * look-up. What all nodes may do alike stands in the role system:node. What a kubelet may write about is limited further by the admission
 * plug-in NodeRestriction.
 *
 * Source: kubernetes v1.36 plugin/pkg/auth/authorizer/node/{node_authorizer,graph}.go
 */
import type { PodCertificateRequest } from "../api/gen/certificates.v1beta1.ts";
import type { PersistentVolume, Pod } from "../api/gen/core.v1.ts";
import type { PolicyRule } from "../api/gen/rbac.v1.ts";
import type { ResourceSlice } from "../api/gen/resource.v1.ts";
import type { VolumeAttachment } from "../api/gen/storage.v1.ts";
import { parseFieldSelector } from "../api/meta/field-selector.ts";
import { goQuote } from "../api/meta/go-quote.ts";
import { objectKey } from "../api/meta/object-meta.ts";
import type { ResourceAttributes } from "../api/request/attributes.ts";
import { GROUP_EXPIRED_NODES, GROUP_NODES, type UserInfo } from "../api/request/user.ts";
import type { Index, Informer } from "../client/informer.ts";
import type { Authorizer, Decision } from "./authorizer.ts";
import { podClaimNames, podConfigMapNames, podResourceClaimNames, podSecretNames, volumeSecrets } from "../api/meta/pod-references.ts";
import { ruleAllows } from "./rules.ts";

export interface NodeAuthorizerOptions {
  readonly pods: Informer<Pod>;
  readonly persistentVolumes: Informer<PersistentVolume>;
  readonly volumeAttachments: Informer<VolumeAttachment>;
  readonly resourceSlices: Informer<ResourceSlice>;
  /** Absent: there are none, and no node may ask for any. */
  readonly certificateRequests?: Informer<PodCertificateRequest> | undefined;
  /** Secrets and ConfigMaps that every node may read, since every node serves with them: certificates of Ingresses, authorities of their backends. */
  readonly servesWith?: ((resource: "secrets" | "configmaps", namespace: string, name: string) => boolean) | undefined;
  /** Of the role system:node. */
  readonly nodeRules: readonly Readonly<PolicyRule>[];
}

const NODE_USER_PREFIX = "system:node:";
export const MIRROR_POD_ANNOTATION = "kubernetes.io/config.mirror";

/** The node a user is; undefined for everyone who is none. */
export function nodeNameOf({ name, groups }: UserInfo): string | undefined {
  return name.startsWith(NODE_USER_PREFIX) && groups.includes(GROUP_NODES) ? name.slice(NODE_USER_PREFIX.length) : undefined;
}

/** "<node> <what> <namespace>/<name>" for everything a bound pod refers to. */
const REFERENCES: Index<Pod> = {
  name: "node and reference",
  partsOf: ({ spec, metadata, status }) => [spec, metadata.annotations, status?.resourceClaimStatuses, status?.extendedResourceClaimStatus],
  *valuesOf(pod) {
    const { nodeName } = pod.spec;
    if (!nodeName || pod.metadata.annotations?.[MIRROR_POD_ANNOTATION] !== undefined) return; // a node must not grant itself access by a pod it made
    const value = (what: string, name: string): string => `${nodeName} ${what} ${pod.metadata.namespace}/${name}`;
    if (pod.spec.serviceAccountName) yield value("serviceaccounts", pod.spec.serviceAccountName);
    for (const name of podSecretNames(pod)) yield value("secrets", name);
    for (const name of podConfigMapNames(pod)) yield value("configmaps", name);
    for (const name of podClaimNames(pod)) yield value("persistentvolumeclaims", name);
    for (const name of podResourceClaimNames(pod)) yield value("resourceclaims", name);
  },
};

const VOLUME_SECRETS: Index<PersistentVolume> = { name: "secret", *valuesOf(volume) { for (const { namespace, name } of volumeSecrets(volume)) yield `${namespace}/${name}`; } };

const ALLOW: Decision = { decision: "allow", reason: "" };
function no(reason = ""): Decision { return { decision: "no-opinion", reason }; }

export function nodeAuthorizer({ pods, persistentVolumes, volumeAttachments, resourceSlices, certificateRequests, servesWith = () => false, nodeRules }: NodeAuthorizerOptions): Authorizer {
  function refers(node: string, what: string, namespace: string, name: string): boolean { return pods.by(REFERENCES, `${node} ${what} ${namespace}/${name}`).length > 0; }

  function usesVolume(node: string, volume: Readonly<PersistentVolume> | undefined): boolean {
    const claim = volume?.spec.claimRef;
    return claim !== undefined && refers(node, "persistentvolumeclaims", claim.namespace ?? "", claim.name ?? "");
  }

  function isRelated(node: string, { resource, namespace, name }: ResourceAttributes): boolean {
    switch (resource) {
      case "pods": return pods.get(objectKey(namespace, name))?.spec.nodeName === node;
      case "persistentvolumes": return usesVolume(node, persistentVolumes.get(objectKey("", name)));
      case "volumeattachments": return volumeAttachments.get(objectKey("", name))?.spec.nodeName === node;
      case "resourceslices": return resourceSlices.get(objectKey("", name))?.spec.nodeName === node;
      case "podcertificaterequests": return certificateRequests?.get(objectKey(namespace, name))?.spec.nodeName === node;
      case "secrets": return refers(node, resource, namespace, name) || servesWith(resource, namespace, name) || persistentVolumes.by(VOLUME_SECRETS, `${namespace}/${name}`).some((volume) => usesVolume(node, volume));
      case "configmaps": return refers(node, resource, namespace, name) || servesWith(resource, namespace, name);
      default: return refers(node, resource, namespace, name);
    }
  }

  function related(node: string, attributes: ResourceAttributes): Decision {
    if (attributes.name === "") return no("No Object name found");
    return isRelated(node, attributes) ? ALLOW : no(`no relationship found between node '${node}' and this object`);
  }

  function relatedGet(node: string, attributes: ResourceAttributes): Decision {
    if (attributes.verb !== "get") return no("can only get individual resources of this type");
    return attributes.subresource === "" ? related(node, attributes) : no("cannot get subresource");
  }

  function relatedRead(node: string, attributes: ResourceAttributes): Decision {
    if (!["get", "list", "watch"].includes(attributes.verb)) return no("can only read resources of this type");
    if (attributes.subresource !== "") return no("cannot read subresource");
    return attributes.namespace === "" ? no("can only read namespaced object of this type") : related(node, attributes);
  }

  /** Undefined: nothing special about this resource. */
  function decide(node: string, attributes: ResourceAttributes): Decision | undefined {
    const { group, resource, subresource, verb, name } = attributes;
    switch (`${group}/${resource}`) {
      case "/secrets": case "/configmaps": return relatedRead(node, attributes);
      case "/persistentvolumeclaims":
        if (subresource !== "status") return relatedGet(node, attributes);
        return verb === "update" || verb === "patch" ? related(node, attributes) : no("can only get/update/patch this type");
      case "/persistentvolumes": case "resource.k8s.io/resourceclaims": case "storage.k8s.io/volumeattachments": return relatedGet(node, attributes);
      case "/serviceaccounts":
        if (verb === "get" && subresource === "") return relatedRead(node, attributes);
        if (verb !== "create" || name === "") return no("can only create tokens for individual service accounts");
        return subresource === "token" ? related(node, attributes) : no("can only create token subresource of serviceaccount");
      case "coordination.k8s.io/leases": return leases(node, attributes);
      case "storage.k8s.io/csinodes": return csiNodes(node, attributes);
      case "resource.k8s.io/resourceslices": return slices(node, attributes);
      case "/nodes": return nodes(node, attributes);
      case "/pods": return podsDecision(node, attributes);
      case "certificates.k8s.io/podcertificaterequests": return certificateRequests ? certificates(node, attributes) : no(); // behind a gate
      default: return undefined;
    }
  }

  function slices(node: string, attributes: ResourceAttributes): Decision {
    if (attributes.subresource !== "") return no("cannot authorize ResourceSlice subresources");
    switch (attributes.verb) {
      case "create": return ALLOW; // NodeRestriction sees the object, and checks its node
      case "get": case "update": case "patch": case "delete": return related(node, attributes);
      case "watch": case "list": case "deletecollection":
        return selects(attributes, "spec.nodeName", node) ? ALLOW : no("can only list/watch/deletecollection resourceslices with nodeName field selector");
      default: return no("only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, deletecollection");
    }
  }

  function certificates(node: string, attributes: ResourceAttributes): Decision {
    if (attributes.subresource !== "") return no("nodes may not access the status subresource of PodCertificateRequests");
    switch (attributes.verb) {
      case "create": return ALLOW; // NodeRestriction sees the object, and checks for whom it is
      case "get": return related(node, attributes);
      case "list": case "watch": return selects(attributes, "spec.nodeName", node) ? ALLOW : no("can only list/watch podcertificaterequests with nodeName field selector");
      default: return no(`nodes may not ${attributes.verb} podcertificaterequests`);
    }
  }

  function podsDecision(node: string, attributes: ResourceAttributes): Decision {
    const { subresource, verb, name } = attributes;
    if (subresource === "status") return verb === "update" || verb === "patch" ? ALLOW : no();
    if (subresource === "eviction") return verb === "create" ? ALLOW : no();
    if (subresource !== "") return no();
    switch (verb) {
      case "get": return relatedGet(node, attributes);
      case "create": case "delete": return ALLOW; // mirror pods: NodeRestriction checks
      case "list": case "watch":
        if (selects(attributes, "spec.nodeName", node)) return ALLOW;
        return name === "" ? no("can only list/watch pods with spec.nodeName field selector") : related(node, attributes);
      default: return no();
    }
  }

  return {
    authorize(attributes) {
      if (attributes.user.groups.includes(GROUP_EXPIRED_NODES)) return no("the node's certificate does not hold by this server's clock: it may ask for another one, and nothing else until it has it");
      const node = nodeNameOf(attributes.user);
      if (node === undefined) return no();
      if (node === "") return no(`unknown node for user ${goQuote(attributes.user.name)}`);
      const special = attributes.isResource ? decide(node, attributes) : undefined;
      return special ?? (nodeRules.some((rule) => ruleAllows(rule, attributes)) ? ALLOW : no());
    },
    async rulesFor(user) {
      const nothing = { resourceRules: [], pathRules: [] };
      return nodeNameOf(user) === undefined ? { ...nothing, incomplete: false } : { ...nothing, incomplete: true, evaluationError: "node authorizer does not support user rule resolution" };
    },
  };
}

function leases(node: string, { verb, namespace, name }: ResourceAttributes): Decision {
  if (!["get", "create", "update", "patch", "delete"].includes(verb)) return no("can only get, create, update, patch, or delete a node lease");
  if (namespace !== "kube-node-lease") return no('can only access leases in the "kube-node-lease" system namespace');
  return verb === "create" || name === node ? ALLOW : no("can only access node lease with the same name as the requesting node");
}

function csiNodes(node: string, { verb, subresource, name }: ResourceAttributes): Decision {
  if (!["get", "create", "update", "patch", "delete"].includes(verb)) return no("can only get, create, update, patch, or delete a CSINode");
  if (subresource !== "") return no("cannot authorize CSINode subresources");
  return verb === "create" || name === node ? ALLOW : no("can only access CSINode with the same name as the requesting node");
}

/** Compared by name alone, so that a kubelet can look for its Node before that exists. */
function nodes(node: string, { verb, subresource, name }: ResourceAttributes): Decision {
  if (subresource === "status") return verb === "update" || verb === "patch" ? ALLOW : no();
  if (subresource !== "") return no();
  if (verb === "create" || verb === "update" || verb === "patch") return ALLOW; // NodeRestriction checks whose Node it is
  if (verb !== "get" && verb !== "list" && verb !== "watch") return no();
  if (name === node) return ALLOW;
  return name === "" ? no(`node '${node}' cannot read all nodes, only its own Node object`) : no(`node '${node}' cannot read '${name}', only its own Node object`);
}

function selects({ fieldSelector = "" }: ResourceAttributes, field: string, value: string): boolean {
  if (fieldSelector === "") return false;
  try {
    return parseFieldSelector(fieldSelector).requirements.some((one) => one.field === field && one.operator === "=" && one.value === value);
  } catch {
    return false; // an unreadable selector selects nothing; the registry refuses it
  }
}
