/**
 * What a Job's spec may be, in a Job and in the template of one.
 *
 * Source: kubernetes v1.36 pkg/apis/batch/validation/validation.go, pkg/api/job/warnings.go
 */
import { child, type FieldError, invalid, notSupported, required, tooLong } from "../../api/meta/field-error.ts";
import type { JobSpec } from "../../api/gen/batch.v1.ts";
import { byteLength } from "../../api/meta/byte-length.ts";
import { internalForm } from "../../api/schema/internal-form.ts";
import { isDomainPrefixedPath } from "../../api/meta/domains.ts";
import { nonNegative } from "../core/checks/values.ts";
import { templateWarnings, validatePodTemplate } from "../core/pod/template.ts";
import { validateFailurePolicy, validateSuccessPolicy } from "./policies.ts";

const INDEXED_MAX = 100_000;
const COMPLETIONS_HIGH = 100_000;
const HIGH_PARALLELISM_MAX = 10_000;
const MANAGED_BY_BYTES_MAX = 63;

/** `old`: what is replaced; what its template holds already is let pass. */
export function* validateJobSpec(path: string, spec: Readonly<JobSpec>, old?: Readonly<JobSpec>): Iterable<FieldError> {
  for (const name of ["parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished", "backoffLimitPerIndex", "maxFailedIndexes"] as const)
    yield* nonNegative(child(path, name), spec[name]);
  if (spec.maxFailedIndexes !== undefined && spec.backoffLimitPerIndex === undefined) yield required(child(path, "backoffLimitPerIndex"), "when maxFailedIndexes is specified");
  if (spec.managedBy !== undefined) yield* validateManagedBy(child(path, "managedBy"), spec.managedBy);
  yield* validateCompletionMode(path, spec);
  if (spec.podFailurePolicy) yield* validateFailurePolicy(child(path, "podFailurePolicy"), spec);
  if (spec.successPolicy) {
    const at = child(path, "successPolicy");
    if (spec.completionMode !== "Indexed") yield invalid(at, internalForm("io.k8s.api.batch.v1.SuccessPolicy", spec.successPolicy), "requires indexed completion mode");
    else yield* validateSuccessPolicy(at, spec);
  }
  yield* validateReplacementPolicy(child(path, "podReplacementPolicy"), spec);
  yield* validatePodTemplate(child(path, "template"), spec.template, old?.template);
  yield* validateRestartPolicy(child(path, "template", "spec", "restartPolicy"), spec);
}

function* validateManagedBy(path: string, value: string): Iterable<FieldError> {
  yield* isDomainPrefixedPath(path, value);
  if (byteLength(value) > MANAGED_BY_BYTES_MAX) yield tooLong(path, MANAGED_BY_BYTES_MAX);
}

function* validateCompletionMode(path: string, { completionMode: mode, completions, parallelism, maxFailedIndexes, backoffLimitPerIndex }: Readonly<JobSpec>): Iterable<FieldError> {
  const at = (name: string): string => child(path, name);
  if (mode !== undefined && mode !== "NonIndexed" && mode !== "Indexed") yield notSupported(at("completionMode"), mode, ["NonIndexed", "Indexed"]);
  if (mode === undefined || mode === "NonIndexed") {
    if (backoffLimitPerIndex !== undefined) yield invalid(at("backoffLimitPerIndex"), backoffLimitPerIndex, "requires indexed completion mode");
    if (maxFailedIndexes !== undefined) yield invalid(at("maxFailedIndexes"), maxFailedIndexes, "requires indexed completion mode");
  }
  if (mode !== "Indexed") return;
  if (completions === undefined) yield required(at("completions"), "when completion mode is Indexed");
  if ((parallelism ?? 0) > INDEXED_MAX) yield invalid(at("parallelism"), parallelism, `must be less than or equal to ${INDEXED_MAX} when completion mode is Indexed`);
  if (completions !== undefined && maxFailedIndexes !== undefined && maxFailedIndexes > completions) yield invalid(at("maxFailedIndexes"), maxFailedIndexes, "must be less than or equal to completions");
  if ((maxFailedIndexes ?? 0) > INDEXED_MAX) yield invalid(at("maxFailedIndexes"), maxFailedIndexes, `must be less than or equal to ${INDEXED_MAX}`);
  if ((completions ?? 0) <= COMPLETIONS_HIGH || backoffLimitPerIndex === undefined) return;
  const detail = `must be less than or equal to ${HIGH_PARALLELISM_MAX} when completions are above ${COMPLETIONS_HIGH} and used with backoff limit per index`;
  if (maxFailedIndexes === undefined) yield required(at("maxFailedIndexes"), `must be specified when completions is above ${COMPLETIONS_HIGH}`);
  if ((parallelism ?? 0) > HIGH_PARALLELISM_MAX) yield invalid(at("parallelism"), parallelism, detail);
  if ((maxFailedIndexes ?? 0) > HIGH_PARALLELISM_MAX) yield invalid(at("maxFailedIndexes"), maxFailedIndexes, detail);
}

function* validateReplacementPolicy(path: string, { podReplacementPolicy: policy, podFailurePolicy }: Readonly<JobSpec>): Iterable<FieldError> {
  const supported = podFailurePolicy ? ["Failed"] : ["Failed", "TerminatingOrFailed"];
  if (policy !== undefined && !supported.includes(policy)) yield notSupported(path, policy, supported);
}

function* validateRestartPolicy(path: string, { template, podFailurePolicy }: Readonly<JobSpec>): Iterable<FieldError> {
  const policy = template.spec?.restartPolicy ?? "";
  if (policy === "" || policy === "Always") yield required(path, `valid values: "OnFailure", "Never"`);
  else if (policy !== "OnFailure" && policy !== "Never") yield notSupported(path, policy, ["OnFailure", "Never"]);
  else if (podFailurePolicy && policy !== "Never") yield invalid(path, policy, `only "Never" is supported when podFailurePolicy is specified`);
}

export function* jobSpecWarnings(path: string, spec: Readonly<JobSpec>): Iterable<string> {
  if (spec.completionMode === "Indexed" && (spec.completions ?? 0) > COMPLETIONS_HIGH && (spec.parallelism ?? 0) > HIGH_PARALLELISM_MAX)
    yield `${path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail`;
  yield* templateWarnings(child(path, "template"), spec.template);
}
