import { expect, test } from "vitest";
import { eventually } from "../../../test/fake-api.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import type { ReplicaSet } from "../../api/gen/apps.v1.ts";
import { controllerOf, type NewObject } from "../../api/meta/object-meta.ts";
import { forbidden } from "../../api/meta/status-error.ts";
import { EVENTS, PODS, REPLICA_SETS, REPLICATION_CONTROLLERS } from "../../client/resources.ts";
import { systemClock } from "../../lifecycle/clock.ts";
import { metricsRegistry } from "../../observe/metrics.ts";
import { podFromTemplate } from "../pod-control.ts";
import { replicaSetController, replicationController } from "./replicaset.ts";

function web(replicas: number): NewObject<ReplicaSet> {
  return {
    apiVersion: "apps/v1", kind: "ReplicaSet", metadata: { name: "web", namespace: "default" },
    spec: { replicas, selector: { matchLabels: { app: "web" } }, template: { metadata: { labels: { app: "web" } }, spec: { containers: [{ name: "c", image: "i" }] } } },
  };
}

test("how old those are that are given up is counted", () => {
  const metrics = metricsRegistry();
  return withControllers((deps) => [replicaSetController({ ...deps, metrics })], async (api, call) => {
    const set = await api.client.resource(REPLICA_SETS).create(web(2), call);
    await eventually(() => api.all(REPLICA_SETS)[0], (one) => one?.status?.replicas === 2);
    for (const pod of api.all(PODS)) await api.client.resource(PODS).updateStatus({ ...pod, status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] } }, call);
    await eventually(() => api.all(REPLICA_SETS)[0], (one) => one?.status?.readyReplicas === 2);
    await api.client.resource(REPLICA_SETS).patch(set, "application/merge-patch+json", { spec: { replicas: 1 } }, call);
    await eventually(() => metrics.render(), (page) => page.includes("replicaset_controller_sorting_deletion_age_ratio_count 1\n"));
  }, { clock: { ...systemClock, nowMs: () => Date.now() + 60_000 } });
});

test("a ReplicaSet gets its pods, adopts a stray one, replaces a failed one, and gives up what is too many", () =>
  withControllers((deps) => [replicaSetController(deps)], async (api, call) => {
    const pods = api.client.resource(PODS);
    const sets = api.client.resource(REPLICA_SETS);
    const stray = await pods.create({ apiVersion: "v1", kind: "Pod", metadata: { name: "stray", namespace: "default", labels: { app: "web" } }, spec: { containers: [] } }, call);
    await sets.create(web(3), call);
    await eventually(() => api.all(PODS), (all) => all.length === 3 && all.every((pod) => controllerOf(pod)?.name === "web"));
    expect(api.all(PODS).map(({ metadata }) => metadata.uid)).toContain(stray.metadata.uid);
    await eventually(() => api.all(REPLICA_SETS)[0], (set) => set?.status?.replicas === 3 && set.status.observedGeneration === 1);

    await pods.updateStatus({ ...api.all(PODS)[1]!, status: { phase: "Failed" } }, call);
    await eventually(() => api.all(PODS), (all) => all.length === 4);

    const released = api.all(PODS).find(({ metadata }) => metadata.name === "stray")!;
    await pods.patch(released, "application/merge-patch+json", { metadata: { labels: { app: "other" } } }, call);
    await eventually(() => api.all(PODS), (all) => all.length === 5 && controllerOf(all.find(({ metadata }) => metadata.name === "stray")!) === undefined);

    await sets.patch(api.all(REPLICA_SETS)[0]!, "application/merge-patch+json", { spec: { replicas: 1 } }, call);
    await eventually(() => api.all(REPLICA_SETS)[0], (set) => set?.status?.replicas === 1);
    const told = await eventually(() => api.all(EVENTS).map(({ reason }) => reason), (reasons) => reasons.includes("SuccessfulDelete"));
    expect(told).toContain("SuccessfulCreate");
  }));

test("a ReplicaSet with a name as long as names may be has pods, too", () => {
  const name = "w".repeat(252);
  const of = (length: string) => podFromTemplate({ metadata: {}, spec: { containers: [] } }, { ...web(1), metadata: { name: length, uid: "u", resourceVersion: "1", creationTimestamp: "" } }).metadata.generateName;
  expect([of(name), of(`${name}w`)]).toEqual([`${name}-`, `${name}w`]);
});

test("a refusal is tried with one pod, told as a condition and an event, and forgotten once it works", () =>
  withControllers((deps) => [replicaSetController(deps)], async (api, call) => {
    let refusals = 0;
    api.fail = ({ method, path }) => (method === "POST" && path.endsWith("/pods") && ++refusals <= 3 ? forbidden({ group: "", resource: "pods" }, "", "exceeded quota") : undefined);
    await api.client.resource(REPLICA_SETS).create(web(8), call);
    const seen = await eventually(() => api.all(REPLICA_SETS)[0], (set) => set?.status?.conditions?.[0] !== undefined);
    expect(seen?.status?.conditions?.[0]).toMatchObject({ type: "ReplicaFailure", status: "True", reason: "FailedCreate", message: "pods is forbidden: exceeded quota" });
    await eventually(() => api.all(REPLICA_SETS)[0], (set) => set?.status?.replicas === 8 && set.status.conditions === undefined);
    expect(api.all(EVENTS).find(({ reason }) => reason === "FailedCreate")?.message).toBe("Error creating: pods is forbidden: exceeded quota");
  }));

test("that pods could not be deleted is told as a condition, with what was wrong", () =>
  withControllers((deps) => [replicaSetController(deps)], async (api, call) => {
    const set = await api.client.resource(REPLICA_SETS).create(web(2), call);
    await eventually(() => api.all(REPLICA_SETS)[0], (one) => one?.status?.replicas === 2);
    api.fail = ({ method }) => (method === "DELETE" ? forbidden({ group: "", resource: "pods" }, "", "no") : undefined);
    await api.client.resource(REPLICA_SETS).patch(set, "application/merge-patch+json", { spec: { replicas: 1 } }, call);
    const seen = await eventually(() => api.all(REPLICA_SETS)[0]?.status?.conditions?.[0], (condition) => condition !== undefined);
    expect(seen).toMatchObject({ type: "ReplicaFailure", status: "True", reason: "FailedDelete", message: "unable to delete pods: pods is forbidden: no" });
    expect(api.all(EVENTS).find(({ reason }) => reason === "FailedDelete")?.message).toBe("Error deleting: pods is forbidden: no");
  }));

test("a ReplicationController is kept by the same code", () =>
  withControllers((deps) => [replicationController(deps)], async (api, call) => {
    const template = { metadata: { labels: { app: "rc" } }, spec: { containers: [] } };
    await api.client.resource(REPLICATION_CONTROLLERS).create({ apiVersion: "v1", kind: "ReplicationController", metadata: { name: "rc", namespace: "default" }, spec: { replicas: 2, selector: { app: "rc" }, template } }, call);
    await eventually(() => api.all(REPLICATION_CONTROLLERS)[0], (rc) => rc?.status?.replicas === 2);
    expect(api.all(PODS).map((pod) => controllerOf(pod)?.kind)).toEqual(["ReplicationController", "ReplicationController"]);
  }));
