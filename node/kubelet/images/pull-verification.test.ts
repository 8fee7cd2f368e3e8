import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { pullRecords } from "./pull-records.ts";
import { allowlistProblem, PULL_POLICIES } from "./pull-verification.ts";

test("who must show credentials for an image that is there: of a preloaded one, one on the list, and one that another pod has pulled with a Secret", async () => {
  const secret = { namespace: "d", name: "s", uid: "1" };
  const told = await Promise.all(PULL_POLICIES.map(async (policy) => {
    const dataDir = mkdtempSync(join(tmpdir(), "pulls-"));
    const records = pullRecords({ dataDir, nowMs: () => 0, verification: { policy, allowlist: ["r.example/team/*", "r.example/tool"] } });
    await records.pulled("r.example/private:1", "id", { auth: { username: "u", password: "p" }, secret });
    const mayUse = (image: string, id: string) => records.mayUse(image, id, async () => []);
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

test.each([
  ["r.example/a", undefined], ["r.example:5000/*", undefined], [" a/b", "leading/trailing spaces are not allowed:  a/b"], ["", "the supplied pattern is too short: "], ["/*", "at least registry hostname is required"],
  ["a/*/b", "not a valid wildcard pattern, only patterns ending with '/*' are allowed: a/*/b"], ["a/b:1", "neither tag nor digest is accepted in an image reference: a/b:1"],
])("a pattern %j: %s", (pattern, problem) => expect(allowlistProblem(pattern)).toBe(problem));
