import { expect, test } from "vitest";
import { eventually, type FakeApi, fakeApi } from "../../../test/fake-api.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import type { ApiObject, OwnerReference } from "../../api/meta/object-meta.ts";
import { statusError } from "../../api/meta/status-error.ts";
import type { ResourceRef } from "../../client/client.ts";
import { clientOver } from "../../client/resource-client.ts";
import { API_SERVICES, CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, EVENTS, NODES } from "../../client/resources.ts";
import { metricsRegistry } from "../../observe/metrics.ts";
import { garbageCollector } from "./garbagecollector.ts";

const WIDGETS: ResourceRef = { group: "example.com", version: "v1", plural: "widgets", kind: "Widget", namespaced: true };

const maps = (api: FakeApi) => api.client.resource(CONFIG_MAPS);
const names = (api: FakeApi) => api.all(CONFIG_MAPS).map(({ metadata }) => metadata.name).sort().join();
const ref = ({ apiVersion, kind, metadata: { name, uid } }: ApiObject, more: Partial<OwnerReference> = {}): OwnerReference => ({ apiVersion, kind, name, uid, ...more });
const NOT_SERVED = statusError({ code: 404, reason: "NotFound", message: "the server could not find the requested resource", details: {} });
const map = (name: string, ownerReferences: OwnerReference[] = [], namespace = "default") => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace, ownerReferences } });

test("what an object owns goes with it, in the background, through all generations", () =>
  withControllers((deps) => [garbageCollector(deps)], async (api, call) => {
    const a = await maps(api).create(map("a"), call);
    const b = await maps(api).create(map("b", [ref(a)]), call);
    const other = await maps(api).create(map("other"), call);
    await maps(api).create(map("c", [ref(b)]), call);
    await maps(api).create(map("shared", [ref(a), ref(other)]), call);
    await maps(api).delete(a, { propagationPolicy: "Background" }, call);
    await eventually(() => names(api), (seen) => seen === "other,shared");
    await eventually(() => api.all(CONFIG_MAPS).find(({ metadata }) => metadata.name === "shared")?.metadata.ownerReferences, (owners) => owners?.length === 1 && owners[0]?.name === "other");
  }));

test("discovery that fails is counted", async () => {
  const registry = metricsRegistry();
  const api = fakeApi();
  let refuse = true;
  api.fail = ({ path }) => (refuse && path === "/apis" ? statusError({ code: 503, reason: "ServiceUnavailable", message: "no" }) : undefined);
  await withControllers((deps) => [garbageCollector({ ...deps, registry })], async () => {
    await eventually(() => registry.render(), (text) => text.includes("garbagecollector_controller_resources_sync_error_total 1\n"));
    refuse = false;
  }, { api });
});

test("what an informer of another version does not show, as one that is behind, and is there all the same, keeps what it owns", async () => {
  const fake = fakeApi(), v1 = { ...WIDGETS, version: "v1" }, v2 = { ...WIDGETS, version: "v2" };
  let asked = 0;
  const client = clientOver({
    watch: (request) => fake.watch(request),
    async call(request) {
      const isOne = request.method === "GET" && request.path === "/apis/example.com/v2/namespaces/default/widgets/one";
      if (isOne) asked++;
      return await fake.call(isOne ? { ...request, path: request.path.replace("v2", "v1") } : request);
    },
  });
  await withControllers((deps) => [garbageCollector(deps)], async (api, call) => {
    const definitions = client.resource(CUSTOM_RESOURCE_DEFINITIONS);
    api.serve(v1);
    const definition = await definitions.create({ apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition", metadata: { name: "widgets.example.com" } } as never, call);
    const widget = await client.resource(v1).create({ apiVersion: "example.com/v1", kind: "Widget", metadata: { name: "one", namespace: "default" } } as never, call);
    const a = await maps(api).create(map("a"), call);
    await maps(api).create(map("owned", [ref(widget), ref(a)]), call);
    await maps(api).delete(a, {}, call);
    await eventually(() => api.all(CONFIG_MAPS).map(({ metadata }) => metadata.ownerReferences?.length), (owners) => owners.join() === "1"); // it knows widgets
    api.serve(v2);
    await definitions.patch(definition, "application/merge-patch+json", { metadata: { labels: { changed: "" } } }, call);
    await eventually(() => asked > 0 || names(api) !== "owned", (over) => over);
    const b = await maps(api).create(map("b"), call);
    await maps(api).create(map("of-b", [ref(b)]), call);
    await maps(api).delete(b, {}, call);
    await eventually(() => names(api), (seen) => !seen.includes("of-b")); // it has been through what was to be looked at
    expect(names(api)).toBe("owned");
  }, { api: { ...fake, client } });
});

test("what was orphaned while nobody looked is found at the start; of owners that exist nothing is touched", async () => {
  await withControllers((deps) => [garbageCollector(deps)], async (api, call) => {
    await eventually(() => names(api), (seen) => seen === "node-owned,plain");
    expect(call.signal.aborted).toBe(false);
  }, { api: await prepared() });

  async function prepared(): Promise<FakeApi> {
    const api = fakeApi();
    const call = { signal: new AbortController().signal };
    const node = await api.client.resource(NODES).create({ apiVersion: "v1", kind: "Node", metadata: { name: "n" }, spec: {} }, call);
    await maps(api).create(map("plain"), call);
    await maps(api).create(map("lost", [{ apiVersion: "v1", kind: "Secret", name: "gone", uid: "no-such" }]), call);
    await maps(api).create(map("wrong-uid", [ref(node, { uid: "other-uid" })]), call);
    await maps(api).create(map("node-owned", [ref(node)]), call);
    return api;
  }
});

test("foreground: dependents first, and only those that block are waited for", () =>
  withControllers((deps) => [garbageCollector(deps)], async (api, call) => {
    const a = await maps(api).create(map("a"), call);
    const b = await maps(api).create({ ...map("b", [ref(a, { blockOwnerDeletion: true })]), metadata: { ...map("b", [ref(a, { blockOwnerDeletion: true })]).metadata, finalizers: ["example.com/slow"] } }, call);
    await maps(api).create(map("c", [ref(b, { blockOwnerDeletion: true })]), call);
    await Bun.sleep(20); // the graph knows them
    await maps(api).delete(a, { propagationPolicy: "Foreground" }, call);
    await eventually(() => names(api), (seen) => seen === "a,b");
    expect(api.all(CONFIG_MAPS).every(({ metadata }) => metadata.deletionTimestamp !== undefined)).toBe(true);
    await maps(api).patch(b, "application/merge-patch+json", { metadata: { finalizers: ["foregroundDeletion"] } }, call);
    await eventually(() => names(api), (seen) => seen === "");
  }));

test("a cycle of blocking owners does not stand for ever", () =>
  withControllers((deps) => [garbageCollector(deps)], async (api, call) => {
    const a = await maps(api).create(map("a"), call);
    const b = await maps(api).create(map("b", [ref(a, { blockOwnerDeletion: true })]), call);
    await maps(api).patch(a, "application/strategic-merge-patch+json", { metadata: { ownerReferences: [ref(b, { blockOwnerDeletion: true })] } }, call);
    await Bun.sleep(20);
    await maps(api).delete(a, { propagationPolicy: "Foreground" }, call);
    await eventually(() => names(api), (seen) => seen === "");
  }));

test("orphaning sets dependents free", () =>
  withControllers((deps) => [garbageCollector(deps)], async (api, call) => {
    const a = await maps(api).create(map("a"), call);
    await maps(api).create(map("b", [ref(a)]), call);
    await Bun.sleep(20);
    await maps(api).delete(a, { propagationPolicy: "Orphan" }, call);
    await eventually(() => names(api), (seen) => seen === "b");
    expect(api.all(CONFIG_MAPS)[0]?.metadata.ownerReferences ?? []).toEqual([]);
  }));

test("an owner in another namespace is no owner: the user is told, and only the wrong reference's object goes", () =>
  withControllers((deps) => [garbageCollector(deps)], async (api, call) => {
    const a = await maps(api).create(map("a"), call);
    await maps(api).create(map("right", [ref(a)]), call);
    await Bun.sleep(20);
    await maps(api).create(map("wrong", [ref(a)], "elsewhere"), call);
    await eventually(() => names(api), (seen) => seen === "a,right");
    const told = await eventually(() => api.all(EVENTS), (all) => all.length > 0);
    expect(told[0]).toMatchObject({ reason: "OwnerRefInvalidNamespace", message: `ownerRef [v1/ConfigMap, namespace: elsewhere, name: a, uid: ${a.metadata.uid}] does not exist in namespace "elsewhere"` });
  }));

test("custom resources are followed as soon as they are served, and patched as they can be", () =>
  withControllers((deps) => [garbageCollector(deps)], async (api, call) => {
    api.serve(WIDGETS);
    api.fail = ({ method, path, contentType }) => (method === "PATCH" && path.includes("widgets") && contentType?.includes("strategic") ? statusError({ code: 415, reason: "UnsupportedMediaType", message: "no" }) : undefined);
    const widgets = api.client.resource(WIDGETS);
    const [a, b] = [await maps(api).create(map("a"), call), await maps(api).create(map("b"), call)];
    const widget = (name: string, ownerReferences: OwnerReference[]) => ({ apiVersion: "example.com/v1", kind: "Widget", metadata: { name, namespace: "default", ownerReferences } });
    await widgets.create(widget("one", [ref(a)]), call);
    await widgets.create(widget("two", [ref(a), ref(b)]), call);
    await api.client.resource(CUSTOM_RESOURCE_DEFINITIONS).create({ apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition", metadata: { name: "widgets.example.com" } } as never, call);
    await maps(api).delete(a, {}, call);
    await eventually(() => api.all(WIDGETS).map(({ metadata }) => [metadata.name, metadata.ownerReferences?.length]), (seen) => JSON.stringify(seen) === '[["two",1]]');
  }));

async function withWidgets(api: FakeApi, call: { readonly signal: AbortSignal }): Promise<void> {
  api.serve(WIDGETS);
  await api.client.resource(CUSTOM_RESOURCE_DEFINITIONS).create({ apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition", metadata: { name: "widgets.example.com" } } as never, call);
}

/** A widget that owns a ConfigMap, of which the collector knows: another owner's reference is gone. */
async function ownerOf(name: string, api: FakeApi, call: { readonly signal: AbortSignal }): Promise<ApiObject> {
  const widget = await api.client.resource(WIDGETS).create({ apiVersion: "example.com/v1", kind: "Widget", metadata: { name: "one", namespace: "default" } } as never, call);
  const a = await maps(api).create(map("a"), call);
  await maps(api).create(map(name, [ref(widget), ref(a)]), call);
  await maps(api).delete(a, {}, call);
  await eventually(() => api.all(CONFIG_MAPS).map(({ metadata }) => metadata.ownerReferences?.length), (owners) => owners.join() === "1");
  return widget;
}

test("an owner is not gone for nobody serving its resource, or its version, just now", () =>
  withControllers((deps) => [garbageCollector(deps)], async (api, call) => {
    let asked = 0;
    await withWidgets(api, call);
    const widget = await ownerOf("before", api, call);
    api.fail = ({ method, path }) => {
      if (method !== "GET" || !path.endsWith("/widgets/one")) return undefined;
      asked++;
      return NOT_SERVED;
    };
    await maps(api).create(map("after", [ref({ ...widget, apiVersion: "example.com/v2" })]), call); // as whoever has just moved to v2 makes it
    await eventually(() => asked > 2 || names(api) !== "after,before", (over) => over);
    expect(names(api)).toBe("after,before");
    api.fail = undefined;
    await api.client.resource(WIDGETS).delete(widget, {}, call);
    await eventually(() => names(api), (seen) => seen === "");
  }));

test("what goes while its kind changes from one version to another takes what it owns along", () =>
  withControllers((deps) => [garbageCollector(deps)], async (api, call) => {
    const definitions = api.client.resource(CUSTOM_RESOURCE_DEFINITIONS);
    api.serve(WIDGETS);
    const definition = await definitions.create({ apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition", metadata: { name: "widgets.example.com" } } as never, call);
    await ownerOf("owned", api, call);
    api.serve({ ...WIDGETS, version: "v2" }); // of which there are none
    await definitions.patch(definition, "application/merge-patch+json", { metadata: { labels: { changed: "" } } }, call);
    await eventually(() => names(api), (seen) => seen === "");
  }));

test("orphaning waits for a dependent whose version nobody serves just now: else it would go with its owner later", () =>
  withControllers((deps) => [garbageCollector(deps)], async (api, call) => {
    let asked = 0;
    await withWidgets(api, call);
    const a = await maps(api).create(map("a"), call);
    const other = await maps(api).create(map("other"), call);
    await api.client.resource(WIDGETS).create({ apiVersion: "example.com/v1", kind: "Widget", metadata: { name: "one", namespace: "default", ownerReferences: [ref(a), ref(other)] } } as never, call);
    await maps(api).delete(other, {}, call);
    const owners = () => (api.all(WIDGETS)[0]?.metadata.ownerReferences ?? []).map(({ name }) => name).join();
    await eventually(owners, (names) => names === "a"); // it knows widgets
    api.fail = ({ method, path }) => {
      if (method !== "PATCH" || !path.endsWith("/widgets/one")) return undefined;
      asked++;
      return NOT_SERVED;
    };
    await maps(api).delete(a, { propagationPolicy: "Orphan" }, call);
    await eventually(() => asked > 2 || names(api) === "", (over) => over);
    expect(names(api)).toBe("a");
    api.fail = undefined;
    await eventually(() => names(api), (seen) => seen === "");
    expect([api.all(WIDGETS).length, owners()]).toEqual([1, ""]);
  }));

test("an object is not gone for nobody serving its version by the time it is to be deleted: what it owns stays", () =>
  withControllers((deps) => [garbageCollector(deps)], async (api, call) => {
    let asked = 0;
    await withWidgets(api, call);
    const a = await maps(api).create(map("a"), call);
    const widget = await api.client.resource(WIDGETS).create({ apiVersion: "example.com/v1", kind: "Widget", metadata: { name: "one", namespace: "default", ownerReferences: [ref(a)] } } as never, call);
    await maps(api).create(map("its", [ref(widget)]), call);
    await Bun.sleep(20); // the graph knows them
    api.fail = ({ method, path }) => {
      if (method !== "DELETE" || !path.endsWith("/widgets/one")) return undefined;
      asked++;
      return NOT_SERVED;
    };
    await maps(api).delete(a, {}, call);
    await eventually(() => asked > 2 || names(api) !== "its", (over) => over);
    expect(names(api)).toBe("its");
    api.fail = undefined;
    await eventually(() => names(api), (seen) => seen === "");
  }));

/** Of a server behind the API server, whose words for what is not there name nothing. */
async function withForeignWidgets(api: FakeApi, call: { readonly signal: AbortSignal }): Promise<void> {
  api.serve(WIDGETS);
  api.fail = ({ method, path }) => (method === "GET" && path.includes("/widgets/") && !api.all(WIDGETS).some(({ metadata }) => path.endsWith(`/${metadata.name}`)) ? NOT_SERVED : undefined);
  await api.client.resource(API_SERVICES).create({ apiVersion: "apiregistration.k8s.io/v1", kind: "APIService", metadata: { name: "v1.example.com" }, spec: { group: "example.com", version: "v1", service: { name: "s", namespace: "a" } } } as never, call);
}

test("an owner that a server of its own says is not there, in whatever words, is gone: what it owned goes", () =>
  withControllers((deps) => [garbageCollector(deps)], async (api, call) => {
    await withForeignWidgets(api, call);
    await maps(api).create(map("owned", [{ apiVersion: "example.com/v1", kind: "Widget", name: "never", uid: "no-such" }]), call);
    await eventually(() => names(api), (seen) => seen === "");
  }));

test("of a server that does not say that it serves the resource nothing is gone, whatever it says of the owner", () =>
  withControllers((deps) => [garbageCollector(deps)], async (api, call) => {
    let asked = 0;
    await withForeignWidgets(api, call);
    const widget = await ownerOf("owned", api, call);
    api.fail = ({ method, path }) => {
      if (method !== "GET" || !path.startsWith("/apis/example.com/v1")) return undefined;
      if (path.endsWith("/widgets/one")) asked++;
      return NOT_SERVED;
    };
    await maps(api).create(map("later", [ref(widget)]), call);
    await maps(api).create(map("other", [ref(widget, { uid: "another" })]), call);
    await eventually(() => asked > 2, (over) => over);
    expect(names(api)).toBe("later,other,owned");
  }));
