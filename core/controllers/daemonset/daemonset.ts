/**
 * Runs one pod of each DaemonSet on every node that fits.
 *
 *   DaemonSet, Pod or Node changes → key → revision of the template → plan.ts: placement, then rolling update → status
 *
 * API:    https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/
 * Source: kubernetes v1.36 pkg/controller/daemon
 */
import type { ControllerRevision, DaemonSet } from "../../api/gen/apps.v1.ts";
import type { Node, Pod } from "../../api/gen/core.v1.ts";
import { labelSelector } from "../../api/meta/label-selector.ts";
import { controllerOf, isDeleting, keyOf, labelsOf, namespaceOf, type ObjectKey } from "../../api/meta/object-meta.ts";
import { isNamespaceTerminating } from "../../api/meta/status-error.ts";
import { CONTROLLER_REVISIONS, DAEMON_SETS, NODES, PODS } from "../../client/resources.ts";
import { settleAll } from "../../lifecycle/settle-all.ts";
import { candidatesFor, claim } from "../claim.ts";
import { sameValue } from "../conditions.ts";
import { type Controller, controllerKey, itself, mapped, type Next } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { FailureBackoff } from "../failure-backoff.ts";
import { bySelector, nowAndBefore, selecting } from "../found-by-label.ts";
import { HashCollisionError, syncHistory, trimHistory } from "../history.ts";
import { podControl } from "../pod-control.ts";
import { nextAvailableInMs } from "../pod-state.ts";
import { slowStart } from "../slow-start.ts";
import { sameToApi } from "../same.ts";
import { templateHash } from "../template-hash.ts";
import { daemonStatus, type Plan, planPlacement, planRolling } from "./plan.ts";
import { daemonPod, fitOf, REVISION_HASH_LABEL } from "./pods.ts";
import { mergeTwins } from "./twins.ts";

type Set = Readonly<DaemonSet>;

/** Pods added or removed per reconcile. */
const BURST_MAX = 250; // kubernetes v1.36 pkg/controller/daemon/daemon_controller.go BurstReplicas
const FAILED = { minMs: 1_000, maxMs: 900_000 };
const SETS_BY_SELECTOR = bySelector<DaemonSet>({ selectorOf: ({ spec }) => labelSelector(spec.selector) });

export function daemonSetController({ client, informers, events, clock, complete }: Pick<ControllerDeps, "client" | "informers" | "events" | "clock" | "complete">): Controller {
  const sets = informers.of(DAEMON_SETS);
  const pods = informers.of(PODS);
  const nodes = informers.of(NODES);
  const revisions = informers.of(CONTROLLER_REVISIONS);
  const setClient = client.resource(DAEMON_SETS);
  const podClient = client.resource(PODS);
  const revisionClient = client.resource(CONTROLLER_REVISIONS);
  const recorder = events.from({ component: "daemonset-controller" });
  const control = podControl(podClient, recorder);
  const failures = new FailureBackoff(clock, FAILED);

  return {
    name: "daemonset",
    workers: 2,
    watches: [
      itself(sets),
      mapped(pods, nowAndBefore(setsOf)),
      mapped(revisions, ({ object, old, deleted }) => (!deleted && old === undefined && controllerOf(object) ? [] : [...setsOf(object), ...(old === undefined ? [] : setsOf(old))])), // one that comes owned is no news
      mapped(nodes, ({ object, old, deleted }) => setsFor(object, deleted ? undefined : old)),
    ],

    async reconcile(key, { signal }): Promise<Next> {
      const set = sets.get(key);
      if (set === undefined || isDeleting(set)) return;
      if (Object.keys(set.spec.selector?.matchLabels ?? {}).length === 0 && (set.spec.selector?.matchExpressions ?? []).length === 0) {
        recorder.event(set, "Warning", "SelectingAll", "This daemon set is selecting all pods. A non-empty selector is required.");
        return;
      }
      const selector = labelSelector(set.spec.selector);
      const owner = { owner: set, owners: setClient, matches: (object: Readonly<{ metadata: { labels?: Record<string, string> | undefined } }>) => selector.matches(object.metadata.labels), signal };
      const ownRevisions = await claim<ControllerRevision, DaemonSet>({ ...owner, objects: candidatesFor(revisions, set), client: revisionClient });
      const found = await history(set, ownRevisions, signal);
      const { current } = found;
      const old = await mergeTwins(set, found, { client, informers, signal });
      const hash = labelsOf(current)[REVISION_HASH_LABEL] ?? "";
      const read = (): Promise<Readonly<Pod>[]> => claim<Pod, DaemonSet>({ ...owner, objects: candidatesFor(pods, set), client: podClient });
      const world = async () => ({ set, hash, nodes: [...nodes.list()], pods: await read(), nowMs: clock.nowMs() });

      let failure: unknown;
      let retryInMs: number | undefined;
      try {
        const placed = planPlacement(await world());
        retryInMs = await place(set, placed, hash, signal);
        if (placed.create.length + placed.remove.length === 0) await change(set, planRolling(await world()), hash, signal);
        await trimHistory(old, {
          limit: set.spec.revisionHistoryLimit ?? 10, client: revisionClient, signal,
          inUse: (revision) => pods.ownedBy(set.metadata.uid).some((pod) => labelsOf(pod)[REVISION_HASH_LABEL] === labelsOf(revision)[REVISION_HASH_LABEL]),
        });
      } catch (error) {
        if (signal.aborted) throw error;
        failure = error;
      }
      const after = await world();
      const status = daemonStatus(after);
      if (!sameValue(status, set.status)) await sets.caughtUp([await setClient.updateStatus({ ...set, status }, { signal })], signal);
      if (failure !== undefined) throw failure;
      const waits = [retryInMs, nextAvailableInMs(after.pods, set.spec.minReadySeconds ?? 0, after.nowMs)].filter((ms) => ms !== undefined);
      return waits.length === 0 ? undefined : { againInMs: Math.min(...waits) };
    },
  };

  async function history(set: Set, own: readonly Readonly<ControllerRevision>[], signal: AbortSignal) {
    try {
      return await syncHistory({
        owner: set, template: set.spec.template, revisions: own, hash: () => templateHash(set.spec.template, set.status?.collisionCount), hashLabel: REVISION_HASH_LABEL, client: revisionClient, informer: revisions, complete, signal,
      });
    } catch (error) {
      if (error instanceof HashCollisionError) {
        const status = { ...daemonStatus({ set, hash: "", nodes: [], pods: [], nowMs: 0 }), ...set.status, collisionCount: (set.status?.collisionCount ?? 0) + 1 };
        await sets.caughtUp([await setClient.updateStatus({ ...set, status }, { signal })], signal);
      }
      throw error;
    }
  }

  /** Pods that have ended are replaced, but not for ever at once. Returns when to look again at those left. */
  async function place(set: Set, { create, remove, failed }: Plan, hash: string, signal: AbortSignal): Promise<number | undefined> {
    let retryInMs: number | undefined;
    const doomed = [...remove];
    for (const { pod, node } of failed) {
      const name = `${namespaceOf(pod)}/${pod.metadata.name}`;
      if (pod.status?.phase === "Succeeded") {
        recorder.event(set, "Normal", "SucceededDaemonPod", `Found succeeded daemon pod ${name} on node ${node}, will try to delete it`);
        doomed.push(pod);
        continue;
      }
      const key = `${set.metadata.uid}/${set.status?.observedGeneration ?? 0}/${node}`;
      const leftMs = failures.leftMs(key);
      if (leftMs > 0) {
        retryInMs = Math.min(retryInMs ?? leftMs, leftMs);
        continue;
      }
      failures.failed(key);
      recorder.event(set, "Warning", "FailedDaemonPod", `Found failed daemon pod ${name} on node ${node}, will try to kill it`);
      doomed.push(pod);
    }
    await change(set, { create, remove: doomed }, hash, signal);
    return retryInMs;
  }

  async function change(set: Set, { create, remove }: { readonly create: readonly string[]; readonly remove: readonly Readonly<Pod>[] }, hash: string, signal: AbortSignal): Promise<void> {
    const created: Readonly<Pod>[] = [];
    const removed: Readonly<Pod>[] = [];
    const targets = create.slice(0, BURST_MAX);
    try {
      await settleAll([
        slowStart(targets.length, async (i) => { created.push(await control.create(daemonPod(set, targets[i] ?? "", hash), set, signal)); }),
        ...remove.slice(0, BURST_MAX).map(async (pod) => { await control.delete(pod, set, signal); removed.push(pod); }),
      ]);
    } catch (error) {
      if (!isNamespaceTerminating(error instanceof AggregateError ? error.errors[0] : error)) throw error;
    } finally {
      await Promise.all([pods.caughtUp(created, signal), pods.sawDeleted(removed, signal)]);
    }
  }

  /** Whose it is; of one that is nobody's, those who may adopt it. */
  function setsOf(object: Readonly<Pod> | Readonly<ControllerRevision>): ObjectKey[] {
    if (controllerOf(object) !== undefined) {
      const key = controllerKey(object, DAEMON_SETS);
      return key === undefined ? [] : [key];
    }
    if (isDeleting(object)) return [];
    return selecting(sets, SETS_BY_SELECTOR, object).map(keyOf);
  }

  /** The sets for which a node has become another: it comes, it goes, or its labels or taints decide differently. */
  function setsFor(node: Readonly<Node>, old: Readonly<Node> | undefined): ObjectKey[] {
    if (old !== undefined && sameToApi([labelsOf(old), old.spec?.taints ?? []], [labelsOf(node), node.spec?.taints ?? []])) return [];
    return [...sets.list()].filter((set) => {
      if (old === undefined) return true;
      const [before, after] = [fitOf(set, old), fitOf(set, node)];
      return before.shouldRun !== after.shouldRun || before.mayStay !== after.mayStay;
    }).map(keyOf);
  }
}
