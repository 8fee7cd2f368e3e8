import { expect, test } from "vitest";
import { growth } from "../../test/reads.ts";
import { containerNamed, emptyRuntimePod, inOrderOf, type RuntimeContainer } from "./runtime-pod.ts";

test.each([
  ["10.0.0.9", ["10.0.0.1"], ["10.0.0.1"]],
  ["10.0.0.9", ["fd01::1234", "10.0.0.1"], ["10.0.0.1", "fd01::1234"]],
  ["fd00::9", ["10.0.0.1", "fd01::1234"], ["fd01::1234", "10.0.0.1"]],
  ["fd00::9", ["10.0.0.1"], ["10.0.0.1"]],
  ["10.0.0.9", ["10.0.0.1", "10.0.0.2", "fd01::1234", "10.0.0.3", "fd01::5678"], ["10.0.0.1", "fd01::1234"]],
  ["10.0.0.9", ["010.000.000.001", "fd01:0:0:0:0:0:0:1234"], ["10.0.0.1", "fd01::1234"]],
  ["10.0.0.9", ["nonsense"], []],
])("of what a network gives a pod on %s the API has the first address of each family: %j", (host, ips, expected) => {
  expect(inOrderOf([host], ips)).toEqual(expected);
});

test("of containers of one name the newest is found, which comes first", () => {
  const containers = [{ name: "a", id: "2" }, { name: "b", id: "3" }, { name: "a", id: "1" }] as RuntimeContainer[];
  const pod = { ...emptyRuntimePod("uid"), containers };
  expect(["a", "b", "c"].map((name) => containerNamed(pod, name)?.id)).toEqual(["2", "3", undefined]);
});

test("containers are looked up by name, not searched for", () => {
  expect(growth((n, reads) => {
    const pod = { ...emptyRuntimePod("uid"), containers: reads.of(Array.from({ length: n }, (_, i) => ({ name: `c-${i}` }) as RuntimeContainer)) };
    for (let i = 0; i < n; i++) expect(containerNamed(pod, `c-${i}`)).toBeDefined();
  })).toBeLessThan(3);
});
