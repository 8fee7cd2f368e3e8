/**
 * Job (batch/v1): run pods until enough of them have succeeded.
 *
 *   create   its pods are found by a label with the Job's uid, unless the client selects them itself
 *   update   the template stays, but for resources and scheduling of a Job that is suspended and has nothing running
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/job-v1/
 * Source: kubernetes v1.36 pkg/registry/batch/job/strategy.go, pkg/apis/batch/{v1/defaults,validation/validation}.go
 */
import { isConditionTrue } from "../../api/meta/conditions.ts";
import { type FieldError, invalid, key, required } from "../../api/meta/field-error.ts";
import type { Job, JobSpec } from "../../api/gen/batch.v1.ts";
import type { Affinity, Container, PodSpec, PodTemplateSpec } from "../../api/gen/core.v1.ts";
import { validateLabelSelector } from "../../api/meta/label-selector.ts";
import { dns1123Label } from "../../api/meta/names.ts";
import { matcherOf, podNameWarnings } from "../apps/selected-template.ts";
import { semanticEqual } from "../core/checks/equal.ts";
import { immutable, immutableStruct } from "../core/checks/values.ts";
import { defaultPodTemplate, dropDisabledTemplateFields } from "../core/pod/template.ts";
import { statusPart } from "../core/status-part.ts";
import { inOrder } from "../generic/object-meta.ts";
import { defineResource } from "../generic/resource.ts";
import { jobSpecWarnings, validateJobSpec } from "./job-spec.ts";
import { validateJobStatus } from "./job-status.ts";

const UID_LABEL = "batch.kubernetes.io/controller-uid";
const NAME_LABEL = "batch.kubernetes.io/job-name";
const UID_LABELS = ["controller-uid", UID_LABEL];
const NAME_LABELS = ["job-name", NAME_LABEL];
const BACKOFF_LIMIT = 6;
const INT32_MAX = 2 ** 31 - 1;
const LABELS = "spec.template.metadata.labels";

export const jobs = defineResource<Job>({
  group: "batch", version: "v1", kind: "Job", plural: "jobs",
  defaultPropagation: "Orphan",
  deletionWarning: "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning",

  defaults(job) {
    defaultJobSpec(job.spec);
    const { spec } = job;
    if (spec.completions === undefined && spec.parallelism === undefined) spec.completions = 1;
    spec.parallelism ??= 1;
    spec.backoffLimit ??= spec.backoffLimitPerIndex === undefined ? BACKOFF_LIMIT : INT32_MAX;
    spec.completionMode ??= "NonIndexed";
    spec.suspend ??= false;
    spec.podReplacementPolicy ??= spec.podFailurePolicy ? "Failed" : "TerminatingOrFailed";
    spec.manualSelector ??= false;
    labelAsPods(job);
  },

  prepareForCreate(job) {
    if (!job.spec.manualSelector) generateSelector(job);
    dropDisabledTemplateFields(job.spec.template);
  },
  onceStored(job) {
    const { labels } = job.spec.template.metadata ?? {};
    return labels && isEmpty(job.metadata.labels) ? inOrder({ ...job, metadata: { ...job.metadata, labels } }) as Job : job; // names too long for a label are refused for their pods' alone
  },
  prepareForUpdate(next, old) { dropDisabledTemplateFields(next.spec.template, old.spec.template); },
  generation: (next, old) => !semanticEqual(next.spec, old.spec), updateOrder: "change last",

  *validate(job, old) {
    const { spec, metadata } = job;
    yield* validateGeneratedSelector(job, old);
    yield* validateJobSpec("spec", spec, old?.spec);
    yield* validateSelector(spec, old?.spec);
    if (spec.completionMode !== "Indexed" || !spec.completions || spec.completions < 0) return;
    const { name = "" } = metadata; // a body may have none
    const hostname = `${name}-${spec.completions - 1}`;
    if (dns1123Label(hostname).length > 0) yield invalid("metadata.name", name, `will not able to create pod with invalid DNS label: ${hostname}`);
  },
  *validateUpdate(next, old) {
    yield* validateJobSpec("spec", next.spec, old.spec); // once more, as upstream does: the message has each error once, the causes twice
    yield* validateSelector(next.spec, old.spec);
    yield* validateCompletions(next.spec, old.spec);
    yield* immutable("spec.selector", next.spec.selector, old.spec.selector);
    yield* validateTemplateUpdate(next.spec.template, old);
    yield* immutable("spec.completionMode", next.spec.completionMode, old.spec.completionMode);
    yield* immutableStruct("spec.podFailurePolicy", "batch.v1.PodFailurePolicy", next.spec.podFailurePolicy, old.spec.podFailurePolicy);
    yield* immutable("spec.backoffLimitPerIndex", next.spec.backoffLimitPerIndex, old.spec.backoffLimitPerIndex);
    yield* immutable("spec.managedBy", next.spec.managedBy, old.spec.managedBy);
    yield* immutableStruct("spec.successPolicy", "batch.v1.SuccessPolicy", next.spec.successPolicy, old.spec.successPolicy);
  },
  *warnings({ metadata, spec }, old) {
    if (!old) yield* podNameWarnings(metadata.name);
    if (!old || metadata.generation !== old.metadata.generation) yield* jobSpecWarnings("spec", spec);
  },

  fields: ({ status }) => ({ "status.successful": String(status?.succeeded ?? 0) }),
  subresources: { status: statusPart<Job>({ prepare: labelAsPods, validate: validateJobStatus }) },
});

/** What Jobs and templates of Jobs share. */
export function defaultJobSpec(spec: JobSpec): void {
  defaultPodTemplate((spec.template ??= {} as PodTemplateSpec));
  for (const { onPodConditions } of spec.podFailurePolicy?.rules ?? []) for (const pattern of onPodConditions ?? []) pattern.status ||= "True";
}

function isEmpty(labels: Readonly<Record<string, string>> | undefined): boolean { return Object.keys(labels ?? {}).length === 0; }

/** One without labels has those of its pods. Mutates. */
function labelAsPods({ metadata, spec }: Job): void {
  const labels = spec.template.metadata?.labels;
  if (labels && isEmpty(metadata.labels)) metadata.labels = labels; // the same map, not a copy: what a create adds to the one shows in the other
}

/** Labels the client has set stay; validation refuses those that do not say what they should. Mutates. */
function generateSelector({ metadata, spec }: Job): void {
  const template = (spec.template.metadata ??= {});
  const labels = (template.labels ??= {});
  for (const name of NAME_LABELS) labels[name] ??= metadata.name ?? ""; // refused for that, not for its labels
  for (const name of UID_LABELS) labels[name] ??= metadata.uid;
  const selector = (spec.selector ??= {});
  selector.matchLabels = { ...selector.matchLabels };
  selector.matchLabels[UID_LABEL] ??= metadata.uid;
}

function* validateGeneratedSelector({ metadata, spec }: Readonly<Job>, old: Readonly<Job> | undefined): Iterable<FieldError> {
  if (spec.manualSelector || !spec.selector) return;
  if (metadata.uid === "") yield required("metadata.uid");
  const before = old?.spec.template.metadata?.labels;
  const prefixed = !old || (before?.[NAME_LABEL] !== undefined && before[UID_LABEL] !== undefined);
  const expected: Record<string, string> = {};
  for (const [i, prefix] of [false, true].entries()) {
    if (prefix && !prefixed) continue;
    for (const [name, value] of [[UID_LABELS[i]!, metadata.uid], [NAME_LABELS[i]!, metadata.name ?? ""]] as const) {
      expected[name] = value;
      yield* hasLabel(spec.template, name, value);
    }
  }
  if (matcherOf(spec.selector)?.matches(expected) === false) yield invalid("spec.selector", spec.selector, "`selector` not auto-generated");
}

function* hasLabel({ metadata }: Readonly<PodTemplateSpec>, name: string, value: string): Iterable<FieldError> {
  const actual = metadata?.labels?.[name];
  if (actual === undefined) yield required(key(LABELS, name), `must be '${value}'`);
  else if (actual !== value) yield invalid(key(LABELS, name), metadata?.labels, `must be '${value}'`);
}

function* validateSelector({ selector, template }: Readonly<JobSpec>, old: Readonly<JobSpec> | undefined): Iterable<FieldError> {
  const allowInvalidValues = old !== undefined && validateLabelSelector(old.selector, "").length > 0;
  if (selector) yield* validateLabelSelector(selector, "spec.selector", { allowInvalidValues });
  else yield required("spec.selector");
  const labels = template.metadata?.labels;
  if (matcherOf(selector)?.matches(labels) === false) yield invalid(LABELS, labels ?? null, "`selector` does not match template `labels`");
}

/** Only indexed Jobs change size, and then keep as many running as there are to complete. */
function* validateCompletions(next: Readonly<JobSpec>, old: Readonly<JobSpec>): Iterable<FieldError> {
  if (next.completionMode !== "Indexed") yield* immutable("spec.completions", next.completions, old.completions);
  else if (next.completions !== old.completions && next.completions !== undefined && next.completions !== next.parallelism)
    yield invalid("spec.completions", next.completions, "can only be modified in tandem with spec.parallelism");
}

function* validateTemplateUpdate(next: Readonly<PodTemplateSpec>, old: Readonly<Job>): Iterable<FieldError> {
  const suspended = old.spec.suspend === true;
  const { startTime, conditions = [], active = 0 } = old.status ?? {};
  const isSuspended = isConditionTrue(conditions, "Suspended");
  if (!suspended || !(startTime === undefined || isSuspended) || active > 0) { yield* immutableStruct("spec.template", "core.v1.PodTemplateSpec", next, old.spec.template); return; }
  const before = withScheduling(old.spec.template, next);
  yield* immutableStruct("spec.template.spec", "core.v1.PodSpec", next.spec, withResources(before.spec, next.spec));
}

/** The old template with what says where the new one's pods may run. */
function withScheduling(old: Readonly<PodTemplateSpec>, next: Readonly<PodTemplateSpec>): PodTemplateSpec {
  const spec = next.spec;
  return {
    ...old,
    spec: {
      ...old.spec!, nodeSelector: spec?.nodeSelector, tolerations: spec?.tolerations, schedulingGates: spec?.schedulingGates,
      affinity: withNodeAffinity(old.spec?.affinity, spec?.affinity),
    },
  };
}

function withNodeAffinity(old: Affinity | undefined, next: Affinity | undefined): Affinity | undefined {
  const { nodeAffinity: _, ...rest } = old ?? {};
  const result: Affinity = { ...rest, ...(next?.nodeAffinity ? { nodeAffinity: next.nodeAffinity } : {}) };
  return next === undefined && Object.keys(rest).length === 0 ? undefined : result;
}

function withResources(old: PodSpec | undefined, next: PodSpec | undefined): PodSpec | undefined {
  if (!old || !next) return old;
  const adopt = (before: readonly Container[] | undefined, after: readonly Container[] | undefined): Container[] | undefined =>
    before?.length === after?.length ? before?.map((container, i) => (container.name === after![i]!.name ? { ...container, resources: after![i]!.resources } : container)) : before && [...before];
  const initContainers = adopt(old.initContainers, next.initContainers);
  return { ...old, containers: adopt(old.containers, next.containers) ?? [], ...(initContainers ? { initContainers } : {}) };
}
