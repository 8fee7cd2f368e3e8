import { expect, test } from "vitest";
import type { Lease } from "../../api/gen/coordination.v1.ts";
import { leaseCandidates } from "./lease-candidate.ts";
import { created, updated } from "../../../test/rehearse.ts";
import { leaseDefinition } from "./lease.ts";

const leases = leaseDefinition({ coordinated: false }), coordinated = leaseDefinition({ coordinated: true });

test("a lease lasts, and is never taken over less than not at all", () => {
  expect(created(leases, { spec: { leaseDurationSeconds: 0, leaseTransitions: -1 } }).errors).toEqual([
    "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0", "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
  ]);
});

test("a lease says how its holder is chosen, and who is to be next, where leaders are coordinated; elsewhere what it said of that stays, and nothing comes", () => {
  const spec = { holderIdentity: "a", strategy: "OldestEmulationVersion", preferredHolder: "b" };
  const lease = created(coordinated, { spec }).object;
  expect(lease.spec).toEqual(spec);
  expect(created(leases, { spec }).object.spec).toEqual({ holderIdentity: "a" });
  expect(updated(leases, { ...lease, spec: { holderIdentity: "a" } } as Lease, { spec }).object.spec).toEqual({ holderIdentity: "a" });
  expect(updated(leases, lease, { spec: { ...spec, preferredHolder: "c" } }).object.spec).toEqual({ ...spec, preferredHolder: "c" });
  expect(updated(leases, { ...lease, spec: { strategy: "foo.com/bar" } } as Lease, { spec }).object.spec).toEqual({ holderIdentity: "a", strategy: "OldestEmulationVersion" });
});

test.each<[object, readonly string[]]>([
  [{ strategy: "foo.com/bar" }, []],
  [{ strategy: "" }, ['spec.strategy.strategy: Unsupported value: "": supported values: "OldestEmulationVersion"']],
  [{ strategy: "NoSuch", preferredHolder: "b" }, ['spec.strategy.strategy: Unsupported value: "NoSuch": supported values: "OldestEmulationVersion"']],
  [{ preferredHolder: "b" }, ["spec.preferredHolder: Forbidden: may only be specified if `strategy` is defined"]],
  [{ preferredHolder: "" }, []],
])("a coordinated lease with %j", (spec, errors) => expect(created(coordinated, { spec }).errors).toEqual(errors));

test("no field of a candidate can be selected by: there is no way for it through the versions", () => expect(leaseCandidates.fields).toBeUndefined());

const EMULATION = 'spec.emulationVersion: Required value: must be specified when `strategy` is \'OldestEmulationVersion\'';

test.each<[object, readonly string[]]>([
  [{}, []],
  [{ binaryVersion: "1.30.0-beta.1.3", emulationVersion: "1.30.0-beta.1.3" }, []],
  [{ binaryVersion: "1.30.0-rc.2", emulationVersion: "1.30.0-rc.10" }, ['spec.binaryVersion: Invalid value: "1.30.0-rc.2": must be greater than or equal to `emulationVersion`']],
  [{ binaryVersion: "1.30.0-2", emulationVersion: "1.30.0-a" }, ['spec.binaryVersion: Invalid value: "1.30.0-2": must be greater than or equal to `emulationVersion`']],
  [{ emulationVersion: "0.0.0" }, [EMULATION]],
  [{ emulationVersion: "1.30.0-01" }, ['spec.emulationVersion: Invalid value: "1.30.0-01": must be a valid semantic version', EMULATION]],
  [{ emulationVersion: undefined, strategy: "foo.com/bar" }, []],
])("a candidate with %j", (given, errors) => expect(created(leaseCandidates, { spec: { leaseName: "l", binaryVersion: "1.30.0", emulationVersion: "1.29.0", strategy: "OldestEmulationVersion", ...given } }).errors).toEqual(errors));
