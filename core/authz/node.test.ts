import { expect, test } from "vitest";
import { staticInformer, stored } from "../../test/static-informer.ts";
import type { PodCertificateRequest } from "../api/gen/certificates.v1beta1.ts";
import type { PersistentVolume, Pod } from "../api/gen/core.v1.ts";
import type { ResourceSlice } from "../api/gen/resource.v1.ts";
import type { VolumeAttachment } from "../api/gen/storage.v1.ts";
import type { UserInfo } from "../api/request/user.ts";
import { bootstrapPolicy } from "./bootstrap-policy.ts";
import { nodeAuthorizer } from "./node.ts";

const pod = (name: string, nodeName: string, spec: object = {}, rest: object = {}): Pod => stored<Pod>("v1", "Pod", name, { spec: { nodeName, containers: [], ...spec }, ...rest });

const pods = staticInformer<Pod>(
  pod("ns/web", "node-1", {
    serviceAccountName: "web", imagePullSecrets: [{ name: "pull" }],
    containers: [{ name: "c", image: "i", env: [{ name: "A", valueFrom: { secretKeyRef: { name: "env-secret", key: "k" } } }], envFrom: [{ configMapRef: { name: "env-config" } }] }],
    initContainers: [{ name: "i", image: "i", envFrom: [{ secretRef: { name: "init-secret" } }] }],
    volumes: [
      { name: "a", secret: { secretName: "volume-secret" } }, { name: "b", projected: { sources: [{ configMap: { name: "kube-root-ca.crt" } }, { secret: { name: "projected-secret" } }] } },
      { name: "c", persistentVolumeClaim: { claimName: "data" } }, { name: "d", ephemeral: { volumeClaimTemplate: { spec: {} } } }, { name: "e", csi: { driver: "x", nodePublishSecretRef: { name: "csi-secret" } } },
    ],
    resourceClaims: [{ name: "gpu", resourceClaimTemplateName: "t" }, { name: "nic", resourceClaimName: "nic-claim" }],
  }, { status: { resourceClaimStatuses: [{ name: "gpu", resourceClaimName: "web-gpu-x7" }] } }),
  pod("ns/db", "node-2", { serviceAccountName: "db", volumes: [{ name: "a", secret: { secretName: "db-secret" } }] }),
  pod("ns/mirror", "node-1", { volumes: [{ name: "a", secret: { secretName: "stolen" } }] }, { metadata: { annotations: { "kubernetes.io/config.mirror": "x" } } }),
  pod("ns/pending", "", { volumes: [{ name: "a", secret: { secretName: "pending-secret" } }] }),
);
const persistentVolumes = staticInformer<PersistentVolume>(
  stored<PersistentVolume>("v1", "PersistentVolume", "pv-1", { spec: { claimRef: { namespace: "ns", name: "data" }, csi: { driver: "d", volumeHandle: "h", nodeStageSecretRef: { namespace: "storage", name: "stage" }, controllerPublishSecretRef: { namespace: "storage", name: "controller" } } } }),
  stored<PersistentVolume>("v1", "PersistentVolume", "pv-2", { spec: { claimRef: { namespace: "ns", name: "other" } } }),
);
const volumeAttachments = staticInformer<VolumeAttachment>(stored<VolumeAttachment>("storage.k8s.io/v1", "VolumeAttachment", "va-1", { spec: { nodeName: "node-1" } }));
const resourceSlices = staticInformer<ResourceSlice>(stored<ResourceSlice>("resource.k8s.io/v1", "ResourceSlice", "slice-2", { spec: { nodeName: "node-2" } }));
const nodeRules = bootstrapPolicy(new Set()).clusterRoles.find(({ metadata }) => metadata.name === "system:node")!.rules!;
const authorizer = nodeAuthorizer({ pods, persistentVolumes, volumeAttachments, resourceSlices, nodeRules });

const NODE_1: UserInfo = { name: "system:node:node-1", groups: ["system:nodes", "system:authenticated"] };
const NONE = "no relationship found between node 'node-1' and this object";

/** "verb group/resource/subresource namespace name selector" → "allow", or the reason against it. */
async function ask(text: string, user = NODE_1, by = authorizer): Promise<string> {
  const [verb = "", what = "", namespace = "-", name = "-", fieldSelector] = text.split(" ");
  const [group = "", resource = "", subresource = ""] = what.split("/");
  const { decision, reason } = await by.authorize({
    isResource: true, verb, group: group === "core" ? "" : group, version: "v1", resource, subresource, namespace: namespace === "-" ? "" : namespace, name: name === "-" ? "" : name, path: "", user, fieldSelector,
  });
  return decision === "allow" ? "allow" : `no: ${reason}`;
}

test.each([
  ...["pull", "env-secret", "init-secret", "volume-secret", "projected-secret", "csi-secret"].map((name) => [`get core/secrets ns ${name}`, "allow"]),
  ["watch core/secrets ns volume-secret", "allow"], ["get core/secrets storage stage", "allow"], ["get core/secrets storage controller", `no: ${NONE}`],
  ["get core/secrets ns db-secret", `no: ${NONE}`], ["get core/secrets ns stolen", `no: ${NONE}`], ["get core/secrets ns pending-secret", `no: ${NONE}`], ["get core/secrets other volume-secret", `no: ${NONE}`],
  ["list core/secrets ns -", "no: No Object name found"], ["list core/secrets", "no: can only read namespaced object of this type"], ["delete core/secrets ns pull", "no: can only read resources of this type"],
  ["get core/configmaps ns kube-root-ca.crt", "allow"], ["get core/configmaps ns env-config", "allow"], ["get core/configmaps ns other", `no: ${NONE}`],
  ["get core/persistentvolumeclaims ns data", "allow"], ["get core/persistentvolumeclaims ns web-d", "allow"], ["list core/persistentvolumeclaims ns data", "no: can only get individual resources of this type"],
  ["patch core/persistentvolumeclaims/status ns data", "allow"], ["get core/persistentvolumeclaims/status ns data", "no: can only get/update/patch this type"],
  ["get core/persistentvolumes - pv-1", "allow"], ["get core/persistentvolumes - pv-2", `no: ${NONE}`], ["get core/persistentvolumes - pv-9", `no: ${NONE}`],
  ["get resource.k8s.io/resourceclaims ns web-gpu-x7", "allow"], ["get resource.k8s.io/resourceclaims ns nic-claim", "allow"], ["get resource.k8s.io/resourceclaims ns x", `no: ${NONE}`],
  ["get storage.k8s.io/volumeattachments - va-1", "allow"], ["get storage.k8s.io/volumeattachments - va-2", `no: ${NONE}`],
  ["create core/serviceaccounts/token ns web", "allow"], ["create core/serviceaccounts/token ns db", `no: ${NONE}`], ["get core/serviceaccounts ns web", "allow"],
  ["list core/serviceaccounts ns -", "no: can only create tokens for individual service accounts"], ["create core/serviceaccounts ns web", "no: can only create token subresource of serviceaccount"],
  ["update coordination.k8s.io/leases kube-node-lease node-1", "allow"], ["create coordination.k8s.io/leases kube-node-lease -", "allow"],
  ["update coordination.k8s.io/leases kube-node-lease node-2", "no: can only access node lease with the same name as the requesting node"],
  ["get coordination.k8s.io/leases default node-1", 'no: can only access leases in the "kube-node-lease" system namespace'], ["list coordination.k8s.io/leases kube-node-lease -", "no: can only get, create, update, patch, or delete a node lease"],
  ["update storage.k8s.io/csinodes - node-1", "allow"], ["get storage.k8s.io/csinodes - node-2", "no: can only access CSINode with the same name as the requesting node"],
  ["get core/nodes - node-1", "allow"], ["get core/nodes - node-2", "no: node 'node-1' cannot read 'node-2', only its own Node object"], ["list core/nodes", "no: node 'node-1' cannot read all nodes, only its own Node object"],
  ["patch core/nodes/status - node-1", "allow"], ["create core/nodes", "allow"], ["delete core/nodes - node-1", "no: "],
  ["list core/pods - - spec.nodeName=node-1", "allow"], ["watch core/pods - - spec.nodeName=node-2", "no: can only list/watch pods with spec.nodeName field selector"], ["list core/pods", "no: can only list/watch pods with spec.nodeName field selector"],
  ["list core/pods - - spec.nodeName!=node-1", "no: can only list/watch pods with spec.nodeName field selector"], ["list core/pods - - ,,=(", "no: can only list/watch pods with spec.nodeName field selector"],
  ["get core/pods ns web", "allow"], ["get core/pods ns db", `no: ${NONE}`], ["create core/pods ns -", "allow"], ["delete core/pods ns web", "allow"], ["update core/pods ns web", "no: "],
  ["update core/pods/status ns web", "allow"], ["create core/pods/eviction ns web", "allow"], ["create core/pods/exec ns web", "no: "],
  ["create resource.k8s.io/resourceslices", "allow"], ["get resource.k8s.io/resourceslices - slice-2", `no: ${NONE}`], ["list resource.k8s.io/resourceslices - - spec.nodeName=node-1", "allow"],
  ["deletecollection resource.k8s.io/resourceslices", "no: can only list/watch/deletecollection resourceslices with nodeName field selector"],
  ["list core/services", "allow"], ["create core/events ns", "allow"], ["list node.k8s.io/runtimeclasses", "allow"], ["create certificates.k8s.io/certificatesigningrequests", "allow"],
  ["delete apps/deployments ns web", "no: "], ["list core/namespaces", "no: "], ["list certificates.k8s.io/podcertificaterequests", "no: "],
])("%s: %s", async (text, answer) => expect(await ask(text)).toBe(answer));

test("only nodes are nodes", async () => {
  expect(await ask("get core/secrets ns pull", { ...NODE_1, groups: ["system:authenticated"] })).toBe("no: ");
  expect(await ask("get core/secrets ns pull", { name: "jane", groups: ["system:nodes"] })).toBe("no: ");
  expect(await ask("get core/secrets ns pull", { name: "system:node:", groups: ["system:nodes"] })).toBe('no: unknown node for user "system:node:"');
});

test("access ends with the pod", async () => {
  const late = pod("ns/late", "node-1", { volumes: [{ name: "a", secret: { secretName: "late" } }] });
  expect(await ask("get core/secrets ns late")).toBe(`no: ${NONE}`);
  pods.put(late);
  expect(await ask("get core/secrets ns late")).toBe("allow");
  pods.remove(late);
  expect(await ask("get core/secrets ns late")).toBe(`no: ${NONE}`);
});

test("rules are not listed, and a review says so", async () => {
  expect(await authorizer.rulesFor(NODE_1, "default")).toEqual({ resourceRules: [], pathRules: [], incomplete: true, evaluationError: "node authorizer does not support user rule resolution" });
});

const certificateRequests = staticInformer(...["node-1", "node-2"].map((nodeName) => stored<PodCertificateRequest>("certificates.k8s.io/v1beta1", "PodCertificateRequest", `ns/of-${nodeName}`, { spec: { nodeName } })));
const certifying = nodeAuthorizer({ pods, persistentVolumes, volumeAttachments, resourceSlices, certificateRequests, nodeRules: bootstrapPolicy(new Set(["PodCertificateRequest"])).clusterRoles.find(({ metadata }) => metadata.name === "system:node")!.rules! });
const SELECTED = "no: can only list/watch podcertificaterequests with nodeName field selector";
test.each([
  ["create", "ns -", "allow"], ["get", "ns of-node-1", "allow"], ["get", "ns of-node-2", `no: ${NONE}`], ["get", "ns -", "no: No Object name found"],
  ["list", "- - spec.nodeName=node-1", "allow"], ["watch", "- - spec.nodeName=node-1,metadata.name=a", "allow"], ["watch", "- - spec.nodeName=node-2", SELECTED], ["list", "ns", SELECTED], ["list", "- - spec.nodeName!=node-1", SELECTED],
  ["update", "ns of-node-1", "no: nodes may not update podcertificaterequests"], ["delete", "ns of-node-1", "no: nodes may not delete podcertificaterequests"],
])("where certificates of pods are switched on: %s %s", async (verb, rest, answer) => expect(await ask(`${verb} certificates.k8s.io/podcertificaterequests ${rest}`, NODE_1, certifying)).toBe(answer));

test("what has come of a request is not a node's to say", async () => {
  expect(await ask("update certificates.k8s.io/podcertificaterequests/status ns of-node-1", NODE_1, certifying)).toBe("no: nodes may not access the status subresource of PodCertificateRequests");
});

test("a node whose certificate does not hold is told so, whatever it asks for", async () => {
  const late: UserInfo = { name: "system:node:node-1", groups: ["coracle:expired-nodes", "system:authenticated"] };
  for (const what of ["list core/pods", "update coordination.k8s.io/leases kube-node-lease node-1"]) expect(await ask(what, late)).toMatch(/^no: the node's certificate does not hold by this server's clock/);
});
