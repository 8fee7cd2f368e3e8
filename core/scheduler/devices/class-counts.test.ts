import { expect, test } from "vitest";
import { node, stored } from "../../../test/scheduling-cluster.ts";
import type { DeviceClass, ResourceSlice, ResourceSliceSpec } from "../../api/gen/resource.v1.ts";
import { type CompiledSelector, compileDeviceSelector } from "../../cel/device-selector.ts";
import { Allocated } from "./allocated.ts";
import { devicesOfClass } from "./class-counts.ts";

const DRIVER = "gpu.example.com";
const device = (name: string, model: string) => ({ name, attributes: { model: { string: model } } });
const slice = (name: string, spec: Partial<ResourceSliceSpec>): ResourceSlice => stored("resource.k8s.io/v1", "ResourceSlice", name, { spec: { driver: DRIVER, pool: { name, generation: 1, resourceSliceCount: 1 }, ...spec } });
const slices = [
  slice("own", { nodeName: "n1", devices: [device("a", "fast"), device("b", "fast"), device("c", "slow")] }),
  slice("shared", { allNodes: true, devices: [device("a", "fast")] }),
  slice("each", { perDeviceNodeSelection: true, devices: [{ ...device("a", "fast"), nodeName: "n2" }, { ...device("b", "slow"), allNodes: true }] }),
];

function selector(expression: string): CompiledSelector {
  const compiled = compileDeviceSelector(expression);
  if ("problem" in compiled) throw new Error(compiled.problem);
  return compiled;
}

test.each<[string, string[] | undefined, { n1: number[]; n2: number[] }]>([
  ["all, of a class that asks for nothing", undefined, { n1: [5, 2], n2: [3, 0] }],
  ["those it asks for", [`device.attributes["${DRIVER}"].model == "fast"`], { n1: [3, 1], n2: [2, 0] }],
  ["those that all its selectors let pass", [`device.driver == "${DRIVER}"`, `device.attributes["${DRIVER}"].model == "slow"`], { n1: [2, 1], n2: [1, 0] }],
  ["none, where it cannot be asked", [`device.attributes["${DRIVER}"].speed == "fast"`], { n1: [0, 0], n2: [0, 0] }],
  ["none, where a selector is none", ["device."], { n1: [0, 0], n2: [0, 0] }],
])("devices of a class that a node can reach, and how many of them are taken: %s", (_, expressions, counts) => {
  const taken = new Allocated();
  taken.add({ devices: { results: ["a", "c"].map((name) => ({ request: "r", driver: DRIVER, pool: "own", device: name })) } });
  const spec = expressions === undefined ? {} : { selectors: expressions.map((expression) => ({ cel: { expression } })) };
  const count = devicesOfClass(stored<DeviceClass>("resource.k8s.io/v1", "DeviceClass", "gpu", { spec }), { slices: () => slices, allocated: () => taken, selector });
  expect(Object.fromEntries(["n1", "n2"].map((name) => { const { has, used } = count(node(name)); return [name, [has, used]]; }))).toEqual(counts);
});
