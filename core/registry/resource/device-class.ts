/**
 * DeviceClass (resource.k8s.io/v1): devices that are alike, and how they are set up.
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/device-class-v1/
 * Source: kubernetes v1.36 pkg/registry/resource/deviceclass/strategy.go, pkg/apis/resource/validation/validation.go
 */
import { invalid } from "../../api/meta/field-error.ts";
import type { DeviceClass } from "../../api/gen/resource.v1.ts";
import { longName } from "../../api/meta/names.ts";
import { isExtendedResource } from "../../api/meta/resource-names.ts";
import { semanticEqual } from "../core/checks/equal.ts";
import { defineResource } from "../generic/resource.ts";
import { CONFIG_MAX, foreseeSelectors, validateSelectors } from "./claim-spec.ts";
import { listOf, opaqueConfiguration } from "./names.ts";

export const deviceClasses = defineResource<DeviceClass>({
  group: "resource.k8s.io", version: "v1", kind: "DeviceClass", plural: "deviceclasses", updateOrder: "change last", anyBase: true, validateName: longName,
  foresee: (next, old, context) => foreseeSelectors(isStored("selectors", next, old) ? [] : validateSelectors("spec.selectors", next.spec.selectors, context), context),
  *validate(next, old, context) {
    const { spec } = next;
    if (!isStored("selectors", next, old)) yield* validateSelectors("spec.selectors", spec.selectors, context);
    if (!isStored("config", next, old)) yield* listOf("spec.config", spec.config, { max: CONFIG_MAX, check: (at, { opaque }) => opaqueConfiguration(at, opaque) });
    const name = spec.extendedResourceName;
    if (name !== undefined && !isExtendedResource(name)) yield invalid("spec.extendedResourceName", name, "must be a valid extended resource name");
  },
});

function isStored(part: "selectors" | "config", { spec }: Readonly<DeviceClass>, old: Readonly<DeviceClass> | undefined): boolean { return old !== undefined && semanticEqual(spec[part] ?? [], old.spec[part] ?? []); }
