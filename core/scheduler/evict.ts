/**
 * Makes room: tells each victim why, deletes it, and lets pods of lower priority that were to come to the node look elsewhere.
 *
 * Source: kubernetes v1.36 pkg/scheduler/framework/preemption/executor.go
 */
import type { Pod } from "../api/gen/core.v1.ts";
import { keyOf, type ObjectKey } from "../api/meta/object-meta.ts";
import { isNotFound } from "../api/meta/status-error.ts";
import type { Client } from "../client/client.ts";
import type { EventReporter } from "../client/events.ts";
import { PODS } from "../client/resources.ts";
import type { Clock } from "../lifecycle/clock.ts";
import { settleAll } from "../lifecycle/settle-all.ts";
import type { Log } from "../observe/log.ts";
import type { NodeInfo } from "./node-info.ts";
import { tryWritePodStatus, writePodStatus } from "./pod-status.ts";
import { DEFAULT_SCHEDULER } from "./plugins.ts";
import type { Snapshot } from "./snapshot.ts";

interface Deps {
  readonly client: Client;
  readonly clock: Clock;
  readonly log: Log;
  readonly reporter: EventReporter;
  readonly snapshot: Snapshot;
  readonly beforeLast: () => void;
  readonly signal: AbortSignal;
}

/** For whom others go: a pod, or a group of them, which goes to no one node. */
export interface Preemptor {
  readonly kind: "pod" | "podgroup";
  readonly key: ObjectKey;
  readonly uid: string;
  readonly schedulerName: string;
  readonly priority: number;
}

export function preemptorOf(pod: Readonly<Pod>): Preemptor {
  return { kind: "pod", key: keyOf(pod), uid: pod.metadata.uid, schedulerName: pod.spec.schedulerName ?? DEFAULT_SCHEDULER, priority: pod.spec.priority ?? 0 };
}

/** What victims are told. */
export function preemptedBy({ kind, uid }: Preemptor, node: string): string { return `Preempted by ${kind} ${uid} on node ${node}`; }

/** Throws if a victim could not be deleted. The last one is told to go when all others have been, after `beforeLast`. */
export async function evict(preemptor: Preemptor, victims: readonly Readonly<Pod>[], node: NodeInfo["name"], deps: Deps): Promise<void> {
  const { client, log, reporter, snapshot, beforeLast, signal } = deps;
  const staying = victims.filter(({ metadata }) => metadata.deletionTimestamp == null);
  const last = staying.pop();
  if (!last) return; // all are on their way out: no nomination changes, either
  const outranked = snapshot.nominatedTo(node).filter(({ pod }) => (pod.spec.priority ?? 0) < preemptor.priority && pod.metadata.uid !== preemptor.uid);
  for (const { pod } of outranked) {
    snapshot.denominate(pod);
    await tryWritePodStatus({ ...pod, status: { ...pod.status, nominatedNodeName: node } }, { nominatedNodeName: "" }, deps); // the copy may be from before it was
  }
  const tell = async (victim: Readonly<Pod>): Promise<void> => {
    try {
      const message = `${preemptor.schedulerName}: preempting to accommodate a higher priority ${preemptor.kind}`;
      await writePodStatus(victim, { condition: { type: "DisruptionTarget", status: "True", reason: "PreemptionByScheduler", message } }, deps);
      await client.resource(PODS).delete(victim, { preconditions: { uid: victim.metadata.uid } }, { signal });
    } catch (error) {
      if (isNotFound(error)) return; // gone is what we wanted
      throw error;
    }
    log.info("pod evicted for another of higher priority", { pod: keyOf(victim), for: preemptor.key, node });
    reporter.report(victim, { type: "Normal", reason: "Preempted", action: "Preempting", note: preemptedBy(preemptor, node) }); // and names nobody as related, as upstream in fact does not
  };
  await settleAll(staying.map(tell));
  beforeLast();
  await tell(last);
}
