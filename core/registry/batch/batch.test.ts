import { expect, test } from "vitest";
import { created, type Given, updated } from "../../../test/rehearse.ts";
import { cronJobs } from "./cron-job.ts";
import { scheduleError } from "./cron-schedule.ts";
import { countIndexes, firstOverlap } from "./indexes.ts";
import { jobs } from "./job.ts";

const template = { spec: { restartPolicy: "Never", containers: [{ name: "c", image: "i" }] } };
const job = (spec: Given = {}): Given => ({ spec: { template, ...spec } });

test.each<[Given, Given]>([
  [{}, { parallelism: 1, completions: 1, backoffLimit: 6, completionMode: "NonIndexed", suspend: false, podReplacementPolicy: "TerminatingOrFailed", manualSelector: false }],
  [{ parallelism: 3 }, { parallelism: 3 }],
  [{ completions: 5 }, { parallelism: 1, completions: 5 }],
  [{ completionMode: "Indexed", completions: 2, backoffLimitPerIndex: 1 }, { backoffLimit: 2147483647 }],
  [{ podFailurePolicy: { rules: [{ action: "Ignore", onPodConditions: [{ type: "DisruptionTarget" }] }] } }, {
    podReplacementPolicy: "Failed", podFailurePolicy: { rules: [{ action: "Ignore", onPodConditions: [{ type: "DisruptionTarget", status: "True" }] }] },
  }],
])("what the API fills in for %j", (given, filled) => {
  const { object, errors } = created(jobs, job(given));
  expect(object.spec).toMatchObject(filled);
  expect(errors).toEqual([]);
});

test("parallelism alone means a work queue, which has no completions", () => expect(created(jobs, job({ parallelism: 3 })).object.spec.completions).toBeUndefined());

test("a job's pods, and the job, carry its name and uid", () => {
  const { object } = created(jobs, job());
  const labels = { "batch.kubernetes.io/controller-uid": "u1", "batch.kubernetes.io/job-name": "a", "controller-uid": "u1", "job-name": "a" };
  expect(object.spec.selector).toEqual({ matchLabels: { "batch.kubernetes.io/controller-uid": "u1" } });
  expect([object.spec.template.metadata!.labels, object.metadata.labels]).toEqual([labels, labels]);
  expect(created(jobs, job({ template: { ...template, metadata: { labels: { app: "x" } } } })).object.metadata.labels).toEqual({ app: "x", ...labels });
});

test.each<[Given, string[]]>([
  [{ template: { spec: { containers: template.spec.containers } } }, ['spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"']],
  [{ parallelism: -1 }, ["spec.parallelism: Invalid value: -1: must be greater than or equal to 0"]],
  [{ completionMode: "Indexed" }, []],
  [{ completionMode: "Indexed", parallelism: 2 }, ["spec.completions: Required value: when completion mode is Indexed"]],
  [{ successPolicy: { rules: [{ succeededCount: 1 }] } }, ['spec.successPolicy: Invalid value: {"Rules":[{"SucceededIndexes":null,"SucceededCount":1}]}: requires indexed completion mode']],
  [{ backoffLimitPerIndex: 1 }, ["spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"]],
  [{ managedBy: "me" }, ['spec.managedBy: Invalid value: "me": must be a domain-prefixed path (such as "acme.io/foo")']],
  [{ manualSelector: true }, ["spec.selector: Required value", "spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`"]],
  [{ podFailurePolicy: { rules: [{ action: "FailIndex", onExitCodes: { operator: "In", values: [2, 0, 2] } }] } }, [
    'spec.podFailurePolicy.rules[0].action: Invalid value: "FailIndex": requires the backoffLimitPerIndex to be set',
    "spec.podFailurePolicy.rules[0].onExitCodes.values[1]: Invalid value: 0: must not be 0 for the In operator",
    "spec.podFailurePolicy.rules[0].onExitCodes.values[2]: Duplicate value: 2",
    "spec.podFailurePolicy.rules[0].onExitCodes.values: Invalid value: [2,0,2]: must be ordered",
  ]],
  [{ completionMode: "Indexed", completions: 3, successPolicy: { rules: [{ succeededIndexes: "0,3", succeededCount: 4 }] } }, [
    'spec.successPolicy.rules[0].succeededIndexes: Invalid value: "0,3": error parsing succeededIndexes: too large index: "3"',
    "spec.successPolicy.rules[0].succeededCount: Invalid value: 4: must be less than or equal to 3 (the number of specified completions)",
    "spec.successPolicy.rules[0].succeededCount: Invalid value: 4: must be less than or equal to 0 (the number of indexes in the specified succeededIndexes field)",
  ]],
])("a job with %j", (given, errors) => expect(created(jobs, job(given)).errors).toEqual(errors));

test("only a suspended job with nothing running changes its template, and only in places", () => {
  const { object } = created(jobs, job());
  const pod = object.spec.template.spec!;
  const withPod = (old: typeof object, more: Given): string[] => [...updated(jobs, old, { spec: { ...old.spec, template: { ...old.spec.template, spec: { ...pod, ...more } } } }).errors].map((text) => text.split(":")[0]!);
  const suspended = { ...object, spec: { ...object.spec, suspend: true } };
  const resized = { containers: [{ ...pod.containers[0], resources: { requests: { cpu: "1" } } }] };
  expect(withPod(object, { nodeSelector: { a: "b" } })).toEqual(["spec.template"]);
  expect(withPod(suspended, { nodeSelector: { a: "b" } })).toEqual([]);
  expect(withPod(suspended, resized)).toEqual([]);
  expect(withPod({ ...suspended, status: { active: 1, startTime: "2026-01-01T00:00:00Z" } }, resized)).toEqual(["spec.template"]);
  expect(withPod(suspended, { hostNetwork: true })).toContain("spec.template.spec");
});

test("an update's causes have what is wrong with the spec twice, as upstream's have", () => {
  const { object } = created(jobs, job());
  const next = { ...object, spec: { ...object.spec, selector: undefined } };
  const wrong = [...jobs.validate!(next, object), ...jobs.validateUpdate!(next, object)].map(({ field, type }) => `${field} ${type}`);
  expect(wrong.filter((one) => one.startsWith("spec.selector"))).toEqual(["spec.selector FieldValueRequired", "spec.selector FieldValueRequired", "spec.selector FieldValueInvalid"]);
});

test("a name that is too long for a label is refused for its pods' labels alone", () => {
  const { errors } = created(jobs, { metadata: { name: "a".repeat(64) }, ...job() });
  expect(errors).toEqual(["spec.template.labels: Invalid value: \"" + "a".repeat(64) + "\": must be no more than 63 bytes"]);
});

test("one whose labels are taken away with its status has those of its pods", () => {
  const { object } = created(jobs, job());
  const { labels: _, ...metadata } = object.metadata;
  expect(updated(jobs, object, { metadata, status: {} }, { subresource: "status" }).object.metadata.labels).toEqual(object.spec.template.metadata!.labels);
});

test("a status goes forward only", () => {
  const old = { ...created(jobs, job()).object, status: { startTime: "2026-01-01T00:00:00Z", failed: 2 } };
  const errors = (status: Given): readonly string[] => updated(jobs, old, { status }, { subresource: "status" }).errors;
  expect(errors({ ...old.status, succeeded: 1 })).toEqual([]);
  expect(errors({ ...old.status, failed: 1 })).toEqual(["status.failed: Invalid value: 1: cannot decrease the failed counter"]);
  expect(errors({ ...old.status, conditions: [{ type: "Complete", status: "True" }] })).toEqual([
    "status.completionTime: Required value: completionTime is required for Complete jobs",
    "status.conditions: Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
  ]);
  expect(errors({ active: 1, ready: 3, terminating: 2, failed: 2, uncountedTerminatedPods: { succeeded: ["a"] }, conditions: ["Failed", "SuccessCriteriaMet"].map((type) => ({ type, status: "True" })) })).toEqual([
    "status.conditions: Invalid value: cannot set Failed=True condition without the FailureTarget=true condition",
    "status.active: Invalid value: 1: active>0 is invalid for finished job",
    "status.startTime: Required value: startTime is required for finished job",
    'status.uncountedTerminatedPods: Invalid value: {"Succeeded":["a"],"Failed":null}: must be empty for finished job',
    "status.terminating: Invalid value: 2: terminating>0 is invalid for finished job",
    "status.ready: Invalid value: 3: cannot set more ready pods than active",
    "status.conditions: Invalid value: cannot set SuccessCriteriaMet=True and Failed=true conditions",
    "status.startTime: Invalid value: null: field is immutable for unsuspended job once set",
  ]);
  expect(errors({ ...old.status, active: -1 })).toEqual(["status.active: Invalid value: -1: must be greater than or equal to 0"]);
});

test("lists of indexes", () => {
  expect(countIndexes("0,2-4", 5)).toBe(4);
  expect(() => countIndexes("3,1", 5)).toThrow("non-increasing order, previous: 3, current: 1");
  expect(() => countIndexes("99999999999999999999", 5)).toThrow('cannot convert string to integer for index: "99999999999999999999"');
  expect([firstOverlap("0-3,7", "4-5,7", 9), firstOverlap("0", "1", 9)]).toEqual([7, undefined]);
});

test.each<[string, string | undefined]>([
  ["*/5 0-6/2 1,15 jan-MAR ?", undefined],
  ["@every 1h30m", undefined],
  ["99999999999999999999 * * * *", 'failed to parse int from 99999999999999999999: strconv.Atoi: parsing "99999999999999999999": value out of range'],
  ["@hourly", undefined],
  ["* * * *", "expected exactly 5 fields, found 4: [* * * *]"],
  ["60 * * * *", "end of range (60) above maximum (59): 60"],
  ["* * 0 * *", "beginning of range (0) below minimum (1): 0"],
  ["5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"],
  ["*/0 * * * *", "step of range should be a positive number: */0"],
  ["1-2-3 * * * *", "too many hyphens: 1-2-3"],
  ["x * * * *", 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'],
  ["@never", "unrecognized descriptor: @never"],
])("schedule %s", (schedule, problem) => expect(scheduleError(schedule)).toBe(problem));

test("cron jobs", () => {
  const cron = (more: Given): Given => ({ spec: { schedule: "* * * * *", jobTemplate: { spec: { template } }, ...more } });
  expect(created(cronJobs, cron({})).object.spec).toMatchObject({ concurrencyPolicy: "Allow", suspend: false, successfulJobsHistoryLimit: 3, failedJobsHistoryLimit: 1, jobTemplate: { spec: { template: { spec: { schedulerName: "default-scheduler" } } } } });
  expect(created(cronJobs, cron({})).object.spec.jobTemplate.spec!.parallelism).toBeUndefined();
  for (const timeZone of ["Europe/Berlin", "Etc/UTC", "UTC", "US/Pacific", "EST", "Asia/Calcutta", "Etc/GMT+5"]) expect(created(cronJobs, cron({ timeZone })).errors).toEqual([]);
  for (const timeZone of ["europe/berlin", "utc", "est"]) expect(created(cronJobs, cron({ timeZone })).errors).toEqual([`spec.timeZone: Invalid value: "${timeZone}": unknown time zone ${timeZone}`]);
  expect(created(cronJobs, cron({ timeZone: "Mars/Base", concurrencyPolicy: "Maybe" })).errors).toEqual([
    'spec.timeZone: Invalid value: "Mars/Base": unknown time zone Mars/Base', 'spec.concurrencyPolicy: Unsupported value: "Maybe": supported values: "Allow", "Forbid", "Replace"',
  ]);
  expect(created(cronJobs, cron({ timeZone: "a..b" })).errors).toEqual(['spec.timeZone: Invalid value: "a..b": time: invalid location name']);
  expect(created(cronJobs, cron({ schedule: "TZ=UTC 0 0 * * *" })).errors).toEqual(['spec.schedule: Invalid value: "TZ=UTC 0 0 * * *": cannot use TZ or CRON_TZ in schedule, use timeZone field instead']);
  expect(created(cronJobs, { ...cron({}), metadata: { name: "x".repeat(53) } }).errors).toEqual([`metadata.name: Invalid value: "${"x".repeat(53)}": must be no more than 52 characters`]);
});
