import { expect, test } from "vitest";
import { eventually, fakeApi } from "../../test/fake-api.ts";
import { systemClock } from "../lifecycle/clock.ts";
import { forbidden, serviceUnavailable, timeout } from "../api/meta/status-error.ts";
import { systemRandom } from "../lifecycle/random.ts";
import { silentLog } from "../observe/log.ts";
import { EventCorrelator, type EventDraft } from "./event-correlator.ts";
import { EventSeries, FINISH_MS, type Report } from "./event-series.ts";
import { eventWriter } from "./events.ts";
import { clientOver } from "./resource-client.ts";
import { EVENTS, PODS, REPORTED_EVENTS } from "./resources.ts";
import type { Transport } from "./transport.ts";

function draft(message: string, reason = "Killing"): EventDraft {
  return { apiVersion: "v1", kind: "Event", metadata: { name: `pod.${message}`, namespace: "default" }, involvedObject: { kind: "Pod", name: "pod", uid: "u" }, reason, message, type: "Normal", count: 1, firstTimestamp: "first", lastTimestamp: "last", source: { component: "kubelet" }, reportingComponent: "kubelet", reportingInstance: "n1" };
}

test("the same event again is counted up, ten that differ in their message become one", () => {
  const correlator = new EventCorrelator();
  const told = (message: string) => {
    const one = correlator.correlate(draft(message), 0, `fresh.${message}`);
    return one && `${one.patch ? "patch" : "create"} ${one.event.metadata.name} ×${one.event.count}: ${one.event.message}`;
  };
  expect(told("a")).toBe("create pod.a ×1: a");
  expect(told("a")).toBe("patch pod.a ×2: a");
  for (let i = 0; i < 8; i++) told(`m${i}`);
  expect(told("x")).toBe("create fresh.x ×1: (combined from similar events): x");
  expect(told("y")).toBe("patch fresh.x ×2: (combined from similar events): y");
  const z = draft("z");
  const { source, reportingComponent, reportingInstance, metadata } = correlator.correlate({ ...z, metadata: { ...z.metadata, annotations: { a: "b" } } }, 0, "fresh.z")!.event;
  expect([source, reportingComponent, reportingInstance, metadata.annotations]).toEqual([{ component: "kubelet" }, undefined, "", undefined]); // as upstream's aggregate
});

test("a source tells 25 events about an object, then one every five minutes", () => {
  const correlator = new EventCorrelator();
  const reasons = Array.from({ length: 40 }, (_, i) => `Reason${i}`);
  expect(reasons.filter((reason) => correlator.correlate(draft("m", reason), 0, "f")).length).toBe(25);
  expect(reasons.filter((reason) => correlator.correlate(draft("m", `${reason}b`), 600_000, "f")).length).toBe(2);
});

test("what is remembered of an object's events goes, some hours after the last of them", () => {
  const correlator = new EventCorrelator();
  const about = (name: string): EventDraft => { const one = draft("m"); return { ...one, involvedObject: { ...one.involvedObject, name } }; };
  for (let i = 0; i < 500; i++) correlator.correlate(about(`pod-${i}`), 0, "f");
  expect(correlator.size).toBe(1500);
  correlator.correlate(about("other"), 3_600_001, "f");
  expect(correlator.size).toBe(503);
  correlator.correlate(about("other"), 3 * 3_600_000, "f");
  expect(correlator.size).toBe(3);
});

test("events are written beside their object, and again once they have expired", async () => {
  const api = fakeApi();
  const { signal } = new AbortController();
  const pod = await api.client.resource(PODS).create({ apiVersion: "v1", kind: "Pod", metadata: { name: "web", namespace: "apps" }, spec: { containers: [] } }, { signal });
  const stop = new AbortController();
  const events = eventWriter({ client: api.client, clock: systemClock, log: silentLog, random: systemRandom });
  const life = events.run(stop.signal, () => {});
  const recorder = events.from({ component: "test-controller" });
  recorder.event(pod, "Warning", "Failed", "no");
  recorder.event(pod, "Warning", "Failed", "no");
  const [event] = await eventually(() => api.all(EVENTS), (all) => all[0]?.count === 2);
  expect(event).toMatchObject({ metadata: { namespace: "apps" }, involvedObject: { kind: "Pod", name: "web", uid: pod.metadata.uid }, type: "Warning", reason: "Failed", source: { component: "test-controller" } });
  await api.client.resource(EVENTS).delete(event!, {}, { signal });
  recorder.event(pod, "Warning", "Failed", "no");
  await eventually(() => api.all(EVENTS), (all) => all[0]?.count === 3);
  stop.abort();
  await life;
});

test.each([
  ["is not reached", () => serviceUnavailable("no route"), ["Failed"]],
  ["does not answer", () => timeout("no answer within 60s"), ["Failed"]],
  ["does not want it", () => forbidden({ group: "", resource: "events" }, "web", "no"), []],
] as const)("an event is written again where the server %s, and not where it was refused", async (_, error, written) => {
  const api = fakeApi();
  let tries = 0;
  api.fail = ({ method }) => (method === "POST" && ++tries <= 2 ? error() : undefined);
  const stop = new AbortController();
  const events = eventWriter({ client: api.client, clock: { ...systemClock, sleep: () => Bun.sleep(1) }, log: silentLog, random: systemRandom });
  const life = events.run(stop.signal, () => {});
  events.from({ component: "kubelet" }).event({ kind: "Pod", name: "web", namespace: "default", uid: "u" }, "Warning", "Failed", "no");
  await eventually(() => tries, (count) => count === (written.length > 0 ? 3 : 1));
  await eventually(() => api.all(EVENTS).length, (count) => count === written.length);
  stop.abort();
  await life;
  expect([api.all(EVENTS).map(({ reason }) => reason), tries]).toEqual([written, written.length > 0 ? 3 : 1]);
});

test("an event of an object that it cannot be named after is named by chance", async () => {
  const api = fakeApi();
  const events = eventWriter({ client: api.client, clock: systemClock, log: silentLog, random: systemRandom });
  const stop = new AbortController();
  const life = events.run(stop.signal, () => {});
  const recorder = events.from({ component: "test" });
  for (const name of ["system:node", "x".repeat(250), "web"]) recorder.event({ kind: "ClusterRole", name, namespace: "default" }, "Normal", "Tested", "m");
  const names = await eventually(() => api.all(EVENTS).map(({ metadata }) => metadata.name), (seen) => seen.length === 3);
  expect(names.map((name) => (/^[0-9a-f-]{36}$/.test(name) ? "uuid" : name.split(".")[0])).sort()).toEqual(["uuid", "uuid", "web"]);
  stop.abort();
  await life;
});

test("many events are written at a time, but what counts one up comes after what made it", async () => {
  const api = fakeApi();
  const asked: string[] = [];
  const answer = Promise.withResolvers<void>();
  const slow: Transport = {
    async call(request) {
      asked.push(`${request.method} ${(request.body as EventDraft).reason ?? "again"}`);
      await answer.promise;
      return await api.call(request);
    },
    watch: (request) => api.watch(request),
  };
  const stop = new AbortController();
  const events = eventWriter({ client: clientOver(slow), clock: systemClock, log: silentLog, random: systemRandom, writesMax: 3 });
  const life = events.run(stop.signal, () => {});
  const recorder = events.from({ component: "test-controller" });
  for (const reason of ["A", "A", "B", "C", "D"]) recorder.event({ apiVersion: "v1", kind: "Pod", namespace: "apps", name: "web", uid: "u" }, "Normal", reason, "told");
  await eventually(() => asked, (all) => all.length === 2); // the second of A waits for the first
  expect(asked).toEqual(["POST A", "POST B"]);
  answer.resolve();
  const told = await eventually(() => api.all(EVENTS).map(({ reason, count }) => `${reason} ×${count}`).sort(), (all) => all.join() === "A ×2,B ×1,C ×1,D ×1");
  expect(told).toHaveLength(4);
  stop.abort();
  await life;
});

const report = (note: string, resourceVersion = "1"): Report =>
  ({ apiVersion: "events.k8s.io/v1", kind: "Event", metadata: { name: `pod.${note}`, namespace: "default" }, eventTime: `then ${note}`, reportingController: "s", reportingInstance: "s-n1", action: "Scheduling", reason: "FailedScheduling", regarding: { kind: "Pod", name: "pod", uid: "u", resourceVersion }, note, type: "Warning" });

test("what is reported again is a series: written when it becomes one, every half hour, and six minutes after the last time", () => {
  const series = new EventSeries();
  const said = (told: ReturnType<EventSeries["tell"]>) => told && `${told.isSeries ? "patch" : "create"} ${told.report.metadata.name}${told.report.series ? ` ×${told.report.series.count} at ${told.report.series.lastObservedTime}` : ""}`;
  expect(said(series.tell(report("a"), 0))).toBe("create pod.a");
  expect(said(series.tell(report("b"), 1000))).toBe("patch pod.a ×2 at then b"); // the note does not make another
  expect(said(series.tell(report("c"), 2000))).toBeUndefined();
  expect(said(series.tell(report("d", "2"), 3000))).toBe("create pod.d"); // the pod has changed
  expect(series.refresh().map(said)).toEqual(["patch pod.a ×3 at then c"]);
  expect(series.finish(2000 + FINISH_MS).map(said)).toEqual([]);
  expect(series.finish(3001 + FINISH_MS).map(said)).toEqual(["patch pod.a ×3 at then c"]);
  expect(series.size).toBe(0);
  expect(said(series.tell(report("e"), 4000 + FINISH_MS))).toBe("create pod.e");
});

test("of reports as many are remembered as memory allows", () => {
  const series = new EventSeries();
  for (let i = 0; i < 5000; i++) series.tell(report("a", String(i)), 0);
  expect(series.size).toBe(4096);
});

test("reports are written by events.k8s.io, a series as a patch", async () => {
  const api = fakeApi();
  const stop = new AbortController();
  const { signal } = stop;
  const pod = await api.client.resource(PODS).create({ apiVersion: "v1", kind: "Pod", metadata: { name: "web", namespace: "apps" }, spec: { containers: [] } }, { signal });
  const events = eventWriter({ client: api.client, clock: systemClock, log: silentLog, random: systemRandom });
  const life = events.run(signal, () => {});
  const reporter = events.reporter({ component: "default-scheduler", host: "n1" });
  for (let i = 0; i < 2; i++) reporter.report(pod, { type: "Normal", reason: "Preempted", action: "Preempting", note: "no" });
  const [event] = await eventually(() => api.all(REPORTED_EVENTS), (all) => all[0]?.series?.count === 2);
  const { uid, resourceVersion } = pod.metadata;
  const { metadata, eventTime, series, ...rest } = event!;
  expect(rest).toEqual({ apiVersion: "events.k8s.io/v1", kind: "Event", reportingController: "default-scheduler", reportingInstance: "default-scheduler-n1", action: "Preempting", reason: "Preempted", regarding: { apiVersion: "v1", kind: "Pod", name: "web", namespace: "apps", uid, resourceVersion }, note: "no", type: "Normal" });
  expect(metadata.namespace).toBe("apps");
  expect([eventTime, series?.lastObservedTime]).toEqual([expect.stringMatching(/\.\d{6}Z$/), expect.stringMatching(/\.\d{6}Z$/)]);
  stop.abort();
  await life;
});

test("a clock that is set ahead lets nobody tell more of an object than before", async () => {
  const api = fakeApi();
  const stop = new AbortController();
  let aheadMs = 0;
  const events = eventWriter({ client: api.client, clock: { ...systemClock, nowMs: () => Date.now() + aheadMs }, log: silentLog, random: systemRandom });
  const life = events.run(stop.signal, () => {});
  const recorder = events.from({ component: "kubelet" });
  const tell = async (name: string, count: number) => {
    for (let i = 0; i < count; i++) recorder.event({ kind: "Pod", name, namespace: "apps", uid: name }, "Normal", `Reason${aheadMs}${i}`, "m");
    recorder.event({ kind: "Pod", name: `${name}-last${aheadMs}`, namespace: "apps", uid: "" }, "Normal", "Last", "m");
    await eventually(() => api.all(EVENTS), (all) => all.some(({ involvedObject }) => involvedObject.name === `${name}-last${aheadMs}`));
    return api.all(EVENTS).filter(({ involvedObject }) => involvedObject.name === name).length;
  };
  expect(await tell("web", 40)).toBe(25);
  aheadMs = 366 * 24 * 3_600_000;
  expect(await tell("web", 40)).toBe(25);
  stop.abort();
  await life;
});

test("a clock that is set back keeps no series from ending", async () => {
  const api = fakeApi();
  const stop = new AbortController();
  const { signal } = stop;
  let aheadMs = 0;
  const pod = await api.client.resource(PODS).create({ apiVersion: "v1", kind: "Pod", metadata: { name: "web", namespace: "apps" }, spec: { containers: [] } }, { signal });
  const clock = { ...systemClock, nowMs: () => Date.now() + aheadMs, uptimeMs: () => performance.now() * 36_000, sleep: (ms: number, quit: AbortSignal) => systemClock.sleep(ms / 36_000, quit) }; // six minutes in 10 ms
  const events = eventWriter({ client: api.client, clock, log: silentLog, random: systemRandom });
  const life = events.run(signal, () => {});
  const report = () => events.reporter({ component: "default-scheduler", host: "n1" }).report(pod, { type: "Normal", reason: "Preempted", action: "Preempting", note: "no" });
  for (let i = 0; i < 2; i++) report();
  await eventually(() => api.all(REPORTED_EVENTS), (all) => all[0]?.series?.count === 2);
  aheadMs = -366 * 24 * 3_600_000;
  await systemClock.sleep(200, signal);
  report();
  await eventually(() => api.all(REPORTED_EVENTS), (all) => all.length === 2);
  stop.abort();
  await life;
});
