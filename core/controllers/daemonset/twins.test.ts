import { expect, test } from "vitest";
import { eventually } from "../../../test/fake-api.ts";
import { fakeKubelets } from "../../../test/fake-kubelet.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import { controllerRef } from "../../api/meta/object-meta.ts";
import { CONTROLLER_REVISIONS, DAEMON_SETS, NODES, PODS } from "../../client/resources.ts";
import { daemonSetController } from "./daemonset.ts";
import { REVISION_HASH_LABEL } from "./pods.ts";

test("of two revisions of the present template the newer stays, and the pods of the other become its own", () =>
  withControllers((deps) => [daemonSetController(deps), fakeKubelets(deps, () => "ready")], async (api, call) => {
    const addNode = (name: string) => api.client.resource(NODES).create({ apiVersion: "v1", kind: "Node", metadata: { name }, spec: {} }, call);
    await addNode("a");
    const set = await api.client.resource(DAEMON_SETS).create({
      apiVersion: "apps/v1", kind: "DaemonSet", metadata: { name: "agent", namespace: "default" },
      spec: { selector: { matchLabels: { app: "agent" } }, updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } }, template: { metadata: { labels: { app: "agent" } }, spec: { containers: [{ name: "c", image: "one" }] } } },
    }, call);
    const [pod] = await eventually(() => api.all(PODS), ([first]) => first?.status?.phase === "Running");
    await eventually(() => api.all(DAEMON_SETS)[0]?.status?.numberAvailable, (count) => count === 1);
    await Bun.sleep(50); // it is at rest
    const [first] = api.all(CONTROLLER_REVISIONS);
    await api.client.resource(CONTROLLER_REVISIONS).create({
      apiVersion: "apps/v1", kind: "ControllerRevision", metadata: { name: "agent-other", namespace: "default", labels: { app: "agent", [REVISION_HASH_LABEL]: "other" }, ownerReferences: [controllerRef(set)] },
      data: first!.data, revision: 2,
    }, call);
    await Bun.sleep(50);
    expect(api.all(CONTROLLER_REVISIONS)).toHaveLength(2); // until something else happens
    await addNode("b");
    await eventually(() => api.all(PODS).map(({ metadata }) => metadata.labels?.[REVISION_HASH_LABEL]).join(), (seen) => seen === "other,other");
    await eventually(() => api.all(CONTROLLER_REVISIONS).map(({ metadata }) => metadata.name).join(), (seen) => seen === "agent-other");
    expect(api.all(PODS).map(({ metadata }) => metadata.uid)).toContain(pod!.metadata.uid);
  }));

test.each([[41, 42], [2n ** 53n - 1n, 2n ** 53n], [2n ** 62n, 2n ** 62n + 1n], [2n ** 63n - 1n, 2n ** 63n - 1n]])("after revision %s comes %s", (last, next) =>
  withControllers((deps) => [daemonSetController(deps)], async (api, call) => {
    const template = (image: string) => ({ metadata: { labels: { app: "agent" } }, spec: { containers: [{ name: "c", image }] } });
    const set = await api.client.resource(DAEMON_SETS).create({
      apiVersion: "apps/v1", kind: "DaemonSet", metadata: { name: "agent", namespace: "default" },
      spec: { selector: { matchLabels: { app: "agent" } }, updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } }, template: template("one") },
    }, call);
    const [first] = await eventually(() => api.all(CONTROLLER_REVISIONS), (all) => all.length === 1);
    await api.client.resource(CONTROLLER_REVISIONS).update({ ...first!, revision: (typeof last === "bigint" && last <= Number.MAX_SAFE_INTEGER ? Number(last) : last) as number }, call);
    await api.client.resource(DAEMON_SETS).patch(set, "application/merge-patch+json", { spec: { template: template("two") } }, call);
    const newest = await eventually(() => api.all(CONTROLLER_REVISIONS).find(({ metadata }) => metadata.name !== first!.metadata.name), (one) => one !== undefined);
    expect(newest!.revision).toBe(next);
  }));
