/**
 * Answers why a pod is where it is, on any server: out of the snapshot and the queue of the scheduler that runs in this process; where none does
 * (another server leads, or it is disabled), out of the objects themselves.
 */
import type { Pod } from "../api/gen/core.v1.ts";
import { keyOf, type ObjectKey, objectKey } from "../api/meta/object-meta.ts";
import type { Informers } from "../client/informer-factory.ts";
import { NODES, POD_DISRUPTION_BUDGETS, PODS } from "../client/resources.ts";
import { type Breathe, breathers } from "../lifecycle/breather.ts";
import type { Clock } from "../lifecycle/clock.ts";
import { type Cluster, clusterOf, OWNER_RESOURCES, type Surroundings } from "./cluster.ts";
import { deviceResources } from "./devices/claims.ts";
import { devicePlan } from "./devices/dynamic-resources.ts";
import { DevicePlan, thoughtThrough } from "./devices/plan.ts";
import { explainScheduling, placedAnew, type SchedulingExplanation } from "./explain.ts";
import { DEFAULT_SCHEDULER, type Profile } from "./plugins.ts";
import type { PodGroups } from "./pod-groups.ts";
import type { Standing } from "./queue.ts";
import { Snapshot } from "./snapshot.ts";
import { STORAGE_RESOURCES } from "./storage.ts";

/** What a running scheduler lends. */
export interface SchedulerView {
  readonly snapshot: Snapshot;
  readonly cluster: Cluster;
  standing(key: ObjectKey): Standing | undefined;
  /** Absent: every pod stands alone. */
  readonly groups: PodGroups | undefined;
}

export class SchedulingExplainer {
  readonly #informers: Informers;
  readonly #profiles: readonly Profile[];
  readonly #surroundings: Surroundings;
  readonly #breathers: () => Breathe;
  #view: SchedulerView | undefined;

  constructor({ informers, profiles, clock, gates }: { readonly informers: Informers; readonly profiles: readonly Profile[]; readonly clock: Clock; readonly gates?: ReadonlySet<string> | undefined }) {
    this.#informers = informers;
    this.#profiles = profiles;
    this.#breathers = breathers(clock);
    this.#surroundings = { nowMs: () => clock.nowMs(), uptimeMs: () => clock.uptimeMs(), gates };
  }

  /** Until the returned function is called, answers come out of `view`. */
  attach(view: SchedulerView): () => void {
    this.#view = view;
    return () => {
      if (this.#view === view) this.#view = undefined;
    };
  }

  /** undefined: there is no such pod. */
  async explain(namespace: string, name: string, signal: AbortSignal): Promise<SchedulingExplanation | undefined> {
    const informers = this.#informers;
    const view = this.#view;
    await Promise.all([PODS, NODES, POD_DISRUPTION_BUDGETS, ...(view ? [] : [...OWNER_RESOURCES, ...STORAGE_RESOURCES, ...deviceResources(this.#surroundings.gates)])].map((ref) => informers.of(ref as typeof PODS).whenSynced(signal)));
    const pod = informers.of(PODS).get(objectKey(namespace, name));
    if (!pod) return undefined;
    const snapshot = view ? view.snapshot.copy(pod.metadata.uid) : this.#observed(pod);
    const cluster = clusterOf(snapshot, informers, this.#surroundings, view?.cluster);
    const candidate = placedAnew(pod);
    const explain = (): SchedulingExplanation => explainScheduling(pod, {
      candidate, cluster,
      profile: this.#profiles.find(({ schedulerName }) => schedulerName === (pod.spec.schedulerName || DEFAULT_SCHEDULER)),
      budgets: [...informers.of(POD_DISRUPTION_BUDGETS).list()],
      standing: view?.standing(keyOf(pod)), group: view?.groups?.standing(pod),
    });
    const plan = devicePlan(candidate, cluster);
    if (!(plan instanceof DevicePlan)) return explain();
    const slices = this.#breathers();
    return await thoughtThrough(plan, explain, () => {
      signal.throwIfAborted();
      return slices();
    });
  }

  #observed(without: Readonly<Pod>): Snapshot {
    const snapshot = new Snapshot();
    for (const node of this.#informers.of(NODES).list()) snapshot.setNode(node);
    for (const pod of this.#informers.of(PODS).list()) if (pod.metadata.uid !== without.metadata.uid) snapshot.setPod(pod);
    return snapshot;
  }
}
