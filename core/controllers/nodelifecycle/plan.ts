/**
 * What is known of a node's health, and what follows from it. No I/O.
 *
 * A node lives as long as its status or its Lease changes. When it was last seen to change is told by how long it has been watched, never by the times it writes, nor by our wall clock: that
 * may be set by days when a network appears, and no node is silent for that.
 *
 * Source: kubernetes v1.36 pkg/controller/nodelifecycle/node_lifecycle_controller.go
 */
import type { Lease } from "../../api/gen/coordination.v1.ts";
import type { Node, NodeCondition, Taint } from "../../api/gen/core.v1.ts";
import { findCondition } from "../../api/meta/conditions.ts";
import { labelsOf } from "../../api/meta/object-meta.ts";
import { parseTime } from "../../api/meta/time.ts";
import { timestamp } from "../../lifecycle/clock.ts";
import { sameTaint, TAINT } from "../taints.ts";

/** What an administrator may set, under kube-controller-manager's names. */
export interface NodeLifecycleSettings {
  /** How long a node may be silent: --node-monitor-grace-period; a new one that has never reported: --node-startup-grace-period. */
  readonly graceMs: number;
  readonly startupGraceMs: number;
  /** How often all are looked at: --node-monitor-period */
  readonly periodMs: number;
  /** From which share of silent nodes on a zone is disturbed: --unhealthy-zone-threshold */
  readonly unhealthyShare: number;
  /** Nodes tainted in a second: --node-eviction-rate; in a large disturbed zone: --secondary-node-eviction-rate, --large-cluster-size-threshold */
  readonly rate: number;
  readonly rateSecondary: number;
  readonly largeZone: number;
}

/** Source: kubernetes v1.36 pkg/controller/nodelifecycle/config/v1alpha1/defaults.go, cmd/kube-controller-manager/app/options/nodelifecyclecontroller.go */
export const NODE_LIFECYCLE: NodeLifecycleSettings = { graceMs: 50_000, startupGraceMs: 60_000, periodMs: 5_000, unhealthyShare: 0.55, rate: 0.1, rateSecondary: 0.01, largeZone: 50 };

export function readyStatus(node: Readonly<Node>): string | undefined { return findCondition(node.status?.conditions, "Ready")?.status; }

/** The last signs of life, and when we saw them come, by the time that nodes are watched (node-health.ts). */
export interface Health { readonly seenMs: number; readonly heartbeat: string | undefined; readonly renewTime: string | undefined }

interface Now { readonly watchedMs: number; readonly nowMs: number }

export function healthAfter(before: Health | undefined, node: Readonly<Node>, lease: Readonly<Lease> | undefined, { watchedMs, nowMs }: Now): Health {
  const ready = findCondition(node.status?.conditions, "Ready");
  const heartbeat = ready?.lastHeartbeatTime ?? (ready === undefined ? undefined : "");
  const renewTime = lease?.spec?.renewTime;
  if (before === undefined) {
    const ageMs = ready === undefined && renewTime === undefined ? Math.max(0, nowMs - (parseTime(node.metadata.creationTimestamp) ?? nowMs)) : 0;
    return { heartbeat, renewTime, seenMs: watchedMs - ageMs };
  }
  const renewed = renewTime !== undefined && before.renewTime !== renewTime; // earlier than before, too, unlike upstream: the node's clock has been set back
  const posted = before.heartbeat !== heartbeat;
  return renewed || posted ? { heartbeat, renewTime, seenMs: watchedMs } : before;
}

export function isSilent(health: Health, node: Readonly<Node>, watchedMs: number, { graceMs, startupGraceMs }: Pick<NodeLifecycleSettings, "graceMs" | "startupGraceMs"> = NODE_LIFECYCLE): boolean {
  const grace = findCondition(node.status?.conditions, "Ready") === undefined ? startupGraceMs : graceMs;
  return watchedMs > health.seenMs + grace;
}

/** The conditions of a node nobody hears from; the list itself if it says so already. */
export function unknownConditions(node: Readonly<Node>, nowMs: number): readonly NodeCondition[] {
  const before = node.status?.conditions ?? [];
  const next = [...before];
  for (const type of ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"]) {
    const at = next.findIndex((condition) => condition.type === type);
    const old = next[at];
    const lastTransitionTime = timestamp(nowMs);
    if (old === undefined) {
      next.push({ type, status: "Unknown", reason: "NodeStatusNeverUpdated", message: "Kubelet never posted node status.", lastHeartbeatTime: node.metadata.creationTimestamp, lastTransitionTime });
    } else if (old.status !== "Unknown") {
      next[at] = { ...old, status: "Unknown", reason: "NodeStatusUnknown", message: "Kubelet stopped posting node status.", lastTransitionTime };
    }
  }
  return next.length === before.length && next.every((condition, i) => condition === before[i]) ? before : next;
}

const TAINTS_BY_CONDITION: ReadonlyMap<string, string> = new Map([
  ["Ready False", TAINT.notReady], ["Ready Unknown", TAINT.unreachable],
  ["MemoryPressure True", TAINT.memoryPressure], ["DiskPressure True", TAINT.diskPressure], ["NetworkUnavailable True", TAINT.networkUnavailable], ["PIDPressure True", TAINT.pidPressure],
]);
const OURS = new Set([TAINT.unschedulable, ...TAINTS_BY_CONDITION.values()]);

/** NoSchedule taints follow the conditions at once. Undefined: they do already. */
export function scheduleTaints(node: Readonly<Node>, nowMs: number): readonly Taint[] | undefined {
  const wanted = (node.status?.conditions ?? []).flatMap(({ type, status }) => {
    const key = TAINTS_BY_CONDITION.get(`${type} ${status}`);
    return key === undefined ? [] : [key];
  });
  if (node.spec?.unschedulable) wanted.push(TAINT.unschedulable);
  const before = node.spec?.taints ?? [];
  const kept = before.filter(({ key, effect }) => effect !== "NoSchedule" || !OURS.has(key) || wanted.includes(key));
  const added = wanted.filter((key) => !before.some((taint) => taint.key === key && taint.effect === "NoSchedule"));
  if (kept.length === before.length && added.length === 0) return undefined;
  return [...kept, ...added.map((key) => ({ key, effect: "NoSchedule" as const, timeAdded: timestamp(nowMs) }))];
}

const NO_EXECUTE: Readonly<Record<string, Taint>> = {
  False: { key: TAINT.notReady, effect: "NoExecute" },
  Unknown: { key: TAINT.unreachable, effect: "NoExecute" },
};

export type Eviction =
  | { readonly do: "nothing" }
  /** One taint for the other, or taints off: at once. */
  | { readonly do: "set"; readonly taints: readonly Taint[] }
  /** A new taint, which costs pods their node: as fast as the zone's health allows. */
  | { readonly do: "taint"; readonly taints: readonly Taint[] };

/** NoExecute taints of a node whose Ready condition has this status. */
export function evictionFor(node: Readonly<Node>, ready: string | undefined, nowMs: number): Eviction {
  const before = node.spec?.taints ?? [];
  if (ready === undefined) return { do: "nothing" };
  const wanted = NO_EXECUTE[ready];
  const ours = Object.values(NO_EXECUTE);
  const others = before.filter((taint) => !ours.some((one) => sameTaint(one, taint)));
  const held = before.filter((taint) => ours.some((one) => sameTaint(one, taint)));
  if (wanted === undefined) return held.length === 0 ? { do: "nothing" } : { do: "set", taints: others };
  const had = held.find((taint) => sameTaint(taint, wanted));
  if (had !== undefined && held.length === 1) return { do: "nothing" };
  const taints = [...others, had ?? { ...wanted, timeAdded: timestamp(nowMs) }];
  return { do: held.length > 0 ? "set" : "taint", taints };
}

export type ZoneState = "Normal" | "PartialDisruption" | "FullDisruption";

export function zoneState(ready: number, notReady: number, { unhealthyShare }: Pick<NodeLifecycleSettings, "unhealthyShare"> = NODE_LIFECYCLE): ZoneState {
  if (ready === 0 && notReady > 0) return "FullDisruption";
  return notReady > 2 && notReady / (ready + notReady) >= unhealthyShare ? "PartialDisruption" : "Normal";
}

/** Nodes tainted in a second. In a small zone that is mostly down it is more likely the network than the nodes. */
export function taintsPerSecond(state: ZoneState, nodes: number, { rate, rateSecondary, largeZone }: Pick<NodeLifecycleSettings, "rate" | "rateSecondary" | "largeZone"> = NODE_LIFECYCLE): number {
  return state === "PartialDisruption" ? (nodes > largeZone ? rateSecondary : 0) : rate;
}

export function zoneOf(node: Readonly<Node>): string {
  const labels = labelsOf(node);
  const region = labels["topology.kubernetes.io/region"] ?? labels["failure-domain.beta.kubernetes.io/region"] ?? "";
  const zone = labels["topology.kubernetes.io/zone"] ?? labels["failure-domain.beta.kubernetes.io/zone"] ?? "";
  return region === "" && zone === "" ? "" : `${region}:\0:${zone}`;
}

export function isExcludedFromDisruption(node: Readonly<Node>): boolean { return labelsOf(node)["node.kubernetes.io/exclude-disruption"] !== undefined; }

/** The old names of the labels for operating system and architecture follow the new ones. */
export function betaLabels(node: Readonly<Node>): Record<string, string> | undefined {
  const labels = labelsOf(node);
  const wanted: Record<string, string> = {};
  for (const name of ["os", "arch"]) {
    const value = labels[`kubernetes.io/${name}`];
    if (value !== undefined && labels[`beta.kubernetes.io/${name}`] !== value) wanted[`beta.kubernetes.io/${name}`] = value;
  }
  return Object.keys(wanted).length === 0 ? undefined : wanted;
}
