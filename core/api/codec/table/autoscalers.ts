/** HorizontalPodAutoscaler (v2): what it measures against what it wants. Source: kubernetes v1.36 pkg/printers/internalversion/printers.go formatHPAMetrics */
import type { HorizontalPodAutoscaler, MetricSpec, MetricStatus, MetricTarget, MetricValueStatus } from "../../gen/autoscaling.v2.ts";
import { AGE, fieldColumn, NAME } from "./columns.ts";
import { since } from "./human-duration.ts";
import { printer } from "./printer.ts";

const V2 = "api.autoscaling.v2";
const METRICS_SHOWN_MAX = 2;
const UNKNOWN = "<unknown>";
/** A quantity that is not there, as Go prints it. */
const NIL = "<nil>";

export const horizontalPodAutoscalers = printer<HorizontalPodAutoscaler>({
  columns: [
    NAME,
    fieldColumn("Reference", `${V2}.HorizontalPodAutoscalerSpec.scaleTargetRef`),
    fieldColumn("Targets", `${V2}.HorizontalPodAutoscalerSpec.metrics`),
    fieldColumn("MinPods", `${V2}.HorizontalPodAutoscalerSpec.minReplicas`),
    fieldColumn("MaxPods", `${V2}.HorizontalPodAutoscalerSpec.maxReplicas`),
    fieldColumn("Replicas", `${V2}.HorizontalPodAutoscalerStatus.currentReplicas`),
    AGE,
  ],
  cells: ({ metadata, spec, status }, nowMs) => [
    metadata.name,
    `${spec?.scaleTargetRef?.kind ?? ""}/${spec?.scaleTargetRef?.name ?? ""}`,
    formatMetrics(spec?.metrics ?? [], status?.currentMetrics ?? []),
    spec?.minReplicas === undefined ? "<unset>" : String(spec.minReplicas),
    spec?.maxReplicas ?? 0,
    status?.currentReplicas ?? 0,
    since(metadata.creationTimestamp, nowMs),
  ],
});

function formatMetrics(specs: readonly MetricSpec[], statuses: readonly (MetricStatus | undefined)[]): string {
  if (specs.length === 0) return "<none>";
  const shown = specs.map((spec, i) => formatMetric(spec, statuses[i]));
  const text = shown.slice(0, METRICS_SHOWN_MAX).join(", ");
  return shown.length > METRICS_SHOWN_MAX ? `${text} + ${shown.length - METRICS_SHOWN_MAX} more...` : text;
}

function formatMetric(spec: MetricSpec, status: MetricStatus | undefined): string {
  switch (spec.type) {
    case "External": return valueOrAverage(spec.external?.target, status?.external?.current);
    case "Object": return valueOrAverage(spec.object?.target, status?.object?.current);
    case "Pods": return `${status?.pods ? status.pods.current?.averageValue ?? NIL : UNKNOWN}/${spec.pods?.target?.averageValue ?? NIL}`;
    case "Resource": return utilization(spec.resource?.name, spec.resource?.target, status?.resource?.current);
    case "ContainerResource": return utilization(spec.containerResource?.name, spec.containerResource?.target, status?.containerResource?.current);
    default: return "<unknown type>";
  }
}

function valueOrAverage(target: MetricTarget | undefined, current: MetricValueStatus | undefined): string {
  if (target?.averageValue !== undefined) return `${current?.averageValue ?? UNKNOWN}/${target.averageValue} (avg)`;
  return `${current ? current.value ?? NIL : UNKNOWN}/${target?.value ?? NIL}`;
}

function utilization(name: string | undefined, target: MetricTarget | undefined, current: MetricValueStatus | undefined): string {
  if (target?.averageValue !== undefined) return `${name}: ${current ? current.averageValue ?? NIL : UNKNOWN}/${target.averageValue}`;
  const is = current?.averageUtilization === undefined ? UNKNOWN : `${current.averageUtilization}%`;
  const wanted = target?.averageUtilization === undefined ? "<auto>" : `${target.averageUtilization}%`;
  return `${name}: ${is}/${wanted}`;
}
