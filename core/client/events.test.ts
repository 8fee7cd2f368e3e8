import { expect, test } from "vitest";
import { eventually, fakeApi } from "../../test/fake-api.ts";
import { systemClock } from "../lifecycle/clock.ts";
import { systemRandom } from "../lifecycle/random.ts";
import { silentLog } from "../observe/log.ts";
import { EventCorrelator, type EventDraft } from "./event-correlator.ts";
import { eventWriter } from "./events.ts";
import { clientOver } from "./resource-client.ts";
import { EVENTS, PODS } from "./resources.ts";
import type { Transport } from "./transport.ts";

function draft(message: string, reason = "Killing"): EventDraft {
  return { apiVersion: "v1", kind: "Event", metadata: { name: `pod.${message}`, namespace: "default" }, involvedObject: { kind: "Pod", name: "pod", uid: "u" }, reason, message, type: "Normal", count: 1, firstTimestamp: "first", lastTimestamp: "last", source: { component: "kubelet" } };
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
