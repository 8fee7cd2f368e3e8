import { expect, test } from "vitest";
import { eventually } from "../../test/fake-api.ts";
import { fakeKubelets } from "../../test/fake-kubelet.ts";
import { type TestDeps, withControllers } from "../../test/run-controllers.ts";
import type { PodTemplateSpec } from "../api/gen/core.v1.ts";
import { CONTROLLER_REVISIONS, DAEMON_SETS, DEPLOYMENTS, NODES, PODS, REPLICA_SETS, STATEFUL_SETS } from "../client/resources.ts";
import { daemonSetController } from "./daemonset/daemonset.ts";
import { deploymentController } from "./deployment/deployment.ts";
import { replicaSetController } from "./replicaset/replicaset.ts";
import { statefulSetController } from "./statefulset/statefulset.ts";

/** As a server does that has one default more than the one that took in the templates of this test. */
const complete = (template: Readonly<PodTemplateSpec>): PodTemplateSpec => ({ ...template, spec: { ...template.spec!, priority: template.spec?.priority ?? 0 } });

const controllers = (given: TestDeps) => {
  const deps = { ...given, complete };
  return [statefulSetController(deps), daemonSetController(deps), deploymentController(deps), replicaSetController(deps), fakeKubelets(given, () => "ready")];
};

test("a template that gains a default, and no more, is the same template to those who have pods of it", () =>
  withControllers(controllers, async (api, call) => {
    const kinds = [STATEFUL_SETS, DAEMON_SETS, DEPLOYMENTS] as const;
    await api.client.resource(NODES).create({ apiVersion: "v1", kind: "Node", metadata: { name: "a" }, spec: {} }, call);
    for (const ref of kinds) {
      const { kind, plural } = ref;
      await api.client.resource(ref as typeof DEPLOYMENTS).create({
        apiVersion: "apps/v1", kind, metadata: { name: "x", namespace: "default" },
        spec: {
          ...(kind === "DaemonSet" ? {} : { replicas: 1 }), ...(kind === "StatefulSet" ? { serviceName: "x" } : {}), selector: { matchLabels: { kind: plural } },
          template: { metadata: { labels: { kind: plural } }, spec: { containers: [{ name: "c", image: "one" }] } },
        },
      } as never, call);
    }
    const change = async (podSpec: object) => { for (const ref of kinds) await api.client.resource(ref as typeof DEPLOYMENTS).patch({ metadata: { name: "x", namespace: "default" } }, "application/merge-patch+json", { spec: { template: { spec: podSpec } } }, call); };
    const seen = () => kinds.map((ref) => { const { metadata, status } = api.all(ref as typeof DEPLOYMENTS)[0]!; return metadata.generation === status?.observedGeneration; }).every(Boolean) && api.all(PODS).filter(({ status }) => status?.phase === "Running").length === 3;
    const uids = () => api.all(PODS).map(({ metadata }) => metadata.uid).sort();
    const made = () => [api.all(CONTROLLER_REVISIONS).length, api.all(REPLICA_SETS).length];

    await eventually(seen, (settled) => settled);
    const before = uids();
    expect(made()).toEqual([2, 1]);
    await change({ priority: 0 });
    await eventually(seen, (settled) => settled);
    expect([uids(), made()]).toEqual([before, [2, 1]]);

    await change({ priority: 1 });
    await eventually(made, ([revisions, sets]) => revisions === 4 && sets === 2);
  }));
