/**
 * Serves custom resources: follows CustomResourceDefinitions in the watch cache, keeps the registry's table and their status in step.
 *
 *   a definition's event ──▶ its names and conditions are worked out ──▶ its status says so ──▶ the table serves it
 *   a deletion           ──▶ all its objects are deleted ──▶ the finalizer goes, and with it the definition and its rows ──▶ late-objects.ts: what comes after that
 *
 * Whoever sees a definition Established can use it, and whoever can use it sees it Established: the table is changed within the commit of the status. A change of an
 * established definition is in the table before the write of it is answered, too.
 */
import type { CustomResourceDefinition, CustomResourceDefinitionStatus } from "../../api/gen/apiextensions.v1.ts";
import { errorText } from "../../api/meta/error-text.ts";
import { isConflict, isNotFound } from "../../api/meta/status-error.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { updateManagedFields } from "../../api/patch/apply/update.ts";
import { builtInSchemas } from "../../api/patch/facts-schema.ts";
import type { ObjectSchema } from "../../api/patch/schema.ts";
import type { Clock } from "../../lifecycle/clock.ts";
import type { Random } from "../../lifecycle/random.ts";
import type { Runnable } from "../../lifecycle/run-all.ts";
import { until } from "../../lifecycle/until.ts";
import { type WorkQueue, workQueue } from "../../lifecycle/work-queue.ts";
import type { Log } from "../../observe/log.ts";
import { statusPart } from "../core/status-part.ts";
import type { WriteContext } from "../generic/resource.ts";
import type { ResourceCache } from "../generic/resource-cache.ts";
import type { ResourceStore } from "../generic/store.ts";
import type { UpdateOptions } from "../generic/stored-resource.ts";
import type { Registry } from "../registry.ts";
import { isTrue, namesTaken, planStatus, statusOf, withCondition } from "./crd-status.ts";
import { CLEANUP_FINALIZER } from "./custom-resource-definition.ts";
import { CustomKind, type RemoteConversion } from "./custom/custom-kind.ts";
import { LateObjects } from "./late-objects.ts";

type Definition = Readonly<CustomResourceDefinition>;

export interface CrdControllerDeps {
  readonly registry: Registry;
  /** What changes the version of its objects, if that is a webhook's work. */
  remoteConversion(crd: Definition): RemoteConversion | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

/** Definitions whose objects are deleted at the same time. Source: apiserver.go crdFinalizer.Run(5) */
const FINALIZERS = 5;
/** How long a deletion waits for objects that have finalizers of their own before it says so and tries again. Source: crd_finalizer.go */
const DELETION_WAIT_MS = 60_000;
const MANAGER = "kube-apiserver";

export function crdController(deps: CrdControllerDeps): Runnable {
  return {
    name: "custom resource definitions",
    run: (signal, ready) => new CrdController(deps).run(signal, ready),
  };
}

class CrdController {
  readonly #deps: CrdControllerDeps;
  readonly #store: ResourceStore;
  readonly #naming: WorkQueue<string>;
  readonly #finalizing: WorkQueue<string>;
  readonly #late: LateObjects;
  /** What is served of each definition: its spec, its names and whether it is ending. */
  readonly #served = new Map<string, { readonly spec: unknown; readonly names: unknown; readonly terminating: boolean }>();

  constructor(deps: CrdControllerDeps) {
    this.#deps = deps;
    this.#store = deps.registry.storeOf("apiextensions.k8s.io", "customresourcedefinitions")!;
    this.#naming = workQueue(deps.clock);
    this.#finalizing = workQueue(deps.clock);
    this.#late = new LateObjects(deps.clock);
  }

  async run(signal: AbortSignal, ready: () => void): Promise<void> {
    const stop = this.#store.cache.listen(({ type, entry }) => this.#changed(type === "DELETED" ? undefined : asDefinition(entry.object), entry.object.metadata.name));
    try {
      for (const { object } of this.#store.cache.values()) this.#changed(asDefinition(object), object.metadata.name);
      ready();
      await Promise.all([
        this.#work(this.#naming, (name) => this.#sync(name, signal), signal),
        this.#work(this.#late.queue, (name) => this.#deleteLate(name, signal), signal),
        ...Array.from({ length: FINALIZERS }, () => this.#work(this.#finalizing, (name) => this.#finalize(name, signal), signal)),
      ]);
    } finally {
      stop();
      this.#late.stop();
    }
  }

  /** Within the commit: what is established is served as it is from now on. */
  #changed(crd: Definition | undefined, name: string): void {
    if (!crd) {
      this.#withdraw(name);
      this.#late.queue.add(name);
      for (const { object } of this.#store.cache.values()) if (name.endsWith(`.${asDefinition(object).spec.group}`)) this.#naming.add(object.metadata.name); // its names are free
      return;
    }
    if (isTrue(crd.status, "Established")) this.#serve(crd, statusOf(crd));
    if (crd.metadata.deletionTimestamp && crd.metadata.finalizers?.includes(CLEANUP_FINALIZER)) this.#finalizing.add(name);
    this.#naming.add(name);
  }

  async #work(queue: WorkQueue<string>, handle: (name: string) => Promise<void>, signal: AbortSignal): Promise<void> {
    for (let name = await queue.take(signal); name !== undefined; name = await queue.take(signal)) {
      try {
        await handle(name);
        queue.forget(name);
      } catch (error) {
        if (signal.aborted) return;
        this.#deps.log.warn("a custom resource definition could not be looked after; trying again", { definition: name, error });
        queue.addRateLimited(name);
      } finally {
        queue.done(name);
      }
    }
  }

  #definition(name: string): Definition | undefined {
    const object = this.#store.cache.get(this.#store.keyOf("", name))?.object;
    return object && asDefinition(object);
  }

  #group(group: string): Definition[] {
    return [...this.#store.cache.values()].map(({ object }) => asDefinition(object)).filter(({ spec }) => spec.group === group);
  }

  async #sync(name: string, signal: AbortSignal): Promise<void> {
    const crd = this.#definition(name);
    if (!crd) return;
    const planned = this.#plan(crd);
    if (Bun.deepEquals(planned, statusOf(crd))) return;
    await this.#write(name, (old) => ({ ...old, status: this.#plan(old) }), signal);
    if (!Bun.deepEquals(planned.acceptedNames, statusOf(crd).acceptedNames))
      for (const other of this.#group(crd.spec.group)) if (other.metadata.name !== name) this.#naming.add(other.metadata.name); // a name may have become free
  }

  #plan(crd: Definition): CustomResourceDefinitionStatus { return planStatus(crd, namesTaken(this.#group(crd.spec.group)), this.#deps.clock.nowMs()); }

  #serve(crd: Definition, status: CustomResourceDefinitionStatus): void {
    const { name } = crd.metadata;
    const { acceptedNames: names } = status;
    const terminating = isTrue(crd.status, "Terminating");
    const before = this.#served.get(name);
    const isSame = before !== undefined && (before.spec === crd.spec || Bun.deepEquals(before.spec, crd.spec)) && Bun.deepEquals(before.names, names);
    if (isSame && before.terminating === terminating) return;
    try {
      this.#deps.registry.setCustom(new CustomKind({ crd, remote: this.#deps.remoteConversion(crd), clock: this.#deps.clock }), names, { isEnding: isSame });
      this.#served.set(name, { spec: crd.spec, names, terminating });
    } catch (error) {
      this.#deps.log.error("a custom resource cannot be served", { definition: name, error });
    }
  }

  #withdraw(name: string): void {
    this.#served.delete(name);
    const dot = name.indexOf(".");
    this.#deps.registry.removeCustom(name.slice(dot + 1), name.slice(0, dot));
  }

  async #finalize(name: string, signal: AbortSignal): Promise<void> {
    const crd = this.#definition(name);
    if (!crd?.metadata.deletionTimestamp || !crd.metadata.finalizers?.includes(CLEANUP_FINALIZER)) return;
    await this.#say(name, "True", "InstanceDeletionInProgress", "CustomResource deletion is in progress", signal);
    const { group, names } = crd.spec;
    if (this.#deps.registry.isBuiltIn(group, names.plural)) return this.#release(name, "OverlappingBuiltInResource", "instances overlap with built-in resources in storage", signal);
    const store = this.#deps.registry.storeOf(group, names.plural);
    if (!store || !isTrue(crd.status, "Established")) return this.#release(name, "NeverEstablished", "resource was never established", signal);
    await this.#deleteAll(name, store, signal);
    await this.#release(name, "InstanceDeletionCompleted", "removed all instances", signal);
    this.#late.follow(name, store);
  }

  /** Not where there is a definition again: they may be its own. */
  async #deleteLate(name: string, signal: AbortSignal): Promise<void> {
    const store = this.#late.storeOf(name);
    if (!store || this.#definition(name)) return;
    const problems = await this.#deleteEach(store, signal);
    if (problems.length > 0) throw new Error(problems.join(", "));
  }

  /** The last word of it, and with it the finalizer goes: nobody sees a definition that is no longer ending and still there for this. */
  async #release(name: string, reason: string, message: string, signal: AbortSignal): Promise<void> {
    await this.#write(name, (old) => ({
      ...old, metadata: { ...old.metadata, finalizers: (old.metadata.finalizers ?? []).filter((one) => one !== CLEANUP_FINALIZER) },
      status: withCondition(statusOf(old), { type: "Terminating", status: "False", reason, message }, this.#deps.clock.nowMs()),
    }), signal);
  }

  /** What kept one from being deleted, each once. `tried`: those that are not tried again, and from now on all there are. */
  async #deleteEach(store: ResourceStore, signal: AbortSignal, tried = new WeakSet<object>()): Promise<readonly string[]> {
    const problems = new Set<string>();
    for (const { object, object: { metadata } } of [...store.cache.values()]) {
      if (tried.has(object)) continue;
      tried.add(object);
      await store.delete(metadata.namespace ?? "", metadata.name, {}, { context: this.#context(), signal }).catch((error: unknown) => {
        if (!isNotFound(error)) problems.add(errorText(error));
      });
    }
    return [...problems];
  }

  /** Also what still comes: whoever made it was let in before. What a definition of other scope has left stays: it has no name here. */
  async #deleteAll(name: string, store: ResourceStore, signal: AbortSignal): Promise<void> {
    const tried = new WeakSet<object>();
    const late = new AbortController();
    const timer = this.#deps.clock.after(DELETION_WAIT_MS, () => late.abort());
    try {
      const ended = AbortSignal.any([signal, late.signal]);
      while (!ended.aborted && store.cache.size > 0) {
        const problems = await this.#deleteEach(store, signal, tried);
        if (problems.length > 0) return await this.#fail(name, "InstanceDeletionFailed", `could not issue all deletes: ${problems.join(", ")}`, signal);
        await emptiedOrMore(store.cache, tried, ended);
      }
    } finally {
      timer.cancel();
    }
    if (store.cache.size > 0) await this.#fail(name, "InstanceDeletionCheck", "could not confirm zero CustomResources remaining: context deadline exceeded", signal);
  }

  /** Throws. */
  async #fail(name: string, reason: string, message: string, signal: AbortSignal): Promise<never> {
    await this.#say(name, "True", reason, message, signal);
    throw new Error(message);
  }

  async #say(name: string, status: "True" | "False", reason: string, message: string, signal: AbortSignal): Promise<void> {
    await this.#write(name, (old) => ({ ...old, status: withCondition(statusOf(old), { type: "Terminating", status, reason, message }, this.#deps.clock.nowMs()) }), signal);
  }

  /** Writes status and finalizers as the server itself. A definition that is gone or has changed is seen again. */
  async #write(name: string, change: (old: Definition) => Definition, signal: AbortSignal): Promise<void> {
    const context = this.#context();
    const options: UpdateOptions = { context, signal, subresource: STATUS };
    try {
      await this.#store.update("", name, (live) => {
        const changed = change(asDefinition(live!));
        const updated = { ...changed, metadata: structuredClone(changed.metadata) } as unknown as ApiObject; // the spec is the stored one's, which need not be looked at again
        return Promise.resolve(updateManagedFields<ApiObject>({ live, updated, manager: MANAGER, apiVersion: updated.apiVersion, subresource: "status", schema: crdSchema(), nowMs: context.nowMs }));
      }, options);
    } catch (error) {
      if (!isNotFound(error) && !isConflict(error)) throw error;
    }
  }

  #context(): WriteContext {
    const { clock, random } = this.#deps;
    return { user: { name: "system:apiserver", groups: ["system:masters"] }, nowMs: clock.nowMs(), dryRun: false, uuid: () => random.uuid() };
  }
}

/** Waits until nothing is left, or something is there that nobody has deleted, or has `tried` to, yet. */
async function emptiedOrMore(cache: ResourceCache, tried: WeakSet<object>, signal: AbortSignal): Promise<void> {
  const isNew = (object: Readonly<ApiObject>): boolean => object.metadata.deletionTimestamp === undefined && !tried.has(object);
  if (cache.size === 0 || Iterator.from(cache.values()).some(({ object }) => isNew(object))) return;
  let stop = (): void => undefined;
  await until(signal, (done) => { stop = cache.listen(({ type, entry }) => { if (cache.size === 0 || (type !== "DELETED" && isNew(entry.object))) done(); }); });
  stop();
}

const STATUS = statusPart();

function crdSchema(): ObjectSchema { return builtInSchemas.schemaOf({ group: "apiextensions.k8s.io", version: "v1", kind: "CustomResourceDefinition" })!; }

export function asDefinition(object: Readonly<ApiObject>): Definition { return object as unknown as Definition; }
