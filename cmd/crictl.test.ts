import { expect, test } from "vitest";
import { crictlFlags, textOfLogLine } from "./crictl.ts";

test("crictl's flags that are here do what they do there; others are refused, not passed over", () => {
  expect([...crictlFlags("ps", ["-aq"])]).toEqual(["all", "quiet"]);
  expect([...crictlFlags("pods", ["--quiet"])]).toEqual(["quiet"]);
  expect([...crictlFlags("inspect", ["0123"])]).toEqual([]);
  expect(() => crictlFlags("ps", ["--name", "web"])).toThrow("crictl ps: there is no --name here; see: coracle crictl --help");
});

test("a container's log is shown as it was written: partial lines are joined", () => {
  expect(textOfLogLine("2026-11-23T08:00:00.1Z stderr F oh no")).toEqual({ stream: "stderr", text: "oh no\n" });
  expect(textOfLogLine("2026-11-23T08:00:00.1Z stdout P half a ")).toEqual({ stream: "stdout", text: "half a " });
  expect(textOfLogLine("2026-11-23T08:00:00.1Z stdout F ")).toEqual({ stream: "stdout", text: "\n" });
});
