import { expect, test } from "vitest";
import type { Pod } from "../../api/gen/core.v1.ts";
import type { ResourceClaim, ResourceClaimTemplate } from "../../api/gen/resource.v1.ts";
import { eventually } from "../../../test/fake-api.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import { stored } from "../../../test/scheduling-cluster.ts";
import { EVENTS, PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS } from "../../client/resources.ts";
import { claimFrom, planClaim } from "./plan.ts";
import { resourceClaimControllers } from "./resourceclaim.ts";

const devices = { requests: [{ name: "gpu", exactly: { deviceClassName: "gpu" } }] };
const pod = (name: string, rest: Record<string, unknown> = {}): Pod => stored("v1", "Pod", `ns/${name}`, { metadata: { uid: name }, spec: { containers: [], nodeName: "n" }, ...rest });
const user = (uid: string) => ({ resource: "pods", name: uid, uid });
const claim = (status: ResourceClaim["status"], metadata: Record<string, unknown> = {}): ResourceClaim => stored("resource.k8s.io/v1", "ResourceClaim", "ns/c", { metadata: { finalizers: ["resource.kubernetes.io/delete-protection"], ...metadata }, spec: { devices }, status });
const owned = { ownerReferences: [{ apiVersion: "v1", kind: "Pod", name: "a", uid: "a", controller: true }] };
const ended = pod("a", { status: { phase: "Succeeded" } });

test.each([
  ["in use", claim({ allocation: {}, reservedFor: [user("a")] }), [pod("a")], { deallocate: false, removeFinalizer: false, remove: false }],
  ["one of two users is gone", claim({ allocation: {}, reservedFor: [user("a"), user("b")] }), [pod("b")], { reservedFor: [user("b")], deallocate: false, removeFinalizer: false, remove: false }],
  ["the last user has ended", claim({ allocation: {}, reservedFor: [user("a")] }), [ended], { reservedFor: [], deallocate: true, removeFinalizer: true, remove: false }],
  ["a user that was never placed", claim({ allocation: {}, reservedFor: [user("a")] }), [pod("a", { metadata: { uid: "a", deletionTimestamp: "2026-01-01T00:00:00Z" }, spec: { containers: [] } })], { reservedFor: [], deallocate: true, removeFinalizer: true, remove: false }],
  ["allocated and not yet used", claim({ allocation: {} }), [], { deallocate: false, removeFinalizer: false, remove: false }],
  ["deleted while allocated and unused", claim({ allocation: {} }, { deletionTimestamp: "2026-01-01T00:00:00Z" }), [], { deallocate: true, removeFinalizer: true, remove: false }],
  ["users of another kind are kept", claim({ allocation: {}, reservedFor: [{ apiGroup: "x", resource: "things", name: "t", uid: "t" }] }), [], { deallocate: false, removeFinalizer: false, remove: false }],
  ["made for a pod that has ended", claim({ allocation: {}, reservedFor: [user("a")] }, owned), [ended], { reservedFor: [], deallocate: true, removeFinalizer: true, remove: true }],
  ["made for a pod that was replaced by another", claim({}, { ...owned, finalizers: [] }), [pod("a", { metadata: { uid: "other" } })], { deallocate: false, removeFinalizer: false, remove: true }],
] as const)("%s", (_, one, pods, plan) => {
  const owner = pods.find(({ metadata }) => metadata.name === "a");
  expect(planClaim(one, { users: new Map(pods.map((each) => [each.metadata.uid, each])), owner })).toEqual(plan);
});

test("long names of claims are cut so that both parts are seen", () => {
  const template: ResourceClaimTemplate = stored("resource.k8s.io/v1", "ResourceClaimTemplate", "ns/t", { spec: { spec: { devices } } });
  expect(claimFrom(template, pod("p"), { name: "gpu" }).metadata.generateName).toBe("p-gpu-");
  expect(claimFrom(template, pod("p".repeat(60)), { name: "c".repeat(60) }).metadata.generateName).toBe(`${"p".repeat(28)}-${"c".repeat(28)}`);
});

test("a template becomes a claim of the pod's, which goes when the pod has ended", () => withControllers((deps) => resourceClaimControllers(deps), async (api, call) => {
  const pods = api.client.resource(PODS);
  const made = await pods.create({ apiVersion: "v1", kind: "Pod", metadata: { name: "web", namespace: "ns" }, spec: { containers: [], resourceClaims: [{ name: "gpu", resourceClaimTemplateName: "t" }] } } as never, call);
  await eventually(() => api.all(EVENTS).map(({ reason, message }) => `${reason} ${message}`), (all) => all.includes('FailedResourceClaimCreation PodResourceClaim gpu: resource claim template "t": resourceclaimtemplate.resource.k8s.io "t" not found'));
  await api.client.resource(RESOURCE_CLAIM_TEMPLATES).create({ apiVersion: "resource.k8s.io/v1", kind: "ResourceClaimTemplate", metadata: { name: "t", namespace: "ns" }, spec: { metadata: { labels: { a: "b" } }, spec: { devices } } } as never, call);
  const [one] = await eventually(() => api.all(RESOURCE_CLAIMS), (all) => all.length === 1);
  expect(one).toMatchObject({ metadata: { labels: { a: "b" }, annotations: { "resource.kubernetes.io/pod-claim-name": "gpu" }, ownerReferences: [{ kind: "Pod", name: "web", uid: made.metadata.uid, controller: true }] }, spec: { devices } });
  const told = await eventually(() => api.all(PODS)[0]!, ({ status }) => status?.resourceClaimStatuses !== undefined);
  expect(told.status?.resourceClaimStatuses).toEqual([{ name: "gpu", resourceClaimName: one!.metadata.name }]);
  await pods.updateStatus({ ...told, status: { ...told.status, phase: "Succeeded" } } as Pod, call);
  await eventually(() => api.all(RESOURCE_CLAIMS), (all) => all.length === 0);
}));

test("of several claims one that was deleted is made anew, and the pod goes on naming the others", () => withControllers((deps) => resourceClaimControllers(deps), async (api, call) => {
  await api.client.resource(RESOURCE_CLAIM_TEMPLATES).create({ apiVersion: "resource.k8s.io/v1", kind: "ResourceClaimTemplate", metadata: { name: "t", namespace: "ns" }, spec: { spec: { devices } } } as never, call);
  await api.client.resource(PODS).create({ apiVersion: "v1", kind: "Pod", metadata: { name: "web", namespace: "ns" }, spec: { containers: [], resourceClaims: ["a", "b"].map((name) => ({ name, resourceClaimTemplateName: "t" })) } } as never, call);
  const named = () => new Map(api.all(PODS)[0]?.status?.resourceClaimStatuses?.map(({ name, resourceClaimName }) => [name, resourceClaimName]));
  const before = await eventually(named, (all) => all.size === 2);
  await api.client.resource(RESOURCE_CLAIMS).delete({ metadata: { name: before.get("a")!, namespace: "ns" } }, {}, call);
  await eventually(named, (all) => all.size === 2 && all.get("a") !== before.get("a") && all.get("b") === before.get("b"));
}));

test("a pod that has taken another's name keeps its reservation and its claim, though our copy still shows the other", () => {
  const before = pod("web", { metadata: { uid: "before" } });
  return withControllers((deps) => resourceClaimControllers({
    ...deps, informers: { ...deps.informers, of: (ref, query) => (ref as unknown === PODS ? { ...deps.informers.of(ref, query), get: () => before as never } : deps.informers.of(ref, query)) },
  }).slice(1), async (api, call) => {
    const now = await api.client.resource(PODS).create({ apiVersion: "v1", kind: "Pod", metadata: { name: "web", namespace: "ns" }, spec: { containers: [], nodeName: "n" } } as never, call);
    const { uid } = now.metadata;
    const made = (name: string, status: object | undefined) => api.client.resource(RESOURCE_CLAIMS).create({
      apiVersion: "resource.k8s.io/v1", kind: "ResourceClaim", metadata: { name, namespace: "ns", ownerReferences: [{ apiVersion: "v1", kind: "Pod", name: "web", uid, controller: true }] }, spec: { devices }, ...(status ? { status } : {}),
    } as never, call);
    await made("unused", undefined);
    await made("used", { allocation: {}, reservedFor: [{ resource: "pods", name: "web", uid }, { resource: "pods", name: "web", uid: "long gone" }] });
    const users = await eventually(() => api.all(RESOURCE_CLAIMS).find(({ metadata }) => metadata.name === "used")?.status?.reservedFor, (all) => all?.length !== 2);
    expect(users).toEqual([{ resource: "pods", name: "web", uid }]);
    expect(api.all(RESOURCE_CLAIMS).map(({ metadata }) => metadata.name).sort()).toEqual(["unused", "used"]);
  });
});
