import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { apiServer } from "../../../test/api-server.ts";
import type { AdmissionRequest } from "../../admission/plugin.ts";
import type { Attributes } from "../../api/request/attributes.ts";
import { unauthorized } from "../../api/meta/status-error.ts";
import { systemClock } from "../../lifecycle/clock.ts";
import { systemRandom } from "../../lifecycle/random.ts";
import { silentLog } from "../../observe/log.ts";
import { metricsRegistry } from "../../observe/metrics.ts";
import { attributesOf } from "../access.ts";
import { apiHandler } from "../handler.ts";
import type { ServerRequest } from "../request.ts";
import type { ServerDeps } from "../scope.ts";
import { requestInfo } from "../request-info.ts";
import { auditErrors, auditor } from "./auditor.ts";
import { type AuditEvent, legacyLine, sourceIps } from "./event.ts";
import { logSink } from "./log-sink.ts";
import { configFor, readPolicy } from "./policy.ts";
import { RotatingFile } from "./rotating-file.ts";
import { webhookSink } from "./webhook-sink.ts";

const POLICY = readPolicy(`
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, users: [system:kube-proxy], verbs: [watch], resources: [{group: "", resources: [endpoints, services]}]}
- {level: None, nonResourceURLs: ["/healthz*", /version]}
- {level: Metadata, resources: [{group: "", resources: [secrets, "pods/*"]}], omitStages: [ResponseStarted]}
- {level: RequestResponse, resources: [{group: "", resources: [configmaps], resourceNames: [one]}], omitManagedFields: true}
- {level: Request, namespaces: [kube-system], userGroups: [dev]}
- {level: None, resources: [{group: "*", resources: ["*/status"]}]}
- {level: Metadata}
`);

function asked(method: string, path: string, { name = "jane", groups = [] as string[] } = {}): Attributes {
  return attributesOf(requestInfo(method, path, new URLSearchParams()), { query: new URLSearchParams() } as ServerRequest, { name, groups });
}

test.each<[string, string, object, string]>([
  ["GET", "/api/v1/watch/endpoints", { name: "system:kube-proxy" }, "None"],
  ["GET", "/api/v1/watch/endpoints", {}, "Metadata"],
  ["GET", "/healthz/etcd", {}, "None"],
  ["GET", "/versions", {}, "Metadata"],
  ["GET", "/api/v1/namespaces/a/pods/b/log", {}, "Metadata"],
  ["GET", "/api/v1/namespaces/a/configmaps/one", {}, "RequestResponse"],
  ["POST", "/api/v1/namespaces/kube-system/configmaps", { groups: ["dev"] }, "Request"],
  ["PATCH", "/apis/apps/v1/namespaces/a/deployments/b/status", {}, "None"],
])("%s %s by %o is recorded at level %s", (method, path, user, level) => expect(configFor(POLICY, asked(method, path, user)).level).toBe(level));

test.each([
  ["kind: Policy", 'no kind "Policy"'],
  ["apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: []", "0 rules"],
  ["apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: All, nonResourceURLs: [a, '/*b'], namespaces: [c]}]", 'rules[0].level: Unsupported value: "All": supported values: "None", "Metadata", "Request", "RequestResponse", rules[0].nonResourceURLs[0]: Invalid value: "a": non-resource URL rules must begin'],
  ["apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{verbs: [get]}]", "rules[0].level: Required value"],
  ["apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, resources: [{group: apps/v1}, {resourceNames: [a]}]}]", 'rules[0].resources.group: Invalid value: "apps/v1": a lowercase RFC 1123 subdomain'],
  ["apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, resources: [{resourceNames: [a]}]}]", 'rules[0].resources.resourceNames: Invalid value: ["a"]: using resourceNames requires at least one resource'],
  ["apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, users: tim}]", "rules[0].users: expected a list"],
])("a policy that cannot be used: %s", (text, error) => expect(() => readPolicy(text)).toThrow(error));

test("what is not known in a policy, or stands in it twice, is passed by and told", () => {
  const told: string[] = [];
  const text = (rule: string) => `apiVersion: audit.k8s.io/v1\nkind: Policy\nmetadata: {name: a}\nrules:\n- level: None\n  resources:\n  - resources: [leases]\n    ${rule}`;
  expect(readPolicy(text("verbs: [watch] # indented too far"), (problem) => void told.push(problem)).rules).toMatchObject([{ level: "None", verbs: [], resources: [{ resources: ["leases"] }] }]);
  readPolicy(`${text("group: a")}\n  level: Request\n  user: [joe]\nstages: []`, (problem) => void told.push(problem));
  readPolicy(text("group: a"), (problem) => void told.push(problem));
  expect(told).toEqual(['unknown field "rules[0].resources[0].verbs"', expect.stringContaining('line 9: key "level" already set in map'), 'unknown field "rules[0].user"', 'unknown field "stages"']);
});

test("a request becomes an event for each stage, with what admission and authorization said of it", () => {
  const events: AuditEvent[] = [];
  const sink = { write: (event: AuditEvent) => void events.push(event), part: { name: "test", run: () => Promise.resolve() } };
  const auditing = auditor({ policy: POLICY, sinks: [sink], clock: systemClock, metrics: metricsRegistry() });
  const request = { path: "/api/v1/namespaces/a/configmaps/one", query: new URLSearchParams("dryRun=All"), remoteAddress: "10.0.0.9", header: (name: string) => ({ "user-agent": "kubectl", "x-forwarded-for": "1.2.3.4" })[name] } as unknown as ServerRequest;
  const record = auditing.begin(request, asked("PUT", request.path, { groups: ["dev"] }), { auditId: "id-1", receivedMs: 0 })!;
  record.impersonated({ name: "joe", groups: ["ops"] }, "impersonate:user-info");
  record.annotate("authorization.k8s.io/decision", "allow");
  record.annotate("authorization.k8s.io/decision", "forbid");
  const object = { metadata: { name: "one", managedFields: [{}] }, data: { a: "1" } };
  record.requestObject(object);
  object.data.a = "2";
  record.respond(200);
  record.responseObject(object);
  record.stage("ResponseComplete");
  expect(events).toEqual([{
    kind: "Event", apiVersion: "audit.k8s.io/v1", level: "RequestResponse", auditID: "id-1", stage: "ResponseComplete", requestURI: "/api/v1/namespaces/a/configmaps/one?dryRun=All", verb: "update",
    user: { username: "jane", groups: ["dev"] }, impersonatedUser: { username: "joe", groups: ["ops"] }, authenticationMetadata: { impersonationConstraint: "impersonate:user-info" }, sourceIPs: ["1.2.3.4", "10.0.0.9"], userAgent: "kubectl",
    objectRef: { resource: "configmaps", namespace: "a", name: "one", apiVersion: "v1" }, responseStatus: { metadata: {}, code: 200 },
    requestObject: { metadata: { name: "one" }, data: { a: "1" } }, responseObject: { metadata: { name: "one" }, data: { a: "2" } },
    requestReceivedTimestamp: expect.stringMatching(/^\d{4}-.*\.\d{6}Z$/), stageTimestamp: expect.any(String), annotations: { "authorization.k8s.io/decision": "allow" },
  }]);
  expect(Object.keys(events[0]!).slice(0, 8)).toEqual(["kind", "apiVersion", "level", "auditID", "stage", "requestURI", "verb", "user"]);
  expect(legacyLine(events[0]!)).toContain('AUDIT: id="id-1" stage="ResponseComplete" ip="1.2.3.4" method="update" user="jane" groups="\\"dev\\"" as="joe" asgroups="\\"ops\\"" user-agent="kubectl" namespace="a" uri="/api/v1/namespaces/a/configmaps/one?dryRun=All" response="200"');
});

test.each<[string | undefined, string | undefined, string]>([
  [undefined, undefined, "10.0.0.9"], ["abc, 1.2.3.4", "zz", "1.2.3.4 10.0.0.9"], ["::1, 01.2.3.4,10.0.0.9", undefined, "::1 1.2.3.4 10.0.0.9"], ["0:0:0:0:0:ffff:1.2.3.4, FE80::A", "1.2.3.4", "1.2.3.4 fe80::a 10.0.0.9"],
  ["1.2.3.4:80, fe80::a%eth0", "5.6.7.8", "5.6.7.8 10.0.0.9"],
])("a request by way of %s and %s has come from %s", (forwardedFor, realIp, addresses) => expect(sourceIps(forwardedFor, realIp, "10.0.0.9").join(" ")).toBe(addresses));

test("of a deletion its options are recorded, and how it went, at any level that tells of them", async () => {
  const events: AuditEvent[] = [];
  const sink = { write: (event: AuditEvent) => void events.push(event), part: { name: "test", run: () => Promise.resolve() } };
  const rules = "rules: [{level: Request, namespaces: [a]}, {level: Metadata}]\nomitStages: [RequestReceived]";
  await using api = await apiServer({ audit: auditor({ policy: readPolicy(`apiVersion: audit.k8s.io/v1\nkind: Policy\n${rules}`), sinks: [sink], clock: systemClock, metrics: metricsRegistry() }) });
  const deletion = async (namespace: string): Promise<AuditEvent | undefined> => {
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    await api.ask("POST", path, { body: { metadata: { name: "gone" } } });
    await api.ask("DELETE", `${path}/gone`, { body: { propagationPolicy: "Background" } });
    return events.at(-1);
  };
  const responseStatus = { metadata: {}, status: "Success", details: { name: "gone", kind: "configmaps", uid: expect.any(String) }, code: 200 };
  expect(await deletion("a")).toMatchObject({ verb: "delete", responseStatus, requestObject: { kind: "DeleteOptions", apiVersion: "meta.k8s.io/__internal", propagationPolicy: "Background" } });
  const told = await deletion("b");
  expect(told).toMatchObject({ verb: "delete", responseStatus });
  expect(told).not.toHaveProperty("requestObject");
});

test("nobody is answered before it is written down what they asked", async () => {
  const directory = mkdtempSync(join(tmpdir(), "audit-"));
  try {
    const path = join(directory, "audit.log");
    const file = new RotatingFile({ path, bytesMax: 1_000_000, filesMax: 0, ageMaxMs: 0, clock: systemClock, log: silentLog });
    const policy = readPolicy("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]");
    await using api = await apiServer({ audit: auditor({ policy, sinks: [logSink(file, "json")], clock: systemClock, metrics: metricsRegistry() }) });
    for (const name of ["a", "b", "c"]) {
      await api.ask("GET", `/api/v1/namespaces/a/configmaps/${name}`);
      expect(readFileSync(path, "utf8").trim().split("\n").map((line) => JSON.parse(line) as AuditEvent).at(-1)).toMatchObject({ stage: "ResponseComplete", objectRef: { name } });
    }
    await file.close();
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("whole numbers that no double holds are recorded with all their digits", async () => {
  const lines: string[] = [];
  const file = { write: (line: string) => { lines.push(line); return Promise.resolve(true); }, close: () => Promise.resolve() };
  await using api = await apiServer({ audit: auditor({ policy: readPolicy("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: RequestResponse}]"), sinks: [logSink(file, "json")], clock: systemClock, metrics: metricsRegistry() }) });
  const body = `{"metadata":{"name":"p"},"spec":{"terminationGracePeriodSeconds":9223372036854775807,"containers":[{"name":"c","image":"i"}]}}`;
  expect(await api.ask("POST", "/api/v1/namespaces/a/pods", { body })).toMatchObject({ code: 201 });
  expect(lines.at(-1)?.match(/"terminationGracePeriodSeconds":9223372036854775807/g)).toHaveLength(2);
});

test("what was sent is recorded with its defaults, in the version it was sent in", async () => {
  const events: AuditEvent[] = [];
  const sink = { write: (event: AuditEvent) => void events.push(event), part: { name: "test", run: () => Promise.resolve() } };
  await using api = await apiServer({ audit: auditor({ policy: readPolicy("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Request}]\nomitStages: [RequestReceived]"), sinks: [sink], clock: systemClock, metrics: metricsRegistry() }) });
  await api.ask("POST", "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers", { body: { metadata: { name: "web" }, spec: { maxReplicas: 3, scaleTargetRef: { kind: "Deployment", name: "web" } } } });
  expect(events.at(-1)?.requestObject).toMatchObject({ apiVersion: "autoscaling/v1", spec: { minReplicas: 1, maxReplicas: 3, targetCPUUtilizationPercentage: 80 } });
});

test("what plug-ins note under a key of another form is left out", async () => {
  const events: AuditEvent[] = [];
  const sink = { write: (event: AuditEvent) => void events.push(event), part: { name: "test", run: () => Promise.resolve() } };
  const policy = readPolicy("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\nomitStages: [RequestReceived]");
  const admit = ({ annotate }: { annotate(key: string, value: string): void }): void => { for (const key of ["w.example.com/k", "w.example.com/", "w.example.com/a/b", "W/k", "k"]) annotate(key, "v"); };
  await using api = await apiServer({ admit, audit: auditor({ policy, sinks: [sink], clock: systemClock, metrics: metricsRegistry() }) });
  await api.ask("POST", "/api/v1/namespaces/a/configmaps", { body: { metadata: { name: "one" } } });
  expect(Object.keys(events.at(-1)!.annotations ?? {}).filter((key) => !key.startsWith("authorization."))).toEqual(["w.example.com/k"]);
});

test("a request that took more than half a second says where its time went, if it was not to last", async () => {
  const events: AuditEvent[] = [];
  const sink = { write: (event: AuditEvent) => void events.push(event), part: { name: "test", run: () => Promise.resolve() } };
  let uptimeMs = 0;
  const clock = { ...systemClock, uptimeMs: () => uptimeMs };
  let took: readonly (readonly ["mutating-webhook" | "validating-webhook", number])[] = [];
  const admit = (request: AdmissionRequest): void => {
    for (const [layer, ms] of took) {
      uptimeMs += ms;
      request.took?.(layer, ms);
    }
    request.annotate("a.example.com/k", "v");
  };
  await using api = await apiServer({ admit, clock, audit: auditor({ policy: readPolicy("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\nomitStages: [RequestReceived]"), sinks: [sink], clock, metrics: metricsRegistry() }) });
  const told = async () => {
    await api.ask("POST", "/api/v1/namespaces/a/configmaps", { body: { metadata: { generateName: "x" } } });
    return Object.entries(events.at(-1)!.annotations!).filter(([key]) => !key.startsWith("authorization."));
  };
  took = [["mutating-webhook", 500]];
  expect(await told()).toEqual([["a.example.com/k", "v"]]);
  took = [["mutating-webhook", 200], ["mutating-webhook", 300.5], ["validating-webhook", 400], ["validating-webhook", 250]];
  expect(await told()).toEqual([
    ["a.example.com/k", "v"], ["apiserver.latency.k8s.io/mutating-webhook", "500.5ms"], ["apiserver.latency.k8s.io/total", "1.1505s"],
    ["apiserver.latency.k8s.io/validating-webhook", "400ms"],
  ]);
});

test("how long it took to find out that somebody may not act as another is told, too", async () => {
  const events: AuditEvent[] = [];
  let uptimeMs = 0;
  const clock = { ...systemClock, uptimeMs: () => uptimeMs };
  const impersonate = async () => {
    uptimeMs += 600;
    throw new Error("no");
  };
  await using api = await apiServer({ impersonate, clock, audit: auditor({ policy: readPolicy("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\nomitStages: [RequestReceived]"), sinks: [{ write: (event: AuditEvent) => void events.push(event), part: { name: "test", run: () => Promise.resolve() } }], clock, metrics: metricsRegistry() }) });
  await api.handler({ method: "GET", path: "/api/v1/pods", query: new URLSearchParams(), header: () => undefined, headers: () => [], webSocketProtocols: [], remoteAddress: "", signal: api.signal, body: () => Promise.reject(new Error("none")) } as unknown as Parameters<typeof api.handler>[0]);
  expect(events.at(-1)!.annotations).toMatchObject({ "apiserver.latency.k8s.io/impersonation": "600ms" });
});

test("what is answered is recorded in the form it was asked for, and what might last has begun even if it comes to nothing", async () => {
  const events: AuditEvent[] = [];
  const sink = { write: (event: AuditEvent) => void events.push(event), part: { name: "test", run: () => Promise.resolve() } };
  const policy = readPolicy("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: RequestResponse, omitManagedFields: true}]\nomitStages: [RequestReceived]");
  await using api = await apiServer({ audit: auditor({ policy, sinks: [sink], clock: systemClock, metrics: metricsRegistry() }) });
  const [MAPS, as] = ["/api/v1/namespaces/a/configmaps", (kind: string) => ({ headers: { accept: `application/json;as=${kind};g=meta.k8s.io;v=v1,application/json` } })];
  await api.ask("POST", MAPS, { body: { metadata: { name: "one" }, data: { a: "1" } } });
  const told = async (path: string, options: object = {}): Promise<Record<string, unknown>> => {
    await api.ask("GET", path, options);
    return events.at(-1)!.responseObject as Record<string, unknown>;
  };
  expect(await told(MAPS)).toMatchObject({ kind: "ConfigMapList", items: [expect.not.objectContaining({ kind: "ConfigMap" })] });
  expect(await told(MAPS, as("Table"))).toMatchObject({ kind: "Table", rows: [{ cells: ["one", 1, expect.any(String)], object: { metadata: expect.not.objectContaining({ managedFields: expect.anything() }) } }] });
  expect(await told(`${MAPS}/one`, as("PartialObjectMetadata"))).toEqual({ kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata: expect.objectContaining({ name: "one" }) });
  await api.ask("GET", "/api/v1/namespaces/a/pods/none/log");
  expect(events.slice(-2).map(({ stage }) => stage)).toEqual(["ResponseStarted", "ResponseComplete"]);
});

test("a file that has grown too large is put aside, and of those the newest are kept", async () => {
  const directory = mkdtempSync(join(tmpdir(), "audit-"));
  try {
    let now = Date.parse("2026-01-31T10:00:00Z");
    const clock = { ...systemClock, nowMs: () => (now += 1) };
    const file = new RotatingFile({ path: join(directory, "audit.log"), bytesMax: 13, filesMax: 2, ageMaxMs: 0, clock, log: silentLog });
    for (const line of ["first", "second line", "third line", "fourth line", "fifth"]) {
      void file.write(line);
      await file.close();
    }
    const names = readdirSync(directory).sort();
    expect(names).toEqual([expect.stringMatching(/^audit-2026-01-31T10-00-00\.\d{3}\.log$/), expect.stringMatching(/^audit-/), "audit.log"]);
    expect(names.map((name) => readFileSync(join(directory, name), "utf8"))).toEqual(["third line\n", "fourth line\n", "fifth\n"]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("files that were put aside go when they are too old by their names, from the start on; one that somebody took away is begun anew", async () => {
  const directory = mkdtempSync(join(tmpdir(), "audit-"));
  try {
    for (const stamp of ["2026-01-29T09-00-00.000", "2026-01-30T11-00-00.000", "not-a-time"]) writeFileSync(join(directory, `audit-${stamp}.log`), "old\n");
    const lost: number[] = [];
    const file = new RotatingFile({ path: join(directory, "audit.log"), bytesMax: 13, filesMax: 0, ageMaxMs: 86_400_000, clock: { ...systemClock, nowMs: () => Date.parse("2026-01-31T10:00:00Z") }, log: silentLog, lost: (lines) => lost.push(lines) });
    await file.write("first");
    expect(readdirSync(directory).sort()).toEqual(["audit-2026-01-30T11-00-00.000.log", "audit-not-a-time.log", "audit.log"]);
    rmSync(join(directory, "audit.log"));
    await file.write("second line");
    expect(readFileSync(join(directory, "audit.log"), "utf8")).toBe("second line\n");
    rmSync(directory, { recursive: true });
    writeFileSync(directory, ""); // where the directory was
    await Promise.all([file.write("third line"), file.write("fourth")]);
    expect(lost).toEqual([2]);
    await file.close();
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("a delivery that is under way when the server ends is not broken off, and what would be tried again goes out with the last", async () => {
  const delivered: string[][] = [];
  const stop = new AbortController();
  const metrics = metricsRegistry();
  let refusals = 1;
  const sink = webhookSink({
    batchSizeMax: 1, batchWaitMs: 1, bufferSize: 2, initialBackoffMs: 60_000, throttleQps: 0, throttleBurst: 1, clock: systemClock, log: silentLog, errors: auditErrors(metrics),
    async post(list, signal) {
      stop.abort();
      await systemClock.sleep(5, new AbortController().signal);
      signal.throwIfAborted();
      if (refusals-- > 0) throw new Error("no");
      delivered.push((list as { items: AuditEvent[] }).items.map(({ auditID }) => auditID));
    },
  });
  for (const auditID of ["a", "b", "c"]) void sink.write({ auditID } as AuditEvent);
  await sink.part.run(stop.signal, () => undefined);
  expect(delivered).toEqual([["a"], ["b"]]);
  expect(metrics.render()).toContain('apiserver_audit_error_total{plugin="buffered"} 1');
});

test("a request is recorded as it came: when, and of a client's name so much", () => {
  const events: AuditEvent[] = [];
  const auditing = auditor({ policy: readPolicy("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]"), sinks: [{ write: (event) => void events.push(event), part: { name: "test", run: () => Promise.resolve() } }], clock: systemClock, metrics: metricsRegistry() });
  const request = { path: "/api", wire: { rawPath: "/%61pi", rawQuery: "a=%20" }, query: new URLSearchParams(), remoteAddress: "10.0.0.9", header: (name: string) => (name === "user-agent" ? "x".repeat(1025) : undefined) } as unknown as ServerRequest;
  auditing.begin(request, asked("GET", "/api"), { auditId: "id", receivedMs: 1000 });
  expect(events).toMatchObject([{ stage: "RequestReceived", requestURI: "/%61pi?a=%20", userAgent: `${"x".repeat(1024)}...TRUNCATED`, requestReceivedTimestamp: "1970-01-01T00:00:01.000000Z", stageTimestamp: "1970-01-01T00:00:01.000000Z" }]);
});

test("events are delivered in lists, again when they were not taken, and the last ones when the server ends", async () => {
  const lists: number[] = [];
  const stop = new AbortController();
  let refusals = 1;
  const taken = Promise.withResolvers<void>();
  const sink = webhookSink({
    batchSizeMax: 2, batchWaitMs: 60_000, bufferSize: 10, initialBackoffMs: 1, throttleQps: 0, throttleBurst: 1, clock: systemClock, log: silentLog, errors: auditErrors(metricsRegistry()),
    post(list) {
      if (refusals-- > 0) return Promise.reject(new Error("no"));
      lists.push((list as { items: unknown[] }).items.length);
      taken.resolve();
      return Promise.resolve();
    },
  });
  const running = sink.part.run(stop.signal, () => undefined);
  for (let i = 0; i < 3; i++) void sink.write({} as AuditEvent);
  await taken.promise;
  stop.abort();
  await running;
  expect(lists).toEqual([2, 1]);
});

test("a receiver that says nothing does not keep the server from ending", async () => {
  const stop = new AbortController(), asked: number[] = [];
  const sink = webhookSink({
    batchSizeMax: 2, batchWaitMs: 60_000, bufferSize: 10, initialBackoffMs: 1, throttleQps: 0, throttleBurst: 1, log: silentLog, errors: auditErrors(metricsRegistry()),
    clock: { ...systemClock, after: (ms, work) => systemClock.after(ms === 10_000 ? 20 : ms, work) },
    post: (list, signal) => new Promise((_resolve, reject) => {
      asked.push(...(list as { items: number[] }).items);
      signal.addEventListener("abort", () => reject(new Error("given up")));
    }),
  });
  const running = sink.part.run(stop.signal, () => undefined);
  for (let i = 0; i < 8; i++) void sink.write(i as unknown as AuditEvent);
  await expect.poll(() => asked).toEqual([0, 1]);
  stop.abort();
  await running;
  expect(asked).toEqual([0, 1]); // and no others after that
});

test("of who is turned away at the door one stage is recorded: that they are answered", async () => {
  const events: AuditEvent[] = [];
  const sink = { write: (event: AuditEvent) => void events.push(event), part: { name: "test", run: () => Promise.resolve() } };
  const policy = readPolicy("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: RequestResponse}]");
  const handler = apiHandler({
    audit: auditor({ policy, sinks: [sink], clock: systemClock, metrics: metricsRegistry() }), authenticator: { authenticate: () => Promise.reject(unauthorized()) }, clock: systemClock, random: systemRandom, log: silentLog, metrics: metricsRegistry(),
  } as unknown as ServerDeps, {});
  for (const search of ["", "timeout=abc"]) await handler({ method: "GET", path: "/api/v1/pods", query: new URLSearchParams(search), remoteAddress: "10.0.0.9", header: () => undefined, signal: new AbortController().signal } as unknown as ServerRequest);
  expect(events.map(({ stage, user, responseStatus, responseObject }) => [stage, user, responseStatus?.message, (responseObject as { code: number }).code])).toEqual([
    ["ResponseStarted", {}, "Unauthorized", 401], ["ResponseStarted", {}, 'invalid timeout specified in the request URL - time: invalid duration "abc"', 400],
  ]);
});
