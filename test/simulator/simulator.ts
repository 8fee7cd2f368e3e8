/**
 * One seed: a cluster of simulated nodes, its workloads, and what becomes of them while everything around them fails.
 *
 *   fair      nodes join, workloads start, a rollout: nothing fails but requests and watches
 *   foul      for four minutes, at random: workloads are scaled, rolled, deleted, made anew; nodes lose their power or their way, a control plane dies, be it the leader's, the API server
 *             crashes, its disk fails, requests fail or their answers are lost, watches end, clocks are set
 *   quiet     all is mended, and must become what was asked for
 *
 * The same seed is the same run, to the last event: `digest` tells.
 */
import { createHash } from "node:crypto";
import type { DaemonSet, Deployment, StatefulSet } from "../../core/api/gen/apps.v1.ts";
import type { Job } from "../../core/api/gen/batch.v1.ts";
import type { ResourceQuota } from "../../core/api/gen/core.v1.ts";
import { DAEMON_SETS, DEPLOYMENTS, JOBS, RESOURCE_QUOTAS, STATEFUL_SETS } from "../../core/client/resources.ts";
import { SimulatedCluster } from "./cluster.ts";
import { deeds, evictWithinBudget, rollAll } from "./deeds.ts";
import { FAIR } from "./faults.ts";
import { Invariants } from "./invariants.ts";
import { misfortunes, SHOWERS } from "./misfortunes.ts";
import { Scene } from "./scene.ts";

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

const FOUL_MS = 240_000;
const QUIET_MS_MAX = 900_000;

export async function simulateCluster(seed: number, { nodes = 50, foulMs = FOUL_MS }: { readonly nodes?: number; readonly foulMs?: number } = {}): Promise<Run> {
  const hash = createHash("sha256");
  let events = 0;
  const invariants = new Invariants();
  const cluster: SimulatedCluster = new SimulatedCluster(seed, (prefix, event) => {
    events++;
    hash.update(`${cluster.clock.uptimeMs()} ${prefix} ${event.type} ${event.entry.object.metadata.namespace}/${event.entry.object.metadata.name} ${event.entry.revision}\n`);
    invariants.onEvent(prefix, event);
  });
  invariants.of(cluster);
  const scene = new Scene(cluster, invariants);
  await fair(scene, nodes);
  await foul(scene, foulMs);
  await quiet(scene);
  const unfinished = invariants.unfinished();
  const { violations } = invariants;
  const digest = hash.digest("hex");
  await cluster.end();
  return { seed, violations, unfinished, failures: cluster.failures, events, digest, story: scene.story };
}

async function fair(scene: Scene, nodes: number): Promise<void> {
  const { cluster, random, workloads, invariants } = scene;
  const { clock } = cluster;
  await cluster.startServer();
  for (const name of ["plane-a", "plane-b"]) cluster.startPlane(name);
  for (let i = 0; i < nodes; i++) cluster.startNode(`node-${i}`);
  await clock.run(20_000);
  await scene.create<ResourceQuota>(RESOURCE_QUOTAS, { apiVersion: "v1", kind: "ResourceQuota", metadata: { name: "few", namespace: "limited" }, spec: { hard: { pods: "5" } } });
  await clock.run(5_000);
  for (const name of ["web", "api"]) await scene.create<Deployment>(DEPLOYMENTS, workloads.deployment(name, random.integer(4, 20)));
  await scene.create<Deployment>(DEPLOYMENTS, workloads.deployment("greedy", 9, "limited"));
  await scene.create<StatefulSet>(STATEFUL_SETS, workloads.stateful("db"));
  await scene.create<DaemonSet>(DAEMON_SETS, workloads.daemon("agent"));
  for (let i = 0; i < 2; i++) await scene.create<Job>(JOBS, workloads.job());
  await clock.run(60_000);

  cluster.weather = SHOWERS;
  await evictWithinBudget(scene);
  for (const { metadata, spec, status } of scene.deployments()) if (status?.availableReplicas === spec?.replicas) invariants.watchAvailability(metadata.uid);
  await rollAll(scene);
  workloads.release();
  await rollAll(scene);
  await clock.run(60_000);
  invariants.forgetAvailability();
}

async function foul(scene: Scene, foulMs: number): Promise<void> {
  const { cluster, random, invariants } = scene;
  const { clock } = cluster;
  const all = [...deeds(scene), ...misfortunes(cluster, random, (text) => scene.tell(text)).map(({ weight, happen }) => ({ weight, act: happen }))];
  const weights = all.flatMap(({ weight, act }) => Array.from({ length: weight }, () => act));
  for (const endMs = clock.uptimeMs() + foulMs; clock.uptimeMs() < endMs; ) {
    await random.pick(weights)();
    for (let waitMs = random.integer(500, 12_000); waitMs > 0; waitMs -= 1_000) {
      await clock.run(Math.min(1_000, waitMs));
      invariants.checkMachines();
    }
  }
}

async function quiet(scene: Scene): Promise<void> {
  const { cluster, invariants } = scene;
  const { clock } = cluster;
  scene.tell("quiet");
  cluster.weather = FAIR;
  cluster.setClocks();
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
}
