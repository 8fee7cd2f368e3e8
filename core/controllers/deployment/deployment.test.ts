import { expect, test } from "vitest";
import { eventually, type FakeApi } from "../../../test/fake-api.ts";
import { type TestDeps, withControllers } from "../../../test/run-controllers.ts";
import type { Deployment } from "../../api/gen/apps.v1.ts";
import type { NewObject } from "../../api/meta/object-meta.ts";
import { forbidden } from "../../api/meta/status-error.ts";
import { DEPLOYMENTS, EVENTS, PODS, REPLICA_SETS } from "../../client/resources.ts";
import { aborted } from "../../lifecycle/aborted.ts";
import type { Runnable } from "../../lifecycle/run-all.ts";
import { timestamp } from "../../lifecycle/clock.ts";
import { replicaSetController } from "../replicaset/replicaset.ts";
import { deploymentController } from "./deployment.ts";

/** Makes every pod ready at once, except where the image is broken. */
function instantKubelet({ informers, client, clock }: TestDeps): Runnable {
  return {
    name: "kubelet",
    async run(signal, ready) {
      informers.of(PODS).onChange(({ object, deleted }) => {
        if (deleted || object.status?.phase === "Running" || object.spec.containers[0]?.image === "broken") return;
        const conditions = [{ type: "Ready", status: "True", lastTransitionTime: timestamp(clock.nowMs()) }];
        client.resource(PODS).updateStatus({ ...object, status: { phase: "Running", conditions } }, { signal }).catch((error: unknown) => { if (!signal.aborted) throw error; });
      });
      ready();
      await aborted(signal);
    },
  };
}

const controllers = (deps: TestDeps) => [deploymentController(deps), replicaSetController(deps), instantKubelet(deps)];

function web(image: string, more: Partial<Deployment["spec"]> = {}): NewObject<Deployment> {
  return {
    apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "web", namespace: "default" },
    spec: {
      replicas: 4, progressDeadlineSeconds: 600, revisionHistoryLimit: 1, selector: { matchLabels: { app: "web" } }, strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 1, maxUnavailable: 1 } },
      template: { metadata: { labels: { app: "web" } }, spec: { containers: [{ name: "c", image }] } }, ...more,
    },
  };
}

const current = (api: FakeApi) => api.all(DEPLOYMENTS)[0]!;
const reasonOf = (deployment: Deployment, type: string) => deployment.status?.conditions?.find((condition) => condition.type === type)?.reason;
const done = (deployment: Deployment) => deployment.status?.observedGeneration === deployment.metadata.generation && deployment.status?.updatedReplicas === 4 && deployment.status.availableReplicas === 4 && deployment.status.replicas === 4 && reasonOf(deployment, "Progressing") === "NewReplicaSetAvailable";
const images = (api: FakeApi) => api.all(PODS).map((pod) => pod.spec.containers[0]?.image);
const set = (api: FakeApi, image: string) => api.all(REPLICA_SETS).find((one) => one.spec.template?.spec?.containers[0]?.image === image);

test("a Deployment rolls out, is updated, rolled back, scaled, paused and resumed", () =>
  withControllers(controllers, async (api, call) => {
    const deployments = api.client.resource(DEPLOYMENTS);
    const change = (spec: unknown) => deployments.patch(current(api), "application/merge-patch+json", { spec }, call);
    const image = (name: string) => change({ template: { spec: { containers: [{ name: "c", image: name }] } } });
    await deployments.create(web("one"), call);
    await eventually(() => current(api), done);
    expect(set(api, "one")?.metadata.name).toMatch(/^web-[bcdfghjklmnpqrstvwxz2456789]{1,10}$/);
    expect(set(api, "one")?.metadata.annotations).toEqual({ "deployment.kubernetes.io/revision": "1", "deployment.kubernetes.io/desired-replicas": "4", "deployment.kubernetes.io/max-replicas": "5" });
    expect(reasonOf(current(api), "Available")).toBe("MinimumReplicasAvailable");
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    expect(current(api).status?.conditions?.toSorted((a, b) => (a.type < b.type ? -1 : 1))).toEqual([
      { type: "Available", status: "True", reason: "MinimumReplicasAvailable", message: "Deployment has minimum availability.", lastUpdateTime: time, lastTransitionTime: time },
      { type: "Progressing", status: "True", reason: "NewReplicaSetAvailable", message: expect.stringMatching(/^ReplicaSet "web-\w+" has successfully progressed\.$/), lastUpdateTime: time, lastTransitionTime: time },
    ]);

    await image("two");
    await eventually(() => current(api), done);
    expect(images(api)).toEqual(["two", "two", "two", "two"]);
    const told = `Scaled up replica set ${set(api, "two")?.metadata.name} from 0 to 1`;
    await eventually(() => api.all(EVENTS), (all) => all.some(({ reason, message }) => reason === "ScalingReplicaSet" && message === told));
    expect(current(api).metadata.annotations?.["deployment.kubernetes.io/revision"]).toBe("2");

    await image("one");
    await eventually(() => current(api), (seen) => done(seen) && images(api).every((name) => name === "one"));
    await eventually(() => set(api, "one")?.metadata.annotations, (annotations) => annotations?.["deployment.kubernetes.io/revision"] === "3" && annotations["deployment.kubernetes.io/revision-history"] === "1");

    await image("three");
    await eventually(() => api.all(REPLICA_SETS).map(({ metadata }) => metadata.annotations?.["deployment.kubernetes.io/revision"]).sort(), (revisions) => revisions.join() === "3,4");

    await change({ paused: true });
    await eventually(() => current(api), (seen) => reasonOf(seen, "Progressing") === "DeploymentPaused");
    await image("four");
    await change({ replicas: 6 });
    await eventually(() => current(api), (seen) => seen.status?.availableReplicas === 6);
    expect(set(api, "four")).toBeUndefined();
    await change({ paused: null, replicas: 4 });
    await eventually(() => current(api), (seen) => done(seen) && images(api).every((name) => name === "four"));
  }));

test("a rollout that cannot be made ready keeps what serves and says that it is late", () => {
  let aheadMs = 0;
  const clock = { nowMs: () => Date.now() + aheadMs, uptimeMs: () => performance.now(), sleep: (ms: number) => Bun.sleep(Math.min(ms, 20)), after: (ms: number, work: () => void) => { const timer = setTimeout(work, Math.min(ms, 20)); return { cancel: () => clearTimeout(timer) }; }, every: () => { throw new Error("unused"); } };
  return withControllers(controllers, async (api, call) => {
    const deployments = api.client.resource(DEPLOYMENTS);
    await deployments.create(web("one", { progressDeadlineSeconds: 60 }), call);
    await eventually(() => current(api), done);
    await deployments.patch(current(api), "application/merge-patch+json", { spec: { template: { spec: { containers: [{ name: "c", image: "broken" }] } } } }, call);
    await eventually(() => current(api), (seen) => seen.status?.updatedReplicas === 2 && seen.status.availableReplicas === 3);
    expect(reasonOf(current(api), "Progressing")).toBe("ReplicaSetUpdated");
    aheadMs = 90_000;
    const late = await eventually(() => current(api), (seen) => reasonOf(seen, "Progressing") === "ProgressDeadlineExceeded");
    expect(late.status?.conditions?.find(({ type }) => type === "Progressing")).toMatchObject({ status: "False", message: `ReplicaSet "${set(api, "broken")?.metadata.name}" has timed out progressing.` });
    expect(reasonOf(late, "Available")).toBe("MinimumReplicasAvailable");
  }, { clock: clock as never });
});

test("recreate: no new pod before the last old one is gone", () =>
  withControllers(controllers, async (api, call) => {
    let both = false;
    const deployments = api.client.resource(DEPLOYMENTS);
    await deployments.create(web("one", { strategy: { type: "Recreate" } }), call);
    await eventually(() => current(api), done);
    api.fail = () => { both ||= new Set(images(api)).size > 1; return undefined; };
    await deployments.patch(current(api), "application/merge-patch+json", { spec: { template: { spec: { containers: [{ name: "c", image: "two" }] } } } }, call);
    await eventually(() => current(api), (seen) => done(seen) && images(api).length === 4 && images(api).every((name) => name === "two"));
    expect(both).toBe(false);
  }));

test("a name that is taken gets another hash, a refused set is told", () =>
  withControllers(controllers, async (api, call) => {
    let refuse = true;
    api.fail = ({ method, path }) => (refuse && method === "POST" && path.endsWith("/replicasets") ? forbidden({ group: "apps", resource: "replicasets" }, "", "no") : undefined);
    await api.client.resource(DEPLOYMENTS).create(web("one"), call);
    await eventually(() => current(api), (seen) => reasonOf(seen, "Progressing") === "ReplicaSetCreateError");
    const { message } = (await eventually(() => api.all(EVENTS), (all) => all.length > 0))[0]!;
    const name = /replica set "(.*)": replicasets.apps is forbidden: no$/.exec(message ?? "")?.[1];
    refuse = false;
    await api.client.resource(REPLICA_SETS).create({ apiVersion: "apps/v1", kind: "ReplicaSet", metadata: { name: name!, namespace: "default" }, spec: { replicas: 0, selector: { matchLabels: { other: "x" } } } }, call);
    const after = await eventually(() => current(api), done);
    expect(after.status?.collisionCount).toBe(1);
  }));

test("a Deployment goes back as its annotation asks: to the revision it names, or for 0 to the one before, also before the template of now has a set", () =>
  withControllers(controllers, async (api, call) => {
    const deployments = api.client.resource(DEPLOYMENTS);
    const change = (image: string, to?: string) => deployments.patch(current(api), "application/merge-patch+json", { metadata: { annotations: { "deprecated.deployment.rollback.to": to ?? null } }, spec: { template: { spec: { containers: [{ name: "c", image }] } } } }, call);
    const at = (image: string, revision: string) => eventually(() => current(api), (seen) => done(seen) && seen.spec.template.spec?.containers[0]?.image === image && seen.metadata.annotations?.["deployment.kubernetes.io/revision"] === revision);
    await deployments.create(web("one", { revisionHistoryLimit: 10 }), call);
    await at("one", "1");
    await change("two");
    await at("two", "2");
    await change("two", "1");
    const back = await at("one", "3");
    expect(back.metadata.annotations).not.toHaveProperty(["deprecated.deployment.rollback.to"]);
    await change("three", "0");
    await at("one", "3"); // three has no set yet: the one before it is one
    await change("one", "7");
    await eventually(() => api.all(EVENTS).map(({ reason, message }) => `${reason} ${message}`), (all) => all.includes("DeploymentRollbackRevisionNotFound Unable to find the revision to rollback to.") && all.includes('DeploymentRollback Rolled back deployment "web" to revision 1') && all.includes('DeploymentRollback Rolled back deployment "web" to revision 3'));
  }));
