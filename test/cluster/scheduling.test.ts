/** The scheduler of the compiled binary, with a configuration of its own, over nodes that are only said to be there: profiles, extenders, devices, and why a pod is where it is. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually, Host, switchDown } from "./host.ts";

const CONFIGURATION = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders:
- urlPrefix: http://127.0.0.1:7799/far
  filterVerb: filter
  prioritizeVerb: prioritize
  weight: 5
  nodeCacheCapable: true
  managedResources: [{name: example.com/cable, ignoredByScheduler: true}]
profiles:
- schedulerName: default-scheduler
- schedulerName: packer
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
  plugins:
    multiPoint: {disabled: [{name: NodeResourcesBalancedAllocation}, {name: ImageLocality}, {name: PodTopologySpread}]}
`;
let host: Host;

beforeAll(async () => {
  host = await Host.up("brain", "172.30.0.52");
  writeFileSync(join(host.directory, "scheduler.yaml"), CONFIGURATION);
  await host.start("--disable-agent", "--kube-scheduler-arg", `config=${join(host.directory, "scheduler.yaml")}`);
  await eventually("the server is ready", async () => (await host.kubectl("get", "--raw", "/readyz")) === "ok");
  await eventually("the namespace", async () => (await host.kubectl("get", "serviceaccount", "default", "-o", "name")) !== "");
  for (const name of ["a", "b"]) {
    await host.apply(JSON.stringify({ apiVersion: "v1", kind: "Node", metadata: { name, labels: { "kubernetes.io/hostname": name } } }));
    const status = { conditions: [{ type: "Ready", status: "True", reason: "KubeletReady" }], allocatable: { cpu: "4", memory: "8Gi", pods: "110" }, capacity: { cpu: "4", memory: "8Gi", pods: "110" } };
    await host.kubectl("patch", "node", name, "--subresource=status", "--type=merge", "-p", JSON.stringify({ status }));
  }
});
afterAll(async () => {
  await host?.[Symbol.asyncDispose]();
  await switchDown();
});

const pod = (name: string, spec: object, cpu = "1", more: object = {}): Promise<string> => host.apply(JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata: { name }, spec: { ...spec, containers: [{ name: "c", image: "i", resources: { requests: { cpu, ...more }, limits: more } }] } }));
const nodeOf = (name: string): Promise<string> => eventually(`${name} has a node`, async () => (await host.kubectl("get", "pod", name, "-o", "jsonpath={.spec.nodeName}")) || undefined);

test("each profile places its own pods, and it is told why a pod is where it is, or nowhere", async () => {
  await pod("first", {});
  const first = await nodeOf("first");
  await pod("spread", {});
  expect(await nodeOf("spread")).not.toBe(first);
  await pod("packed", { schedulerName: "packer" });
  const packed = await nodeOf("packed");
  await pod("packed-too", { schedulerName: "packer" });
  expect(await nodeOf("packed-too")).toBe(packed);

  await pod("big", {}, "9");
  const explain = (...words: string[]): Promise<string> => host.ok([host.binary, "explain-scheduling", ...words]);
  const told = await eventually("it was tried", async () => {
    const text = await explain("big");
    return text.includes("waits for") && text;
  });
  expect(told).toContain("Why:        0/2 nodes are available: 2 Insufficient cpu.\nQueue:      unschedulable, ");
  expect(told).toMatch(/^NodeResourcesFit +0 +2 +2 Insufficient cpu$/m);
  expect(told).toMatch(/^a +no +- +NodeResourcesFit: Insufficient cpu$/m);
  expect(JSON.parse(await explain("first", "-o", "json"))).toMatchObject({ kind: "SchedulingExplanation", state: "Bound", nodeName: first, nodes: [{ fits: true }, { fits: true }] });
  await expect(explain("nobody")).rejects.toThrow('pods "nobody" not found');
});

test("an extender is asked about pods that want what it manages: where they may go, and where best; while it is away they wait", async () => {
  const cable = { "example.com/cable": "1" };
  await pod("cable-1", {}, "100m", cable);
  await eventually("it waits", async () => (await host.kubectl("get", "events", "--field-selector=involvedObject.name=cable-1", "-o", "jsonpath={.items[*].reason}")).includes("FailedScheduling"));
  const log = join(host.directory, "extender.log");
  const [bun, script] = [host.bring(process.execPath), host.bring(join(import.meta.dirname, "extender.js"))];
  await host.sh(`setsid ${bun} ${script} 7799 ${log} a </dev/null >/dev/null 2>&1 &`);
  expect(await nodeOf("cable-1")).toBe("b");
  const asked = readFileSync(log, "utf8").trim().split("\n").map((line) => JSON.parse(line) as { path: string; pod: string; names: string[] });
  expect(asked.find(({ path }) => path === "/far/filter")).toEqual({ path: "/far/filter", pod: "cable-1", names: expect.arrayContaining(["a", "b"]) });
  expect(asked.every(({ pod: name }) => name === "cable-1")).toBe(true); // the others are none of its business
  await pod("cable-2", { nodeSelector: { "kubernetes.io/hostname": "a" } }, "100m", cable);
  await eventually("it is told why", async () => (await host.kubectl("get", "events", "--field-selector=involvedObject.name=cable-2", "-o", "jsonpath={.items[*].message}")).includes("too far"));
});

test("a device is allocated where it is, and waited for where it is not", async () => {
  const resource = (kind: string, name: string, spec: object): Promise<string> => host.apply(JSON.stringify({ apiVersion: "resource.k8s.io/v1", kind, metadata: { name }, spec }));
  await resource("DeviceClass", "gpu", { selectors: [{ cel: { expression: 'device.driver == "gpu.example.com" && device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("8Gi"))' } }] });
  await resource("ResourceClaimTemplate", "gpu", { spec: { devices: { requests: [{ name: "gpu", exactly: { deviceClassName: "gpu" } }] } } });
  const devices = [{ name: "small", capacity: { memory: { value: "8Gi" } } }, { name: "large", capacity: { memory: { value: "40Gi" } } }];
  await resource("ResourceSlice", "b-gpus", { driver: "gpu.example.com", nodeName: "b", pool: { name: "b", generation: 1, resourceSliceCount: 1 }, devices });
  await pod("gpu-1", { resourceClaims: [{ name: "gpu", resourceClaimTemplateName: "gpu" }] }, "100m");
  expect(await nodeOf("gpu-1")).toBe("b");
  expect(await host.kubectl("get", "resourceclaims", "-o", "jsonpath={.items[0].status.allocation.devices.results[0].device}")).toBe("large");
  await pod("gpu-2", { resourceClaims: [{ name: "gpu", resourceClaimTemplateName: "gpu" }] }, "100m");
  await eventually("it waits", async () => (await host.kubectl("get", "events", "--field-selector=involvedObject.name=gpu-2", "-o", "jsonpath={.items[*].message}")).includes("2 cannot allocate all claims"));
  await host.kubectl("delete", "pod", "gpu-1", "--grace-period=0", "--force");
  expect(await nodeOf("gpu-2")).toBe("b");
});

test("a configuration that is wrong is refused with what is wrong", async () => {
  writeFileSync(join(host.directory, "wrong.yaml"), CONFIGURATION.replace("MostAllocated", "Most"));
  const { code, stderr } = await host.run([host.binary, "server", "--data-dir", join(host.directory, "other"), "--https-listen-port", "7443", "--disable-agent", "--scheduler-config", join(host.directory, "wrong.yaml")]);
  expect(code).toBe(2);
  expect(stderr).toContain('initializing profiles: creating profile for scheduler name packer: initializing plugin "NodeResourcesFit": scoringStrategy.type: Unsupported value: "Most": supported values: "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"');
});
