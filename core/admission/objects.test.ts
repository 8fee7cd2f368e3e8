import { describe, expect, test } from "vitest";
import { admissionRequest, runPlugin } from "../../test/admission-request.ts";
import { fakeApi } from "../../test/fake-api.ts";
import { staticInformer, stored } from "../../test/static-informer.ts";
import type { Namespace, PersistentVolumeClaim } from "../api/gen/core.v1.ts";
import type { Ingress, IngressClass } from "../api/gen/networking.v1.ts";
import type { StorageClass } from "../api/gen/storage.v1.ts";
import type { ApiObject } from "../api/meta/object-meta.ts";
import type { StatusError } from "../api/meta/status-error.ts";
import type { Authorizer } from "../authz/authorizer.ts";
import { informerFactory } from "../client/informer-factory.ts";
import { INGRESS_CLASSES, NAMESPACES, STORAGE_CLASSES } from "../client/resources.ts";
import { systemClock } from "../lifecycle/clock.ts";
import { systemRandom } from "../lifecycle/random.ts";
import { silentLog } from "../observe/log.ts";
import { NO_ALT_NAMES } from "../pki/alt-names.ts";
import { generateKey } from "../pki/authority.ts";
import { createCertificateRequest } from "../pki/certificate-request.ts";
import { certificateApproval, certificateSigning, certificateSubjectRestriction } from "./certificates.ts";
import { admissionChain } from "./chain.ts";
import { defaultIngressClass } from "./default-ingress-class.ts";
import { denyServiceExternalIps } from "./deny-service-external-ips.ts";
import { namespaceLifecycle } from "./namespace-lifecycle.ts";
import { ownerReferencesPermissionEnforcement } from "./owner-references.ts";
import type { AdmissionPlugin } from "./plugin.ts";
import { admissionPlugins } from "./plugins.ts";
import { defaultStorageClass, persistentVolumeClaimResize, storageObjectInUseProtection } from "./storage.ts";
import { Reinvocation } from "./reinvocation.ts";

const signal = new AbortController().signal;

/** Allows "verb resource/subresource name", whatever the namespace. */
function allowing(...allowed: string[]): Authorizer {
  return {
    authorize: (attributes) => (attributes.isResource && allowed.includes(`${attributes.verb} ${attributes.resource}${attributes.subresource === "" ? "" : `/${attributes.subresource}`} ${attributes.name}`) ? { decision: "allow", reason: "" } : { decision: "no-opinion", reason: "" }),
    rulesFor: async () => ({ resourceRules: [], pathRules: [], incomplete: false }),
  };
}

describe("NamespaceLifecycle", () => {
  async function world() {
    const api = fakeApi();
    const namespace = (name: string, phase: string): Namespace => stored<Namespace>("v1", "Namespace", name, { status: { phase } });
    const namespaces = staticInformer<Namespace>(namespace("default", "Active"), namespace("going", "Terminating"));
    const client = api.client.resource(NAMESPACES);
    const plugin = namespaceLifecycle({ namespaces, client, clock: systemClock });
    const ask = (parts: Parameters<typeof admissionRequest>[0]) => runPlugin(plugin, admissionRequest(parts));
    return { client, ask, plugin };
  }
  const object = { metadata: { name: "x" } };

  test.each([
    [{ resource: "configmaps", object }, "ok"],
    [{ resource: "configmaps", namespace: "gone", object }, '404 namespaces "gone" not found'],
    [{ resource: "configmaps", operation: "UPDATE", namespace: "gone", object }, '404 namespaces "gone" not found'],
    [{ resource: "configmaps", operation: "DELETE", namespace: "gone", name: "x" }, "ok"],
    [{ resource: "configmaps", namespace: "going", object }, 'configmaps "x" is forbidden: unable to create new content in namespace going because it is being terminated'],
    [{ resource: "configmaps", operation: "UPDATE", namespace: "going", object }, "ok"],
    [{ resource: "localsubjectaccessreviews.authorization.k8s.io", namespace: "gone", object }, "ok"],
    [{ resource: "nodes", namespace: "", object }, "not handled"],
    [{ resource: "namespaces", namespace: "", object }, "ok"],
    [{ resource: "namespaces", operation: "DELETE", namespace: "going", name: "going" }, "ok"],
    ...["default", "kube-system", "kube-public"].map((name) => [{ resource: "namespaces", operation: "DELETE", namespace: "", name }, `namespaces "${name}" is forbidden: this namespace may not be deleted`] as const),
  ] as const)("%j: %s", async (parts, answer) => expect(await (await world()).ask(parts as never)).toBe(answer));

  test("the refusal names its cause", async () => {
    const { plugin } = await world();
    const error: StatusError = await Promise.resolve(plugin.admit!(admissionRequest({ resource: "configmaps", namespace: "going", object }), new Reinvocation())).catch((one: StatusError) => one) as StatusError;
    expect(error.status.details).toEqual({ name: "x", kind: "configmaps", causes: [{ reason: "NamespaceTerminating", message: "namespace going is being terminated", field: "metadata.namespace" }] });
  });

  test("a namespace made a moment ago, of which the copy does not know yet, is found", async () => {
    const { client, ask } = await world();
    await client.create({ apiVersion: "v1", kind: "Namespace", metadata: { name: "fresh" }, spec: {} }, { signal });
    expect(await ask({ resource: "configmaps", namespace: "fresh", object })).toBe("ok");
  });

  test("after a delete the server is asked, for half a minute", async () => {
    const api = fakeApi();
    let uptimeMs = 0;
    const namespaces = staticInformer<Namespace>(stored<Namespace>("v1", "Namespace", "app", { status: { phase: "Active" } }));
    await api.client.resource(NAMESPACES).create({ apiVersion: "v1", kind: "Namespace", metadata: { name: "app" }, status: { phase: "Terminating" } } as never, { signal });
    const plugin = namespaceLifecycle({ namespaces, client: api.client.resource(NAMESPACES), clock: { ...systemClock, uptimeMs: () => uptimeMs } });
    await runPlugin(plugin, admissionRequest({ resource: "namespaces", operation: "DELETE", namespace: "app", name: "app" }));
    expect(await runPlugin(plugin, admissionRequest({ resource: "configmaps", namespace: "app", object }))).toContain("because it is being terminated");
    uptimeMs = 31_000;
    expect(await runPlugin(plugin, admissionRequest({ resource: "configmaps", namespace: "app", object }))).toBe("ok");
  });
});

describe("volumes", () => {
  const classOf = (name: string, created: string, rest: object): StorageClass => stored<StorageClass>("storage.k8s.io/v1", "StorageClass", name, { provisioner: "p", ...rest, metadata: { creationTimestamp: created, annotations: (rest as { default?: boolean }).default ? { "storageclass.kubernetes.io/is-default-class": "true" } : {} } });
  const storageClasses = staticInformer<StorageClass>(classOf("old", "2026-01-01T00:00:00Z", { default: true, allowVolumeExpansion: true }), classOf("new", "2026-02-01T00:00:00Z", { default: true }), classOf("newest", "2026-03-01T00:00:00Z", {}));
  const claim = (spec: object = {}, rest: object = {}): PersistentVolumeClaim => stored<PersistentVolumeClaim>("v1", "PersistentVolumeClaim", "default/data", { spec, ...rest });

  test.each([[claim(), "new"], [claim({ storageClassName: "old" }), "old"], [claim({ storageClassName: "" }), ""], [claim({}, { metadata: { annotations: { "volume.beta.kubernetes.io/storage-class": "x" } } }), undefined]])("DefaultStorageClass %#", async (object, name) => {
    await runPlugin(defaultStorageClass({ storageClasses, client: fakeApi().client.resource(STORAGE_CLASSES) }), admissionRequest({ resource: "persistentvolumeclaims", object }));
    expect(object.spec?.storageClassName).toBe(name);
  });

  test("before the copy is complete, the server is asked", async () => {
    const api = fakeApi();
    await api.client.resource(STORAGE_CLASSES).create(classOf("live", "2026-01-01T00:00:00Z", { default: true }), { signal });
    const informers = informerFactory({ client: api.client, clock: systemClock, random: systemRandom, log: silentLog }); // not running
    const object = claim();
    await runPlugin(defaultStorageClass({ storageClasses: informers.of(STORAGE_CLASSES), client: api.client.resource(STORAGE_CLASSES) }), admissionRequest({ resource: "persistentvolumeclaims", object }));
    expect(object.spec?.storageClassName).toBe("live");
  });

  test.each([["persistentvolumes", "kubernetes.io/pv-protection"], ["persistentvolumeclaims", "kubernetes.io/pvc-protection"], ["volumeattributesclasses.storage.k8s.io", "kubernetes.io/vac-protection"]])("StorageObjectInUseProtection: %s", async (resource, finalizer) => {
    const object = stored<ApiObject>("v1", "X", "x", { metadata: { finalizers: ["a/b"] } });
    for (let i = 0; i < 2; i++) await runPlugin(storageObjectInUseProtection, admissionRequest({ resource, object }));
    expect(object.metadata.finalizers).toEqual(["a/b", finalizer]);
  });

  const sized = (storage: string, storageClassName: string, phase = "Bound") => claim({ storageClassName, resources: { requests: { storage } } }, { status: { phase } });
  test.each([
    [sized("2Gi", "old"), sized("1Gi", "old"), "ok"], [sized("1Gi", "new"), sized("1Gi", "new"), "ok"],
    [sized("2Gi", "old"), sized("1Gi", "old", "Pending"), "Only bound persistent volume claims can be expanded"],
    [sized("2Gi", "new"), sized("1Gi", "new"), "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"],
    [sized("2Gi", ""), sized("1Gi", ""), "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"],
  ])("PersistentVolumeClaimResize %#: %s", async (object, old, answer) => {
    const message = await runPlugin(persistentVolumeClaimResize({ storageClasses }), admissionRequest({ operation: "UPDATE", resource: "persistentvolumeclaims", object, old }));
    expect(message).toBe(answer === "ok" ? "ok" : `persistentvolumeclaims "data" is forbidden: ${answer}`);
  });
});

test("DefaultIngressClass", async () => {
  const marked = (name: string, creationTimestamp: string, value = "true"): IngressClass => stored<IngressClass>("networking.k8s.io/v1", "IngressClass", name, { metadata: { creationTimestamp, annotations: { "ingressclass.kubernetes.io/is-default-class": value } } });
  const ingressClasses = staticInformer<IngressClass>(marked("old", "2026-01-01T00:00:00Z"), marked("edge", "2026-01-02T00:00:00Z"), marked("no", "2026-01-03T00:00:00Z", "false")); // the newest of several
  const plugin = defaultIngressClass({ ingressClasses, client: fakeApi().client.resource(INGRESS_CLASSES) });
  const ingress = (spec: object, annotations = {}): Ingress => stored<Ingress>("networking.k8s.io/v1", "Ingress", "default/i", { spec, metadata: { annotations } });
  const all = [ingress({}), ingress({ ingressClassName: "other" }), ingress({}, { "kubernetes.io/ingress.class": "nginx" })];
  for (const object of all) await runPlugin(plugin, admissionRequest({ resource: "ingresses.networking.k8s.io", object }));
  expect(all.map(({ spec }) => spec?.ingressClassName)).toEqual(["edge", "other", undefined]);
});

describe("certificate signing requests", () => {
  const resource = "certificatesigningrequests.certificates.k8s.io";
  const csr = (signerName: string, status: object = {}) => stored("certificates.k8s.io/v1", "CertificateSigningRequest", "csr", { spec: { signerName }, status });
  const signed = { certificate: "x" };
  test.each<[AdmissionPlugin, string, object, object, string]>([
    [certificateApproval(allowing("approve signers kubernetes.io/kubelet-serving")), "approval", csr("other.io/x"), csr("kubernetes.io/kubelet-serving"), "ok"],
    [certificateApproval(allowing("approve signers kubernetes.io/*")), "approval", csr("kubernetes.io/kubelet-serving"), csr("kubernetes.io/kubelet-serving"), "ok"],
    [certificateApproval(allowing()), "approval", csr("a.io/x"), csr("a.io/x"), 'certificatesigningrequests.certificates.k8s.io "csr" is forbidden: user not permitted to approve requests with signerName "a.io/x"'],
    [certificateSigning(allowing("sign signers a.io/x")), "status", csr("a.io/x", signed), csr("a.io/x"), "ok"],
    [certificateSigning(allowing()), "status", csr("a.io/x", signed), csr("a.io/x"), 'certificatesigningrequests.certificates.k8s.io "csr" is forbidden: user not permitted to sign requests with signerName "a.io/x"'],
    [certificateSigning(allowing()), "status", csr("a.io/x", signed), csr("a.io/x", signed), "ok"],
  ])("%#", async (plugin, subresource, object, old, answer) => expect(await runPlugin(plugin, admissionRequest({ operation: "UPDATE", resource: `${resource}/${subresource}`, namespace: "", object, old }))).toBe(answer));

  test("nobody becomes system:masters this way", async () => {
    const request = Buffer.from(createCertificateRequest({ commonName: "eve", organizations: ["dev", "system:masters"] }, NO_ALT_NAMES, await generateKey())).toString("base64");
    const ask = (signerName: string) => runPlugin(certificateSubjectRestriction, admissionRequest({ resource, namespace: "", object: stored("certificates.k8s.io/v1", "CertificateSigningRequest", "csr", { spec: { signerName, request } }) }));
    expect(await ask("kubernetes.io/kube-apiserver-client")).toBe('certificatesigningrequests.certificates.k8s.io "csr" is forbidden: use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed');
    expect(await ask("example.com/x")).toBe("ok");
  });
});

describe("OwnerReferencesPermissionEnforcement", () => {
  const owner = (blockOwnerDeletion?: boolean) => ({ apiVersion: "apps/v1", kind: "ReplicaSet", name: "rs", uid: "u", blockOwnerDeletion });
  const pod = (...ownerReferences: object[]) => stored("v1", "Pod", "default/web", { metadata: { ownerReferences } });
  const plugin = (...allowed: string[]) => ownerReferencesPermissionEnforcement({ authorizer: allowing(...allowed), resourcesOf: ({ kind }) => (kind === "ReplicaSet" ? [{ plural: "replicasets", namespaced: true }] : []) });
  test.each<[AdmissionPlugin, object, object | undefined, string]>([
    [plugin(), pod(owner()), undefined, "ok"], [plugin(), pod(owner()), pod(owner()), "ok"],
    [plugin(), pod(owner()), pod(), `pods "web" is forbidden: cannot set an ownerRef on a resource you can't delete: , <nil>`], [plugin("delete pods web"), pod(owner()), pod(), "ok"],
    [plugin(), pod(owner(true)), undefined, `pods "web" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>`],
    [plugin("update replicasets/finalizers rs"), pod(owner(true)), undefined, "ok"], [plugin("update */finalizers *"), pod(owner(true)), undefined, "ok"],
  ])("%#: %s", async (one, object, old, answer) => expect(await runPlugin(one, admissionRequest({ operation: old ? "UPDATE" : "CREATE", resource: "pods", object, old }))).toBe(answer));

  test("why nobody could say whether it may be done is told", async () => {
    const lost = ownerReferencesPermissionEnforcement({ authorizer: { ...allowing(), authorize: () => ({ decision: "no-opinion", reason: "", error: "no answer" }) }, resourcesOf: () => [] });
    expect(await runPlugin(lost, admissionRequest({ operation: "UPDATE", resource: "pods", object: pod(owner()), old: pod() }))).toBe(`pods "web" is forbidden: cannot set an ownerRef on a resource you can't delete: , no answer`);
  });

  test("a pod's status is let be, that of somebody else's pods is not", async () => {
    const change = (resource: string) => admissionRequest({ operation: "UPDATE", resource, object: pod(owner()), old: pod() });
    const status = (group: string) => ({ ...change("pods"), group, subresource: "status" });
    expect(await runPlugin(plugin(), status(""))).toBe("not handled");
    expect(await runPlugin(plugin(), status("example.com"))).toContain("cannot set an ownerRef on a resource you can't delete");
  });
});

test("DenyServiceExternalIPs", async () => {
  const service = (...externalIPs: string[]) => stored("v1", "Service", "default/s", { spec: { externalIPs } });
  expect(await runPlugin(denyServiceExternalIps, admissionRequest({ resource: "services", object: service("1.2.3.4") }))).toBe('services "s" is forbidden: Use of external IPs is denied by admission control');
  expect(await runPlugin(denyServiceExternalIps, admissionRequest({ operation: "UPDATE", resource: "services", object: service("1.2.3.4"), old: service("1.2.3.4", "5.6.7.8") }))).toBe("ok");
});

describe("the chain", () => {
  const api = fakeApi();
  const deps = {
    client: api.client, informers: informerFactory({ client: api.client, clock: systemClock, random: systemRandom, log: silentLog }), authorizer: allowing(), escalationGuard: async () => {},
    clock: systemClock, random: systemRandom,
  };

  test("upstream's order and defaults", () => {
    expect(admissionPlugins(deps).map(({ name }) => name)).toEqual([
      "AdmissionPolicyParamsAuthorization", "NamespaceLifecycle", "LimitRanger", "ServiceAccount", "NodeRestriction", "TaintNodesByCondition", "PodSecurity", "Priority", "DefaultTolerationSeconds", "DefaultStorageClass", "StorageObjectInUseProtection",
      "PersistentVolumeClaimResize", "RuntimeClass", "CertificateApproval", "CertificateSigning", "ClusterTrustBundleAttest", "CertificateSubjectRestriction", "DefaultIngressClass", "PodTopologyLabels", "NodeDeclaredFeatureValidator", "PodResizeValidator", "ResourceQuota", "RBACEscalation", "PodCertificateSigning",
    ]);
    const changed = admissionPlugins({ ...deps, enabled: ["AlwaysPullImages"], disabled: ["Priority"] }).map(({ name }) => name);
    expect([changed.includes("AlwaysPullImages"), changed.includes("Priority")]).toEqual([true, false]);
    expect(() => admissionPlugins({ ...deps, configurations: new Map([["EventRateLimit", { apiVersion: "v1", kind: "Configuration" }]]) })).toThrow("configuration of admission plugin EventRateLimit: no kind");
    expect(() => admissionPlugins({ ...deps, enabled: ["Typo"] })).toThrow("admission plugin Typo is not known");
  });

  test("a pod of a new cluster passes through all of them", async () => {
    for (const [ref, object] of [["namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name: "default" } }], ["serviceaccounts", { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "default", namespace: "default" } }]] as const)
      await api.call({ method: "POST", path: ref === "namespaces" ? "/api/v1/namespaces" : "/api/v1/namespaces/default/serviceaccounts", body: object, signal });
    const object = { apiVersion: "v1", kind: "Pod", metadata: { name: "web" }, spec: { containers: [{ name: "c", image: "i" }] } };
    const request = admissionRequest({ resource: "pods", object });
    const chain = admissionChain(admissionPlugins(deps));
    await chain.admit(request);
    await chain.validate(request);
    expect(object.spec).toMatchObject({ serviceAccountName: "default", priority: 0, preemptionPolicy: "PreemptLowerPriority", tolerations: [{ key: "node.kubernetes.io/not-ready" }, { key: "node.kubernetes.io/unreachable" }], volumes: [{ name: expect.stringMatching(/^kube-api-access-[a-z0-9]{5}$/) }] });
  });

  test("who grants what they do not hold is refused before anything is validated", async () => {
    const chain = admissionChain(admissionPlugins({ ...deps, escalationGuard: async ({ name }) => { throw new Error(`${name} escalates`); } }));
    await expect(chain.admit(admissionRequest({ resource: "clusterroles.rbac.authorization.k8s.io", namespace: "", object: { apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", metadata: { name: "all" } } }))).rejects.toThrow("all escalates");
  });

  test("changing comes before looking, and the first to refuse decides", async () => {
    const trace: string[] = [];
    const plugin = (name: string, refuse = false): AdmissionPlugin => ({ name, handles: () => true, admit() { trace.push(`admit ${name}`); }, validate() { trace.push(`validate ${name}`); if (refuse) throw new Error(name); } });
    const chain = admissionChain([plugin("a"), plugin("b", true), plugin("c")]);
    const request = admissionRequest({ resource: "pods", object: {} });
    await chain.admit(request);
    await expect(chain.validate(request)).rejects.toThrow("b");
    expect(trace).toEqual(["admit a", "admit b", "admit c", "validate a", "validate b"]);
  });
});
