import { expect, test } from "vitest";
import { eventually } from "../../../test/fake-api.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import type { Pod } from "../../api/gen/core.v1.ts";
import type { ApiObject, NewObject } from "../../api/meta/object-meta.ts";
import { statusError } from "../../api/meta/status-error.ts";
import { CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, DEVICE_CLASSES, PERSISTENT_VOLUME_CLAIMS, PODS, RESOURCE_CLAIMS, RESOURCE_QUOTAS } from "../../client/resources.ts";
import type { ResourceRef } from "../../client/client.ts";
import { type Clock, systemClock } from "../../lifecycle/clock.ts";
import { resourceQuotaController } from "./resourcequota.ts";

/** Real time, but `ahead` can be moved; waits are cut short, so that everyone looks again soon. */
function movableClock(): Clock & { aheadMs: number } {
  return { ...systemClock, aheadMs: 0, uptimeMs() { return performance.now() + this.aheadMs; }, sleep: (ms) => Bun.sleep(Math.min(ms, 5)), after: (ms, work) => systemClock.after(Math.min(ms, 5), work) };
}

test("what is there is counted, what goes is taken off, and not before what admission noted can have appeared", () => {
  const clock = movableClock();
  return withControllers((deps) => [resourceQuotaController(deps)], async (api, call) => {
    const [quotas, pods] = [api.client.resource(RESOURCE_QUOTAS), api.client.resource(PODS)];
    const pod = (name: string): NewObject<Pod> => ({ apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "ns" }, spec: { containers: [{ name: "c", image: "i", resources: { requests: { cpu: "250m" } } }] } });
    for (const name of ["a", "b"]) await pods.create(pod(name), call);
    await pods.create({ ...pod("done"), status: { phase: "Succeeded" } } as never, call);
    await api.client.resource(CONFIG_MAPS).create({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "m", namespace: "ns" } }, call);
    await quotas.create({ apiVersion: "v1", kind: "ResourceQuota", metadata: { name: "q", namespace: "ns" }, spec: { hard: { pods: "5", "requests.cpu": "2", "count/pods": "9", configmaps: "3", "count/nothings.example.org": "1" } } }, call);
    const quota = () => api.all(RESOURCE_QUOTAS)[0]!;
    const counted = await eventually(() => quota().status, (status) => status?.used !== undefined);
    expect(counted).toEqual({ hard: quota().spec!.hard, used: { pods: "2", "requests.cpu": "500m", "count/pods": "3", configmaps: "1" } });

    await quotas.updateStatus({ ...quota(), status: { ...quota().status, used: { ...quota().status!.used, pods: "3" } } }, call); // admission's note
    await pods.delete({ metadata: { name: "a", namespace: "ns" } }, {}, call);
    await Bun.sleep(60);
    expect(quota().status?.used?.["pods"]).toBe("3");
    clock.aheadMs += 2_000;
    await eventually(() => quota().status?.used, (used) => used?.["pods"] === "1" && used["requests.cpu"] === "250m");

    await pods.updateStatus({ ...api.all(PODS).find(({ metadata }) => metadata.name === "b")!, status: { phase: "Failed" } }, call);
    await eventually(() => quota().status?.used, (used) => used?.["pods"] === "0");
    await quotas.update({ ...quota(), spec: { hard: { pods: "1" } } }, call);
    await eventually(() => quota().status, (status) => Object.keys(status?.hard ?? {}).join() === "pods" && Object.keys(status?.used ?? {}).join() === "pods");
  }, { clock });
});

test("where something is made and taken away all the time, what is gone is taken off as well", () => {
  const clock = movableClock();
  return withControllers((deps) => [resourceQuotaController(deps)], async (api, call) => {
    const [quotas, maps] = [api.client.resource(RESOURCE_QUOTAS), api.client.resource(CONFIG_MAPS)];
    const map = (name: string): NewObject<ApiObject> => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace: "ns" } });
    await maps.create(map("stays"), call);
    await quotas.create({ apiVersion: "v1", kind: "ResourceQuota", metadata: { name: "q", namespace: "ns" }, spec: { hard: { configmaps: "900" } } }, call);
    const quota = () => api.all(RESOURCE_QUOTAS)[0]!, used = () => Number(quota().status?.used?.["configmaps"]);
    await eventually(used, (count) => count === 1);
    clock.aheadMs += 2_000; // from then on it is known what is added
    const note = (count: number) => quotas.updateStatus({ ...quota(), status: { ...quota().status, used: { configmaps: String(count) } } }, call); // as admission does
    let most = 0;
    for (let i = 0; i < 800 && used() >= most; i++) {
      most = used() + 1;
      await note(most);
      await maps.create(map(`m${i}`), call);
      await maps.delete(map(`m${i}`) as ApiObject, {}, call);
      clock.aheadMs += 100;
      await Bun.sleep(5);
    }
    expect(used()).toBeLessThan(most);
    await eventually(used, (count) => count === 1);
    await note(3);
    await maps.create(map("seen"), call);
    await maps.delete(map("seen") as ApiObject, {}, call);
    clock.aheadMs += 250;
    await eventually(used, (count) => count === 2); // one may still come
    clock.aheadMs += 2_000;
    await eventually(used, (count) => count === 1);
  }, { clock });
});

test("a claim whose volume has got other attributes is taken off the quota of its old class", () => {
  const clock = { ...movableClock(), sleep: systemClock.sleep, after: systemClock.after }; // nobody looks again by themselves
  return withControllers((deps) => [resourceQuotaController(deps)], async (api, call) => {
    const [quotas, claims] = [api.client.resource(RESOURCE_QUOTAS), api.client.resource(PERSISTENT_VOLUME_CLAIMS)];
    const claim = await claims.create({ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name: "c", namespace: "ns" }, spec: { volumeAttributesClassName: "silver" }, status: { currentVolumeAttributesClassName: "gold" } } as never, call);
    await quotas.create({ apiVersion: "v1", kind: "ResourceQuota", metadata: { name: "gold", namespace: "ns" }, spec: { hard: { persistentvolumeclaims: "5" }, scopeSelector: { matchExpressions: [{ scopeName: "VolumeAttributesClass", operator: "In", values: ["gold"] }] } } }, call);
    const used = () => api.all(RESOURCE_QUOTAS)[0]!.status?.used?.["persistentvolumeclaims"];
    await eventually(used, (count) => count === "1");
    clock.aheadMs += 2_000;
    await claims.updateStatus({ ...claim, status: { currentVolumeAttributesClassName: "silver" } }, call);
    await eventually(used, (count) => count === "0");
  }, { clock });
});

test("an extended resource with a class behind it is counted over pods and claims", () => withControllers((deps) => [resourceQuotaController(deps)], async (api, call) => {
  await api.client.resource(DEVICE_CLASSES).create({ apiVersion: "resource.k8s.io/v1", kind: "DeviceClass", metadata: { name: "gpu" }, spec: { extendedResourceName: "vendor.example/gpu" } }, call);
  const pod = await api.client.resource(PODS).create({ apiVersion: "v1", kind: "Pod", metadata: { name: "a", namespace: "ns" }, spec: { containers: [{ name: "c", image: "i", resources: { requests: { "vendor.example/gpu": "2" } } }] } }, call);
  const ofPod = { annotations: { "resource.kubernetes.io/extended-resource-claim": "true" }, ownerReferences: [{ apiVersion: "v1", kind: "Pod", name: "a", uid: pod.metadata.uid, controller: true }] };
  const claim = (name: string, count: number, more: object = {}) => api.client.resource(RESOURCE_CLAIMS).create({ apiVersion: "resource.k8s.io/v1", kind: "ResourceClaim", metadata: { name, namespace: "ns", ...more }, spec: { devices: { requests: [{ name: "r", exactly: { deviceClassName: "gpu", allocationMode: "ExactCount", count } }] } } }, call);
  await claim("own", 1);
  await claim("a-x", 3, ofPod);
  await api.client.resource(RESOURCE_QUOTAS).create({ apiVersion: "v1", kind: "ResourceQuota", metadata: { name: "q", namespace: "ns" }, spec: { hard: { "requests.vendor.example/gpu": "9", "requests.vendor.example/fpga": "9" } } }, call);
  await eventually(() => api.all(RESOURCE_QUOTAS)[0]!.status?.used, (used) => used?.["requests.vendor.example/gpu"] === "4" && used["requests.vendor.example/fpga"] === "0");
}));

test("what cannot be listed keeps nothing else from being counted, neither of its own quota nor of others", () => {
  const clock = movableClock();
  return withControllers((deps) => [resourceQuotaController(deps)], async (api, call) => {
    const used = (name: string) => api.all(RESOURCE_QUOTAS).find(({ metadata }) => metadata.name === name)?.status;
    const quota = (name: string, hard: Record<string, string>) => api.client.resource(RESOURCE_QUOTAS).create({ apiVersion: "v1", kind: "ResourceQuota", metadata: { name, namespace: "ns" }, spec: { hard } }, call);
    api.fail = ({ method, path }) => (method === "GET" && path.endsWith("/configmaps") ? statusError({ code: 500, reason: "InternalError", message: "conversion webhook failed" }) : undefined);
    for (let i = 0; i < 6; i++) await quota(`both-${i}`, { configmaps: "3", pods: "5" }); // more than there are workers
    await quota("pods", { pods: "5" });
    await eventually(() => used("pods")?.used, (all) => all?.["pods"] === "0");
    for (let i = 0; i < 6; i++) await eventually(() => used(`both-${i}`), (status) => status !== undefined);
    expect(used("both-5")).toEqual({ hard: { configmaps: "3", pods: "5" }, used: { pods: "0" } });
    api.fail = undefined;
    await eventually(() => used("both-5")?.used, (all) => all?.["configmaps"] === "0" && all["pods"] === "0");
  }, { clock });
});

test("of what cannot be listed at the source just now the note stays, the rest is counted, and it is tried again", () => {
  const clock = movableClock();
  return withControllers((deps) => [resourceQuotaController(deps)], async (api, call) => {
    const quotas = api.client.resource(RESOURCE_QUOTAS);
    await quotas.create({ apiVersion: "v1", kind: "ResourceQuota", metadata: { name: "q", namespace: "ns" }, spec: { hard: { configmaps: "9", pods: "5" } } }, call);
    const quota = () => api.all(RESOURCE_QUOTAS)[0]!;
    await eventually(() => quota().status?.used, (used) => used?.["configmaps"] === "0");
    let refused = 0;
    api.fail = ({ method, path }) => (method === "GET" && path.endsWith("/namespaces/ns/configmaps") ? (refused++, statusError({ code: 500, reason: "InternalError", message: "conversion webhook failed" })) : undefined);
    await quotas.updateStatus({ ...quota(), status: { ...quota().status, used: { configmaps: "4", pods: "3" } } }, call); // admission's note
    await Bun.sleep(60);
    clock.aheadMs += 2_000;
    await eventually(() => quota().status?.used, (used) => used?.["pods"] === "0");
    expect(quota().status?.used?.["configmaps"]).toBe("4");
    await eventually(() => refused, (count) => count > 2);
    api.fail = undefined;
    await eventually(() => quota().status?.used, (used) => used?.["configmaps"] === "0");
  }, { clock });
});

test("a custom resource whose definition was made anew is counted on", () => {
  const clock = movableClock();
  let stop: (ref: ResourceRef) => void = () => {};
  return withControllers((deps) => { stop = deps.informers.stop; return [resourceQuotaController(deps)]; }, async (api, call) => {
    const widgets = (version: string): ResourceRef => ({ group: "example.com", version, kind: "Widget", plural: "widgets", namespaced: true });
    const define = (name: string) => api.client.resource(CUSTOM_RESOURCE_DEFINITIONS).create({ apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition", metadata: { name } } as never, call);
    const widget = (version: string, name: string) => api.client.resource<ApiObject>(widgets(version)).create({ apiVersion: `example.com/${version}`, kind: "Widget", metadata: { name, namespace: "ns" } }, call);
    const used = () => api.all(RESOURCE_QUOTAS)[0]!.status?.used?.["count/widgets.example.com"];
    await api.client.resource(RESOURCE_QUOTAS).create({ apiVersion: "v1", kind: "ResourceQuota", metadata: { name: "q", namespace: "ns" }, spec: { hard: { "count/widgets.example.com": "9" } } }, call);
    api.serve(widgets("v1beta1"));
    await define("widgets.example.com");
    await widget("v1beta1", "a");
    await widget("v1beta1", "b");
    await define("others.example.com");
    await eventually(used, (count) => count === "2");

    let lists = 0;
    api.fail = ({ method, path }) => { if (method === "GET" && path.endsWith("/widgets")) lists++; return undefined; };
    stop(widgets("v1beta1")); // as the garbage collector does when the definition goes
    await define("again.example.com");
    await eventually(() => lists, (count) => count > 0);
    await Bun.sleep(60);
    clock.aheadMs += 2_000;
    await api.client.resource<ApiObject>(widgets("v1beta1")).delete({ metadata: { name: "a", namespace: "ns" } }, {}, call);
    await eventually(used, (count) => count === "1");
  }, { clock });
});
