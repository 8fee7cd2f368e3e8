import { expect, test } from "vitest";
import { crictlFlags } from "./crictl.ts";

test("crictl's flags that are here do what they do there; others are refused, not passed over", () => {
  expect([...crictlFlags("ps", ["-aq"])]).toEqual(["all", "quiet"]);
  expect([...crictlFlags("pods", ["--quiet"])]).toEqual(["quiet"]);
  expect([...crictlFlags("inspect", ["0123"])]).toEqual([]);
  expect(() => crictlFlags("ps", ["--name", "web"])).toThrow("crictl ps: there is no --name here; see: coracle crictl --help");
});
