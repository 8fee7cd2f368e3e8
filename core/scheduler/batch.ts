/**
 * What was thought of one pod, used again for the next that is like it: the nodes it did not get, best first.
 *
 * It holds only while pods of one signature come one after the other, each fills its node (or else nobody knows how that node compares now), and for half a second.
 * A pod whose place depends on where the others are (affinity, spreading, devices) has no signature, and so has none where a profile spreads pods by default.
 *
 * Source: kubernetes v1.36 pkg/scheduler/framework/runtime/batch.go, plugins' SignPod
 */
import type { Volume } from "../api/gen/core.v1.ts";
import { featuresToRun } from "../api/meta/declared-features.ts";
import type { Cluster } from "./cluster.ts";
import { devicePlan } from "./devices/dynamic-resources.ts";
import { Evaluation } from "./evaluation.ts";
import type { LiveNode, PlacedPod } from "./node-info.ts";
import type { Profile } from "./plugins.ts";

const AGE_MS_MAX = 500;

export type FlushReason = "pod_failed" | "pod_skipped" | "node_missing" | "node_not_full" | "empty_list" | "expired" | "pod_incompatible" | "pod_not_batchable";

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
  return JSON.stringify([
    spec.schedulerName, spec.nodeName, spec.nodeSelector, spec.affinity?.nodeAffinity, spec.tolerations, candidate.requests, batching.byLabels ? [metadata.namespace, metadata.labels] : [],
    containers.flatMap(({ ports = [] }) => ports.filter(({ hostPort }) => hostPort)), [...new Set(containers.map(({ image }) => image))].sort(), (spec.volumes ?? []).filter(matters), featuresToRun(spec),
  ]);
}

/** The others are the same on every node. */
function matters({ configMap, secret, emptyDir, downwardAPI, projected }: Volume): boolean { return !(configMap ?? secret ?? emptyDir ?? downwardAPI ?? projected); }

interface State { readonly signature: string; readonly nodes: string[]; readonly atMs: number }

export class Batch {
  readonly #metrics: BatchMetrics;
  #state: State | undefined;
  /** What became of the pod before. */
  #last: { readonly profile: string; readonly node: string | undefined } | undefined;

  constructor(metrics: BatchMetrics) { this.#metrics = metrics; }

  /** The node that is best now, if it is known without looking at all of them. */
  hint(candidate: PlacedPod, signature: string | undefined, { cluster, profile, nowMs }: { readonly cluster: Cluster; readonly profile: Profile; readonly nowMs: number }): { readonly node: string; readonly evaluation: Evaluation } | undefined {
    const state = this.#state;
    if (!state) return undefined;
    const drop = (reason: FlushReason): undefined => {
      this.#metrics.batchFlushed(reason, profile.schedulerName);
      this.#metrics.batchAttempt("no_hint", profile.schedulerName);
      this.#state = undefined;
    };
    if (state.nodes.length === 0) return drop("empty_list");
    if (this.#last?.profile !== profile.schedulerName) return drop("pod_skipped");
    if (this.#last.node === undefined) return drop("pod_failed");
    if (signature !== state.signature) return drop("pod_incompatible");
    if (nowMs - state.atMs > AGE_MS_MAX) return drop("expired");
    const last = cluster.node(this.#last.node);
    if (!last) return drop("node_missing");
    const evaluation = new Evaluation(candidate, cluster, profile.filters);
    const takes = (node: LiveNode): boolean => !evaluation.refusal && (evaluation.onlyNodes?.has(node.name) ?? true) && !evaluation.reject(node);
    if (takes(last)) return drop("node_not_full");
    const next = cluster.node(state.nodes.shift()!);
    if (next && takes(next)) {
      this.#metrics.batchAttempt("hint_used", profile.schedulerName);
      return { node: next.name, evaluation };
    }
    this.#metrics.batchAttempt("hint_not_used", profile.schedulerName);
    this.#state = undefined;
    return undefined;
  }

  /** A pod was placed in another way. */
  skip(): void { this.#last = undefined; }

  /** `others`: nodes that would have done as well, best first; undefined: the node was a hint, what is known stays. `node` undefined: none was found. */
  decided(node: string | undefined, others: readonly string[] | undefined, { signature, profile, nowMs }: { readonly signature: string | undefined; readonly profile: Profile; readonly nowMs: number }): void {
    this.#last = { profile: profile.schedulerName, node };
    if (node === undefined || others === undefined) return;
    if (this.#state && signature === undefined) this.#metrics.batchFlushed("pod_not_batchable", profile.schedulerName);
    this.#state = signature === undefined || others.length === 0 ? undefined : { signature, nodes: [...others], atMs: nowMs };
  }
}
