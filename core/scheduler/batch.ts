/**
 * What was thought of one pod, used again for the next that is like it: the nodes it did not get, best first.
 *
 * It holds only while pods of one signature come one after the other, each fills its node (or else nobody knows how that node compares now), and for half a second.
 * A pod whose place depends on where the others are (affinity, spreading, devices) has no signature, and so has none where a profile spreads pods by default.
 *
 * Source: kubernetes v1.36 pkg/scheduler/framework/runtime/batch.go, plugins' SignPod
 */
import type { Volume } from "../api/gen/core.v1.ts";
import { stringify } from "../api/codec/json.ts";
import { featuresToRun } from "../api/meta/declared-features.ts";
import type { Cluster } from "./cluster.ts";
import { devicePlan } from "./devices/dynamic-resources.ts";
import { Evaluation } from "./evaluation.ts";
import type { LiveNode, PlacedPod } from "./node-info.ts";
import type { Profile } from "./plugins.ts";

const AGE_MS_MAX = 500;

export type FlushReason = "pod_skipped" | "node_missing" | "node_not_full" | "empty_list" | "expired" | "pod_incompatible" | "pod_not_batchable";

export interface BatchMetrics {
  batchAttempt(result: "no_hint" | "hint_used" | "hint_not_used", profile: string): void;
  batchFlushed(reason: FlushReason, profile: string): void;
}

/** Equal for pods that any node suits alike; undefined: there is no such thing for this pod. */
export function signatureOf(candidate: PlacedPod, cluster: Cluster, { batching, bindsDevices }: Profile): string | undefined {
  const { metadata, spec } = candidate.pod;
  if (!batching || spec.topologySpreadConstraints?.length || spec.affinity?.podAffinity || spec.affinity?.podAntiAffinity || spec.resourceClaims?.length) return undefined;
  if (bindsDevices && devicePlan(candidate, cluster) !== undefined) return undefined;
  const containers = [...spec.containers, ...(spec.initContainers ?? [])];
  return stringify([
    spec.schedulerName, spec.nodeName, spec.nodeSelector, spec.affinity?.nodeAffinity, spec.tolerations, candidate.requests, batching.byLabels ? [metadata.namespace, metadata.labels] : [],
    containers.flatMap(({ ports = [] }) => ports.filter(({ hostPort }) => hostPort)), [...new Set(containers.map(({ image }) => image))].sort(), (spec.volumes ?? []).filter(matters), featuresToRun(spec),
  ]);
}

/** The others are the same on every node. */
function matters({ configMap, secret, emptyDir, downwardAPI, projected }: Volume): boolean { return !(configMap ?? secret ?? emptyDir ?? downwardAPI ?? projected); }

interface State { readonly signature: string; readonly nodes: string[]; readonly atMs: number }

/** A pod that is thought of. `cycle`: how many were taken before it, of any profile. */
interface Turn { readonly candidate: PlacedPod; readonly signature: string | undefined; readonly cycle: number; readonly nowMs: number }

/** What became of it: the node it got, and how many would have done; `others` of them, best first, if anybody asked. `isPrepared`: nothing kept it off all nodes before they were looked at. */
export interface Outcome { readonly node: string | undefined; readonly feasible: number; readonly others?: readonly string[] | undefined; readonly isPrepared: boolean }

/** Of one profile. */
export class Batch {
  readonly #metrics: BatchMetrics;
  readonly #profile: Profile;
  #state: State | undefined;
  /** The last pod of the profile that got a node. */
  #last: { readonly cycle: number; readonly node: string } | undefined;
  /** The node that was best for the pod under way, or why that is not known. */
  #hinted: string | undefined;
  #useless: FlushReason | undefined;

  constructor(profile: Profile, metrics: BatchMetrics) {
    this.#profile = profile;
    this.#metrics = metrics;
  }

  /** The node that is best now, if it is known without looking at all of them. A pod that is nominated goes to its own. */
  hint(turn: Turn, cluster: Cluster): { readonly node: string; readonly evaluation: Evaluation } | undefined {
    this.#hinted = this.#useless = undefined;
    const state = this.#state;
    if (!state || state.nodes.length === 0) return undefined;
    const evaluation = new Evaluation(turn.candidate, cluster, this.#profile.filters);
    const takes = (node: LiveNode): boolean => !evaluation.refusal && (evaluation.onlyNodes?.has(node.name) ?? true) && !evaluation.reject(node);
    this.#useless = this.#whyUseless(state, turn, { cluster, takes });
    if (this.#useless) return undefined;
    this.#hinted = state.nodes.shift();
    const next = turn.candidate.pod.status?.nominatedNodeName ? undefined : cluster.node(this.#hinted ?? "");
    return next && takes(next) ? { node: next.name, evaluation } : undefined;
  }

  #whyUseless(state: State, { signature, cycle, nowMs }: Turn, { cluster, takes }: { readonly cluster: Cluster; readonly takes: (node: LiveNode) => boolean }): FlushReason | undefined {
    if (cycle !== (this.#last?.cycle ?? -1) + 1) return "pod_skipped";
    if (signature !== state.signature) return "pod_incompatible";
    if (nowMs - state.atMs > AGE_MS_MAX) return "expired";
    const last = cluster.node(this.#last?.node ?? "");
    if (!last) return "node_missing";
    return takes(last) ? "node_not_full" : undefined;
  }

  decided({ node, feasible, others = [], isPrepared }: Outcome, { signature, cycle, nowMs }: Omit<Turn, "candidate">): void {
    const { schedulerName } = this.#profile;
    if (!isPrepared) return;
    if (this.#useless) this.#metrics.batchFlushed(this.#useless, schedulerName);
    if (this.#hinted === undefined) this.#metrics.batchAttempt("no_hint", schedulerName);
    if (node === undefined) return;
    this.#last = { cycle, node };
    if (this.#hinted !== undefined) this.#metrics.batchAttempt(this.#hinted === node ? "hint_used" : "hint_not_used", schedulerName);
    if (this.#hinted === node) return; // what is known stays
    if (signature !== undefined && others.length > 0) this.#state = { signature, nodes: [...others], atMs: nowMs };
    else {
      this.#metrics.batchFlushed(feasible > 1 ? "pod_not_batchable" : "empty_list", schedulerName);
      this.#state = undefined;
    }
  }
}
