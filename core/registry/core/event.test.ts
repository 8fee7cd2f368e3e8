import { afterAll, beforeAll, expect, test } from "vitest";
import { type ApiServer, apiServer } from "../../../test/api-server.ts";

let api: ApiServer;
beforeAll(async () => {
  api = await apiServer();
  await api.ask("POST", "/api/v1/namespaces", { body: { metadata: { name: "a" } } });
});
afterAll(async () => await api[Symbol.asyncDispose]());

const CORE = "/api/v1/namespaces/a/events", EVENTS = "/apis/events.k8s.io/v1/namespaces/a/events";
const regarding = { kind: "Pod", namespace: "a", name: "p" };
const event = { metadata: { name: "e" }, regarding, type: "Normal", reason: "R", note: "n", action: "A", reportingController: "a.b/c", reportingInstance: "i", eventTime: "2026-01-01T00:00:00.000000Z" };

test.each<[what: string, change: object, errors: string]>([
  ["no time", { eventTime: null }, "eventTime: Required value"],
  ["a type of its own", { type: "Odd" }, 'type: Invalid value: "": has invalid value: Odd'],
  ["what older clients say", { deprecatedCount: 1, deprecatedFirstTimestamp: "2026-01-01T00:00:00Z", deprecatedSource: { host: "h" } },
    '[firstTimestamp: Invalid value: "": needs to be unset, count: Invalid value: "": needs to be unset, source: Invalid value: "": needs to be unset]'],
  ["a series of one", { series: { count: 1 } }, '[series.count: Invalid value: "": should be at least 2, series.lastObservedTime: Required value]'],
  ["more than 1,024 bytes of a note", { note: "ü".repeat(513) }, 'message: Invalid value: "": can have at most 1024 characters'],
  ["nobody who reports it", { reportingController: "-a" }, expect.stringContaining('reportingController: Invalid value: "-a"') as string],
  ["a name that is none", { metadata: { name: "A_b" } }, expect.stringContaining('metadata.name: Invalid value: "A_b"') as string],
])("events.k8s.io is strict: %s", async (_, change, errors) => {
  const { code, body } = await api.ask("POST", EVENTS, { query: { dryRun: "All" }, body: { ...event, ...change } });
  expect([code, (body as { message: string }).message.replace(/^.*? is invalid: /, "")]).toEqual([422, errors]);
});

test("the core group is not, for events as well as for their names and finalizers", async () => {
  const told = await api.ask("POST", CORE, { query: { dryRun: "All" }, body: { metadata: { name: "A_b", finalizers: ["a"] }, involvedObject: regarding, type: "Odd", count: 1 } });
  expect(told).toMatchObject({ code: 201, body: { metadata: { name: "A_b", finalizers: ["a"] } } });
  expect((await api.ask("POST", CORE, { query: { dryRun: "All" }, body: { metadata: { name: "a/b" }, involvedObject: regarding } })).body.message).toBe(`Event "a/b" is invalid: metadata.name: Invalid value: "a/b": may not contain '/'`);
});

test("of the core group's events what is wrong with their metadata is told when nothing else is wrong", async () => {
  const told = async (involvedObject: object) => (await api.ask("POST", CORE, { body: { metadata: { name: "odd", labels: { "a b": "c" } }, involvedObject } })).body.details.causes.map(({ field }: { field: string }) => field) as string[];
  expect([await told({ namespace: "b" }), await told(regarding)]).toEqual([["involvedObject.namespace"], ["metadata.labels"]]);
});

test("an update's causes have what is wrong with its metadata twice, also of the core group's events", async () => {
  await api.ask("POST", CORE, { body: { metadata: { name: "labelled" }, involvedObject: regarding } });
  const { body } = await api.ask("PATCH", `${CORE}/labelled`, { headers: { "content-type": "application/merge-patch+json" }, body: { metadata: { labels: { "a b": "c" } } } });
  expect(body.details.causes.map(({ field }: { field: string }) => field)).toEqual(["metadata.labels", "metadata.labels"]);
});

test.each([
  ["/apis/storage.k8s.io/v1/volumeattachments", { spec: { attacher: "a.b", nodeName: "n", source: { persistentVolumeName: "p" } } }],
  ["/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies", { spec: { matchConstraints: { resourceRules: [{ apiGroups: ["a"], apiVersions: ["v1"], operations: ["CREATE"], resources: ["b"] }] }, validations: [{ expression: "true" }] } }],
])("of the status of %s they have it once", async (at, given) => {
  await api.ask("POST", at, { body: { metadata: { name: "own" }, ...given } });
  const { body } = await api.ask("PATCH", `${at}/own/status`, { headers: { "content-type": "application/merge-patch+json" }, body: { metadata: { uid: "other" } } });
  expect(body.details.causes.map(({ field }: { field: string }) => field)).toEqual(["metadata.uid"]);
});

test("what has been sent through events.k8s.io stays so, but for its series", async () => {
  await api.ask("POST", EVENTS, { body: event });
  const patch = (body: object) => api.ask("PATCH", `${EVENTS}/e`, { headers: { "content-type": "application/merge-patch+json" }, body });
  expect((await patch({ note: "other" })).body.message).toBe('Event "e" is invalid: message: Invalid value: "other": field is immutable');
  const empty = '"UID":"","APIVersion":"","ResourceVersion":"","FieldPath":""';
  expect((await patch({ related: { kind: "X" } })).body.message).toBe(`Event "e" is invalid: related: Invalid value: {"Kind":"X","Namespace":"","Name":"",${empty}}: field is immutable`);
  expect((await patch({ type: null })).body.message).toBe('Event "e" is invalid: type: Invalid value: "": field is immutable');
  expect((await patch({ series: { count: 2, lastObservedTime: "2026-01-01T00:00:00.000000Z" } })).code).toBe(200);
});

test("an event goes at once, whatever becomes of dependents", async () => {
  for (const propagationPolicy of ["Foreground", "Orphan"]) {
    await api.ask("POST", EVENTS, { body: { ...event, metadata: { name: "gone" } } });
    expect((await api.ask("DELETE", `${CORE}/gone`, { query: { propagationPolicy } })).body.status).toBe("Success");
    expect((await api.ask("GET", `${CORE}/gone`)).code).toBe(404);
  }
});

test("an event that is not there, or there already, is told of by the group it was asked for in", async () => {
  const told = async (method: string, path: string, body?: object) => (await api.ask(method, path, { body })).body.message as string;
  expect([await told("GET", `${EVENTS}/none`), await told("GET", `${CORE}/none`)]).toEqual(['events.events.k8s.io "none" not found', 'events "none" not found']);
  await api.ask("POST", CORE, { body: { metadata: { name: "both" }, involvedObject: regarding } });
  expect(await told("POST", EVENTS, { ...event, metadata: { name: "both" } })).toBe('events.events.k8s.io "both" already exists');
  expect((await api.ask("DELETE", `${EVENTS}/both`)).body.details).toMatchObject({ group: "events.k8s.io", kind: "events" });
  expect(await told("GET", `${CORE}/both`)).toBe('events "both" not found');
});
