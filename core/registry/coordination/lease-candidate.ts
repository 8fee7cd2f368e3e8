/**
 * LeaseCandidate (coordination.k8s.io/v1beta1): who would hold a lease.
 *
 * Source: kubernetes v1.36 pkg/registry/coordination/leasecandidate/strategy.go, pkg/apis/coordination/validation/validation.go
 */
import type { LeaseCandidate, LeaseCandidateSpec } from "../../api/gen/coordination.v1beta1.ts";
import { child, type FieldError, invalid, required } from "../../api/meta/field-error.ts";
import { configMapKey } from "../../api/meta/names.ts";
import { compareVersions, versionOf } from "../../cel/library/semver.ts";
import { immutable } from "../core/checks/values.ts";
import { defineResource } from "../generic/resource.ts";
import { isStrategy, OLDEST_EMULATION } from "./strategy.ts";

/** What a version that is none counts as. */
const NONE = versionOf("0.0.0")!;

export const leaseCandidates = defineResource<LeaseCandidate>({
  anyFinalizer: true,
  group: "coordination.k8s.io", version: "v1beta1", kind: "LeaseCandidate", plural: "leasecandidates",
  generation: false, createOnUpdate: true, unconditionalUpdate: false, validateName: configMapKey,
  validate: ({ spec }) => validateSpec("spec", spec),
  validateUpdate: (next, old) => immutable("spec.leaseName", next.spec.leaseName ?? "", old.spec.leaseName ?? ""),
});

function* validateSpec(path: string, { leaseName, emulationVersion, binaryVersion, strategy }: Readonly<LeaseCandidateSpec>): Iterable<FieldError> {
  if (!leaseName) yield required(child(path, "leaseName"));
  const [emulation, binary] = [emulationVersion, binaryVersion].map((text) => versionOf(text ?? ""));
  if (emulationVersion && !emulation) yield invalid(child(path, "emulationVersion"), emulationVersion, "must be a valid semantic version");
  if (!binaryVersion) yield required(child(path, "binaryVersion"));
  else if (!binary) yield invalid(child(path, "binaryVersion"), binaryVersion, "must be a valid semantic version");
  if (binaryVersion && emulationVersion && compareVersions(binary ?? NONE, emulation ?? NONE) < 0) yield invalid(child(path, "binaryVersion"), binaryVersion, "must be greater than or equal to `emulationVersion`");
  if (!strategy) { yield required(child(path, "strategy")); return; }
  if (strategy === OLDEST_EMULATION && compareVersions(emulation ?? NONE, NONE) === 0) yield required(child(path, "emulationVersion"), "must be specified when `strategy` is 'OldestEmulationVersion'");
  yield* isStrategy(child(path, "strategy"), strategy);
}
