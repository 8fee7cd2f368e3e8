/**
 * A cluster for tests of scheduling decisions, without an API server.
 *
 *   const cluster = schedulingCluster({ nodes: [node("a")], placed: [[pod("x"), "a"]], objects: [storageClass] });
 *   place(placedPod(pod("p")), cluster, DEFAULT_PROFILE, { random: first, start: { next: 0 } })
 */
import type { Node, Pod, PodSpec } from "../core/api/gen/core.v1.ts";
import type { ApiObject } from "../core/api/meta/object-meta.ts";
import type { Informers } from "../core/client/informer-factory.ts";
import type { Random } from "../core/lifecycle/random.ts";
import { type Cluster, ownersFrom } from "../core/scheduler/cluster.ts";
import { devicesFrom } from "../core/scheduler/devices/claims.ts";
import { type PlacedPod, placedPod } from "../core/scheduler/node-info.ts";
import { Snapshot } from "../core/scheduler/snapshot.ts";
import { storageFrom } from "../core/scheduler/storage.ts";
import { staticInformer, stored } from "./static-informer.ts";

/** Always the first of what is equally good. */
export const first: Random = { next: () => 0, uuid: () => "", bytes: () => new Uint8Array() };

interface NodeOptions {
  readonly cpu?: string;
  readonly labels?: Record<string, string>;
  readonly taints?: Node["spec"]["taints"];
  readonly unschedulable?: boolean;
  readonly allocatable?: Record<string, string>;
  readonly images?: NonNullable<Node["status"]>["images"];
}

export function node(name: string, { cpu = "2", labels = {}, taints, unschedulable, allocatable, images }: NodeOptions = {}): Node {
  return stored("v1", "Node", name, {
    metadata: { labels: { "kubernetes.io/hostname": name, ...labels } },
    spec: { ...(taints && { taints }), ...(unschedulable && { unschedulable }) },
    status: { allocatable: { cpu, memory: "4Gi", pods: "110", ...allocatable }, ...(images && { images }) },
  });
}

interface PodOptions extends Partial<Omit<PodSpec, "containers">> {
  readonly cpu?: string;
  readonly labels?: Record<string, string>;
  readonly namespace?: string;
  readonly metadata?: Record<string, unknown>;
  readonly status?: Pod["status"];
  readonly container?: Partial<PodSpec["containers"][number]>;
}

export function pod(name: string, { cpu = "500m", labels = {}, namespace = "default", metadata = {}, status, container, ...spec }: PodOptions = {}): Pod {
  return stored("v1", "Pod", `${namespace}/${name}`, {
    metadata: { labels, ...metadata },
    spec: { ...spec, containers: [{ name: "c", image: "i", resources: { requests: { cpu } }, ...container }] },
    ...(status && { status }),
  });
}

export interface SchedulingCluster extends Cluster {
  readonly snapshot: Snapshot;
}

export function schedulingCluster({ nodes = [], placed = [], nominated = [], objects = [], gates = new Set() }: {
  readonly nodes?: readonly Node[];
  readonly placed?: readonly (readonly [Pod, string])[];
  readonly nominated?: readonly (readonly [Pod, string])[];
  readonly objects?: readonly ApiObject[];
  readonly gates?: ReadonlySet<string>;
}): SchedulingCluster {
  const snapshot = new Snapshot();
  for (const one of nodes) snapshot.setNode(one);
  for (const [one, on] of placed) snapshot.setPod({ ...one, spec: { ...one.spec, nodeName: on } });
  for (const [one, on] of nominated) snapshot.nominate(one, on);
  const informers = staticInformers(objects);
  return {
    snapshot, nodes: () => snapshot.nodes(), node: (name) => snapshot.node(name), image: (name) => snapshot.image(name), pods: snapshot.pods, nominatedTo: (name) => snapshot.nominatedTo(name),
    storage: storageFrom(informers), owners: ownersFrom(informers),
    gates, devices: devicesFrom(informers, gates), devicePlans: new WeakMap(), clocks: { nowMs: () => 0, uptimeMs: () => 0 },
  };
}

function staticInformers(objects: readonly ApiObject[]): Informers {
  const made = new Map<string, ReturnType<typeof staticInformer>>();
  return {
    of: (ref) => {
      let informer = made.get(ref.kind);
      if (!informer) made.set(ref.kind, (informer = staticInformer(...objects.filter(({ kind }) => kind === ref.kind))));
      return informer as never;
    },
    stop: () => {},
  };
}

export function candidate(wanted: Pod): PlacedPod {
  return placedPod(wanted);
}

export { stored };
