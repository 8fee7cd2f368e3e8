import { expect, test } from "vitest";
import { apiServer } from "../../../test/api-server.ts";
import { systemClock } from "../../lifecycle/clock.ts";
import { silentLog } from "../../observe/log.ts";
import { metricsRegistry } from "../../observe/metrics.ts";
import { auditErrors, auditor, type AuditSink } from "./auditor.ts";
import type { AuditEvent } from "./event.ts";
import { bufferedLogSink, type LineWriter, logSink } from "./log-sink.ts";
import { readPolicy } from "./policy.ts";
import { truncatingSink } from "./truncating-sink.ts";
import { waitingWebhookSink } from "./webhook-sink.ts";

const MAPS = "/api/v1/namespaces/a/configmaps";
const counted = () => {
  const metrics = metricsRegistry();
  return { metrics, errors: auditErrors(metrics) };
};
const audited = (sink: AuditSink, { level = "Metadata", metrics = metricsRegistry() } = {}) => auditor({ policy: readPolicy(`apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: ${level}}]`), sinks: [sink], clock: systemClock, metrics });
const lines = (taken: string[], accepts: () => boolean = () => true): LineWriter => ({
  write: (line) => { if (accepts()) taken.push(line); return Promise.resolve(accepts()); },
  close: () => Promise.resolve(),
});

test.each([[true, 500, "Internal Server Error: \"/api/v1/namespaces/a/configmaps\": failed to store audit event\n"], [false, 201, undefined]])("a request that cannot be written down (strictly: %s) is answered %i", async (isStrict, code, text) => {
  let works = false;
  const taken: string[] = [], { metrics } = counted();
  await using api = await apiServer({ audit: audited(logSink(lines(taken, () => works), "json", { isStrict }), { metrics }) });
  const answer = await api.ask("POST", MAPS, { body: { metadata: { name: "one" } } });
  expect(answer.code).toBe(code);
  if (text !== undefined) expect(answer.body).toBe(text);
  works = true;
  expect((await api.ask("GET", `${MAPS}/one`)).code).toBe(isStrict ? 404 : 200);
  expect(taken.map((line) => (JSON.parse(line) as AuditEvent).stage)).toEqual(["RequestReceived", "ResponseComplete"]);
  if (isStrict) expect(metrics.render()).toMatch(/apiserver_audit_requests_rejected_total 1\n/);
});

test("a receiver that is waited for has each event before its request goes on, in their order; that it takes none ends no request unless that is asked for", async () => {
  const got: string[] = [], { metrics, errors } = counted();
  let refuses = false;
  const deps = {
    clock: systemClock, log: silentLog, errors, initialBackoffMs: 0,
    async post(list: object): Promise<void> {
      await systemClock.sleep(2, new AbortController().signal);
      if (refuses) throw new Error("no");
      got.push(...(list as { items: AuditEvent[] }).items.map(({ stage }) => stage));
    },
  };
  for (const isStrict of [false, true]) {
    refuses = false;
    got.length = 0;
    await using api = await apiServer({ audit: audited(waitingWebhookSink(deps, { isStrict })) });
    await api.ask("GET", MAPS);
    expect(got).toEqual(["RequestReceived", "ResponseComplete"]);
    refuses = true;
    expect((await api.ask("GET", MAPS)).code).toBe(isStrict ? 500 : 200);
  }
  expect(metrics.render()).toContain('apiserver_audit_error_total{plugin="webhook"} 3');
});

test("who waits for a receiver when the server ends waits no longer than what is under way", async () => {
  const stop = new AbortController(), { errors } = counted();
  const sink = waitingWebhookSink({ clock: systemClock, log: silentLog, errors, initialBackoffMs: 60_000, post: () => Promise.reject(new Error("no")) }, { isStrict: true });
  const running = sink.part.run(stop.signal, () => undefined);
  const written = sink.write({} as AuditEvent);
  stop.abort();
  await running;
  expect(await written).toBe(false);
});

test("events of a log that nobody waits for are written when there are enough, and when the server ends", async () => {
  const taken: string[] = [], stop = new AbortController(), { errors } = counted();
  const sink = bufferedLogSink(lines(taken), "json", { batchSizeMax: 2, batchWaitMs: 60_000, bufferSize: 3, throttleQps: 0, throttleBurst: 0, clock: systemClock, errors });
  const running = sink.part.run(stop.signal, () => undefined);
  for (const auditID of ["a", "b", "c"]) expect(sink.write({ auditID } as AuditEvent)).toBeUndefined();
  await expect.poll(() => taken).toEqual(['{"auditID":"a"}', '{"auditID":"b"}']);
  stop.abort();
  await running;
  expect(taken).toHaveLength(3);
});

test("an event that is too large goes without what was sent and answered, and says so; one that is too large even then does not go", async () => {
  const taken: string[] = [], { metrics, errors } = counted();
  await using api = await apiServer({ audit: audited(truncatingSink(logSink(lines(taken), "json"), { bytesMax: 1500, errors }), { level: "RequestResponse" }) });
  for (const value of ["small", "x".repeat(1500)]) await api.ask("POST", MAPS, { body: { metadata: { generateName: "m" }, data: { value } } });
  const last = (): AuditEvent => JSON.parse(taken.at(-1)!) as AuditEvent;
  expect(JSON.parse(taken[1]!)).toMatchObject({ stage: "ResponseComplete", requestObject: { data: { value: "small" } } });
  expect(last()).toMatchObject({ stage: "ResponseComplete", level: "RequestResponse", annotations: { "audit.k8s.io/truncated": "true" } });
  expect(last()).not.toHaveProperty("requestObject");
  expect(last()).not.toHaveProperty("responseObject");
  const before = taken.length;
  expect((await api.ask("GET", MAPS, { query: { fieldManager: "y".repeat(1500) } })).code).toBe(200);
  expect(taken).toHaveLength(before);
  expect(metrics.render()).toContain('apiserver_audit_error_total{plugin="truncate"} 2');
});
