/** What the scheduler writes into a pod's status: why it has no node, and the node that others are leaving for it. */
import type { Pod, PodCondition } from "../api/gen/core.v1.ts";
import { conditionPatch } from "../api/meta/condition-patch.ts";
import { keyOf } from "../api/meta/object-meta.ts";
import { isNotFound } from "../api/meta/status-error.ts";
import type { Client } from "../client/client.ts";
import { PODS } from "../client/resources.ts";
import { type Clock, timestamp } from "../lifecycle/clock.ts";
import type { Log } from "../observe/log.ts";

interface Deps { readonly client: Client; readonly clock: Clock; readonly log: Log }

export interface StatusChange {
  readonly condition?: { readonly type: string; readonly status: "True" | "False"; readonly reason: string; readonly message: string } | undefined;
  /** "": to be cleared; undefined: as it is. */
  readonly nominatedNodeName?: string | undefined;
}

/** Writes only what differs; that the same holds for a later generation of the pod is no difference. Throws what the API answers. */
export async function writePodStatus(pod: Readonly<Pod>, { condition, nominatedNodeName }: StatusChange, { client, clock, signal }: Omit<Deps, "log"> & { readonly signal: AbortSignal }): Promise<void> {
  const status: Record<string, unknown> = {};
  if (condition) {
    const known = pod.status?.conditions?.find(({ type }) => type === condition.type);
    const wanted: PodCondition = {
      ...condition,
      ...(pod.metadata.generation === undefined ? {} : { observedGeneration: pod.metadata.generation }),
      lastTransitionTime: known?.status === condition.status ? known.lastTransitionTime : timestamp(clock.nowMs()),
    };
    if (known?.status !== wanted.status || known.reason !== wanted.reason || known.message !== wanted.message) Object.assign(status, conditionPatch(pod.status?.conditions, wanted));
  }
  if (nominatedNodeName !== undefined && nominatedNodeName !== (pod.status?.nominatedNodeName ?? "")) status["nominatedNodeName"] = nominatedNodeName === "" ? null : nominatedNodeName;
  if (Object.keys(status).length === 0) return;
  await client.resource(PODS).patch(pod, "application/strategic-merge-patch+json", { metadata: { uid: pod.metadata.uid }, status }, { signal, subresource: "status" });
}

/** As `writePodStatus`; a failure is logged: the next attempt writes it again. */
export async function tryWritePodStatus(pod: Readonly<Pod>, change: StatusChange, deps: Deps & { readonly signal: AbortSignal }): Promise<void> {
  try {
    await writePodStatus(pod, change, deps);
  } catch (error) {
    if (!deps.signal.aborted && !isNotFound(error)) deps.log.warn("a pod's status could not be written", { pod: keyOf(pod), error });
  }
}
