/**
 * Counts what of every ResourceQuota is used. Admission (core/admission/resource-quota.ts) adds to the status what it lets through; this takes off
 * what is gone, and what was noted and never came to be.
 *
 * Between admission's note and the object's appearance in our copy lies a moment in which we would count too little: less is therefore written after a count at the source, for our copy
 * may be late, and with what was noted within that moment and has not been seen yet on top (recent-raises.ts).
 *
 * Source: kubernetes v1.36 pkg/controller/resourcequota
 */
import type { ResourceQuota } from "../../api/gen/core.v1.ts";
import { formatGroupResource, type GroupResource, parseApiVersion } from "../../api/meta/gvk.ts";
import { type ApiObject, isDeleting, keyOf, namespaceOf } from "../../api/meta/object-meta.ts";
import { type Amounts, amountsOf, equal, growth, listOf, withoutZeros } from "../../api/quota/amounts.ts";
import { evaluatorOf, scopesOf } from "../../api/quota/evaluators.ts";
import type { ResourceRef } from "../../client/client.ts";
import { discover } from "../../client/discovery.ts";
import type { Informer } from "../../client/informer.ts";
import { API_SERVICES, CUSTOM_RESOURCE_DEFINITIONS, DEVICE_CLASSES, PERSISTENT_VOLUME_CLAIMS, PODS, RESOURCE_CLAIMS, RESOURCE_QUOTAS, SERVICES } from "../../client/resources.ts";
import { type AddKey, type Controller, itself, type Next, type Watch } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { countUsage, isLess, resourcesOf, withRaises } from "./plan.ts";
import { RecentRaises, UNSEEN_MS } from "./recent-raises.ts";

/** Objects whose quota use ends by time alone, notes of writes that failed. Source: --resource-quota-sync-period */
export const RESYNC_MS = 300_000;
/** A custom resource may appear at any time. Source: ResourceQuotaController.Sync period */
const DISCOVERY_MS = 30_000;
/** A definition changes several times while it is established, and the garbage collector, which ends the informers of what is no longer served, waits as well. */
const SETTLE_MS = 2_000;
/** How long the first list of a resource is waited for, once. What cannot be listed, for its conversion webhook is broken, say, keeps no other quota from being counted, nor what else its own counts. */
const SYNC_MS_MAX = 5_000;
/** When to look again whether it can be. */
const UNLISTED_MS = 10_000;
const CLAIMS = formatGroupResource({ group: RESOURCE_CLAIMS.group, resource: RESOURCE_CLAIMS.plural });

interface Counted { readonly informer: Informer<ApiObject>; readonly unsubscribe: () => void }

export function resourceQuotaController({ client, informers, clock, resyncMs = RESYNC_MS }: Pick<ControllerDeps, "client" | "informers" | "clock"> & { readonly resyncMs?: number | undefined }): Controller {
  const quotas = informers.of(RESOURCE_QUOTAS);
  const quotaClient = client.resource(RESOURCE_QUOTAS);
  const around = { classes: informers.of(DEVICE_CLASSES), pods: informers.of(PODS), claims: informers.of(RESOURCE_CLAIMS) };
  const counted = new Map<string, Counted>();
  const late = new Set<string>(); // resources whose first list has been waited for in vain
  const recent = new RecentRaises(clock);
  const behind = new WeakMap<Readonly<ResourceQuota>, ReadonlySet<string>>(); // what a quota counts: asked at each change of what it may count
  let served = new Map<string, ResourceRef>([PODS, SERVICES, PERSISTENT_VOLUME_CLAIMS].map((ref) => [formatGroupResource({ group: ref.group, resource: ref.plural }), ref as ResourceRef]));
  let discoveredMs: number | undefined;
  let discovering: Promise<void> | undefined;
  let settling: { cancel(): void } | undefined;
  let isOutdated = false; // something may be served now that was not when it was last asked
  let wake: AddKey = () => {};

  /** Objects of what quotas count: when one goes, or stops to count, its quotas are counted anew. */
  const objects: Watch = {
    whenSynced: () => Promise.resolve(),
    subscribe(add) {
      wake = add;
      const ends = [CUSTOM_RESOURCE_DEFINITIONS, API_SERVICES].map((ref) => informers.of<ApiObject>(ref).onChange(servedAnew));
      return () => {
        wake = () => {};
        for (const end of ends) end();
        settling?.cancel();
        for (const { unsubscribe } of counted.values()) unsubscribe();
        counted.clear();
      };
    },
  };
  const raises: Watch = {
    whenSynced: (signal) => quotas.whenSynced(signal),
    subscribe: () => quotas.onChange((change) => recent.note(change)),
  };

  return {
    name: "resourcequota_primary",
    workers: 5,
    watches: [raises, itself(quotas), objects],
    async reconcile(key, { signal }): Promise<Next> {
      const quota = quotas.get(key);
      if (quota === undefined || isDeleting(quota)) return;
      const copies = new Map<string, Informer<ApiObject>>();
      let againInMs = resyncMs;
      let failure: unknown;
      for (const resource of resourcesOf(quota)) {
        const informer = await informerOf(resource, signal);
        if (informer === undefined) againInMs = Math.min(againInMs, late.has(formatGroupResource(resource)) ? UNLISTED_MS : DISCOVERY_MS);
        else copies.set(formatGroupResource(resource), informer);
      }
      if (copies.has(CLAIMS)) await around.classes.whenSynced(signal);
      let used = countUsage(quota, { objects: (resource) => copies.get(formatGroupResource(resource))?.inNamespace(namespaceOf(quota)), nowMs: clock.nowMs(), around });
      const hard = amountsOf(quota.spec?.hard);
      const noted = amountsOf(quota.status?.used);
      const isTold = (): boolean => quota.status?.hard !== undefined && equal(hard, amountsOf(quota.status.hard)) && equal(used, noted);
      if (isTold()) return { againInMs };
      if (isLess(used, noted)) {
        const leftMs = recent.leftMs(key);
        if (leftMs > 0) return { againInMs: leftMs };
        const raised = recent.take(key);
        const lists = new Map<string, readonly Readonly<ApiObject>[]>();
        for (const [id, { ref }] of copies) {
          try {
            lists.set(id, (await client.resource(ref).list({ namespace: namespaceOf(quota) }, { signal })).items);
          } catch (error) {
            if (signal.aborted) throw error;
            failure = error;
          }
        }
        used = withRaises(countUsage(quota, { objects: (resource) => lists.get(formatGroupResource(resource)), nowMs: clock.nowMs(), around }), { raised, noted });
        if (raised.size > 0) againInMs = Math.min(againInMs, UNSEEN_MS); // what is not seen until then does not come
      }
      if (!isTold()) await quotas.caughtUp([await quotaClient.updateStatus({ ...quota, status: { hard: listOf(hard), used: listOf(used) } }, { signal })], signal);
      if (failure !== undefined) throw failure;
      return { againInMs };
    },
  };

  /** Undefined: there is no such resource, or it cannot be listed. */
  async function informerOf(resource: GroupResource, signal: AbortSignal): Promise<Informer<ApiObject> | undefined> {
    const id = formatGroupResource(resource);
    const ref = await refOf(resource, signal);
    const informer = ref && informers.of(ref);
    const known = counted.get(id);
    if (known !== undefined && known.informer === informer) return informer;
    known?.unsubscribe(); // of a version that is not asked for any more, or of a definition that was there before
    counted.delete(id);
    if (informer === undefined) return undefined;
    if (!informer.synced && !late.has(id)) await syncedInTime(informer, signal);
    if (!informer.synced) {
      late.add(id);
      return undefined;
    }
    late.delete(id);
    if (!counted.has(id)) counted.set(id, { informer, unsubscribe: follow(resource, informer) });
    return informer;
  }

  /** What comes or grows from now on has been noted; what goes, or is less, is counted anew. */
  function follow(resource: GroupResource, informer: Informer<ApiObject>): () => void {
    let isThere = true;
    const end = informer.onChange(({ object, old, deleted }) => {
      const isOther = old !== undefined && uses(resource, object) !== uses(resource, old);
      if (deleted || isOther) recount(resource, object);
      if (!deleted && !isThere && (isOther || old === undefined)) tellAppeared(resource, object, old);
    });
    isThere = false;
    return end;
  }

  function tellAppeared(resource: GroupResource, object: Readonly<ApiObject>, old: Readonly<ApiObject> | undefined): void {
    const id = formatGroupResource(resource), evaluator = evaluatorOf(resource, around);
    for (const quota of quotas.inNamespace(namespaceOf(object))) {
      if (evaluator === undefined || !counts(quota, id)) continue;
      const used = (one: Readonly<ApiObject> | undefined): Amounts => (one && scopesOf(quota).every((scope) => evaluator.isInScope(one, scope)) ? evaluator.usage(one, clock.nowMs()) : new Map());
      recent.appeared(keyOf(quota), withoutZeros(growth(used(object), used(old))));
    }
  }

  async function syncedInTime(informer: Informer<ApiObject>, signal: AbortSignal): Promise<void> {
    const over = new AbortController();
    const alarm = clock.after(SYNC_MS_MAX, () => over.abort());
    await informer.whenSynced(AbortSignal.any([signal, over.signal]));
    alarm.cancel();
  }

  async function refOf(resource: GroupResource, signal: AbortSignal): Promise<ResourceRef | undefined> {
    const id = formatGroupResource(resource);
    const isUnknown = !served.has(id);
    const isDue = isUnknown ? discoveredMs === undefined || clock.uptimeMs() - discoveredMs > DISCOVERY_MS : isCustom(resource) && isOutdated;
    if (isDue || (discovering !== undefined && (isUnknown || isCustom(resource)))) await (discovering ??= rediscover(signal).finally(() => { discovering = undefined; }));
    return served.get(id);
  }

  async function rediscover(signal: AbortSignal): Promise<void> {
    discoveredMs = clock.uptimeMs();
    isOutdated = false;
    try {
      const { resources, failed } = await discover(client, signal);
      const unknown = new Set([...failed.keys()].map((groupVersion) => parseApiVersion(groupVersion).group));
      const kept = [...served].filter(([, { group, plural }]) => !isCustom({ group, resource: plural }) || unknown.has(group));
      const found = resources.filter(({ verbs, namespaced }) => namespaced && verbs.includes("list") && verbs.includes("watch"));
      served = new Map([...kept, ...found.map((ref) => [formatGroupResource({ group: ref.group, resource: ref.plural }), ref] as const)]);
    } catch (error) {
      isOutdated = true;
      throw error;
    }
  }

  /** Custom resources may have come, gone, or have another version: who counts some is looked at once the definitions have settled. */
  function servedAnew(): void {
    isOutdated = true;
    settling ??= clock.after(SETTLE_MS, () => {
      settling = undefined;
      for (const quota of quotas.list()) if (resourcesOf(quota).some(isCustom)) wake(keyOf(quota));
    });
  }

  function recount(resource: GroupResource, object: Readonly<ApiObject>): void {
    const id = formatGroupResource(resource);
    for (const quota of quotas.inNamespace(namespaceOf(object))) if (counts(quota, id)) wake(keyOf(quota));
  }

  function counts(quota: Readonly<ResourceQuota>, id: string): boolean {
    const ids = behind.get(quota) ?? new Set(resourcesOf(quota).map(formatGroupResource));
    behind.set(quota, ids);
    return ids.has(id);
  }

  function uses(resource: GroupResource, object: Readonly<ApiObject>): string {
    const evaluator = evaluatorOf(resource, around);
    return evaluator === undefined ? "" : JSON.stringify([listOf(evaluator.usage(object, clock.nowMs())), evaluator.scopeFacts(object)]);
  }
}

/** It may be: all groups of definitions and extension servers have a dot. */
function isCustom({ group }: GroupResource): boolean { return group.includes("."); }
