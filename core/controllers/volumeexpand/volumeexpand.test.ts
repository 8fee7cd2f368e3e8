import { expect, test } from "vitest";
import type { PersistentVolume, PersistentVolumeClaim } from "../../api/gen/core.v1.ts";
import { eventually, fakeApi } from "../../../test/fake-api.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import { stored } from "../../../test/scheduling-cluster.ts";
import { EVENTS, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES } from "../../client/resources.ts";
import { volumeExpandController, wantsMore } from "./volumeexpand.ts";

const claim = (size: string, has: string, phase = "Bound"): PersistentVolumeClaim =>
  stored("v1", "PersistentVolumeClaim", "ns/c", { metadata: { uid: "u", annotations: { "pv.kubernetes.io/bind-completed": "yes" } }, spec: { volumeName: "v", resources: { requests: { storage: size } } }, status: { phase, capacity: { storage: has } } } as never);
const volume = (uid: string): PersistentVolume => stored("v1", "PersistentVolume", "v", { spec: { claimRef: { uid } } });

test.each<[string, PersistentVolumeClaim, PersistentVolume | undefined, boolean]>([
  ["larger than it is", claim("2Gi", "1Gi"), volume("u"), true],
  ["as large", claim("1Gi", "1024Mi"), volume("u"), false],
  ["not bound yet, though its volume is chosen", claim("2Gi", "0", "Pending"), volume("u"), false],
  ["it has lost its volume", claim("2Gi", "1Gi", "Lost"), volume("u"), false],
  ["another claim's volume", claim("2Gi", "1Gi"), volume("x"), false],
  ["no volume", claim("2Gi", "1Gi"), undefined, false],
])("%s", (_, one, its, more) => expect(wantsMore(one, its)).toBe(more));

test("who asks for more is told what it waits for", () => withControllers((deps) => [volumeExpandController(deps)], async (api, call) => {
  const claims = api.client.resource(PERSISTENT_VOLUME_CLAIMS);
  const { metadata: { annotations }, spec, status } = claim("1Gi", "1Gi");
  const made = await claims.create({ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name: "c", namespace: "ns", annotations }, spec, status } as never, call);
  await api.client.resource(PERSISTENT_VOLUMES).create({ apiVersion: "v1", kind: "PersistentVolume", metadata: { name: "v" }, spec: { claimRef: { uid: made.metadata.uid } } } as never, call);
  await claims.update({ ...made, spec: { ...made.spec, resources: { requests: { storage: "2Gi" } } } } as PersistentVolumeClaim, call);
  await eventually(() => api.all(EVENTS).map(({ reason, message }) => `${reason}: ${message}`), (all) => all.includes("ExternalExpanding: waiting for an external controller to expand this PVC"));
}));

test("one that waited before this process began is told as well, and one that has got a part of it", async () => {
  const api = fakeApi(), seeding = { signal: AbortSignal.timeout(60_000) };
  const { metadata: { annotations }, spec, status } = claim("3Gi", "1Gi");
  const made = await api.client.resource(PERSISTENT_VOLUME_CLAIMS).create({ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name: "c", namespace: "ns", annotations }, spec, status } as never, seeding);
  await api.client.resource(PERSISTENT_VOLUMES).create({ apiVersion: "v1", kind: "PersistentVolume", metadata: { name: "v" }, spec: { claimRef: { uid: made.metadata.uid } } } as never, seeding);
  const told = () => api.all(EVENTS).map(({ reason, count }) => `${reason} ${count}`).join();
  await withControllers((deps) => [volumeExpandController(deps)], async (_, call) => {
    await eventually(told, (all) => all === "ExternalExpanding 1");
    await api.client.resource(PERSISTENT_VOLUME_CLAIMS).updateStatus({ ...made, status: { ...made.status, capacity: { storage: "2Gi" } } } as PersistentVolumeClaim, call);
    await eventually(told, (all) => all === "ExternalExpanding 2");
  }, { api });
});
