import { expect, test } from "vitest";
import type { Lease, LeaseSpec } from "../../api/gen/coordination.v1.ts";
import { type Candidate, elected, nextStep, pinged, type Voter } from "./plan.ts";

const NOW_MS = Date.parse("2026-05-01T12:00:00Z"), MINUTE_MS = 60_000;

/** "name emulation binary strategy"; the longer its name the later it came. */
function candidate(text: string): Candidate {
  const [name = "", emulationVersion = "1.20.0", binaryVersion = emulationVersion, strategy = "OldestEmulationVersion"] = text.split(" ");
  return { apiVersion: "coordination.k8s.io/v1beta1", kind: "LeaseCandidate", metadata: { name, namespace: "default", uid: name, resourceVersion: "1", creationTimestamp: `2026-05-01T00:00:0${name.length}Z` }, spec: { leaseName: "l", emulationVersion, binaryVersion, strategy } };
}

function voter(text: string, { pingedMs = Infinity, renewedMs = 0 }: Partial<Voter> = {}): Voter { return { candidate: candidate(text), pingedMs, renewedMs }; }

function lease(spec: LeaseSpec): Lease { return { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { name: "l", namespace: "default", uid: "l", resourceVersion: "1", creationTimestamp: "" }, spec: { leaseDurationSeconds: 10, ...spec } }; }

const NO_LEASE = { lease: undefined, renewedMs: Infinity };
const heldBy = (holderIdentity: string, renewedMs = 0) => ({ lease: lease({ holderIdentity }), renewedMs });
const elects = (holder: string | undefined, strategy = "OldestEmulationVersion") => ({ does: "elect", election: { strategy, ...(holder === undefined ? {} : { holder }) } });

test.each<[string, readonly Voter[], Parameters<typeof nextStep>[1], object]>([
  ["a Lease without candidates is somebody else's", [], heldBy("x"), { does: "nothing" }],
  ["a candidate that was not heard of for half an hour is none", [voter("a", { renewedMs: 30 * MINUTE_MS + 1 })], NO_LEASE, { does: "nothing" }],
  ["who is alone leads", [voter("a")], NO_LEASE, elects("a")],
  ["the oldest emulation leads", [voter("a 1.20.0"), voter("b 1.9.0 1.20.0"), voter("c 1.19.0 1.19.0")], NO_LEASE, elects("b")],
  ["of the same emulation the oldest binary leads", [voter("a 1.19.0 1.20.0"), voter("b 1.19.0 1.19.0"), voter("c 1.20.0")], NO_LEASE, elects("b")],
  ["of the same versions the first to come leads", [voter("ccc"), voter("aa"), voter("zz")], NO_LEASE, elects("aa")],
  ["the best leads already", [voter("a 1.19.0"), voter("b")], heldBy("a"), { does: "wait" }],
  ["one who leads and is not the best", [voter("a"), voter("b 1.18.0")], heldBy("a"), elects("b")],
  ["one who leads and is no candidate", [voter("a")], heldBy("x"), elects("a")],
  ["one who has led", [voter("a")], heldBy("x", 10_001), elects("a")],
  ["nobody leads", [voter("a")], heldBy(""), elects("a")],
  ["who was not heard of for 5 s is asked", [voter("a", { renewedMs: 10_000 }), voter("bb", { renewedMs: 5_000, pingedMs: 6_000 }), voter("ccc")], NO_LEASE, { does: "ping", whom: [candidate("a"), candidate("bb")] }],
  ["who was asked has 5 s", [voter("a", { pingedMs: 4_999, renewedMs: MINUTE_MS }), voter("b")], NO_LEASE, { does: "wait" }],
  ["who has not answered in 5 s is not asked again, and does not lead", [voter("a 1.18.0", { pingedMs: 10_000, renewedMs: 20_000 }), voter("b", { pingedMs: 0, renewedMs: 0 })], NO_LEASE, elects("b")],
  ["nobody has answered", [voter("a", { pingedMs: MINUTE_MS, renewedMs: 2 * MINUTE_MS })], NO_LEASE, { does: "fail", why: "no available candidates", again: false }],
  ["a candidate of long ago is asked before it is let go, whoever leads", [voter("a", { renewedMs: 15 * MINUTE_MS + 1 })], heldBy("a"), { does: "ping", whom: [candidate("a")] }],
  ["somebody else's strategy has no holder of ours", [voter("a 1.20.0 1.20.0 foo.com/bar")], heldBy("x", 10_001), elects(undefined, "foo.com/bar")],
  ["somebody else's strategy with a holder is left alone", [voter("a 1.20.0 1.20.0 foo.com/bar")], heldBy("x"), { does: "wait" }],
  ["the newest binary says by which strategy, for all", [voter("a 1.1.2 1.1.2 foo.com/bar"), voter("b 1.1.10")], NO_LEASE, elects("a")],
  ["two of the newest say different", [voter("a"), voter("b 1.20.0 1.20.0 foo.com/bar")], NO_LEASE, { does: "fail", why: 'candidates "a", "b" at same binary version but received differing strategies OldestEmulationVersion, foo.com/bar', again: false }],
  ["two of the newest say different while somebody leads", [voter("a"), voter("b 1.20.0 1.20.0 foo.com/bar")], heldBy("x"), { does: "fail", why: 'candidates "a", "b" at same binary version but received differing strategies OldestEmulationVersion, foo.com/bar', again: true }],
])("%s", (_, voters, held, step) => {
  expect(nextStep(voters, held)).toEqual(step);
});

test("who leads is told whom to leave it to; one who is not there has lost it", () => {
  const spec = { holderIdentity: "x", strategy: "OldestEmulationVersion", leaseTransitions: 3, acquireTime: "2026-05-01T00:00:00.000000Z", renewTime: "2026-05-01T11:59:00.000000Z", preferredHolder: "y" };
  const after = (given: LeaseSpec, election: Parameters<typeof elected>[1], renewedMs: number) => elected(lease(given), election, { renewedMs, nowMs: NOW_MS })?.spec;
  const oldest = { strategy: "OldestEmulationVersion", holder: "a" };
  expect(after(spec, oldest, 10_000)).toEqual({ ...spec, leaseDurationSeconds: 10, preferredHolder: "a" });
  expect(after({ ...spec, preferredHolder: "a" }, oldest, 0)).toBeUndefined();
  const taken = { holderIdentity: "a", strategy: "OldestEmulationVersion", leaseTransitions: 3, leaseDurationSeconds: 5, renewTime: "2026-05-01T12:00:00.000000Z" };
  expect(after(spec, oldest, 10_001)).toEqual(taken);
  expect(after({ ...spec, holderIdentity: "" }, oldest, 0)).toEqual(taken);
  expect(after({ ...spec, holderIdentity: "a" }, oldest, 10_001)).toBeUndefined();
  expect(after({ holderIdentity: "a" }, oldest, 0)).toEqual({ holderIdentity: "a", leaseDurationSeconds: 10, strategy: "OldestEmulationVersion" });
  expect(after(spec, { strategy: "foo.com/bar" }, 10_001)).toEqual({ ...spec, leaseDurationSeconds: 10, strategy: "foo.com/bar" });
  expect(after({ strategy: "foo.com/bar" }, { strategy: "foo.com/bar" }, Infinity)).toBeUndefined();
});

test("who has answered by a clock that is behind is not asked to answer again", () => {
  const [asked, answered] = [voter("a", { pingedMs: 100, renewedMs: 10_000 }), voter("a", { pingedMs: 100, renewedMs: 50 })].map((one) => ({ ...one, candidate: { ...one.candidate, spec: { ...one.candidate.spec, pingTime: "2026-05-01T12:00:00.000000Z", renewTime: "2026-05-01T11:00:00.000000Z" } } }));
  expect(nextStep([asked!], NO_LEASE)).toEqual({ does: "wait" });
  expect(nextStep([answered!], NO_LEASE)).toEqual({ does: "excuse", whom: [answered!.candidate] });
});

test("a candidate is asked at a time after its own, whatever our clock says", () => {
  const at = (renewTime: string) => pinged({ ...candidate("a"), spec: { ...candidate("a").spec, renewTime } }, NOW_MS).spec.pingTime;
  expect([at("2026-05-01T11:00:00.123456Z"), at("2026-05-01T13:00:00.123456Z")]).toEqual(["2026-05-01T12:00:00.000000Z", "2026-05-01T13:00:00.124000Z"]);
});
