import { expect, test } from "vitest";
import { eventually, type FakeApi } from "../../../test/fake-api.ts";
import { fakeKubelets, type Outcome } from "../../../test/fake-kubelet.ts";
import { growth, Reads } from "../../../test/reads.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import type { StatefulSet, StatefulSetSpec } from "../../api/gen/apps.v1.ts";
import type { Pod } from "../../api/gen/core.v1.ts";
import { conflict, forbidden } from "../../api/meta/status-error.ts";
import { CONTROLLER_REVISIONS, EVENTS, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS } from "../../client/resources.ts";
import { metricsRegistry } from "../../observe/metrics.ts";
import { planSteps, type Step, type World } from "./plan.ts";
import { claimOwners, repaired } from "./pods.ts";
import { statefulSetController } from "./statefulset.ts";

const spec = (more: Partial<StatefulSetSpec> = {}): StatefulSetSpec => ({
  replicas: 3, serviceName: "db", selector: { matchLabels: { app: "db" } }, updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 0 } },
  template: { metadata: { labels: { app: "db" } }, spec: { containers: [{ name: "c", image: "one" }] } },
  volumeClaimTemplates: [{ metadata: { name: "data" }, spec: { accessModes: ["ReadWriteOnce"] } }] as never, ...more,
});
const now = (api: FakeApi) => api.all(STATEFUL_SETS)[0];
const names = (api: FakeApi) => api.all(PODS).map(({ metadata }) => metadata.name).sort().join();
const run = (more: Partial<StatefulSetSpec>, outcome: (pod: Readonly<Pod>) => Outcome, body: (api: FakeApi, call: { signal: AbortSignal }) => Promise<void>) =>
  withControllers((deps) => [statefulSetController(deps), fakeKubelets(deps, outcome)], async (api, call) => {
    await api.client.resource(STATEFUL_SETS).create({ apiVersion: "apps/v1", kind: "StatefulSet", metadata: { name: "db", namespace: "default" }, spec: spec(more) }, call);
    await body(api, call);
  });

test("pods come one by one, each with its name and its claim; updates go from the top; claims stay", () =>
  run({}, () => "ready", async (api, call) => {
    const patch = (change: unknown) => api.client.resource(STATEFUL_SETS).patch(now(api)!, "application/merge-patch+json", { spec: change }, call);
    await eventually(() => now(api)?.status, (status) => status?.availableReplicas === 3 && status.currentRevision === status.updateRevision);
    expect(names(api)).toBe("db-0,db-1,db-2");
    expect(api.all(PODS)[1]).toMatchObject({
      metadata: { generateName: "db-", labels: { app: "db", "statefulset.kubernetes.io/pod-name": "db-1", "apps.kubernetes.io/pod-index": "1", "controller-revision-hash": now(api)?.status?.currentRevision } },
      spec: { hostname: "db-1", subdomain: "db", volumes: [{ name: "data", persistentVolumeClaim: { claimName: "data-db-1" } }] },
    });
    const posts = api.requests.filter((request) => request.startsWith("POST") && (request.endsWith("pods") || request.endsWith("persistentvolumeclaims"))).map((request) => request.split("/").at(-1));
    expect(posts).toEqual(["persistentvolumeclaims", "pods", "persistentvolumeclaims", "pods", "persistentvolumeclaims", "pods"]);

    const before = api.requests.length;
    await patch({ template: { spec: { containers: [{ name: "c", image: "two" }] } } });
    await eventually(() => api.all(PODS).map(({ spec: { containers } }) => containers[0]?.image).join(), (images) => images === "two,two,two");
    await eventually(() => now(api)?.status, (status) => status?.currentRevision === status?.updateRevision && status?.updatedReplicas === 3 && status.readyReplicas === 3);
    const deleted = api.requests.slice(before).filter((request) => request.startsWith("DELETE")).map((request) => request.split("/").at(-1));
    expect([...new Set(deleted)]).toEqual(["db-2", "db-1", "db-0"]);
    expect(api.all(CONTROLLER_REVISIONS).map(({ revision }) => revision).sort()).toEqual([1, 2]);

    await patch({ replicas: 1 });
    await eventually(() => now(api)?.status?.replicas, (replicas) => replicas === 1);
    expect([names(api), api.all(PERSISTENT_VOLUME_CLAIMS).length]).toEqual(["db-0", 3]);
  }));

test("a pod that does not become ready holds up those after it; in parallel it does not", async () => {
  await run({}, (pod) => (pod.metadata.name === "db-1" ? "pending" : "ready"), async (api) => {
    await eventually(() => names(api), (seen) => seen === "db-0,db-1");
    await Bun.sleep(30);
    expect(names(api)).toBe("db-0,db-1");
  });
  await run({ podManagementPolicy: "Parallel" }, (pod) => (pod.metadata.name === "db-1" ? "pending" : "ready"), async (api) => {
    await eventually(() => names(api), (seen) => seen === "db-0,db-1,db-2");
  });
});

test("who comes after a set of the same name and template goes on with its revision, and has one of its own once that is collected", () =>
  run({ replicas: 0 }, () => "ready", async (api, call) => {
    const [sets, revisions] = [api.client.resource(STATEFUL_SETS), api.client.resource(CONTROLLER_REVISIONS)];
    const [revision] = await eventually(() => api.all(CONTROLLER_REVISIONS), (all) => all.length === 1);
    await sets.delete(now(api)!, {}, call);
    const next = await sets.create({ apiVersion: "apps/v1", kind: "StatefulSet", metadata: { name: "db", namespace: "default" }, spec: spec({ replicas: 0 }) }, call);
    await eventually(() => now(api)?.status, (status) => status?.updateRevision === revision!.metadata.name && status.collisionCount === 0);
    await revisions.delete(revision!, {}, call);
    const [own] = await eventually(() => api.all(CONTROLLER_REVISIONS), ([one]) => one?.metadata.ownerReferences?.[0]?.uid === next.metadata.uid);
    expect(own!.metadata.name).toBe(revision!.metadata.name);
  }));

test("a claim that is refused does not keep the pod's others from being made", () =>
  withControllers((deps) => [statefulSetController(deps)], async (api, call) => {
    api.fail = ({ method, path, body }) => (method === "POST" && path.endsWith("/persistentvolumeclaims") && JSON.stringify(body).includes("refused") ? forbidden({ group: "", resource: "persistentvolumeclaims" }, "", "exceeded quota") : undefined);
    const templates = ["refused-a", "data", "refused-b"].map((name) => ({ metadata: { name }, spec: { accessModes: ["ReadWriteOnce"] } }));
    await api.client.resource(STATEFUL_SETS).create({ apiVersion: "apps/v1", kind: "StatefulSet", metadata: { name: "db", namespace: "default" }, spec: spec({ volumeClaimTemplates: templates as never }) }, call);
    await eventually(() => api.all(PERSISTENT_VOLUME_CLAIMS).map(({ metadata }) => metadata.name).join(), (made) => made === "data-db-0");
    const why = (name: string) => `failed to create PVC ${name}-db-0: persistentvolumeclaims is forbidden: exceeded quota`;
    await eventually(() => api.all(EVENTS).map(({ message }) => message), (told) => told.includes(`Create Pod db-0 in StatefulSet db failed error: [${why("refused-a")}, ${why("refused-b")}]`));
    expect(api.all(PODS)).toEqual([]);
  }));

test("a pod that ends is made again under the same name", () =>
  run({ replicas: 1 }, () => "ready", async (api, call) => {
    await eventually(() => now(api)?.status?.readyReplicas, (ready) => ready === 1);
    const [first] = api.all(PODS);
    await api.client.resource(PODS).updateStatus({ ...first!, status: { ...first!.status, phase: "Failed" } }, call);
    await eventually(() => api.all(PODS)[0], (pod) => pod?.metadata.name === "db-0" && pod.metadata.uid !== first!.metadata.uid && pod.status?.phase === "Running");
  }));

test("below the partition nothing is updated, and what is lost there comes back as it was", () =>
  run({ replicas: 3, updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 2 } } }, () => "ready", async (api, call) => {
    const images = () => api.all(PODS).toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1)).map(({ spec: { containers } }) => containers[0]?.image).join();
    await eventually(() => now(api)?.status?.readyReplicas, (ready) => ready === 3);
    await api.client.resource(STATEFUL_SETS).patch(now(api)!, "application/merge-patch+json", { spec: { template: { spec: { containers: [{ name: "c", image: "two" }] } } } }, call);
    await eventually(images, (seen) => seen === "one,one,two");
    const [lost] = api.all(PODS).filter(({ metadata }) => metadata.name === "db-0");
    await api.client.resource(PODS).delete(lost!, {}, call);
    await eventually(() => api.all(PODS).find(({ metadata }) => metadata.name === "db-0")?.metadata.uid, (uid) => uid !== undefined && uid !== lost!.metadata.uid);
    expect(images()).toBe("one,one,two");
  }));

const set = (more: Partial<StatefulSetSpec> = {}) => ({ apiVersion: "apps/v1", kind: "StatefulSet", metadata: { name: "db", namespace: "default", uid: "set" }, spec: spec({ volumeClaimTemplates: [], ...more }) }) as StatefulSet;
const pod = (ordinal: number, { revision = "new", ready = true, deleting = false, phase = "Running" } = {}) => ({
  apiVersion: "v1", kind: "Pod", metadata: { name: `db-${ordinal}`, uid: `pod-${ordinal}`, labels: { "controller-revision-hash": revision, "statefulset.kubernetes.io/pod-name": `db-${ordinal}` }, ...(deleting ? { deletionTimestamp: "x" } : {}) },
  spec: { containers: [] }, status: { phase, conditions: [{ type: "Ready", status: ready ? "True" : "False", lastTransitionTime: "2026-01-01T00:00:00Z" }] },
}) as unknown as Pod;
const told = (steps: readonly Step[]) => steps.map((step) => `${step.do} ${step.do === "create" ? `${step.pod.metadata.name}@${step.pod.metadata.labels?.["controller-revision-hash"]}` : step.pod.metadata.name}`);
const rolling = (maxUnavailable: number | string, partition = 0): Partial<StatefulSetSpec> => ({ updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition, maxUnavailable } } });
const parallel = { podManagementPolicy: "Parallel" as const };

test.each<[string, Partial<StatefulSetSpec>, Pod[], string[]]>([
  ["the lowest that is missing", {}, [pod(0), pod(2)], ["create db-1@new"]],
  ["all that are missing, in parallel", parallel, [pod(1)], ["create db-0@new", "create db-2@new"]],
  ["nothing while one goes", {}, [pod(0), pod(1, { deleting: true }), pod(2)], []],
  ["a failed one is replaced", {}, [pod(0), pod(1, { phase: "Failed" }), pod(2)], ["delete db-1"]],
  ["one too many, from the top", { replicas: 1 }, [pod(0), pod(1), pod(2)], ["delete db-2"]],
  ["none too many goes while another is not well", { replicas: 1 }, [pod(0), pod(1, { ready: false }), pod(2, { ready: false })], []],
  ["unless it is the one that is not well", { replicas: 1 }, [pod(0), pod(1, { ready: false })], ["delete db-1"]],
  ["all too many, in parallel", { replicas: 1, ...parallel }, [pod(0), pod(1, { ready: false }), pod(2)], ["delete db-2", "delete db-1"]],
  ["the next to update, from the top", {}, [pod(0, { revision: "old" }), pod(1, { revision: "old" }), pod(2)], ["delete db-1"]],
  ["one, whatever the set allows: the gate is off", rolling(2), [pod(0, { revision: "old" }), pod(1, { revision: "old" }), pod(2, { revision: "old" })], ["delete db-2"]],
  ["a broken one too, in parallel", parallel, [pod(0, { revision: "old" }), pod(1, { revision: "old", ready: false }), pod(2)], ["delete db-1"]],
  ["none, on delete", { updateStrategy: { type: "OnDelete" } }, [pod(0, { revision: "old" }), pod(1), pod(2)], []],
  ["not below the partition", { updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 1 } } }, [pod(0, { revision: "old" }), pod(1), pod(2)], []],
  ["below the partition as it was", { updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 1 } } }, [pod(1), pod(2)], ["create db-0@old"]],
  ["ordinals from another start", { replicas: 2, ordinals: { start: 5 } }, [pod(5)], ["create db-6@new"]],
])("next: %s", (_, more, pods, steps) => {
  const world: World = { set: set(more), current: { name: "old", template: {} }, update: { name: "new", template: {} }, pods, nowMs: Date.parse("2026-01-02T00:00:00Z") };
  expect(told(planSteps(world))).toEqual(steps);
});

const old = (ordinal: number, more: Parameters<typeof pod>[1] = {}) => pod(ordinal, { revision: "old", ...more });
const six = { replicas: 6, ...parallel };
test.each<[string, Partial<StatefulSetSpec>, Pod[], string[]]>([
  ["several, if so many may be missing", rolling(2), [old(0), old(1), old(2)], ["delete db-2", "delete db-1"]],
  ["one, if nothing is said", { updateStrategy: { type: "RollingUpdate" } }, [old(0), old(1), old(2)], ["delete db-2"]],
  ["a part of them", { replicas: 4, ...rolling("50%") }, [old(0), old(1), old(2), old(3)], ["delete db-3", "delete db-2"]],
  ["one, if the part is less than that", rolling("10%"), [old(0), old(1), old(2)], ["delete db-2"]],
  ["one after the other is made, where they are ordered", rolling(2), [old(0)], ["create db-1@new"]],
  ["not below the partition", { ...six, ...rolling(2, 3) }, [old(0), old(1), old(2), old(3), old(4), old(5)], ["delete db-5", "delete db-4"]],
  ["one that goes is counted, above the partition", { ...six, ...rolling(2, 3) }, [old(0), old(1), old(2), old(3), old(4), old(5, { deleting: true })], ["delete db-4"]],
  ["and below it", { ...six, ...rolling(2, 3) }, [old(0), old(1, { deleting: true }), old(2), old(3), old(4), old(5)], ["delete db-5"]],
  ["two that go", { ...six, ...rolling(2, 3) }, [old(0), old(1), old(2), old(3, { deleting: true }), old(4, { deleting: true }), old(5)], []],
  ["more than may", { ...six, ...rolling(2, 3) }, [old(0), old(1), old(2), old(3, { deleting: true }), old(4, { deleting: true }), old(5, { deleting: true })], []],
  ["the next, as soon as one serves", { ...six, ...rolling(2, 3) }, [old(0), old(1), old(2), old(3), pod(4), pod(5, { ready: false })], ["delete db-3"]],
  ["nothing is left to do", { ...six, ...rolling(2, 3) }, [old(0), old(1), old(2), pod(3), pod(4), pod(5)], []],
  ["one that is broken is not replaced before there is room", { ...six, ...rolling(1) }, [old(0, { ready: false }), old(1), old(2), old(3), old(4), old(5)], []],
  ["none, on delete", { updateStrategy: { type: "OnDelete" } }, [old(0), old(1), old(2)], []],
])("several at once: %s", (_, more, pods, steps) => {
  const world: World = { set: set(more), current: { name: "old", template: {} }, update: { name: "new", template: {} }, pods, nowMs: Date.parse("2026-01-02T00:00:00Z"), several: true };
  expect(told(planSteps(world))).toEqual(steps);
});

test("where several may be missing it is told how many may, and are", async () => {
  const metrics = metricsRegistry();
  const lines = () => metrics.render().split("\n").filter((line) => line.startsWith("statefulset_controller_statefulset_"));
  const labels = '{pod_management_policy="Parallel",statefulset_name="db",statefulset_namespace="default"}';
  await withControllers((deps) => [statefulSetController({ ...deps, metrics, gates: new Set(["MaxUnavailableStatefulSet"]) }), fakeKubelets(deps, (one) => (one.metadata.name === "db-1" ? "pending" : "ready"))], async (api, call) => {
    const db = await api.client.resource(STATEFUL_SETS).create({ apiVersion: "apps/v1", kind: "StatefulSet", metadata: { name: "db", namespace: "default" }, spec: spec({ ...parallel, ...rolling("70%") }) }, call);
    await eventually(lines, (seen) => seen.includes(`statefulset_controller_statefulset_unavailable_replicas${labels} 1`));
    expect(lines()).toContain(`statefulset_controller_statefulset_max_unavailable${labels} 2`);
    await api.client.resource(STATEFUL_SETS).delete(db, {}, call);
    await eventually(lines, (seen) => seen.length === 0);
  });
  const silent = metricsRegistry();
  await withControllers((deps) => [statefulSetController({ ...deps, metrics: silent })], async (api, call) => {
    await api.client.resource(STATEFUL_SETS).create({ apiVersion: "apps/v1", kind: "StatefulSet", metadata: { name: "db", namespace: "default" }, spec: spec() }, call);
    await eventually(() => now(api)?.status?.observedGeneration, (seen) => seen !== undefined);
    expect(silent.render()).not.toContain("statefulset_controller");
  });
});

const owner = (kind: string, uid: string, controller = true) => ({ apiVersion: kind === "Pod" ? "v1" : "apps/v1", kind, name: kind === "Pod" ? "db-1" : "db", uid, controller, blockOwnerDeletion: true });
test.each([
  ["kept for good", {}, 3, [owner("StatefulSet", "set")], []],
  ["goes with the set", { whenDeleted: "Delete" }, 3, [], ["set"]],
  ["goes with the pod when scaled down", { whenScaled: "Delete" }, 1, [], ["pod-1"]],
  ["both, scaled down", { whenScaled: "Delete", whenDeleted: "Delete" }, 1, [owner("StatefulSet", "set")], ["pod-1"]],
  ["another's claim is left", { whenDeleted: "Delete" }, 3, [{ ...owner("Pod", "x"), name: "other" }], undefined],
  ["a predecessor's claim is left", { whenScaled: "Delete" }, 1, [owner("Pod", "old")], undefined],
])("claim: %s", (_, policy, replicas, ownerReferences, uids) => {
  const change = claimOwners({ metadata: { name: "data-db-1", ownerReferences } } as never, set({ replicas, persistentVolumeClaimRetentionPolicy: policy }), pod(1));
  expect(change?.map(({ uid }) => uid)).toEqual(uids);
});

test("claims have their owners from the start, as the retention policy says; when it changes they change, and that is told as an update of the pod", () =>
  run({ replicas: 1, persistentVolumeClaimRetentionPolicy: { whenDeleted: "Delete", whenScaled: "Retain" } }, () => "ready", async (api, call) => {
    const owners = () => api.all(PERSISTENT_VOLUME_CLAIMS).flatMap(({ metadata }) => metadata.ownerReferences ?? []).map(({ kind }) => kind).join();
    const told = () => api.all(EVENTS).filter(({ reason }) => reason === "SuccessfulUpdate").map(({ message }) => message);
    await eventually(() => now(api)?.status?.readyReplicas, (count) => count === 1);
    await eventually(owners, (kinds) => kinds === "StatefulSet");
    expect(told()).toEqual([]);
    await api.client.resource(STATEFUL_SETS).patch(now(api)!, "application/merge-patch+json", { spec: { persistentVolumeClaimRetentionPolicy: { whenDeleted: "Retain", whenScaled: "Retain" } } }, call);
    await eventually(owners, (kinds) => kinds === "");
    expect(await eventually(told, (messages) => messages.length > 0)).toEqual(["Update Pod db-0 in StatefulSet db successful"]);
  }));

test("of a claim that has another controller it is told, while its pod starts, that it does not go with the set", () =>
  withControllers((deps) => [statefulSetController(deps)], async (api, call) => {
    const claim = { apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name: "data-db-0", namespace: "default", ownerReferences: [{ apiVersion: "example.com/v1", kind: "Store", name: "s", uid: "s", controller: true }] }, spec: {} };
    await api.client.resource(PERSISTENT_VOLUME_CLAIMS).create(claim as never, call);
    await api.client.resource(STATEFUL_SETS).create({ apiVersion: "apps/v1", kind: "StatefulSet", metadata: { name: "db", namespace: "default" }, spec: spec({ replicas: 1, persistentVolumeClaimRetentionPolicy: { whenDeleted: "Delete", whenScaled: "Retain" } }) }, call);
    const told = await eventually(() => api.all(EVENTS).find(({ reason }) => reason === "ConflictingController"), (event) => event !== undefined);
    expect(told).toMatchObject({ type: "Warning", message: "PersistentVolumeClaim data-db-0 has a conflicting OwnerReference that acts as a manging controller, the retention policy is ignored for this claim" });
    expect(api.all(PERSISTENT_VOLUME_CLAIMS).flatMap(({ metadata }) => metadata.ownerReferences ?? []).map(({ uid }) => uid)).toEqual(["s"]);
  }));

test("that the owners of a claim, or the claims of a pod, could not be put right is told", () =>
  run({ replicas: 1, persistentVolumeClaimRetentionPolicy: { whenDeleted: "Delete", whenScaled: "Retain" } }, () => "ready", async (api, call) => {
    const told = () => api.all(EVENTS).filter(({ reason }) => reason === "FailedUpdate").map(({ message }) => message);
    await eventually(() => now(api)?.status?.readyReplicas, (count) => count === 1);
    api.fail = ({ method, path }) => (method !== "GET" && path.includes("/persistentvolumeclaims") ? forbidden({ group: "", resource: "persistentvolumeclaims" }, "", "no") : undefined);
    const change = (spec: unknown) => api.client.resource(STATEFUL_SETS).patch(now(api)!, "application/merge-patch+json", { spec }, call);
    await change({ persistentVolumeClaimRetentionPolicy: { whenDeleted: "Retain" } });
    await eventually(told, (messages) => messages.includes("Update Pod db-0 in StatefulSet db failed error: could not update claim data-db-0 for delete policy ownerRefs: persistentvolumeclaims is forbidden: no"));
    await change({ persistentVolumeClaimRetentionPolicy: { whenDeleted: "Delete" }, volumeClaimTemplates: [{ metadata: { name: "data" }, spec: {} }, { metadata: { name: "more" }, spec: {} }] });
    await eventually(told, (messages) => messages.includes("Update Pod db-0 in StatefulSet db failed error: failed to create PVC more-db-0: persistentvolumeclaims is forbidden: no"));
  }));

test("a pod that was written by another meanwhile is put right all the same, and nobody is told that it failed", () =>
  run({ replicas: 1 }, () => "ready", async (api, call) => {
    await eventually(() => now(api)?.status?.readyReplicas, (count) => count === 1);
    let conflicts = 0;
    api.fail = ({ method, path }) => (method === "PUT" && path.endsWith("/pods/db-0") && conflicts++ === 0 ? conflict({ group: "", resource: "pods" }, "db-0", "the object has been modified") : undefined);
    const labels = { "statefulset.kubernetes.io/pod-name": null };
    await api.client.resource(PODS).patch(api.all(PODS)[0]!, "application/merge-patch+json", { metadata: { labels } }, call);
    await eventually(() => api.all(PODS)[0]?.metadata.labels?.["statefulset.kubernetes.io/pod-name"], (name) => name === "db-0");
    await eventually(() => api.all(EVENTS).map(({ reason }) => reason), (reasons) => reasons.includes("SuccessfulUpdate"));
    expect(conflicts).toBe(2);
    expect(api.all(EVENTS).map(({ reason }) => reason)).not.toContain("FailedUpdate");
  }));

test("of which revision the first pods are is told, though the template has changed before it could be", () =>
  run({ replicas: 2, podManagementPolicy: "Parallel", updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 2 } } }, () => "ready", async (api, call) => {
    let conflicts = 0;
    api.fail = ({ method, path }) => {
      if (method !== "PUT" || !path.endsWith("/statefulsets/db/status") || conflicts++ > 0) return undefined;
      void api.client.resource(STATEFUL_SETS).patch(now(api)!, "application/merge-patch+json", { spec: { template: { spec: { containers: [{ name: "c", image: "two" }] } } } }, call);
      return conflict({ group: "apps", resource: "statefulsets" }, "db", "the object has been modified");
    };
    const told = await eventually(() => now(api)?.status, (status) => status?.observedGeneration === 2 && status.readyReplicas === 2);
    const imageOf = (name: string | undefined) => JSON.stringify(api.all(CONTROLLER_REVISIONS).find(({ metadata }) => metadata.name === name)?.data).match(/"image":"(\w+)"/)?.[1];
    expect([imageOf(told!.currentRevision), imageOf(told!.updateRevision), told!.currentReplicas]).toEqual(["one", "two", 2]);
  }));

test.each([[-1, [1, 2, 3, 4]], [0, [4]], [1, [3, 4]]])("of a history limit of %i the revisions %j are left", (revisionHistoryLimit, left) =>
  run({ replicas: 1, revisionHistoryLimit }, () => "ready", async (api, call) => {
    for (const [i, image] of ["one", "two", "three", "four"].entries()) {
      if (i > 0) await api.client.resource(STATEFUL_SETS).patch(now(api)!, "application/merge-patch+json", { spec: { template: { spec: { containers: [{ name: "c", image }] } } } }, call);
      await eventually(() => now(api)?.status, (status) => status?.readyReplicas === 1 && status.currentRevision === status.updateRevision && api.all(PODS)[0]?.spec.containers[0]?.image === image);
    }
    await eventually(() => api.all(CONTROLLER_REVISIONS).map(({ revision }) => revision).sort(), (revisions) => revisions.join() === left.join());
  }));

test("of more pods than any memory holds the first are planned, beside those that are there", () => {
  const set = { metadata: { name: "db", namespace: "default", uid: "s" }, spec: spec({ replicas: 2 ** 31 - 1, podManagementPolicy: "Parallel" }) } as StatefulSet;
  const pods = ["db-1", "db-2147483646"].map((name) => ({ metadata: { name, namespace: "default" }, spec: {}, status: { phase: "Pending" } }) as Pod);
  const revision = { name: "r", template: set.spec.template };
  const steps = planSteps({ set, current: revision, update: revision, pods, nowMs: 0 });
  expect(steps.flatMap((step) => (step.do === "create" ? [step.ordinal] : []))).toEqual([0, ...Array.from({ length: 499 }, (_, i) => i + 2)]);
  expect(steps.flatMap((step) => (step.do === "provide" ? [step.pod.metadata.name] : []))).toEqual(["db-1", "db-2147483646"]);
});

test("more pods than one round makes are made in several", () => run({ podManagementPolicy: "Parallel", replicas: 510, volumeClaimTemplates: [] }, () => "pending", async (api) => {
  await eventually(() => api.all(PODS).length, (count) => count === 510);
}));

test("of very many claims each is looked for by name", () => {
  const named = (n: number) => Array.from({ length: n }, (_, i) => ({ metadata: { name: `c${i}` }, spec: {} }));
  const volumes = (n: number) => Array.from({ length: n }, (_, i) => ({ name: `c${i}`, persistentVolumeClaim: { claimName: `c${i}-db-0` } }));
  const fitting = (n: number, reads: Reads, more: number) => repaired(
    { metadata: { name: "db", namespace: "default" }, spec: { volumeClaimTemplates: reads.of(named(n + more)) } } as never,
    { metadata: { name: "db-0", labels: { "statefulset.kubernetes.io/pod-name": "db-0" } }, spec: { volumes: reads.of(volumes(n)) } } as never,
  );
  expect(fitting(3, new Reads(), 0)).toBeUndefined();
  expect(fitting(3, new Reads(), 1)?.spec.volumes).toHaveLength(4);
  for (const more of [0, 1]) expect(growth((n, reads) => fitting(n, reads, more))).toBeLessThan(3);
});
