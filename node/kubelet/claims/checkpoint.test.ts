import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readClaims, storedClaims } from "./checkpoint.ts";
import type { PreparedClaim } from "./claim-plan.ts";

let directory = "";
beforeEach(() => { directory = mkdtempSync(join(tmpdir(), "claims-")); });
afterEach(() => rmSync(directory, { recursive: true }));

function read(text: string): readonly PreparedClaim[] | undefined {
  writeFileSync(join(directory, "dra_manager_state"), text);
  return readClaims(join(directory, "dra_manager_state"));
}

/** As a stock kubelet has written it. Source: kubernetes v1.36 pkg/kubelet/cm/dra/state/checkpointer_test.go */
const STOCK = `{"Data":"{\\"kind\\":\\"DRACheckpoint\\",\\"apiVersion\\":\\"checkpoint.dra.kubelet.k8s.io/v1\\",\\"ClaimInfoStateList\\":[{\\"ClaimUID\\":\\"067798be-454e-4be4-9047-1aa06aea63f7\\",\\"ClaimName\\":\\"example\\",\\"Namespace\\":\\"default\\",\\"PodUIDs\\":{\\"139cdb46-f989-4f17-9561-ca10cfb509a6\\":{}},\\"DriverState\\":{\\"test-driver.cdi.k8s.io\\":{\\"Devices\\":[{\\"PoolName\\":\\"worker-1\\",\\"DeviceName\\":\\"dev-1\\",\\"ShareID\\":\\"aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa\\",\\"RequestNames\\":[\\"test request\\"],\\"CDIDeviceIDs\\":[\\"example.com/example=cdi-example\\"]}]}}}]}","Checksum":736302156}`;
const EXAMPLE: PreparedClaim = {
  namespace: "default", name: "example", uid: "067798be-454e-4be4-9047-1aa06aea63f7", drivers: ["test-driver.cdi.k8s.io"], pods: ["139cdb46-f989-4f17-9561-ca10cfb509a6"],
  devices: [{ driver: "test-driver.cdi.k8s.io", pool: "worker-1", device: "dev-1", requests: ["test request"], cdiIds: ["example.com/example=cdi-example"], shareId: "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa" }],
};

test("what a stock kubelet has prepared is known, and what is written it could read", () => {
  expect(read(STOCK)).toEqual([EXAMPLE]);
  expect(JSON.stringify(storedClaims([EXAMPLE]))).toBe(STOCK);
  expect(() => read(STOCK.replace("736302156", "736302157"))).toThrow("checkpoint is corrupted: actualCS 736302157, expectedCS 736302156");
  expect(read(JSON.stringify({ claims: [EXAMPLE] }))).toEqual([EXAMPLE]); // by an earlier version of ours
});

test("a claim that was only begun is not taken for one without devices", () => {
  const { devices: _, ...begun } = EXAMPLE;
  const claims = [begun, { ...EXAMPLE, name: "other", devices: [] }];
  expect(read(JSON.stringify(storedClaims(claims)))).toEqual(claims);
});
