import { afterAll, beforeAll, expect, test } from "vitest";
import { apiServer, type ApiServer } from "../../../../../test/api-server.ts";
import { memoryStore } from "../../../../../storage/memory.ts";
import type { Store } from "../../../../../storage/store.ts";
import type { Service } from "../../../../api/gen/core.v1.ts";
import { forbidden } from "../../../../api/meta/status-error.ts";

const SERVICES = "/api/v1/namespaces/a/services";
const ADDRESSES = "/apis/networking.k8s.io/v1/ipaddresses";

let refuses = false;
let api: ApiServer;
beforeAll(async () => void (api = await apiServer({ admit: () => { if (refuses) throw new Error("refused"); } })));
afterAll(() => api[Symbol.asyncDispose]());

const service = (name: string, spec: object = {}) => ({ metadata: { name }, spec: { ports: [{ port: 80 }], ...spec } });
const address = async (name: string) => (await api.ask("GET", `${ADDRESSES}/${name}`)).body;
const all = async (): Promise<string[]> => (await api.ask("GET", ADDRESSES)).body.items.map(({ metadata }: { metadata: { name: string } }) => metadata.name);

test("a service's address has an IPAddress when the service is answered, and none when it is gone", async () => {
  const { body } = await api.ask("POST", SERVICES, { body: service("web") });
  const { clusterIP } = body.spec;
  expect(await address(clusterIP)).toMatchObject({
    metadata: {
      name: clusterIP, labels: { "ipaddress.kubernetes.io/ip-family": "IPv4", "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io" },
      managedFields: [{ manager: "kube-apiserver", operation: "Update", apiVersion: "networking.k8s.io/v1", fieldsType: "FieldsV1" }],
    },
    spec: { parentRef: { resource: "services", namespace: "a", name: "web" } },
  });
  expect((await api.ask("PUT", `${SERVICES}/web`, { body: service("web", { ports: [{ port: 81 }] }) })).body.spec.clusterIP).toBe(clusterIP);
  expect((await api.ask("DELETE", `${SERVICES}/web`)).code).toBe(200);
  expect((await address(clusterIP)).code).toBe(404);
  expect((await api.ask("POST", SERVICES, { body: service("again", { clusterIP }) })).code).toBe(201);
});

test("the address goes with the type, comes with it, and goes when the last finalizer does", async () => {
  const before = (await all()).length;
  const { body } = await api.ask("POST", SERVICES, { body: { ...service("alias"), metadata: { name: "alias", finalizers: ["example.com/hold"] } } });
  const first = body.spec.clusterIP;
  await api.ask("PUT", `${SERVICES}/alias`, { body: { ...service("alias", { type: "ExternalName", externalName: "example.com" }), metadata: body.metadata } });
  expect((await address(first)).code).toBe(404);
  const { spec } = (await api.ask("PATCH", `${SERVICES}/alias`, { headers: { "content-type": "application/merge-patch+json" }, body: { spec: { type: "ClusterIP", externalName: null } } })).body;
  expect((await address(spec.clusterIP)).spec.parentRef.name).toBe("alias");
  await api.ask("DELETE", `${SERVICES}/alias`);
  expect((await address(spec.clusterIP)).kind).toBe("IPAddress");
  await api.ask("PATCH", `${SERVICES}/alias`, { headers: { "content-type": "application/merge-patch+json" }, body: { metadata: { finalizers: null } } });
  expect(await all()).toHaveLength(before);
});

test("a service that is refused, is there already or is only tried leaves no IPAddress", async () => {
  const before = await all();
  expect((await api.ask("POST", SERVICES, { body: service("bad", { sessionAffinity: "Never" }) })).code).toBe(422);
  expect((await api.ask("POST", SERVICES, { body: service("again") })).code).toBe(409);
  expect((await api.ask("POST", SERVICES, { body: service("tried"), query: { dryRun: "All" } })).code).toBe(201);
  expect((await api.ask("POST", SERVICES, { body: service("headless", { clusterIP: "None" }) })).code).toBe(201);
  refuses = true;
  expect((await api.ask("POST", SERVICES, { body: service("refused") })).code).toBe(500);
  refuses = false;
  expect(await all()).toEqual(before);
});

test("an IPAddress that somebody has made keeps the address from services, and stays when another service goes", async () => {
  const own = { metadata: { name: "10.43.7.7" }, spec: { parentRef: { group: "example.com", resource: "things", name: "x" } } };
  expect((await api.ask("POST", ADDRESSES, { body: own })).code).toBe(201);
  expect((await api.ask("POST", SERVICES, { body: service("late", { clusterIP: "10.43.7.7" }) })).body.message).toContain("failed to allocate IP 10.43.7.7: provided IP is already allocated");
  await api.ask("POST", SERVICES, { body: service("early", { clusterIP: "10.43.7.8" }) });
  expect((await api.ask("POST", ADDRESSES, { body: { ...own, metadata: { name: "10.43.7.8" } } })).code).toBe(409);
  await api.ask("DELETE", `${ADDRESSES}/10.43.7.8`);
  await api.ask("POST", ADDRESSES, { body: { ...own, metadata: { name: "10.43.7.8" } } });
  await api.ask("DELETE", `${SERVICES}/early`);
  expect((await address("10.43.7.8")).spec.parentRef.resource).toBe("things");
});

test("an address that an update may not change to is told as such, whoever has it", async () => {
  await api.ask("POST", SERVICES, { body: service("holder", { clusterIP: "10.43.0.77" }) });
  await api.ask("POST", SERVICES, { body: service("wanting") });
  const { code, message } = (await api.ask("PATCH", `${SERVICES}/wanting`, { headers: { "content-type": "application/merge-patch+json" }, body: { spec: { clusterIP: "10.43.0.77" } } })).body;
  expect([code, message]).toEqual([422, 'Service "wanting" is invalid: spec.clusterIPs[0]: Invalid value: ["10.43.0.77"]: may not change once set']);
  expect((await address("10.43.0.77")).spec.parentRef.name).toBe("holder");
});

test("of a service without a name no address can have one", async () => {
  expect((await api.ask("POST", SERVICES, { body: { spec: {} } })).body.message)
    .toMatch(/^Service "" is invalid: spec.clusterIPs: Invalid value: \[""\]: failed to allocate IP: IPAddress.networking.k8s.io "10.43.\d+.\d+" is invalid: spec.parentRef.name: Required value$/);
});

test("plug-ins are asked of IPAddresses as of any the API server makes itself, and who refuses one refuses the service", async () => {
  const asked: { operation: string; resource: string; name: string; user: string; groups: readonly string[]; options: unknown; dryRun: boolean }[] = [];
  let refused = "";
  await using own = await apiServer({
    admit: ({ operation, resource, name, object, user: { name: user, groups }, options, dryRun }) => {
      asked.push({ operation, resource, name: name || (object?.metadata.name ?? ""), user, groups, options, dryRun });
      if (resource === "ipaddresses" && operation === refused) throw forbidden({ group: "networking.k8s.io", resource: "ipaddresses" }, name, "none of those");
    },
  });
  const make = (name: string, spec: object = {}, query = {}) => own.ask("POST", SERVICES, { body: service(name, spec), query });
  await make("web", { clusterIP: "10.43.1.1" });
  expect(asked).toMatchObject([
    { operation: "CREATE", resource: "services", user: "admin" },
    { operation: "CREATE", resource: "ipaddresses", name: "10.43.1.1", user: "system:apiserver", groups: ["system:authenticated", "system:masters"], options: { kind: "CreateOptions", apiVersion: "meta.k8s.io/v1" }, dryRun: false },
  ]);
  asked.length = 0;
  expect((await make("bad", { clusterIP: "10.43.1.2", sessionAffinity: "Never" })).code).toBe(422);
  expect(asked.map(({ operation, resource }) => `${operation} ${resource}`)).toEqual(["CREATE services", "CREATE ipaddresses", "DELETE ipaddresses"]);
  asked.length = 0;
  await make("tried", {}, { dryRun: "All" });
  expect(asked).toHaveLength(1);

  refused = "CREATE";
  expect((await make("named", { clusterIP: "10.43.1.2" })).body).toMatchObject({
    code: 422, reason: "Invalid",
    message: 'Service "named" is invalid: spec.clusterIPs: Invalid value: ["10.43.1.2"]: failed to allocate IP 10.43.1.2: ipaddresses.networking.k8s.io "10.43.1.2" is forbidden: none of those',
  });
  expect((await make("any")).body.message).toMatch(/^Service "any" is invalid: spec.clusterIPs: Invalid value: \[""\]: failed to allocate IP: ipaddresses.networking.k8s.io "10.43.\d+.\d+" is forbidden: none of those$/);
  refused = "";
  expect((await make("named", { clusterIP: "10.43.1.2" })).code).toBe(201);
  refused = "DELETE";
  expect((await own.ask("DELETE", `${SERVICES}/named`)).code).toBe(200);
  expect((await own.ask("GET", `${ADDRESSES}/10.43.1.2`)).code).toBe(200);
});

/** `held`: so long nobody hears of services. */
function slowToTell(store: Store, held: () => Promise<void> | undefined): Store {
  const watch: Store["watch"] = async function* (options, signal) {
    for await (const batch of store.watch(options, signal)) {
      if (batch.events.some(({ row }) => row.key.includes("/services/"))) await held();
      yield batch;
    }
  };
  return new Proxy(store, {
    get(of, name) {
      const value: unknown = name === "watch" ? watch : Reflect.get(of, name, of);
      return typeof value === "function" ? value.bind(of) as unknown : value;
    },
  });
}

test("who goes before he hears that his service is written, or gone, leaves it with its address, or the address free", async () => {
  const store = await memoryStore();
  let held: Promise<void> | undefined;
  await using late = await apiServer({ store: slowToTell(store, () => held) });
  const services = late.client.resource<Service>({ group: "", version: "v1", plural: "services", kind: "Service", namespaced: true });
  const left = async (begin: (signal: AbortSignal) => Promise<unknown>, isDone: (isThere: boolean) => boolean): Promise<void> => {
    const client = new AbortController(), { promise, resolve } = Promise.withResolvers<void>();
    held = promise;
    const asked = begin(client.signal).catch(() => undefined);
    await expect.poll(async () => isDone((await store.get("/registry/core/services/a/web")) !== undefined)).toBe(true);
    client.abort();
    resolve();
    held = undefined;
    await asked;
    expect((await late.ask("POST", SERVICES, { body: service("other") })).code).toBe(201);
    expect((await late.ask("DELETE", `${SERVICES}/other`)).code).toBe(200);
  };
  const addresses = async (): Promise<string[]> => (await late.ask("GET", ADDRESSES)).body.items.map(({ metadata }: { metadata: { name: string } }) => metadata.name);
  const { metadata, spec } = service("web", { clusterIP: "10.43.1.1" });
  await left((signal) => services.create({ apiVersion: "v1", kind: "Service", metadata: { ...metadata, namespace: "a" }, spec }, { signal }), (isThere) => isThere);
  expect(await addresses()).toEqual(["10.43.1.1"]);
  await left((signal) => services.delete({ metadata: { name: "web", namespace: "a" } }, {}, { signal }), (isThere) => !isThere);
  await expect.poll(addresses).toEqual([]);
});
