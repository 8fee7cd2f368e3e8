/**
 * One seed: a cluster of simulated nodes, its workloads, and what becomes of them while everything around them fails.
 *
 *   fair      nodes join, workloads start, a rollout: nothing fails but requests and watches
 *   foul      for four minutes, at random: workloads are scaled, rolled, deleted, made anew; nodes lose their power or their way, the leader dies, the API server
 *             crashes, its disk fails, requests fail or their answers are lost, watches end
 *   quiet     all is mended, and must become what was asked for
 *
 * The same seed is the same run, to the last event: `digest` tells.
 */
import { createHash } from "node:crypto";
import type { DaemonSet, Deployment, StatefulSet } from "../../core/api/gen/apps.v1.ts";
import type { Job } from "../../core/api/gen/batch.v1.ts";
import type { ResourceQuota } from "../../core/api/gen/core.v1.ts";
import type { ApiObject, NewObject } from "../../core/api/meta/object-meta.ts";
import { StatusError } from "../../core/api/meta/status-error.ts";
import type { ResourceRef } from "../../core/client/client.ts";
import { DAEMON_SETS, DEPLOYMENTS, JOBS, POD_DISRUPTION_BUDGETS, PODS, RESOURCE_QUOTAS, STATEFUL_SETS } from "../../core/client/resources.ts";
import { SimulatedCluster } from "./cluster.ts";
import { FAIR, type Weather } from "./faults.ts";
import { Invariants } from "./invariants.ts";

export interface Run {
  readonly seed: number;
  readonly violations: readonly string[];
  /** What was not as it should be in the end. */
  readonly unfinished: readonly string[];
  /** Parts that ended by an error. */
  readonly failures: readonly unknown[];
  readonly events: number;
  readonly digest: string;
  /** What was done, and when. */
  readonly story: readonly string[];
}

const SHOWERS: Weather = { refused: 0.03, answerLost: 0.01, late: 0.1, watchEnds: 0.02, watchExpired: 0.1 };
const STORM: Weather = { refused: 0.25, answerLost: 0.05, late: 0.3, watchEnds: 0.1, watchExpired: 0.3 };
const FOUL_MS = 240_000;
const QUIET_MS_MAX = 900_000;
const { signal } = new AbortController();

export async function simulateCluster(seed: number, { nodes = 50, foulMs = FOUL_MS }: { readonly nodes?: number; readonly foulMs?: number } = {}): Promise<Run> {
  const hash = createHash("sha256");
  let events = 0;
  const story: string[] = [];
  const invariants = new Invariants();
  const cluster: SimulatedCluster = new SimulatedCluster(seed, (prefix, event) => {
    events++;
    hash.update(`${cluster.clock.uptimeMs()} ${prefix} ${event.type} ${event.entry.object.metadata.namespace}/${event.entry.object.metadata.name} ${event.entry.revision}\n`);
    invariants.onEvent(prefix, event);
  });
  invariants.of(cluster);
  const { clock, client } = cluster;
  const random = cluster.random.fork();
  const tell = (text: string): void => void story.push(`${(clock.uptimeMs() / 1000).toFixed(0)} s: ${text}`);

  /** A request of the scenario's: whether it works is the weather's business. Time passes until it has been answered. */
  async function attempt(what: string, request: () => Promise<unknown>): Promise<void> {
    tell(what);
    let done = false;
    request().catch((error: unknown) => { if (!(error instanceof StatusError) && !String(error).includes("down")) throw error; }).finally(() => { done = true; }).catch((error: unknown) => cluster.failures.push(error));
    for (let i = 0; i < 100 && !done; i++) await clock.run(10);
  }

  async function change<T extends ApiObject>(ref: ResourceRef<T>, object: Readonly<T>, patch: object): Promise<void> {
    await attempt(`${ref.plural} ${object.metadata.name}: ${JSON.stringify(patch)}`, () => client.resource(ref).patch(object, "application/merge-patch+json", patch, { signal }));
  }

  const create = <T extends ApiObject>(ref: ResourceRef<T>, object: unknown): Promise<void> =>
    attempt(`${ref.plural} ${(object as ApiObject).metadata.name} is made`, () => client.resource(ref).create(object as NewObject<T>, { signal }));

  let images = 1;
  const template = (app: string, restartPolicy?: string) => ({ metadata: { labels: { app } }, spec: { ...(restartPolicy ? { restartPolicy } : {}), terminationGracePeriodSeconds: 5, containers: [{ name: "app", image: `app:${images}`, resources: { requests: { cpu: "100m" } } }] } });
  const bound = (): number | string => (random.chance(0.5) ? random.integer(1, 4) : `${random.integer(10, 50)}%`);
  const deployment = (name: string, replicas: number, namespace = "default") => ({
    apiVersion: "apps/v1", kind: "Deployment", metadata: { name, namespace },
    spec: { replicas, selector: { matchLabels: { app: name } }, strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: bound(), maxUnavailable: bound() } }, template: template(name) },
  });
  const stateful = (name: string) => ({ apiVersion: "apps/v1", kind: "StatefulSet", metadata: { name, namespace: "default" }, spec: { replicas: random.integer(2, 5), serviceName: name, selector: { matchLabels: { app: name } }, template: template(name) } });
  let jobs = 0;
  const job = () => {
    const completions = random.integer(3, 15);
    const name = `job-${++jobs}`;
    return { apiVersion: "batch/v1", kind: "Job", metadata: { name, namespace: "default" }, spec: { completions, parallelism: random.integer(1, 6), backoffLimit: 100, ...(random.chance(0.5) ? { completionMode: "Indexed" } : {}), template: template(name, "Never") } };
  };

  await cluster.startServer();
  for (const name of ["plane-a", "plane-b"]) cluster.startPlane(name);
  for (let i = 0; i < nodes; i++) cluster.startNode(`node-${i}`);
  await clock.run(20_000);
  await create<ResourceQuota>(RESOURCE_QUOTAS, { apiVersion: "v1", kind: "ResourceQuota", metadata: { name: "few", namespace: "limited" }, spec: { hard: { pods: "5" } } });
  await clock.run(5_000);
  for (const name of ["web", "api"]) await create<Deployment>(DEPLOYMENTS, deployment(name, random.integer(4, 20)));
  await create<Deployment>(DEPLOYMENTS, deployment("greedy", 9, "limited"));
  await create<StatefulSet>(STATEFUL_SETS, stateful("db"));
  await create<DaemonSet>(DAEMON_SETS, { apiVersion: "apps/v1", kind: "DaemonSet", metadata: { name: "agent", namespace: "default" }, spec: { selector: { matchLabels: { app: "agent" } }, template: { ...template("agent"), spec: { ...template("agent").spec, tolerations: [{ operator: "Exists" }] } } } });
  for (let i = 0; i < 2; i++) await create<Job>(JOBS, job());
  await clock.run(60_000);

  cluster.weather = SHOWERS;
  await evictWithinBudget();
  for (const { metadata, spec, status } of invariants.all<Deployment>(DEPLOYMENT_PREFIX)) if (status?.availableReplicas === spec?.replicas) invariants.watchAvailability(metadata.uid);
  for (const object of invariants.all<Deployment>(DEPLOYMENT_PREFIX)) await change(DEPLOYMENTS, object, { spec: { template: template(`${object.metadata.name}`) } });
  images++;
  for (const object of invariants.all<Deployment>(DEPLOYMENT_PREFIX)) await change(DEPLOYMENTS, object, { spec: { template: template(`${object.metadata.name}`) } });
  await clock.run(60_000);
  invariants.forgetAvailability();

  /** A machine is emptied, say: pods are evicted as fast as their budget allows. */
  async function evictWithinBudget(): Promise<void> {
    const web = invariants.all<Deployment>(DEPLOYMENT_PREFIX).find(({ metadata }) => metadata.name === "web");
    const { replicas = 0 } = web?.spec ?? {};
    if (!web || replicas < 2 || web.status?.availableReplicas !== replicas) return;
    const least = random.integer(1, replicas - 1);
    await create(POD_DISRUPTION_BUDGETS, { apiVersion: "policy/v1", kind: "PodDisruptionBudget", metadata: { name: "web", namespace: "default" }, spec: { minAvailable: least, selector: { matchLabels: { app: "web" } } } });
    await clock.run(10_000);
    invariants.watchBudget(web.metadata.uid, least);
    for (let i = 0; i < 20; i++) {
      const pods = invariants.pods().filter(({ metadata }) => metadata.labels?.["app"] === "web" && metadata.deletionTimestamp === undefined);
      const metadata = { name: random.pick(pods).metadata.name, namespace: "default" };
      await attempt(`pod ${metadata.name} is evicted`, () => client.request({ method: "POST", path: `/api/v1/namespaces/default/pods/${metadata.name}/eviction`, body: { apiVersion: "policy/v1", kind: "Eviction", metadata }, signal }));
      await clock.run(random.integer(0, 2_000));
    }
    await clock.run(10_000);
    invariants.forgetBudgets();
  }

  const actions: readonly (readonly [weight: number, act: () => Promise<void> | void])[] = [
    [3, () => change(DEPLOYMENTS, random.pick(invariants.all<Deployment>(DEPLOYMENT_PREFIX)), { spec: { replicas: random.integer(0, 20) } })],
    [3, () => { images++; const object = random.pick(invariants.all<Deployment>(DEPLOYMENT_PREFIX)); return change(DEPLOYMENTS, object, { spec: { template: template(object.metadata.name) } }); }],
    [2, () => { const object = invariants.all<StatefulSet>(STATEFUL_PREFIX)[0]!; return change(STATEFUL_SETS, object, { spec: random.chance(0.5) ? { replicas: random.integer(0, 6) } : { template: template(object.metadata.name) } }); }],
    [2, () => create<Job>(JOBS, job())],
    [2, () => { const pod = random.pick(invariants.pods()); return attempt(`pod ${pod.metadata.name} is deleted`, () => client.resource(PODS).delete(pod, {}, { signal })); }],
    [1, () => { const all = invariants.all<Deployment>(DEPLOYMENT_PREFIX).filter(({ metadata }) => metadata.namespace === "default"); if (all.length === 0) return; const object = random.pick(all); return attempt(`deployment ${object.metadata.name} is deleted`, () => client.resource(DEPLOYMENTS).delete(object, { propagationPolicy: random.pick(["Background", "Foreground"] as const) }, { signal })); }],
    [1, () => { images++; return change(DAEMON_SETS, invariants.all<DaemonSet>(DAEMON_PREFIX)[0]!, { spec: { template: { spec: template("agent").spec } } }); }],
    [1, () => create<Deployment>(DEPLOYMENTS, deployment(random.pick(["web", "api", "more"]), random.integer(2, 15)))],
    [2, () => nodeLosesPower()],
    [2, () => nodeLosesWay()],
    [2, () => leaderDies()],
    [2, () => planeLosesWay()],
    [1, () => serverCrashes()],
    [1, () => { tell("the disk fails"); cluster.failDisk(random.integer(500, 8_000)); }],
    [2, () => { tell("storm"); cluster.weather = STORM; clock.after(random.integer(2_000, 20_000), () => { cluster.weather = SHOWERS; }); }],
  ];

  const nodesUp = (): readonly string[] => cluster.nodeNames.filter((node) => cluster.isNodeUp(node));

  function nodeLosesPower(): void {
    if (nodesUp().length === 0) return;
    const name = random.pick(nodesUp());
    tell(`${name} loses its power`);
    cluster.killNode(name);
    clock.after(random.integer(5_000, 120_000), () => { if (!cluster.isNodeUp(name)) cluster.startNode(name); });
  }

  function nodeLosesWay(): void {
    if (nodesUp().length === 0) return;
    const name = random.pick(nodesUp());
    tell(`${name} loses its way to the server`);
    const line = cluster.lineOf(name)!;
    line.cut();
    clock.after(random.integer(5_000, 120_000), () => line.heal());
  }

  function leaderDies(): void {
    const up = cluster.planeNames.filter((plane) => cluster.isPlaneUp(plane));
    if (up.length < 2) return;
    const name = random.pick(up);
    tell(`${name} dies`);
    cluster.killPlane(name);
    clock.after(random.integer(1_000, 60_000), () => { if (!cluster.isPlaneUp(name)) cluster.startPlane(name); });
  }

  /** Long enough that another leads meanwhile, or not: it must find out by itself. */
  function planeLosesWay(): void {
    const up = cluster.planeNames.filter((plane) => cluster.isPlaneUp(plane));
    if (up.length === 0) return;
    const name = random.pick(up);
    tell(`${name} loses its way to the server`);
    const line = cluster.lineOfPlane(name)!;
    line.cut();
    clock.after(random.integer(1_000, 60_000), () => line.heal());
  }

  function serverCrashes(): void {
    if (!cluster.isServerUp) return;
    tell("the API server crashes");
    cluster.crashServer();
    clock.after(random.integer(100, 15_000), startServer);
  }

  /** Its disk may fail just then: whoever watches over it tries again. */
  function startServer(): void {
    cluster.startServer().catch((error: unknown) => {
      if (String(error).includes("bad weather")) clock.after(1_000, startServer);
      else cluster.failures.push(error);
    });
  }

  const weights = actions.flatMap(([weight, act]) => Array.from({ length: weight }, () => act));
  for (const endMs = clock.uptimeMs() + foulMs; clock.uptimeMs() < endMs; ) {
    await random.pick(weights)();
    for (let waitMs = random.integer(500, 12_000); waitMs > 0; waitMs -= 1_000) {
      await clock.run(Math.min(1_000, waitMs));
      invariants.checkMachines();
    }
  }

  tell("quiet");
  cluster.weather = FAIR;
  await clock.run(25_000); // the server is up again by now
  for (const name of cluster.planeNames) {
    if (!cluster.isPlaneUp(name)) cluster.startPlane(name);
    cluster.lineOfPlane(name)!.heal();
  }
  for (const name of cluster.nodeNames) {
    if (!cluster.isNodeUp(name)) cluster.startNode(name);
    cluster.lineOf(name)!.heal();
  }
  for (let quietMs = 0; quietMs < QUIET_MS_MAX && (quietMs < 30_000 || invariants.unfinished().length > 0); quietMs += 10_000) {
    await clock.run(10_000);
    invariants.checkMachines();
  }
  const unfinished = invariants.unfinished();
  const { violations } = invariants;
  const digest = hash.digest("hex");
  await cluster.end();
  return { seed, violations, unfinished, failures: cluster.failures, events, digest, story };
}

const DEPLOYMENT_PREFIX = "/registry/apps/deployments/";
const DAEMON_PREFIX = "/registry/apps/daemonsets/";
const STATEFUL_PREFIX = "/registry/apps/statefulsets/";
