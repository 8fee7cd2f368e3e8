/**
 * What the scheduler writes into a PodGroup's status: the condition PodGroupScheduled. Once it is True it stays, whatever becomes of pods that come later.
 *
 * Source: kubernetes v1.36 pkg/scheduler/schedule_one_podgroup.go updatePodGroupCondition
 */
import type { Condition } from "../api/gen/meta.v1.ts";
import type { PodGroup } from "../api/gen/scheduling.v1alpha2.ts";
import { conditionPatch } from "../api/meta/condition-patch.ts";
import { keyOf } from "../api/meta/object-meta.ts";
import { isNotFound } from "../api/meta/status-error.ts";
import type { Client } from "../client/client.ts";
import { POD_GROUPS } from "../client/resources.ts";
import { type Clock, timestamp } from "../lifecycle/clock.ts";
import type { Log } from "../observe/log.ts";
import type { GroupVerdict } from "./pod-group-verdict.ts";

const TYPE = "PodGroupScheduled";

/** What the group is to be told. Undefined: it has been told already, or it got off before. */
export function groupCondition({ metadata: { generation }, status }: Readonly<PodGroup>, verdict: GroupVerdict, nowMs: number): Condition | undefined {
  const known = status?.conditions?.find(({ type }) => type === TYPE);
  const is = verdict.type === "scheduled" ? { status: "True", reason: "Scheduled", message: "" } : { status: "False", reason: verdict.type === "error" ? "SchedulerError" : "Unschedulable", message: verdict.message };
  if (known?.status === "True" && is.status !== "True") return undefined;
  if (known?.status === is.status && known.reason === is.reason && known.message === is.message && known.observedGeneration === generation) return undefined;
  return { type: TYPE, ...is, ...(generation === undefined ? {} : { observedGeneration: generation }), lastTransitionTime: known?.status === is.status ? known.lastTransitionTime : timestamp(nowMs) };
}

/** A failure is logged: the next attempt writes it again. */
export async function tellGroup(podGroup: Readonly<PodGroup>, verdict: GroupVerdict, { client, clock, log, signal }: { readonly client: Client; readonly clock: Clock; readonly log: Log; readonly signal: AbortSignal }): Promise<void> {
  const condition = groupCondition(podGroup, verdict, clock.nowMs());
  if (!condition) return;
  try {
    await client.resource(POD_GROUPS).patch(podGroup, "application/strategic-merge-patch+json", { status: conditionPatch(podGroup.status?.conditions, condition) }, { signal, subresource: "status" });
  } catch (error) {
    if (!signal.aborted && !isNotFound(error)) log.warn("a pod group's status could not be written", { podGroup: keyOf(podGroup), error });
  }
}
