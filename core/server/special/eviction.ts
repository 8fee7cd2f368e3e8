/**
 * POST …/pods/{name}/eviction: deletes a pod if its disruption budget allows it.
 *
 * Source: kubernetes v1.36 pkg/registry/core/pod/storage/eviction.go
 */
import type { Pod } from "../../api/gen/core.v1.ts";
import type { Eviction } from "../../api/gen/policy.v1.ts";
import { isConditionTrue } from "../../api/meta/conditions.ts";
import { invalid as invalidField } from "../../api/meta/field-error.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { badRequest, invalid, isConflict, statusError, success } from "../../api/meta/status-error.ts";
import { setPodCondition } from "../../registry/core/pod/conditions.ts";
import { checkDeletePreconditions } from "../../registry/generic/deletion.ts";
import type { WriteOptions } from "../../registry/generic/stored-resource.ts";
import { checkAcceptable } from "../acceptable.ts";
import type { Answer } from "../answer.ts";
import type { Scope } from "../scope.ts";
import { decodeObject } from "../verbs/body.ts";
import { placeInNamespace } from "../verbs/incoming.ts";
import { recordOwner } from "../verbs/managed-fields.ts";
import { checkedDelete, type DeleteQuery, type RawDeleteOptions, writeQueryOf } from "../verbs/write-options.ts";
import { writeOptions } from "../verbs/write.ts";
import { beingProcessed, budgetsOf, spendDisruption, sparesUnhealthy } from "./disruption-budget.ts";

/** How often a pod may change under an eviction that it does not wait for. */
const TRIES_MAX = 20;

export async function evictPod(scope: Scope): Promise<Answer> {
  checkAcceptable(scope, false);
  const { info, server, signal } = scope;
  const query = writeQueryOf(scope, "CreateOptions");
  const eviction = (await decodeObject(scope)) as Eviction;
  placeInNamespace(scope, eviction);
  eviction.apiVersion = "policy/v1"; // whatever it was sent as
  await recordOwner(scope, eviction, undefined, server.clock.nowMs());
  const { admit, validate, ...options } = writeOptions(scope, "CREATE", query);
  await admit(eviction, undefined);
  if (eviction.metadata.name !== info.name) throw badRequest("name in URL does not match name in Eviction object");
  if (eviction.deleteOptions?.ignoreStoreReadErrorWithClusterBreakingPotential)
    throw invalid({ group: "policy", kind: "Eviction" }, info.name, [invalidField("deleteOptions.ignoreStoreReadErrorWithClusterBreakingPotential", true, "can not be set for pod eviction, try after removing the option")]);
  const wanted = deleteOptionsOf(eviction, scope.request.query.getAll("dryRun"));
  if (eviction.deleteOptions && wanted.dryRun?.length) eviction.deleteOptions.dryRun = [...wanted.dryRun];
  await validate?.(eviction, undefined);
  const write: WriteOptions = { ...options, context: { ...options.context, dryRun: (wanted.dryRun ?? []).length > 0 } };

  const pods = server.registry.storeOf("", "pods")!;
  for (let tries = 1; ; tries++) {
    const pod = (await pods.get(info.namespace, info.name, signal)).object as Readonly<Pod>;
    const asked = checkedDelete(wanted);
    try {
      if (ignoresBudget(pod)) await markAndDelete(scope, mayBecomeHealthy(pod) ? pinned(asked, pod) : asked, write);
      else await evictWithinBudget(scope, pod, asked, write);
      return { type: "object", status: 201, object: { ...success(), code: 201 } };
    } catch (error) {
      if (!ignoresBudget(pod) || !isConflict(error) || asked.preconditions?.resourceVersion !== undefined || tries >= TRIES_MAX) throw error;
    }
  }
}

function deleteOptionsOf({ deleteOptions }: Eviction, asked: readonly string[]): RawDeleteOptions {
  const own = deleteOptions?.dryRun ?? [];
  if (own.length > 0 && asked.length > 0 && own.join() !== asked.join())
    throw statusError({ code: 500, reason: "", message: `Non-matching dry-run options in request and content: [${asked.join(" ")}] and [${own.join(" ")}]` });
  return { ...(deleteOptions as RawDeleteOptions | undefined), dryRun: own.length > 0 ? own : asked };
}

/** A pod that has ended, has not started or is on its way out protects nothing. */
function ignoresBudget({ status, metadata }: Readonly<Pod>): boolean {
  return ["Succeeded", "Failed", "Pending"].includes(status?.phase ?? "") || metadata.deletionTimestamp !== undefined;
}

function mayBecomeHealthy({ status, metadata }: Readonly<Pod>): boolean {
  return status?.phase === "Pending" && metadata.deletionTimestamp === undefined;
}

/** Deletes the pod as it was looked at, or not at all: it might have become one that counts. */
function pinned(asked: DeleteQuery, { metadata: { resourceVersion } }: Readonly<Pod>): DeleteQuery {
  return { ...asked, preconditions: { resourceVersion, ...asked.preconditions } };
}

async function evictWithinBudget(scope: Scope, pod: Readonly<Pod>, asked: DeleteQuery, write: WriteOptions): Promise<void> {
  const [budget] = budgetsOf(scope, pod);
  const isReady = isConditionTrue(pod.status?.conditions, "Ready");
  if (!budget) return markAndDelete(scope, asked, write);
  if (isReady || !sparesUnhealthy(budget)) {
    await spendDisruption(scope, pod, budget, write);
    return markAndDelete(scope, asked, write);
  }
  await markAndDelete(scope, pinned(asked, pod), write).catch((error: unknown) => {
    throw isConflict(error) && asked.preconditions?.resourceVersion === undefined ? beingProcessed(budget.metadata.name) : error;
  });
}

/** Tells why the pod goes, then deletes it. */
async function markAndDelete({ server, info }: Scope, asked: DeleteQuery, write: WriteOptions): Promise<void> {
  const pods = server.registry.storeOf("", "pods")!;
  let { preconditions } = asked;
  if (!asked.dryRun) {
    const { entry } = await pods.update(info.namespace, info.name, async (old) => {
      checkDeletePreconditions({ group: "", resource: "Pod" }, old!, preconditions);
      return marked(old as Readonly<Pod>, server.clock.nowMs()) as ApiObject;
    }, { ...write, subresource: { type: "part", prepare: () => undefined, generation: false } });
    if (preconditions?.resourceVersion !== undefined) preconditions = { ...preconditions, resourceVersion: entry.object.metadata.resourceVersion };
  }
  await pods.delete(info.namespace, info.name, { ...asked, preconditions }, write);
}

function marked(pod: Readonly<Pod>, nowMs: number): Pod {
  const next = structuredClone(pod) as Pod;
  next.metadata.resourceVersion = "";
  const before = next.status?.conditions?.find(({ type }) => type === "DisruptionTarget");
  setPodCondition((next.status ??= {}), {
    type: "DisruptionTarget", status: "True", reason: "EvictionByEvictionAPI", message: "Eviction API: evicting",
    lastProbeTime: null as unknown as string, ...(before?.observedGeneration && { observedGeneration: before.observedGeneration }),
  }, nowMs);
  return next;
}
