import { expect, test } from "vitest";
import { eventually, fakeApi } from "../../test/fake-api.ts";
import { aborted } from "../lifecycle/aborted.ts";
import { systemClock } from "../lifecycle/clock.ts";
import { systemRandom } from "../lifecycle/random.ts";
import { silentLog } from "../observe/log.ts";
import { serviceUnavailable } from "../api/meta/status-error.ts";
import { whileLeader } from "./leader.ts";
import { LEASES } from "./resources.ts";

test("one leads at a time; when it goes, or loses the server, another follows", async () => {
  const api = fakeApi();
  const leading = new Set<string>();
  const past: string[] = [];
  let cutOff = "";
  const start = (identity: string) => {
    const stop = new AbortController();
    const client = {
      ...api.client,
      resource: (ref: never) => {
        const real = api.client.resource(ref) as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>;
        const cut = (name: string) => (...args: unknown[]) => (cutOff === identity ? (name === "get" ? Promise.reject(serviceUnavailable("cut")) : new Promise<never>(() => {})) : real[name]!(...args));
        return { get: cut("get"), update: cut("update"), create: cut("create") };
      },
    } as unknown as typeof api.client;
    const work = {
      name: "work",
      async run(signal: AbortSignal) {
        expect(leading.size).toBe(0);
        leading.add(identity);
        past.push(identity);
        await aborted(signal);
        leading.delete(identity);
      },
    };
    const times = { leaseDurationMs: 5_000, renewDeadlineMs: 2_000, retryPeriodMs: 20 };
    const life = whileLeader({ client, clock: systemClock, random: systemRandom, log: silentLog, lease: { namespace: "kube-system", name: "x" }, identity, ...times }, work).run(stop.signal, () => {});
    return async () => { stop.abort(); await life; };
  };
  const stopA = start("a");
  await eventually(() => [...past], (seen) => seen.length === 1);
  const stopB = start("b");
  await Bun.sleep(100);
  expect(past).toEqual(["a"]);
  await stopA();
  await eventually(() => [...past], (seen) => seen.join() === "a,b");
  const stopC = start("c");
  cutOff = "b";
  await eventually(() => [...past], (seen) => seen.join() === "a,b,c");
  expect(api.all(LEASES)[0]?.spec).toMatchObject({ holderIdentity: "c", leaseTransitions: 2 });
  await Promise.all([stopB(), stopC()]);
  expect(leading.size).toBe(0);
});

test("who leads goes on when somebody else has written the Lease, and it is told that it was looked at anew", async () => {
  const api = fakeApi();
  const stop = new AbortController();
  const leases = api.client.resource(LEASES);
  let lookedAnew = 0;
  let runs = 0;
  const work = { name: "work", run: async (signal: AbortSignal) => { runs++; await aborted(signal); } };
  const life = whileLeader({
    client: api.client, clock: systemClock, random: systemRandom, log: silentLog, lease: { namespace: "kube-system", name: "x" }, identity: "a", leaseDurationMs: 5000, renewDeadlineMs: 2000, retryPeriodMs: 20, lookedAnew: () => { lookedAnew++; },
  }, work).run(stop.signal, () => {});
  await eventually(() => runs, (count) => count === 1);
  expect(lookedAnew).toBe(0);
  await leases.patch({ metadata: { namespace: "kube-system", name: "x" } }, "application/merge-patch+json", { metadata: { annotations: { by: "another" } } }, { signal: stop.signal });
  await eventually(() => lookedAnew, (count) => count === 1);
  expect([api.all(LEASES)[0]?.spec?.leaseTransitions, runs]).toEqual([0, 1]);
  stop.abort();
  await life;
});

test("who is stopped while it renews gives the Lease back all the same, and says that it stopped", async () => {
  const api = fakeApi();
  const stop = new AbortController();
  const renewing = Promise.withResolvers<void>();
  let stuck = false;
  const client = {
    ...api.client,
    resource: () => {
      const real = api.client.resource(LEASES);
      const update: typeof real.update = (lease, { signal }) => {
        if (!stuck) return real.update(lease, { signal });
        stuck = false;
        renewing.resolve();
        return aborted(signal).then(() => Promise.reject(signal.reason as Error));
      };
      return { get: real.get.bind(real), create: real.create.bind(real), update };
    },
  } as unknown as typeof api.client;
  let runs = 0;
  const told: string[] = [];
  const life = whileLeader({
    client, clock: systemClock, random: systemRandom, log: silentLog, lease: { namespace: "kube-system", name: "x" }, identity: "a", leaseDurationMs: 5000, renewDeadlineMs: 2000, retryPeriodMs: 20,
    events: { event: (_about, type, reason, message) => void told.push(`${type} ${reason} ${message}`) },
  }, { name: "work", run: async (signal) => { runs++; await aborted(signal); } }).run(stop.signal, () => {});
  await eventually(() => runs, (count) => count === 1);
  stuck = true;
  await renewing.promise;
  stop.abort();
  await life;
  expect(api.all(LEASES)[0]?.spec).toMatchObject({ holderIdentity: "", leaseDurationSeconds: 1, leaseTransitions: 0 });
  expect(told).toEqual(["Normal LeaderElection a became leader", "Normal LeaderElection a stopped leading"]);
});
