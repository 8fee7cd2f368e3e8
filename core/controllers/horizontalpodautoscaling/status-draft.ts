/** An autoscaler's status while the autoscaler is looked at: its conditions change step by step, and are written once. */
import type { HorizontalPodAutoscaler, HorizontalPodAutoscalerCondition, HorizontalPodAutoscalerStatus } from "../../api/gen/autoscaling.v2.ts";
import { findCondition } from "../../api/meta/conditions.ts";
import type { Client } from "../../client/client.ts";
import type { EventRecorder } from "../../client/events.ts";
import type { Informer } from "../../client/informer.ts";
import { HORIZONTAL_POD_AUTOSCALERS } from "../../client/resources.ts";
import { type Clock, timestamp } from "../../lifecycle/clock.ts";
import { sameValue } from "../conditions.ts";
import { messageOf } from "../pod-control.ts";
import type { Said } from "./behavior.ts";

interface Deps {
  readonly client: Client;
  readonly autoscalers: Informer<HorizontalPodAutoscaler>;
  readonly recorder: EventRecorder;
  readonly clock: Clock;
}

export class StatusDraft {
  readonly autoscaler: Readonly<HorizontalPodAutoscaler>;
  readonly #deps: Deps;
  #conditions: HorizontalPodAutoscalerCondition[];

  constructor(autoscaler: Readonly<HorizontalPodAutoscaler>, deps: Deps) {
    this.autoscaler = autoscaler;
    this.#deps = deps;
    this.#conditions = [...(autoscaler.status?.conditions ?? [])];
  }

  /** A condition. */
  say(type: "AbleToScale" | "ScalingActive" | "ScalingLimited" | "ScaledToZero", { status, reason, message }: Said): void {
    const old = findCondition(this.#conditions, type);
    const lastTransitionTime = old?.status === status ? old.lastTransitionTime : timestamp(this.#deps.clock.nowMs());
    const next: HorizontalPodAutoscalerCondition = { type, status, lastTransitionTime, reason, message };
    this.#conditions = old === undefined ? [...this.#conditions, next] : this.#conditions.map((one) => (one === old ? next : one));
  }

  /** A condition that means nothing any more. */
  drop(type: "ScaledToZero"): void { this.#conditions = this.#conditions.filter((one) => one.type !== type); }

  /** An event, at once. */
  warn(reason: string, message: string): void { this.#deps.recorder.event(this.autoscaler, "Warning", reason, message); }

  /** What has been said, and `change`; nothing if that is what the status says already. Where no metric was looked at none are listed: in managedFields they are nobody's. */
  async write(change: Partial<HorizontalPodAutoscalerStatus>, signal: AbortSignal): Promise<void> {
    const { autoscaler } = this;
    const { client, autoscalers } = this.#deps;
    const { currentMetrics, ...rest }: HorizontalPodAutoscalerStatus = { ...(autoscaler.status ?? { desiredReplicas: 0, currentMetrics: [] }), ...change, conditions: this.#conditions };
    const status = { ...rest, ...(currentMetrics?.length > 0 ? { currentMetrics } : {}) } as HorizontalPodAutoscalerStatus;
    if (sameValue(status, autoscaler.status)) return;
    try {
      await autoscalers.caughtUp([await client.resource(HORIZONTAL_POD_AUTOSCALERS).updateStatus({ ...autoscaler, status }, { signal })], signal);
    } catch (error) {
      if (!signal.aborted) this.warn("FailedUpdateStatus", messageOf(error));
      throw error;
    }
  }
}
