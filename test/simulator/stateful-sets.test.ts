/** What users of StatefulSets, DaemonSets and plain controllers of pods rely on, with the real API, controllers and scheduler; time is simulated. */
import { expect, test } from "vitest";
import type { DaemonSet, StatefulSet } from "../../core/api/gen/apps.v1.ts";
import type { Node, Pod, ReplicationController } from "../../core/api/gen/core.v1.ts";
import { DAEMON_SETS, NODES, PERSISTENT_VOLUME_CLAIMS, PODS, REPLICA_SETS, REPLICATION_CONTROLLERS, STATEFUL_SETS } from "../../core/client/resources.ts";
import { type FairCluster, fairCluster, isReady, NOWHERE, template } from "./fair-cluster.ts";

const stateful = (replicas: number, more: object = {}, pod: object = {}) => ({ metadata: { name: "db" }, spec: { serviceName: "db", replicas, selector: { matchLabels: { app: "db" } }, template: template("db", pod), ...more } });
const podsOf = async (cluster: FairCluster, app: string): Promise<Pod[]> => (await cluster.list<Pod>(PODS)).filter(({ metadata }) => metadata.labels?.["app"] === app).toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
const names = async (cluster: FairCluster, app: string): Promise<string> => (await podsOf(cluster, app)).filter(isReady).map(({ metadata }) => metadata.name).join(" ");
const image = (name: string, more: object = {}) => ({ spec: { template: { spec: { containers: [{ name: "c", image: name }], ...more } } } });
const images = async (cluster: FairCluster, app: string): Promise<string> => (await podsOf(cluster, app)).map(({ spec }) => spec.containers[0]!.image!.replace("app:", "")).join(" ");
const order = (cluster: FairCluster, type: "ADDED" | "DELETED", prefix: string): string[] => cluster.seen.filter((one) => one.type === type && one.prefix === "/registry/core/pods/" && one.object.metadata.name.startsWith(prefix)).map(({ object }) => object.metadata.name);

test("pods come in order, each once the one before is ready, and go the other way; claims stay, and are mounted again", async () => {
  await using cluster = await fairCluster();
  await cluster.create(STATEFUL_SETS, stateful(3, { volumeClaimTemplates: [{ metadata: { name: "data" }, spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } } }] }));
  const claims = async (): Promise<string[]> => (await cluster.list(PERSISTENT_VOLUME_CLAIMS)).map(({ metadata }) => metadata.name).sort();
  await cluster.until(async () => (await podsOf(cluster, "db")).length === 1);
  await cluster.pass(20); // it waits for its volume: nothing provisions here
  expect([(await podsOf(cluster, "db")).length, await claims()]).toEqual([1, ["data-db-0"]]);
  await cluster.remove(STATEFUL_SETS, "db");
  await cluster.until(async () => (await podsOf(cluster, "db")).length === 0);
  expect(await claims()).toEqual(["data-db-0"]);

  await cluster.create(STATEFUL_SETS, stateful(3));
  await cluster.until(async () => (await names(cluster, "db")) === "db-0 db-1 db-2");
  expect(order(cluster, "ADDED", "db-").slice(1)).toEqual(["db-0", "db-1", "db-2"]);
  const pods = await podsOf(cluster, "db");
  for (const [i, { metadata, spec }] of pods.entries()) {
    expect(metadata.labels).toMatchObject({ "statefulset.kubernetes.io/pod-name": `db-${i}`, "apps.kubernetes.io/pod-index": String(i) });
    expect([spec.hostname, spec.subdomain]).toEqual([`db-${i}`, "db"]);
  }
  await cluster.patch(STATEFUL_SETS, "db", { spec: { replicas: 0 } });
  await cluster.until(async () => (await podsOf(cluster, "db")).length === 0);
  expect(order(cluster, "DELETED", "db-").slice(1)).toEqual(["db-2", "db-1", "db-0"]);
  await cluster.until(async () => (await cluster.events("db")).some((text) => text.includes("Delete Pod db-0")));
  expect(await cluster.events("db")).toEqual(expect.arrayContaining(["Normal SuccessfulCreate: Create Pod db-1 in StatefulSet db successful", "Normal SuccessfulDelete: Delete Pod db-2 in StatefulSet db successful"]));
});

test("in parallel nobody waits; a replacement has the name of the one that is gone, and another uid", async () => {
  await using cluster = await fairCluster();
  await cluster.create(STATEFUL_SETS, stateful(3, { podManagementPolicy: "Parallel" }, NOWHERE));
  await cluster.until(async () => (await podsOf(cluster, "db")).length === 3, 3);
  await cluster.remove(STATEFUL_SETS, "db");
  await cluster.until(async () => (await podsOf(cluster, "db")).length === 0);
  await cluster.create(STATEFUL_SETS, stateful(2));
  await cluster.until(async () => (await names(cluster, "db")) === "db-0 db-1");
  const [first] = await podsOf(cluster, "db");
  await cluster.remove(PODS, "db-0");
  await cluster.until(async () => (await podsOf(cluster, "db")).some((pod) => pod.metadata.name === "db-0" && pod.metadata.uid !== first!.metadata.uid && isReady(pod)));
});

test("updates go from the top, one at a time; below the partition nothing changes, even if it is deleted; a bad one stops it and must be removed by hand", async () => {
  await using cluster = await fairCluster();
  await cluster.create(STATEFUL_SETS, stateful(3));
  await cluster.until(async () => (await names(cluster, "db")) === "db-0 db-1 db-2");
  await cluster.patch(STATEFUL_SETS, "db", { spec: { updateStrategy: { rollingUpdate: { partition: 2 } } } });
  await cluster.patch(STATEFUL_SETS, "db", image("app:2"));
  await cluster.until(async () => (await images(cluster, "db")) === "1 1 2");
  await cluster.remove(PODS, "db-1");
  await cluster.pass(20);
  expect([await images(cluster, "db"), await names(cluster, "db")]).toEqual(["1 1 2", "db-0 db-1 db-2"]);
  await cluster.patch(STATEFUL_SETS, "db", { spec: { updateStrategy: { rollingUpdate: { partition: 9 } } } });
  await cluster.patch(STATEFUL_SETS, "db", image("app:3"));
  await cluster.pass(20);
  expect(await images(cluster, "db")).toBe("1 1 2");
  await cluster.patch(STATEFUL_SETS, "db", { spec: { updateStrategy: { rollingUpdate: { partition: 0 } } } });
  await cluster.until(async () => (await images(cluster, "db")) === "3 3 3");
  await cluster.until(async () => { const { status } = await cluster.get<StatefulSet>(STATEFUL_SETS, "db"); return status?.currentRevision === status?.updateRevision && status?.updatedReplicas === 3; });
  expect(order(cluster, "DELETED", "db-").slice(-3)).toEqual(["db-2", "db-1", "db-0"]);

  await cluster.patch(STATEFUL_SETS, "db", image("app:4", NOWHERE));
  await cluster.until(async () => (await images(cluster, "db")) === "3 3 4");
  await cluster.patch(STATEFUL_SETS, "db", image("app:3", { nodeSelector: null }));
  await cluster.pass(60);
  expect(await images(cluster, "db")).toBe("3 3 4"); // a known issue of upstream's that is kept
  await cluster.remove(PODS, "db-2", { gracePeriodSeconds: 0 });
  await cluster.until(async () => (await names(cluster, "db")) === "db-0 db-1 db-2");
  expect(await images(cluster, "db")).toBe("3 3 3");
});

test("OnDelete: pods are updated as they are deleted", async () => {
  await using cluster = await fairCluster();
  await cluster.create(STATEFUL_SETS, stateful(2, { updateStrategy: { type: "OnDelete" } }));
  await cluster.until(async () => (await names(cluster, "db")) === "db-0 db-1");
  await cluster.patch(STATEFUL_SETS, "db", image("app:2"));
  await cluster.pass(30);
  expect(await images(cluster, "db")).toBe("1 1");
  await cluster.remove(PODS, "db-0");
  await cluster.until(async () => (await images(cluster, "db")) === "2 1" && (await names(cluster, "db")) === "db-0 db-1");
});

// DaemonSets

const daemon = (more: object = {}, pod: object = {}) => ({ metadata: { name: "agent" }, spec: { selector: { matchLabels: { app: "agent" } }, template: template("agent", pod), ...more } });
const where = async (cluster: FairCluster): Promise<string> => (await podsOf(cluster, "agent")).filter(isReady).map(({ spec }) => spec.nodeName!.replace("node-", "")).sort().join(" ");

test("one pod on every node that fits, cordoned or not; nodes that come, go or change their labels are followed; the scheduler binds", async () => {
  await using cluster = await fairCluster();
  await cluster.patch(NODES, "node-2", { spec: { unschedulable: true } });
  await cluster.create(DAEMON_SETS, daemon());
  await cluster.until(async () => (await where(cluster)) === "0 1 2");
  const [pod] = await podsOf(cluster, "agent");
  expect(pod!.spec.affinity!.nodeAffinity).toEqual({ requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchFields: [{ key: "metadata.name", operator: "In", values: [pod!.spec.nodeName] }] }] } });
  expect((await cluster.events(pod!.metadata.name))[0]).toBe(`Normal Scheduled: Successfully assigned default/${pod!.metadata.name} to ${pod!.spec.nodeName}`);
  expect(pod!.spec.tolerations).toEqual([
    ["not-ready", "NoExecute"], ["unreachable", "NoExecute"], ["disk-pressure", "NoSchedule"], ["memory-pressure", "NoSchedule"], ["pid-pressure", "NoSchedule"], ["unschedulable", "NoSchedule"],
  ].map(([key, effect]) => ({ key: `node.kubernetes.io/${key}`, operator: "Exists", effect })));
  expect((await cluster.get<DaemonSet>(DAEMON_SETS, "agent")).spec.template.spec!.affinity).toBeUndefined();

  cluster.inner.startNode("node-3");
  await cluster.until(async () => (await where(cluster)) === "0 1 2 3");
  cluster.inner.killNode("node-3");
  await cluster.remove(NODES, "node-3");
  await cluster.until(async () => (await podsOf(cluster, "agent")).length === 3, 200);

  await cluster.patch(DAEMON_SETS, "agent", { spec: { template: { spec: { nodeSelector: { disk: "ssd" } } } } });
  await cluster.until(async () => (await podsOf(cluster, "agent")).length === 0);
  await cluster.patch(NODES, "node-1", { metadata: { labels: { disk: "ssd" } } });
  await cluster.until(async () => (await where(cluster)) === "1", 10);
  await cluster.patch(NODES, "node-1", { metadata: { labels: { disk: null } } });
  await cluster.until(async () => (await where(cluster)) === "", 10);
});

test("a daemon that is deleted comes back on its node; an update replaces one after the other, with OnDelete none; orphans are taken by the next of the same selector", async () => {
  await using cluster = await fairCluster();
  await cluster.create(DAEMON_SETS, daemon());
  await cluster.until(async () => (await where(cluster)) === "0 1 2");
  const [first] = await podsOf(cluster, "agent");
  await cluster.remove(PODS, first!.metadata.name);
  await cluster.until(async () => (await where(cluster)) === "0 1 2" && !(await podsOf(cluster, "agent")).some(({ metadata }) => metadata.uid === first!.metadata.uid));
  await cluster.patch(DAEMON_SETS, "agent", image("app:2"));
  let least = 3;
  while ((await images(cluster, "agent")) !== "2 2 2") { await cluster.pass(1); least = Math.min(least, (await where(cluster)).split(" ").filter(Boolean).length); }
  expect(least).toBeGreaterThanOrEqual(2);
  await cluster.until(async () => (await where(cluster)) === "0 1 2");

  await cluster.patch(DAEMON_SETS, "agent", { spec: { updateStrategy: { type: "OnDelete", rollingUpdate: null } } });
  await cluster.patch(DAEMON_SETS, "agent", image("app:3"));
  await cluster.pass(30);
  expect(await images(cluster, "agent")).toBe("2 2 2");
  const before = (await podsOf(cluster, "agent")).map(({ metadata }) => metadata.uid).sort();
  await cluster.remove(DAEMON_SETS, "agent", { propagationPolicy: "Orphan" });
  await cluster.until(async () => (await cluster.list(DAEMON_SETS)).length === 0);
  await cluster.create(DAEMON_SETS, daemon({ updateStrategy: { type: "OnDelete" } }));
  await cluster.until(async () => (await podsOf(cluster, "agent")).every(({ metadata }) => metadata.ownerReferences?.[0]?.name === "agent"));
  expect((await podsOf(cluster, "agent")).map(({ metadata }) => metadata.uid).sort()).toEqual(before);
  await cluster.remove(DAEMON_SETS, "agent");
  await cluster.until(async () => (await podsOf(cluster, "agent")).length === 0);
});

// ReplicaSets and ReplicationControllers

test("a ReplicaSet counts pods that match, whoever made them, gives up those too many at once, and leaves orphans to the next one as they are", async () => {
  await using cluster = await fairCluster();
  const set = (replicas: number) => ({ metadata: { name: "web" }, spec: { replicas, selector: { matchLabels: { app: "web" } }, template: template("web") } });
  for (const name of ["bare-1", "bare-2"]) await cluster.create(PODS, { metadata: { name, labels: { app: "web" } }, spec: { containers: [{ name: "other", image: "other:1" }] } });
  await cluster.create(REPLICA_SETS, set(3));
  await cluster.until(async () => (await podsOf(cluster, "web")).filter(isReady).length === 3);
  expect((await podsOf(cluster, "web")).map(({ metadata }) => [metadata.name.startsWith("bare"), metadata.ownerReferences?.[0]?.controller])).toEqual([[true, true], [true, true], [false, true]]);
  await cluster.create(PODS, { metadata: { name: "bare-3", labels: { app: "web" } }, spec: { containers: [{ name: "other", image: "other:1" }] } });
  await cluster.until(async () => (await podsOf(cluster, "web")).length === 3 && (await podsOf(cluster, "web")).every(isReady));

  const [{ metadata: { name: aside } }] = await podsOf(cluster, "web") as [Pod];
  await cluster.patch(PODS, aside, { metadata: { labels: { app: "aside" } } });
  await cluster.until(async () => (await podsOf(cluster, "web")).filter(isReady).length === 3);
  expect((await cluster.get<Pod>(PODS, aside)).metadata.ownerReferences).toBeUndefined();
  await cluster.remove(REPLICA_SETS, "web", { propagationPolicy: "Orphan" });
  await cluster.until(async () => (await cluster.list(REPLICA_SETS)).length === 0);
  const left = await podsOf(cluster, "web");
  expect(left.length).toBe(3);
  await cluster.create(REPLICA_SETS, { ...set(3), spec: { ...set(3).spec, template: template("web", { containers: [{ name: "c", image: "app:9" }] }) } });
  await cluster.until(async () => (await podsOf(cluster, "web")).every(({ metadata }) => metadata.ownerReferences?.length === 1));
  expect((await podsOf(cluster, "web")).map(({ metadata, spec }) => [metadata.uid, spec.containers[0]!.image])).toEqual(left.map(({ metadata, spec }) => [metadata.uid, spec.containers[0]!.image]));
  await cluster.remove(REPLICA_SETS, "web", { propagationPolicy: "Background" });
  await cluster.until(async () => (await podsOf(cluster, "web")).length === 0);
});

test("a ReplicationController's selector and labels come from its template; it replaces what ends, is deleted or is told apart", async () => {
  await using cluster = await fairCluster();
  const rc = await cluster.create<ReplicationController>(REPLICATION_CONTROLLERS, { metadata: { name: "rc" }, spec: { template: template("rc") } });
  expect([rc.spec.replicas, rc.spec.selector, rc.metadata.labels]).toEqual([1, { app: "rc" }, { app: "rc" }]);
  await cluster.until(async () => (await podsOf(cluster, "rc")).filter(isReady).length === 1);
  const [pod] = await podsOf(cluster, "rc");
  expect(await cluster.events("rc")).toEqual([`Normal SuccessfulCreate: Created pod: ${pod!.metadata.name}`]);
  await cluster.patch(PODS, pod!.metadata.name, { status: { phase: "Failed" } }, "status");
  await cluster.until(async () => (await podsOf(cluster, "rc")).filter(isReady).some(({ metadata }) => metadata.uid !== pod!.metadata.uid && metadata.deletionTimestamp === undefined) && (await podsOf(cluster, "rc")).length === 2);
  await expect(cluster.create(REPLICATION_CONTROLLERS, { metadata: { name: "bad" }, spec: { selector: { app: "x" }, template: template("rc") } })).rejects.toThrow("`selector` does not match template `labels`");
  await cluster.remove(REPLICATION_CONTROLLERS, "rc", { propagationPolicy: "Background" });
  await cluster.until(async () => (await podsOf(cluster, "rc")).length === 0);
});

test("pods of a node that is lost are replaced elsewhere after five minutes, even a single one", async () => {
  await using cluster = await fairCluster();
  await cluster.create(REPLICA_SETS, { metadata: { name: "web" }, spec: { replicas: 1, selector: { matchLabels: { app: "web" } }, template: template("web") } });
  await cluster.until(async () => (await podsOf(cluster, "web")).some(isReady));
  const [pod] = await podsOf(cluster, "web");
  cluster.inner.killNode(pod!.spec.nodeName!);
  const seconds = await cluster.until(async () => (await podsOf(cluster, "web")).some((one) => isReady(one) && one.metadata.uid !== pod!.metadata.uid), 500);
  expect([seconds > 330, seconds < 380]).toEqual([true, true]); // 50 s of silence, then tolerationSeconds 300
  expect((await cluster.get<Node>(NODES, pod!.spec.nodeName!)).status?.conditions?.find(({ type }) => type === "Ready")?.status).toBe("Unknown");
});
