/**
 * A simulated cluster on which nothing fails, for tests of what users rely on: the real API, all controllers, the scheduler, nodes that pretend; hours pass in a blink.
 *
 *   await using cluster = await fairCluster({ nodes: 3 });
 *   await cluster.create(DEPLOYMENTS, { metadata: { name: "web" }, spec: … });
 *   await cluster.until(() => cluster.all(PODS).length === 3);
 */
import { defaultTolerationSeconds } from "../../core/admission/default-toleration-seconds.ts";
import { priorityAdmission } from "../../core/admission/priority.ts";
import type { Pod } from "../../core/api/gen/core.v1.ts";
import { type ApiObject, namespaceOf, type NewObject } from "../../core/api/meta/object-meta.ts";
import type { ResourceRef } from "../../core/client/client.ts";
import type { CacheEvent } from "../../core/registry/generic/audience.ts";
import { lookup } from "../../core/client/lookup.ts";
import { EVENTS, PRIORITY_CLASSES } from "../../core/client/resources.ts";
import { SimulatedCluster } from "./cluster.ts";

const { signal } = new AbortController();
type Loose = { readonly metadata: { readonly name?: string; readonly [field: string]: unknown }; readonly [field: string]: unknown };

export interface FairCluster extends AsyncDisposable {
  readonly inner: SimulatedCluster;
  readonly nowMs: number;
  create<T extends ApiObject>(ref: ResourceRef<T>, object: Loose): Promise<T>;
  get<T extends ApiObject>(ref: ResourceRef<T>, name: string): Promise<T>;
  list<T extends ApiObject>(ref: ResourceRef<T>): Promise<T[]>;
  patch<T extends ApiObject>(ref: ResourceRef<T>, name: string, patch: object, subresource?: string): Promise<T>;
  remove<T extends ApiObject>(ref: ResourceRef<T>, name: string, options?: object): Promise<void>;
  /** Of the API, by hand. */
  ask(method: "GET" | "POST" | "DELETE", path: string, body?: unknown): Promise<unknown>;
  /** Lets time pass. */
  pass(seconds: number): Promise<void>;
  /** Lets time pass until it holds; throws after so many seconds. Returns how many it took. */
  until(holds: () => Promise<boolean> | boolean, secondsMax?: number): Promise<number>;
  /** "Normal ScalingReplicaSet: Scaled up …" of the objects of this name, or all. */
  events(name?: string): Promise<string[]>;
  /** Every event of the API server so far, of the resources that are looked at. */
  readonly seen: readonly { readonly atMs: number; readonly prefix: string; readonly type: CacheEvent["type"]; readonly object: Readonly<ApiObject> }[];
}

export async function fairCluster({ nodes = 3 }: { readonly nodes?: number } = {}): Promise<FairCluster> {
  const seen: { atMs: number; prefix: string; type: CacheEvent["type"]; object: Readonly<ApiObject> }[] = [];
  const inner: SimulatedCluster = new SimulatedCluster(1, (prefix, { type, entry }) => void seen.push({ atMs: inner.clock.uptimeMs(), prefix, type, object: entry.object }), ({ client, informers }) => {
    const classes = informers.of(PRIORITY_CLASSES);
    const source = client.resource(PRIORITY_CLASSES);
    return [priorityAdmission({ priorityClasses: lookup(classes, source), informer: classes, client: source }), defaultTolerationSeconds()];
  });
  await inner.startServer();
  inner.startPlane("plane-a");
  for (let i = 0; i < nodes; i++) inner.startNode(`node-${i}`);
  await inner.clock.run(20_000);

  /** Requests are answered while time stands still, or nearly so. */
  async function answered<R>(request: Promise<R>): Promise<R> {
    let done = false;
    const settled = request.finally(() => { done = true; });
    settled.catch(() => undefined); // whoever asked is told below
    for (let i = 0; i < 1000 && !done; i++) await inner.clock.run(1);
    return await settled;
  }
  const named = (ref: ResourceRef, name: string) => ({ metadata: { name, ...(ref.namespaced ? { namespace: "default" } : {}) } });
  async function list<T extends ApiObject>(ref: ResourceRef<T>): Promise<T[]> {
    const { items } = await answered(inner.client.resource(ref).list({}, { signal }));
    return items.filter((one) => !ref.namespaced || namespaceOf(one) === "default") as T[];
  }
  return {
    inner, seen, list,
    get nowMs() { return inner.clock.nowMs(); },
    create: (ref, object) => answered(inner.client.resource(ref).create({ apiVersion: ref.group === "" ? ref.version : `${ref.group}/${ref.version}`, kind: ref.kind, ...object, metadata: { ...(ref.namespaced ? { namespace: "default" } : {}), ...object.metadata } } as unknown as NewObject<never>, { signal })) as never,
    get: (ref, name) => answered(inner.client.resource(ref).get(named(ref, name), { signal })),
    patch: (ref, name, patch, subresource) => answered(inner.client.resource(ref).patch(named(ref, name), "application/merge-patch+json", patch, { signal, ...(subresource === undefined ? {} : { subresource }) })),
    async remove(ref, name, options = {}) { await answered(inner.client.resource(ref).delete(named(ref, name), options, { signal })); },
    ask: (method, path, body) => answered(inner.client.request({ method, path, signal, ...(body === undefined ? {} : { body }) })),
    pass: (seconds) => inner.clock.run(seconds * 1000),
    async until(holds, secondsMax = 120) {
      const startMs = inner.clock.uptimeMs();
      for (let seconds = 0; !(await holds()); seconds++) {
        if (seconds >= secondsMax) throw new Error(`it did not come about in ${secondsMax} s: ${holds.toString().slice(0, 300)}`);
        await inner.clock.run(1000);
      }
      return (inner.clock.uptimeMs() - startMs) / 1000;
    },
    async events(name) {
      const all = await list(EVENTS);
      return all.filter(({ involvedObject }) => name === undefined || involvedObject.name === name).map(({ type, reason, message }) => `${type} ${reason}: ${message}`);
    },
    async [Symbol.asyncDispose]() { await inner.end(); },
  };
}

export const template = (app: string, more: object = {}, { labels = {}, annotations }: { readonly labels?: Record<string, string>; readonly annotations?: Record<string, string> } = {}) => ({
  metadata: { labels: { app, ...labels }, ...(annotations && { annotations }) }, spec: { terminationGracePeriodSeconds: 5, containers: [{ name: "c", image: "app:1", resources: { requests: { cpu: "100m" } } }], ...more },
});
/** No node will ever have them. */
export const NOWHERE = { nodeSelector: { "no-such": "node" } };
export const isReady = (pod: Readonly<Pod>): boolean => pod.metadata.deletionTimestamp === undefined && (pod.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") ?? false);
