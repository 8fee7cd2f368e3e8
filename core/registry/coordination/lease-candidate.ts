/**
 * LeaseCandidate (coordination.k8s.io/v1beta1): who would hold a lease.
 *
 * Source: kubernetes v1.36 pkg/registry/coordination/leasecandidate/strategy.go, pkg/apis/coordination/validation/validation.go
 */
import type { LeaseCandidate, LeaseCandidateSpec } from "../../api/gen/coordination.v1beta1.ts";
import { child, type FieldError, invalid, required } from "../../api/meta/field-error.ts";
import { configMapKey } from "../../api/meta/names.ts";
import { immutable } from "../core/checks/values.ts";
import { defineResource } from "../generic/resource.ts";
import { isStrategy, OLDEST_EMULATION } from "./strategy.ts";

type Version = readonly [major: number, minor: number, patch: number, prerelease: string];

export const leaseCandidates = defineResource<LeaseCandidate>({
  anyFinalizer: true,
  group: "coordination.k8s.io", version: "v1beta1", kind: "LeaseCandidate", plural: "leasecandidates",
  generation: false, createOnUpdate: true, unconditionalUpdate: false, validateName: configMapKey,
  validate: ({ spec }) => validateSpec("spec", spec),
  validateUpdate: (next, old) => immutable("spec.leaseName", next.spec.leaseName ?? "", old.spec.leaseName ?? ""),
});

function* validateSpec(path: string, { leaseName, emulationVersion, binaryVersion, strategy }: Readonly<LeaseCandidateSpec>): Iterable<FieldError> {
  if (!leaseName) yield required(child(path, "leaseName"));
  const emulation = emulationVersion ? parsed(emulationVersion) : undefined;
  if (emulationVersion && !emulation) yield invalid(child(path, "emulationVersion"), emulationVersion, "must be a valid semantic version");
  const binary = binaryVersion ? parsed(binaryVersion) : undefined;
  if (!binaryVersion) yield required(child(path, "binaryVersion"));
  else if (!binary) yield invalid(child(path, "binaryVersion"), binaryVersion, "must be a valid semantic version");
  if (binaryVersion && emulationVersion && isBefore(binary, emulation)) yield invalid(child(path, "binaryVersion"), binaryVersion, "must be greater than or equal to `emulationVersion`");
  if (!strategy) { yield required(child(path, "strategy")); return; }
  if (strategy === OLDEST_EMULATION && !emulation) yield required(child(path, "emulationVersion"), "must be specified when `strategy` is 'OldestEmulationVersion'");
  yield* isStrategy(child(path, "strategy"), strategy);
}

function parsed(text: string): Version | undefined {
  const match = /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?$/.exec(text);
  return match ? [Number(match[1]), Number(match[2]), Number(match[3]), match[4] ?? ""] : undefined;
}

/** No version is the oldest; one with a prerelease comes before the same without. */
function isBefore(a: Version = [0, 0, 0, ""], b: Version = [0, 0, 0, ""]): boolean {
  for (const i of [0, 1, 2] as const) if (a[i] !== b[i]) return a[i] < b[i];
  if (a[3] === b[3]) return false;
  return a[3] !== "" && (b[3] === "" || a[3].localeCompare(b[3], "en", { numeric: true }) < 0);
}
