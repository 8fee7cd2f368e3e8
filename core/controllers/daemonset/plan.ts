/**
 * Where a DaemonSet's pods are missing, which are too many, and which are to be replaced next. No I/O.
 *
 * Source: kubernetes v1.36 pkg/controller/daemon/{daemon_controller,update}.go
 */
import type { DaemonSet, DaemonSetStatus } from "../../api/gen/apps.v1.ts";
import type { Node, Pod } from "../../api/gen/core.v1.ts";
import { scaleIntOrPercent } from "../../api/meta/int-or-string.ts";
import { isDeleting } from "../../api/meta/object-meta.ts";
import { isAvailable, isReady, isTerminal } from "../pod-state.ts";
import { type Fit, fitOf, isUpdated, targetNode } from "./pods.ts";

export interface Plan {
  /** Names of nodes that need a pod. */
  readonly create: readonly string[];
  readonly remove: readonly Readonly<Pod>[];
  /** Pods to remove as well, unless they have failed too often of late. */
  readonly failed: readonly { readonly pod: Readonly<Pod>; readonly node: string }[];
}

interface World {
  readonly set: Readonly<DaemonSet>;
  /** The hash of the template as it is now. */
  readonly hash: string;
  readonly nodes: readonly Readonly<Node>[];
  readonly pods: readonly Readonly<Pod>[];
  readonly nowMs: number;
}

type Pods = readonly Readonly<Pod>[];

/** Pods by the node they are on or meant for; those that are over and on their way out do not count. */
function podsByNode(pods: Pods): Map<string, Readonly<Pod>[]> {
  return Map.groupBy(pods.filter((pod) => !(isTerminal(pod) && isDeleting(pod)) && targetNode(pod) !== undefined), (pod) => targetNode(pod) ?? "");
}

/** Those on a node first, then the oldest. */
function bySeniority(a: Readonly<Pod>, b: Readonly<Pod>): number {
  const byPlace = Number(Boolean(b.spec.nodeName)) - Number(Boolean(a.spec.nodeName));
  const order = ({ metadata }: Readonly<Pod>): string => `${metadata.creationTimestamp} ${metadata.name}`;
  return byPlace || (order(a) < order(b) ? -1 : 1);
}

/** Which nodes lack a pod, and which pods are in the wrong place or too many. */
export function planPlacement(world: World): Plan {
  const { set, nodes, pods } = world;
  const byNode = podsByNode(pods);
  const create: string[] = [];
  const remove: Readonly<Pod>[] = [];
  const failed: { pod: Readonly<Pod>; node: string }[] = [];
  for (const node of nodes) {
    const { name } = node.metadata;
    const held = byNode.get(name);
    const fit = fitOf(set, node);
    if (held === undefined) {
      if (fit.shouldRun) create.push(name);
      continue;
    }
    const live = held.filter((pod) => !isDeleting(pod));
    if (!fit.mayStay) remove.push(...live);
    else {
      const running = live.filter((pod) => !isTerminal(pod)).toSorted(bySeniority);
      for (const pod of live) if (isTerminal(pod)) failed.push({ pod, node: name });
      if (running.length === 0 && fit.shouldRun && surgeOf(set, 1) > 0) create.push(name); // beside the one that goes
      remove.push(...surplus(world, running));
    }
  }
  const known = new Set(nodes.map(({ metadata }) => metadata.name));
  for (const [name, held] of byNode) if (!known.has(name)) remove.push(...held.filter(({ spec }) => !spec.nodeName));
  return { create, remove, failed };
}

/** Of several on one node one stays; while a surge replaces it, the newcomer too, until it can take over. */
function surplus({ set, hash, nowMs }: World, running: Pods): Pods {
  if (running.length <= 1) return [];
  if (surgeOf(set, 1) === 0) return running.slice(1);
  const fresh = running.find((pod) => isUpdated(set, pod, hash));
  const stale = running.find((pod) => !isUpdated(set, pod, hash));
  const extra = running.filter((pod) => pod !== fresh && pod !== stale);
  const done = fresh !== undefined && stale !== undefined && (!isReady(stale) || isAvailable(fresh, set.spec.minReadySeconds ?? 0, nowMs));
  return done && stale !== undefined ? [...extra, stale] : extra;
}

function isRolling({ spec }: Readonly<DaemonSet>): boolean { return spec.updateStrategy?.type === "RollingUpdate"; }

function surgeOf(set: Readonly<DaemonSet>, nodes: number): number {
  return isRolling(set) ? scaleIntOrPercent(set.spec.updateStrategy?.rollingUpdate?.maxSurge ?? 0, { total: nodes, roundUp: true }) : 0;
}

function unavailableOf(set: Readonly<DaemonSet>, nodes: number): number {
  return isRolling(set) ? scaleIntOrPercent(set.spec.updateStrategy?.rollingUpdate?.maxUnavailable ?? 1, { total: nodes, roundUp: true }) : 0;
}

/** The next pods of an old template to go, and with a surge the nodes to get a new one first. */
export function planRolling(world: World): { readonly create: readonly string[]; readonly remove: Pods } {
  const { set, nodes, pods } = world;
  if (!isRolling(set)) return { create: [], remove: [] };
  const fits = new Map(nodes.map((node) => [node.metadata.name, fitOf(set, node)]));
  const byNode = podsByNode(pods);
  const wanted = nodes.filter(({ metadata }) => fits.get(metadata.name)?.shouldRun).map(({ metadata }) => metadata.name);
  for (const name of wanted) if (!byNode.has(name)) byNode.set(name, []);
  const surge = surgeOf(set, wanted.length);
  const unavailable = unavailableOf(set, wanted.length);
  if (surge === 0) return { create: [], remove: replaceInPlace(world, byNode, wanted.length > 0 && unavailable === 0 ? 1 : unavailable) };
  return replaceBySurge(world, byNode, { fits, surge, wanted: wanted.length });
}

/** One pod of each sort on a node; undefined when there are more than one of a sort, which placement will see to. */
function pair({ set, hash }: World, held: Pods): { readonly fresh: Readonly<Pod> | undefined; readonly stale: Readonly<Pod> | undefined } | undefined {
  const live = held.filter((pod) => !isDeleting(pod));
  const fresh = live.filter((pod) => isUpdated(set, pod, hash));
  const stale = live.filter((pod) => !isUpdated(set, pod, hash));
  return fresh.length > 1 || stale.length > 1 ? undefined : { fresh: fresh[0], stale: stale[0] };
}

function replaceInPlace(world: World, byNode: ReadonlyMap<string, Pods>, unavailableMax: number): Pods {
  const available = (pod: Readonly<Pod>): boolean => isAvailable(pod, world.set.spec.minReadySeconds ?? 0, world.nowMs);
  let unavailable = 0;
  const broken: Readonly<Pod>[] = []; // nobody is served by them: they cost nothing
  const serving: Readonly<Pod>[] = [];
  for (const held of byNode.values()) {
    const found = pair(world, held);
    if (found?.stale !== undefined && found.fresh === undefined) {
      if (available(found.stale)) serving.push(found.stale);
      else { broken.push(found.stale); unavailable++; }
    } else if (found?.fresh === undefined || found.stale !== undefined || !available(found.fresh)) unavailable++;
  }
  return [...broken, ...serving.slice(0, Math.max(0, unavailableMax - unavailable))];
}

function replaceBySurge(world: World, byNode: ReadonlyMap<string, Pods>, { fits, surge, wanted }: {
  readonly fits: ReadonlyMap<string, Fit>;
  readonly surge: number;
  readonly wanted: number;
}): { readonly create: readonly string[]; readonly remove: Pods } {
  const available = (pod: Readonly<Pod>): boolean => isAvailable(pod, world.set.spec.minReadySeconds ?? 0, world.nowMs);
  let [surging, serving] = [0, 0];
  const remove: Readonly<Pod>[] = [];
  const misplaced: Readonly<Pod>[] = []; // serving on nodes that should not have them any more
  const atOnce: string[] = [];
  const inTurn: string[] = [];
  for (const [name, held] of byNode) {
    const found = pair(world, held);
    if (found === undefined) { surging++; continue; }
    const { fresh, stale } = found;
    const shown = stale ?? fresh;
    if (shown !== undefined && available(shown)) serving++;
    if (stale === undefined) continue;
    if (fresh !== undefined) {
      if (available(fresh)) remove.push(stale);
      else surging++;
    } else if (!fits.get(name)?.shouldRun) (available(stale) ? misplaced : remove).push(stale);
    else (available(stale) ? inTurn : atOnce).push(name);
  }
  remove.push(...misplaced.slice(0, Math.max(0, serving - wanted)));
  return { create: [...atOnce, ...inTurn.slice(0, Math.max(0, surge - surging))], remove };
}

export function daemonStatus({ set, hash, nodes, pods, nowMs }: World): DaemonSetStatus {
  const byNode = podsByNode(pods);
  let [desired, current, misscheduled, ready, available, updated] = [0, 0, 0, 0, 0, 0];
  for (const node of nodes) {
    const [pod] = (byNode.get(node.metadata.name) ?? []).toSorted(bySeniority);
    if (!fitOf(set, node).shouldRun) {
      if (pod !== undefined) misscheduled++;
      continue;
    }
    desired++;
    if (pod === undefined) continue;
    current++;
    if (isReady(pod)) ready++;
    if (isAvailable(pod, set.spec.minReadySeconds ?? 0, nowMs)) available++;
    if (isUpdated(set, pod, hash)) updated++;
  }
  const { collisionCount, conditions } = set.status ?? {};
  return {
    currentNumberScheduled: current, numberMisscheduled: misscheduled, desiredNumberScheduled: desired, numberReady: ready, observedGeneration: set.metadata.generation ?? 0,
    updatedNumberScheduled: updated, numberAvailable: available, numberUnavailable: desired - available,
    ...(collisionCount === undefined ? {} : { collisionCount }), ...(conditions === undefined ? {} : { conditions: [...conditions] }),
  };
}
