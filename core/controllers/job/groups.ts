/**
 * Jobs whose pods are to be scheduled all or none, there where WorkloadWithJob is switched on: each has a Workload with one template, and a PodGroup of that, before it has pods.
 *
 *   a Job with an index for each of the pods that run at once, none of which says of which group it is → its Workload → its PodGroup → pods that name it
 *
 * Somebody else's Workload or PodGroup, or several, or one with other templates: the Job's pods are scheduled one by one, as those of a Job that has begun without.
 *
 * Source: kubernetes v1.36 pkg/controller/job/job_scheduling_manager.go
 */
import type { Job } from "../../api/gen/batch.v1.ts";
import type { Pod } from "../../api/gen/core.v1.ts";
import type { PodGroup, Workload } from "../../api/gen/scheduling.v1alpha2.ts";
import { DNS1123_LABEL_BYTES_MAX, DNS1123_SUBDOMAIN_BYTES_MAX } from "../../api/meta/names.ts";
import { type ApiObject, controllerRef, isControlledBy, isDeleting, keyOf, type NewObject, namespaceOf, objectKey, type OwnerReference } from "../../api/meta/object-meta.ts";
import type { EventRecorder } from "../../client/events.ts";
import type { Index, Informer } from "../../client/informer.ts";
import { POD_GROUPS, WORKLOADS } from "../../client/resources.ts";
import type { ControllerDeps } from "../deps.ts";
import type { NewPod } from "../pod-control.ts";
import { nameHash } from "../template-hash.ts";
import { isIndexed } from "./pods.ts";

const API_VERSION = "scheduling.k8s.io/v1alpha2";
const TEMPLATE_SUFFIX = "-pgt-0";

/** By the Job it says it is of: a name, which says nothing of who owns it. */
const BY_JOB: Index<Workload> = {
  name: "job",
  valuesOf: ({ metadata, spec: { controllerRef: of } }) => (of?.apiGroup === "batch" && of.kind === "Job" && of.name ? [objectKey(metadata.namespace ?? "", of.name)] : []),
};
const BY_WORKLOAD: Index<PodGroup> = {
  name: "workload",
  valuesOf: ({ metadata, spec: { podGroupTemplateRef } }) => (podGroupTemplateRef?.workload?.workloadName ? [objectKey(metadata.namespace ?? "", podGroupTemplateRef.workload.workloadName)] : []),
};

export interface JobGroups {
  /** What has to be known before the first Job is looked at. */
  readonly reads: readonly Pick<Informer<ApiObject>, "whenSynced">[];
  /** The group for new pods of the Job, made if it is to have one and has none; undefined: they are of none. `pods`: those it has. */
  groupOf(job: Readonly<Job>, pods: readonly Readonly<Pod>[], signal: AbortSignal): Promise<Readonly<PodGroup> | undefined>;
}

export function jobGroups({ client, informers, recorder }: Pick<ControllerDeps, "client" | "informers"> & { readonly recorder: EventRecorder }): JobGroups {
  const [workloads, groups] = [informers.of(WORKLOADS), informers.of(POD_GROUPS)];
  return {
    reads: [workloads, groups],
    async groupOf(job, pods, signal) {
      if (!isGang(job)) return undefined;
      const workload = await workloadOf(job, pods, signal);
      return workload && groupIn(job, workload, signal);
    },
  };

  async function workloadOf(job: Readonly<Job>, pods: readonly Readonly<Pod>[], signal: AbortSignal): Promise<Readonly<Workload> | undefined> {
    const [found, ...others] = workloads.by(BY_JOB, keyOf(job));
    if (found) return others.length === 0 && isControlledBy(found, job) && found.spec.podGroupTemplates.length === 1 ? found : undefined;
    if (hasBegun(job, pods) || isDeleting(job)) return undefined;
    const made = await client.resource(WORKLOADS).create(newWorkload(job), { signal });
    recorder.event(job, "Normal", "WorkloadCreated", `Created Workload ${made.metadata.name} for Job ${job.metadata.name}`);
    await workloads.caughtUp([made], signal);
    return made;
  }

  async function groupIn(job: Readonly<Job>, workload: Readonly<Workload>, signal: AbortSignal): Promise<Readonly<PodGroup> | undefined> {
    const [found, ...others] = groups.by(BY_WORKLOAD, keyOf(workload));
    if (found) return others.length === 0 && isControlledBy(found, job) ? found : undefined;
    if (isDeleting(job)) return undefined;
    const made = await client.resource(POD_GROUPS).create(newGroup(job, workload), { signal });
    await groups.caughtUp([made], signal);
    return made;
  }
}

export function isGang({ spec }: Readonly<Job>): boolean {
  const { parallelism = 0, completions, template } = spec ?? { template: {} };
  return parallelism > 1 && completions === parallelism && isIndexed(spec!) && template.spec?.schedulingGroup === undefined;
}

/** It may be from before there were groups: its pods are not split. One that was suspended has forgotten when it started, but not that. */
function hasBegun({ status = {} }: Readonly<Job>, pods: readonly Readonly<Pod>[]): boolean {
  return pods.length > 0 || status.startTime !== undefined || Boolean(status.succeeded) || Boolean(status.failed) || (status.conditions ?? []).some(({ type }) => type === "Suspended");
}

function newWorkload(job: Readonly<Job>): NewObject<Workload> {
  const { name } = job.metadata;
  return {
    apiVersion: API_VERSION, kind: "Workload", metadata: { name: workloadName(job), namespace: namespaceOf(job), ownerReferences: [controllerRef(job)] },
    spec: { controllerRef: { apiGroup: "batch", kind: "Job", name }, podGroupTemplates: [{ name: templateName(name), schedulingPolicy: { gang: { minCount: job.spec!.parallelism! } } }] },
  };
}

/** The Workload does not wait for it to go. */
function newGroup(job: Readonly<Job>, workload: Readonly<Workload>): NewObject<PodGroup> {
  const [template] = workload.spec.podGroupTemplates, { name, namespace } = workload.metadata;
  return {
    apiVersion: API_VERSION, kind: "PodGroup", metadata: { name: groupName(name, template!.name), namespace, ownerReferences: [controllerRef(job), dependency("Workload", workload)] },
    spec: { podGroupTemplateRef: { workload: { workloadName: name, podGroupTemplateName: template!.name } }, schedulingPolicy: template!.schedulingPolicy },
  };
}

/** It goes with its group, which does not wait for that. */
export function inGroup(pod: NewPod, group: Readonly<PodGroup> | undefined): NewPod {
  if (!group) return pod;
  return { ...pod, metadata: { ...pod.metadata, ownerReferences: [...(pod.metadata.ownerReferences ?? []), dependency("PodGroup", group)] }, spec: { ...pod.spec, schedulingGroup: { podGroupName: group.metadata.name } } };
}

function dependency(kind: string, { metadata: { name, uid } }: Readonly<ApiObject>): OwnerReference { return { apiVersion: API_VERSION, kind, name, uid }; }

/** A label: upstream lets a long name be too long for one, and its Job never starts. */
function templateName(job: string): string { return job.slice(0, DNS1123_LABEL_BYTES_MAX - TEMPLATE_SUFFIX.length) + TEMPLATE_SUFFIX; }

/** Upstream hashes what Go prints of the uid, with its type. */
export function workloadName({ metadata: { name, uid } }: Readonly<Job>): string {
  const hash = nameHash(`(types.UID)${uid}`);
  return `${name.slice(0, DNS1123_SUBDOMAIN_BYTES_MAX - hash.length - 1)}-${hash}`;
}

/** Where both names together are too long, each has half, or what the other leaves of it. */
export function groupName(workload: string, template: string): string {
  const hash = nameHash(workload + template), room = DNS1123_SUBDOMAIN_BYTES_MAX - hash.length - 2, half = Math.floor(room / 2);
  return `${workload.slice(0, Math.max(room - half, room - template.length))}-${template.slice(0, Math.max(half, room - workload.length))}-${hash}`;
}
