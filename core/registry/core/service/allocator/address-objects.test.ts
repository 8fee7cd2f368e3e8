import { afterAll, beforeAll, expect, test } from "vitest";
import { apiServer, type ApiServer } from "../../../../../test/api-server.ts";

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
