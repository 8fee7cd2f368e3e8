/** What people do to a cluster. */
import type { Deployment } from "../../core/api/gen/apps.v1.ts";
import type { Job } from "../../core/api/gen/batch.v1.ts";
import type { Pod } from "../../core/api/gen/core.v1.ts";
import { DAEMON_SETS, DEPLOYMENTS, JOBS, POD_DISRUPTION_BUDGETS, PODS, STATEFUL_SETS } from "../../core/client/resources.ts";
import { SHOWERS, STORM } from "./misfortunes.ts";
import type { Scene } from "./scene.ts";

export interface Deed {
  /** How often it is done, beside the others. */
  readonly weight: number;
  act(): Promise<void>;
}

export function deeds(scene: Scene): readonly Deed[] {
  const { random, workloads, invariants, cluster } = scene;

  async function scale(): Promise<void> {
    await scene.change(DEPLOYMENTS, random.pick(scene.deployments()), { spec: { replicas: random.integer(0, 20) } });
  }

  async function roll(): Promise<void> {
    workloads.release();
    const object = random.pick(scene.deployments());
    await scene.change(DEPLOYMENTS, object, { spec: { template: workloads.template(object.metadata.name) } });
  }

  async function changeStatefulSet(): Promise<void> {
    const object = scene.statefulSet();
    await scene.change(STATEFUL_SETS, object, { spec: random.chance(0.5) ? { replicas: random.integer(0, 6) } : { template: workloads.template(object.metadata.name) } });
  }

  async function rollDaemonSet(): Promise<void> {
    workloads.release();
    await scene.change(DAEMON_SETS, scene.daemonSet(), { spec: { template: { spec: workloads.template("agent").spec } } });
  }

  const remove = (pod: Readonly<Pod>): Promise<void> => scene.attempt(`pod ${pod.metadata.name} is deleted`, (client, signal) => client.resource(PODS).delete(pod, {}, { signal }));

  async function deletePod(): Promise<void> {
    await remove(random.pick(invariants.pods()));
  }

  /** Its pods are deleted as they come: some have ended by then, and some have not. What is noted of that is lost as often as not. */
  async function startJob(): Promise<void> {
    const job = workloads.job();
    if (random.chance(0.5)) cluster.weather = STORM;
    await scene.create<Job>(JOBS, job);
    for (let times = random.integer(2, 10); times > 0; times--) {
      await cluster.clock.run(random.integer(50, 800));
      const pods = invariants.pods().filter(({ metadata, status }) => metadata.labels?.["app"] === job.metadata.name && metadata.deletionTimestamp === undefined && status?.phase !== "Succeeded");
      if (pods.length > 0) await remove(random.pick(pods));
    }
    cluster.weather = SHOWERS;
  }

  async function deleteDeployment(): Promise<void> {
    const all = scene.deployments().filter(({ metadata }) => metadata.namespace === "default");
    if (all.length < 2) return; // one is there in the end, to be looked at
    const object = random.pick(all);
    await scene.attempt(`deployment ${object.metadata.name} is deleted`, (client, signal) => client.resource(DEPLOYMENTS).delete(object, { propagationPolicy: random.pick(["Background", "Foreground"] as const) }, { signal }));
  }

  return [
    { weight: 3, act: scale },
    { weight: 3, act: roll },
    { weight: 2, act: changeStatefulSet },
    { weight: 2, act: startJob },
    { weight: 2, act: deletePod },
    { weight: 1, act: deleteDeployment },
    { weight: 1, act: rollDaemonSet },
    { weight: 1, act: () => scene.create<Deployment>(DEPLOYMENTS, workloads.deployment(random.pick(["web", "api", "more"]), random.integer(2, 15))) },
  ];
}

/** All Deployments get a template: the same one again, if nothing was released since. */
export async function rollAll(scene: Scene): Promise<void> {
  for (const object of scene.deployments()) await scene.change(DEPLOYMENTS, object, { spec: { template: scene.workloads.template(object.metadata.name) } });
}

/** So few may be missing that others have not come before more are asked for. */
const MISSING_MAX = 2;

/** A machine is emptied, say: pods are evicted as fast as their budget allows. */
export async function evictWithinBudget(scene: Scene): Promise<void> {
  const { random, workloads, invariants, cluster: { clock } } = scene;
  const web = scene.deployments().find(({ metadata }) => metadata.name === "web");
  const { replicas = 0 } = web?.spec ?? {};
  if (!web || replicas < 2 || web.status?.availableReplicas !== replicas) return;
  const least = random.integer(Math.max(1, replicas - MISSING_MAX), replicas - 1);
  await scene.create(POD_DISRUPTION_BUDGETS, workloads.budget("web", least));
  await clock.run(10_000);
  invariants.watchBudget(web.metadata.uid, least);
  for (let i = 0; i < 20; i++) {
    const pods = invariants.pods().filter(({ metadata }) => metadata.labels?.["app"] === "web" && metadata.deletionTimestamp === undefined);
    const metadata = { name: random.pick(pods).metadata.name, namespace: "default" };
    await scene.attempt(`pod ${metadata.name} is evicted`, (client, signal) => client.request({ method: "POST", path: `/api/v1/namespaces/default/pods/${metadata.name}/eviction`, body: { apiVersion: "policy/v1", kind: "Eviction", metadata }, signal }));
    await clock.run(random.integer(0, 2_000));
  }
  await clock.run(10_000);
  invariants.forgetBudgets();
}
