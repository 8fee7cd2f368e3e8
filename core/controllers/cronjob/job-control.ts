/** Makes the Jobs of CronJobs and removes them, and tells of it. Source: kubernetes v1.36 pkg/controller/cronjob/{injection,cronjob_controllerv2}.go */
import type { CronJob, Job } from "../../api/gen/batch.v1.ts";
import { controllerOf, controllerRef, isControlledBy, type NewObject, namespaceOf } from "../../api/meta/object-meta.ts";
import { isAlreadyExists, isNamespaceTerminating, isNotFound } from "../../api/meta/status-error.ts";
import type { Client, ResourceClient } from "../../client/client.ts";
import type { EventRecorder } from "../../client/events.ts";
import type { Informer } from "../../client/informer.ts";
import { JOBS } from "../../client/resources.ts";
import { doubling, type Metrics } from "../../observe/metrics.ts";
import { messageOf } from "../pod-control.ts";
import { jobName } from "./plan.ts";
import { formatInZone, UTC, zoneNamed } from "./zone.ts";

interface Deps {
  readonly client: Client;
  readonly jobs: Informer<Job>;
  readonly recorder: EventRecorder;
  readonly metrics: Metrics | undefined;
}

/** 1 s, doubling nine times. */
const SKEW_SECONDS = doubling(1, 10);

export class JobControl {
  readonly #client: ResourceClient<Job>;
  readonly #jobs: Informer<Job>;
  readonly #recorder: EventRecorder;
  readonly #skew: { observe(seconds: number): void } | undefined;

  constructor({ client, jobs, recorder, metrics }: Deps) {
    this.#client = client.resource(JOBS);
    this.#jobs = jobs;
    this.#recorder = recorder;
    this.#skew = metrics?.histogram("cronjob_controller_job_creation_skew_duration_seconds", "[STABLE] Time between when a cronjob is scheduled to be run, and when the corresponding job is created", SKEW_SECONDS).with({});
  }

  /** False: it was gone already. */
  async remove(cron: Readonly<CronJob>, job: Readonly<Job>, signal: AbortSignal): Promise<boolean> {
    try {
      await this.#client.delete(job, { propagationPolicy: "Background", preconditions: { uid: job.metadata.uid } }, { signal });
    } catch (error) {
      if (isNotFound(error)) return false;
      this.#recorder.event(cron, "Warning", "FailedDelete", `Deleted job: ${messageOf(error)}`);
      throw error;
    }
    this.#recorder.event(cron, "Normal", "SuccessfulDelete", `Deleted job ${job.metadata.name}`);
    return true;
  }

  /** The Job of `atMs`. Undefined: its name is taken by a Job that is not the CronJob's. */
  async create(cron: Readonly<CronJob>, atMs: number, signal: AbortSignal): Promise<Readonly<Job> | undefined> {
    const name = jobName(cron, atMs);
    const wanted = newJob(cron, atMs);
    try {
      const created = await this.#client.create(wanted, { signal });
      this.#skew?.observe((Date.parse(created.metadata.creationTimestamp ?? "") - atMs) / 1000);
      this.#recorder.event(cron, "Normal", "SuccessfulCreate", `Created job ${name}`);
      await this.#jobs.caughtUp([created], signal);
      return created;
    } catch (error) {
      if (isAlreadyExists(error)) {
        const existing = await this.#client.get({ metadata: { name, namespace: namespaceOf(cron) } }, { signal });
        return controllerOf(existing) !== undefined && isControlledBy(existing, cron) ? existing : undefined;
      }
      if (!isNamespaceTerminating(error) && !signal.aborted) this.#recorder.event(cron, "Warning", "FailedCreate", `Error creating job: ${messageOf(error)}`);
      throw error;
    }
  }
}

function newJob(cron: Readonly<CronJob>, atMs: number): NewObject<Job> {
  const { metadata: template, spec } = cron.spec.jobTemplate;
  const where = cron.spec.timeZone === undefined ? UTC : zoneNamed(cron.spec.timeZone);
  return {
    apiVersion: "batch/v1", kind: "Job",
    metadata: {
      name: jobName(cron, atMs), namespace: namespaceOf(cron), ownerReferences: [controllerRef(cron)], labels: { ...template?.labels },
      annotations: { ...template?.annotations, "batch.kubernetes.io/cronjob-scheduled-timestamp": formatInZone(atMs, where) },
    },
    spec: spec ?? { template: {} },
  };
}
