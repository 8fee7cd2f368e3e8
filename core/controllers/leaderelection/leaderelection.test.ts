import { expect, test } from "vitest";
import { eventually, fakeApi } from "../../../test/fake-api.ts";
import { type TestDeps, withControllers } from "../../../test/run-controllers.ts";
import type { Lease } from "../../api/gen/coordination.v1.ts";
import type { LeaseCandidate } from "../../api/gen/coordination.v1beta1.ts";
import type { NewObject } from "../../api/meta/object-meta.ts";
import { LEASE_CANDIDATES, LEASES } from "../../client/resources.ts";
import { type Clock, everyBy, microTimestamp, sleepBy, systemClock } from "../../lifecycle/clock.ts";
import { leaderElection } from "./leaderelection.ts";

/** How much faster time goes: elections take seconds. */
const SPEED = 20;

/** `setBy`: of the wall clock. */
function fastClock(): Clock & { setBy: number } {
  const clock: Clock & { setBy: number } = {
    setBy: 0,
    nowMs: () => Date.parse("2026-05-01T12:00:00Z") + performance.now() * SPEED + clock.setBy,
    uptimeMs: () => performance.now() * SPEED,
    after: (ms, work) => systemClock.after(ms / SPEED, work),
    sleep: (ms, signal) => sleepBy(clock, ms, signal),
    every: (periodMs, signal) => everyBy(clock, periodMs, signal),
  };
  return clock;
}

function candidate(name: string, version: string, renewTime: string, leaseName = "l"): NewObject<LeaseCandidate> {
  return { apiVersion: "coordination.k8s.io/v1beta1", kind: "LeaseCandidate", metadata: { name, namespace: "default" }, spec: { leaseName, emulationVersion: version, binaryVersion: version, strategy: "OldestEmulationVersion", renewTime } };
}

/** Those of `alive` answer whoever asks them, and hold the Lease until another is to have it. */
function components({ client, informers, clock, signal }: TestDeps, alive: ReadonlySet<string>): void {
  const candidates = client.resource(LEASE_CANDIDATES), leases = client.resource(LEASES), past = (): undefined => undefined;
  informers.of(LEASE_CANDIDATES).onChange(({ object, deleted }) => {
    const { pingTime, renewTime } = object.spec;
    if (!deleted && alive.has(object.metadata.name) && pingTime !== undefined && pingTime > renewTime!) void candidates.update({ ...object, spec: { ...object.spec, renewTime: microTimestamp(clock.nowMs()) } }, { signal }).catch(past);
  });
  void (async () => {
    for await (const _ of clock.every(2_000, signal)) for (const lease of informers.of(LEASES).list()) {
      const { holderIdentity = "", preferredHolder = holderIdentity } = lease.spec ?? {};
      if (alive.has(holderIdentity) && preferredHolder === holderIdentity) await leases.update({ ...lease, spec: { ...lease.spec, renewTime: microTimestamp(clock.nowMs()) } }, { signal }).catch(past);
    }
  })();
}

const AGES_AGO = "2026-05-01T09:00:00.000000Z";

test("who behaves as the oldest version comes to lead, and another when it is gone, also once the clock was set", () => {
  const clock = fastClock(), alive = new Set(["a", "b", "c"]);
  return withControllers((deps) => { components(deps, alive); return leaderElection(deps); }, async (api, call) => {
    const candidates = api.client.resource(LEASE_CANDIDATES);
    const holder = () => api.all(LEASES)[0]?.spec?.holderIdentity;
    const now = () => microTimestamp(clock.nowMs());
    await candidates.create(candidate("a", "1.20.0", now()), call);
    await eventually(holder, (seen) => seen === "a");
    expect(api.all(LEASES)[0]?.spec).toMatchObject({ strategy: "OldestEmulationVersion", leaseDurationSeconds: 5 });
    await candidates.create(candidate("b", "1.19.0", now()), call);
    await eventually(holder, (seen) => seen === "b");
    expect(api.all(LEASES)[0]?.spec).not.toHaveProperty("preferredHolder");
    clock.setBy = -3_600_000;
    alive.delete("b");
    await eventually(holder, (seen) => seen === "a");
    clock.setBy = 3_600_000;
    await candidates.create(candidate("c", "1.18.0", now()), call);
    await eventually(holder, (seen) => seen === "c");
    await clock.sleep(10_000, call.signal);
    expect([holder(), api.all(LEASES).length]).toEqual(["c", 1]);
  }, { clock });
});

test("one who leads without being a candidate is left to it for as long as it does", () => {
  const clock = fastClock(), alive = new Set(["old", "a"]);
  return withControllers((deps) => { components(deps, alive); return leaderElection(deps); }, async (api, call) => {
    const lease = () => api.all(LEASES)[0]?.spec;
    const renewTime = microTimestamp(clock.nowMs());
    await api.client.resource(LEASES).create({ apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { name: "l", namespace: "default" }, spec: { holderIdentity: "old", leaseDurationSeconds: 10, renewTime } } satisfies NewObject<Lease>, call);
    await api.client.resource(LEASE_CANDIDATES).create(candidate("a", "1.20.0", renewTime), call);
    await eventually(lease, (seen) => seen?.preferredHolder === "a");
    expect(lease()?.holderIdentity).toBe("old");
    alive.delete("old");
    await eventually(lease, (seen) => seen?.holderIdentity === "a");
  }, { clock });
});

test("candidates that were not heard of for half an hour are deleted, if that is still so, and do not lead", async () => {
  const clock = fastClock(), api = fakeApi({ clock }), candidates = api.client.resource(LEASE_CANDIDATES), { signal } = new AbortController();
  for (const name of ["a", "b", "c"]) await candidates.create(candidate(name, "1.20.0", name === "c" ? microTimestamp(clock.nowMs()) : AGES_AGO), { signal });
  let renewed = false;
  api.fail = ({ method, path }) => {
    if (method !== "GET" || !path.endsWith("/b") || renewed) return undefined;
    renewed = true;
    void candidates.update({ ...api.all(LEASE_CANDIDATES).find(({ metadata }) => metadata.name === "b")!, spec: candidate("b", "1.21.0", microTimestamp(clock.nowMs())).spec }, { signal });
    return undefined;
  };
  await withControllers((deps) => leaderElection(deps), async () => {
    await eventually(() => [api.all(LEASE_CANDIDATES).map(({ metadata }) => metadata.name), api.all(LEASES).map(({ spec }) => spec?.holderIdentity), renewed], (seen) => Bun.deepEquals(seen, [["b", "c"], ["c"], true]));
  }, { clock, api });
});
