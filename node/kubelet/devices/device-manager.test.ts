import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import { runAll } from "../../../core/lifecycle/run-all.ts";
import { silentLog } from "../../../core/observe/log.ts";
import { metricsRegistry } from "../../../core/observe/metrics.ts";
import { eventually } from "../../../test/fake-api.ts";
import { serviceMethods } from "../../cri/facts.ts";
import { rpcClient } from "../../cri/rpc-client.ts";
import { rpcServer } from "../../cri/rpc-server.ts";
import text from "../plugins/device-plugin-facts.txt" with { type: "text" };
import type { Methods } from "../plugins/gen/device-plugin.v1beta1.ts";
import type { Methods as PodResources } from "../plugins/gen/pod-resources.v1.ts";
import podResourcesText from "../plugins/pod-resources-facts.txt" with { type: "text" };
import { candidates, chosen } from "./device-choice.ts";
import { deviceHints } from "./device-hints.ts";
import { type DeviceManager, deviceManager } from "./device-manager.ts";
import { podResourcesApi } from "./pod-resources-api.ts";

const signal = new AbortController().signal;
const RESOURCE = "vendor.example/dongle";
const methods = serviceMethods(text, "v1beta1");

let dataDir = "";
beforeEach(() => { dataDir = mkdtempSync(join(tmpdir(), "devices-")); });
afterEach(() => rmSync(dataDir, { recursive: true }));

const pod = (uid: string, counts: readonly number[], init: readonly number[] = []): Pod => {
  const container = (name: string, count: number) => ({ name, resources: { limits: { [RESOURCE]: String(count) } } });
  return { metadata: { name: `pod-${uid}`, namespace: "d", uid }, spec: { initContainers: init.map((count, i) => container(`i${i}`, count)), containers: counts.map((count, i) => container(`c${i}`, count)) } } as unknown as Pod;
};

function admit(manager: DeviceManager, one: Pod, nodes?: bigint): void {
  const admission = manager.begin(one);
  for (const container of [...(one.spec.initContainers ?? []), ...one.spec.containers]) admission.allocate(container, { nodes, preferred: false });
}

/** A plugin with three devices, one of them ill; it prefers the last ones. */
function plugin(calls: object[], changed: Promise<void> = new Promise(() => undefined)) {
  const server = rpcServer<Methods>({
    name: "plugin", socket: join(dataDir, "device-plugins", "dongle.sock"), methods, log: silentLog,
    calls: {
      "DevicePlugin/GetDevicePluginOptions": () => ({ pre_start_required: true, get_preferred_allocation_available: true }),
      "DevicePlugin/GetPreferredAllocation": ({ container_requests: [wish] = [] }) => ({ container_responses: [{ deviceIDs: wish!.available_deviceIDs!.toReversed().slice(0, wish!.allocation_size) }] }),
      "DevicePlugin/Allocate": (request) => {
        calls.push(request);
        return { container_responses: [{ envs: { DONGLE: request.container_requests![0]!.devices_ids!.join() }, devices: [{ container_path: "/dev/dongle", host_path: "/dev/null", permissions: "rw" }], cdi_devices: [{ name: "vendor.example/dongle=0" }] }] };
      },
      "DevicePlugin/PreStartContainer": (request) => { calls.push({ preStart: request.devices_ids }); return {}; },
    },
    streams: { "DevicePlugin/ListAndWatch": async function* () { yield { devices: [{ ID: "a", health: "Healthy", topology: { nodes: [{ ID: 1 }] } }, { ID: "b", health: "Healthy" }, { ID: "c", health: "Unhealthy" }] }; await changed; yield { devices: [{ ID: "b", health: "Unhealthy" }] }; await new Promise(() => undefined); } },
  });
  return server;
}

test("a plugin registers, its devices are counted, given to containers, and known after a restart", async () => {
  const calls: object[] = [];
  const first = deviceManager({ dataDir, clock: systemClock, log: silentLog, metrics: metricsRegistry(), onChange: () => undefined });
  const stop = new AbortController();
  const counts = metricsRegistry();
  const api = podResourcesApi({ dataDir, clock: { uptimeMs: () => 0 }, log: silentLog, metrics: counts, pods: () => [pod("u1", [1])], allPods: () => [pod("u1", [1]), pod("ended", [1])], devicesOf: first.devicesOf, claimsOf: () => [], allDevices: first.all, cpuIds: () => [0, 1], exclusiveCpus: () => [], memoryOf: () => [{ type: "memory", size: 4096, numaAffinity: [1] }], allocatableMemory: () => [] });
  const { promise: changed, resolve: fallIll } = Promise.withResolvers<void>();
  const ended = runAll([...first.parts, plugin(calls, changed), api], stop.signal);
  const socket = join(dataDir, "device-plugins", "kubelet.sock");
  await eventually(() => existsSync(join(dataDir, "device-plugins", "dongle.sock")), Boolean);
  const kubelet = rpcClient<Methods>({ socket, methods, nowMs: Date.now });
  await expect(kubelet.call("Registration/Register", { version: "v1", endpoint: "dongle.sock", resource_name: RESOURCE })).rejects.toThrow('requested API version "v1" is not supported by kubelet. Supported version is ["v1beta1"]');
  for (const name of ["cpu", "mykubernetes.io/dongle", `vendor.example/${"x".repeat(64)}`, "vendor..example/dongle"]) await expect(kubelet.call("Registration/Register", { version: "v1beta1", endpoint: "dongle.sock", resource_name: name })).rejects.toThrow(`the ResourceName "${name}" is invalid`);
  expect(() => first.handler.validate({ name: RESOURCE, endpoint: "x", versions: ["v1", "v2"] })).toThrow("manager version, v1beta1, is not among plugin supported versions [v1 v2]");
  expect(() => first.handler.validate({ name: "cpu", endpoint: "x", versions: ["v1beta1"] })).toThrow('invalid name of device plugin socket: the ResourceName "cpu" is invalid');
  await kubelet.call("Registration/Register", { version: "v1beta1", endpoint: "dongle.sock", resource_name: RESOURCE });
  kubelet.close();
  await eventually(() => first.counts().get(RESOURCE)?.capacity, (capacity) => capacity === 3);
  expect(first.counts().get(RESOURCE)).toEqual({ capacity: 3, allocatable: 2, given: 0 });

  admit(first, pod("u1", [1]));
  await first.prepare(pod("u1", [1]), signal);
  await first.prepare(pod("u1", [1]), signal);
  expect(calls).toEqual([{ container_requests: [{ devices_ids: ["b"] }] }]);
  expect(await first.startOptions("u1", "c0", signal)).toMatchObject([{ envs: { DONGLE: "b" }, cdi_devices: [{ name: "vendor.example/dongle=0" }] }]);
  expect(calls[1]).toEqual({ preStart: ["b"] });
  expect(() => admit(first, pod("u2", [2]))).toThrow(`Allocate failed due to requested number of devices unavailable for ${RESOURCE}. Requested: 2, Available: 1, which is unexpected`);

  const agent = rpcClient<PodResources>({ socket: join(dataDir, "pod-resources", "kubelet.sock"), methods: serviceMethods(podResourcesText, "v1"), nowMs: Date.now });
  expect(await agent.call("PodResourcesLister/List", {})).toEqual({ pod_resources: [{ name: "pod-u1", namespace: "d", containers: [{ name: "c0", devices: [{ resource_name: RESOURCE, device_ids: ["b"] }], memory: [{ memory_type: "memory", size: 4096, topology: { nodes: [{ ID: 1 }] } }] }] }] });
  expect(await agent.call("PodResourcesLister/GetAllocatableResources", {})).toMatchObject({ cpu_ids: [0, 1], devices: [{ device_ids: ["a"], topology: { nodes: [{ ID: 1 }] } }, { device_ids: ["b"] }] });
  await expect(agent.call("PodResourcesLister/Get", { pod_name: "x", pod_namespace: "d" })).rejects.toThrow("pod x in namespace d not found");
  agent.close();
  const older = rpcClient<PodResources>({ socket: join(dataDir, "pod-resources", "kubelet.sock"), methods: serviceMethods(podResourcesText, "v1alpha1"), nowMs: Date.now });
  expect(await older.call("PodResourcesLister/List", {})).toEqual({ pod_resources: [{ name: "pod-u1", namespace: "d", containers: [{ name: "c0", devices: [{ resource_name: RESOURCE, device_ids: ["b"] }] }] }, { name: "pod-ended", namespace: "d", containers: [{ name: "c0" }] }] });
  older.close();
  for (const line of ['requests_total{server_api_version="v1"} 3', 'requests_total{server_api_version="v1alpha1"} 1', 'requests_list{server_api_version="v1"} 1', 'errors_get{server_api_version="v1"} 1']) expect(counts.render()).toContain(`kubelet_pod_resources_endpoint_${line}\n`);
  const eager = rpcClient<PodResources>({ socket: join(dataDir, "pod-resources", "kubelet.sock"), methods: serviceMethods(podResourcesText, "v1"), nowMs: Date.now });
  for (let answered = 4; answered < 10; answered++) await eager.call("PodResourcesLister/List", {}); // no time goes by
  await expect(eager.call("PodResourcesLister/List", {})).rejects.toThrow("rpc error: code = ResourceExhausted desc = rejected by rate limit");
  eager.close();
  expect(first.healthOf("u1", "c0")).toEqual([{ name: RESOURCE, resources: [{ resourceID: "b", health: "Healthy" }] }]);
  fallIll();
  await eventually(() => first.healthOf("u1", "c0"), ([of]) => of?.resources?.[0]?.health === "Unhealthy");
  expect(first.healthOf("u1", "c1")).toEqual([]);
  await first.handler.deregister({ name: RESOURCE } as never, signal);
  await eventually(() => first.counts().get(RESOURCE)?.allocatable, (count) => count === 0);
  await expect.poll(() => first.startOptions("u1", "c0", signal).then(() => "started", ({ message }: Error) => message)).toBe(`endpoint not found in cache for a registered resource: ${RESOURCE}`); // nobody prepares it
  stop.abort();
  await ended;

  const second = deviceManager({ dataDir, clock: systemClock, log: silentLog, metrics: metricsRegistry(), onChange: () => undefined });
  expect(second.counts().get(RESOURCE)).toEqual({ capacity: 0, allocatable: 0, given: 1 });
  expect(second.devicesOf("u1", "c0")).toMatchObject([{ resource: RESOURCE, id: "b" }]);
  second.retain(new Set(["u1"]));
  admit(second, pod("u1", [1])); // it has them already
  expect(() => admit(second, pod("u3", [1]))).toThrow(`no healthy devices present; cannot allocate unhealthy devices ${RESOURCE}`);
  const extendedResourceClaimStatus = { resourceClaimName: "u4-x", requestMappings: [{ containerName: "c0", resourceName: RESOURCE, requestName: "container-0-request-0" }] };
  admit(second, { ...pod("u4", [1]), status: { extendedResourceClaimStatus } }); // a claim stands for it
  second.retain(new Set(["u4"])); // u1 has gone while nobody looked
  await eventually(() => JSON.parse(readFileSync(join(dataDir, "device-plugins", "kubelet_internal_checkpoint"), "utf8")).Data.PodDeviceEntries, (left) => left === null);
});

test("what an init container has had serves those after it; devices of one NUMA node go together", () => {
  const devices = [["a", 0], ["b", 1], ["c", 0]].map(([id, node]) => ({ id: id as string, healthy: true, numaNodes: [node as number] }));
  const free = { resource: RESOURCE, devices, taken: new Set<string>(), lent: new Set<string>() };
  expect(candidates({ ...free, count: 2 }).from).toEqual(["b", "a", "c"]);
  const lent = candidates({ ...free, count: 2, taken: new Set(["a"]), lent: new Set(["a"]) });
  expect(lent).toEqual({ must: ["a"], from: ["c", "b"] });
  expect(chosen(lent, 2, ["x", "b"])).toEqual(["a", "b"]);
});

test("a plugin says which devices an init container had best have, and which are best beside those that it leaves", async () => {
  const [wishes, given]: [object[], (readonly string[] | undefined)[]] = [[], []];
  const stop = new AbortController();
  const choosy = rpcServer<Methods>({
    name: "plugin", socket: join(dataDir, "device-plugins", "choosy.sock"), methods, log: silentLog,
    calls: {
      "DevicePlugin/GetDevicePluginOptions": () => ({ get_preferred_allocation_available: true }),
      "DevicePlugin/GetPreferredAllocation": ({ container_requests: [wish] = [] }) => { wishes.push(wish!); return { container_responses: [{ deviceIDs: wish!.available_deviceIDs!.toReversed() }] }; },
      "DevicePlugin/Allocate": ({ container_requests: [wish] = [] }) => { given.push(wish!.devices_ids); return { container_responses: [{}] }; },
    },
    streams: { "DevicePlugin/ListAndWatch": async function* () { yield { devices: ["a", "b", "c", "d", "e"].map((ID) => ({ ID, health: "Healthy" })) }; await new Promise<void>((resolve) => stop.signal.addEventListener("abort", () => resolve())); } },
  });
  const manager = deviceManager({ dataDir, clock: systemClock, log: silentLog, metrics: metricsRegistry(), onChange: () => undefined });
  const ended = runAll([...manager.parts, choosy], stop.signal);
  await eventually(() => existsSync(join(dataDir, "device-plugins", "choosy.sock")), Boolean);
  const kubelet = rpcClient<Methods>({ socket: join(dataDir, "device-plugins", "kubelet.sock"), methods, nowMs: Date.now });
  await kubelet.call("Registration/Register", { version: "v1beta1", endpoint: "choosy.sock", resource_name: RESOURCE });
  kubelet.close();
  await eventually(() => manager.counts().get(RESOURCE)?.capacity, (capacity) => capacity === 5);

  const one = pod("u1", [2, 1], [1]);
  admit(manager, one);
  await manager.prepare(one, signal);
  expect(wishes).toEqual([{ available_deviceIDs: ["a", "b", "c", "d", "e"], allocation_size: 1 }, { available_deviceIDs: ["a", "b", "c", "d", "e"], must_include_deviceIDs: ["e"], allocation_size: 2 }, { available_deviceIDs: ["a", "b", "c"], allocation_size: 1 }]);
  expect(given).toEqual([["e"], ["e", "d"], ["c"]]);
  expect(manager.counts().get(RESOURCE)?.given).toBe(3);
  const other = pod("u2", [1], [1]); // all that it needs it is left
  admit(manager, other);
  await manager.prepare(other, signal);
  expect([wishes.length, given.slice(3)]).toEqual([4, [["b"], ["b"]]]);
  stop.abort();
  await ended;
});

test("a hundred thousand devices are counted, chosen from and written down; one that is told of twice is one", async () => {
  const all = Array.from({ length: 100_000 }, (_, i) => ({ ID: `device-${i}`, health: "Healthy", topology: { nodes: [{ ID: i % 8 }] } }));
  const given: unknown[] = [];
  const stop = new AbortController();
  const many = rpcServer<Methods>({
    name: "plugin", socket: join(dataDir, "device-plugins", "many.sock"), methods, log: silentLog,
    calls: {
      "DevicePlugin/GetDevicePluginOptions": () => ({ get_preferred_allocation_available: true }),
      "DevicePlugin/GetPreferredAllocation": () => ({ container_responses: [{ deviceIDs: all.map(({ ID }) => ID).toReversed() }] }),
      "DevicePlugin/Allocate": ({ container_requests: [wish] = [] }) => { given.push(wish!.devices_ids); return { container_responses: [{}] }; },
    },
    streams: { "DevicePlugin/ListAndWatch": async function* () { yield { devices: [...all, all[0]!] }; await new Promise<void>((resolve) => stop.signal.addEventListener("abort", () => resolve())); } },
  });
  const manager = deviceManager({ dataDir, clock: systemClock, log: silentLog, metrics: metricsRegistry(), onChange: () => undefined, numaNodes: () => [0, 1, 2, 3, 4, 5, 6, 7] });
  const ended = runAll([...manager.parts, many], stop.signal);
  await eventually(() => existsSync(join(dataDir, "device-plugins", "many.sock")), Boolean);
  const kubelet = rpcClient<Methods>({ socket: join(dataDir, "device-plugins", "kubelet.sock"), methods, nowMs: Date.now });
  await kubelet.call("Registration/Register", { version: "v1beta1", endpoint: "many.sock", resource_name: RESOURCE });
  kubelet.close();
  await eventually(() => manager.counts().get(RESOURCE), (counts) => counts?.capacity === 100_000);
  const one = pod("u1", [2]);
  expect(manager.begin(one).hints(one.spec.containers[0]!).get(RESOURCE)).toHaveLength(255);
  admit(manager, one);
  await manager.prepare(one, signal);
  expect(given).toEqual([["device-99999", "device-99998"]]);
  expect(manager.devicesOf("u1", "c0").map(({ numaNodes }) => numaNodes)).toEqual([[7], [6]]);
  expect(JSON.parse(readFileSync(join(dataDir, "device-plugins", "kubelet_internal_checkpoint"), "utf8")).Data.RegisteredDevices[RESOURCE]).toHaveLength(100_000);
  stop.abort();
  await ended;
});

test("a plugin that tells the same again and again is heard once", async () => {
  const stop = new AbortController();
  const device = (ID: string, health = "Healthy") => ({ ID, health, topology: { nodes: [{ ID: 1 }] } });
  const talker = rpcServer<Methods>({
    name: "plugin", socket: join(dataDir, "device-plugins", "talker.sock"), methods, log: silentLog,
    calls: { "DevicePlugin/GetDevicePluginOptions": () => ({}) },
    streams: { "DevicePlugin/ListAndWatch": async function* () {
      for (let i = 0; i < 100; i++) yield { devices: i % 2 === 0 ? [device("a"), device("b")] : [device("b"), device("a")] };
      yield { devices: [device("a"), device("b", "Unhealthy")] };
      yield { devices: [] };
      await new Promise<void>((resolve) => stop.signal.addEventListener("abort", () => resolve()));
    } },
  });
  const told: unknown[] = [];
  const manager: DeviceManager = deviceManager({ dataDir, clock: systemClock, log: silentLog, metrics: metricsRegistry(), onChange: () => void told.push(manager.counts().get(RESOURCE)) });
  const ended = runAll([...manager.parts, talker], stop.signal);
  await eventually(() => existsSync(join(dataDir, "device-plugins", "talker.sock")), Boolean);
  const kubelet = rpcClient<Methods>({ socket: join(dataDir, "device-plugins", "kubelet.sock"), methods, nowMs: Date.now });
  await kubelet.call("Registration/Register", { version: "v1beta1", endpoint: "talker.sock", resource_name: RESOURCE });
  kubelet.close();
  await eventually(() => manager.counts().get(RESOURCE)?.capacity, (capacity) => capacity === 0);
  await eventually(() => told.length, (times) => times >= 3);
  expect(told).toEqual([[2, 2], [2, 1], [0, 0]].map(([capacity, allocatable]) => ({ capacity, allocatable, given: 0 })));
  stop.abort();
  await ended;
});

test("devices near the processors come first, and hints say where there are enough", () => {
  const devices = [["a", 0], ["b", 1], ["c", 1], ["d", 0], ["e", undefined]].map(([id, node]) => ({ id: id as string, healthy: true, numaNodes: node === undefined ? [] : [node as number] }));
  const free = { resource: RESOURCE, devices, taken: new Set<string>(), lent: new Set<string>() };
  expect(candidates({ ...free, count: 1, nodes: 2n })).toEqual({ must: [], from: ["b", "c"] });
  expect(candidates({ ...free, count: 3, nodes: 2n })).toEqual({ must: ["b", "c"], from: ["a", "d", "e"] }); // what lies nowhere last
  const wish = { devices, had: new Set<string>(), available: new Set(["a", "b", "c", "d"]), reusable: new Set<string>(), numaNodes: [0, 1] };
  const text = (hints: ReturnType<typeof deviceHints>) => hints?.map(({ nodes, preferred }) => `${nodes}${preferred ? "+" : ""}`).join(" ");
  expect([text(deviceHints({ ...wish, count: 2 })), text(deviceHints({ ...wish, count: 3 })), text(deviceHints({ ...wish, count: 2, available: new Set(["a", "b"]) })), text(deviceHints({ ...wish, count: 5 }))]).toEqual(["1+ 2+ 3", "3+", "3", ""]);
  expect([text(deviceHints({ ...wish, count: 1, had: new Set(["b"]) })), text(deviceHints({ ...wish, count: 2, had: new Set(["b"]) })), text(deviceHints({ ...wish, count: 2, reusable: new Set(["b"]), available: new Set(["c"]) }))]).toEqual(["2+ 3", "", "2+ 3"]);
  expect(deviceHints({ ...wish, devices: devices.slice(4), count: 1 })).toBeUndefined();
});

test("a plugin that cannot say how it works is told so, and is not used", async () => {
  const broken = rpcServer<Methods>({
    name: "plugin", socket: join(dataDir, "device-plugins", "broken.sock"), methods, log: silentLog,
    calls: { "DevicePlugin/GetDevicePluginOptions": () => { throw new Error("it is broken"); } },
    streams: { "DevicePlugin/ListAndWatch": async function* () { yield { devices: [{ ID: "a", health: "Healthy" }] }; } },
  });
  const manager = deviceManager({ dataDir, clock: systemClock, log: silentLog, metrics: metricsRegistry(), onChange: () => undefined });
  const stop = new AbortController();
  const ended = runAll([...manager.parts, broken], stop.signal);
  await eventually(() => existsSync(join(dataDir, "device-plugins", "broken.sock")), Boolean);
  const kubelet = rpcClient<Methods>({ socket: join(dataDir, "device-plugins", "kubelet.sock"), methods, nowMs: Date.now });
  await expect(kubelet.call("Registration/Register", { version: "v1beta1", endpoint: "broken.sock", resource_name: RESOURCE })).rejects.toThrow("failed to get device plugin options: rpc error: code = Unknown desc = it is broken");
  kubelet.close();
  expect(manager.counts().get(RESOURCE)).toBeUndefined();
  stop.abort();
  await ended;
});

test("what a plugin says later counts, what it does not say any more is ill; sockets of a former life go", async () => {
  const lists = [[{ ID: "a", health: "Healthy" }, { ID: "b", health: "Healthy" }], [{ ID: "a", health: "Healthy" }, { ID: "b", health: "Unhealthy" }]];
  const next = Promise.withResolvers<void>();
  const stream = new AbortController();
  const changing = rpcServer<Methods>({
    name: "plugin", socket: join(dataDir, "device-plugins", "changing.sock"), methods, log: silentLog,
    calls: { "DevicePlugin/GetDevicePluginOptions": () => ({}) },
    streams: { "DevicePlugin/ListAndWatch": async function* () { yield { devices: lists[0]! }; await next.promise; yield { devices: lists[1]! }; await new Promise<void>((resolve) => stream.signal.addEventListener("abort", () => resolve())); } },
  });
  let changes = 0;
  const manager = deviceManager({ dataDir, clock: systemClock, log: silentLog, metrics: metricsRegistry(), onChange: () => void changes++ });
  const former = new AbortController();
  const old = runAll([rpcServer<Methods>({ name: "old", socket: join(dataDir, "device-plugins", "old.sock"), methods, log: silentLog, calls: { "DevicePlugin/GetDevicePluginOptions": () => ({}) } })], former.signal);
  await eventually(() => existsSync(join(dataDir, "device-plugins", "old.sock")), Boolean);
  const stop = new AbortController();
  const ended = runAll([...manager.parts, changing], stop.signal);
  await eventually(() => existsSync(join(dataDir, "device-plugins", "changing.sock")), Boolean);
  expect(existsSync(join(dataDir, "device-plugins", "old.sock"))).toBe(false);
  const kubelet = rpcClient<Methods>({ socket: join(dataDir, "device-plugins", "kubelet.sock"), methods, nowMs: Date.now });
  await kubelet.call("Registration/Register", { version: "v1beta1", endpoint: "changing.sock", resource_name: RESOURCE });
  kubelet.close();
  await eventually(() => manager.counts().get(RESOURCE)?.allocatable, (count) => count === 2);
  const before = changes;
  next.resolve();
  await eventually(() => manager.counts().get(RESOURCE)?.allocatable, (count) => count === 1);
  expect([manager.counts().get(RESOURCE)?.capacity, changes > before]).toEqual([2, true]);
  stream.abort();
  await eventually(() => manager.counts().get(RESOURCE)?.allocatable, (count) => count === 0);
  stop.abort();
  former.abort();
  await Promise.all([ended, old]);
});
