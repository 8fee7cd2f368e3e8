import { expect, test } from "vitest";
import { crictlFlags, humanSize } from "./crictl.ts";

test("crictl's flags that are here do what they do there; others are refused, not passed over", () => {
  expect([...crictlFlags("ps", ["-aq"])]).toEqual(["all", "quiet"]);
  expect([...crictlFlags("pods", ["--quiet"])]).toEqual(["quiet"]);
  expect([...crictlFlags("inspect", ["0123"])]).toEqual([]);
  expect(() => crictlFlags("ps", ["--name", "web"])).toThrow("crictl ps: there is no --name here; see: coracle crictl --help");
});

test("words that a command makes nothing of are refused: all would pass for what was asked for", () => {
  for (const command of ["ps", "pods", "images", "info", "version"]) expect(() => crictlFlags(command, ["web"])).toThrow(`crictl ${command} takes no names, and there is "web"`);
  expect(() => crictlFlags("inspect", ["a", "b"])).toThrow('crictl inspect takes one name, and there is "b"');
});

test("sizes have three digits, as crictl's", () => {
  expect([0, 999, 3_340, 2_170_000, 58_712_345, 169_000_000, 1_230_000_000].map(humanSize)).toEqual(["0B", "999B", "3.34kB", "2.17MB", "58.7MB", "169MB", "1.23GB"]);
});
