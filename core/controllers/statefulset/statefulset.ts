/**
 * Keeps the pods of StatefulSets, each with a name and storage of its own, one after the other unless told otherwise.
 *
 *   StatefulSet, Pod or claim changes → key → revisions of the template → plan.ts: the next steps → status
 *
 * API:    https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/
 * Source: kubernetes v1.36 pkg/controller/statefulset
 */
import type { ControllerRevision, StatefulSet, StatefulSetStatus } from "../../api/gen/apps.v1.ts";
import type { Pod } from "../../api/gen/core.v1.ts";
import { labelSelector } from "../../api/meta/label-selector.ts";
import { controllerOf, isDeleting, keyOf, labelsOf, type ObjectKey } from "../../api/meta/object-meta.ts";
import { isConflict, isNamespaceTerminating } from "../../api/meta/status-error.ts";
import type { Labels, Metrics } from "../../observe/metrics.ts";
import { CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS } from "../../client/resources.ts";
import { candidatesFor, claim } from "../claim.ts";
import { sameValue } from "../conditions.ts";
import { controllerIs, type Controller, controllerKey, itself, mapped, type Next } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { bySelector, nowAndBefore, selecting } from "../found-by-label.ts";
import { HashCollisionError, type History, syncHistory, templateOf, trimHistory } from "../history.ts";
import { nextAvailableInMs } from "../pod-state.ts";
import { patchHash } from "../template-hash.ts";
import { planSteps, type Revision, statefulStatus, unavailable, unavailableMax, type World } from "./plan.ts";
import { isMember, isWanted, REVISION_HASH_LABEL, revisionOf } from "./pods.ts";
import { setClaims } from "./set-claims.ts";
import { stepControl } from "./step-control.ts";

type Set = Readonly<StatefulSet>;
type P = Readonly<Pod>;

/** Source: kubernetes v1.36 client-go/util/retry/util.go DefaultRetry */
const STATUS_WRITES_MAX = 5;

const SETS_BY_SELECTOR = bySelector<StatefulSet>({ selectorOf: ({ spec }) => labelSelector(spec.selector) });

export function statefulSetController({ client, informers, events, clock, metrics, gates, complete }: Pick<ControllerDeps, "client" | "informers" | "events" | "clock" | "metrics" | "gates" | "complete">): Controller {
  const several = gates?.has("MaxUnavailableStatefulSet") ?? false;
  const sets = informers.of(STATEFUL_SETS);
  const pods = informers.of(PODS);
  const revisions = informers.of(CONTROLLER_REVISIONS);
  const setClient = client.resource(STATEFUL_SETS);
  const podClient = client.resource(PODS);
  const revisionClient = client.resource(CONTROLLER_REVISIONS);
  const recorder = events.from({ component: "statefulset-controller" });
  const claims = setClaims({ client, informers, recorder });
  const tell = several && metrics ? unavailability(metrics) : undefined;
  const { carryOut } = stepControl({ client, informers, recorder, claims });

  return {
    name: "statefulset",
    workers: 5,
    reads: [informers.of(PERSISTENT_VOLUME_CLAIMS)],
    watches: [itself(sets), mapped(pods, nowAndBefore(setsOf)), controllerIs(revisions, STATEFUL_SETS)],

    async reconcile(key, { signal }): Promise<Next> {
      const set = sets.get(key);
      if (set === undefined) return tell?.(key, undefined);
      const selector = labelSelector(set.spec.selector);
      const owner = { owner: set, owners: setClient, signal };
      const own = await claim<ControllerRevision, StatefulSet>({ ...owner, objects: candidatesFor(revisions, set), client: revisionClient, matches: (object) => selector.matches(labelsOf(object)) });
      const read = (): Promise<P[]> => claim<Pod, StatefulSet>({ ...owner, objects: candidatesFor(pods, set), client: podClient, matches: (pod) => isMember(set, pod) && selector.matches(labelsOf(pod)) });
      const members = await read();
      const history = await historyOf(set, own, signal);
      const update: Revision = { name: history.current.metadata.name, template: templateOf(history.current) };
      const named = own.find(({ metadata }) => metadata.name === set.status?.currentRevision);
      const current: Revision = named === undefined ? update : { name: named.metadata.name, template: templateOf(named) };
      const world: World = { set, current, update, pods: members, nowMs: clock.nowMs(), several };

      let failure: unknown;
      if (!isDeleting(set)) {
        try {
          for (const pod of await claims.adjustOwners(set, members, signal)) if (isWanted(set, pod)) recorder.event(set, "Normal", "SuccessfulUpdate", `Update Pod ${pod.metadata.name} in StatefulSet ${set.metadata.name} successful`);
          await carryOut(set, planSteps(world), signal);
        } catch (error) {
          if (signal.aborted) throw error;
          failure = error;
        }
      }
      const after: World = { ...world, pods: await read(), nowMs: clock.nowMs() };
      tell?.(key, after);
      const status = statefulStatus(after, set.status?.collisionCount ?? 0);
      if (!sameValue(status, set.status ?? {})) await sets.caughtUp([await tellStatus(set, status, signal)], signal);
      const inUse = new Set([current.name, update.name, ...after.pods.map(revisionOf)]);
      const unused = history.old.filter(({ metadata }) => !inUse.has(metadata.name));
      await trimHistory(unused, { limit: set.spec.revisionHistoryLimit ?? 10, inUse: () => false, client: revisionClient, signal });
      if (failure !== undefined && !isNamespaceTerminating(failure)) throw failure;
      const againInMs = nextAvailableInMs(after.pods, set.spec.minReadySeconds ?? 0, after.nowMs);
      return againInMs === undefined ? undefined : { againInMs };
    },
  };

  /** Whatever somebody else has written meanwhile: nothing else says of which revision the pods were made, and that of the template may be another by now. */
  async function tellStatus(set: Set, status: StatefulSetStatus, signal: AbortSignal): Promise<StatefulSet> {
    let latest = set;
    for (let tries = 1; ; tries++) {
      try {
        return await setClient.updateStatus({ ...latest, status }, { signal });
      } catch (error) {
        if (!isConflict(error) || tries === STATUS_WRITES_MAX) throw error;
        latest = await setClient.get(set, { signal });
        if (latest.metadata.uid !== set.metadata.uid) throw error;
      }
    }
  }

  async function historyOf(set: Set, own: readonly Readonly<ControllerRevision>[], signal: AbortSignal): Promise<History> {
    const collisionCount = set.status?.collisionCount ?? 0;
    try {
      return await syncHistory({
        owner: set, template: set.spec.template, revisions: own, hash: (patch) => patchHash(patch, collisionCount), hashLabel: REVISION_HASH_LABEL,
        client: revisionClient, informer: revisions, complete, signal,
      });
    } catch (error) {
      if (error instanceof HashCollisionError) {
        const status = { replicas: 0, availableReplicas: 0, ...set.status, collisionCount: collisionCount + 1 };
        await sets.caughtUp([await setClient.updateStatus({ ...set, status }, { signal })], signal);
      }
      throw error;
    }
  }

  function setsOf(pod: P): ObjectKey[] {
    if (controllerOf(pod) !== undefined) {
      const key = controllerKey(pod, STATEFUL_SETS);
      return key === undefined ? [] : [key];
    }
    if (isDeleting(pod)) return [];
    return selecting(sets, SETS_BY_SELECTOR, pod).filter((set) => isMember(set, pod)).map(keyOf);
  }
}

/** Tells of each set how many of its pods may be missing, and are; undefined: it is gone. */
function unavailability(metrics: Metrics): (key: ObjectKey, world: World | undefined) => void {
  const sets = new Map<ObjectKey, { readonly labels: Labels; readonly allowed: number; readonly missing: number }>();
  metrics.gaugeFrom("statefulset_controller_statefulset_max_unavailable", "[ALPHA] Maximum number of unavailable pods allowed during StatefulSet rolling updates", () => sets.values().map(({ labels, allowed }) => [labels, allowed] as const));
  metrics.gaugeFrom("statefulset_controller_statefulset_unavailable_replicas", "[ALPHA] Current number of unavailable pods in StatefulSet", () => sets.values().map(({ labels, missing }) => [labels, missing] as const));
  return (key, world) => {
    if (world === undefined) return void sets.delete(key);
    const { metadata: { name, namespace = "" }, spec: { podManagementPolicy = "OrderedReady" } } = world.set;
    sets.set(key, { labels: { statefulset_namespace: namespace, statefulset_name: name, pod_management_policy: podManagementPolicy }, allowed: unavailableMax(world.set), missing: unavailable(world) });
  };
}
