import { expect, test } from "vitest";
import { type ApiServer, apiServer } from "../../../test/api-server.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { statusError } from "../../api/meta/status-error.ts";
import { systemClock } from "../../lifecycle/clock.ts";

const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const BOXES = "/namespaces/default/boxes";
const MERGE = "application/merge-patch+json";
const APPLY = "application/apply-patch+yaml";
const FAILED = "conversion webhook for ops.io/v2, Kind=Box failed: out of order";

interface Spec { readonly size?: number; readonly dims?: { readonly size?: number }; readonly color?: string; readonly odd?: unknown }
interface Side { spec?: Spec; status?: Spec }

/** spec.size of v1 is spec.dims.size of v2, and in the status so too. */
function reshaped({ size, dims, ...rest }: Spec, version: string): Spec {
  const is = size ?? dims?.size;
  return is === undefined ? rest : version === "v2" ? { ...rest, dims: { size: is } } : { ...rest, size: is };
}

class World implements AsyncDisposable {
  api!: ApiServer;
  calls = 0;
  /** Of time, beside what really has. */
  passedMs = 0;
  /** Whether the webhook refuses an object on its way to a version. */
  refuses: (object: ApiObject & Side, apiVersion: string) => boolean = () => false;
  /** What it waits for. */
  held: Promise<void> = Promise.resolve();
  /** What it adds to a spec. */
  adds: Spec = {};
  /** What it forgets of a spec on its way to v2. */
  loses: keyof Spec | undefined;

  async [Symbol.asyncDispose](): Promise<void> { await this.api[Symbol.asyncDispose](); }

  convert(objects: readonly Readonly<ApiObject>[], apiVersion: string): Promise<ApiObject[]> {
    this.calls++;
    return Promise.all((objects as readonly (ApiObject & Side)[]).map(async ({ spec, status, ...object }) => {
      await this.held;
      const version = apiVersion.split("/")[1]!;
      if (this.refuses({ ...object, ...(spec && { spec }) }, apiVersion)) throw statusError({ code: 500, reason: "", message: FAILED });
      const { [version === "v2" && this.loses ? this.loses : "nothing"]: _, ...kept } = (spec ?? {}) as Record<string, unknown>;
      return { ...object, apiVersion, ...(spec && { spec: { ...reshaped(kept, version), ...this.adds } }), ...(status && { status: reshaped(status, version) }) };
    }));
  }

  async ask(method: string, version: string, { type = "application/json", spec, query = {}, name = "b", subresource = "", ...more }: { type?: string; spec?: object; query?: Record<string, string>; name?: string; subresource?: string; status?: object; metadata?: object }): Promise<string> {
    const body = { apiVersion: `ops.io/${version}`, kind: "Box", metadata: { name: "b" }, ...(spec && { spec }), ...more };
    const told = await this.api.ask(method, `/apis/ops.io/${version}${BOXES}${name && `/${name}`}${subresource}`, { headers: { "content-type": type }, query, body });
    return told.code < 300 ? "" : `${told.code} ${told.body.message}`;
  }

  apply(manager: string, version: string, spec: object | undefined, { query = {}, ...more }: { query?: Record<string, string>; subresource?: string; status?: object } = {}): Promise<string> {
    return this.ask("PATCH", version, { type: APPLY, ...(spec && { spec }), ...more, query: { fieldManager: manager, ...query } });
  }

  patch(manager: string, version: string, spec: object): Promise<string> { return this.ask("PATCH", version, { type: MERGE, spec, query: { fieldManager: manager } }); }

  /** Spec and owners, as v2 shows them. */
  async now(): Promise<readonly string[]> {
    const { body: { spec, status, metadata: { managedFields = [] } } } = await this.api.ask("GET", `/apis/ops.io/v2${BOXES}/b`);
    return [JSON.stringify({ ...spec, ...(status && { status }) }), ...(managedFields as { manager: string; operation: string; apiVersion: string; fieldsV1: Record<string, object> }[]).map(({ manager, operation, apiVersion, fieldsV1 }) => `${manager} ${operation} ${apiVersion.split("/")[1]} ${JSON.stringify(fieldsV1["f:spec"] ?? fieldsV1["f:status"])}`).sort()];
  }
}

const shape = (properties: object): object => ({ type: "object", properties: { ...properties, color: { type: "string" } } });
const version = (name: string, side: object, more: object): object => ({ name, served: true, subresources: { status: {} }, schema: { openAPIV3Schema: { type: "object", properties: { spec: side, status: side } } }, ...more });
const SIZE = { type: "integer" };
const VERSIONS = [version("v1", shape({ size: SIZE }), { storage: false }), version("v2", shape({ dims: { type: "object", properties: { size: SIZE } } }), { storage: true })];

async function boxes({ strategy = "Webhook", versions = VERSIONS }: { strategy?: string; versions?: readonly object[] } = {}): Promise<World> {
  const world = new World();
  const asks = strategy === "Webhook";
  const clock = { ...systemClock, uptimeMs: () => systemClock.uptimeMs() + world.passedMs };
  world.api = await apiServer(asks ? { clock, remoteConversion: () => (objects, apiVersion) => world.convert(objects, apiVersion) } : {});
  const webhook = { conversionReviewVersions: ["v1"], clientConfig: { url: "https://x" } };
  const body = { metadata: { name: "boxes.ops.io" }, spec: { group: "ops.io", scope: "Namespaced", names: { kind: "Box", plural: "boxes" }, conversion: { strategy, ...(asks && { webhook }) }, versions } };
  expect((await world.api.ask("POST", CRDS, { body })).code).toBe(201);
  while ((await world.api.ask("GET", `/apis/ops.io/v2${BOXES}`)).code !== 200) await Bun.sleep(1);
  return world;
}

test("fields are owned in the version their manager wrote in, and where a webhook converts they are looked for there", async () => {
  await using world = await boxes();
  expect(await world.apply("one", "v2", { dims: { size: 1 }, color: "red" })).toBe("");
  expect(await world.apply("two", "v1", { size: 2 })).toBe('409 Apply failed with 1 conflict: conflict with "one": .spec.dims.size');
  expect(await world.apply("two", "v1", { size: 2 }, { query: { force: "true", dryRun: "All" } })).toBe("");
  expect(await world.now()).toEqual(['{"color":"red","dims":{"size":1}}', 'one Apply v2 {"f:color":{},"f:dims":{"f:size":{}}}']);
  expect(await world.apply("two", "v1", { size: 2 }, { query: { force: "true" } })).toBe("");
  expect(await world.now()).toEqual(['{"color":"red","dims":{"size":2}}', 'one Apply v2 {"f:color":{}}', 'two Apply v1 {"f:size":{}}']);
  expect(await world.apply("one", "v2", { color: "red" })).toBe("");
  expect(await world.now()).toEqual(['{"color":"red","dims":{"size":2}}', 'one Apply v2 {"f:color":{}}', 'two Apply v1 {"f:size":{}}']);
  expect(await world.apply("two", "v1", { color: "red" })).toBe("");
  expect(await world.now()).toEqual(['{"color":"red"}', 'one Apply v2 {"f:color":{}}', 'two Apply v1 {"f:color":{}}']);
  expect(await world.patch("three", "v1", { size: 5 })).toBe("");
  expect(await world.apply("one", "v2", { dims: { size: 6 }, color: "red" })).toBe('409 Apply failed with 1 conflict: conflict with "three" using ops.io/v1: .spec.size');
});

test("what an applier wanted in one version it gives up in another", async () => {
  await using world = await boxes();
  await world.apply("one", "v1", { size: 1, color: "red" });
  await world.apply("two", "v2", { color: "red" });
  expect(await world.apply("one", "v2", { color: "red" })).toBe("");
  expect(await world.now()).toEqual(['{"color":"red"}', 'one Apply v2 {"f:color":{}}', 'two Apply v2 {"f:color":{}}']);
});

test("who replaces, patches or writes the status takes fields from those who wrote in another version", async () => {
  await using world = await boxes();
  await world.apply("one", "v2", { dims: { size: 1 }, color: "red" });
  await world.patch("two", "v1", { size: 2 });
  expect(await world.now()).toEqual(['{"color":"red","dims":{"size":2}}', 'one Apply v2 {"f:color":{}}', 'two Update v1 {"f:size":{}}']);
  const { body: { metadata } } = await world.api.ask("GET", `/apis/ops.io/v2${BOXES}/b`);
  expect(await world.ask("PUT", "v2", { metadata, spec: { dims: { size: 3 } }, query: { fieldManager: "three" } })).toBe("");
  expect(await world.now()).toEqual(['{"dims":{"size":3}}', 'three Update v2 {"f:dims":{"f:size":{}}}']);
  const status = (manager: string, version: string, status: object, query: Record<string, string> = {}): Promise<string> => world.apply(manager, version, undefined, { subresource: "/status", status, query });
  await status("one", "v2", { dims: { size: 1 } });
  expect(await status("two", "v1", { size: 2 })).toBe('409 Apply failed with 1 conflict: conflict with "one" with subresource "status": .status.dims.size');
  await status("two", "v1", { size: 2 }, { force: "true" });
  expect((await world.now()).slice(1)).toEqual(['three Update v2 {"f:dims":{"f:size":{}}}', 'two Apply v1 {"f:size":{}}']);
});

test("who sends a spec with a status takes nothing from those who wrote it, whatever their version", async () => {
  for (const strategy of ["Webhook", "None"]) {
    await using world = await boxes({ strategy });
    await world.ask("POST", "v1", { name: "", spec: { color: "red" } });
    const before = await world.now();
    expect(await world.ask("PATCH", "v2", { type: MERGE, subresource: "/status", spec: { color: "blue" } })).toBe("");
    expect(await world.now()).toEqual(before);
    expect(await world.ask("PATCH", "v2", { type: MERGE, subresource: "/status", spec: { color: "blue" }, status: { color: "green" } })).toBe("");
    expect((await world.now()).slice(1)).toContain(before[1]);
  }
});

test("no webhook is asked of more than the object itself where all write in one version", async () => {
  await using world = await boxes();
  await world.apply("one", "v2", { dims: { size: 1 } });
  await world.apply("two", "v2", { dims: { size: 2 } }, { query: { force: "true" } });
  await world.patch("three", "v2", { color: "red" });
  expect(world.calls).toBe(0);
});

test("where the webhook fails nothing can be applied, and what is written otherwise has no owners any more", async () => {
  await using world = await boxes();
  await world.apply("one", "v2", { color: "red" });
  await world.apply("two", "v1", { size: 2 });
  world.refuses = () => true;
  expect(await world.apply("one", "v2", { color: "blue" })).toBe(`500 ${FAILED}`);
  world.refuses = ({ spec }) => spec?.color === "blue";
  expect(await world.apply("one", "v2", { color: "blue" })).toBe(`500 failed to prune fields: failed add back owned items: failed to convert merged object at version ops.io/v1: ${FAILED}`);
  expect(await world.apply("three", "v2", { color: "blue" }, { query: { force: "true" } })).toBe(`500 failed to convert new object: ${FAILED}`);
  expect(await world.patch("three", "v2", { color: "blue" })).toBe("");
  expect(await world.now()).toEqual(['{"color":"blue","dims":{"size":2}}']);
});

test("a status that is written while the webhook fails leaves no owners either", async () => {
  await using world = await boxes();
  await world.apply("one", "v2", { color: "red" });
  await world.apply("two", "v1", { size: 2 });
  world.refuses = () => true;
  expect(await world.ask("PATCH", "v2", { type: MERGE, subresource: "/status", status: { color: "red" } })).toBe("");
  expect((await world.now()).slice(1)).toEqual([]);
});

test("what a webhook makes up is in no schema", async () => {
  await using world = await boxes();
  await world.apply("one", "v2", { color: "red" });
  await world.apply("two", "v1", { size: 2 });
  world.adds = { odd: 1 };
  expect(await world.apply("one", "v2", { color: "blue" })).toBe("500 .spec.odd: field not declared in schema");
});

test("a dry run answers with what the object would be when read, also where a conversion loses something", async () => {
  await using world = await boxes();
  await world.apply("one", "v1", { color: "red" });
  world.loses = "color";
  const ask = async (method: string, name: string, query: Record<string, string>, more: object = {}): Promise<Spec> => {
    const { body: { spec } } = await world.api.ask(method, `/apis/ops.io/v1${BOXES}${name}`, { query, headers: { "content-type": method === "POST" ? "application/json" : MERGE }, body: { spec: { size: 3, color: "blue" }, ...more } });
    return spec;
  };
  const created = { apiVersion: "ops.io/v1", kind: "Box", metadata: { name: "c" } };
  for (const query of [{ dryRun: "All" }, {}] as Record<string, string>[]) {
    expect(await ask("PATCH", "/b", query)).toEqual({ size: 3 });
    expect(await ask("POST", "", query, created)).toEqual({ size: 3 });
  }
});

test.each(["None", "Webhook"])("who wrote in a version that is not served any more keeps what is his; without the version nothing can be applied until the owners are forgotten, as by any other write (%s)", async (strategy) => {
  const [v1, v2] = ["v1", "v2"].map((name) => version(name, shape({ size: SIZE, dims: { type: "object", properties: { size: SIZE } } }), { storage: name === "v2" }));
  await using world = await boxes({ strategy, versions: [v1!, v2!] });
  await world.apply("one", "v1", { color: "red" });
  await world.apply("two", "v2", { color: "red" });
  const serve = async (versions: readonly object[]): Promise<void> => {
    expect((await world.api.ask("PATCH", `${CRDS}/boxes.ops.io`, { headers: { "content-type": MERGE }, body: { spec: { versions } } })).code).toBe(200);
    while ((await world.api.ask("GET", `/apis/ops.io/v1${BOXES}`)).code !== 404) await Bun.sleep(1);
  };
  await serve([{ ...v1, served: false }, v2!]);
  expect(await world.apply("two", "v2", { color: "blue" })).toBe('409 Apply failed with 1 conflict: conflict with "one": .spec.color');
  await serve([version("v3", {}, { served: false, storage: false, schema: { openAPIV3Schema: { type: "object" } } }), v2!]);
  const refused = "500 request to convert CR to an invalid group/version: ops.io/v1";
  while (await world.apply("two", "v2", { color: "blue" }) !== refused) await Bun.sleep(1);
  await serve([v2!]);
  expect(await world.apply("two", "v2", { color: "red" }, { query: { force: "true" } })).toBe(refused);
  expect(await world.now()).toEqual(['{"color":"red"}', 'one Apply v1 {"f:color":{}}', 'two Apply v2 {"f:color":{}}']);
  expect(await world.patch("three", "v2", { size: 1 })).toBe("");
  expect(await world.now()).toEqual(['{"color":"red","size":1}']);
  expect(await world.apply("two", "v2", { color: "blue" })).toMatch(/^409 .*conflict with "before-first-apply"/);
});

test("what is atomic in one version only is so for those who write in it", async () => {
  const options = (more: object): object => ({ type: "object", properties: { color: { type: "string" }, options: { type: "object", additionalProperties: { type: "string" }, ...more } } });
  await using world = await boxes({ strategy: "None", versions: [version("v1", options({}), { storage: false }), version("v2", options({ "x-kubernetes-map-type": "atomic" }), { storage: true })] });
  await world.apply("one", "v1", { options: { a: "1" } });
  await world.apply("two", "v2", { color: "red" });
  expect(await world.now()).toEqual(['{"color":"red","options":{"a":"1"}}', 'one Apply v1 {"f:options":{"f:a":{}}}', 'two Apply v2 {"f:color":{}}']);
});

test("of custom resources a collection is only written by who names an object, and one is made wherever it is posted", async () => {
  await using world = await boxes({ strategy: "None" });
  expect(await world.ask("PUT", "v1", { name: "" })).toBe("400 name must be provided");
  expect(await world.ask("PATCH", "v1", { name: "", type: MERGE })).toBe("400 name must be provided");
  expect(await world.ask("PATCH", "v1", { name: "", type: "application/strategic-merge-patch+json" })).toContain("415 the body of the request was in an unknown format");
  expect(await world.ask("POST", "v1", { name: "other", metadata: {} })).toContain("422 Box.ops.io \"\" is invalid: metadata.name: Required value");
  expect(await world.ask("POST", "v1", { name: "other" })).toBe("");
  expect((await world.api.ask("GET", `/apis/ops.io/v1${BOXES}`)).body.items.map(({ metadata: { name } }: ApiObject) => name)).toEqual(["b"]);
  expect(await world.ask("POST", "v1", { subresource: "/status" })).toBe('405 create is not supported on resources of kind "boxes.ops.io"');
  expect(await world.ask("POST", "v1", { type: "text/plain" })).toBe("415 the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf");
});

test("who applies no status owns that there is none", async () => {
  await using world = await boxes({ strategy: "None" });
  await world.apply("one", "v2", { color: "red" });
  expect((await world.api.ask("PATCH", `/apis/ops.io/v2${BOXES}/b/status`, { headers: { "content-type": APPLY }, query: { fieldManager: "two" }, body: { apiVersion: "ops.io/v2", kind: "Box", metadata: { name: "b" }, status: null } })).code).toBe(200);
  expect(await world.now()).toEqual(['{"color":"red"}', 'one Apply v2 {"f:color":{}}', "two Apply v2 {}"]);
});

test("defaults of a version are no fields of an object that was written in another", async () => {
  const versions = [VERSIONS[0]!, version("v2", { type: "object", properties: { dims: { type: "object", properties: { size: SIZE } }, color: { type: "string", default: "red" } } }, { storage: true })];
  await using world = await boxes({ versions: versions.map((one, i) => ({ ...one, storage: i === 0 })) });
  await world.ask("POST", "v1", { name: "", spec: { size: 1 } });
  await world.ask("PATCH", "v1", { type: MERGE, metadata: { managedFields: [{}] } });
  expect(await world.apply("one", "v2", { dims: { size: 2 } }, { query: { force: "true" } })).toBe("");
  expect((await world.now()).slice(1)).toEqual(['before-first-apply Update v2 {".":{},"f:dims":{}}', 'one Apply v2 {"f:dims":{"f:size":{}}}']);
});

test("as long as the webhook fails, who lists or watches is told to try again, and who gets one object why", async () => {
  await using world = await boxes();
  await world.ask("POST", "v2", { name: "", spec: { color: "red" } });
  world.refuses = () => true;
  const BOX = `/apis/ops.io/v1${BOXES}`;
  const told = { code: 429, body: { reason: "TooManyRequests", details: { retryAfterSeconds: 1 }, message: `storage is (re)initializing: failed to list ops.io/v1, Kind=Box: ${FAILED}` } };
  expect(await world.api.ask("GET", BOX)).toMatchObject(told);
  expect(await world.api.ask("GET", BOX, { query: { watch: "1" } })).toMatchObject(told);
  expect(await world.api.ask("GET", `${BOX}/b`)).toMatchObject({ code: 500, body: { message: FAILED } });
  for (const [passedMs, seconds] of [[13_000, 2], [17_000, 6], [60_000, 30]] as const) {
    world.passedMs += passedMs;
    expect(await world.api.ask("GET", BOX)).toMatchObject({ code: 429, body: { details: { retryAfterSeconds: seconds } } });
  }
  world.refuses = () => false;
  expect((await world.api.ask("GET", BOX)).body.items).toHaveLength(1);
  await world.ask("POST", "v2", { name: "", metadata: { name: "new" } });
  world.refuses = () => true;
  expect(await world.api.ask("GET", BOX)).toMatchObject(told); // it has begun anew
});

test("a watch outlives a webhook that fails for a while, and one that fails for longer ends it", async () => {
  await using world = await boxes();
  const BOX = `/apis/ops.io/v1${BOXES}`;
  const { body: { metadata: { resourceVersion } } } = await world.api.ask("GET", BOX);
  const watching = world.api.events(BOX, 3, { query: { resourceVersion } });
  const failing = Promise.withResolvers<void>();
  world.refuses = () => { failing.resolve(); return true; };
  await world.ask("POST", "v2", { name: "", metadata: { name: "one" } });
  await failing.promise;
  world.refuses = () => false;
  await world.ask("POST", "v2", { name: "", metadata: { name: "two" } });
  while (world.calls < 3) await systemClock.sleep(20, world.api.signal);
  world.refuses = () => { world.passedMs += 30_000; return true; };
  await world.ask("POST", "v2", { name: "", metadata: { name: "three" } });
  expect((await watching).map(({ type, object }) => `${type} ${object.apiVersion} ${object.metadata.name}`)).toEqual(["ADDED ops.io/v1 one", "ADDED ops.io/v1 two"]);
});

test("what a selector has no longer is deleted as it was, in the version of the watch", async () => {
  await using world = await boxes();
  const BOX = `/apis/ops.io/v1${BOXES}`;
  const { body: { metadata: { resourceVersion } } } = await world.api.ask("GET", BOX);
  const watching = world.api.events(BOX, 2, { query: { resourceVersion, labelSelector: "a=1" } });
  await world.ask("POST", "v2", { name: "", metadata: { name: "b", labels: { a: "1" } }, spec: { dims: { size: 3 } } });
  await world.ask("PATCH", "v2", { type: MERGE, metadata: { labels: { a: "2" } } });
  expect((await watching).map(({ type, object }) => [type, object.apiVersion, object.metadata.labels, object.spec])).toEqual(["ADDED", "DELETED"].map((type) => [type, "ops.io/v1", { a: "1" }, { size: 3 }]));
});

test("who selects sees one moment, and what is made while a webhook converts comes after it", async () => {
  await using world = await boxes();
  const made = (name: string) => world.ask("POST", "v2", { name: "", metadata: { name } });
  const nameOf = ({ metadata: { name } }: ApiObject): string => name;
  expect(await made("one")).toBe("");
  const { promise, resolve } = Promise.withResolvers<void>();
  world.held = promise;
  const path = `/apis/ops.io/v1${BOXES}`, query = { labelSelector: "a!=b", allowWatchBookmarks: "1" };
  const listing = world.api.ask("GET", path, { query });
  const watching = world.api.events(path, 3, { query });
  await expect.poll(() => world.calls).toBe(2);
  expect(await made("two")).toBe("");
  resolve();
  const { code, body: { items, metadata } } = await listing;
  const events = await watching;
  expect([code, (items as ApiObject[]).map(nameOf)]).toEqual([200, ["one"]]);
  expect((events as { type: string; object: ApiObject }[]).map(({ type, object }) => `${type} ${nameOf(object)}`)).toEqual(["ADDED one", "BOOKMARK undefined", "ADDED two"]);
  expect(events[1].object.metadata.resourceVersion).toBe(metadata.resourceVersion);
});

/** Another version becomes the one that is stored, and versions go. */
async function restored(world: World, versions: readonly object[]): Promise<void> {
  const patch = (path: string, body: object) => world.api.ask("PATCH", `${CRDS}/boxes.ops.io${path}`, { headers: { "content-type": MERGE }, body });
  expect((await patch("/status", { status: { storedVersions: ["v2"] } })).code).toBe(200);
  expect((await patch("", { spec: { versions } })).body.spec?.versions.length).toBe(versions.length);
}

async function gone(world: World, version: string, { name = "b", query = {} }: { readonly name?: string; readonly query?: Record<string, string> }): Promise<string> {
  const told = await world.api.ask("DELETE", `/apis/ops.io/${version}${BOXES}${name && `/${name}`}`, { query });
  return told.code < 300 ? "" : `${told.code} ${told.body.message}`;
}

const OTHERS = VERSIONS.map((one) => ({ ...one, storage: (one as { name: string }).name === "v1" }));

test("what cannot be converted to the stored version is not deleted, and a dry run is none", async () => {
  await using world = await boxes({ versions: OTHERS });
  expect(await world.ask("POST", "v1", { name: "", spec: { size: 1 } })).toBe("");
  await restored(world, VERSIONS);
  world.refuses = (_, apiVersion) => apiVersion === "ops.io/v2";
  let size = 1;
  await expect.poll(() => world.patch("one", "v1", { size: ++size })).toBe(`500 ${FAILED}`); // the definition is in force
  expect(await gone(world, "v1", {})).toBe(`500 ${FAILED}`);
  expect(await gone(world, "v1", { query: { propagationPolicy: "Foreground" } })).toBe(`500 ${FAILED}`);
  expect(await gone(world, "v1", { name: "" })).toBe(`500 ${FAILED}`);
  expect(await gone(world, "v1", { query: { dryRun: "All" } })).toBe("");
  expect(await gone(world, "v2", { name: "" })).toBe(`500 ${FAILED}`); // the list is not from a cache, which would have it tried again
  world.refuses = () => false;
  expect(await gone(world, "v1", {})).toBe("");
});

test("nobody knows what an object means that is stored in a version that is gone", async () => {
  await using world = await boxes({ strategy: "None", versions: OTHERS });
  expect(await world.ask("POST", "v1", { name: "", spec: { color: "red" } })).toBe("");
  await restored(world, VERSIONS);
  await restored(world, VERSIONS.slice(1));
  const told = "request to convert CR from an invalid group/version: ops.io/v1";
  await expect.poll(() => world.ask("GET", "v2", {})).toBe(`500 ${told}`);
  expect(await world.ask("GET", "v2", { name: "" })).toBe(`429 storage is (re)initializing: failed to list ops.io/v2, Kind=Box: ${told}`);
  expect(await world.ask("GET", "v2", { name: "", query: { limit: "1" } })).toBe(`500 ${told}`);
  for (const [name, query] of [["a name", { fieldSelector: "metadata.name=two" }], ["labels", { labelSelector: "a=b", limit: "1" }]] as const)
    expect([name, await world.ask("GET", "v2", { name: "", query })]).toEqual([name, `429 storage is (re)initializing: failed to list ops.io/v2, Kind=Box: ${told}`]);
  expect([await world.ask("PUT", "v2", {}), await gone(world, "v2", {}), await gone(world, "v2", { name: "" })]).toEqual([`500 ${told}`, `500 ${told}`, `500 ${told}`]);
  expect(await gone(world, "v2", { name: "", query: { labelSelector: "a=b" } })).toBe(`429 storage is (re)initializing: failed to list ops.io/v2, Kind=Box: ${told}`);
  expect(await world.patch("one", "v2", { color: "blue" })).toBe(`500 ${told}`);
});
