import { rmSync } from "node:fs";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { type ApiServer, apiServer } from "../../../test/api-server.ts";
import { memoryStore } from "../../../storage/memory.ts";
import { testPki } from "../../../test/certificates.ts";
import { systemClock } from "../../lifecycle/clock.ts";
import { Registry } from "../registry.ts";
import { asDefinition } from "./crd-controller.ts";
import { findCondition } from "./crd-status.ts";

const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS = "/apis/example.com/v1/namespaces/default/widgets";
const [HOLDERS, MOVERS] = [WIDGETS.replace("widgets", "holders"), WIDGETS.replace("widgets", "movers")];
const MERGE = { "content-type": "application/merge-patch+json" };

let api: ApiServer;
beforeAll(async () => { api = await apiServer(); });
afterAll(async () => { await api[Symbol.asyncDispose](); });

const spec = { type: "object", properties: { size: { type: "integer", default: 1, minimum: 1 }, color: { type: "string" } } };
const version = (more: object = {}) => ({ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: { type: "object", properties: { spec, status: { type: "object", properties: { ready: { type: "boolean" } } } } } }, ...more });
const crd = (plural: string, more: object = {}, names: object = {}) => ({
  apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition", metadata: { name: `${plural}.example.com` },
  spec: { group: "example.com", scope: "Namespaced", names: { plural, kind: plural[0]!.toUpperCase() + plural.slice(1, -1), ...names }, versions: [version()], ...more },
});
const widget = (name: string, more: object = {}) => ({ apiVersion: "example.com/v1", kind: "Widget", metadata: { name }, spec: {}, ...more });

const holder = (name: string, more: object = {}) => ({ ...widget(name, more), kind: "Holder" });
const mover = (name: string, more: object = {}) => ({ ...widget(name, more), kind: "Mover" });

async function define(body: object): Promise<void> {
  const { metadata } = body as { metadata: { name: string } };
  expect((await api.ask("POST", CRDS, { body })).code).toBe(201);
  await api.events(CRDS, 1, { query: { fieldSelector: `metadata.name=${metadata.name}` } });
  await until(async () => conditionsOf(metadata.name), (conditions) => conditions["NamesAccepted"] !== undefined);
}

async function until<T>(read: () => Promise<T>, done: (value: T) => boolean): Promise<T> {
  for (;;) {
    const value = await read();
    if (done(value)) return value;
    await Bun.sleep(1);
  }
}

async function conditionsOf(name: string): Promise<Record<string, string>> {
  const { body } = await api.ask("GET", `${CRDS}/${name}`);
  return Object.fromEntries(((body.status?.conditions ?? []) as { type: string; status: string; reason: string }[]).map(({ type, status, reason }) => [type, `${status} ${reason}`]));
}

test("a generation ends with a null or an empty list where nothing was, and rules are not asked about an object whose annotations are too long", async () => {
  const open = { type: "object", "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-validations": [{ rule: "true" }] };
  await define(crd("opens", { versions: [version({ subresources: { status: {} }, schema: { openAPIV3Schema: { type: "object", properties: { spec: open, status: open } } } })] }));
  const OPENS = WIDGETS.replace("widgets", "opens");
  await api.ask("POST", OPENS, { body: { ...widget("a"), kind: "Open" } });
  const generations: number[] = [];
  for (const value of [null, [], {}, {}]) {
    const { body } = await api.ask("PATCH", `${OPENS}/a`, { headers: { "content-type": "application/json-patch+json" }, body: [{ op: "add", path: "/spec/x", value }] });
    generations.push(body.metadata.generation);
  }
  expect(generations).toEqual([2, 3, 4, 4]);
  const { body } = await api.ask("POST", OPENS, { body: { ...widget("b", { metadata: { name: "b", annotations: { a: "x".repeat(262_144) } } }), kind: "Open" } });
  expect(body.details.causes.map(({ field, message }: { field: string; message: string }) => `${field}: ${message}`)).toEqual([
    "metadata.annotations: Too long: may not be more than 262144 bytes",
    "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
  ]);
});

test("a definition is established, and its objects live", async () => {
  await define(crd("widgets", { versions: [version({ subresources: { status: {}, scale: { specReplicasPath: ".spec.size", statusReplicasPath: ".status.size" } }, selectableFields: [{ jsonPath: ".spec.color" }] })] }));
  expect(await conditionsOf("widgets.example.com")).toEqual({ NamesAccepted: "True NoConflicts", Established: "True InitialNamesAccepted" });
  const { code, body } = await api.ask("POST", WIDGETS, { body: widget("a", { spec: { color: "red", x: 1 }, status: { ready: true } }), query: { fieldValidation: "Warn" } });
  expect([code, body.spec, body.status, body.metadata.generation]).toEqual([201, { color: "red", size: 1 }, undefined, 1]);
  const status = await api.ask("PATCH", `${WIDGETS}/a/status`, { headers: MERGE, body: { spec: { size: 9 }, status: { ready: true } } });
  expect([status.body.spec.size, status.body.status, status.body.metadata.generation]).toEqual([1, { ready: true }, 1]);
  const changed = await api.ask("PATCH", `${WIDGETS}/a`, { headers: MERGE, body: { spec: { size: 2 }, status: { ready: false } } });
  expect([changed.body.spec.size, changed.body.status, changed.body.metadata.generation]).toEqual([2, { ready: true }, 2]);
  expect((await api.ask("GET", `${WIDGETS}/a/scale`)).body).toMatchObject({ kind: "Scale", spec: { replicas: 2 }, status: { replicas: 0 } });
  expect((await api.ask("GET", WIDGETS, { query: { fieldSelector: "spec.color=red" } })).body.items).toHaveLength(1);
  expect((await api.ask("GET", WIDGETS, { query: { fieldSelector: "spec.color=blue" } })).body.items).toHaveLength(0);
});

test("what is served says that it is established: who changes it then has no conflict", async () => {
  const served: (string | undefined)[] = [];
  const serve = Registry.prototype.setCustom;
  vi.spyOn(Registry.prototype, "setCustom").mockImplementation(function (this: Registry, kind, names) {
    const store = this.storeOf("apiextensions.k8s.io", "customresourcedefinitions")!;
    served.push(findCondition(asDefinition(store.cache.get(store.keyOf("", `${names.plural}.example.com`))!.object).status, "Established")?.status);
    serve.call(this, kind, names);
  });
  await define(crd("sprockets"));
  vi.restoreAllMocks();
  expect(served).toEqual(["True"]);
});

test("unknown fields are refused, told or dropped", async () => {
  const body = { ...widget("b"), spec: { x: 1 }, y: 2 };
  expect((await api.ask("POST", WIDGETS, { body, query: { fieldValidation: "Strict" } })).body.message).toBe('Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "spec.x", unknown field "y"');
  const warned = await api.ask("POST", WIDGETS, { body });
  expect([warned.code, warned.warnings]).toEqual([201, ['unknown field "spec.x"', 'unknown field "y"']]);
  const patched = await api.ask("PATCH", `${WIDGETS}/b`, { headers: MERGE, body: { spec: { z: 1 } }, query: { fieldValidation: "Strict" } });
  expect([patched.code, patched.body.message]).toEqual([422, expect.stringContaining('strict decoding error: unknown field "spec.z"')]);
});

test("unknown fields in the metadata of an object inside are told last", async () => {
  const embedded = { type: "object", "x-kubernetes-embedded-resource": true, properties: { apiVersion: { type: "string" }, kind: { type: "string" }, metadata: { type: "object" } } };
  await define({ ...crd("wrappers"), spec: { ...crd("wrappers").spec, versions: [version({ schema: { openAPIV3Schema: { type: "object", properties: { spec: { type: "object", properties: { inner: embedded } } } } } })] } });
  const { warnings } = await api.ask("POST", WIDGETS.replace("widgets", "wrappers"), { body: { ...widget("w"), kind: "Wrapper", spec: { z: 1, inner: { apiVersion: "v1", kind: "Pod", metadata: { name: "p", odd: 1 }, a: 1 } } } });
  expect(warnings).toEqual(['unknown field "spec.inner.a"', 'unknown field "spec.z"', 'unknown field "spec.inner.metadata.odd"']);
});

test("what a default adds to the metadata of an object inside is in form when it is answered, too", async () => {
  const embedded = { type: "object", "x-kubernetes-embedded-resource": true, properties: { apiVersion: { type: "string" }, kind: { type: "string" }, metadata: { type: "object", properties: { name: { type: "string", default: "p" }, odd: { type: "string", default: "odd" } } } } };
  await define({ ...crd("crates"), spec: { ...crd("crates").spec, versions: [version({ schema: { openAPIV3Schema: { type: "object", properties: { spec: { type: "object", properties: { inner: embedded } } } } } })] } });
  const crates = WIDGETS.replace("widgets", "crates"), inner = { apiVersion: "v1", kind: "Pod", metadata: {} };
  const { body } = await api.ask("POST", crates, { body: { ...widget("c"), kind: "Crate", spec: { inner } } });
  expect([body.spec, (await api.ask("GET", `${crates}/c`)).body.spec]).toEqual([{ inner: { ...inner, metadata: { name: "p" } } }, { inner: { ...inner, metadata: { name: "p" } } }]);
});

test("a body must say what it is", async () => {
  expect((await api.ask("POST", WIDGETS, { body: { metadata: { name: "c" } } })).body.message).toMatch(/^the object provided is unrecognized \(must be of type Widget\): Object 'Kind' is missing/);
  expect((await api.ask("POST", WIDGETS, { body: { ...widget("c"), apiVersion: "example.com/v2" } })).body.message).toBe("the API version in the data (example.com/v2) does not match the expected API version (example.com/v1)");
  expect((await api.ask("POST", WIDGETS, { body: { ...widget("c"), kind: "Gadget" } })).body.message).toBe('Gadget.example.com "c" is invalid: kind: Invalid value: "Gadget": must be Widget');
  expect((await api.ask("POST", WIDGETS, { body: { ...widget("c"), metadata: { name: "c", labels: { a: 1 } } } })).body.message).toBe('Widget in version "v1" cannot be handled as a Widget: json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string');
  expect((await api.ask("PATCH", `${WIDGETS}/a`, { headers: { "content-type": "application/strategic-merge-patch+json" }, body: {} })).code).toBe(415);
});

test("server-side apply knows the schema", async () => {
  const apply = (manager: string, spec: object) => api.ask("PATCH", `${WIDGETS}/s`, { headers: { "content-type": "application/apply-patch+yaml" }, query: { fieldManager: manager }, body: widget("s", { spec }) });
  expect((await apply("one", { size: 3 })).body.metadata.managedFields[0]).toMatchObject({ manager: "one", fieldsV1: { "f:spec": { "f:size": {} } } });
  const conflict = await apply("two", { size: 4 });
  expect([conflict.code, conflict.body.message]).toEqual([409, expect.stringContaining(".spec.size")]);
  expect((await apply("two", { nonsense: 4 })).body.message).toMatch(/\.spec\.nonsense: field not declared in schema$/);
  expect((await api.ask("POST", WIDGETS, { body: widget("nothing", { spec: null }) })).code).toBe(201); // dropped; but what is applied is meant
  const nothing = await api.ask("PATCH", `${WIDGETS}/none`, { headers: { "content-type": "application/apply-patch+yaml" }, query: { fieldManager: "one" }, body: widget("none", { spec: null }) });
  expect([nothing.code, nothing.body.message]).toEqual([422, expect.stringContaining('spec: Invalid value: "null": spec in body must be of type object: "null"')]);
});

test("below what preserves unknown fields, any may be applied; where the schema knows better they are pruned", async () => {
  const inner = { type: "object", properties: { a: { type: "object", properties: { known: { type: "string" } } } } };
  await define(crd("laxes", { versions: [version({ schema: { openAPIV3Schema: { type: "object", properties: { spec: { ...inner, "x-kubernetes-preserve-unknown-fields": true }, strict: inner } } } })] }, { kind: "Lax", listKind: "LaxList" }));
  const apply = (more: object) => api.ask("PATCH", "/apis/example.com/v1/namespaces/default/laxes/l", {
    headers: { "content-type": "application/apply-patch+yaml" }, query: { fieldManager: "one", fieldValidation: "Strict" }, body: { apiVersion: "example.com/v1", kind: "Lax", metadata: { name: "l" }, ...more },
  });
  expect((await apply({ spec: { other: 1, a: { known: "x", Known: "y" } } })).body.spec).toEqual({ other: 1, a: { known: "x" } });
  expect((await apply({ strict: { a: { Known: "y" } } })).body.message).toMatch(/\.strict\.a\.Known: field not declared in schema$/);
});

test("names that are taken are refused until they are free", async () => {
  await define(crd("gadgets", {}, { shortNames: ["wi"], kind: "Widget", listKind: "GadgetList" }));
  expect(await conditionsOf("gadgets.example.com")).toEqual({ NamesAccepted: "False KindConflict", Established: "False NotAccepted" });
  expect((await api.ask("GET", "/apis/example.com/v1/namespaces/default/gadgets")).code).toBe(404);
  expect((await api.ask("DELETE", `${CRDS}/widgets.example.com`)).body.metadata.finalizers).toEqual(["customresourcecleanup.apiextensions.k8s.io"]);
  await until(() => api.ask("GET", `${CRDS}/widgets.example.com`), ({ code }) => code === 404);
  expect((await api.ask("GET", WIDGETS)).code).toBe(404);
  await until(() => conditionsOf("gadgets.example.com"), (conditions) => conditions["Established"] === "True InitialNamesAccepted");
  expect((await api.ask("GET", "/apis/example.com/v1/namespaces/default/gadgets")).body).toMatchObject({ kind: "GadgetList", items: [] });
});

test("a definition waits for its objects, and takes no new ones", async () => {
  await define(crd("holders"));
  await api.ask("POST", HOLDERS, { body: { ...holder("held"), metadata: { name: "held", finalizers: ["example.com/wait"] } } });
  await api.ask("DELETE", `${CRDS}/holders.example.com`);
  await until(() => api.ask("GET", `${HOLDERS}/held`), ({ body }) => body.metadata.deletionTimestamp !== undefined);
  const late = await api.ask("POST", HOLDERS, { body: holder("late") });
  expect([late.code, late.body.message]).toEqual([403, 'holders.example.com "late" is forbidden: create not allowed while custom resource definition is terminating']);
  await api.ask("PATCH", `${HOLDERS}/held`, { headers: MERGE, body: { metadata: { finalizers: null } } });
  await until(() => api.ask("GET", `${CRDS}/holders.example.com`), ({ code }) => code === 404);
});

test("a definition that waits for its objects too long says so, in upstream's words", async () => {
  await using other = await apiServer({ clock: { ...systemClock, after: (ms: number, work: () => void) => systemClock.after(ms === 60_000 ? 5 : ms, work) } });
  await other.ask("POST", CRDS, { body: crd("holders") });
  const read = () => other.ask("GET", `${CRDS}/holders.example.com`);
  await until(read, ({ body }) => body.status?.conditions?.some(({ type, status }: { type: string; status: string }) => type === "Established" && status === "True"));
  await other.ask("POST", HOLDERS, { body: { ...holder("held"), metadata: { name: "held", finalizers: ["example.com/wait"] } } });
  const { body: { metadata: { resourceVersion } } } = await read();
  await other.ask("DELETE", `${CRDS}/holders.example.com`);
  const events = await other.events(CRDS, 3, { query: { resourceVersion } });
  expect(events.at(-1).object.status.conditions.find(({ type }: { type: string }) => type === "Terminating")).toMatchObject({ status: "True", reason: "InstanceDeletionCheck", message: "could not confirm zero CustomResources remaining: context deadline exceeded" });
});

test("who watches a definition sees it end, never that it has stopped ending", async () => {
  await define(crd("leavers"));
  const { body } = await api.ask("GET", `${CRDS}/leavers.example.com`);
  const watched = api.events(CRDS, 3, { query: { resourceVersion: body.metadata.resourceVersion, fieldSelector: "metadata.name=leavers.example.com" } });
  await api.ask("DELETE", `${CRDS}/leavers.example.com`);
  const terminating = ({ status }: { status: { conditions: { type: string; status: string; reason: string }[] } }) => status.conditions.find(({ type }) => type === "Terminating")!;
  expect((await watched).map(({ type, object }) => [type, terminating(object as never).status, terminating(object as never).reason])).toEqual([
    ["MODIFIED", "True", "InstanceDeletionPending"], ["MODIFIED", "True", "InstanceDeletionInProgress"], ["DELETED", "True", "InstanceDeletionInProgress"],
  ]);
});

test.each([
  ["gone goes as well: there is none when there is a definition again", false], ["waiting for others goes without waiting for those", true],
])("an object that a webhook has kept until its definition is %s", async (_, isHeld) => {
  const asked = Promise.withResolvers<void>(), said = Promise.withResolvers<void>();
  await using other = await apiServer({ async validate({ object }) {
    if (object?.metadata.name !== "late") return;
    asked.resolve();
    await said.promise;
  } });
  const stored = other.cache.resource("/registry/example.com/holders/");
  const names = async (): Promise<string> => [...stored.values()].map(({ object: { metadata } }) => metadata.name).join();
  await other.ask("POST", CRDS, { body: crd("holders") });
  await until(async () => (await other.ask("GET", HOLDERS)).code, (code) => code === 200);
  if (isHeld) await other.ask("POST", HOLDERS, { body: { ...holder("held"), metadata: { name: "held", finalizers: ["example.com/held"] } } });
  const made = other.ask("POST", HOLDERS, { body: holder("late") });
  await asked.promise;
  await other.ask("DELETE", `${CRDS}/holders.example.com`);
  await until(async () => (await other.ask("GET", `${CRDS}/holders.example.com`)).body, ({ code, status }) => code === 404 || (isHeld && findCondition(status, "Terminating")?.reason === "InstanceDeletionInProgress"));
  if (isHeld) await until(async () => [...stored.values()][0]?.object.metadata.deletionTimestamp, (time) => time !== undefined);
  said.resolve();
  expect((await made).code).toBe(201);
  await until(names, (left) => left === (isHeld ? "held" : ""));
});

test("what a definition of other scope has left, and nobody can name any more, keeps its successor; everybody else is served", async () => {
  const store = await memoryStore();
  await store.put("/registry/example.com/holders/default/left", holder("left", { metadata: { name: "left", namespace: "default", uid: "left" } }), 0);
  await using other = await apiServer({ store });
  const at = `${CRDS}/holders.example.com`;
  await other.ask("POST", CRDS, { body: crd("holders", { scope: "Cluster" }) });
  await until(async () => (await other.ask("GET", "/apis/example.com/v1/holders")).code, (code) => code === 200);
  await other.ask("DELETE", at);
  await until(async () => findCondition((await other.ask("GET", at)).body.status, "Terminating")?.reason, (reason) => reason === "InstanceDeletionInProgress");
  await Bun.sleep(1); // whoever looks for it again and again lets nobody have a turn
  expect((await other.ask("GET", at)).code).toBe(200);
});

test("in a group of ours no definition serves anything, and what is ours outlives one of its name", async () => {
  const ofOurs = (plural: string, more: object) => ({ ...crd(plural, { group: "networking.k8s.io", ...more }), metadata: { name: `${plural}.networking.k8s.io`, annotations: { "api-approved.kubernetes.io": "unapproved, a test" } } });
  const policies = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies";
  const policy = { apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy", metadata: { name: "ours" }, spec: { podSelector: {} } };
  expect((await api.ask("POST", policies, { body: policy })).code).toBe(201);
  await define(ofOurs("strangers", { versions: [version({ name: "v1" }), version({ name: "v9", storage: false })] }));
  await define(ofOurs("networkpolicies", { versions: [version({ name: "v9" })] }));
  expect(await Promise.all(["v1/strangers", "v9/strangers", "v9/networkpolicies"].map(async (path) => (await api.ask("GET", `/apis/networking.k8s.io/${path}`)).code))).toEqual([404, 404, 404]);
  for (const name of ["strangers.networking.k8s.io", "networkpolicies.networking.k8s.io"]) {
    await api.ask("DELETE", `${CRDS}/${name}`);
    await until(() => api.ask("GET", `${CRDS}/${name}`), ({ code }) => code === 404);
  }
  expect((await api.ask("GET", policies)).body.items).toHaveLength(1);
  await define(ofOurs("networkpolicies", { versions: [version({ name: "v9" })] }));
  await api.ask("DELETE", `${CRDS}/networkpolicies.networking.k8s.io`);
  await until(() => api.ask("GET", `${CRDS}/networkpolicies.networking.k8s.io`), ({ code }) => code === 404);
  expect((await api.ask("GET", policies)).body.items).toHaveLength(1);
});

test("who watches the objects of a definition that is deleted hears of the end of each", async () => {
  await define(crd("enders"));
  const path = WIDGETS.replace("widgets", "enders");
  await api.ask("POST", path, { body: { ...widget("free"), kind: "Ender" } });
  const { body } = await api.ask("POST", path, { body: { ...widget("held"), kind: "Ender", metadata: { name: "held", finalizers: ["example.com/wait"] } } });
  const watched = api.events(path, 3, { query: { resourceVersion: body.metadata.resourceVersion } });
  await api.ask("DELETE", `${CRDS}/enders.example.com`);
  await until(() => api.ask("GET", `${path}/held`), ({ body: held }) => held.metadata.deletionTimestamp !== undefined);
  await api.ask("PATCH", `${path}/held`, { headers: MERGE, body: { metadata: { finalizers: null } } });
  expect((await watched).map(({ type, object }) => [type, object.metadata.name])).toEqual([["DELETED", "free"], ["MODIFIED", "held"], ["DELETED", "held"]]);
});

test("versions: what is stored is shown in each, by each one's schema, and is rewritten when it is written", async () => {
  const other = { name: "v2", served: true, storage: false, schema: { openAPIV3Schema: { type: "object", properties: { spec: { type: "object", properties: { size: { type: "integer" } } } } } } };
  await define(crd("movers", { versions: [version({ deprecated: true }), other] }));
  const created = await api.ask("POST", MOVERS, { body: mover("v", { spec: { color: "red" } }) });
  expect(created.warnings).toEqual(["example.com/v1 Mover is deprecated; use example.com/v2 Mover"]);
  const refused = await api.ask("POST", MOVERS, { body: mover("Not Valid", { spec: { color: "red" } }) });
  expect([refused.code, refused.warnings]).toEqual([422, created.warnings]);
  const inV2 = MOVERS.replace("v1", "v2");
  expect((await api.ask("GET", `${inV2}/v`)).body).toMatchObject({ apiVersion: "example.com/v2", spec: { size: 1 } });
  const { body } = await api.ask("GET", `${CRDS}/movers.example.com`);
  body.spec.versions = [version({ storage: false }), { ...other, storage: true }];
  expect((await api.ask("PUT", `${CRDS}/movers.example.com`, { body })).body.status.storedVersions).toEqual(["v1", "v2"]);
  const before = (await api.ask("GET", `${inV2}/v`)).body;
  const after = await api.ask("PATCH", `${inV2}/v`, { headers: MERGE, body: {} });
  expect([after.body.metadata.resourceVersion === before.metadata.resourceVersion, after.body.spec]).toEqual([false, { size: 1 }]);
  expect((await api.ask("GET", `${MOVERS}/v`)).body.spec).toEqual({ size: 1 });
  expect((await api.ask("PATCH", `${inV2}/v`, { headers: MERGE, body: {} })).body.metadata.resourceVersion).toBe(after.body.metadata.resourceVersion);
});

test("a write of the status tells of rules that what has not changed breaks", async () => {
  const ruled = (rules: readonly object[]) => [version({ subresources: { status: {} }, schema: { openAPIV3Schema: { type: "object", properties: { spec: { ...spec, "x-kubernetes-validations": rules }, status: { type: "object", properties: { ready: { type: "boolean" } } } } } } })];
  await define(crd("rulers", { versions: ruled([]) }));
  const RULERS = WIDGETS.replace("widgets", "rulers");
  await api.ask("POST", RULERS, { body: { ...widget("a", { spec: { size: 20 } }), kind: "Ruler" } });
  await api.ask("PATCH", `${CRDS}/rulers.example.com`, { headers: MERGE, body: { spec: { versions: ruled([{ rule: "self.size < 10", message: "too long" }]) } } });
  await until(async () => (await api.ask("POST", RULERS, { body: { ...widget("b", { spec: { size: 20 } }), kind: "Ruler" } })).code, (code) => code === 422);
  expect(await api.ask("PATCH", `${RULERS}/a/status`, { headers: MERGE, body: { status: { ready: true } } })).toMatchObject({ code: 200, warnings: ["spec: Invalid value: too long"] });
});

test("who says that objects are stored in no version means the storage version", async () => {
  await define(crd("stored"));
  const { code, body } = await api.ask("PATCH", `${CRDS}/stored.example.com/status`, { headers: MERGE, body: { status: { storedVersions: [] } } });
  expect([code, body.status.storedVersions]).toEqual([200, ["v1"]]);
});

test("a kind whose conversion webhook has no CA bundle that can be read waits for one, and once there is one it is not given up", async () => {
  const pki = await testPki();
  onTestFinished(() => rmSync(pki.dir, { recursive: true, force: true }));
  const readable = Buffer.from(pki.authority("server-ca").bundlePem).toString("base64");
  const converting = (caBundle: string) => ({ conversion: { strategy: "Webhook", webhook: { clientConfig: { url: "https://127.0.0.1:1/", caBundle }, conversionReviewVersions: ["v1"] } } });
  const change = (caBundle: string) => api.ask("PATCH", `${CRDS}/trusters.example.com`, { headers: MERGE, body: { spec: converting(caBundle) } });
  await define(crd("trusters", converting("Cg==")));
  expect((await conditionsOf("trusters.example.com"))["Established"]).toBe("False InvalidCABundle");
  expect((await change(readable)).code).toBe(200);
  await until(() => conditionsOf("trusters.example.com"), (conditions) => conditions["Established"] === "True InitialNamesAccepted");
  const { code, body } = await change("Cg==");
  expect([code, body.message]).toEqual([422, 'CustomResourceDefinition.apiextensions.k8s.io "trusters.example.com" is invalid: spec.conversion.webhookClientConfig.caBundle: Invalid value: "Cg==": unable to load root certificates: unable to parse bytes as PEM block']);
});
