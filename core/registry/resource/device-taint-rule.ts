/**
 * DeviceTaintRule (resource.k8s.io/v1beta2, v1alpha3): a taint of devices, said by an administrator and not by their driver. The scheduler and
 * the controller of such taints heed it where the feature gate DRADeviceTaintRules is switched on.
 *
 * Source: kubernetes v1.36 pkg/registry/resource/devicetaintrule/strategy.go, pkg/apis/resource/validation/validation.go
 */
import type { DeviceTaintRule, DeviceTaintSelector } from "../../api/gen/resource.v1alpha3.ts";
import { child, type FieldError, tooMany } from "../../api/meta/field-error.ts";
import { timestamp } from "../../lifecycle/clock.ts";
import { validateCommonConditions } from "../core/checks/conditions.ts";
import { isDns1123Label } from "../core/checks/values.ts";
import { statusPart } from "../core/status-part.ts";
import { defineResource } from "../generic/resource.ts";
import { validateTaint } from "./device.ts";
import { driverName, poolName } from "./names.ts";

const CONDITIONS_MAX = 8;

export const deviceTaintRules = defineResource<DeviceTaintRule>({
  group: "resource.k8s.io", version: "v1beta2", kind: "DeviceTaintRule", plural: "devicetaintrules",
  prepareForCreate({ spec }, { nowMs }) {
    if (spec.taint) spec.taint.timeAdded ??= timestamp(nowMs);
  },
  /** A taint is as old as its effect. */
  prepareForUpdate({ spec: { taint } }, { spec: { taint: before } }, { nowMs }) {
    if (!taint) return;
    const isUntouched = taint.timeAdded === undefined || taint.timeAdded === before?.timeAdded;
    if (isUntouched && taint.effect !== before?.effect) taint.timeAdded = timestamp(nowMs);
    else taint.timeAdded ??= timestamp(nowMs);
  },
  *validate({ spec: { deviceSelector, taint } }, old) {
    if (deviceSelector) yield* validateSelector("spec.deviceSelector", deviceSelector);
    yield* validateTaint("spec.taint", taint ?? { key: "", effect: "" as "None" }, old?.spec.taint);
  },
  subresources: {
    status: statusPart<DeviceTaintRule>({
      keepsMetadata: true,
      *validate({ status: { conditions = [] } = {} }) {
        yield* validateCommonConditions("status.conditions", conditions);
        if (conditions.length > CONDITIONS_MAX) yield tooMany("status.conditions", conditions.length, CONDITIONS_MAX);
      },
    }),
  },
});

function* validateSelector(path: string, { driver, pool, device }: DeviceTaintSelector): Iterable<FieldError> {
  if (driver !== undefined) yield* driverName(child(path, "driver"), driver);
  if (pool !== undefined) yield* poolName(child(path, "pool"), pool);
  if (device !== undefined) yield* isDns1123Label(child(path, "device"), device);
}
