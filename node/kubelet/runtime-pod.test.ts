import { expect, test } from "vitest";
import { inOrderOf } from "./runtime-pod.ts";

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
