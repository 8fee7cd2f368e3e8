/**
 * Keeps the status of every PodDisruptionBudget, which the eviction subresource spends from; and takes back the word that a pod is about to be
 * disrupted when it was not.
 *
 *   Pod or budget changes → key → pods selected → scale of their controllers → plan.ts → status
 *
 * API:    https://kubernetes.io/docs/tasks/run-application/configure-pdb/
 * Source: kubernetes v1.36 pkg/controller/disruption
 */
import type { Pod } from "../../api/gen/core.v1.ts";
import type { PodDisruptionBudget, PodDisruptionBudgetStatus } from "../../api/gen/policy.v1.ts";
import { labelSelector } from "../../api/meta/label-selector.ts";
import { isDeleting, keyOf, labelsOf, namespaceOf, type ObjectKey } from "../../api/meta/object-meta.ts";
import { isConflict, isNotFound } from "../../api/meta/status-error.ts";
import { POD_DISRUPTION_BUDGETS, PODS } from "../../client/resources.ts";
import { timestamp } from "../../lifecycle/clock.ts";
import { sameValue } from "../conditions.ts";
import { type Change, type Controller, itself, mapped, type Next } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { bySelector, matchingPods, selecting } from "../found-by-label.ts";
import { formatSelector } from "../format-selector.ts";
import { messageOf } from "../pod-control.ts";
import { expectedPods, failSafe, needsScale, planBudget, staleDisruptionInMs } from "./plan.ts";
import { scaleReader } from "./scale.ts";

type Deps = Pick<ControllerDeps, "client" | "informers" | "events" | "clock">;

const BUDGETS_BY_SELECTOR = bySelector<PodDisruptionBudget>({ selectorOf: ({ spec }) => labelSelector(spec.selector) });

/** A budget that could not be computed: its pods' controller may appear without any of them changing. */
const FAILED_AGAIN_MS = 30_000;

export function disruptionControllers(deps: Deps): readonly Controller[] { return [budgetController(deps), stalePodDisruptionController(deps)]; }

function budgetController({ client, informers, events, clock }: Deps): Controller {
  const budgets = informers.of(POD_DISRUPTION_BUDGETS);
  const pods = informers.of(PODS);
  const budgetClient = client.resource(POD_DISRUPTION_BUDGETS);
  const scales = scaleReader({ client, informers });
  const recorder = events.from({ component: "controllermanager" });

  return {
    name: "disruption",
    workers: 1,
    watches: [itself(budgets), mapped(pods, concerned)],
    reads: scales.reads,
    async reconcile(key, { signal, log }): Promise<Next> {
      const budget = budgets.get(key);
      if (budget === undefined || isDeleting(budget)) return;
      const selected = matchingPods(pods, { namespace: namespaceOf(budget), selector: BUDGETS_BY_SELECTOR.selectorOf(budget) });
      try {
        if (selected.length === 0) recorder.event(budget, "Normal", "NoPods", "No matching pods found");
        const plan = planBudget(budget, { pods: selected, expected: expectedPods(budget, await scaleOf(budget, selected, signal)), nowMs: clock.nowMs() });
        for (const pod of plan.notDeleted) recorder.event(pod, "Warning", "NotDeleted", `Pod was expected by PDB ${namespaceOf(budget)}/${namespaceOf(budget)} to be deleted but it wasn't`); // sic
        await write(budget, plan.status, signal);
        return plan.againInMs === undefined ? undefined : { againInMs: plan.againInMs };
      } catch (error) {
        if (signal.aborted || isConflict(error) || isNotFound(error)) throw error;
        log.info("disruption budget could not be computed", { error: messageOf(error) });
        await write(budget, failSafe(budget, messageOf(error), clock.nowMs()), signal);
        return { againInMs: FAILED_AGAIN_MS };
      }
    },
  };

  function concerned({ object, old }: Change<Pod>): Iterable<ObjectKey> {
    const now = selecting(budgets, BUDGETS_BY_SELECTOR, object);
    if (now.length > 1) tellOfOverlap(object, now[0]!);
    const before = old === undefined || labelsOf(old) === labelsOf(object) ? [] : selecting(budgets, BUDGETS_BY_SELECTOR, old);
    return before.length === 0 ? now.map(keyOf) : new Set([...now, ...before].map(keyOf));
  }

  async function scaleOf(budget: Readonly<PodDisruptionBudget>, selected: readonly Readonly<Pod>[], signal: AbortSignal): Promise<number> {
    if (!needsScale(budget)) return selected.length;
    const scale = await scales.of(selected, signal).catch((error: unknown) => {
      if (!signal.aborted) recorder.event(budget, "Warning", "CalculateExpectedPodCountFailed", `Failed to calculate the number of expected pods: ${messageOf(error)}`);
      throw error;
    });
    if (scale.unmanaged.length > 0)
      recorder.event(
        budget, "Warning", "UnmanagedPods",
        `Pods selected by this PodDisruptionBudget (selector: ${formatSelector(budget.spec.selector)}) were found to be unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please set ".spec.minAvailable" field of the PDB to an integer value.`,
      );
    return scale.pods;
  }

  function tellOfOverlap(pod: Readonly<Pod>, chosen: Readonly<PodDisruptionBudget>): void {
    recorder.event(pod, "Warning", "MultiplePodDisruptionBudgets", `Pod "${namespaceOf(pod)}"/"${pod.metadata.name}" matches multiple PodDisruptionBudgets.  Chose "${chosen.metadata.name}" arbitrarily.`);
  }

  /** A conflict means that an eviction came between: it is computed again with that. */
  async function write(budget: Readonly<PodDisruptionBudget>, status: PodDisruptionBudgetStatus, signal: AbortSignal): Promise<void> {
    if (budget.status !== undefined && sameValue(status, budget.status)) return;
    await budgets.caughtUp([await budgetClient.updateStatus({ ...budget, status }, { signal })], signal);
  }
}

function stalePodDisruptionController({ client, informers, clock }: Deps): Controller {
  const pods = informers.of(PODS);
  const podClient = client.resource(PODS);
  return {
    name: "stale_pod_disruption",
    workers: 1,
    watches: [mapped(pods, ({ object, deleted }) => (!deleted && staleDisruptionInMs(object, clock.nowMs()) !== undefined ? [keyOf(object)] : []))],
    async reconcile(key, { signal, log }): Promise<Next> {
      const pod = pods.get(key);
      const inMs = pod === undefined ? undefined : staleDisruptionInMs(pod, clock.nowMs());
      if (pod === undefined || inMs === undefined) return;
      if (inMs > 0) return { againInMs: inMs };
      const conditions = [{ type: "DisruptionTarget", status: "False", reason: "", message: "", observedGeneration: pod.metadata.generation, lastTransitionTime: timestamp(clock.nowMs()) }];
      await podClient.patch(pod, "application/strategic-merge-patch+json", { metadata: { uid: pod.metadata.uid }, status: { conditions } }, { signal, subresource: "status" });
      log.info("a pod was not disrupted after all", { pod: key });
    },
  };
}
