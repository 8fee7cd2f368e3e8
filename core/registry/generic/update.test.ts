import { expect, test } from "vitest";
import { inProcessServer } from "../../../test/in-process-server.ts";
import type { ConfigMap, Service } from "../../api/gen/core.v1.ts";

test("who loses the race for an object's last finalizer keeps nothing of what it was to have", async () => {
  const stop = new AbortController();
  const { client, ended } = await inProcessServer({ signal: stop.signal });
  const call = { signal: stop.signal };
  const services = client("u").resource<Service>({ group: "", version: "v1", plural: "services", kind: "Service", namespaced: true });
  const service = (name: string, nodePort: number, finalizers: string[] = []): Service =>
    ({ apiVersion: "v1", kind: "Service", metadata: { name, namespace: "default", finalizers }, spec: { type: "NodePort", ports: [{ name: "one", port: 80, nodePort }] } }) as unknown as Service;
  await services.create(service("a", 30100, ["example.com/f"]), call);
  await services.delete({ metadata: { name: "a", namespace: "default" } }, {}, call);
  const { metadata, spec } = await services.get({ metadata: { name: "a", namespace: "default" } }, call);

  const finish = (nodePort: number) => services.update({ apiVersion: "v1", kind: "Service", metadata: { ...metadata, resourceVersion: "", finalizers: [] }, spec: { ...spec, ports: [...spec.ports!, { name: "two", port: 81, nodePort } as never] } }, call);
  const outcomes = await Promise.allSettled([finish(30101), finish(30102)]);
  expect(outcomes.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);

  for (const nodePort of [30100, 30101, 30102]) await services.create(service(`b-${nodePort}`, nodePort), call);
  stop.abort();
  await ended;
});

test("who changes an object together with many others prepares his change a few times, not as often as there are others", async () => {
  const stop = new AbortController();
  const { client, registry, ended } = await inProcessServer({ signal: stop.signal });
  await client("u").resource<ConfigMap>({ group: "", version: "v1", plural: "configmaps", kind: "ConfigMap", namespaced: true }).create({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a", namespace: "default" } } as unknown as ConfigMap, { signal: stop.signal });
  const store = registry.storeOf("", "configmaps")!;
  let prepared = 0;
  const change = (name: string) => store.update("default", "a", async (old) => {
    prepared++;
    await Bun.sleep(1);
    return { ...structuredClone(old!), metadata: { ...structuredClone(old!.metadata), resourceVersion: "" }, data: { ...(old as unknown as ConfigMap).data, [name]: "1" } } as never;
  }, { signal: stop.signal, context: { user: { name: "u", groups: [] }, nowMs: 0, dryRun: false, uuid: () => "" } });
  const many = 30;
  await Promise.all(Array.from({ length: many }, (_, i) => change(`n${i}`)));
  expect(Object.keys((store.cache.get(store.keyOf("default", "a"))!.object as unknown as ConfigMap).data!).length).toBe(many);
  expect(prepared).toBeLessThan(many * 3);
  stop.abort();
  await ended;
});
