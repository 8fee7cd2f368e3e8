/** What the autoscaler counts. Source: kubernetes v1.36 pkg/controller/podautoscaler/monitor */
import type { HorizontalPodAutoscaler } from "../../api/gen/autoscaling.v2.ts";
import { doubling, type Metrics } from "../../observe/metrics.ts";

export type ScaleAction = "scale_up" | "scale_down" | "none";

interface Outcome { readonly action: ScaleAction; readonly failed: boolean; readonly ms: number }

export interface AutoscalerMetrics {
  reconciled(outcome: Outcome): void;
  /** One of an autoscaler's metrics. */
  computed(type: string, outcome: Outcome): void;
}

/** 1 ms, doubling fourteen times. */
const SECONDS = doubling(0.001, 15);
const ACTION = "The label 'action' should be either 'scale_down', 'scale_up', or 'none'.";
const ERROR = "the label 'error' should be either 'spec', 'internal', or 'none'.";
const BOTH = "Note that if both spec and internal errors happen during a reconciliation, the first one to occur is reported in `error` label.";
const TYPE = "The label 'metric_type' corresponds to HPA.spec.metrics[*].type";

export function autoscalerMetrics(metrics: Metrics, autoscalers: () => Iterable<Readonly<HorizontalPodAutoscaler>>): AutoscalerMetrics {
  const name = (what: string): string => `horizontal_pod_autoscaler_controller_${what}`;
  const total = metrics.counter(name("reconciliations_total"), `[BETA] Number of reconciliations of HPA controller. ${ACTION} Also, ${ERROR} ${BOTH}`);
  const seconds = metrics.histogram(name("reconciliation_duration_seconds"), `[BETA] The time(seconds) that the HPA controller takes to reconcile once. ${ACTION} Also, ${ERROR} ${BOTH}`, SECONDS);
  const computations = metrics.counter(name("metric_computation_total"), `[BETA] Number of metric computations. ${ACTION} Also, ${ERROR} ${TYPE}`);
  const computing = metrics.histogram(name("metric_computation_duration_seconds"), `[BETA] The time(seconds) that the HPA controller takes to calculate one metric. ${ACTION} T${ERROR.slice(1)} ${TYPE}`, SECONDS);
  metrics.gaugeFrom(name("num_horizontal_pod_autoscalers"), "[ALPHA] Current number of controlled HPA objects.", () => [[{}, [...autoscalers()].length]]);
  metrics.gaugeFrom(name("desired_replicas"), "[ALPHA] Current desired replica count for HPA objects.", function* () {
    for (const { metadata, status } of autoscalers()) if (status?.desiredReplicas !== undefined) yield [{ namespace: metadata.namespace ?? "", hpa_name: metadata.name }, status.desiredReplicas] as const;
  });
  return {
    reconciled({ action, failed, ms }) {
      const labels = { action, error: errorOf(failed) };
      total.inc(labels);
      seconds.observe(ms / 1000, labels);
    },
    computed(metric_type, { action, failed, ms }) {
      const labels = { action: failed ? "none" : action, error: errorOf(failed), metric_type };
      computations.inc(labels);
      computing.observe(ms / 1000, labels);
    },
  };
}

function errorOf(failed: boolean): string { return failed ? "internal" : "none"; }

/** What it takes to get from so many to so many. */
export function actionBetween(from: number, to: number): ScaleAction { return to > from ? "scale_up" : to < from ? "scale_down" : "none"; }
