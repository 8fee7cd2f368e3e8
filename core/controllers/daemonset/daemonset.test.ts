import { expect, test } from "vitest";
import { eventually } from "../../../test/fake-api.ts";
import { fakeKubelets } from "../../../test/fake-kubelet.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import { CONTROLLER_REVISIONS, DAEMON_SETS, EVENTS, NODES, PODS } from "../../client/resources.ts";
import { templateHash } from "../template-hash.ts";
import { daemonSetController } from "./daemonset.ts";

test("a DaemonSet runs on every node, follows nodes as they come, rolls out, and remembers what it was", () => {
  let failing = "";
  return withControllers((deps) => [daemonSetController(deps), fakeKubelets(deps, (pod) => (pod.metadata.uid === failing ? "failed" : "ready"))], async (api, call) => {
    const sets = api.client.resource(DAEMON_SETS);
    const addNode = (name: string) => api.client.resource(NODES).create({ apiVersion: "v1", kind: "Node", metadata: { name }, spec: {} }, call);
    for (const name of ["a", "b"]) await addNode(name);
    await sets.create({
      apiVersion: "apps/v1", kind: "DaemonSet", metadata: { name: "agent", namespace: "default" },
      spec: { selector: { matchLabels: { app: "agent" } }, revisionHistoryLimit: 1, updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } }, template: { metadata: { labels: { app: "agent" } }, spec: { containers: [{ name: "c", image: "one" }] } } },
    }, call);
    const status = () => api.all(DAEMON_SETS)[0]?.status;
    const image = (name: string) => sets.patch(api.all(DAEMON_SETS)[0]!, "application/merge-patch+json", { spec: { template: { spec: { containers: [{ name: "c", image: name }] } } } }, call);
    await eventually(status, (seen) => seen?.numberAvailable === 2 && seen.desiredNumberScheduled === 2);
    await addNode("c");
    await eventually(status, (seen) => seen?.numberAvailable === 3 && seen.updatedNumberScheduled === 3);
    await image("two");
    await eventually(() => api.all(PODS).map(({ spec }) => spec.containers[0]?.image).join(), (seen) => seen === "two,two,two");
    await eventually(status, (seen) => seen?.numberAvailable === 3 && seen.updatedNumberScheduled === 3);
    await image("one");
    await eventually(() => api.all(PODS).map(({ spec }) => spec.containers[0]?.image).join(), (seen) => seen === "one,one,one");
    await eventually(() => api.all(CONTROLLER_REVISIONS).map(({ revision, data }) => `${revision} ${(data as { spec: { template: { spec: { containers: [{ image: string }] } } } }).spec.template.spec.containers[0].image}`).sort().join(), (seen) => seen === "2 two,3 one");
    const victim = api.all(PODS).find(({ spec }) => spec.nodeName === "b")!;
    failing = victim.metadata.uid;
    await api.client.resource(PODS).updateStatus({ ...victim, status: { ...victim.status, message: "look" } }, call);
    await eventually(() => api.all(EVENTS).map(({ reason }) => reason), (reasons) => reasons.includes("FailedDaemonPod"));
    await eventually(status, (seen) => seen?.numberAvailable === 3);
    expect(api.all(PODS).some(({ metadata }) => metadata.uid === victim.metadata.uid)).toBe(false);
  });
});

test("a revision whose name another template has gets another name", () =>
  withControllers((deps) => [daemonSetController(deps), fakeKubelets(deps, () => "ready")], async (api, call) => {
    const template = (image: string) => ({ metadata: { labels: { app: "agent" } }, spec: { containers: [{ name: "c", image }] } });
    await api.client.resource(NODES).create({ apiVersion: "v1", kind: "Node", metadata: { name: "a" }, spec: {} }, call);
    await api.client.resource(CONTROLLER_REVISIONS).create({ apiVersion: "apps/v1", kind: "ControllerRevision", metadata: { name: `agent-${templateHash(template("two"))}`, namespace: "default" }, data: {}, revision: 1 }, call);
    const set = await api.client.resource(DAEMON_SETS).create({
      apiVersion: "apps/v1", kind: "DaemonSet", metadata: { name: "agent", namespace: "default" },
      spec: { selector: { matchLabels: { app: "agent" } }, updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } }, template: template("one") },
    }, call);
    await eventually(() => api.all(PODS), ([pod]) => pod?.status?.phase === "Running");
    await api.client.resource(DAEMON_SETS).patch(set, "application/merge-patch+json", { spec: { template: template("two") } }, call);
    await eventually(() => api.all(PODS).map(({ spec }) => spec.containers[0]?.image).join(), (seen) => seen === "two");
    await eventually(() => api.all(DAEMON_SETS)[0]?.status, (status) => status?.collisionCount === 1 && status.updatedNumberScheduled === 1);
    expect(api.all(CONTROLLER_REVISIONS).map(({ metadata }) => metadata.name)).toContain(`agent-${templateHash(template("two"), 1)}`);
  }));
