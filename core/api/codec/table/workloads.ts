/** The kinds that run pods: ReplicationController, the apps group, Jobs and what scales them. Source: kubernetes v1.36 pkg/printers/internalversion/printers.go */
import type { ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet } from "../../gen/apps.v1.ts";
import type { Scale } from "../../gen/autoscaling.v1.ts";
import type { CronJob, Job } from "../../gen/batch.v1.ts";
import type { ReplicationController } from "../../gen/core.v1.ts";
import type { PodDisruptionBudget } from "../../gen/policy.v1.ts";
import { formatGroupKind, parseApiVersion } from "../../meta/gvk.ts";
import { controllerOf } from "../../meta/object-meta.ts";
import { parseTime } from "../../meta/time.ts";
import { AGE, APPS, BATCH, BOOLEAN, type Column, column, CONTAINERS, CORE, fieldColumn, IMAGES, INTEGER, NAME, selectorColumn } from "./columns.ts";
import { humanDuration, since } from "./human-duration.ts";
import { always, containerCells, formatLabels, formatSelector, formatSelectorPlain, printer } from "./printer.ts";

function replicaColumns(spec: string, status: string): Column[] {
  return [
    NAME,
    fieldColumn("Desired", `${spec}.replicas`, INTEGER),
    fieldColumn("Current", `${status}.replicas`, INTEGER),
    fieldColumn("Ready", `${status}.readyReplicas`, INTEGER),
    AGE, CONTAINERS, IMAGES,
    selectorColumn(`${spec}.selector`),
  ];
}

export const replicationControllers = printer<ReplicationController>({
  columns: replicaColumns(`${CORE}.ReplicationControllerSpec`, `${CORE}.ReplicationControllerStatus`),
  cells: ({ metadata, spec, status }, nowMs) => [
    metadata.name, spec?.replicas ?? 0, status?.replicas ?? 0, status?.readyReplicas ?? 0, since(metadata.creationTimestamp, nowMs),
    ...containerCells(spec?.template), formatLabels(spec?.selector),
  ],
});

export const replicaSets = printer<ReplicaSet>({
  columns: replicaColumns(`${APPS}.ReplicaSetSpec`, `${APPS}.ReplicaSetStatus`),
  cells: ({ metadata, spec, status }, nowMs) => [
    metadata.name, spec?.replicas ?? 0, status?.replicas ?? 0, status?.readyReplicas ?? 0, since(metadata.creationTimestamp, nowMs),
    ...containerCells(spec?.template), formatSelector(spec?.selector),
  ],
  agesOnly: always,
});

export const deployments = printer<Deployment>({
  columns: [
    NAME,
    column("Ready", "Number of the pod with ready state"),
    fieldColumn("Up-to-date", `${APPS}.DeploymentStatus.updatedReplicas`),
    fieldColumn("Available", `${APPS}.DeploymentStatus.availableReplicas`),
    AGE, CONTAINERS, IMAGES,
    selectorColumn(`${APPS}.DeploymentSpec.selector`),
  ],
  cells: ({ metadata, spec, status }, nowMs) => [
    metadata.name, `${status?.readyReplicas ?? 0}/${spec?.replicas ?? 0}`, status?.updatedReplicas ?? 0, status?.availableReplicas ?? 0,
    since(metadata.creationTimestamp, nowMs), ...containerCells(spec?.template), formatSelectorPlain(spec?.selector),
  ],
  agesOnly: always,
});

export const statefulSets = printer<StatefulSet>({
  columns: [NAME, column("Ready", "Number of the pod with ready state"), AGE, CONTAINERS, IMAGES],
  cells: ({ metadata, spec, status }, nowMs) => [
    metadata.name, `${status?.readyReplicas ?? 0}/${spec?.replicas ?? 0}`, since(metadata.creationTimestamp, nowMs), ...containerCells(spec?.template),
  ],
});

export const daemonSets = printer<DaemonSet>({
  columns: [
    NAME,
    fieldColumn("Desired", `${APPS}.DaemonSetStatus.desiredNumberScheduled`, INTEGER),
    fieldColumn("Current", `${APPS}.DaemonSetStatus.currentNumberScheduled`, INTEGER),
    fieldColumn("Ready", `${APPS}.DaemonSetStatus.numberReady`, INTEGER),
    fieldColumn("Up-to-date", `${APPS}.DaemonSetStatus.updatedNumberScheduled`, INTEGER),
    fieldColumn("Available", `${APPS}.DaemonSetStatus.numberAvailable`, INTEGER),
    fieldColumn("Node Selector", `${CORE}.PodSpec.nodeSelector`),
    AGE, CONTAINERS, IMAGES,
    selectorColumn(`${APPS}.DaemonSetSpec.selector`),
  ],
  cells: ({ metadata, spec, status }, nowMs) => [
    metadata.name, status?.desiredNumberScheduled ?? 0, status?.currentNumberScheduled ?? 0, status?.numberReady ?? 0,
    status?.updatedNumberScheduled ?? 0, status?.numberAvailable ?? 0, formatLabels(spec?.template?.spec?.nodeSelector),
    since(metadata.creationTimestamp, nowMs), ...containerCells(spec?.template), formatSelector(spec?.selector),
  ],
});

export const controllerRevisions = printer<ControllerRevision>({
  columns: [NAME, column("Controller", "Controller of the object"), fieldColumn("Revision", `${APPS}.ControllerRevision.revision`), AGE],
  cells(object, nowMs) {
    const owner = controllerOf(object);
    const controller = owner ? `${formatGroupKind({ ...parseApiVersion(owner.apiVersion), kind: owner.kind }).toLowerCase()}/${owner.name}` : "<none>";
    return [object.metadata.name, controller, object.revision ?? 0, since(object.metadata.creationTimestamp, nowMs)];
  },
});

export const jobs = printer<Job>({
  columns: [
    NAME,
    column("Status", "Status of the job."),
    fieldColumn("Completions", `${BATCH}.JobStatus.succeeded`),
    column("Duration", "Time required to complete the job."),
    AGE, CONTAINERS, IMAGES,
    selectorColumn(`${BATCH}.JobSpec.selector`),
  ],
  cells: (job, nowMs) => [
    job.metadata.name, jobStatus(job), jobCompletions(job), jobDuration(job, nowMs), since(job.metadata.creationTimestamp, nowMs),
    ...containerCells(job.spec?.template), formatSelector(job.spec?.selector),
  ],
});

/** Condition → what it makes the job; the first that is true wins, and deletion comes between the ends and the rest. */
const JOB_ENDS: readonly [condition: string, status: string][] = [["Complete", "Complete"], ["Failed", "Failed"]];
const JOB_STATES: readonly [condition: string, status: string][] = [
  ["Suspended", "Suspended"], ["FailureTarget", "FailureTarget"], ["SuccessCriteriaMet", "SuccessCriteriaMet"],
];

function jobStatus({ metadata, status }: Readonly<Job>): string {
  const holds = ([type]: readonly [string, string]): boolean => status?.conditions?.find((condition) => condition.type === type)?.status === "True";
  const end = JOB_ENDS.find(holds);
  if (end) return end[1];
  if (metadata.deletionTimestamp) return "Terminating";
  return JOB_STATES.find(holds)?.[1] ?? "Running";
}

function jobCompletions({ spec, status }: Readonly<Job>): string {
  const succeeded = status?.succeeded ?? 0;
  if (spec?.completions !== undefined) return `${succeeded}/${spec.completions}`;
  const parallelism = spec?.parallelism ?? 0;
  return parallelism > 1 ? `${succeeded}/1 of ${parallelism}` : `${succeeded}/1`;
}

function jobDuration({ status }: Readonly<Job>, nowMs: number): string {
  const startMs = status?.startTime ? parseTime(status.startTime) : undefined;
  if (startMs === undefined) return "";
  const endMs = status?.completionTime ? parseTime(status.completionTime) : undefined;
  return humanDuration((endMs ?? nowMs) - startMs);
}

export const cronJobs = printer<CronJob>({
  columns: [
    NAME,
    fieldColumn("Schedule", `${BATCH}.CronJobSpec.schedule`),
    fieldColumn("Timezone", `${BATCH}.CronJobSpec.timeZone`),
    fieldColumn("Suspend", `${BATCH}.CronJobSpec.suspend`, BOOLEAN),
    fieldColumn("Active", `${BATCH}.CronJobStatus.active`, INTEGER),
    fieldColumn("Last Schedule", `${BATCH}.CronJobStatus.lastScheduleTime`),
    AGE, CONTAINERS, IMAGES,
    selectorColumn(`${BATCH}.JobSpec.selector`),
  ],
  cells: ({ metadata, spec, status }, nowMs) => [
    metadata.name, spec?.schedule ?? "", spec?.timeZone ?? "<none>", spec?.suspend === undefined ? "<unset>" : spec.suspend ? "True" : "False",
    status?.active?.length ?? 0, status?.lastScheduleTime ? since(status.lastScheduleTime, nowMs) : "<none>", since(metadata.creationTimestamp, nowMs),
    ...containerCells(spec?.jobTemplate?.spec?.template), formatSelector(spec?.jobTemplate?.spec?.selector),
  ],
});

export const scales = printer<Scale>({
  columns: [
    { ...NAME, format: "" },
    fieldColumn("Desired", "api.autoscaling.v1.ScaleSpec.replicas", INTEGER),
    fieldColumn("Available", "api.autoscaling.v1.ScaleStatus.replicas", INTEGER),
    AGE,
  ],
  cells: ({ metadata, spec, status }, nowMs) => [metadata.name, spec?.replicas ?? 0, status?.replicas ?? 0, since(metadata.creationTimestamp, nowMs)],
});

export const podDisruptionBudgets = printer<PodDisruptionBudget>({
  columns: [
    NAME,
    column("Min Available", "The minimum number of pods that must be available."),
    column("Max Unavailable", "The maximum number of pods that may be unavailable."),
    column("Allowed Disruptions", "Calculated number of pods that may be disrupted at this time.", INTEGER),
    AGE,
  ],
  cells: ({ metadata, spec, status }, nowMs) => [
    metadata.name, String(spec?.minAvailable ?? "N/A"), String(spec?.maxUnavailable ?? "N/A"), status?.disruptionsAllowed ?? 0, since(metadata.creationTimestamp, nowMs),
  ],
});
