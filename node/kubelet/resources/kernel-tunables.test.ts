import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { silentLog } from "../../../core/observe/log.ts";
import { sysctlKeeper } from "../../os/sysctl.ts";
import { kernelTunables } from "./kernel-tunables.ts";

let root = "";
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "tunables-"));
  for (const [name, value] of [["vm/overcommit_memory", "0"], ["vm/panic_on_oom", "0"], ["kernel/panic", "0"], ["kernel/keys/root_maxkeys", "2000000"], ["kernel/keys/root_maxbytes", "20000"]] as const) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), `${value}\n`);
  }
});
afterEach(() => rmSync(root, { recursive: true }));

const keeper = () => sysctlKeeper({ recordFile: join(root, "record.json"), log: silentLog, root });
const now = (name: string): string => readFileSync(join(root, name), "utf8").trim();

test("the kernel is set as upstream's kubelet sets it, and what it was is remembered; limits are only raised, what is not there is left", () => {
  kernelTunables(keeper(), { protects: false });
  expect(["vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes"].map(now)).toEqual(["1", "0", "10", "2000000", "25000000"]);
  expect(JSON.parse(readFileSync(join(root, "record.json"), "utf8"))).toEqual({ "vm.overcommit_memory": { before: "0", after: "1" }, "kernel.panic": { before: "0", after: "10" }, "kernel.keys.root_maxbytes": { before: "20000", after: "25000000" } });
});

test("a kernel whose settings are protected must have them already", () => {
  expect(() => kernelTunables(keeper(), { protects: true })).toThrow("[invalid kernel flag: vm/overcommit_memory, expected value: 1, actual value: 0, invalid kernel flag: kernel/panic, expected value: 10, actual value: 0, invalid kernel flag: kernel/keys/root_maxbytes, expected value: 25000000, actual value: 20000]");
  expect(now("kernel/panic")).toBe("0");
  for (const [name, value] of [["vm/overcommit_memory", "1"], ["kernel/panic", "10"], ["kernel/keys/root_maxbytes", "25000000"]] as const) writeFileSync(join(root, name), value);
  expect(() => kernelTunables(keeper(), { protects: true })).not.toThrow();
});
