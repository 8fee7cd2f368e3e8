import { expect, test } from "vitest";
import { apiServer } from "../../test/api-server.ts";
import { eventually, fakeApi } from "../../test/fake-api.ts";
import { ENDPOINT_SLICES, ENDPOINTS, LEASES } from "../client/resources.ts";
import { systemClock } from "../lifecycle/clock.ts";
import { systemRandom } from "../lifecycle/random.ts";
import { silentLog } from "../observe/log.ts";
import { apiServerId, kubernetesEndpoints } from "./kubernetes-endpoints.ts";

test("the endpoints are the servers that live: one joins, one dies, one leaves", async () => {
  const api = fakeApi();
  let dead = "";
  const counts = new Map<string, () => number>();
  const start = async (nodeName: string, address: string) => {
    const stop = new AbortController();
    const client: typeof api.client = { ...api.client, resource: (ref) => (dead === nodeName ? { ...api.client.resource(ref), get: () => Promise.reject(new Error("dead")), list: () => Promise.reject(new Error("dead")) } : api.client.resource(ref)) as never };
    const ready = Promise.withResolvers<void>();
    const endpoints = kubernetesEndpoints({ client: { ...client, resource: (ref) => lazily(() => client.resource(ref)) as never }, clock: systemClock, random: systemRandom, log: silentLog, nodeName, advertise: { address, port: 6443 }, renewMs: 50 });
    counts.set(nodeName, endpoints.serverCount);
    const life = endpoints.run(stop.signal, ready.resolve);
    await ready.promise;
    return async () => { stop.abort(); await life; };
  };
  const published = () => api.all(ENDPOINTS)[0]?.subsets?.[0]?.addresses?.map(({ ip }) => ip);

  const stopA = await start("a", "10.0.0.1");
  expect(published()).toEqual(["10.0.0.1"]);
  expect(api.all(LEASES)[0]).toMatchObject({
    metadata: { name: apiServerId("a"), namespace: "kube-system", labels: { "apiserver.kubernetes.io/identity": "kube-apiserver", "kubernetes.io/hostname": "a" } },
    spec: { leaseDurationSeconds: 3600 },
  });
  const stopB = await start("b", "10.0.0.2");
  const stopC = await start("c", "fd00::3");
  await eventually(published, (ips) => ips?.join() === "10.0.0.1,10.0.0.2,fd00::3");
  expect(api.all(ENDPOINT_SLICES)[0]).toMatchObject({ addressType: "IPv4", endpoints: [{ addresses: ["10.0.0.1"], conditions: { ready: true } }, { addresses: ["10.0.0.2"] }] });
  expect(counts.get("c")!()).toBe(3);
  dead = "b";
  await eventually(published, (ips) => ips?.join() === "10.0.0.1,fd00::3");
  await eventually(() => counts.get("a")!(), (count) => count === 2);
  await stopC();
  expect(published()).toEqual(["10.0.0.1"]);
  await stopA();
  expect(published()).toEqual(["10.0.0.1"]); // the last one stays
  expect(api.all(LEASES).map(({ metadata }) => metadata.name)).toEqual([apiServerId("b")]);
  await stopB();
});

test("a server that had an address of IPv6 alone is reached when it has one of IPv4", async () => {
  await using api = await apiServer();
  const slice = async (): Promise<unknown[]> => {
    const { body } = await api.ask("GET", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes");
    return [body.addressType, body.endpoints.map(({ addresses }: { addresses: string[] }) => addresses[0])];
  };
  const once = async (address: string): Promise<void> => {
    const stop = new AbortController();
    await kubernetesEndpoints({ client: api.client, clock: systemClock, random: systemRandom, log: silentLog, nodeName: "a", advertise: { address, port: 6443 } }).run(stop.signal, () => stop.abort());
  };
  await once("fd00::3");
  for (const path of ["/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes", "/api/v1/namespaces/default/endpoints/kubernetes"])
    await api.ask("PATCH", path, { headers: { "content-type": "application/merge-patch+json" }, body: { metadata: { labels: { own: "1" } } } });
  await once("fd00::3");
  expect(await slice()).toEqual(["IPv6", ["fd00::3"]]);
  const labels = async (path: string): Promise<unknown> => (await api.ask("GET", path)).body.metadata.labels;
  expect(await labels("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"), "a slice has the labels it is made with").toEqual({ "kubernetes.io/service-name": "kubernetes" });
  expect(await labels("/api/v1/namespaces/default/endpoints/kubernetes")).toEqual({ "endpointslice.kubernetes.io/skip-mirror": "true", own: "1" });
  await once("10.0.0.1");
  expect(await slice()).toEqual(["IPv4", ["10.0.0.1"]]);
  await once("fd00::4");
  expect(await slice()).toEqual(["IPv6", ["fd00::4"]]);
});

test("the Lease of a server that has been silent for an hour goes; leases that are no server's stay", async () => {
  const api = fakeApi();
  const call = { signal: AbortSignal.timeout(60_000) };
  const lease = (name: string, labels: Record<string, string>) => api.client.resource(LEASES).create({ apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { namespace: "kube-system", name, labels }, spec: { leaseDurationSeconds: 3600 } }, call);
  await lease("apiserver-old", { "apiserver.kubernetes.io/identity": "kube-apiserver" });
  await lease("kube-scheduler", {});
  const stop = new AbortController();
  const clock = { ...systemClock, every: (_: number, signal: AbortSignal) => systemClock.every(10, signal) }; // as if 20 minutes went by each time
  const life = kubernetesEndpoints({ client: api.client, clock, random: systemRandom, log: silentLog, nodeName: "a", advertise: { address: "10.0.0.1", port: 6443 }, renewMs: 1_200_000 }).run(stop.signal, () => undefined);
  await eventually(() => api.all(LEASES).map(({ metadata }) => metadata.name).sort(), (names) => names.join() === [apiServerId("a"), "kube-scheduler"].join());
  stop.abort();
  await life;
});

/** Looks at every call anew, so that a client can die. */
function lazily<T extends object>(of: () => T): T {
  return new Proxy({} as T, { get: (_, name) => (...args: unknown[]) => (of() as Record<string | symbol, (...args: unknown[]) => unknown>)[name]!(...args) });
}

test("servers are named as upstream names them", () => {
  expect(apiServerId("kind-control-plane")).toBe("apiserver-c7uylvfxlbqccnk6myfkwetzze");
});
