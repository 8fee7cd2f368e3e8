/**
 * CronJob (batch/v1): a Job, again and again.
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/cron-job-v1/
 * Source: kubernetes v1.36 pkg/registry/batch/cronjob/strategy.go, pkg/apis/batch/{v1/defaults,validation/validation}.go
 */
import { child, type FieldError, invalid, notSupported, required } from "../../api/meta/field-error.ts";
import type { CronJob, CronJobSpec, JobSpec, JobTemplateSpec } from "../../api/gen/batch.v1.ts";
import { byteLength } from "../../api/meta/byte-length.ts";
import { podNameWarnings } from "../apps/selected-template.ts";
import { nonNegative, oneOf, problems } from "../core/checks/values.ts";
import { dropDisabledTemplateFields } from "../core/pod/template.ts";
import { statusPart } from "../core/status-part.ts";
import { defineResource } from "../generic/resource.ts";
import { scheduleError } from "./cron-schedule.ts";
import { defaultJobSpec } from "./job.ts";
import { jobSpecWarnings, validateJobSpec } from "./job-spec.ts";
import { timeZoneProblems } from "./time-zone.ts";

/** The controller appends eleven more characters to make a Job's name of it. */
const NAME_BYTES_MAX = 52;
const JOB_SPEC = "spec.jobTemplate.spec";

export const cronJobs = defineResource<CronJob>({
  group: "batch", version: "v1", kind: "CronJob", plural: "cronjobs",

  defaults({ spec }) {
    const template = (spec.jobTemplate ??= {});
    defaultJobSpec((template.spec ??= {} as JobSpec));
    spec.concurrencyPolicy ||= "Allow";
    spec.suspend ??= false;
    spec.successfulJobsHistoryLimit ??= 3;
    spec.failedJobsHistoryLimit ??= 1;
  },
  prepareForCreate({ spec }) { dropDisabledTemplateFields(spec.jobTemplate.spec?.template); },
  prepareForUpdate(next, old) { dropDisabledTemplateFields(next.spec.jobTemplate.spec?.template, old.spec.jobTemplate.spec?.template); },

  *validate({ metadata, spec }, old) {
    yield* validateSpec("spec", spec, old?.spec);
    if (!old && byteLength(metadata.name ?? "") > NAME_BYTES_MAX) yield invalid("metadata.name", metadata.name, `must be no more than ${NAME_BYTES_MAX} characters`);
  },
  *warnings({ metadata, spec }, old) {
    if (!old) yield* podNameWarnings(metadata.name);
    if ((!old || metadata.generation !== old.metadata.generation) && spec.jobTemplate.spec) yield* jobSpecWarnings(JOB_SPEC, spec.jobTemplate.spec);
    if (old && spec.schedule.includes("TZ"))
      yield "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details";
  },
  subresources: { status: statusPart<CronJob>() },
});

function* validateSpec(path: string, spec: Readonly<CronJobSpec>, old: Readonly<CronJobSpec> | undefined): Iterable<FieldError> {
  const { schedule, timeZone } = spec;
  if (!schedule) yield required(child(path, "schedule"));
  else yield* validateSchedule(child(path, "schedule"), spec, old?.schedule.includes("TZ") ?? false);
  yield* nonNegative(child(path, "startingDeadlineSeconds"), spec.startingDeadlineSeconds);
  if (timeZone !== undefined && (!old || old.timeZone !== timeZone)) yield* problems(child(path, "timeZone"), timeZone, timeZoneProblems(timeZone));
  yield* oneOf(child(path, "concurrencyPolicy"), spec.concurrencyPolicy, ["Allow", "Forbid", "Replace"]);
  yield* validateJobTemplate(child(path, "jobTemplate"), spec.jobTemplate, old?.jobTemplate);
  yield* nonNegative(child(path, "successfulJobsHistoryLimit"), spec.successfulJobsHistoryLimit);
  yield* nonNegative(child(path, "failedJobsHistoryLimit"), spec.failedJobsHistoryLimit);
}

function* validateSchedule(path: string, { schedule, timeZone }: Readonly<CronJobSpec>, hadZone: boolean): Iterable<FieldError> {
  const problem = scheduleError(schedule);
  if (problem !== undefined) yield invalid(path, schedule, problem);
  if (!schedule.includes("TZ")) return;
  if (!hadZone) yield invalid(path, schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
  else if (timeZone !== undefined) yield invalid(path, schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule");
}

function* validateJobTemplate(path: string, { spec }: Readonly<JobTemplateSpec>, old: Readonly<JobTemplateSpec> | undefined): Iterable<FieldError> {
  if (!spec) return;
  const at = child(path, "spec");
  yield* validateJobSpec(at, spec, old?.spec);
  if (spec.selector) yield invalid(child(at, "selector"), spec.selector, "`selector` will be auto-generated");
  if (spec.manualSelector) yield notSupported(child(at, "manualSelector"), spec.manualSelector, ["nil", "false"]);
}
