import { expect, test } from "vitest";
import { selectControllers } from "./selection.ts";

test.each([
  ["*", "ttl-controller", true],
  ["*,-ttl-controller", "ttl-controller", false],
  ["*,-ttl", "ttl-controller", false],
  ["-ttl,ttl-controller,*", "ttl-controller", false],
  ["*,-ttl", "job-controller", true],
  ["job,deployment-controller", "job-controller", true],
  ["job,deployment-controller", "replicaset-controller", false],
  ["*,bootstrapsigner,tokencleaner,-selinux-warning-controller", "token-cleaner-controller", true], ["*,-bootstrapsigner", "bootstrap-signer-controller", false],
] as const)("--controllers=%s: %s runs: %s", (list, name, runs) => {
  expect(selectControllers(list.split(","))(name)).toBe(runs);
});

test.each([
  ["*,-typo", '"typo" is not in the list of known controllers'],
  ["*,selinux-warning-controller", "there is no selinux-warning-controller here"],
])("--controllers=%s: %s", (list, message) => {
  expect(() => selectControllers(list.split(","))).toThrow(message);
});
