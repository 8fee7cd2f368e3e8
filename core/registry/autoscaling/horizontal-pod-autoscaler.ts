/**
 * HorizontalPodAutoscaler (autoscaling/v2): as many pods as the load asks for. Stored as v2; autoscaling/v1 is converted (convert.ts).
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/horizontal-pod-autoscaler-v2/
 * Source: kubernetes v1.36 pkg/registry/autoscaling/horizontalpodautoscaler/strategy.go, pkg/apis/autoscaling/{v2/defaults,validation/validation}.go
 */
import { child, type FieldError, index, invalid, notSupported, required } from "../../api/meta/field-error.ts";
import type { HorizontalPodAutoscaler, HorizontalPodAutoscalerSpec, HPAScalingPolicy, HPAScalingRules } from "../../api/gen/autoscaling.v2.ts";
import { parseQuantity } from "../../api/meta/quantity.ts";
import { nonNegative, NOT_NEGATIVE, NOT_POSITIVE } from "../core/checks/values.ts";
import { statusPart } from "../core/status-part.ts";
import { defineResource, type Resource } from "../generic/resource.ts";
import { CPU_UTILIZATION_DEFAULT, cpuUtilization } from "./convert.ts";
import { type ReferenceRules, validateMetrics, validateReference, versionProblem } from "./metrics.ts";

const PERIOD_SECONDS = 15;
const PERIOD_SECONDS_MAX = 1800;
const WINDOW_SECONDS_MAX = 3600;
const ALL_AT_ONCE: HPAScalingPolicy = { type: "Percent", value: 100, periodSeconds: PERIOD_SECONDS };
const SCALE_UP: HPAScalingRules = { stabilizationWindowSeconds: 0, selectPolicy: "Max", policies: [{ type: "Pods", value: 4, periodSeconds: PERIOD_SECONDS }, ALL_AT_ONCE] };
/** How long it is looked back is the controller's setting. */
const SCALE_DOWN: HPAScalingRules = { selectPolicy: "Max", policies: [ALL_AT_ONCE] };

/** `toZero`: there may be no replicas at all while nothing is to do, where HPAScaleToZero is switched on. */
export function horizontalPodAutoscalerDefinition({ toZero }: { readonly toZero: boolean }): Resource<HorizontalPodAutoscaler> {
  return defineResource<HorizontalPodAutoscaler>({
    group: "autoscaling", version: "v2", kind: "HorizontalPodAutoscaler", plural: "horizontalpodautoscalers",
    generation: false,

    defaults({ spec }) {
      spec.minReplicas ??= 1;
      if (!spec.metrics?.length) spec.metrics = [cpuUtilization(CPU_UTILIZATION_DEFAULT)];
      const { behavior } = spec;
      if (!behavior) return;
      behavior.scaleUp = { ...structuredClone(SCALE_UP), ...behavior.scaleUp };
      behavior.scaleDown = { ...structuredClone(SCALE_DOWN), ...behavior.scaleDown };
    },
    prepareForCreate(object) { object.status = { desiredReplicas: 0, currentMetrics: [] }; },
    validate: ({ spec }, old) => validateSpec("spec", spec, { toZero: toZero || old?.spec.minReplicas === 0, old: old?.spec }),

    subresources: {
      status: statusPart<HorizontalPodAutoscaler>({
        *validate({ status }) {
          yield* nonNegative("status.currentReplicas", status?.currentReplicas);
          yield* nonNegative("status.desiredReplicas", status?.desiredReplicas);
        },
      }),
    },
  });
}

function* validateSpec(path: string, spec: Readonly<HorizontalPodAutoscalerSpec>, { toZero, old }: { readonly toZero: boolean; readonly old: Readonly<HorizontalPodAutoscalerSpec> | undefined }): Iterable<FieldError> {
  const { minReplicas, maxReplicas = 0, scaleTargetRef: target, behavior } = spec;
  const minimum = toZero ? 0 : 1;
  if (minReplicas !== undefined && minReplicas < minimum) yield invalid(child(path, "minReplicas"), minReplicas, `must be greater than or equal to ${minimum}`);
  if (maxReplicas === 0) yield required(child(path, "maxReplicas"), "must be set and greater than 0");
  else if (maxReplicas < 0) yield invalid(child(path, "maxReplicas"), maxReplicas, "must be greater than or equal to 1");
  if (minReplicas !== undefined && maxReplicas < minReplicas) yield invalid(child(path, "maxReplicas"), maxReplicas, "must be greater than or equal to `minReplicas`");
  const isSame = old !== undefined && old.scaleTargetRef.apiVersion === target.apiVersion && old.scaleTargetRef.kind === target.kind;
  yield* validateReference(child(path, "scaleTargetRef"), target, { allowInvalidVersion: isSame, allowEmptyGroup: target.kind === "ReplicationController" });
  yield* validateMetrics(child(path, "metrics"), spec.metrics ?? [], { minReplicas, references: rulesForObjects(old) });
  yield* validateRules(child(path, "behavior", "scaleUp"), behavior?.scaleUp);
  yield* validateRules(child(path, "behavior", "scaleDown"), behavior?.scaleDown);
}

function rulesForObjects(old: Readonly<HorizontalPodAutoscalerSpec> | undefined): ReferenceRules {
  const rules: ReferenceRules = { allowInvalidVersion: false, allowEmptyGroup: true };
  const hadInvalid = (old?.metrics ?? []).some(({ type, object }) => type === "Object" && object && versionProblem(object.describedObject.apiVersion ?? "", rules) !== undefined);
  return { ...rules, allowInvalidVersion: hadInvalid };
}

function* validateRules(path: string, rules: HPAScalingRules | undefined): Iterable<FieldError> {
  if (!rules) return;
  const { stabilizationWindowSeconds: window, selectPolicy, policies = [], tolerance } = rules;
  const at = (name: string): string => child(path, name);
  if (window !== undefined && window < 0) yield invalid(at("stabilizationWindowSeconds"), window, "must be greater than or equal to zero");
  if (window !== undefined && window > WINDOW_SECONDS_MAX) yield invalid(at("stabilizationWindowSeconds"), window, `must be less than or equal to ${WINDOW_SECONDS_MAX}`);
  if (selectPolicy !== undefined && !["Disabled", "Max", "Min"].includes(selectPolicy)) yield notSupported(at("selectPolicy"), selectPolicy, ["Disabled", "Max", "Min"]);
  if (policies.length === 0) yield required(at("policies"), "must specify at least one Policy");
  for (const [i, policy] of policies.entries()) yield* validatePolicy(index(at("policies"), i), policy);
  if (tolerance !== undefined && parseQuantity(tolerance).sign < 0) yield invalid(at("tolerance"), tolerance, NOT_NEGATIVE);
}

function* validatePolicy(path: string, { type, value = 0, periodSeconds = 0 }: HPAScalingPolicy): Iterable<FieldError> {
  if (type !== "Pods" && type !== "Percent") yield notSupported(child(path, "type"), type ?? "", ["Percent", "Pods"]);
  if (value <= 0) yield invalid(child(path, "value"), value, NOT_POSITIVE);
  if (periodSeconds <= 0) yield invalid(child(path, "periodSeconds"), periodSeconds, NOT_POSITIVE);
  if (periodSeconds > PERIOD_SECONDS_MAX) yield invalid(child(path, "periodSeconds"), periodSeconds, `must be less than or equal to ${PERIOD_SECONDS_MAX}`);
}
