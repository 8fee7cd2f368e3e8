import { expect, test } from "vitest";
import { fakeApi } from "../../../test/fake-api.ts";
import { eventually } from "../../../test/eventually.ts";
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import { clientOver } from "../../../core/client/resource-client.ts";
import { CONFIG_MAPS, SECRETS } from "../../../core/client/resources.ts";
import type { Transport } from "../../../core/client/transport.ts";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import { silentLog } from "../../../core/observe/log.ts";
import { podObjects } from "./pod-objects.ts";

const pod = (uid: string): Pod => ({
  apiVersion: "v1", kind: "Pod", metadata: { name: uid, namespace: "n", uid },
  spec: { containers: [{ name: "c", image: "i", envFrom: [{ configMapRef: { name: "map" } }] }], volumes: [{ name: "v", secret: { secretName: "fixed" } }] },
} as unknown as Pod);

/** What is asked of the API server for pods "a" and "b", which name the same ConfigMap, and the same Secret that is immutable. */
async function scene({ readsAnew }: { readonly readsAnew: boolean }) {
  const api = fakeApi();
  const stop = new AbortController();
  const { signal } = stop;
  const asked: string[] = [];
  const counted: Transport = {
    call(request) {
      asked.push(`get ${request.path.split("/").at(-1)}`);
      return api.call(request);
    },
    watch(request) {
      asked.push(`watch ${request.path.split("/").at(-1)}`);
      return api.watch(request);
    },
  };
  await api.client.resource(CONFIG_MAPS).create({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "map", namespace: "n" }, data: { a: "1" } } as never, { signal });
  await api.client.resource(SECRETS).create({ apiVersion: "v1", kind: "Secret", metadata: { name: "fixed", namespace: "n" }, immutable: true, data: {} } as never, { signal });
  const changed: string[] = [];
  const objects = podObjects({ client: clientOver(counted), clock: systemClock, log: silentLog, signal, readsAnew, onChange: (uid) => void changed.push(uid) });
  for (const uid of ["a", "b"]) objects.retain(pod(uid));
  async function change(a: string): Promise<void> {
    await api.client.resource(CONFIG_MAPS).patch({ metadata: { name: "map", namespace: "n" } }, "application/merge-patch+json", { data: { a } }, { signal });
  }
  return { objects, asked, changed, change, [Symbol.dispose]: () => stop.abort() };
}

test("each object is watched once, whoever names it; what is immutable is read and not watched", async () => {
  using held = await scene({ readsAnew: false });
  const { objects, asked, changed, change } = held;
  expect([(await objects.configMap("n", "map")).data, (await objects.secret("n", "fixed")).immutable]).toEqual([{ a: "1" }, true]);
  await eventually("the map is watched", async () => asked.includes("watch configmaps"));
  await change("2");
  await eventually("both pods are told", async () => changed.length === 2);
  expect([changed.toSorted(), (await objects.configMap("n", "map")).data]).toEqual([["a", "b"], { a: "2" }]);
  expect(asked.toSorted()).toEqual(["get configmaps", "get secrets", "watch configmaps"]);
});

test("read anew each time, nothing is watched, and a change is seen by who asks next", async () => {
  using held = await scene({ readsAnew: true });
  const { objects, asked, changed, change } = held;
  expect((await objects.configMap("n", "map")).data).toEqual({ a: "1" });
  await change("2");
  expect([(await objects.configMap("n", "map")).data, changed, asked]).toEqual([{ a: "2" }, [], ["get map", "get map"]]);
});

test("of a pod that names thousands of objects some are watched, those of volumes first, and the others are read each time", async () => {
  using held = await scene({ readsAnew: false });
  const { objects, asked } = held;
  const many = { ...pod("many"), spec: { containers: [{ name: "c", image: "i", envFrom: [...Array.from({ length: 5000 }, (_, i) => ({ configMapRef: { name: `none-${i}`, optional: true } })), { configMapRef: { name: "late" } }] }], volumes: [{ name: "v", configMap: { name: "volume" } }] } } as unknown as Pod;
  objects.retain(many);
  objects.retain(many);
  await eventually("the volume's is watched", async () => asked.filter((one) => one === "watch configmaps").length === 51); // and the map of the others
  await expect(objects.configMap("n", "volume")).rejects.toThrow('configmap "volume" not found');
  expect(asked).not.toContain("get volume");
  for (let i = 0; i < 2; i++) await expect(objects.configMap("n", "late")).rejects.toThrow("not found");
  expect(asked.filter((one) => one === "get late")).toHaveLength(2);
});
