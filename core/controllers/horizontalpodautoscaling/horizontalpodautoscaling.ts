/**
 * Scales what HorizontalPodAutoscalers point to, every 15 seconds, by what metrics say of its pods.
 *
 *   scale of the target → metrics → replicas.ts, evaluate.ts: what they call for → behavior.ts: what is done → scale written → status
 *
 * API:    https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/
 * Source: kubernetes v1.36 pkg/controller/podautoscaler/horizontal.go
 */
import type { HorizontalPodAutoscaler, HorizontalPodAutoscalerCondition, HorizontalPodAutoscalerStatus, MetricStatus } from "../../api/gen/autoscaling.v2.ts";
import type { Pod } from "../../api/gen/core.v1.ts";
import { type LabelSelector, parseLabelSelector } from "../../api/meta/label-selector.ts";
import { keyOf, namespaceOf, type ObjectKey } from "../../api/meta/object-meta.ts";
import { isConflict } from "../../api/meta/status-error.ts";
import { HORIZONTAL_POD_AUTOSCALERS, PODS } from "../../client/resources.ts";
import { timestamp } from "../../lifecycle/clock.ts";
import { findCondition, sameValue } from "../conditions.ts";
import { type Controller, mapped, type Next } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { messageOf } from "../pod-control.ts";
import { type History, newHistory, normalize, type Said, withScaleEvent } from "./behavior.ts";
import { evaluate } from "./evaluate.ts";
import { type MetricsSource, metricsSource, pluralOf } from "./metrics-source.ts";
import { AUTOSCALING, type AutoscalingSettings } from "./settings.ts";

type Autoscaler = Readonly<HorizontalPodAutoscaler>;
type Deps = Pick<ControllerDeps, "client" | "informers" | "events" | "clock"> & { readonly source?: MetricsSource; readonly autoscaling?: AutoscalingSettings | undefined };

/** Source: retry.DefaultRetry */
const WRITES_MAX = 5;

interface Scale {
  readonly path: string;
  readonly object: { readonly metadata: object; readonly spec?: { readonly replicas?: number }; readonly status?: { readonly replicas?: number; readonly selector?: string } };
}

/** What the status is made of while the autoscaler is looked at. */
interface Draft { readonly autoscaler: Autoscaler; conditions: HorizontalPodAutoscalerCondition[] }

export function horizontalPodAutoscalingController({ client, informers, events, clock, source = metricsSource(client), autoscaling = AUTOSCALING }: Deps): Controller {
  const autoscalers = informers.of(HORIZONTAL_POD_AUTOSCALERS);
  const pods = informers.of(PODS);
  const autoscalerClient = client.resource(HORIZONTAL_POD_AUTOSCALERS);
  const recorder = events.from({ component: "horizontal-pod-autoscaler" });
  const histories = new Map<ObjectKey, History>();
  const selectors = new Map<ObjectKey, LabelSelector>();
  const warn = (autoscaler: Autoscaler, reason: string, message: string): void => recorder.event(autoscaler, "Warning", reason, message);

  return {
    name: "horizontalpodautoscaler",
    workers: 5,
    watches: [mapped(autoscalers, ({ object, old, deleted }) => (deleted || old === undefined || !sameValue(old.spec, object.spec) ? [keyOf(object)] : []))],
    reads: [pods],
    async reconcile(key, { signal, log }): Promise<Next> {
      const autoscaler = autoscalers.get(key);
      if (autoscaler === undefined) {
        histories.delete(key);
        selectors.delete(key);
        return;
      }
      const draft: Draft = { autoscaler, conditions: [...(autoscaler.status?.conditions ?? [])] };
      try {
        await autoscale(draft, key, signal);
      } catch (error) {
        signal.throwIfAborted();
        log.info("could not scale", { error: messageOf(error) }); // the user is told by conditions and events
      }
      return { againInMs: autoscaling.periodMs };
    },
  };

  /** Throws an Error that says all, once it has told the user. */
  async function autoscale(draft: Draft, key: ObjectKey, signal: AbortSignal): Promise<void> {
    const { autoscaler } = draft;
    const { maxReplicas: max, minReplicas: min = 1, behavior, scaleTargetRef: { kind, name } } = autoscaler.spec;
    const reference = `${kind}/${namespaceOf(autoscaler)}/${name}`;
    const scale = await scaleOf(autoscaler, signal).catch(async (error: unknown) => {
      signal.throwIfAborted();
      warn(autoscaler, "FailedGetScale", messageOf(error));
      say(draft, "AbleToScale", { status: "False", reason: "FailedGetScale", message: `the HPA controller was unable to get the target's current scale: ${messageOf(error)}` });
      await writeStatus(draft, {}, signal);
      throw new Error(`failed to query scale subresource for ${reference}: ${messageOf(error)}`, { cause: error });
    });
    say(draft, "AbleToScale", { status: "True", reason: "SucceededGetScale", message: "the HPA controller was able to get the target's current scale" });
    const current = scale.object.spec?.replicas ?? 0;
    if (!histories.has(key)) histories.set(key, newHistory(current, clock.nowMs()));

    let statuses: MetricStatus[] = [];
    let desired: number;
    let reason = "";
    if (current === 0) {
      desired = 0;
      say(draft, "ScalingActive", { status: "False", reason: "ScalingDisabled", message: "scaling is disabled since the replica count of the target is zero" });
    } else if (current > max) [desired, reason] = [max, "Current number of replicas above Spec.MaxReplicas"];
    else if (current < min) [desired, reason] = [min, "Current number of replicas below Spec.MinReplicas"];
    else {
      const selected = await selectedPods(draft, key, scale, signal);
      const found = await evaluate(autoscaler, { specReplicas: current, statusReplicas: scale.object.status?.replicas ?? 0, ...selected }, { source, settings: autoscaling, nowMs: clock.nowMs(), signal });
      statuses = found.statuses;
      for (const failure of found.failures) warn(autoscaler, failure.reason, failure.message);
      if (found.replicas === undefined) {
        const [first] = found.failures;
        if (first !== undefined) say(draft, "ScalingActive", { status: "False", reason: first.reason, message: `the HPA was unable to compute the replica count: ${first.message}` });
        await giveUp(draft, { current, statuses, error: found.error ?? "no metrics are given", reference }, signal);
      }
      say(draft, "ScalingActive", { status: "True", reason: "ValidMetricFound", message: `the HPA was able to successfully calculate a replica count from ${found.metric}` });
      if (found.replicas! > current) reason = `${found.metric} above target`;
      else if (found.replicas! < current) reason = "All metrics below target";
      const normal = normalize({ current, desired: found.replicas!, min, max, behavior, history: histories.get(key)!, downscaleSeconds: autoscaling.downscaleSeconds, nowMs: clock.nowMs() });
      histories.set(key, normal.history);
      say(draft, "AbleToScale", normal.able);
      say(draft, "ScalingLimited", normal.limited);
      desired = normal.replicas;
    }

    if (desired !== current) {
      await rescale(draft, scale, { current, desired, reason, statuses, reference }, signal);
      histories.set(key, withScaleEvent(histories.get(key)!, { from: current, to: desired, behavior, nowMs: clock.nowMs() }));
    }
    await writeStatus(draft, { currentReplicas: current, desiredReplicas: desired, currentMetrics: statuses, ...(desired === current ? {} : { lastScaleTime: timestamp(clock.nowMs()) }) }, signal);
  }

  async function giveUp(draft: Draft, { current, statuses, error, reference }: { readonly current: number; readonly statuses: MetricStatus[]; readonly error: string; readonly reference: string }, signal: AbortSignal): Promise<never> {
    await writeStatus(draft, { currentReplicas: current, currentMetrics: statuses }, signal);
    warn(draft.autoscaler, "FailedComputeMetricsReplicas", error);
    throw new Error(`failed to compute desired number of replicas based on listed metrics for ${reference}: ${error}`);
  }

  async function rescale(draft: Draft, scale: Scale, { current, desired, reason, statuses, reference }: { readonly current: number; readonly desired: number; readonly reason: string; readonly statuses: MetricStatus[]; readonly reference: string }, signal: AbortSignal): Promise<void> {
    const { autoscaler } = draft;
    try {
      await writeScale(scale, desired, signal);
    } catch (error) {
      signal.throwIfAborted();
      warn(autoscaler, "FailedRescale", `New size: ${desired}; reason: ${reason}; error: ${messageOf(error)}`);
      say(draft, "AbleToScale", { status: "False", reason: "FailedUpdateScale", message: `the HPA controller was unable to update the target scale: ${messageOf(error)}` });
      await writeStatus(draft, { currentReplicas: current, currentMetrics: statuses }, signal);
      throw new Error(`failed to rescale ${reference}: ${messageOf(error)}`, { cause: error });
    }
    say(draft, "AbleToScale", { status: "True", reason: "SucceededRescale", message: `the HPA controller was able to update the target scale to ${desired}` });
    recorder.event(autoscaler, "Normal", "SuccessfulRescale", `New size: ${desired}; reason: ${reason}`);
  }

  async function scaleOf(autoscaler: Autoscaler, signal: AbortSignal): Promise<Scale> {
    const { apiVersion = "v1", kind, name } = autoscaler.spec.scaleTargetRef;
    const plural = await pluralOf(client, { apiVersion, kind }, signal);
    const root = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
    const path = `${root}/namespaces/${encodeURIComponent(namespaceOf(autoscaler))}/${plural}/${encodeURIComponent(name)}/scale`;
    return { path, object: (await client.request({ method: "GET", path, signal })) as Scale["object"] };
  }

  async function writeScale({ path, object }: Scale, replicas: number, signal: AbortSignal): Promise<void> {
    let latest = object;
    for (let tries = 1; ; tries++) {
      try {
        await client.request({ method: "PUT", path, body: { ...latest, spec: { ...latest.spec, replicas } }, signal });
        return;
      } catch (error) {
        if (!isConflict(error) || tries === WRITES_MAX) throw error;
        latest = (await client.request({ method: "GET", path, signal })) as Scale["object"];
      }
    }
  }

  /** The target's pods. Tells the user and throws when they cannot be told from those of another autoscaler. */
  async function selectedPods(draft: Draft, key: ObjectKey, scale: Scale, signal: AbortSignal): Promise<{ readonly selector: string; readonly pods: readonly Readonly<Pod>[] }> {
    const { autoscaler } = draft;
    const { kind, name } = autoscaler.spec.scaleTargetRef;
    const selector = scale.object.status?.selector ?? "";
    const refuse = (event: string, told: string, condition: { readonly reason: string; readonly message: string }): Promise<never> => {
      warn(autoscaler, event, told);
      say(draft, "ScalingActive", { status: "False", ...condition });
      return giveUp(draft, { current: scale.object.spec?.replicas ?? 0, statuses: [], error: told, reference: `${kind}/${namespaceOf(autoscaler)}/${name}` }, signal);
    };
    if (selector === "") return await refuse("SelectorRequired", "selector is required", { reason: "InvalidSelector", message: "the HPA target's scale is missing a selector" });
    let parsed: LabelSelector;
    try {
      parsed = parseLabelSelector(selector);
    } catch (error) {
      const message = `couldn't convert selector into a corresponding internal selector object: ${messageOf(error)}`;
      return await refuse("InvalidSelector", message, { reason: "InvalidSelector", message });
    }
    selectors.set(key, parsed);
    const selected = [...pods.inNamespace(namespaceOf(autoscaler))].filter(({ metadata }) => parsed.matches(metadata.labels));
    const others = [...autoscalers.inNamespace(namespaceOf(autoscaler))].filter((one) => selected.some(({ metadata }) => selectors.get(keyOf(one))?.matches(metadata.labels)));
    if (others.length > 1) {
      const message = `pods by selector ${selector} are controlled by multiple HPAs: [${others.map((one) => `{${one.metadata.name} ${namespaceOf(one)}}`).toSorted().join(" ")}]`;
      return await refuse("AmbiguousSelector", message, { reason: "AmbiguousSelector", message });
    }
    return { selector, pods: selected };
  }

  function say(draft: Draft, type: string, { status, reason, message }: Said): void {
    const old = findCondition(draft.conditions, type);
    const lastTransitionTime = old?.status === status ? old.lastTransitionTime : timestamp(clock.nowMs());
    const next: HorizontalPodAutoscalerCondition = { type, status, lastTransitionTime, reason, message };
    draft.conditions = old === undefined ? [...draft.conditions, next] : draft.conditions.map((one) => (one === old ? next : one));
  }

  async function writeStatus({ autoscaler, conditions }: Draft, change: Partial<HorizontalPodAutoscalerStatus>, signal: AbortSignal): Promise<void> {
    const status: HorizontalPodAutoscalerStatus = { ...(autoscaler.status ?? { desiredReplicas: 0, currentMetrics: [] }), ...change, conditions };
    if (sameValue(status, autoscaler.status)) return;
    try {
      await autoscalers.caughtUp([await autoscalerClient.updateStatus({ ...autoscaler, status }, { signal })], signal);
    } catch (error) {
      if (!signal.aborted) warn(autoscaler, "FailedUpdateStatus", messageOf(error));
      throw error;
    }
  }
}
