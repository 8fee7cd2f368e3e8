/**
 * How fast nodes of each zone may be tainted: a zone fills its one token at the rate that its state allows, and a new NoExecute taint takes it. Where the rate is so high that more than
 * one comes until the next look, they are all taken at this one. No I/O.
 *
 * Source: kubernetes v1.36 pkg/controller/nodelifecycle/scheduler/rate_limited_queue.go, node_lifecycle_controller.go (handleDisruption)
 */
import type { Node } from "../../api/gen/core.v1.ts";
import { isExcludedFromDisruption, type NodeLifecycleSettings, readyStatus, taintsPerSecond, zoneOf, zoneState, type ZoneState } from "./plan.ts";

/** `nodes`: those that count; one of which none does is tainted no faster than others. */
interface Zone { readonly state: ZoneState; readonly nodes: number; readonly ready: number; tokens: number; filledMs: number }

export class Zones {
  readonly #settings: NodeLifecycleSettings;
  #zones = new Map<string, Zone>();

  constructor(settings: NodeLifecycleSettings) { this.#settings = settings; }

  names(): Iterable<string> { return this.#zones.keys(); }

  /** How many nodes there are in each zone, and how many of them are ready. */
  *counts(): Iterable<{ readonly zone: string; readonly nodes: number; readonly ready: number }> {
    for (const [zone, { nodes, ready }] of this.#zones) if (nodes > 0) yield { zone, nodes, ready };
  }

  judge(nodes: readonly Readonly<Node>[], nowMs: number): void {
    const next = new Map<string, Zone>();
    for (const [name, all] of Map.groupBy(nodes, zoneOf)) {
      const members = all.filter((node) => !isExcludedFromDisruption(node));
      const ready = members.filter((node) => readyStatus(node) === "True").length;
      const state = zoneState(ready, members.length - ready, this.#settings);
      const { tokens = 1, filledMs = nowMs } = this.#zones.get(name) ?? {};
      const rate = taintsPerSecond(state, members.length, this.#settings);
      next.set(name, { state, nodes: members.length, ready, tokens: Math.min(this.#tokensMax(rate), tokens + (rate * (nowMs - filledMs)) / 1000), filledMs: nowMs });
    }
    this.#zones = next;
  }

  /** Upstream's zones have one token as well, but are looked at ten times a second. */
  #tokensMax(rate: number): number { return Math.max(1, (Math.min(10, rate) * this.#settings.periodMs) / 1000); }

  /** No zone has a node that is ready: the fault is likely ours. */
  get areAllSilent(): boolean {
    const counted = [...this.#zones.values()].filter(({ nodes }) => nodes > 0);
    return counted.length > 0 && counted.every(({ state }) => state === "FullDisruption");
  }

  mayTaint(node: Readonly<Node>): boolean {
    const { tokens, state, nodes } = this.#zones.get(zoneOf(node)) ?? { state: "Normal", nodes: 1, tokens: 1 };
    return tokens >= 1 && taintsPerSecond(state, nodes, this.#settings) !== 0;
  }

  /** It has been tainted. */
  take(node: Readonly<Node>): void {
    const zone = this.#zones.get(zoneOf(node));
    if (zone) zone.tokens -= 1;
  }
}
