/**
 * The pods of a Job: their indexes, their ends, and how new ones are made.
 *
 * Each carries a finalizer until the Job has counted it, so that none is lost that somebody deletes in the meantime.
 *
 * Source: kubernetes v1.36 pkg/controller/job/{job_controller,indexed_job_utils,backoff_utils}.go
 */
import type { Job, JobSpec } from "../../api/gen/batch.v1.ts";
import type { Container, ContainerStatus, Pod } from "../../api/gen/core.v1.ts";
import { asDouble } from "../../api/meta/go-integer.ts";
import { annotationsOf, hasFinalizer, isDeleting } from "../../api/meta/object-meta.ts";
import { parseTime } from "../../api/meta/time.ts";
import { type NewPod, podFromTemplate } from "../pod-control.ts";
import { podCondition } from "../pod-state.ts";
import { judgeFailure } from "./policies.ts";

export const TRACKING_FINALIZER = "batch.kubernetes.io/job-tracking";
const INDEX = "batch.kubernetes.io/job-completion-index"; // annotation and label
const FAILURES = "batch.kubernetes.io/job-index-failure-count";
const IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count";
const INDEX_ENV = "JOB_COMPLETION_INDEX";
const COUNT_MAX = 2 ** 31 - 1;
const GENERATED_NAME_MAX = 58; // 63 less the suffix the server adds

export function isTracked(pod: Readonly<Pod>): boolean { return hasFinalizer(pod, TRACKING_FINALIZER); }

export function isIndexed({ completionMode }: Readonly<JobSpec>): boolean { return completionMode === "Indexed"; }

/** New pods wait until old ones have ended: asked for, or needed to know how those ended. */
export function replacesOnlyFailed({ podReplacementPolicy, podFailurePolicy }: Readonly<JobSpec>): boolean {
  return podReplacementPolicy === "Failed" || podFailurePolicy !== undefined;
}

export function hasFailed(pod: Readonly<Pod>, spec: Readonly<JobSpec>): boolean {
  if (pod.status?.phase === "Failed") return true;
  return !replacesOnlyFailed(spec) && isDeleting(pod) && pod.status?.phase !== "Succeeded";
}

export function indexOf(pod: Readonly<Pod>): number | undefined { return count(pod, INDEX); }

/** Failures of its index before it, which count; and all. */
export function indexFailures(pod: Readonly<Pod>): number { return count(pod, FAILURES) ?? 0; }
export function allIndexFailures(pod: Readonly<Pod>): number { return indexFailures(pod) + (count(pod, IGNORED_FAILURES) ?? 0); }

function count(pod: Readonly<Pod>, annotation: string): number | undefined {
  const text = annotationsOf(pod)[annotation] ?? "";
  return /^\d{1,10}$/.test(text) && Number(text) <= COUNT_MAX ? Number(text) : undefined; // somebody else may have written it
}

/** When a pod ended: its last container, or when it stopped being ready, or was deleted. */
export function endedMs(pod: Readonly<Pod>): number {
  const sidecars = new Set((pod.spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === "Always").map(({ name }) => name));
  const statuses: ContainerStatus[] = [...(pod.status?.containerStatuses ?? []), ...(pod.status?.initContainerStatuses ?? []).filter(({ name }) => sidecars.has(name))];
  const ends = statuses.map(({ state }) => parseTime(state?.terminated?.finishedAt ?? ""));
  if (ends.length > 0 && ends.every((end) => end !== undefined)) return Math.max(...ends);
  const ready = podCondition(pod, "Ready");
  const unreadyMs = ready?.status === "False" ? parseTime(ready.lastTransitionTime ?? "") : undefined;
  if (unreadyMs !== undefined) return unreadyMs;
  const deletedMs = parseTime(pod.metadata.deletionTimestamp ?? "");
  if (deletedMs !== undefined) return deletedMs - asDouble(pod.metadata.deletionGracePeriodSeconds ?? 0) * 1000;
  return parseTime(pod.metadata.creationTimestamp) ?? 0;
}

export function jobPod(job: Readonly<Job>): NewPod {
  const pod = podFromTemplate(job.spec?.template, job);
  return { ...pod, metadata: { ...pod.metadata, finalizers: [...new Set([...(pod.metadata.finalizers ?? []), TRACKING_FINALIZER])] } };
}

/** `before` is the failed pod of this index that the new one replaces, if there is one. */
export function indexedPod(job: Readonly<Job>, index: number, before: Readonly<Pod> | undefined): NewPod {
  const pod = jobPod(job);
  const suffix = `-${index}-`;
  const spec = job.spec;
  const failures: Record<string, string> = {};
  if (spec?.backoffLimitPerIndex !== undefined) {
    const counted = before !== undefined && judgeFailure(spec.podFailurePolicy, before).counts;
    failures[FAILURES] = String(before === undefined ? 0 : indexFailures(before) + (counted ? 1 : 0));
    const ignored = before === undefined ? 0 : allIndexFailures(before) - indexFailures(before) + (counted ? 0 : 1);
    if (ignored > 0) failures[IGNORED_FAILURES] = String(ignored);
  }
  return {
    ...pod,
    metadata: {
      ...pod.metadata, generateName: `${job.metadata.name.slice(0, GENERATED_NAME_MAX - suffix.length)}${suffix}`,
      annotations: { ...pod.metadata.annotations, [INDEX]: String(index), ...failures }, labels: { ...pod.metadata.labels, [INDEX]: String(index) },
    },
    spec: {
      ...pod.spec, hostname: `${job.metadata.name}-${index}`, containers: pod.spec.containers.map(withIndex),
      ...(pod.spec.initContainers === undefined ? {} : { initContainers: pod.spec.initContainers.map(withIndex) }),
    },
  };
}

function withIndex(container: Container): Container {
  if (container.env?.some(({ name }) => name === INDEX_ENV)) return container;
  return { ...container, env: [...(container.env ?? []), { name: INDEX_ENV, valueFrom: { fieldRef: { fieldPath: `metadata.labels['${INDEX}']` } } }] };
}
