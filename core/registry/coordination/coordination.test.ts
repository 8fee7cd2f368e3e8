import { expect, test } from "vitest";
import { leaseCandidates } from "./lease-candidate.ts";
import { created } from "../../../test/rehearse.ts";
import { leases } from "./lease.ts";

test("a lease lasts, and is never taken over less than not at all", () => {
  expect(created(leases, { spec: { leaseDurationSeconds: 0, leaseTransitions: -1 } }).errors).toEqual([
    "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0", "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
  ]);
  expect(created(leases, { spec: { holderIdentity: "a", strategy: "OldestEmulationVersion" } }).object.spec).toEqual({ holderIdentity: "a" });
});

test("no field of a candidate can be selected by: there is no way for it through the versions", () => expect(leaseCandidates.fields).toBeUndefined());
