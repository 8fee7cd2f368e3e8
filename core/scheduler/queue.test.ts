import { expect, test } from "vitest";
import { keyOf } from "../api/meta/object-meta.ts";
import type { Clock } from "../lifecycle/clock.ts";
import { node, pod } from "../../test/scheduling-cluster.ts";
import type { ClusterChange } from "./changes.ts";
import { type Attempt, SchedulingQueue } from "./queue.ts";

/** Time that stands still until it is told to go on. */
function stoppedClock(): Clock & { advance(ms: number): void } {
  let now = 0;
  const timers = new Set<{ atMs: number; work: () => void }>();
  return {
    nowMs: () => now, uptimeMs: () => now,
    sleep: () => { throw new Error("not used"); }, every: () => { throw new Error("not used"); },
    after(ms, work) {
      const timer = { atMs: now + ms, work };
      timers.add(timer);
      return { cancel: () => void timers.delete(timer) };
    },
    advance(ms) {
      const endMs = now + ms;
      for (;;) {
        const next = [...timers].filter(({ atMs }) => atMs <= endMs).sort((a, b) => a.atMs - b.atMs)[0];
        if (!next) break;
        timers.delete(next);
        now = Math.max(now, next.atMs);
        next.work();
      }
      now = endMs;
    },
  };
}

const newNode: ClusterChange = { of: "node", object: node("n"), deleted: false };

function setUp() {
  const clock = stoppedClock();
  const queue = new SchedulingQueue({ clock, mayHelp: (_pod, filters, change) => filters.has(change.of) });
  const life = new AbortController();
  const take = async (): Promise<Attempt> => (await queue.take(life.signal))!;
  const fail = async (by: ReadonlySet<string> | "error"): Promise<void> => queue.fail(await take(), by);
  return { clock, queue, take, fail };
}

test("higher priority first, then who came first; many of them", async () => {
  const { clock, queue, take } = setUp();
  for (let i = 0; i < 200; i++) {
    queue.add(pod(`p${i}`, { priority: (i * 7) % 5 }));
    clock.advance(1);
  }
  queue.remove("default/p2" as never); // had the highest
  const taken: string[] = [];
  for (let i = 0; i < 199; i++) {
    const attempt = await take();
    taken.push(attempt.pod.metadata.name);
    queue.done(attempt);
  }
  const expected = Array.from({ length: 200 }, (_, i) => i).filter((i) => i !== 2).sort((a, b) => ((b * 7) % 5) - ((a * 7) % 5) || a - b).map((i) => `p${i}`);
  expect(taken).toEqual(expected);
});

test("a pod that fitted nowhere waits for a change that may help", async () => {
  const { queue, fail } = setUp();
  queue.add(pod("p"));
  await fail(new Set(["volume"]));
  queue.changed(newNode, "NodeAdd");
  expect(queue.sizes()).toMatchObject({ unschedulable: 1, backoff: 0 });
  queue.changed({ of: "volume", object: {} as never, deleted: false }, "PersistentVolumeAdd");
  expect(queue.sizes()).toMatchObject({ unschedulable: 0, backoff: 1 });
});

test("a change while a pod is tried is not slept through", async () => {
  const { queue, take } = setUp();
  queue.add(pod("p"));
  const attempt = await take();
  queue.changed(newNode, "NodeAdd");
  queue.fail(attempt, new Set(["node"]));
  expect(queue.sizes()).toMatchObject({ unschedulable: 0, backoff: 1 });
});

test("what happens before the last of those that are to go for a pod is told so is no reason to try the pod again", async () => {
  const { queue, take } = setUp();
  queue.add(pod("p"));
  const attempt = await take();
  queue.changed(newNode, "NodeAdd");
  queue.overlook(attempt);
  queue.fail(attempt, new Set(["node"]));
  expect(queue.sizes()).toMatchObject({ unschedulable: 1, backoff: 0 });
});

test("a pod that is deleted while it is tried does not come back, whatever came of it", async () => {
  for (const came of ["error", "group", new Set(["node"])] as const) {
    const { queue, take } = setUp();
    queue.add(pod("p"));
    const attempt = await take();
    queue.remove(attempt.key);
    queue.fail(attempt, came);
    expect(queue.sizes()).toEqual({ active: 0, backoff: 0, unschedulable: 0, gated: 0 });
  }
});

test("what was done with and has come to nothing backs off as after an error, unless another of its name has come", async () => {
  const { queue, take } = setUp();
  queue.add(pod("p"));
  const attempt = await take();
  queue.done(attempt);
  queue.bringBack(attempt);
  expect(queue.sizes()).toMatchObject({ active: 0, backoff: 1 });
  queue.done(attempt);
  queue.add(pod("p", { metadata: { uid: "another" } }));
  queue.bringBack(attempt);
  expect(queue.sizes()).toMatchObject({ active: 1, backoff: 0 });
});

test("after an error it backs off, longer each time; otherwise it is tried early when nothing else is", async () => {
  const { clock, queue, take, fail } = setUp();
  queue.add(pod("p"));
  await fail("error");
  clock.advance(1_999); // to the end of the second in which its back-off ends
  expect(queue.sizes()).toMatchObject({ active: 0, backoff: 1 });
  clock.advance(1);
  expect(queue.sizes()).toMatchObject({ active: 1, backoff: 0 });
  await fail("error");
  clock.advance(2_999);
  expect(queue.sizes()).toMatchObject({ active: 0, backoff: 1 });
  clock.advance(1);
  await fail(new Set(["node"]));
  queue.changed(newNode, "NodeAdd");
  expect(queue.sizes()).toMatchObject({ active: 0, backoff: 1 });
  expect((await take()).attempts).toBe(4);
});

test("of those that back off until the same second the most important is tried first, and of equals who has waited longer", async () => {
  const { clock, queue, fail, take } = setUp();
  for (const [name, priority] of [["first", 0], ["second", 0], ["important", 5]] as const) {
    queue.add(pod(name, { priority }));
    await fail(new Set(["node"]));
    clock.advance(10);
  }
  queue.changed(newNode, "NodeAdd");
  expect(queue.sizes()).toMatchObject({ active: 0, backoff: 3 });
  expect([(await take()).pod.metadata.name, (await take()).pod.metadata.name, (await take()).pod.metadata.name]).toEqual(["important", "first", "second"]);
});

test("who has waited longer is tried first, whenever what helped it came", async () => {
  const { clock, queue, fail, take } = setUp();
  queue.add(pod("old"));
  await fail(new Set(["node"]));
  clock.advance(60_000);
  queue.add(pod("young"));
  clock.advance(1);
  queue.changed(newNode, "NodeAdd");
  expect([(await take()).pod.metadata.name, (await take()).pod.metadata.name]).toEqual(["old", "young"]);
});

test("what backs off after an error waits as long as there were errors in a row, however often it fitted nowhere before", async () => {
  const { clock, queue, fail } = setUp();
  queue.add(pod("p"));
  for (let i = 0; i < 4; i++) {
    await fail(new Set(["node"]));
    clock.advance(60_000);
    queue.changed(newNode, "NodeAdd");
  }
  await fail("error");
  clock.advance(2_000);
  expect(queue.sizes()).toMatchObject({ active: 1, backoff: 0 });
});

test("without any change it is tried again after five minutes", async () => {
  const { clock, queue, fail } = setUp();
  queue.add(pod("p"));
  await fail(new Set(["node"]));
  clock.advance(299_000);
  expect(queue.sizes()).toMatchObject({ unschedulable: 1 });
  clock.advance(31_000);
  expect(queue.sizes()).toMatchObject({ unschedulable: 0, active: 1 });
});

test("gates hold a pod back until they are all open", () => {
  const { queue } = setUp();
  queue.add(pod("p", { schedulingGates: [{ name: "x" }] }));
  expect(queue.sizes()).toMatchObject({ gated: 1, active: 0 });
  queue.changed(newNode, "NodeAdd");
  queue.add(pod("p"));
  expect(queue.sizes()).toMatchObject({ gated: 0, active: 1 });
});

test("a pod that was tried is held back while a gate has closed again, and then waits for what is left of its back-off", async () => {
  const clock = stoppedClock();
  let gate: string | undefined;
  const queue = new SchedulingQueue({ clock, mayHelp: (_pod, filters, change) => filters.has(change.of), gateOf: () => gate });
  const take = async (): Promise<Attempt> => (await queue.take(new AbortController().signal))!;
  queue.add(pod("p", { schedulerName: "s" }));
  queue.fail(await take(), new Set(["node"]));
  gate = "Claims";
  queue.changed(newNode, "NodeAdd");
  expect([queue.sizes(), queue.heldBy().map(({ plugin }) => plugin)]).toEqual([{ active: 0, backoff: 0, unschedulable: 0, gated: 1 }, ["node", "Claims"]]);
  gate = undefined;
  queue.regate("ResourceClaimAdd");
  expect(queue.sizes()).toEqual({ active: 0, backoff: 1, unschedulable: 0, gated: 0 });
  const again = await take();
  gate = "Claims";
  queue.fail(again, "error");
  expect(queue.sizes()).toMatchObject({ backoff: 0, gated: 1 });
  clock.advance(60_000);
  gate = undefined;
  queue.regate("ResourceClaimAdd");
  expect(queue.sizes()).toMatchObject({ active: 1, gated: 0 });
});

test("once it is closed, time moves no pod", async () => {
  const { clock, queue, fail } = setUp();
  for (const name of ["a", "b", "c"]) queue.add(pod(name));
  await fail(new Set(["nothing"]));
  await fail("error");
  queue.close();
  await fail("error");
  const before = { ...queue.sizes() };
  clock.advance(3_600_000);
  expect([before, queue.sizes()]).toEqual([{ active: 0, backoff: 2, unschedulable: 1, gated: 0 }, before]);
});

test("the wait behind gates does not count as waiting to be tried, and what holds a pod back counts until it is tried", async () => {
  const { clock, queue, take } = setUp();
  queue.add(pod("p", { schedulingGates: [{ name: "x" }], schedulerName: "s" }));
  clock.advance(60_000);
  expect(queue.heldBy()).toEqual([{ plugin: "SchedulingGates", profile: "s", pods: 1 }]);
  queue.add(pod("p", { schedulerName: "s" }));
  expect(queue.heldBy()).toMatchObject([{ pods: 1 }]);
  expect((await take()).addedMs).toBe(60_000);
  expect(queue.heldBy()).toEqual([]);
});

test("a filter holds a pod back until it is tried again, not until something happens", async () => {
  const { clock, queue, fail, take } = setUp();
  queue.add(pod("p"));
  await fail(new Set(["node"]));
  queue.changed(newNode, "NodeAdd");
  expect([queue.sizes().backoff, queue.heldBy()[0]?.plugin]).toEqual([1, "node"]);
  clock.advance(60_000);
  queue.fail(await take(), "error");
  expect(queue.heldBy()).toEqual([]);
});

test("who fitted nowhere is tried early, though another backs off after an error that ends sooner", async () => {
  const { clock, queue, fail, take } = setUp();
  queue.add(pod("broken"));
  await fail("error");
  clock.advance(1_500);
  queue.add(pod("homeless"));
  await fail(new Set(["node"]));
  queue.changed(newNode, "NodeAdd");
  expect(queue.sizes()).toMatchObject({ active: 0, backoff: 2 });
  expect((await take()).pod.metadata.name).toBe("homeless");
  clock.advance(2_000);
  expect((await take()).pod.metadata.name).toBe("broken");
});

test("a pod that is tried because it has waited for long says so", async () => {
  const { clock, queue, fail, take } = setUp();
  queue.add(pod("p"));
  await fail(new Set(["node"]));
  clock.advance(330_000);
  const attempt = await take();
  expect(attempt.isFlushed).toBe(true);
  queue.fail(attempt, new Set(["node"]));
  queue.changed(newNode, "NodeAdd");
  expect((await take()).isFlushed).toBe(false);
});

test("a change may concern some pods only", async () => {
  const { queue, fail } = setUp();
  for (const [name, priority] of [["low", 0], ["high", 5]] as const) {
    queue.add(pod(name, { priority }));
    await fail(new Set(["node"]));
  }
  queue.changed(newNode, "NodeUpdateNodeLabel", ({ spec }) => spec.priority === 0);
  expect([queue.standing("default/low" as never)?.queue, queue.standing("default/high" as never)?.queue]).toEqual(["backoff", "unschedulable"]);
});

test("a pod that was deleted while it was tried does not come back; its successor of the same name does", async () => {
  const { queue, take } = setUp();
  queue.add(pod("p"));
  const attempt = await take();
  queue.remove(attempt.key);
  queue.fail(attempt, new Set(["node"]));
  expect(queue.sizes()).toEqual({ active: 0, backoff: 0, unschedulable: 0, gated: 0 });
  queue.add(pod("p", { metadata: { uid: "second" } }));
  expect((await take()).pod.metadata.uid).toBe("second");
});

test("who waits for pods again and again leaves nothing behind on a signal that lives long", async () => {
  const { queue } = setUp();
  const { signal } = new AbortController();
  const listening = new Set<unknown>();
  const [add, remove] = [signal.addEventListener.bind(signal), signal.removeEventListener.bind(signal)];
  signal.addEventListener = ((type: string, listener: never, options?: never) => { listening.add(listener); add(type, listener, options); }) as never;
  signal.removeEventListener = ((type: string, listener: never) => { listening.delete(listener); remove(type, listener); }) as never;
  for (let i = 0; i < 20; i++) {
    const next = queue.take(signal);
    await Promise.resolve();
    queue.add(pod(`p${i}`));
    queue.done((await next)!);
  }
  expect(listening.size).toBe(0);
});

test("a pod that there is no node for is tried again after longer and longer, and at once when one comes", async () => {
  const { clock, queue, fail } = setUp();
  queue.add(pod("p"));
  const states: unknown[] = [];
  for (const waitMs of [2_000, 3_000, 5_000]) {
    await fail(new Set());
    states.push(queue.standing("default/p" as never)?.queue);
    clock.advance(waitMs);
    states.push(queue.standing("default/p" as never)?.queue);
  }
  expect(states).toEqual(["backoff", "active", "backoff", "active", "backoff", "active"]);
  await fail(new Set());
  queue.changed({ of: "claim", object: {} as never, deleted: false }, "PersistentVolumeClaimAdd");
  expect(queue.standing("default/p" as never)?.queue).toBe("backoff");
  queue.changed(newNode, "NodeAdd");
  expect(queue.standing("default/p" as never)?.queue).toBe("active");
  await fail("error");
  queue.changed(newNode, "NodeAdd");
  expect(queue.standing("default/p" as never)?.queue).toBe("backoff");
});

test("a pod that an extender turned down is tried again when its own status changes, others are not", async () => {
  const clock = stoppedClock();
  const queue = new SchedulingQueue({ clock, mayHelp: (_pod, filters) => filters.has("Extender") });
  const states = [];
  for (const filter of ["Extender", "node"]) {
    const waiting = pod("p");
    queue.add(waiting);
    queue.fail((await queue.take(new AbortController().signal))!, new Set([filter]));
    queue.add({ ...waiting, status: { conditions: [{ type: "PodScheduled", status: "False" }] } } as never);
    states.push(queue.standing("default/p" as never)?.queue);
    queue.remove("default/p" as never);
  }
  expect(states).toEqual(["backoff", "unschedulable"]);
});

test("of a group one is taken and others with it, wherever they wait; not those that are held back, under way, or others by then", async () => {
  const clock = stoppedClock(), queued: string[] = [];
  let gated = "gated";
  const queue = new SchedulingQueue({ clock, mayHelp: (_pod, filters, change) => filters.has(change.of), isGrouped: () => true, gateOf: ({ metadata }) => (metadata.name === gated ? "g" : undefined), onQueued: (name, event) => queued.push(`${name} ${event}`) });
  const life = new AbortController();
  for (const name of ["failed", "first", "active", "gated"]) queue.add(pod(name, { priority: name === "failed" ? 2 : name === "first" ? 1 : 0 }));
  queue.fail((await queue.take(life.signal))!, new Set(["node"]));
  const first = (await queue.take(life.signal))!;
  queued.length = 0;
  const also = (name: string): string | undefined => { const one = queue.takeAlso(pod(name), keyOf(pod(name))); return one && `${one.pod.metadata.name} ${one.attempts}`; };
  expect(["failed", "first", "active", "gated", "unknown"].map(also)).toEqual(["failed 2", undefined, "active 1", undefined, undefined]);
  expect(queued).toEqual(["active ForceActivate"]); // who was to be tried already comes from nowhere else
  gated = "";
  expect(queue.takeAlso(pod("gated", { metadata: { uid: "another" } }), keyOf(pod("gated")))).toBeUndefined();
  expect(also("gated")).toBe("gated 1");
  queue.fail(first, "group");
  expect(queue.standing(first.key)).toMatchObject({ queue: "backoff", attempts: 1 });
});

test("pods of a group wait out their back-off, though there is nothing else to try; unless something happens that may help one of them", async () => {
  const clock = stoppedClock();
  const queue = new SchedulingQueue({ clock, mayHelp: (_pod, filters, change) => filters.has(change.of), isGrouped: () => true });
  const life = new AbortController();
  const taken: string[] = [];
  const next = (): void => void queue.take(life.signal).then((attempt) => { if (attempt) { taken.push(attempt.pod.metadata.name); queue.fail(attempt, new Set(["node"])); } });
  queue.add(pod("p"));
  next();
  await Bun.sleep(0);
  next();
  await Bun.sleep(0);
  expect([taken, queue.standing("default/p" as never)?.queue]).toEqual([["p"], "backoff"]);
  queue.changed({ ...newNode, of: "claim" } as never, "PersistentVolumeClaimAdd");
  await Bun.sleep(0);
  expect(taken).toEqual(["p"]);
  queue.changed(newNode, "NodeAdd");
  await Bun.sleep(0);
  expect(taken).toEqual(["p", "p"]);
  next();
  clock.advance(3000);
  await Bun.sleep(0);
  expect(taken).toEqual(["p", "p", "p"]);
  life.abort();
});

test("what happens to some gates is looked at for the pods it is about alone", () => {
  const clock = stoppedClock(), asked: string[] = [];
  let gate: string | undefined = "g";
  const queue = new SchedulingQueue({ clock, mayHelp: () => false, gateOf: ({ metadata }) => { asked.push(metadata.name); return gate; } });
  for (const name of ["a", "b", "c"]) queue.add(pod(name));
  asked.length = 0;
  gate = undefined;
  queue.regate("UnschedulablePodAdd", [keyOf(pod("b")), keyOf(pod("unknown"))]);
  expect([asked, queue.sizes()]).toEqual([["b"], { active: 1, backoff: 0, unschedulable: 0, gated: 2 }]);
});
