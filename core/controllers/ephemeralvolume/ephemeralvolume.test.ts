import { expect, test } from "vitest";
import { eventually } from "../../../test/fake-api.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import { EVENTS, PERSISTENT_VOLUME_CLAIMS, PODS } from "../../client/resources.ts";
import { metricsRegistry } from "../../observe/metrics.ts";
import { ephemeralVolumeController } from "./ephemeralvolume.ts";

const metrics = metricsRegistry();

test("a pod's ephemeral volume gets a claim of its own, again if that goes, and never takes another's", () => withControllers((deps) => [ephemeralVolumeController({ ...deps, metrics })], async (api, call) => {
  const claims = api.client.resource(PERSISTENT_VOLUME_CLAIMS);
  const spec = { accessModes: ["ReadWriteOnce" as const], resources: { requests: { storage: "1Gi" } } };
  await claims.create({ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name: "web-taken", namespace: "ns" }, spec }, call);
  const pod = await api.client.resource(PODS).create({
    apiVersion: "v1", kind: "Pod", metadata: { name: "web", namespace: "ns" },
    spec: { containers: [], volumes: [{ name: "scratch", ephemeral: { volumeClaimTemplate: { metadata: { labels: { a: "b" } }, spec } } }, { name: "taken", ephemeral: { volumeClaimTemplate: { spec } } }] },
  }, call);
  const scratch = () => api.all(PERSISTENT_VOLUME_CLAIMS).find(({ metadata }) => metadata.name === "web-scratch");
  const made = await eventually(scratch, (claim) => claim !== undefined);
  expect(made).toMatchObject({ metadata: { labels: { a: "b" }, ownerReferences: [{ apiVersion: "v1", kind: "Pod", name: "web", uid: pod.metadata.uid, controller: true, blockOwnerDeletion: true }] }, spec });
  await eventually(() => api.all(EVENTS).map(({ reason, message }) => `${reason} ${message}`), (all) => all.includes("FailedBinding ephemeral volume taken: PVC ns/web-taken was not created for pod ns/web (pod is not owner)"));
  await claims.delete(made!, {}, call);
  await eventually(scratch, (claim) => claim !== undefined && claim.metadata.uid !== made!.metadata.uid);
  expect(metrics.render()).toMatch(/^ephemeral_volume_controller_create_failures_total 0$[\s\S]*^ephemeral_volume_controller_create_total 2$/m);
}));
