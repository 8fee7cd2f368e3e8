import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { metricsRegistry } from "../../../core/observe/metrics.ts";
import { pullRecordMetrics } from "./pull-record-metrics.ts";
import { pullRecords } from "./pull-records.ts";
import { allowlistProblem, PULL_POLICIES } from "./pull-verification.ts";

test("who must show credentials for an image that is there: of a preloaded one, one on the list, and one that another pod has pulled with a Secret", async () => {
  const secret = { namespace: "d", name: "s", uid: "1" };
  const told = await Promise.all(PULL_POLICIES.map(async (policy) => {
    const dataDir = mkdtempSync(join(tmpdir(), "pulls-"));
    const records = pullRecords({ root: dataDir, nowMs: () => 0, verification: { policy, allowlist: ["r.example/team/*", "r.example/tool"] } });
    await records.pulled("r.example/private:1", "id", { auth: { username: "u", password: "p" }, secret });
    const mayUse = (image: string, id: string) => records.mayUse(image, { id }, async () => []);
    const found = [policy, await mayUse("r.example/preloaded:1", "none"), await mayUse("r.example/team/app:2", "none"), await mayUse("r.example/tool@sha256:00", "none"), await mayUse("r.example/private:1", "id")];
    rmSync(dataDir, { recursive: true });
    return found;
  }));
  expect(told).toEqual([
    ["NeverVerify", true, true, true, true],
    ["NeverVerifyPreloadedImages", true, true, true, false],
    ["NeverVerifyAllowlistedImages", false, true, true, false],
    ["AlwaysVerify", false, false, false, false],
  ]);
});

test("a Secret that was found to be as good is known from then on, whatever it holds later; pulls of one image do not end each other's, and what is found is counted", async () => {
  const root = mkdtempSync(join(tmpdir(), "pulls-"));
  const metrics = metricsRegistry();
  const records = pullRecords({ root, nowMs: () => 0, verification: { policy: "NeverVerifyPreloadedImages", allowlist: [] }, onChecked: pullRecordMetrics(metrics, root) });
  const [a, b] = ["a", "b"].map((name) => ({ namespace: "d", name, uid: name }));
  const has = async (secret: typeof a, password: string) => await records.mayUse("r.example/private:1", { id: "id" }, async () => [{ auth: { username: "u", password }, secret: secret! }]);
  for (let pull = 0; pull < 2; pull++) await records.begin("r.example/private:1");
  await records.failed("r.example/private:1");
  expect(metrics.render()).toContain("kubelet_imagemanager_ondisk_pullintents 1\n");
  await records.pulled("r.example/private:1", "id", { auth: { username: "u", password: "p" }, secret: a! });
  expect([await has(b, "other"), await has(b, "p"), await has(b, "changed"), await has(a, "changed"), await has({ ...a!, uid: "new" }, "none")]).toEqual([false, true, true, true, false]);
  const shown = metrics.render();
  for (const line of ["ondisk_pullintents 0", "ondisk_pulledrecords 1", 'image_mustpull_checks_total{result="credentialRecordFound"} 3', 'image_mustpull_checks_total{result="mustAuthenticate"} 2']) expect(shown).toContain(`kubelet_imagemanager_${line}\n`);
  rmSync(root, { recursive: true });
});

test.each([
  ["r.example/a", undefined], ["r.example:5000/*", undefined], [" a/b", "leading/trailing spaces are not allowed:  a/b"], ["", "the supplied pattern is too short: "], ["/*", "at least registry hostname is required"],
  ["a/*/b", "not a valid wildcard pattern, only patterns ending with '/*' are allowed: a/*/b"], ["a/b:1", "neither tag nor digest is accepted in an image reference: a/b:1"],
])("a pattern %j: %s", (pattern, problem) => expect(allowlistProblem(pattern)).toBe(problem));
