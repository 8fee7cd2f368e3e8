import { afterAll, beforeAll, expect, test } from "vitest";
import { systemClock } from "../../lifecycle/clock.ts";
import { apiServer, type ApiServer } from "../../../test/api-server.ts";

let api: ApiServer;
const MAPS = "/api/v1/namespaces/a/configmaps";
const NAMES = ["m0", "m1", "m2", "m3", "m4"];
const create = (name: string, labels: object = {}) => api.ask("POST", MAPS, { body: { metadata: { name, labels } } });

beforeAll(async () => {
  api = await apiServer();
  for (const name of NAMES) await create(name);
});
afterAll(() => api[Symbol.asyncDispose]());

test("a watch from the future is told to list again, once that does not come", async () => {
  const [event] = await api.events(MAPS, 1, { query: { resourceVersion: "1000000" } });
  expect([event.type, event.object.code, event.object.reason]).toEqual(["ERROR", 410, "Expired"]);
  expect(event.object.message).toMatch(/^Too large resource version: 1000000, current: \d+$/);
});

test("a streaming list from the future says in its first event that there is no such version", async () => {
  const [event] = await api.events(MAPS, 1, { query: { resourceVersion: "1000000", sendInitialEvents: "true", resourceVersionMatch: "NotOlderThan" } });
  expect([event.type, event.object.code, event.object.details.causes]).toEqual(["ERROR", 504, [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }]]);
});

test("a watch of version 0 that wants no initial events begins now", async () => {
  const watched = api.events(MAPS, 1, { query: { resourceVersion: "0", sendInitialEvents: "false", resourceVersionMatch: "NotOlderThan" } });
  await create("after-zero");
  expect((await watched).map(({ type, object }) => [type, object.metadata.name])).toEqual([["ADDED", "after-zero"]]);
  await api.ask("DELETE", `${MAPS}/after-zero`);
});

test("a watch tells what happened after a version, as its selector sees it", async () => {
  const { body } = await api.ask("GET", MAPS);
  const watched = api.events(MAPS, 4, { query: { resourceVersion: body.metadata.resourceVersion, labelSelector: "seen=yes" } });
  await create("w", { seen: "no" });
  const label = (seen: string) => api.ask("PATCH", `${MAPS}/w`, { headers: { "content-type": "application/merge-patch+json" }, body: { metadata: { labels: { seen } } } });
  await label("yes");
  await api.ask("PATCH", `${MAPS}/w`, { headers: { "content-type": "application/merge-patch+json" }, body: { data: { a: "1" } } });
  const left = await label("no");
  await label("yes");
  const events = await watched;
  expect(events.map(({ type, object }) => [type, object.metadata.labels.seen, object.data])).toEqual([["ADDED", "yes", undefined], ["MODIFIED", "yes", { a: "1" }], ["DELETED", "yes", { a: "1" }], ["ADDED", "yes", { a: "1" }]]);
  expect(events[2].object.metadata.resourceVersion).toBe(left.body.metadata.resourceVersion);
  await api.ask("DELETE", `${MAPS}/w`);
});

test("without a version, a watch begins with what there is; a streaming list says when that was all", async () => {
  expect((await api.events(MAPS, 5)).map(({ object }) => object.metadata.name)).toEqual(NAMES);
  for (const query of [{ sendInitialEvents: "true", resourceVersionMatch: "NotOlderThan" }, {}, { resourceVersion: "0" }]) {
    const events = await api.events(MAPS, 6, { query: { ...query, allowWatchBookmarks: "true" } });
    expect(events.map(({ type }) => type)).toEqual(["ADDED", "ADDED", "ADDED", "ADDED", "ADDED", "BOOKMARK"]);
    expect(events[5].object).toEqual({ kind: "ConfigMap", apiVersion: "v1", metadata: { resourceVersion: expect.stringMatching(/^\d+$/), annotations: { "k8s.io/initial-events-end": "true" } } });
  }
});

test("a bookmark is an object of its kind, with what each of them must have", async () => {
  for (const [path, kind, rest] of [["/api/v1/pods", "Pod", { spec: { containers: null }, status: {} }], [MAPS, "ConfigMap", {}]] as const) {
    const events = await api.events(path, 1, { query: { allowWatchBookmarks: "1", labelSelector: "nobody=has" } });
    expect(events).toEqual([{ type: "BOOKMARK", object: { kind, apiVersion: "v1", metadata: { resourceVersion: expect.stringMatching(/^\d+$/), annotations: { "k8s.io/initial-events-end": "true" } }, ...rest } }]);
  }
});

test("a watch of less than no time is over before it begins", async () => {
  expect(await api.events(MAPS, 1, { query: { timeoutSeconds: "-5" } })).toEqual([]);
});

test("a watch of what is forgotten says so as its only event", async () => {
  let skewMs = 0;
  await using api = await apiServer({ clock: { ...systemClock, uptimeMs: () => systemClock.uptimeMs() + skewMs } });
  const make = (name: string) => api.ask("POST", "/api/v1/namespaces/x/secrets", { body: { metadata: { name } } });
  for (let i = 0; i < 1100; i++) await make(`s${i}`);
  const [early] = await api.events("/api/v1/secrets", 1, { query: { resourceVersion: "1" } });
  expect(early).toMatchObject({ type: "ADDED", object: { metadata: { name: "s0" } } });
  skewMs = 80_000;
  await make("late");
  const [event] = await api.events("/api/v1/secrets", 1, { query: { resourceVersion: "1" } });
  expect(event).toMatchObject({ type: "ERROR", object: { kind: "Status", code: 410, reason: "Expired", message: expect.stringMatching(/^too old resource version: 1 \(\d+\)$/) } });
});

test("watchers of one resource that asked for different things each get their own, at the same moment", async () => {
  const { body } = await api.ask("GET", MAPS);
  const watched = (accept: string) => api.events(MAPS, 2, { query: { resourceVersion: body.metadata.resourceVersion }, headers: { accept } });
  const both = [watched("application/json"), watched("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"), watched("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1beta1"), watched("application/json")];
  await create("together");
  await api.ask("DELETE", `${MAPS}/together`);
  const shown = (await Promise.all(both)).map((events) => events.map(({ type, object }) => `${type} ${object.apiVersion} ${object.kind}`));
  const metadata = (version: string) => ["ADDED", "DELETED"].map((type) => `${type} meta.k8s.io/${version} PartialObjectMetadata`);
  expect(shown).toEqual([["ADDED v1 ConfigMap", "DELETED v1 ConfigMap"], metadata("v1"), metadata("v1beta1"), ["ADDED v1 ConfigMap", "DELETED v1 ConfigMap"]]);
});

test("a watch ends after the time that was set for all, at the earliest", async () => {
  await using own = await apiServer({ times: { watchMsMin: 50 } });
  expect(await own.events(MAPS, 1, { query: { watch: "true" } })).toEqual([]);
});

test("a watch that takes bookmarks has its last one shortly before its end", async () => {
  const fast = 20;
  await using api = await apiServer({ clock: { ...systemClock, uptimeMs: () => systemClock.uptimeMs() * fast, after: (ms, ring) => systemClock.after(ms / fast, ring) } });
  const { body } = await api.ask("GET", MAPS);
  const startMs = systemClock.uptimeMs();
  const [bookmark] = await api.events(MAPS, 1, { query: { resourceVersion: body.metadata.resourceVersion, allowWatchBookmarks: "true", timeoutSeconds: "10" } });
  expect([bookmark.type, systemClock.uptimeMs() - startMs >= 8_000 / fast - 1]).toEqual(["BOOKMARK", true]);
});

test.each([["application/json"], ["application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"], ["application/json;as=Table;v=v1;g=meta.k8s.io"]])("how long the events of a watch are is measured, as they are sent: %s", async (accept) => {
  await using own = await apiServer();
  for (const name of ["a", "b"]) await own.ask("POST", MAPS, { body: { metadata: { name } } });
  const events = await own.events(MAPS, 3, { headers: { accept }, query: { allowWatchBookmarks: "1" } });
  const told = Object.fromEntries(own.metrics.render().split("\n").filter((line) => /^apiserver_watch_events_sizes_(sum|count)\{group="",resource="configmaps",version="v1"\}/.test(line)).map((line) => [line.replace(/\{.*/, ""), Number(line.split(" ")[1])]));
  expect(told).toEqual({ apiserver_watch_events_sizes_count: 3, apiserver_watch_events_sizes_sum: events.reduce((sum, event) => sum + Buffer.byteLength(`${JSON.stringify(event).replace(/[<>]/g, "\\u003c")}\n`), 0) });
});

test("an age in a watch of Tables is that of its event: what is made an hour after the watch began is new", async () => {
  let hours = 0;
  await using own = await apiServer({ clock: { ...systemClock, nowMs: () => systemClock.nowMs() + hours * 3_600_000 } });
  await own.ask("POST", MAPS, { body: { metadata: { name: "old" } } });
  const events = own.events(MAPS, 3, { headers: { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" } });
  await expect.poll(() => own.metrics.render()).toContain('apiserver_watch_events_sizes_count{group="",resource="configmaps",version="v1"} 1\n');
  hours = 1;
  await own.ask("POST", MAPS, { body: { metadata: { name: "new" } } });
  await own.ask("PATCH", `${MAPS}/old`, { body: { data: { a: "1" } }, headers: { "content-type": "application/merge-patch+json" } });
  const ages = (await events as { object: { rows: { cells: string[] }[] } }[]).map(({ object }) => object.rows[0]!.cells.at(-1));
  expect(ages).toEqual([expect.stringMatching(/^\ds$/), expect.stringMatching(/^\ds$/), "60m"]);
});
