/**
 * Runs Jobs to completion: as many pods at once as they allow, again those that fail, until enough have succeeded or too many have failed.
 *
 *   Job or Pod changes → key → view.ts counts → plan.ts: pods to make or remove → status: first named, then counted → finalizers off → the end
 *
 * API:    https://kubernetes.io/docs/concepts/workloads/controllers/job/
 * Source: kubernetes v1.36 pkg/controller/job
 */
import type { Job, JobCondition, JobStatus } from "../../api/gen/batch.v1.ts";
import type { Pod } from "../../api/gen/core.v1.ts";
import type { PodGroup } from "../../api/gen/scheduling.v1alpha2.ts";
import { isConditionTrue } from "../../api/meta/conditions.ts";
import { labelSelector } from "../../api/meta/label-selector.ts";
import { controllerOf, isDeleting, keyOf, labelsOf, type ObjectKey } from "../../api/meta/object-meta.ts";
import { isNamespaceTerminating } from "../../api/meta/status-error.ts";
import { JOBS, PODS } from "../../client/resources.ts";
import { timestamp } from "../../lifecycle/clock.ts";
import { settleAll } from "../../lifecycle/settle-all.ts";
import { candidatesFor, claim } from "../claim.ts";
import { type Call, type Change, type Controller, controllerKey, delayed, mapped, type Next } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { bySelector, nowAndBefore, selecting } from "../found-by-label.ts";
import { podControl } from "../pod-control.ts";
import { slowStart } from "../slow-start.ts";
import { ActiveTimes } from "./active-times.ts";
import { jobCounter } from "./counting.ts";
import { podReleaser } from "./finalizer.ts";
import { inGroup, jobGroups } from "./groups.ts";
import { jobMetrics, type SyncAction } from "./metrics.ts";
import { JOB_RETRY, orphanPods } from "./orphan-pods.ts";
import { failuresAfter, type JobFailures, planPods, type PodPlan } from "./plan.ts";
import { indexedPod, jobPod, TRACKING_FINALIZER } from "./pods.ts";
import { deadlineInMs, endOf, finishedCondition, isExternal, isSuspended, jobCondition, type JobView, viewOf, withJobCondition } from "./view.ts";

interface Deps extends Pick<ControllerDeps, "client" | "informers" | "events" | "clock" | "metrics"> {
  /** Pods of some Jobs are scheduled all or none: WorkloadWithJob. */
  readonly groupsJobs?: boolean | undefined;
}
type P = Readonly<Pod>;

const JOBS_BY_SELECTOR = bySelector<Job>({ selectorOf: ({ spec }) => labelSelector(spec?.selector) });

/** What becomes of pods within this time is looked at together: who succeeded or failed beside others still counts, and the status is written once. */
const BATCH_MS = 1000; // job_controller.go SyncJobBatchPeriod

/** Who has just made a Job may change it at once, as those do who put suspended Jobs where they are to run: the object they were answered with is still the newest. */
const UNTOUCHED_MS = 20;

function isNew({ old, deleted }: Change<Job>): boolean { return old === undefined && !deleted; }
/** Not its status alone has changed. */
function isAskedAnew({ object, old, deleted }: Change<Job>): boolean { return deleted || old === undefined || old.metadata.generation !== object.metadata.generation; }

export function jobControllers({ groupsJobs = false, client, informers, events, clock, metrics }: Deps): Controller[] {
  const jobs = informers.of(JOBS);
  const pods = informers.of(PODS);
  const podClient = client.resource(PODS);
  const recorder = events.from({ component: "job-controller" });
  const control = podControl(podClient, recorder);
  const failures = new Map<ObjectKey, JobFailures>();
  const activeTimes = new ActiveTimes(clock);
  const meter = metrics && jobMetrics(metrics);
  const releaser = podReleaser({ client, informers });
  const groups = groupsJobs ? jobGroups({ client, informers, recorder }) : undefined;
  const jobsConcerned = nowAndBefore<Pod>(jobsOf);
  const count = jobCounter({ client, informers, clock, recorder, meter, releaser });

  const main: Controller = {
    name: "job",
    workers: 5,
    retry: JOB_RETRY,
    watches: [
      delayed(mapped(jobs, (change) => (isNew(change) ? [keyOf(change.object)] : [])), UNTOUCHED_MS),
      mapped(jobs, (change) => { meter?.jobSeen(change); return isAskedAnew(change) && !isNew(change) ? [keyOf(change.object)] : []; }),
      delayed(mapped(jobs, (change) => (isAskedAnew(change) ? [] : [keyOf(change.object)])), BATCH_MS),
      delayed(mapped(pods, (change) => { meter?.podSeen(change); return jobsConcerned(change); }), BATCH_MS),
    ],
    ...(groups ? { reads: groups.reads } : {}),
    async reconcile(key, call): Promise<Next> {
      const job = jobs.get(key);
      if (job === undefined || finishedCondition(job) !== undefined) {
        failures.delete(key);
        activeTimes.forget(key);
        return;
      }
      if (isExternal(job.spec)) return;
      const startMs = clock.uptimeMs();
      const tell = (action: SyncAction, failed: boolean): void => meter?.synced(job, { ms: clock.uptimeMs() - startMs, action, failed });
      let action: SyncAction = "reconciling";
      try {
        const selector = labelSelector(job.spec?.selector);
        const own = await claim<Pod, Job>({
          owner: job, owners: client.resource(JOBS), objects: candidatesFor(pods, job), client: podClient, matches: (pod) => selector.matches(labelsOf(pod)), finalizers: [TRACKING_FINALIZER], signal: call.signal,
        });
        const group = await groups?.groupOf(job, own, call.signal);
        const next = await sync(key, started(job), releaser.current(own), { stored: job, group, planned: (found) => { action = found; } }, call);
        tell(action, false);
        return next;
      } catch (error) {
        tell(action, true);
        throw error;
      }
    },
  };

  /** The time a Job starts is when it is first seen not suspended. */
  function started(job: Readonly<Job>): Readonly<Job> {
    if (job.status?.startTime !== undefined || isSuspended(job.spec ?? { template: {} })) return job;
    return { ...job, status: { ...job.status, startTime: timestamp(clock.nowMs()) } };
  }

  async function sync(key: ObjectKey, job: Readonly<Job>, own: readonly P[], { stored, group, planned }: {
    readonly stored: Readonly<Job>;
    readonly group: Readonly<PodGroup> | undefined;
    readonly planned: (action: SyncAction) => void;
  }, { signal, log }: Call): Promise<Next> {
    const nowMs = clock.nowMs();
    const view = viewOf(job, own);
    const backoff = failuresAfter(failures.get(key), view, nowMs);
    const activeMs = activeTimes.of(job);
    let end = endOf(view, { nowMs, activeMs });
    let { ready, terminating } = view;
    let active = view.active.length;
    let conditions: readonly JobCondition[] = job.status?.conditions ?? [];
    let startTime = job.status?.startTime;
    const isEnding = end !== undefined;
    let plan: PodPlan = { remove: [], create: 0, indexes: [], action: "reconciling" };
    if (isEnding) plan = { ...plan, remove: view.active };
    else if (!isDeleting(job)) {
      plan = planPods(view, backoff, nowMs);
      planned(plan.action);
    }

    const { created, removed, failure } = await carryOut(view, plan, { free: !isEnding, group }, signal);
    if (signal.aborted) throw failure ?? signal.reason;
    if (plan.create + plan.remove.length > 0) log.info("managing pods", { active, create: plan.create, remove: plan.remove.length });
    active += created - removed.length;
    terminating += removed.length;
    ready -= removed.filter((pod) => isConditionTrue(pod.status?.conditions, "Ready")).length;
    if (failure !== undefined) end = undefined; // not all is as it should be: the end can wait for the next try
    if (!isEnding) {
      const { completions } = view.spec;
      const complete = completions === undefined ? view.succeeded > 0 && active === 0 : view.succeeded >= completions && active === 0;
      if (complete) end = jobCondition(nowMs, "SuccessCriteriaMet", "True", "CompletionsReached", "Reached expected number of succeeded pods");
      else if (!isDeleting(job)) ({ conditions, startTime } = suspension(view, conditions, startTime));
    }
    const before: JobStatus = { ...job.status, active, ready, terminating, conditions: [...conditions], startTime };
    await count({ view, before, end, stored, onNamed: () => failures.set(key, backoff) }, signal);
    if (failure !== undefined && !isNamespaceTerminating(failure)) throw failure;
    const deadlineMs = deadlineInMs(view, activeMs);
    const waits = [plan.againInMs, deadlineMs === 0 ? undefined : deadlineMs].filter((ms) => ms !== undefined);
    return waits.length === 0 ? undefined : { againInMs: Math.min(...waits) };
  }

  function suspension({ job, spec }: JobView, conditions: readonly JobCondition[], startTime: string | undefined): { conditions: readonly JobCondition[]; startTime: string | undefined } {
    const nowMs = clock.nowMs();
    const suspended = isSuspended(spec);
    const changed = withJobCondition(conditions, suspended ? jobCondition(nowMs, "Suspended", "True", "JobSuspended", "Job suspended") : jobCondition(nowMs, "Suspended", "False", "JobResumed", "Job resumed"));
    if (changed === undefined) return { conditions, startTime };
    if (suspended) recorder.event(job, "Normal", "Suspended", "Job suspended");
    else recorder.event(job, "Normal", "Resumed", "Job resumed");
    return { conditions: changed, startTime: suspended ? undefined : timestamp(nowMs) };
  }

  /** As far as that goes. `free`: pods taken away from a Job that goes on are not waited for to be counted. `group`: of which new ones are. */
  async function carryOut(view: JobView, plan: PodPlan, { free, group }: { readonly free: boolean; readonly group: Readonly<PodGroup> | undefined }, signal: AbortSignal): Promise<{ readonly created: number; readonly removed: readonly P[]; readonly failure: unknown }> {
    const { job, indexes } = view;
    const created: P[] = [];
    const removed: P[] = [];
    let failed = 0;
    let failure: unknown;
    try {
      await settleAll(plan.remove.map(async (pod) => {
        if (free) await releaser.release(pod, signal);
        await control.delete(pod, job, signal);
        removed.push(pod);
      }));
      await slowStart(plan.create, async (i) => {
        const index = plan.indexes[i];
        try {
          const pod = index === undefined ? jobPod(job) : indexedPod(job, index, indexes?.delayed.get(index));
          created.push(await control.create(inGroup(pod, group), job, signal));
        } catch (error) {
          if (!isNamespaceTerminating(error)) failed++;
          throw error;
        }
      });
    } catch (error) {
      failure = error;
    }
    meter?.created(view, { succeeded: created.length + failed, failed }); // as upstream has it, all attempts
    await Promise.all([pods.caughtUp(created, signal), pods.sawDeleted(removed, signal)]);
    return { created: created.length, removed, failure };
  }

  function jobsOf(pod: P): ObjectKey[] {
    if (controllerOf(pod) !== undefined) {
      const key = controllerKey(pod, JOBS);
      return key === undefined ? [] : [key];
    }
    if (isDeleting(pod)) return [];
    return selecting(jobs, JOBS_BY_SELECTOR, pod).map(keyOf);
  }

  return [main, orphanPods({ informers, releaser })];
}
