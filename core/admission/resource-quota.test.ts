import { expect, test } from "vitest";
import { admissionRequest, runPlugin } from "../../test/admission-request.ts";
import { fakeApi } from "../../test/fake-api.ts";
import { staticInformer, stored } from "../../test/static-informer.ts";
import type { Pod, ResourceQuota } from "../api/gen/core.v1.ts";
import type { DeviceClass, ResourceClaim } from "../api/gen/resource.v1.ts";
import type { Surroundings } from "../api/quota/claim-usage.ts";
import { evaluatorOf } from "../api/quota/evaluators.ts";
import { RESOURCE_QUOTAS } from "../client/resources.ts";
import { systemClock } from "../lifecycle/clock.ts";
import { conflict } from "../api/meta/status-error.ts";
import { charge, resourceQuotaAdmission } from "./resource-quota.ts";

interface Limits { readonly hard: Record<string, string>; readonly used?: Record<string, string>; readonly spec?: object }

async function namespaceWith(limits: Record<string, Limits>, around?: Surroundings) {
  const api = fakeApi();
  const client = api.client.resource(RESOURCE_QUOTAS);
  const signal = AbortSignal.timeout(60_000);
  for (const [name, { hard, used, spec }] of Object.entries(limits)) {
    const made = await client.create({ apiVersion: "v1", kind: "ResourceQuota", metadata: { name, namespace: "default" }, spec: { hard, ...spec } }, { signal });
    await client.updateStatus({ ...made, status: { hard, ...(used ? { used } : {}) } }, { signal });
  }
  const plugin = resourceQuotaAdmission({ quotas: staticInformer<ResourceQuota>(...api.all(RESOURCE_QUOTAS)), client, clock: systemClock, ...(around && { around }) });
  const used = (name: string) => api.all(RESOURCE_QUOTAS).find(({ metadata }) => metadata.name === name)?.status?.used;
  return { api, used, run: (resource: string, object: object, more: object = {}) => runPlugin(plugin, admissionRequest({ resource, object, ...more })) };
}

const pod = (spec: object = {}, status: object = {}) => stored("v1", "Pod", "default/web", { spec: { containers: [{ name: "c", resources: { requests: { cpu: "500m" }, limits: { cpu: "1" } } }], ...spec }, status });
const bare = pod({ containers: [{ name: "c" }], initContainers: [{ name: "i" }] });

test("what does not fit is refused, in upstream's words; what does is noted", async () => {
  const { run, used } = await namespaceWith({ q: { hard: { pods: "3", "requests.cpu": "2", "limits.cpu": "4" }, used: { pods: "2", "requests.cpu": "1", "limits.cpu": "1" } } });
  expect(await run("pods", pod())).toBe("ok");
  expect(used("q")).toEqual({ pods: "3", "requests.cpu": "1500m", "limits.cpu": "2" });
  expect(await run("pods", pod())).toBe(`pods "web" is forbidden: exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3`);
  expect(await run("pods", pod({ containers: [{ name: "c", resources: { requests: { cpu: "1" }, limits: { cpu: "3" } } }] }))).toContain("requested: limits.cpu=3,pods=1,requests.cpu=1, used: limits.cpu=2,pods=3,requests.cpu=1500m, limited: limits.cpu=4,pods=3,requests.cpu=2");
  expect(await run("pods", bare)).toBe(`pods "web" is forbidden: failed quota: q: must specify limits.cpu for: c,i; requests.cpu for: c,i`);
  expect(await run("pods", pod(), { operation: "UPDATE", old: pod() })).toBe("ok");
});

test("a pod's overhead counts with what it asks for, and limits nothing that is not limited", async () => {
  const { run, used } = await namespaceWith({ q: { hard: { "requests.cpu": "9", "requests.memory": "9Gi", "limits.cpu": "9", "limits.memory": "9Gi" }, used: { "requests.cpu": "0", "requests.memory": "0", "limits.cpu": "0", "limits.memory": "0" } } });
  const containers = [{ name: "c", resources: { requests: { cpu: "2", memory: "200Mi" }, limits: { cpu: "3", memory: "0" } } }];
  expect(await run("pods", pod({ containers, overhead: { cpu: "250m", memory: "120Mi" } }))).toBe("ok");
  expect(used("q")).toEqual({ "requests.cpu": "2250m", "requests.memory": "320Mi", "limits.cpu": "3250m", "limits.memory": "0" });
});

test("of a quota with a thousand names a write reads those it touches", () => {
  let reads = 0;
  const counted = (amount: string, more: Record<string, string>) => new Proxy<Record<string, string>>({ ...Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`count/x${i}.g`, amount])), ...more }, { get: (list, name) => (reads++, Reflect.get(list, name)) });
  const quota = { apiVersion: "v1", kind: "ResourceQuota", metadata: { name: "q" }, spec: {}, status: { hard: counted("5", { pods: "3", "count/secrets": "3" }), used: counted("1", { pods: "2", "count/secrets": "3" }) } } as unknown as ResourceQuota;
  const spend = (resource: string, object: object) => () => charge([quota], { request: admissionRequest({ resource, object }), evaluator: evaluatorOf({ group: "", resource })!, nowMs: 0 });
  expect(spend("secrets", stored("v1", "Secret", "default/s"))).toThrow("exceeded quota: q, requested: count/secrets=1, used: count/secrets=3, limited: count/secrets=3");
  expect(spend("configmaps", stored("v1", "ConfigMap", "default/s"))()).toEqual([]);
  expect(reads).toBeLessThan(20);
  expect(spend("pods", pod())()[0]?.status?.used).toEqual({ ...quota.status!.used, pods: "3" });
  expect(reads).toBeLessThan(1002 * 2 + 40); // that of the copy, and of this test
});

test.each([
  ["secrets", { "count/secrets": "1" }, stored("v1", "Secret", "default/s")],
  ["configmaps", { configmaps: "1" }, stored("v1", "ConfigMap", "default/s")],
  ["deployments.apps", { "count/deployments.apps": "1" }, stored("apps/v1", "Deployment", "default/s")],
  ["services", { "services.nodeports": "1" }, stored("v1", "Service", "default/s", { spec: { type: "NodePort", ports: [{ port: 1 }] } })],
  ["services", { "services.loadbalancers": "1" }, stored("v1", "Service", "default/s", { spec: { type: "LoadBalancer", ports: [] } })],
  ["persistentvolumeclaims", { "gold.storageclass.storage.k8s.io/requests.storage": "1Gi" }, stored("v1", "PersistentVolumeClaim", "default/s", { spec: { storageClassName: "gold", resources: { requests: { storage: "1Gi" } } } })],
  ["resourceclaims.resource.k8s.io", { "gpu.deviceclass.resource.k8s.io/devices": "3" }, stored("resource.k8s.io/v1", "ResourceClaim", "default/s", {
    spec: { devices: { requests: [{ name: "a", exactly: { deviceClassName: "gpu", allocationMode: "ExactCount", count: 1 } }, { name: "b", firstAvailable: [{ name: "x", deviceClassName: "gpu", allocationMode: "ExactCount", count: 2 }, { name: "y", deviceClassName: "gpu", allocationMode: "ExactCount", count: 1 }] }] } },
  })],
  ["pods", { "requests.vendor.example/gpu": "1" }, pod({ containers: [{ name: "c", resources: { requests: { "vendor.example/gpu": "1" }, limits: {} } }] })],
] as const)("%s are counted as %o", async (resource, hard, object) => {
  const names = Object.keys(hard);
  const { run } = await namespaceWith({ q: { hard: hard as unknown as Record<string, string>, used: Object.fromEntries(names.map((name) => [name, "0"])) } });
  expect(await run(resource, object)).toBe("ok");
  expect(await run(resource, object)).toContain("exceeded quota: q, requested: ");
});

test("devices of a class are of its extended resource, too: a pod takes what it asks for, a claim what no pod has taken", async () => {
  const gpus = { requests: { "vendor.example/gpu": "2", "deviceclass.resource.kubernetes.io/gpu": "1" } };
  const owner = stored<Pod>("v1", "Pod", "default/web", { spec: { containers: [{ name: "c", resources: gpus }] } });
  const claim = (name: string, count: number, more: object = {}) => stored<ResourceClaim>("resource.k8s.io/v1", "ResourceClaim", `default/${name}`, { metadata: more, spec: { devices: { requests: [{ name: "r", exactly: { deviceClassName: "gpu", allocationMode: "ExactCount", count } }] } } });
  const of = { annotations: { "resource.kubernetes.io/extended-resource-claim": "true" }, ownerReferences: [{ apiVersion: "v1", kind: "Pod", name: "web", uid: owner.metadata.uid, controller: true }] };
  const [pods, claims] = [staticInformer<Pod>(), staticInformer<ResourceClaim>()];
  const names = ["requests.vendor.example/gpu", "requests.deviceclass.resource.kubernetes.io/gpu", "gpu.deviceclass.resource.k8s.io/devices"];
  const { run, used } = await namespaceWith({ q: { hard: Object.fromEntries(names.map((name) => [name, "9"])), used: Object.fromEntries(names.map((name) => [name, "0"])) } }, { classes: staticInformer(stored<DeviceClass>("resource.k8s.io/v1", "DeviceClass", "gpu", { spec: { extendedResourceName: "vendor.example/gpu" } })), pods, claims });
  const taken = async (resource: string, object: object) => [await run(resource, object), ...names.map((name) => used("q")?.[name])];

  expect(await taken("resourceclaims.resource.k8s.io", claim("own", 1))).toEqual(["ok", "1", "1", "1"]);
  expect(await taken("pods", owner)).toEqual(["ok", "3", "2", "1"]);
  pods.put(owner);
  expect(await taken("resourceclaims.resource.k8s.io", claim("web-b", 3, of))).toEqual(["ok", "4", "4", "4"]); // of the resource two are the pod's, of the class one
  claims.put(claim("web-b", 3, of));
  expect(await taken("resourceclaims.resource.k8s.io", claim("web-c", 2, of))).toEqual(["ok", "6", "6", "6"]); // the pod's are not taken off twice
  expect(await run("resourceclaims.resource.k8s.io", claim("more", 4))).toBe('resourceclaims.resource.k8s.io "more" is forbidden: exceeded quota: q, requested: gpu.deviceclass.resource.k8s.io/devices=4,requests.deviceclass.resource.kubernetes.io/gpu=4,requests.vendor.example/gpu=4, used: gpu.deviceclass.resource.k8s.io/devices=6,requests.deviceclass.resource.kubernetes.io/gpu=6,requests.vendor.example/gpu=6, limited: gpu.deviceclass.resource.k8s.io/devices=9,requests.deviceclass.resource.kubernetes.io/gpu=9,requests.vendor.example/gpu=9');
});

test.each([
  ["BestEffort", bare, true], ["BestEffort", pod(), false], ["NotBestEffort", pod(), true],
  ["Terminating", pod({ activeDeadlineSeconds: 5 }), true], ["NotTerminating", pod({ activeDeadlineSeconds: 5 }), false],
  ["PriorityClass", pod({ priorityClassName: "high" }), true], ["PriorityClass", pod(), false],
  ["CrossNamespacePodAffinity", pod({ affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: "x", namespaces: ["y"] }] } } }), true],
] as const)("scope %s", async (scope, object, counted) => {
  const { run } = await namespaceWith({ q: { hard: { pods: "0" }, used: { pods: "0" }, spec: { scopes: [scope] } } });
  expect(await run("pods", object)).toBe(counted ? `pods "web" is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0` : "ok");
});

test("a scope selector", async () => {
  const { run } = await namespaceWith({ q: { hard: { pods: "0" }, used: { pods: "0" }, spec: { scopeSelector: { matchExpressions: [{ scopeName: "PriorityClass", operator: "In", values: ["high"] }] } } } });
  expect(await run("pods", pod({ priorityClassName: "low" }))).toBe("ok");
  expect(await run("pods", pod({ priorityClassName: "high" }))).toContain("exceeded quota");
});

test("a quota that has not been counted yet lets nothing through; nor do fifty at once get more than there is, though others write too", async () => {
  const fresh = await namespaceWith({ q: { hard: { pods: "5" } } });
  expect(await fresh.run("pods", pod())).toBe(`pods "web" is forbidden: status unknown for quota: q, resources: pods`);
  const { api, run, used } = await namespaceWith({ q: { hard: { pods: "7" }, used: { pods: "0" } }, other: { hard: { pods: "9" }, used: { pods: "0" } } });
  let writes = 0;
  api.fail = ({ method }) => (method === "PUT" && ++writes % 5 === 0 ? conflict({ group: "", resource: "resourcequotas" }, "q") : undefined);
  const answers = await Promise.all(Array.from({ length: 50 }, () => run("pods", pod())));
  expect(answers.filter((answer) => answer === "ok").length).toBe(7);
  expect([used("q"), used("other")]).toEqual([{ pods: "7" }, { pods: "7" }]);
});
