import { expect, test } from "vitest";
import { fakeApi } from "../../../test/fake-api.ts";
import { inProcessServer } from "../../../test/in-process-server.ts";
import type { ConfigMap } from "../../api/gen/core.v1.ts";
import { objectKey } from "../../api/meta/object-meta.ts";
import { statusError } from "../../api/meta/status-error.ts";
import type { Client } from "../../client/client.ts";
import { type Events, silentEvents } from "../../client/events.ts";
import { CONFIG_MAPS } from "../../client/resources.ts";
import { type Clock, systemClock } from "../../lifecycle/clock.ts";
import { silentLog } from "../../observe/log.ts";
import { addonsController } from "./addons.ts";

const map = (name: string, value = "1"): string => `---\napiVersion: v1\nkind: ConfigMap\nmetadata: { name: ${name} }\ndata: { value: "${value}" }\n`;

/** A directory that is not one, the controller over it, and what it says. */
async function world(work: (world: { readonly client: Client; readonly files: Map<string, string>; readonly said: string[]; readonly signal: AbortSignal; bring(name: string): Promise<unknown>; names(): Promise<string[]> }) => Promise<void>) {
  const stop = new AbortController(), { signal } = stop;
  const server = await inProcessServer({ signal });
  const client = server.client("test");
  const files = new Map<string, string>(), said: string[] = [];
  const events: Events = { ...silentEvents, from: () => ({ event: (_, type, reason, message) => void said.push(`${type} ${reason} ${message}`) }) };
  const controller = addonsController({ client, events, clock: systemClock, files: { stamps: () => Promise.resolve(files), read: (name) => Promise.resolve(files.get(name)) } });
  const names = async (): Promise<string[]> => (await client.resource(CONFIG_MAPS).list({ namespace: "default" }, { signal })).items.map(({ metadata, data }) => `${metadata.name}=${data?.["value"]}`);
  await work({ client, files, said, signal, names, bring: (name) => controller.reconcile(objectKey("", name), { signal, log: silentLog }) });
  stop.abort();
  await server.ended.catch(() => undefined);
}

const inventory = async (client: Client, signal: AbortSignal): Promise<ConfigMap["data"]> =>
  (await client.resource(CONFIG_MAPS).get({ metadata: { namespace: "kube-system", name: "coracle-manifests" } }, { signal })).data;

test("a file is applied; what it no longer asks for is deleted; what is gone or empty says nothing", () => world(async ({ client, files, said, signal, bring, names }) => {
  files.set("shop.yaml", map("a") + map("b"));
  expect(await bring("shop.yaml")).toBeUndefined();
  expect(await names()).toEqual(["a=1", "b=1"]);
  expect(await inventory(client, signal)).toEqual({ "shop.yaml": "v1 ConfigMap default/a\nv1 ConfigMap default/b" });

  files.set("shop.yaml", map("b", "2"));
  await bring("shop.yaml");
  expect(await names()).toEqual(["b=2"]);
  expect(said).toEqual(["Normal AppliedManifest shop.yaml: 2 applied", "Normal AppliedManifest shop.yaml: 1 applied, 1 deleted"]);

  files.set("shop.yaml", "\0\0\0\n");
  expect(await bring("shop.yaml")).toEqual({ againInMs: expect.any(Number) as number });
  files.delete("shop.yaml");
  expect(await bring("shop.yaml")).toBeUndefined();
  expect(await names()).toEqual(["b=2"]);

  files.set("shop.yaml", "# nothing any more\n");
  await bring("shop.yaml");
  expect(await names()).toEqual([]);
}));

test("a file may be called as people call files, and lie deeper", () => world(async ({ client, files, said, signal, bring, names }) => {
  files.set("site/my shop (1).yaml", map("a"));
  await bring("site/my shop (1).yaml");
  files.set("site/my shop (1).yaml", map("b"));
  await bring("site/my shop (1).yaml");
  expect([await names(), said.at(-1)]).toEqual([["b=1"], "Normal AppliedManifest site/my shop (1).yaml: 1 applied, 1 deleted"]);
  expect(await inventory(client, signal)).toEqual({ "site_.2fmy_.20shop_.20_.281_.29.yaml": "v1 ConfigMap default/b" });
}));

test("what moves to another file stays", () => world(async ({ files, bring, names }) => {
  files.set("one.yaml", map("a") + map("b"));
  await bring("one.yaml");
  files.set("one.yaml", map("a"));
  files.set("two.yaml", map("b"));
  await bring("one.yaml");
  expect(await names()).toEqual(["a=1", "b=1"]);
  await bring("two.yaml");
  files.set("two.yaml", "# gone\n");
  await bring("two.yaml");
  expect(await names()).toEqual(["a=1"]);
}));

test("what is no longer asked for is deleted, be it that the version it was asked for in is served no more", async () => {
  const api = fakeApi(), call = { signal: new AbortController().signal };
  const widgets = { group: "example.com", version: "v1", plural: "widgets", kind: "Widget", namespaced: true };
  const make = async (version: string): Promise<unknown> => {
    api.serve({ ...widgets, version });
    return await api.client.resource({ ...widgets, version }).create({ apiVersion: `example.com/${version}`, kind: "Widget", metadata: { name: "one", namespace: "default" } }, call);
  };
  const files = new Map([["a.yaml", "{ apiVersion: example.com/v1, kind: Widget, metadata: { name: one } }"]]);
  const controller = addonsController({ client: api.client, events: silentEvents, clock: systemClock, files: { stamps: () => Promise.resolve(files), read: (name) => Promise.resolve(files.get(name)) } });
  const bring = async (): Promise<unknown> => await controller.reconcile(objectKey("", "a.yaml"), { ...call, log: silentLog });
  await make("v1");
  expect(await bring()).toBeUndefined();

  await make("v2"); // the same, as the API has it
  api.fail = ({ path }) => (path.startsWith("/apis/example.com/v1/") ? statusError({ code: 404, reason: "NotFound", message: "the server could not find the requested resource", details: {} }) : undefined);
  files.set("a.yaml", "# nothing");
  expect(await bring()).toBeUndefined();
  expect(api.all({ ...widgets, version: "v2" })).toEqual([]);
});

test("what is gone already is gone, in whatever words its server says so", async () => {
  const api = fakeApi(), call = { signal: new AbortController().signal };
  const widgets = { group: "example.com", version: "v1", plural: "widgets", kind: "Widget", namespaced: true };
  api.serve(widgets);
  const widget = (name: string): string => `{ apiVersion: example.com/v1, kind: Widget, metadata: { name: ${name} } }`;
  for (const name of ["one", "two"]) await api.client.resource(widgets).create({ apiVersion: "example.com/v1", kind: "Widget", metadata: { name, namespace: "default" } }, call);
  const files = new Map([["a.yaml", `${widget("one")}\n---\n${widget("two")}`]]);
  const controller = addonsController({ client: api.client, events: silentEvents, clock: systemClock, files: { stamps: () => Promise.resolve(files), read: (name) => Promise.resolve(files.get(name)) } });
  const bring = async (): Promise<unknown> => await controller.reconcile(objectKey("", "a.yaml"), { ...call, log: silentLog });
  expect(await bring()).toBeUndefined();
  await api.client.resource(widgets).delete({ metadata: { name: "one", namespace: "default" } }, {}, call);
  api.fail = ({ path }) => (path.endsWith("/widgets/one") ? statusError({ code: 404, reason: "NotFound", message: "no such widget" }) : undefined);
  files.set("a.yaml", "# nothing");
  expect(await bring()).toBeUndefined();
  expect(api.all(widgets)).toEqual([]);
});

test("what cannot be deleted yet is tried again, as what a group that does not answer may hold, and keeps nothing else from going", async () => {
  const api = fakeApi(), call = { signal: new AbortController().signal };
  const widgets = { group: "example.com", version: "v1", plural: "widgets", kind: "Widget", namespaced: true };
  api.serve(widgets);
  const files = new Map([["a.yaml", `{ apiVersion: example.com/v1, kind: Widget, metadata: { name: one } }\n${map("a")}`]]);
  const bring = (): ((name: string) => Promise<unknown>) => {
    const controller = addonsController({ client: api.client, events: silentEvents, clock: systemClock, files: { stamps: () => Promise.resolve(files), read: (name) => Promise.resolve(files.get(name)) } });
    return async (name) => await controller.reconcile(objectKey("", name), { ...call, log: silentLog });
  };
  await api.client.resource(widgets).create({ apiVersion: "example.com/v1", kind: "Widget", metadata: { name: "one", namespace: "default" } }, call); // for what makes objects of what is applied is not there
  await api.client.resource(CONFIG_MAPS).create({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a", namespace: "default" } }, call);
  expect(await bring()("a.yaml")).toBeUndefined();

  files.set("a.yaml", "# nothing");
  api.fail = ({ path }) => (path.startsWith("/apis/example.com/v1") ? statusError({ code: 503, reason: "ServiceUnavailable", message: "no" }) : undefined);
  const again = bring(); // another process
  expect(await again("a.yaml")).toEqual({ againInMs: expect.any(Number) as number });
  expect([api.all(widgets).length, api.all(CONFIG_MAPS).some(({ metadata }) => metadata.name === "a")]).toEqual([1, false]);
  api.fail = undefined;
  expect(await again("a.yaml")).toBeUndefined();
  expect(api.all(widgets)).toEqual([]);
});

test("nothing is deleted while another file cannot be read, or is empty: it may be what asks for it now", () => world(async ({ files, said, bring, names }) => {
  files.set("a.yaml", map("moves") + map("stays"));
  await bring("a.yaml");
  files.set("a.yaml", map("stays"));
  for (const [broken, why] of [[`${map("moves")}---\n{ not: [closed`, "cannot be read"], ["", "is empty"]] as const) {
    files.set("b.yaml", broken);
    expect(await bring("a.yaml")).toEqual({ againInMs: expect.any(Number) as number });
    expect(await names()).toEqual(["moves=1", "stays=1"]);
    expect(said.at(-1)).toBe(`Warning ApplyManifestFailed a.yaml: nothing is deleted as long as b.yaml ${why}`);
  }
  files.set("b.yaml", "# nothing");
  await bring("a.yaml");
  expect(await names()).toEqual(["stays=1"]);
}));

test("what fails is said once and tried again; the rest is made, and nothing is deleted meanwhile", () => world(async ({ files, said, bring, names }) => {
  files.set("shop.yaml", map("a") + map("b"));
  await bring("shop.yaml");
  files.set("shop.yaml", `${map("c")}---\napiVersion: example.com/v1\nkind: Boat\nmetadata: { name: x }\n`);
  expect(await bring("shop.yaml")).toEqual({ againInMs: expect.any(Number) as number });
  await bring("shop.yaml");
  expect(await names()).toEqual(["a=1", "b=1", "c=1"]);
  expect(said.slice(1)).toEqual(['Warning ApplyManifestFailed shop.yaml: Boat x: no matches for kind "Boat" in version "example.com/v1"']);
  files.set("shop.yaml", map("c"));
  await bring("shop.yaml");
  expect(await names()).toEqual(["c=1"]);
  expect(said.at(-1)).toBe("Normal AppliedManifest shop.yaml: 1 applied, 2 deleted");
}));

test("a file that is still being written is left alone until it has come to rest", async () => {
  const stamps = new Map([["a.yaml", "1"]]);
  const alarms: (() => void)[] = [];
  const clock: Clock = { ...systemClock, after: (_, work) => { alarms.push(work); return { cancel: () => undefined }; } };
  const controller = addonsController({ client: { resource: () => undefined as never, request: () => Promise.reject(new Error("nothing is asked")) }, events: silentEvents, clock, files: { stamps: () => Promise.resolve(new Map(stamps)), read: () => Promise.resolve(undefined) } });
  const told: string[] = [];
  const end = controller.watches[0]!.subscribe((key) => void told.push(key));
  const scan = async (): Promise<void> => { alarms.shift()!(); await Bun.sleep(1); };
  await scan();
  expect(told).toEqual([]);
  stamps.set("a.yaml", "2");
  await scan();
  expect(told).toEqual([]);
  await scan();
  await scan();
  expect(told).toEqual(["a.yaml"]);
  stamps.set("a.yaml", "3");
  await scan();
  await scan();
  expect(told).toEqual(["a.yaml", "a.yaml"]);
  end();
});
