/** What users of Deployments rely on, with the real API, controllers and scheduler; time is simulated. */
import { expect, test } from "vitest";
import type { Deployment, ReplicaSet } from "../../core/api/gen/apps.v1.ts";
import type { Pod } from "../../core/api/gen/core.v1.ts";
import { DEPLOYMENTS, PODS, REPLICA_SETS, RESOURCE_QUOTAS } from "../../core/client/resources.ts";
import { type FairCluster, fairCluster, isReady, NOWHERE, template } from "./fair-cluster.ts";

const spec = (replicas: number | undefined, more: object = {}, pod: object = {}) => ({ ...(replicas === undefined ? {} : { replicas }), selector: { matchLabels: { app: "web" } }, template: template("web", pod), ...more });
const image = (name: string, more: object = {}) => ({ spec: { template: { spec: { containers: [{ name: "c", image: name, resources: { requests: { cpu: "100m" } } }], ...more } } } });
const REVISION = "deployment.kubernetes.io/revision";

function about(cluster: FairCluster, name = "web") {
  const get = () => cluster.get<Deployment>(DEPLOYMENTS, name);
  const sets = async (): Promise<ReplicaSet[]> => (await cluster.list(REPLICA_SETS)).filter(({ metadata }) => metadata.ownerReferences?.[0]?.name === name).toSorted((a, b) => Number(a.metadata.annotations![REVISION]) - Number(b.metadata.annotations![REVISION]));
  const sizes = async (): Promise<string> => (await sets()).map((set) => `${set.metadata.annotations![REVISION]}:${set.spec.replicas}`).join(" ");
  const condition = async (type: string) => (await get()).status?.conditions?.find((one) => one.type === type);
  const done = async (): Promise<boolean> => {
    const { metadata, spec: wanted, status } = await get();
    return status?.observedGeneration === metadata.generation && status?.updatedReplicas === wanted.replicas && status?.availableReplicas === wanted.replicas && status?.replicas === wanted.replicas;
  };
  return { get, sets, sizes, condition, done };
}

test("names, labels and owners of sets and pods; the first rollout goes straight to its size; what is told", async () => {
  await using cluster = await fairCluster();
  const { get, sets, condition, done } = about(cluster);
  await cluster.create(DEPLOYMENTS, { metadata: { name: "web" }, spec: spec(3) });
  await cluster.until(done);
  const [set] = await sets();
  const hash = set!.metadata.labels!["pod-template-hash"]!;
  expect(set!.metadata.name).toBe(`web-${hash}`);
  expect([set!.spec.selector?.matchLabels, set!.spec.template?.metadata?.labels]).toEqual([{ app: "web", "pod-template-hash": hash }, { app: "web", "pod-template-hash": hash }]);
  const pods = await cluster.list<Pod>(PODS);
  for (const { metadata } of pods) {
    expect(metadata.name).toMatch(new RegExp(`^web-${hash}-[bcdfghjklmnpqrstvwxz2456789]{5}$`));
    expect(metadata).toMatchObject({ generateName: `web-${hash}-`, labels: { app: "web", "pod-template-hash": hash }, ownerReferences: [{ apiVersion: "apps/v1", kind: "ReplicaSet", name: set!.metadata.name, uid: set!.metadata.uid, controller: true, blockOwnerDeletion: true }] });
  }
  expect((await get()).status).toMatchObject({ observedGeneration: 1, replicas: 3, updatedReplicas: 3, readyReplicas: 3, availableReplicas: 3 });
  expect(await condition("Available")).toMatchObject({ status: "True", reason: "MinimumReplicasAvailable", message: "Deployment has minimum availability.", lastUpdateTime: expect.any(String), lastTransitionTime: expect.any(String) });
  expect(await condition("Progressing")).toMatchObject({ status: "True", reason: "NewReplicaSetAvailable", message: `ReplicaSet "web-${hash}" has successfully progressed.` });
  await cluster.until(async () => (await cluster.events(`web-${hash}`)).length >= 3);
  expect(await cluster.events("web")).toEqual([`Normal ScalingReplicaSet: Scaled up replica set web-${hash} from 0 to 3`]);
  expect((await cluster.events(`web-${hash}`)).sort()).toEqual(pods.map(({ metadata }) => `Normal SuccessfulCreate: Created pod: ${metadata.name}`).sort());
});

test("a new template rolls out within maxSurge and maxUnavailable, other changes roll nothing out, old sets stay for going back", async () => {
  await using cluster = await fairCluster();
  const { get, sets, sizes, done } = about(cluster);
  await cluster.create(DEPLOYMENTS, { metadata: { name: "web", annotations: { "kubernetes.io/change-cause": "first" } }, spec: spec(4) });
  await cluster.until(done);
  await cluster.patch(DEPLOYMENTS, "web", { metadata: { labels: { team: "x" } }, spec: { minReadySeconds: 1 } });
  await cluster.pass(10);
  expect(await sizes()).toBe("1:4");

  const since = cluster.inner.clock.uptimeMs();
  await cluster.patch(DEPLOYMENTS, "web", { metadata: { annotations: { "kubernetes.io/change-cause": "second" } }, ...image("app:2") });
  let least = 9, most = 0;
  while (!(await done())) {
    const pods = await cluster.list<Pod>(PODS);
    least = Math.min(least, pods.filter(isReady).length);
    most = Math.max(most, pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined).length);
    await cluster.pass(1);
    expect(cluster.inner.clock.uptimeMs() - since).toBeLessThan(120_000);
  }
  expect([least >= 3, most <= 5]).toEqual([true, true]);
  expect(await sizes()).toBe("1:0 2:4");
  expect((await sets()).map(({ metadata }) => metadata.annotations!["kubernetes.io/change-cause"])).toEqual(["first", "second"]);
  expect((await get()).metadata.annotations![REVISION]).toBe("2");

  await cluster.patch(DEPLOYMENTS, "web", { spec: { replicas: 5 } }); // and back: the set of old, with a new number; the size stays what it is now
  await cluster.patch(DEPLOYMENTS, "web", image("app:1"));
  await cluster.until(done);
  expect(await sizes()).toBe("2:0 3:5");
  expect((await sets())[1]!.metadata.annotations!["deployment.kubernetes.io/revision-history"]).toBe("1");
});

test("a template changed in the middle of a rollout: the newest grows at once, the one under way is given up", async () => {
  await using cluster = await fairCluster();
  const { sizes, done } = about(cluster);
  await cluster.create(DEPLOYMENTS, { metadata: { name: "web" }, spec: spec(4, { strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 1 } } }) });
  await cluster.until(done);
  await cluster.patch(DEPLOYMENTS, "web", image("app:2", NOWHERE));
  await cluster.until(async () => (await sizes()) === "1:3 2:2");
  await cluster.pass(30);
  expect(await sizes()).toBe("1:3 2:2"); // as many serve as have to
  await cluster.patch(DEPLOYMENTS, "web", image("app:3", { nodeSelector: null }));
  await cluster.until(done);
  expect(await sizes()).toBe("1:0 2:0 3:4");
});

test("a rollout that is stuck is late after progressDeadlineSeconds, is told so, still takes changes, and recovers", async () => {
  await using cluster = await fairCluster();
  const { get, sets, sizes, condition, done } = about(cluster);
  await cluster.create(DEPLOYMENTS, { metadata: { name: "web" }, spec: spec(3) });
  await cluster.until(done);
  await cluster.patch(DEPLOYMENTS, "web", image("app:2", NOWHERE));
  await cluster.until(async () => (await condition("Progressing"))?.reason === "ReplicaSetUpdated");
  const name = (await sets())[1]!.metadata.name;
  expect((await condition("Progressing"))?.message).toBe(`ReplicaSet "${name}" is progressing.`);
  const seconds = await cluster.until(async () => (await condition("Progressing"))?.status === "False", 700);
  expect([seconds > 590, seconds < 615]).toEqual([true, true]);
  expect(await condition("Progressing")).toMatchObject({ reason: "ProgressDeadlineExceeded", message: `ReplicaSet "${name}" has timed out progressing.` });
  expect(await condition("Available")).toMatchObject({ status: "True" });
  expect((await get()).status).toMatchObject({ replicas: 4, updatedReplicas: 1, availableReplicas: 3, unavailableReplicas: 1 });
  await cluster.patch(DEPLOYMENTS, "web", { spec: { replicas: 4 } });
  await cluster.until(async () => (await sizes()) === "1:3 2:2"); // three of four have to serve
  await cluster.patch(DEPLOYMENTS, "web", image("app:1", { nodeSelector: null })); // undo
  await cluster.until(done);
  expect(await condition("Progressing")).toMatchObject({ status: "True", reason: "NewReplicaSetAvailable" });
  expect(await sizes()).toBe("2:0 3:4");
});

test("the documented example: 10 replicas, stuck at 8 and 5, scaled to 15: three more for the old set, two for the new one", async () => {
  await using cluster = await fairCluster();
  const { sizes, done } = about(cluster);
  await cluster.create(DEPLOYMENTS, { metadata: { name: "web" }, spec: spec(10, { strategy: { rollingUpdate: { maxSurge: 3, maxUnavailable: 2 } } }) });
  await cluster.until(done);
  await cluster.patch(DEPLOYMENTS, "web", image("app:2", NOWHERE));
  await cluster.until(async () => (await sizes()) === "1:8 2:5");
  await cluster.patch(DEPLOYMENTS, "web", { spec: { replicas: 15 } });
  await cluster.until(async () => (await sizes()) === "1:11 2:7");
  await cluster.pass(30);
  expect(await sizes()).toBe("1:11 2:7");
});

test("while paused templates may change and nothing rolls out; it can be scaled; resumed, all changes come as one revision", async () => {
  await using cluster = await fairCluster();
  const { get, sizes, condition, done } = about(cluster);
  await cluster.create(DEPLOYMENTS, { metadata: { name: "web" }, spec: spec(2) });
  await cluster.until(done);
  await cluster.patch(DEPLOYMENTS, "web", { spec: { paused: true } });
  await cluster.patch(DEPLOYMENTS, "web", image("app:2"));
  await cluster.patch(DEPLOYMENTS, "web", { spec: { replicas: 3, template: { spec: { dnsPolicy: "Default" } } } });
  await cluster.until(async () => (await get()).status?.availableReplicas === 3);
  expect([await sizes(), (await condition("Progressing"))?.reason, (await get()).metadata.annotations![REVISION]]).toEqual(["1:3", "DeploymentPaused", "1"]);
  await cluster.patch(DEPLOYMENTS, "web", { spec: { paused: false } });
  await cluster.until(done);
  expect(await sizes()).toBe("1:0 2:3");
});

test("history: as many old sets as asked for; none: no way back", async () => {
  await using cluster = await fairCluster();
  const { sizes, done } = about(cluster);
  await cluster.create(DEPLOYMENTS, { metadata: { name: "web" }, spec: spec(1, { revisionHistoryLimit: 1 }) });
  for (const name of ["app:2", "app:3", "app:4"]) {
    await cluster.until(done);
    await cluster.patch(DEPLOYMENTS, "web", image(name));
  }
  await cluster.until(async () => (await done()) && (await sizes()) === "3:0 4:1");
  await cluster.patch(DEPLOYMENTS, "web", { spec: { revisionHistoryLimit: 0 } });
  await cluster.until(async () => (await sizes()) === "4:1");
});

test("Recreate: all old pods are gone before the first new one is made", async () => {
  await using cluster = await fairCluster();
  const { done } = about(cluster);
  await cluster.create(DEPLOYMENTS, { metadata: { name: "web" }, spec: spec(3, { strategy: { type: "Recreate" } }) });
  await cluster.until(done);
  await cluster.patch(DEPLOYMENTS, "web", image("app:2"));
  await cluster.until(done);
  const changes = cluster.seen.filter(({ prefix, object }) => prefix === "/registry/core/pods/" && object.metadata.name.startsWith("web-"));
  const of = (object: unknown): string => (object as Pod).spec.containers[0]!.image!;
  const firstNew = changes.findIndex(({ type, object }) => type === "ADDED" && of(object) === "app:2");
  const lastOld = changes.findLastIndex(({ type, object }) => type === "DELETED" && of(object) === "app:1");
  expect([firstNew > 0, lastOld < firstNew]).toEqual([true, true]);
});

test("a quota that refuses pods is told as ReplicaFailure, and forgotten when there is room", async () => {
  await using cluster = await fairCluster();
  const { sets, condition, done } = about(cluster);
  await cluster.create(RESOURCE_QUOTAS, { metadata: { name: "few" }, spec: { hard: { pods: "1" } } });
  await cluster.pass(5);
  await cluster.create(DEPLOYMENTS, { metadata: { name: "web" }, spec: spec(2) });
  await cluster.until(async () => (await condition("ReplicaFailure")) !== undefined);
  const [set] = await sets();
  const failure = await condition("ReplicaFailure");
  expect(failure).toMatchObject({ status: "True", reason: "FailedCreate" });
  expect(failure!.message).toMatch(new RegExp(`^pods "${set!.metadata.name}-[a-z0-9]{5}" is forbidden: exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1$`));
  expect(await cluster.events(set!.metadata.name)).toContainEqual(expect.stringMatching(/^Warning FailedCreate: Error creating: pods ".*" is forbidden: exceeded quota: few/));
  await cluster.patch(RESOURCE_QUOTAS, "few", { spec: { hard: { pods: "9" } } });
  await cluster.until(done, 600);
  expect(await condition("ReplicaFailure")).toBeUndefined();
});

test("deleted: pods go with it, in the background or before it; orphaned, they stay, and another Deployment of the same selector and template takes them", async () => {
  await using cluster = await fairCluster();
  const { sets, done } = about(cluster);
  const exists = async (): Promise<boolean> => (await cluster.list(DEPLOYMENTS)).length > 0;
  for (const propagationPolicy of ["Background", "Foreground"]) {
    await cluster.create(DEPLOYMENTS, { metadata: { name: "web" }, spec: spec(2) });
    await cluster.until(done);
    await cluster.remove(DEPLOYMENTS, "web", { propagationPolicy });
    if (propagationPolicy === "Background") expect(await exists()).toBe(false);
    await cluster.until(async () => !(await exists()) && (await cluster.list(REPLICA_SETS)).length === 0 && (await cluster.list(PODS)).length === 0);
  }
  const events = cluster.seen.filter(({ type, object, prefix }) => type === "DELETED" && !prefix.includes("quotas") && ["web"].includes(object.metadata.name.split("-")[0]!)).map(({ object }) => object.kind);
  expect(events.slice(-4)).toEqual(["Pod", "Pod", "ReplicaSet", "Deployment"]); // foreground: from the leaves

  await cluster.create(DEPLOYMENTS, { metadata: { name: "web" }, spec: spec(2) });
  await cluster.until(done);
  const before = (await cluster.list<Pod>(PODS)).map(({ metadata }) => metadata.uid).sort();
  await cluster.remove(DEPLOYMENTS, "web", { propagationPolicy: "Orphan" });
  await cluster.until(async () => !(await exists()));
  await cluster.pass(30);
  expect((await cluster.list<ReplicaSet>(REPLICA_SETS)).map(({ metadata }) => metadata.ownerReferences ?? [])).toEqual([[]]);
  await cluster.create(DEPLOYMENTS, { metadata: { name: "web" }, spec: spec(2) });
  await cluster.until(done);
  expect((await sets()).length).toBe(1);
  expect((await cluster.list<Pod>(PODS)).map(({ metadata }) => metadata.uid).sort()).toEqual(before);
});

test("zero replicas are not one, and minReadySeconds have to pass before a pod counts as available", async () => {
  await using cluster = await fairCluster();
  const { get } = about(cluster);
  const none = await cluster.create<Deployment>(DEPLOYMENTS, { metadata: { name: "none" }, spec: { ...spec(0), selector: { matchLabels: { app: "none" } }, template: template("none") } });
  expect(none.spec.replicas).toBe(0);
  expect((await cluster.create<Deployment>(DEPLOYMENTS, { metadata: { name: "web" }, spec: spec(undefined, { minReadySeconds: 30 }) })).spec.replicas).toBe(1);
  const ready = await cluster.until(async () => (await get()).status?.readyReplicas === 1);
  expect((await get()).status?.availableReplicas ?? 0).toBe(0);
  const seconds = await cluster.until(async () => (await get()).status?.availableReplicas === 1);
  expect([ready < 10, seconds >= 25, seconds < 40]).toEqual([true, true, true]);
  expect((await cluster.list<Pod>(PODS)).length).toBe(1);
});
