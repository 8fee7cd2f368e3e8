/**
 * Scales what HorizontalPodAutoscalers point to, every 15 seconds, by what metrics say of its pods.
 *
 *   scale of the target (scale.ts) ─▶ its pods (selected-pods.ts) ─▶ metrics (metrics-source.ts) ─▶ what they call for (evaluate.ts, replicas.ts)
 *     ─▶ what is done (behavior.ts) ─▶ scale ─▶ status (status-draft.ts)
 *
 * API:    https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/
 * Source: kubernetes v1.36 pkg/controller/podautoscaler/horizontal.go
 */
import type { HorizontalPodAutoscaler, MetricStatus } from "../../api/gen/autoscaling.v2.ts";
import { keyOf, namespaceOf, type ObjectKey } from "../../api/meta/object-meta.ts";
import { HORIZONTAL_POD_AUTOSCALERS, PODS } from "../../client/resources.ts";
import { timestamp } from "../../lifecycle/clock.ts";
import { type Controller, delayed, mapped, type Next } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { messageOf } from "../pod-control.ts";
import { type History, newHistory, normalize, withScaleEvent } from "./behavior.ts";
import { evaluate, type MetricMeasure } from "./evaluate.ts";
import { actionBetween, autoscalerMetrics, type ScaleAction } from "./metrics.ts";
import { type MetricsSource, metricsSource } from "./metrics-source.ts";
import { getScale, type Scale, updateScale } from "./scale.ts";
import { SelectedPods } from "./selected-pods.ts";
import { AUTOSCALING, type AutoscalingSettings } from "./settings.ts";
import { StatusDraft } from "./status-draft.ts";

type Autoscaler = Readonly<HorizontalPodAutoscaler>;
type Deps = Pick<ControllerDeps, "client" | "informers" | "events" | "clock" | "metrics" | "gates"> & { readonly source?: MetricsSource; readonly autoscaling?: AutoscalingSettings | undefined };

/** How many there should be, and why if that is not how many there are. */
interface Recommendation {
  readonly replicas: number;
  readonly reason: string;
  readonly metrics: MetricStatus[];
  /** Some metric could not be had. */
  readonly failed?: boolean;
}

interface Done { readonly action: ScaleAction; readonly failed: boolean }

export function horizontalPodAutoscalingController({ client, informers, events, clock, metrics: counted, gates, source = metricsSource(client), autoscaling = AUTOSCALING }: Deps): Controller {
  const toZero = gates?.has("HPAScaleToZero") ?? false;
  const autoscalers = informers.of(HORIZONTAL_POD_AUTOSCALERS);
  const pods = informers.of(PODS);
  const recorder = events.from({ component: "horizontal-pod-autoscaler" });
  const histories = new Map<ObjectKey, History>();
  const meter = counted && autoscalerMetrics(counted, () => autoscalers.list());
  const selectedPods = new SelectedPods({ autoscalers, pods });

  return {
    name: "horizontalpodautoscaler",
    workers: 5,
    watches: [ // one that is new or changed waits for its turn, too
      delayed(mapped(autoscalers, ({ object, old, deleted }) => (!deleted && old === undefined ? [keyOf(object)] : [])), autoscaling.periodMs),
      mapped(autoscalers, ({ object, deleted }) => (deleted ? [keyOf(object)] : [])),
    ],
    reads: [pods],
    async reconcile(key, { signal, log }): Promise<Next> {
      const autoscaler = autoscalers.get(key);
      if (autoscaler === undefined) {
        histories.delete(key);
        selectedPods.forget(key);
        return;
      }
      const startMs = clock.uptimeMs();
      let done: Done = { action: "none", failed: true };
      try {
        done = await autoscale(new StatusDraft(autoscaler, { client, autoscalers, recorder, clock }), key, signal);
      } catch (error) {
        signal.throwIfAborted();
        log.info("could not scale", { error: messageOf(error) }); // the user is told by conditions and events
      }
      meter?.reconciled({ ...done, ms: clock.uptimeMs() - startMs });
      return { againInMs: autoscaling.periodMs };
    },
  };

  /** This and all below throw an Error that says all, once they have told the user. */
  async function autoscale(draft: StatusDraft, key: ObjectKey, signal: AbortSignal): Promise<Done> {
    const scale = await scaleOf(draft, signal);
    const current = replicasOf(scale);
    if (!histories.has(key)) histories.set(key, newHistory(current, clock.uptimeMs()));
    const wanted = await recommend(draft, key, scale, signal);
    if (wanted.replicas !== current) {
      await rescale(draft, scale, wanted, signal);
      histories.set(key, withScaleEvent(histories.get(key)!, { from: current, to: wanted.replicas, behavior: draft.autoscaler.spec.behavior, uptimeMs: clock.uptimeMs() }));
    }
    await draft.write({ currentReplicas: current, desiredReplicas: wanted.replicas, currentMetrics: wanted.metrics, ...(wanted.replicas === current ? {} : { lastScaleTime: timestamp(clock.nowMs()) }) }, signal);
    return { action: actionBetween(current, wanted.replicas), failed: wanted.failed ?? false };
  }

  async function scaleOf(draft: StatusDraft, signal: AbortSignal): Promise<Scale> {
    try {
      const scale = await getScale(client, draft.autoscaler, signal);
      draft.say("AbleToScale", { status: "True", reason: "SucceededGetScale", message: "the HPA controller was able to get the target's current scale" });
      return scale;
    } catch (error) {
      signal.throwIfAborted();
      draft.warn("FailedGetScale", messageOf(error));
      draft.say("AbleToScale", { status: "False", reason: "FailedGetScale", message: `the HPA controller was unable to get the target's current scale: ${messageOf(error)}` });
      await draft.write({}, signal);
      throw new Error(`failed to query scale subresource for ${targetOf(draft.autoscaler)}: ${messageOf(error)}`, { cause: error });
    }
  }

  async function recommend(draft: StatusDraft, key: ObjectKey, scale: Scale, signal: AbortSignal): Promise<Recommendation> {
    const { maxReplicas: max, minReplicas: min = 1 } = draft.autoscaler.spec;
    const current = replicasOf(scale);
    if (current === 0 && (!wasScaledToZero(draft.autoscaler) || (min === 0 && !hasMetricsWithoutPods(draft.autoscaler)))) {
      if (!toZero) draft.drop("ScaledToZero");
      draft.say("ScalingActive", { status: "False", reason: "ScalingDisabled", message: "scaling is disabled since the replica count of the target is zero" });
      return { replicas: 0, reason: "", metrics: [] };
    }
    if (current > max) return { replicas: max, reason: "Current number of replicas above Spec.MaxReplicas", metrics: [] };
    if (current < min && current > 0) return { replicas: min, reason: "Current number of replicas below Spec.MinReplicas", metrics: [] };
    return await recommendByMetrics(draft, key, scale, signal);
  }

  async function recommendByMetrics(draft: StatusDraft, key: ObjectKey, scale: Scale, signal: AbortSignal): Promise<Recommendation> {
    const { autoscaler } = draft;
    const { maxReplicas: max, minReplicas: min = 1, behavior } = autoscaler.spec;
    const current = replicasOf(scale);
    const selector = scale.object.status?.selector ?? "";
    const selected = selectedPods.of(autoscaler, selector);
    if ("refusal" in selected) {
      const { event, told, condition } = selected.refusal;
      draft.warn(event, told);
      draft.say("ScalingActive", { status: "False", ...condition });
      return await giveUp(draft, { current, metrics: [], error: told }, signal);
    }
    const target = { specReplicas: current, statusReplicas: scale.object.status?.replicas ?? 0, selector, pods: selected.pods };
    const { replicas, metric, statuses: metrics, failures, error } = await evaluate(autoscaler, target, { source, settings: autoscaling, nowMs: clock.nowMs(), computed: measured(autoscaler), signal });
    for (const failure of failures) draft.warn(failure.reason, failure.message);
    if (replicas === undefined) {
      const [first] = failures;
      if (first !== undefined) draft.say("ScalingActive", { status: "False", reason: first.reason, message: `the HPA was unable to compute the replica count: ${first.message}` });
      return await giveUp(draft, { current, metrics, error: error ?? "no metrics are given" }, signal);
    }
    draft.say("ScalingActive", { status: "True", reason: "ValidMetricFound", message: `the HPA was able to successfully calculate a replica count from ${metric}` });
    const normal = normalize({ current, desired: replicas, min, max, behavior, history: histories.get(key)!, downscaleSeconds: autoscaling.downscaleSeconds, uptimeMs: clock.uptimeMs() });
    histories.set(key, normal.history);
    draft.say("AbleToScale", normal.able);
    draft.say("ScalingLimited", normal.limited);
    const why = replicas > current ? `${metric} above target` : replicas < current ? "All metrics below target" : "";
    const isBelow = current === 0 && normal.replicas < min; // what scaled it to zero may not do so any more
    return { replicas: isBelow ? min : normal.replicas, reason: why || (isBelow ? "Current number of replicas below Spec.MinReplicas" : ""), metrics, failed: failures.length > 0 };
  }

  function wasScaledToZero({ status }: Autoscaler): boolean { return toZero && status?.conditions?.find(({ type }) => type === "ScaledToZero")?.status === "True"; }

  function measured({ status }: Autoscaler): MetricMeasure {
    return async (type, work) => {
      const startMs = clock.uptimeMs();
      const tell = (action: ScaleAction, failed: boolean): void => meter?.computed(type, { action, failed, ms: clock.uptimeMs() - startMs });
      try {
        const one = await work();
        tell(actionBetween(status?.currentReplicas ?? 0, one.replicas), false);
        return one;
      } catch (error) {
        tell("none", true);
        throw error;
      }
    };
  }

  async function giveUp(draft: StatusDraft, { current, metrics, error }: { readonly current: number; readonly metrics: MetricStatus[]; readonly error: string }, signal: AbortSignal): Promise<never> {
    await draft.write({ currentReplicas: current, currentMetrics: metrics }, signal);
    draft.warn("FailedComputeMetricsReplicas", error);
    throw new Error(`failed to compute desired number of replicas based on listed metrics for ${targetOf(draft.autoscaler)}: ${error}`);
  }

  async function rescale(draft: StatusDraft, scale: Scale, { replicas, reason, metrics }: Recommendation, signal: AbortSignal): Promise<void> {
    try {
      await updateScale(client, scale, replicas, signal);
    } catch (error) {
      signal.throwIfAborted();
      draft.warn("FailedRescale", `New size: ${replicas}; reason: ${reason}; error: ${messageOf(error)}`);
      draft.say("AbleToScale", { status: "False", reason: "FailedUpdateScale", message: `the HPA controller was unable to update the target scale: ${messageOf(error)}` });
      await draft.write({ currentReplicas: replicasOf(scale), currentMetrics: metrics }, signal);
      throw new Error(`failed to rescale ${targetOf(draft.autoscaler)}: ${messageOf(error)}`, { cause: error });
    }
    draft.say("AbleToScale", { status: "True", reason: "SucceededRescale", message: `the HPA controller was able to update the target scale to ${replicas}` });
    recorder.event(draft.autoscaler, "Normal", "SuccessfulRescale", `New size: ${replicas}; reason: ${reason}`);
    if (!toZero) draft.drop("ScaledToZero");
    else if (replicasOf(scale) > 0 && replicas === 0 && draft.autoscaler.spec.minReplicas === 0 && hasMetricsWithoutPods(draft.autoscaler)) draft.say("ScaledToZero", {
      status: "True", reason: "ScaledToZero", message: "the HPA controller scaled the workload to zero",
    });
    else draft.say("ScaledToZero", { status: "False", reason: "NotScaledToZero", message: "the HPA controller did not scale the workload to zero" });
  }
}

/** Some can be had while there are no pods. */
function hasMetricsWithoutPods({ spec }: Autoscaler): boolean { return (spec.metrics ?? []).some(({ type }) => type === "Object" || type === "External"); }

function replicasOf({ object }: Scale): number { return object.spec?.replicas ?? 0; }

function targetOf(autoscaler: Autoscaler): string {
  const { kind, name } = autoscaler.spec.scaleTargetRef;
  return `${kind}/${namespaceOf(autoscaler)}/${name}`;
}
