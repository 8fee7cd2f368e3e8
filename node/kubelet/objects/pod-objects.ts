/**
 * The ConfigMaps and Secrets that the pods of this node name, each watched by itself: a node may not list those of others. A watch lives as
 * long as some pod needs its object; what is immutable is read once. Of a pod that names very many those that are too many are read each time. With configMapAndSecretChangeDetectionStrategy Get all are read each time instead.
 *
 * Source: kubernetes v1.36 pkg/kubelet/util/manager/watch_based_manager.go, pkg/kubelet/{secret,configmap} simple managers (semantics)
 */
import type { ConfigMap, Pod, Secret } from "../../../core/api/gen/core.v1.ts";
import { notFound } from "../../../core/api/meta/status-error.ts";
import type { Client, ResourceRef } from "../../../core/client/client.ts";
import { CONFIG_MAPS, SECRETS } from "../../../core/client/resources.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Log } from "../../../core/observe/log.ts";
import type { ObjectSource } from "../containers/environment.ts";
import { allContainers } from "../pod-spec.ts";

type Kind = "configMap" | "secret";
type Value = Readonly<ConfigMap | Secret>;

interface Entry {
  readonly pods: Set<string>;
  readonly stop: AbortController;
  /** Undefined: nothing known yet. null: there is none. */
  value: Value | null | undefined;
  readonly known: PromiseWithResolvers<void>;
}

/** Of one pod, volumes first. A watch takes some 20 kB of the server and of the node, and a pod has room for the names of thirty thousand objects that need not be there. */
const WATCHED_MAX = 50;
const RETRY_MS = 1_000;
/** A pod that starts does not wait longer for a watch; it asks by itself and sees the error. */
const FIRST_ANSWER_MS = 5_000;

const REFS: Readonly<Record<Kind, ResourceRef<ConfigMap> | ResourceRef<Secret>>> = { configMap: CONFIG_MAPS, secret: SECRETS };

export interface PodObjects extends ObjectSource {
  /** From now on the objects `pod` names are kept current; `onChange` is called with its uid when one changes. */
  retain(pod: Pod): void;
  release(podUid: string): void;
  close(): void;
}

interface Deps {
  readonly client: Client;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** Nothing is watched: who asks is told what there is now. */
  readonly readsAnew: boolean;
  readonly onChange: (podUid: string) => void;
}

export function podObjects({ client, clock, log, signal, readsAnew, onChange }: Deps): PodObjects {
  const entries = new Map<string, Entry>();

  async function follow(kind: Kind, namespace: string, name: string, entry: Entry, quit: AbortSignal): Promise<void> {
    const objects = client.resource(REFS[kind] as ResourceRef<ConfigMap>);
    const query = { namespace, fieldSelector: `metadata.name=${name}` };
    while (!quit.aborted) {
      try {
        const { items, metadata } = await objects.list(query, { signal: quit });
        update(entry, items[0] ?? null);
        if (items[0]?.immutable) return;
        for await (const { type, object } of objects.watch({ ...query, resourceVersion: metadata.resourceVersion }, { signal: quit })) {
          if (type !== "BOOKMARK") update(entry, type === "DELETED" ? null : object);
        }
      } catch (error) {
        if (quit.aborted) return;
        log.debug("watch of an object of a pod broke, next try soon", { kind, namespace, name, error });
        entry.known.resolve();
      }
      await clock.sleep(RETRY_MS, quit);
    }
  }

  function update(entry: Entry, value: Value | null): void {
    const changed = entry.value !== undefined && entry.value?.metadata.resourceVersion !== value?.metadata.resourceVersion;
    entry.value = value;
    entry.known.resolve();
    if (changed) for (const uid of entry.pods) onChange(uid);
  }

  async function get(kind: Kind, namespace: string, name: string): Promise<Value> {
    const ref = REFS[kind] as ResourceRef<ConfigMap>;
    const entry = entries.get(keyOf(kind, namespace, name));
    if (entry?.value === undefined && entry) await Promise.race([entry.known.promise, clock.sleep(FIRST_ANSWER_MS, AbortSignal.any([signal, entry.stop.signal]))]);
    if (entry?.value === null) throw notFound({ group: ref.group, resource: ref.plural.replace(/s$/, "") }, name); // upstream's text names the kind: configmap "x" not found
    return entry?.value ?? await client.resource(ref).get({ metadata: { namespace, name } }, { signal });
  }

  function release(podUid: string): void {
    for (const [key, entry] of entries) {
      if (!entry.pods.delete(podUid) || entry.pods.size > 0) continue;
      entry.stop.abort();
      entries.delete(key);
    }
  }

  return {
    configMap: async (namespace, name) => (await get("configMap", namespace, name)) as ConfigMap,
    secret: async (namespace, name) => (await get("secret", namespace, name)) as Secret,
    retain(pod) {
      if (readsAnew) return;
      const namespace = pod.metadata.namespace ?? "";
      const watched = new Set<string>();
      for (const [kind, name] of namedObjects(pod)) {
        const key = keyOf(kind, namespace, name);
        if (watched.size >= WATCHED_MAX && !watched.has(key)) continue;
        watched.add(key);
        const before = entries.get(key);
        if (before) {
          before.pods.add(pod.metadata.uid);
          continue;
        }
        const entry: Entry = { pods: new Set([pod.metadata.uid]), stop: new AbortController(), value: undefined, known: Promise.withResolvers() };
        entries.set(key, entry);
        void follow(kind, namespace, name, entry, AbortSignal.any([signal, entry.stop.signal]));
      }
    },
    release,
    close() {
      for (const { stop } of entries.values()) stop.abort();
      entries.clear();
    },
  };
}

function keyOf(kind: Kind, namespace: string, name: string): string {
  return `${kind}/${namespace}/${name}`;
}

function namedObjects({ spec }: Pod): (readonly [Kind, string])[] {
  const names: [Kind, string | undefined][] = [];
  for (const { configMap, secret, projected } of spec.volumes ?? []) {
    names.push(["configMap", configMap?.name], ["secret", secret?.secretName]);
    for (const source of projected?.sources ?? []) names.push(["configMap", source.configMap?.name], ["secret", source.secret?.name]);
  }
  for (const { name } of spec.imagePullSecrets ?? []) names.push(["secret", name]);
  for (const { container } of allContainers(spec)) {
    for (const { configMapRef, secretRef } of container.envFrom ?? []) names.push(["configMap", configMapRef?.name], ["secret", secretRef?.name]);
    for (const { valueFrom } of container.env ?? []) names.push(["configMap", valueFrom?.configMapKeyRef?.name], ["secret", valueFrom?.secretKeyRef?.name]);
  }
  return names.flatMap(([kind, name]) => (name ? [[kind, name] as const] : []));
}
