import { expect, test } from "vitest";
import type { Node } from "../../api/gen/core.v1.ts";
import type { AllocationResult, Device, DeviceClass, DeviceClaim, ResourceClaim, ResourceSlice, ResourceSliceSpec } from "../../api/gen/resource.v1.ts";
import { atOnce } from "../../lifecycle/breather.ts";
import { node, stored } from "../../../test/scheduling-cluster.ts";
import { compileDeviceSelector, deviceEnvironment } from "../../cel/device-selector.ts";
import { Allocated } from "./allocated.ts";
import { allocationResult } from "./allocation-result.ts";
import { allocate, Selected } from "./allocator.ts";
import { poolsFor } from "./pools.ts";

const DRIVER = "gpu.example.com";
const classes: Record<string, DeviceClass> = {
  gpu: stored("resource.k8s.io/v1", "DeviceClass", "gpu", { spec: { selectors: [{ cel: { expression: `device.driver == "${DRIVER}"` } }], config: [{ opaque: { driver: DRIVER, parameters: { mode: "x" } } }] } }),
  big: stored("resource.k8s.io/v1", "DeviceClass", "big", { spec: { selectors: [{ cel: { expression: `device.capacity["${DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0` } }] } }),
};

function device(name: string, { numa, memory = "40Gi", ...rest }: Partial<Device> & { readonly numa?: number; readonly memory?: string } = {}): Device {
  return { name, attributes: { model: { string: "a100" }, ...(numa === undefined ? {} : { numa: { int: numa } }) }, capacity: { memory: { value: memory } }, ...rest };
}

function slice(name: string, spec: Partial<ResourceSliceSpec> & { readonly generation?: number; readonly of?: number }): ResourceSlice {
  const { generation = 1, of = 1, ...rest } = spec;
  return stored("resource.k8s.io/v1", "ResourceSlice", name, { spec: { driver: DRIVER, pool: { name: "n1", generation, resourceSliceCount: of }, ...(rest.allNodes || rest.perDeviceNodeSelection || rest.nodeSelector ? {} : { nodeName: "n1" }), ...rest } });
}

const gpu = (name: string, rest: object = {}): object => ({ name, exactly: { deviceClassName: "gpu", allocationMode: "ExactCount", count: 1, ...rest } });
const claim = (devices: object): ResourceClaim => stored("resource.k8s.io/v1", "ResourceClaim", "default/c", { spec: { devices: devices as DeviceClaim } });

function allocated(devices: object, slices: readonly ResourceSlice[], { taken = [], on = node("n1"), listAttributes = false }: { readonly taken?: readonly AllocationResult[]; readonly on?: Node; readonly listAttributes?: boolean } = {}) {
  const state = new Allocated();
  for (const one of taken) state.add(one);
  const wanted = claim(devices);
  let looks = 0;
  const found = atOnce(allocate([wanted], on, poolsFor(on, slices), {
    allocated: state, classOf: (name) => classes[name], isLate: () => ++looks > 100, selected: new Selected(), listAttributes,
    selector(expression) {
      const compiled = compileDeviceSelector(expression, deviceEnvironment(listAttributes));
      if ("problem" in compiled) throw new Error(compiled.problem);
      return compiled;
    },
  }));
  return found === undefined || found === "late" ? found : allocationResult(wanted, found[0]!, { node: on.metadata.name, uuid: () => "share" });
}

const names = (result: ReturnType<typeof allocated>): string[] | undefined => (typeof result === "object" ? result.devices!.results!.map(({ request, device: name }) => `${request}=${name}`) : undefined);
const taking = (...devices: string[]): AllocationResult => ({ devices: { results: devices.map((name) => ({ request: "r", driver: DRIVER, pool: "n1", device: name })) } });
const four = [slice("s", { devices: [device("a", { numa: 0 }), device("b", { numa: 1 }), device("c", { numa: 1 }), device("d", { numa: 0, memory: "8Gi" })] })];

test.each<[string, object, string[] | undefined]>([
  ["the first free one", { requests: [gpu("r")] }, ["r=b"]],
  ["several", { requests: [gpu("r", { count: 2 })] }, ["r=b", "r=c"]],
  ["more than there are", { requests: [gpu("r", { count: 4 })] }, undefined],
  ["those a selector picks", { requests: [gpu("r", { selectors: [{ cel: { expression: `device.attributes["${DRIVER}"].numa == 0` } }] })] }, ["r=d"]],
  ["a class picks too", { requests: [{ name: "r", exactly: { deviceClassName: "big", allocationMode: "ExactCount", count: 3 } }] }, undefined],
  ["all with the same attribute: going back from the first choice", { requests: [gpu("x", { selectors: [{ cel: { expression: `device.capacity["${DRIVER}"].memory.isLessThan(quantity("9Gi"))` } }] }), gpu("y")], constraints: [{ matchAttribute: `${DRIVER}/numa` }] }, undefined],
  ["the same attribute", { requests: [gpu("x"), gpu("y")], constraints: [{ requests: ["x", "y"], matchAttribute: `${DRIVER}/numa` }] }, ["x=b", "y=c"]],
  ["distinct attributes", { requests: [gpu("x"), gpu("y")], constraints: [{ distinctAttribute: `${DRIVER}/numa` }] }, ["x=b", "y=d"]],
  ["the first alternative that can be had", { requests: [{ name: "r", firstAvailable: [{ name: "many", deviceClassName: "gpu", allocationMode: "ExactCount", count: 4 }, { name: "one", deviceClassName: "gpu", allocationMode: "ExactCount", count: 1 }] }] }, ["r/one=b"]],
  ["admin access sees devices in use", { requests: [gpu("r", { adminAccess: true, count: 4 })] }, ["r=a", "r=b", "r=c", "r=d"]],
  ["all of them, one being in use", { requests: [gpu("r", { allocationMode: "All", count: undefined })] }, undefined],
])("%s", (_, devices, expected) => {
  expect(names(allocated(devices, four, { taken: [taking("a")] }))).toEqual(expected);
});

test("the result tells how devices are set up, and where they can be used", () => {
  expect(allocated({ requests: [gpu("r")], config: [{ requests: ["r"], opaque: { driver: DRIVER, parameters: { a: 1 } } }, { requests: ["other"], opaque: { driver: DRIVER, parameters: {} } }] }, four)).toEqual({
    devices: {
      results: [{ request: "r", driver: DRIVER, pool: "n1", device: "a" }],
      config: [{ source: "FromClass", requests: ["r"], opaque: { driver: DRIVER, parameters: { mode: "x" } } }, { source: "FromClaim", requests: ["r"], opaque: { driver: DRIVER, parameters: { a: 1 } } }],
    },
    nodeSelector: { nodeSelectorTerms: [{ matchFields: [{ key: "metadata.name", operator: "In", values: ["n1"] }] }] },
  });
  expect(allocated({ requests: [gpu("r")] }, [slice("s", { allNodes: true, devices: [device("a")] })])).not.toHaveProperty("nodeSelector");
});

test("a node that has all slices of its pool needs no others: drivers may call the pools of all nodes the same", () => {
  const wanted = { requests: [gpu("r")] };
  const own = slice("own", { devices: [device("a")] }), others = (generation: number) => slice("other", { nodeName: "n2", generation, devices: [device("b")] });
  expect(names(allocated(wanted, [own, others(1)]))).toEqual(["r=a"]);
  expect(names(allocated(wanted, [own, others(7)]))).toEqual(["r=a"]);
  expect(names(allocated({ requests: [gpu("r", { allocationMode: "All", count: undefined })] }, [own, others(1)]))).toEqual(["r=a"]);
  expect(allocated(wanted, [slice("half", { of: 2, devices: [device("a")] }), others(7)])).toBeUndefined(); // another generation is on its way
});

test("only the newest generation of a complete pool counts, and devices for other nodes do not", () => {
  const wanted = { requests: [gpu("r")] };
  expect(allocated(wanted, [slice("s", { of: 2, devices: [device("a")] })])).toBeUndefined();
  expect(names(allocated(wanted, [slice("old", { devices: [device("a")] }), slice("new", { generation: 2, devices: [device("b")] })]))).toEqual(["r=b"]);
  expect(names(allocated(wanted, [1n, 2n].map((more) => slice(`s${more}`, { generation: (2n ** 60n + more) as unknown as number, devices: [device(`d${more}`)] }))))).toEqual(["r=d2"]); // counted in nanoseconds
  expect(allocated(wanted, four, { on: node("n2") })).toBeUndefined();
  const perDevice = slice("s", { perDeviceNodeSelection: true, devices: [device("a", { nodeName: "n2" }), device("b", { allNodes: true })] });
  expect(names(allocated(wanted, [perDevice]))).toEqual(["r=b"]);
  expect(() => allocated({ requests: [gpu("r", { allocationMode: "All", count: undefined })] }, [slice("s", { of: 2, devices: [device("a")] })])).toThrow("claim default/c, request r: asks for all devices, but resource pool gpu.example.com/n1 is currently being updated");
});

test("tainted devices are for those who tolerate it", () => {
  const tainted = [slice("s", { devices: [device("a", { taints: [{ key: "broken", value: "yes", effect: "NoSchedule" }] }), device("b", { taints: [{ key: "old", effect: "None" }] })] })];
  expect(names(allocated({ requests: [gpu("r")] }, tainted))).toEqual(["r=b"]);
  expect(names(allocated({ requests: [gpu("r", { tolerations: [{ key: "broken", operator: "Exists" }] })] }, tainted))).toEqual(["r=a"]);
});

test("partitions of a device share its counters", () => {
  const half = (name: string, value = "20Gi"): Device => device(name, { consumesCounters: [{ counterSet: "gpu", counters: { memory: { value } } }] });
  const slices = [slice("counters", { of: 2, sharedCounters: [{ name: "gpu", counters: { memory: { value: "40Gi" } } }] }), slice("devices", { of: 2, devices: [half("whole", "40Gi"), half("left"), half("right")] })];
  expect(names(allocated({ requests: [gpu("r", { count: 2 })] }, slices))).toEqual(["r=left", "r=right"]);
  expect(names(allocated({ requests: [gpu("r")] }, slices, { taken: [taking("left")] }))).toEqual(["r=right"]);
  expect(allocated({ requests: [gpu("r")] }, slices, { taken: [taking("whole")] })).toBeUndefined();
});

test("a device that may be shared gives each what it asks for, rounded up, until nothing is left", () => {
  const shared = [slice("s", { devices: [device("a", { allowMultipleAllocations: true, capacity: { memory: { value: "40Gi", requestPolicy: { default: "10Gi", validRange: { min: "10Gi", step: "5Gi" } } } } })] })];
  const asking = (memory?: string): object => ({ requests: [gpu("r", memory === undefined ? {} : { capacity: { requests: { memory } } })] });
  const consumed = (result: ReturnType<typeof allocated>) => (typeof result === "object" ? result.devices!.results![0] : result);
  expect(consumed(allocated(asking("12Gi"), shared))).toEqual({ request: "r", driver: DRIVER, pool: "n1", device: "a", shareID: "share", consumedCapacity: { memory: "15Gi" } });
  expect(consumed(allocated(asking(), shared))).toMatchObject({ consumedCapacity: { memory: "10Gi" } });
  const taken: AllocationResult[] = [{ devices: { results: [{ request: "r", driver: DRIVER, pool: "n1", device: "a", shareID: "x", consumedCapacity: { memory: "30Gi" } }] } }];
  expect(consumed(allocated(asking(), shared, { taken }))).toMatchObject({ device: "a" });
  expect(allocated(asking("11Gi"), shared, { taken })).toBeUndefined();
  expect(names(allocated({ requests: [gpu("x"), gpu("y", { count: 1 })] }, shared))).toEqual(["x=a", "y=a"]);
});

test.each([
  [{ requests: [gpu("r", { selectors: [{ cel: { expression: "device.nothing" } }] })] }, /^claim default\/c: selector #0: CEL compile error: compilation failed: /],
  [{ requests: [gpu("r", { selectors: [{ cel: { expression: `device.attributes["${DRIVER}"].missing` } }] })] }, /^claim default\/c: selector #0: CEL runtime error: no such key: missing$/],
  [{ requests: [{ name: "r", exactly: { deviceClassName: "none", allocationMode: "ExactCount", count: 1 } }] }, /^claim default\/c, request r: could not retrieve device class none: /],
  [{ requests: [gpu("r", { count: 33 })] }, /^claim default\/c: number of requested devices 33 exceeds the claim limit of 32$/],
])("what no node can satisfy ends the search: %j", (devices, problem) => {
  expect(() => allocated(devices, four)).toThrow(problem);
});

test("nor is there a node for more devices than a double tells", () => {
  expect(() => allocated({ requests: [gpu("r", { count: 2n ** 60n as unknown as number })] }, four)).toThrow("exceeds the claim limit of 32");
});

test("a claim that may not have so many devices takes smaller alternatives, without trying all others for the larger", () => {
  const many = [slice("s", { devices: Array.from({ length: 64 }, (_, i) => device(`d${i}`)) })];
  const either = (name: string): object => ({ name, firstAvailable: [32, 16].map((count) => ({ name: `n${count}`, deviceClassName: "gpu", allocationMode: "ExactCount", count })) });
  const found = names(allocated({ requests: [either("x"), either("y")] }, many));
  expect(found).toEqual(Array.from({ length: 32 }, (_, i) => `${i < 16 ? "x" : "y"}/n16=d${i}`));
});

test("a shared device without capacities is taken without telling how much of it", () => {
  const result = allocated({ requests: [gpu("r")] }, [slice("s", { devices: [{ name: "a", allowMultipleAllocations: true }] })]);
  expect(result).toMatchObject({ devices: { results: [{ request: "r", driver: DRIVER, pool: "n1", device: "a", shareID: "share" }] } });
  expect((result as AllocationResult).devices!.results![0]).not.toHaveProperty("consumedCapacity");
});

test("a device that another has is passed over, whatever a selector would say of it", () => {
  const asking = { requests: [gpu("r", { selectors: [{ cel: { expression: `device.attributes["${DRIVER}"].missing == "x"` } }] })] };
  const slices = [slice("s", { devices: [device("d0")] })];
  expect(() => allocated(asking, slices)).toThrow(/no such key: missing/);
  expect(allocated(asking, slices, { taken: [taking("d0")] })).toBeUndefined();
});

test("of lists devices have to have one value in common, all of them the same one, or none that another has; what is not wanted after all leaves no trace", () => {
  const zones = (name: string, attribute: object): Device => ({ name, attributes: { zones: attribute } });
  const slices = [slice("s", { devices: [zones("a", { ints: [1, 2] }), zones("b", { ints: [2, 3] }), zones("c", { ints: [3, 1] }), zones("d", { int: 3 }), zones("e", { strings: ["3"] })] })];
  const zone = `${DRIVER}/zones`;
  const found = (constraint: object) => names(allocated({ requests: [gpu("x"), gpu("y"), gpu("z")], constraints: [constraint] }, slices, { listAttributes: true }));
  expect(found({ matchAttribute: zone })).toEqual(["x=b", "y=c", "z=d"]); // a has one in common with b and one with c, but not the same
  expect(found({ distinctAttribute: zone })).toEqual(["x=a", "y=d", "z=e"]);
});
