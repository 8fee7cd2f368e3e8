/**
 * Keeps `spec.replicas` pods alive for every ReplicaSet and, by the same code, every ReplicationController.
 *
 *   ReplicaSet or Pod changes → key → pods adopted and released → plan.ts decides → pods created or deleted → status written
 *
 * API:    https://kubernetes.io/docs/concepts/workloads/controllers/replicaset/
 * Source: kubernetes v1.36 pkg/controller/{replicaset,replication}
 */
import type { ReplicaSet } from "../../api/gen/apps.v1.ts";
import type { Pod, ReplicationController } from "../../api/gen/core.v1.ts";
import { labelSelector, nothing, selectorFromSet } from "../../api/meta/label-selector.ts";
import { controllerOf, isDeleting, keyOf, type ObjectKey } from "../../api/meta/object-meta.ts";
import { isNamespaceTerminating } from "../../api/meta/status-error.ts";
import type { ResourceRef } from "../../client/client.ts";
import { PODS, REPLICA_SETS, REPLICATION_CONTROLLERS } from "../../client/resources.ts";
import type { Informer } from "../../client/informer.ts";
import { settleAll } from "../../lifecycle/settle-all.ts";
import { doubling } from "../../observe/metrics.ts";
import { BY_CONTROLLER, candidatesFor, claim } from "../claim.ts";
import { sameValue } from "../conditions.ts";
import { type Call, type Controller, controllerKey, itself, mapped, type Next } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { type BySelector, bySelector, nowAndBefore, selecting } from "../found-by-label.ts";
import { messageOf, podControl, podFromTemplate } from "../pod-control.ts";
import { isActive, isTerminating, nextAvailableInMs } from "../pod-state.ts";
import { slowStart } from "../slow-start.ts";
import { ageRatios, planReplicas, type Replicated, replicaStatus } from "./plan.ts";

type Deps = Pick<ControllerDeps, "client" | "informers" | "events" | "clock">;

/** A quarter, doubling five times. Source: replicaset/metrics/metrics.go */
const AGE_RATIOS = doubling(0.25, 6);
const SETS_BY_SELECTOR = bySelector<ReplicaSet>({ selectorOf: ({ spec }) => labelSelector(spec.selector) });
const CONTROLLERS_BY_SELECTOR = bySelector<ReplicationController>({ selectorOf: ({ spec }) => (Object.keys(spec.selector ?? {}).length === 0 ? nothing() : selectorFromSet(spec.selector)) });

export function replicaSetController({ metrics, ...deps }: Deps & Pick<ControllerDeps, "metrics">): Controller {
  const ages = metrics?.histogram(
    "replicaset_controller_sorting_deletion_age_ratio",
    "[ALPHA] The ratio of chosen deleted pod's ages to the current youngest pod's age (at the time). Should be <2. The intent of this metric is to measure the rough efficacy of the LogarithmicScaleDown feature gate's effect on the sorting (and deletion) of pods when a replicaset scales down. This only considers Ready pods when calculating and reporting.",
    AGE_RATIOS,
  ).with({});
  return replicaController<ReplicaSet>(deps, {
    ages,
    name: "replicaset", component: "replicaset-controller", ref: REPLICA_SETS, reportsTerminating: true,
    bySelector: SETS_BY_SELECTOR,
  });
}

export function replicationController(deps: Deps): Controller {
  return replicaController<ReplicationController>(deps, {
    name: "replicationmanager", component: "replication-controller", ref: REPLICATION_CONTROLLERS, reportsTerminating: false,
    bySelector: CONTROLLERS_BY_SELECTOR,
  });
}

interface Kind<T extends Replicated> {
  readonly name: string;
  readonly component: string;
  readonly ref: ResourceRef<T>;
  readonly reportsTerminating: boolean;
  /** Told how old those are that go, beside the others. */
  readonly ages?: { observe(ratio: number): void } | undefined;
  readonly bySelector: BySelector<T>;
}

function replicaController<T extends Replicated>({ client, informers, events, clock }: Deps, { name, component, ref, reportsTerminating, ages, bySelector: index }: Kind<T>): Controller {
  const sets = informers.of(ref);
  const pods = informers.of(PODS);
  const setClient = client.resource(ref);
  const podClient = client.resource(PODS);
  const control = podControl(podClient, events.from({ component }));

  return {
    name,
    workers: 5,
    watches: [itself(sets), mapped(pods, nowAndBefore(setsOf))],

    async reconcile(key, { signal, log }): Promise<Next> {
      const set = sets.get(key);
      if (set === undefined) return; // gone: the garbage collector takes its pods
      const selector = index.selectorOf(set);
      const all = candidatesFor(pods, set);
      const matches = (pod: Readonly<Pod>): boolean => selector.matches(pod.metadata.labels);
      const active = await claim({ owner: set, owners: setClient, objects: all.filter(isActive), client: podClient, matches, signal });
      const terminating = all.filter((pod) => isTerminating(pod) && controllerOf(pod)?.uid === set.metadata.uid && matches(pod));

      let failure: unknown;
      if (!isDeleting(set)) {
        try {
          await manage(set, active, { signal, log });
        } catch (error) {
          if (signal.aborted) throw error;
          failure = error;
        }
      }
      const nowMs = clock.nowMs();
      const observed = { active, terminating: reportsTerminating ? terminating : undefined, failure: failure === undefined ? undefined : messageOf(failure), nowMs };
      await writeStatus(set, observed, signal);
      if (failure !== undefined) throw failure;
      const againInMs = nextAvailableInMs(active, set.spec.minReadySeconds ?? 0, nowMs);
      return againInMs === undefined ? undefined : { againInMs };
    },
  };

  /** The sets a pod concerns: its controller, or all that may want to adopt it. */
  function setsOf(pod: Readonly<Pod>): ObjectKey[] {
    if (controllerOf(pod) !== undefined) {
      const key = controllerKey(pod, ref);
      return key === undefined ? [] : [key];
    }
    if (isDeleting(pod)) return [];
    return selecting(sets, index, pod).map(keyOf);
  }

  async function manage(set: Readonly<T>, active: readonly Readonly<Pod>[], { signal, log }: Call): Promise<void> {
    const nowMs = clock.nowMs();
    const { create, remove } = planReplicas(set.spec.replicas ?? 1, active, relatedPods(set), nowMs);
    if (create + remove.length === 0) return;
    if (ages && remove.length > 0) for (const ratio of ageRatios(remove, active, nowMs)) ages.observe(ratio);
    log.info("scaling", { have: active.length, create, remove: remove.length });
    const created: Readonly<Pod>[] = [];
    const removed: Readonly<Pod>[] = [];
    try {
      await settleAll(remove.map(async (pod) => { await control.delete(pod, set, signal); removed.push(pod); }));
      await slowStart(create, async () => { created.push(await control.create(podFromTemplate(set.spec.template, set), set, signal)); });
    } catch (error) {
      if (!isNamespaceTerminating(error instanceof AggregateError ? error.errors[0] : error)) throw error;
    } finally {
      // Else the next reconcile counts wrong and writes it all again.
      await Promise.all([pods.caughtUp(created, signal), pods.sawDeleted(removed, signal)]);
    }
  }

  /** The pods of all sets of the same controller: of all revisions of a Deployment. */
  function relatedPods(set: Readonly<T>): Readonly<Pod>[] {
    const controller = controllerOf(set);
    if (controller === undefined) return [];
    const byController = BY_CONTROLLER as Parameters<Informer<T>["by"]>[0];
    const siblings = sets.by(byController, controller.uid);
    return siblings.flatMap((sibling) => pods.by(BY_CONTROLLER as Parameters<Informer<Pod>["by"]>[0], sibling.metadata.uid));
  }

  async function writeStatus(set: Readonly<T>, observed: Parameters<typeof replicaStatus>[1], signal: AbortSignal): Promise<void> {
    const status = replicaStatus(set, observed);
    if (sameValue(status, set.status)) return;
    const written = await setClient.updateStatus({ ...set, status } as T, { signal });
    await sets.caughtUp([written], signal);
  }
}
