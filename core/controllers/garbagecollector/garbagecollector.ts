/**
 * Deletes what belongs to objects that are gone, and carries out foreground and orphaning deletions.
 *
 *   discovery ─▶ one informer for each resource ─▶ graph.ts ─▶ queue ─▶ collect.ts: look at the object and its owners, at the source, then act
 *
 * The graph only says where to look. Nothing is deleted on the word of a cache.
 *
 * API:    https://kubernetes.io/docs/concepts/architecture/garbage-collection/
 * Source: kubernetes v1.36 pkg/controller/garbagecollector
 */
import { formatApiVersion, formatGroupResource } from "../../api/meta/gvk.ts";
import { type ApiObject, objectKey } from "../../api/meta/object-meta.ts";
import { discover, type ServedResource } from "../../client/discovery.ts";
import { API_SERVICES, CUSTOM_RESOURCE_DEFINITIONS } from "../../client/resources.ts";
import { breather } from "../../lifecycle/breather.ts";
import type { Runnable } from "../../lifecycle/run-all.ts";
import { workQueue, type WorkQueue } from "../../lifecycle/work-queue.ts";
import type { Log } from "../../observe/log.ts";
import type { Metrics } from "../../observe/metrics.ts";
import type { ControllerDeps } from "../deps.ts";
import type { ControllerMetrics } from "../run-controller.ts";
import { collect, type CollectDeps, orphan, ScopeError, UnknownKindError } from "./collect.ts";
import { type Effects, type GraphNode, type Identity, identityOf, OwnerGraph, referencesTo, sameIdentity } from "./graph.ts";
import { ResourceMap } from "./resource-map.ts";

/** Objects worked on at once: upstream's --concurrent-gc-syncs. */
export const WORKERS = 20;
/** How often discovery is asked even though no CRD or APIService has changed. */
const DISCOVERY_MS = 60_000;
/** A CRD changes several times while it is established: ask once they have settled. */
const SETTLE_MS = 500;
/** How long the first lists are waited for before work begins. */
const SYNC_MS_MAX = 30_000;
const GONE_MAX = 500; // upstream's absentOwnerCache

/** As upstream's queues are called in metrics. */
const DELETE_QUEUE = "garbage_collector_attempt_to_delete";
const ORPHAN_QUEUE = "garbage_collector_attempt_to_orphan";

interface Deps extends Omit<ControllerDeps, "metrics"> { readonly log: Log; readonly metrics?: ControllerMetrics | undefined; readonly registry?: Metrics | undefined; readonly workers?: number | undefined }
interface Monitor { readonly resource: ServedResource; readonly end: () => void }

export function garbageCollector({ client, informers, clock, events, log: parentLog, metrics, registry, workers = WORKERS }: Deps): Runnable {
  const log = parentLog.with({ controller: "garbagecollector" });
  const recorder = events.from({ component: "garbage-collector-controller" });
  const graph = new OwnerGraph();
  const resources = new ResourceMap();
  const monitors = new Map<string, Monitor>();
  const followed = new Set<string>(); // kinds, at any time
  const deleteQueue = workQueue<string>(clock, { meter: metrics?.queue(DELETE_QUEUE) }); // by uid
  const orphanQueue = workQueue<string>(clock, { meter: metrics?.queue(ORPHAN_QUEUE) });
  const gone = goneOwners();
  const syncErrors = registry?.counter("garbagecollector_controller_resources_sync_error_total", "[ALPHA] Number of garbage collector resources sync errors").with({});

  const look = (nodes: readonly GraphNode[]): void => { for (const { identity } of nodes) deleteQueue.add(identity.uid); };
  const apiServices = informers.of<ApiObject & { readonly spec?: { readonly service?: object | null } }>(API_SERVICES);
  const isOfAnotherServer = ({ group, version }: ServedResource): boolean => apiServices.get(objectKey("", `${version}.${group}`))?.spec?.service != null;
  const deps: CollectDeps = { client, resources, isOfAnotherServer, gone, look };

  function apply(effects: Effects): void {
    for (const identity of effects.gone) gone.add(identity);
    look(effects.look);
    for (const { identity } of effects.lookLater) deleteQueue.addRateLimited(identity.uid);
    for (const { identity } of effects.orphan) orphanQueue.add(identity.uid);
    for (const { dependent, owner } of effects.invalid) {
      const { identity } = dependent;
      const [named] = referencesTo(dependent, owner.uid);
      if (named === undefined) continue;
      const text = `[${named.apiVersion}/${named.kind}, namespace: ${identity.namespace}, name: ${named.name}, uid: ${named.uid}]`;
      recorder.event({ ...identity }, "Warning", "OwnerRefInvalidNamespace", `ownerRef ${text} does not exist in namespace "${identity.namespace}"`);
    }
  }

  function follow(resource: ServedResource): () => void {
    const type = { apiVersion: formatApiVersion(resource), kind: resource.kind };
    return informers.of<ApiObject>(resource).onChange(({ object, old, deleted }) => {
      apply(deleted ? graph.remove(object.metadata.uid) : graph.put(identityOf(object, type), object, old));
    });
  }

  /** What has gone between two informers of a kind, of two of its versions, say, neither has told. But one may be behind the other. */
  async function doubtUnseen(resource: ServedResource, signal: AbortSignal): Promise<void> {
    const informer = informers.of<ApiObject>(resource);
    await informer.whenSynced(signal);
    if (informer.synced) apply(graph.doubt(resource, ({ namespace, name, uid }) => informer.get(objectKey(namespace, name))?.metadata.uid === uid));
  }

  /** Brings the informers in line with what the server serves. */
  async function rediscover(signal: AbortSignal): Promise<boolean> {
    const found = await discover(client, signal).catch((error: unknown) => {
      if (!signal.aborted) syncErrors?.inc();
      throw error;
    });
    if (found.resources.length === 0) {
      syncErrors?.inc();
      return false;
    }
    if (found.failed.size > 0) log.debug("some groups did not answer discovery", { groups: [...found.failed.keys()] });
    resources.update(found);
    const wanted = new Map(resources.collectable().map((resource) => [`${formatApiVersion(resource)}/${resource.plural}`, resource]));
    for (const [id, { resource, end }] of monitors) {
      if (wanted.has(id)) continue;
      end();
      if (isCustom(resource)) informers.stop(resource); // built-in resources are never gone for good, and others use their informers
      monitors.delete(id);
    }
    for (const [id, resource] of wanted) {
      if (monitors.has(id)) continue;
      monitors.set(id, { resource, end: follow(resource) });
      const kind = formatGroupResource({ group: resource.group, resource: resource.kind });
      if (followed.has(kind)) void doubtUnseen(resource, signal);
      followed.add(kind);
    }
    return found.failed.size === 0;
  }

  async function keepDiscovering(signal: AbortSignal): Promise<void> {
    let pause = new AbortController();
    const ends = [CUSTOM_RESOURCE_DEFINITIONS, API_SERVICES].map((ref) => informers.of<ApiObject>(ref).onChange(() => pause.abort()));
    while (!signal.aborted) {
      await clock.sleep(DISCOVERY_MS, AbortSignal.any([signal, pause.signal]));
      await clock.sleep(SETTLE_MS, signal);
      pause = new AbortController();
      if (signal.aborted) break;
      await rediscover(signal).catch((error: unknown) => { if (!signal.aborted) log.warn("discovery failed, will try again", { error }); });
    }
    for (const end of ends) end();
  }

  const breathe = breather(clock);
  const running = new Map<WorkQueue<string>, Map<string, number>>([[deleteQueue, new Map()], [orphanQueue, new Map()]]); // since when

  async function work(queue: WorkQueue<string>, act: (node: GraphNode) => Promise<"done" | "again">, signal: AbortSignal): Promise<void> {
    const name = queue === deleteQueue ? DELETE_QUEUE : ORPHAN_QUEUE;
    for (let uid = await queue.take(signal); uid !== undefined; uid = await queue.take(signal)) {
      const startMs = clock.uptimeMs();
      running.get(queue)!.set(uid, startMs);
      try {
        const node = graph.get(uid);
        if (node === undefined || (await act(node)) === "done") queue.forget(uid);
        else queue.addRateLimited(uid);
      } catch (error) {
        if (signal.aborted) return;
        const expected = error instanceof UnknownKindError;
        log[expected ? "debug" : "warn"]("collecting failed, will try again", { object: graph.get(uid)?.identity, error });
        metrics?.failed("garbagecollector");
        metrics?.retried(name);
        queue.addRateLimited(uid);
      } finally {
        running.get(queue)!.delete(uid);
        queue.done(uid);
        metrics?.worked(name, clock.uptimeMs() - startMs);
      }
      await breathe();
    }
  }

  async function tryToDelete(node: GraphNode, signal: AbortSignal): Promise<"done" | "again"> {
    const { identity } = node;
    try {
      const outcome = await collect(node, deps, signal);
      if (outcome === "absent") apply(graph.absent(identity));
      return outcome === "later" ? "again" : "done";
    } catch (error) {
      if (error instanceof ScopeError) return "done";
      throw error;
    }
  }

  return {
    name: "controller garbagecollector",
    async run(signal, ready) {
      for (const [name, queue] of [[DELETE_QUEUE, deleteQueue], [ORPHAN_QUEUE, orphanQueue]] as const)
        metrics?.watch(name, { depth: () => queue.size, running: () => [...running.get(queue)!.values()].map((sinceMs) => clock.uptimeMs() - sinceMs) });
      ready();
      for (let tries = 0; !signal.aborted; tries++) {
        try {
          await rediscover(signal);
          break;
        } catch (error) {
          if (signal.aborted) return;
          if (tries > 0) log.warn("discovery failed, will try again", { error });
          await clock.sleep(1000, signal);
        }
      }
      // A foreground deletion ends when no dependents are known: so know them first.
      const late = new AbortController();
      const alarm = clock.after(SYNC_MS_MAX, () => late.abort());
      const first = AbortSignal.any([signal, late.signal]);
      await Promise.all([...monitors.values()].map(({ resource }) => informers.of(resource).whenSynced(first)));
      alarm.cancel();
      await Promise.all([
        keepDiscovering(signal),
        ...Array.from({ length: workers }, () => work(deleteQueue, (node) => tryToDelete(node, signal), signal)),
        ...Array.from({ length: workers }, () => work(orphanQueue, async (node) => { await orphan(node, deps, signal); return "done"; }, signal)),
      ]);
      for (const { end } of monitors.values()) end();
    },
  };
}

/** Built-in groups are "", or have no dot, or end in .k8s.io; so do a few custom ones, whose informers then live on. */
function isCustom({ group }: ServedResource): boolean { return group.includes(".") && !group.endsWith(".k8s.io"); }

/** The owners last found to be gone. An object that is gone never comes back under its uid. */
function goneOwners(): CollectDeps["gone"] {
  const held = new Map<string, Identity[]>();
  return {
    has: (identity) => held.get(identity.uid)?.some((one) => sameIdentity(one, identity)) ?? false,
    add(identity) {
      const same = (held.get(identity.uid) ?? []).filter((one) => !sameIdentity(one, identity));
      held.delete(identity.uid);
      held.set(identity.uid, [...same, identity]);
      const [oldest] = held.keys();
      if (held.size > GONE_MAX && oldest !== undefined) held.delete(oldest);
    },
  };
}
