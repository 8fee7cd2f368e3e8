import { describe, expect, test } from "vitest";
import { admissionRequest, runPlugin } from "../../test/admission-request.ts";
import { staticInformer, stored } from "../../test/static-informer.ts";
import type { CSIDriver } from "../api/gen/storage.v1.ts";
import type { Node, PersistentVolume, PersistentVolumeClaim, Pod, ServiceAccount } from "../api/gen/core.v1.ts";
import type { Attributes } from "../api/request/attributes.ts";
import type { UserInfo } from "../api/request/user.ts";
import type { Authorizer } from "../authz/authorizer.ts";
import { NO_ALT_NAMES } from "../pki/alt-names.ts";
import { generateKey } from "../pki/authority.ts";
import { createCertificateRequest } from "../pki/certificate-request.ts";
import { podCertificateSigning } from "./certificates.ts";
import { forbiddenNodeLabels } from "./node-labels.ts";
import { nodeRestriction } from "./node-restriction.ts";
import { taintNodesByCondition } from "./taint-nodes-by-condition.ts";

const NODE: UserInfo = { name: "system:node:node-1", groups: ["system:nodes", "system:authenticated"] };
const asked: Attributes[] = [];
const authorizer: Authorizer = {
  authorize(attributes) { asked.push(attributes); return { decision: attributes.isResource && attributes.resource === "vault" ? "allow" : "no-opinion", reason: "" }; },
  rulesFor: async () => ({ resourceRules: [], pathRules: [], incomplete: false }),
};
const pod = (name: string, nodeName: string, spec: object = {}, metadata: object = {}): Pod => stored<Pod>("v1", "Pod", name, { spec: { nodeName, containers: [], ...spec }, metadata });
const pods = staticInformer<Pod>(
  pod("default/web", "node-1", { volumes: [{ name: "t", projected: { sources: [{ serviceAccountToken: { path: "t", audience: "api" } }] } }, { name: "c", csi: { driver: "csi.x" } }, { name: "p", persistentVolumeClaim: { claimName: "data" } }] }), pod("default/db", "node-2"),
  pod("default/old", "node-1", { volumes: [{ name: "f", azureFile: { secretName: "s", shareName: "s" } }] }),
  pod("default/lost", "node-1", { volumes: [{ name: "c", csi: { driver: "csi.z" } }, { name: "d", csi: { driver: "csi.z" } }, { name: "e", ephemeral: { volumeClaimTemplate: { spec: {} } } }] }),
);
const nodes = staticInformer<Node>(stored<Node>("v1", "Node", "node-1", { metadata: { uid: "node-uid" } }));
const serviceAccounts = staticInformer<ServiceAccount>(stored<ServiceAccount>("v1", "ServiceAccount", "default/robot", { metadata: { uid: "robot-uid" } }));
const plugin = nodeRestriction({
  pods, nodes, authorizer, serviceAccounts, certifiesPods: true,
  claims: staticInformer<PersistentVolumeClaim>(stored<PersistentVolumeClaim>("v1", "PersistentVolumeClaim", "default/data", { spec: { volumeName: "pv" } })),
  volumes: staticInformer<PersistentVolume>(stored<PersistentVolume>("v1", "PersistentVolume", "pv", { spec: { csi: { driver: "csi.y" } } })),
  csiDrivers: staticInformer<CSIDriver>(stored<CSIDriver>("storage.k8s.io/v1", "CSIDriver", "csi.x", { spec: { tokenRequests: [{ audience: "x" }] } }), stored<CSIDriver>("storage.k8s.io/v1", "CSIDriver", "csi.y", { spec: { tokenRequests: [{ audience: "y" }] } }),
    stored<CSIDriver>("storage.k8s.io/v1", "CSIDriver", "file.csi.azure.com", { spec: { tokenRequests: [{ audience: "azure" }] } })),
});
const ask = (parts: Parameters<typeof admissionRequest>[0]): Promise<string> => runPlugin(plugin, admissionRequest({ user: NODE, ...parts }));

test("who is no node is not restricted", async () => {
  expect(await ask({ resource: "nodes", operation: "UPDATE", name: "node-2", user: { name: "jane", groups: [] } })).toBe("not handled");
  expect(await ask({ resource: "configmaps", object: {} })).toBe("ok");
  expect(await ask({ resource: "configmaps", object: {}, user: { name: "system:node:", groups: ["system:nodes"] } })).toBe('configmaps "Unknown" is forbidden: could not determine node from user "system:node:"');
});

describe("mirror pods", () => {
  const owner = { apiVersion: "v1", kind: "Node", name: "node-1", uid: "node-uid", controller: true };
  const mirror = (change: { owners?: object[]; spec?: object; node?: string; annotations?: object } = {}): Pod =>
    pod("default/m", change.node ?? "node-1", change.spec ?? {}, { annotations: change.annotations ?? { "kubernetes.io/config.mirror": "x" }, ownerReferences: change.owners ?? [owner] });
  test.each([
    [mirror(), "ok"],
    [mirror({ spec: { containers: null } }), "ok"], // refused for that later
    [mirror({ annotations: {} }), 'pod does not have "kubernetes.io/config.mirror" annotation, node "node-1" can only create mirror pods'],
    [mirror({ node: "node-2" }), 'node "node-1" can only create pods with spec.nodeName set to itself'],
    [mirror({ owners: [] }), 'node "node-1" can only create pods with an owner reference set to itself'],
    [mirror({ owners: [owner, owner] }), 'node "node-1" can only create pods with a single owner reference set to itself'],
    [mirror({ owners: [{ ...owner, controller: false }] }), 'node "node-1" can only create pods with a controller owner reference set to itself'],
    [mirror({ owners: [{ ...owner, blockOwnerDeletion: true }] }), 'node "node-1" must not set blockOwnerDeletion on an owner reference'],
    [mirror({ owners: [{ ...owner, uid: "other" }] }), "node node-1 UID mismatch: expected other got node-uid"],
    [mirror({ spec: { serviceAccountName: "x" } }), 'node "node-1" can not create pods that reference serviceaccounts'],
    [mirror({ spec: { volumes: [{ name: "v", projected: { sources: [{ downwardAPI: {} }] } }, { name: "w", hostPath: { path: "/" } }] } }), "ok"],
    [mirror({ spec: { volumes: [{ name: "v", csi: { driver: "d" } }] } }), 'node "node-1" can not create pods that reference csidrivers (via CSI volumes)'],
    [mirror({ spec: { volumes: [{ name: "v", persistentVolumeClaim: { claimName: "d" } }] } }), 'node "node-1" can not create pods that reference persistentvolumeclaims'],
    [mirror({ spec: { volumes: [{ name: "v", something: {} }] } }), 'error checking mirror pod for API references: unknown volume type for volume  "v"'],
  ])("%#: %s", async (object, answer) => expect(await ask({ resource: "pods", object })).toBe(answer === "ok" ? "ok" : `pods "m" is forbidden: ${answer}`));
});

describe("pods", () => {
  test.each([
    [{ operation: "DELETE", resource: "pods", name: "web" }, "ok"],
    [{ operation: "DELETE", resource: "pods", name: "db" }, 'pods "db" is forbidden: node "node-1" can only delete pods with spec.nodeName set to itself'],
    [{ operation: "DELETE", resource: "pods", name: "gone" }, '404 pod "gone" not found'],
    [{ operation: "UPDATE", resource: "pods", object: pod("default/web", "node-1") }, 'pods "web" is forbidden: unexpected operation "UPDATE", node "node-1" can only create and delete mirror pods'],
    [{ resource: "pods/eviction", name: "web", object: {} }, "ok"],
    [{ resource: "pods/eviction", name: "db", object: {} }, 'pods "db" is forbidden: node node-1 can only evict pods with spec.nodeName set to itself'],
    [{ resource: "pods/binding", name: "web", object: {} }, 'pods "web" is forbidden: unexpected pod subresource "binding", only \'status\' and \'eviction\' are allowed'],
    [{ operation: "UPDATE", resource: "pods/status", object: pod("default/web", "node-1"), old: pod("default/web", "node-1") }, "ok"],
    [{ operation: "UPDATE", resource: "pods/status", object: pod("default/db", "node-2"), old: pod("default/db", "node-2") }, 'pods "db" is forbidden: node "node-1" can only update pod status for pods with spec.nodeName set to itself'],
    [{ operation: "UPDATE", resource: "pods/status", object: pod("default/web", "node-1", {}, { labels: { a: "" } }), old: pod("default/web", "node-1") }, 'pods "web" is forbidden: node "node-1" cannot update labels through pod status'],
  ] as const)("%#: %s", async (parts, answer) => expect(await ask(parts)).toBe(answer));
});

describe("its Node", () => {
  const node = (change: { labels?: object; spec?: object; owners?: object[] } = {}, name = "node-1"): Node => stored<Node>("v1", "Node", name, { metadata: { labels: change.labels, ownerReferences: change.owners }, spec: change.spec ?? {} });
  const taints = [{ key: "a", effect: "NoSchedule" }];
  test.each([
    ["CREATE", node({ labels: { "kubernetes.io/hostname": "x", "example.com/a": "b" } }), undefined, "ok"],
    ["CREATE", node({}, "node-2"), undefined, 'nodes "node-2" is forbidden: node "node-1" is not allowed to modify node "node-2"'],
    ["CREATE", node({ labels: { "node-restriction.kubernetes.io/zone": "secure", "node-role.kubernetes.io/master": "" } }), undefined, 'nodes "node-1" is forbidden: node "node-1" is not allowed to set the following labels: node-restriction.kubernetes.io/zone, node-role.kubernetes.io/master'],
    ["UPDATE", node({ spec: { taints } }), node({ spec: { taints } }), "ok"],
    ["UPDATE", node(), node({ spec: { taints } }), 'nodes "node-1" is forbidden: node "node-1" is not allowed to modify taints'],
    ["UPDATE", node({ labels: { "x.node-restriction.kubernetes.io/a": "b" } }), node(), 'nodes "node-1" is forbidden: is not allowed to modify labels: x.node-restriction.kubernetes.io/a'],
    ["UPDATE", node(), node({ labels: { "node-role.kubernetes.io/worker": "" } }), 'nodes "node-1" is forbidden: is not allowed to modify labels: node-role.kubernetes.io/worker'],
    ["UPDATE", node({ owners: [{ uid: "x" }] }), node(), 'nodes "node-1" is forbidden: node "node-1" is not allowed to modify ownerReferences'],
    ["CREATE", node({ spec: { podCIDRs: ["192.0.2.0/24"] } }), undefined, 'nodes "node-1" is forbidden: node "node-1" is not allowed to set podCIDRs'],
    ["UPDATE", node({ spec: { podCIDR: "192.0.2.0/24" } }), node(), 'nodes "node-1" is forbidden: node "node-1" is not allowed to set podCIDRs'],
    ["UPDATE", node({ spec: { podCIDRs: ["10.42.1.0/24"] } }), node({ spec: { podCIDRs: ["10.42.1.0/24"] } }), "ok"],
    ["DELETE", undefined, node(), "ok"],
  ] as const)("%s %#: %s", async (operation, object, old, answer) => expect(await ask({ operation, resource: "nodes", namespace: "", object, old, ...(object ? {} : { name: "node-1" }) })).toBe(answer));

  test("labels", () => {
    expect(forbiddenNodeLabels({ "a": "b", "topology.kubernetes.io/zone": "z", "foo.node.kubernetes.io/x": "", "kubelet.kubernetes.io/y": "", "foo.k8s.io/z": "", "kubernetes.io/os": "linux", "kubernetes.io/role": "x" })).toEqual(["foo.k8s.io/z", "kubernetes.io/role"]);
  });

  test("TaintNodesByCondition", async () => {
    const fresh = node();
    const tainted = node({ spec: { taints: [{ key: "node.kubernetes.io/not-ready", effect: "NoSchedule" }] } });
    for (const object of [fresh, tainted]) await runPlugin(taintNodesByCondition, admissionRequest({ resource: "nodes", namespace: "", object }));
    expect([fresh.spec?.taints, tainted.spec?.taints]).toEqual(Array(2).fill([{ key: "node.kubernetes.io/not-ready", effect: "NoSchedule" }]));
  });
});

describe("other objects", () => {
  const lease = (name: string) => stored("coordination.k8s.io/v1", "Lease", `kube-node-lease/${name}`);
  const claim = (status: object, metadata: object = {}) => stored("v1", "PersistentVolumeClaim", "default/data", { spec: { volumeName: "v" }, status, metadata });
  test.each([
    [{ resource: "leases.coordination.k8s.io", namespace: "kube-node-lease", object: lease("node-1") }, "ok"],
    [{ resource: "leases.coordination.k8s.io", namespace: "kube-node-lease", object: lease("node-2") }, 'leases.coordination.k8s.io "node-2" is forbidden: can only access node lease with the same name as the requesting node'],
    [{ resource: "leases.coordination.k8s.io", object: lease("node-1") }, 'leases.coordination.k8s.io "node-1" is forbidden: can only access leases in the "kube-node-lease" system namespace'],
    [{ resource: "csinodes.storage.k8s.io", namespace: "", object: stored("storage.k8s.io/v1", "CSINode", "node-2") }, 'csinodes.storage.k8s.io "node-2" is forbidden: can only access CSINode with the same name as the requesting node'],
    [{ resource: "resourceslices.resource.k8s.io", namespace: "", object: stored("resource.k8s.io/v1", "ResourceSlice", "s", { spec: { nodeName: "node-1" } }) }, "ok"],
    [{ operation: "DELETE", resource: "resourceslices.resource.k8s.io", namespace: "", name: "s", old: stored("resource.k8s.io/v1", "ResourceSlice", "s", { spec: { nodeName: "node-2" } }) }, 'resourceslices.resource.k8s.io "s" is forbidden: can only delete ResourceSlice with the same NodeName as the requesting node'],
    [{ operation: "UPDATE", resource: "persistentvolumeclaims", object: claim({}), old: claim({}) }, 'persistentvolumeclaims "data" is forbidden: may only update PVC status'],
    [{ operation: "UPDATE", resource: "persistentvolumeclaims/status", object: claim({ capacity: { storage: "2Gi" }, phase: "Bound" }), old: claim({ phase: "Bound" }) }, "ok"],
    [{ operation: "UPDATE", resource: "persistentvolumeclaims/status", object: claim({ phase: "Lost" }), old: claim({ phase: "Bound" }) }, 'persistentvolumeclaims "data" is forbidden: node "node-1" is not allowed to update fields other than status.quantity and status.conditions'],
    [{ operation: "UPDATE", resource: "persistentvolumeclaims/status", object: claim({}, { labels: { a: "" } }), old: claim({}) }, 'persistentvolumeclaims "data" is forbidden: node "node-1" is not allowed to update fields other than status.quantity and status.conditions'],
  ] as const)("%#: %s", async (parts, answer) => expect(await ask(parts)).toBe(answer));

  test("certificate requests speak of the node itself", async () => {
    const request = async (commonName: string, signerName: string) => ({ apiVersion: "certificates.k8s.io/v1", kind: "CertificateSigningRequest", metadata: { name: "csr" }, spec: { signerName, request: Buffer.from(createCertificateRequest({ commonName, organizations: ["system:nodes"] }, NO_ALT_NAMES, await generateKey())).toString("base64") } });
    const resource = "certificatesigningrequests.certificates.k8s.io";
    expect(await ask({ resource, namespace: "", object: await request("system:node:node-1", "kubernetes.io/kube-apiserver-client-kubelet") })).toBe("ok");
    expect(await ask({ resource, namespace: "", object: await request("system:node:node-2", "kubernetes.io/kubelet-serving") })).toBe('certificatesigningrequests.certificates.k8s.io "csr" is forbidden: can only create a node CSR with CN=system:node:node-1');
    expect(await ask({ resource, namespace: "", object: await request("x", "example.com/x") })).toBe("ok");
    for (const text of ["eA==", null]) expect(await ask({ resource, namespace: "", object: { metadata: { name: "csr" }, spec: { signerName: "kubernetes.io/kubelet-serving", request: text } } })).toContain("unable to parse csr: PEM block type must be CERTIFICATE REQUEST");
  });
});

describe("tokens", () => {
  const ref = { apiVersion: "v1", kind: "Pod", name: "web", uid: "uid-default/web" };
  test.each([
    [{ boundObjectRef: ref, audiences: ["api"] }, "ok"], [{ boundObjectRef: ref, audiences: ["x"] }, "ok"], [{ boundObjectRef: ref, audiences: ["y"] }, "ok"], [{ boundObjectRef: ref, audiences: ["vault"] }, "ok"],
    [{ boundObjectRef: ref, audiences: ["other"] }, 'audience "other" not found in pod spec volume, system:node:node-1 is not authorized to request tokens for this audience'],
    [{ boundObjectRef: ref, audiences: ["api", "x"] }, "node may only request 0 or 1 audiences"],
    [{}, "node requested token not bound to a pod"], [{ boundObjectRef: { ...ref, kind: "Secret" } }, "node requested token not bound to a pod"],
    [{ boundObjectRef: { ...ref, uid: undefined } }, "node requested token with a pod binding without a uid"],
    [{ boundObjectRef: { ...ref, uid: "old" } }, "the UID in the bound object reference (old) does not match the UID in record. The object might have been deleted and then recreated"],
    [{ boundObjectRef: { ...ref, name: "old", uid: "uid-default/old" }, audiences: ["azure"] }, "ok"],
    [{ boundObjectRef: { ...ref, name: "lost", uid: "uid-default/lost" }, audiences: ["z"] }, 'error validating audience "z": [csidriver.storage.k8s.io "csi.z" not found, persistentvolumeclaim "lost-e" not found]'],
    [{ boundObjectRef: { ...ref, name: "db", uid: "uid-default/db" } }, "node requested token bound to a pod scheduled on a different node"],
  ])("%j: %s", async (spec, answer) => {
    const message = await ask({ resource: "serviceaccounts/token", name: "web", object: { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", metadata: {}, spec } });
    expect(message).toBe(answer === "ok" ? "ok" : `serviceaccounts "web" is forbidden: ${answer}`);
  });

  test("an audience no volume asks for is a permission of its own", () => expect(asked.find((one) => one.isResource && one.resource === "vault")).toMatchObject({ verb: "request-serviceaccounts-token-audience", namespace: "default", name: "web" }));
});

describe("certificates of pods", () => {
  const certified = staticInformer<Pod>(
    pod("ns/p", "node-1", { serviceAccountName: "robot" }, { uid: "p-uid" }), pod("ns/other", "node-2", { serviceAccountName: "robot" }, { uid: "p-uid" }), pod("ns/lonely", "node-1", { serviceAccountName: "gone" }, { uid: "p-uid" }),
    pod("ns/mirror", "node-1", { serviceAccountName: "robot" }, { uid: "p-uid", annotations: { "kubernetes.io/config.mirror": "x" } }),
  );
  const accounts = staticInformer<ServiceAccount>(stored<ServiceAccount>("v1", "ServiceAccount", "ns/robot", { metadata: { uid: "robot-uid" } }));
  const deps = { pods: certified, nodes, authorizer, serviceAccounts: accounts, claims: staticInformer<PersistentVolumeClaim>(), volumes: staticInformer<PersistentVolume>(), csiDrivers: staticInformer<CSIDriver>() };
  const SPEC = { nodeName: "node-1", nodeUID: "node-uid", podName: "p", podUID: "p-uid", serviceAccountName: "robot", serviceAccountUID: "robot-uid" };
  const asks = (spec: object, rest: object = {}, certifiesPods = true): Promise<string> =>
    runPlugin(nodeRestriction({ ...deps, certifiesPods }), admissionRequest({ user: NODE, resource: "podcertificaterequests.certificates.k8s.io", namespace: "ns", name: "", object: { metadata: { generateName: "req-" }, spec: { ...SPEC, ...spec } }, ...rest }));
  const forbidden = 'podcertificaterequests.certificates.k8s.io "req-" is forbidden: ';
  test.each<[object, string]>([
    [{}, "ok"],
    [{ nodeName: "node-2" }, `${forbidden}PodCertificateRequest.Spec.NodeName="node-2", which is not the requesting node "node-1"`],
    [{ nodeUID: "x" }, '500 PodCertificateRequest for pod "ns/p" names node UID "x", inconsistent with the running node ("node-uid")'],
    [{ podName: "gone" }, '500 while retrieving pod "ns/gone" named in the PodCertificateRequest: pod "gone" not found'],
    [{ podUID: "x" }, '500 PodCertificateRequest for pod "ns/p" contains pod UID ("x") which differs from running pod "p-uid"'],
    [{ podName: "other" }, `${forbidden}pod "ns/other" is not running on node "node-1" named in the PodCertificateRequest`],
    [{ podName: "mirror" }, `${forbidden}pod "ns/mirror" is a mirror pod`],
    [{ serviceAccountName: "x" }, `${forbidden}PodCertificateRequest for pod "ns/p" contains serviceAccountName ("x") that differs from running pod ("robot")`],
    [{ podName: "lonely", serviceAccountName: "gone" }, '500 while retrieving service account "ns/gone" named in the PodCertificateRequest: serviceaccount "gone" not found'],
    [{ serviceAccountUID: "x" }, '500 PodCertificateRequest for pod "ns/p" names service account UID "x", which differs from the running service account ("robot-uid")'],
  ])("%j", async (spec, answer) => expect(await asks(spec)).toBe(answer));

  test("only where they are switched on, and only made", async () => {
    expect(await asks({}, {}, false)).toBe(`${forbidden}PodCertificateRequest feature gate is disabled`);
    expect(await asks({}, { operation: "UPDATE" })).toBe(`${forbidden}unexpected operation UPDATE`);
    expect(await asks({}, { resource: "podcertificaterequests.certificates.k8s.io/status" })).toBe(`${forbidden}unexpected subresource status`);
  });

  test("who may sign for the signer says what has come of a request", async () => {
    const signing = podCertificateSigning({ ...authorizer, authorize: (attributes) => ({ decision: attributes.isResource && attributes.verb === "sign" && attributes.resource === "signers" && attributes.name === "e.com/*" ? "allow" : "no-opinion", reason: "" }) });
    const says = (signerName: string, status: object): Promise<string> => runPlugin(signing, admissionRequest({
      user: { name: "jane", groups: [] }, resource: "podcertificaterequests.certificates.k8s.io/status", operation: "UPDATE", namespace: "ns", name: "req-1", object: { spec: { signerName: "e.com/other" }, status }, old: { spec: { signerName } },
    }));
    const denied = { conditions: [{ type: "Denied" }] };
    expect([await says("e.com/s", denied), await says("other.com/s", {})]).toEqual(["ok", "ok"]);
    expect(await says("other.com/s", denied)).toBe('422 PodCertificateRequest.certificates.k8s.io "req-1" is invalid: spec.signerName: Forbidden: User "jane" is not permitted to "sign" for signer "other.com/s"');
  });
});
