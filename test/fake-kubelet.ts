/**
 * Kubelets for tests of controllers: they make pods of their nodes run and ready at once, end what is deleted, and bind pods that want a node by name.
 * `outcome` says what becomes of a pod: "ready" (the default), "pending", "succeeded" or "failed".
 */
import type { Pod } from "../core/api/gen/core.v1.ts";
import { isConflict, isNotFound } from "../core/api/meta/status-error.ts";
import { PODS } from "../core/client/resources.ts";
import { targetNode } from "../core/controllers/daemonset/pods.ts";
import { isTerminal } from "../core/controllers/pod-state.ts";
import { aborted } from "../core/lifecycle/aborted.ts";
import { timestamp } from "../core/lifecycle/clock.ts";
import type { Runnable } from "../core/lifecycle/run-all.ts";
import type { TestDeps } from "./run-controllers.ts";

export type Outcome = "ready" | "pending" | "succeeded" | "failed";

export function fakeKubelets({ informers, client, clock }: TestDeps, outcome: (pod: Readonly<Pod>) => Outcome = () => "ready"): Runnable {
  const pods = client.resource(PODS);
  async function act(pod: Readonly<Pod>, signal: AbortSignal): Promise<void> {
    try {
      if (pod.metadata.deletionTimestamp) {
        if ((pod.metadata.deletionGracePeriodSeconds ?? 0) > 0) await pods.delete(pod, { gracePeriodSeconds: 0 }, { signal });
        return;
      }
      const node = targetNode(pod) ?? "any";
      if (!pod.spec.nodeName) {
        await pods.update({ ...pod, spec: { ...pod.spec, nodeName: node } }, { signal });
        return;
      }
      if (isTerminal(pod)) return;
      const becomes = outcome(pod);
      const phase = ({ ready: "Running", pending: "Pending", succeeded: "Succeeded", failed: "Failed" } as const)[becomes];
      if (pod.status?.phase === phase) return;
      const conditions = [{ type: "Ready", status: becomes === "ready" ? "True" : "False", lastTransitionTime: timestamp(clock.nowMs()) }];
      await pods.updateStatus({ ...pod, status: { ...pod.status, phase, conditions } }, { signal });
    } catch (error) {
      if (!signal.aborted && !isConflict(error) && !isNotFound(error)) throw error; // it has changed: the next event tells
    }
  }
  return {
    name: "kubelets",
    async run(signal, ready) {
      informers.of(PODS).onChange(({ object, deleted }) => { if (!deleted) void act(object, signal); });
      ready();
      await aborted(signal);
    },
  };
}
