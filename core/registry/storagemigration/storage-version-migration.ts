/**
 * StorageVersionMigration (storagemigration.k8s.io/v1beta1): that all objects of a resource are to be written once more, in the version they are stored in now.
 *
 * Source: kubernetes v1.36 pkg/registry/storagemigration/storagemigration/strategy.go, pkg/apis/storagemigration/validation/validation.go
 */
import type { StorageVersionMigration } from "../../api/gen/storagemigration.v1beta1.ts";
import { isConditionTrue } from "../../api/meta/conditions.ts";
import { child, type FieldError, FIELD_IMMUTABLE, invalid, required } from "../../api/meta/field-error.ts";
import { dns1035Label, dns1123Subdomain } from "../../api/meta/names.ts";
import { validateCommonConditions } from "../core/checks/conditions.ts";
import { immutableStruct } from "../core/checks/values.ts";
import { statusPart } from "../core/status-part.ts";
import { defineResource } from "../generic/resource.ts";

const RESOURCE = "spec.resource", STATUS = "status";
/** Source: apimachinery/pkg/util/resourceversion */
const WELL_FORMED = /^[1-9][0-9]*$/;

export const storageVersionMigrations = defineResource<StorageVersionMigration>({
  group: "storagemigration.k8s.io", version: "v1beta1", kind: "StorageVersionMigration", plural: "storageversionmigrations",
  generation: false, unconditionalUpdate: false,
  *validate({ spec }) {
    const { group, resource } = spec.resource ?? {};
    if (!resource) yield required(child(RESOURCE, "resource"), "resource is required to be set");
    else yield* joined(child(RESOURCE, "resource"), resource, dns1035Label(resource));
    if (group) yield* joined(child(RESOURCE, "group"), group, dns1123Subdomain(group));
  },
  validateUpdate: (next, old) => immutableStruct("spec", "storagemigration.v1beta1.StorageVersionMigrationSpec", next.spec, old.spec),
  subresources: { status: statusPart<StorageVersionMigration>({ keepsMetadata: true, validate: validateStatus }) },
});

function* joined(path: string, value: string, problems: Iterable<string>): Iterable<FieldError> {
  const found = [...problems];
  if (found.length > 0) yield invalid(path, value, found.join(","));
}

function* validateStatus({ status = {} }: Readonly<StorageVersionMigration>, old: Readonly<StorageVersionMigration>): Iterable<FieldError> {
  const { resourceVersion = "", conditions } = status, before = old.status?.resourceVersion ?? "";
  if (resourceVersion !== "" && !WELL_FORMED.test(resourceVersion)) yield invalid(child(STATUS, "resourceVersion"), resourceVersion, `resource version is not well formed: ${resourceVersion}`);
  const at = child(STATUS, "conditions");
  yield* validateCommonConditions(at, conditions);
  if (before !== "" && before !== resourceVersion) yield invalid(child(STATUS, "resourceVersion"), resourceVersion, FIELD_IMMUTABLE);
  const [succeeded, failed] = [isConditionTrue(conditions, "Succeeded"), isConditionTrue(conditions, "Failed")];
  if (succeeded && failed) yield invalid(at, conditions, "Both success and failed conditions cannot be true at the same time");
  if (isConditionTrue(old.status?.conditions, "Succeeded") && !succeeded) yield invalid(at, conditions ?? null, "Success condition cannot be set to false once it is true");
  if (isConditionTrue(old.status?.conditions, "Failed") && !failed) yield invalid(at, conditions ?? null, "Failed condition cannot be set to false once it is true");
}
