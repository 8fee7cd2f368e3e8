/**
 * Mirror pods: what the API server shows of static pods. One for each, made again when someone deletes it, gone with its static pod. What
 * happens to a mirror never reaches the static pod.
 *
 * Source: kubernetes v1.36 pkg/kubelet/pod/mirror_client.go, pkg/kubelet/kubelet.go (SyncPod)
 */
import type { Node, Pod } from "../../../core/api/gen/core.v1.ts";
import { isDeleting, keyOf, type ObjectKey } from "../../../core/api/meta/object-meta.ts";
import { isAlreadyExists, isConflict, isNotFound } from "../../../core/api/meta/status-error.ts";
import type { Client } from "../../../core/client/client.ts";
import { PODS } from "../../../core/client/resources.ts";
import type { Log } from "../../../core/observe/log.ts";
import { jsonCopy } from "../status/status-patch.ts";
import { CONFIG_HASH, CONFIG_MIRROR } from "./manifest.ts";

interface Deps {
  readonly client: Client;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** The node's object: it owns its mirrors. */
  readonly node: () => Pick<Node, "metadata">;
}

export class MirrorPods {
  readonly #deps: Deps;
  readonly #mirrors = new Map<ObjectKey, Pod>();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** From the API server. */
  observe(mirror: Pod, deleted: boolean): void {
    if (deleted) this.#forget(mirror);
    else this.#mirrors.set(keyOf(mirror), mirror);
  }

  /** The mirror of this very static pod, if there is one: a status can be written to it. */
  of(pod: Pod): Pod | undefined {
    const mirror = this.#mirrors.get(keyOf(pod));
    return mirror && !isDeleting(mirror) && isMirrorOf(mirror, pod) ? mirror : undefined;
  }

  /** Makes what is missing, removes what mirrors nothing (any more). `ending`: of what has not ended yet, mirrors stay as they are. Failures are logged, and keep no other: it is called again. */
  async reconcile(wanted: readonly Pod[], ending: ReadonlySet<ObjectKey>): Promise<void> {
    const byKey = new Map(wanted.map((pod) => [keyOf(pod), pod]));
    for (const [key, mirror] of [...this.#mirrors]) {
      if (ending.has(key)) continue;
      const pod = byKey.get(key);
      if (!pod || isDeleting(mirror) || !isMirrorOf(mirror, pod)) await this.#trying(mirror, () => this.#remove(mirror));
    }
    for (const [key, pod] of byKey) if (!this.#mirrors.has(key) && !ending.has(key)) await this.#trying(pod, () => this.#create(pod));
  }

  async #trying({ metadata: { name, namespace } }: Pod, work: () => Promise<void>): Promise<void> {
    const { log, signal } = this.#deps;
    try {
      await work();
    } catch (error) {
      if (!signal.aborted) log.warn("a mirror pod is not brought in line, next try soon", { pod: name, namespace, error });
    }
  }

  async #remove(mirror: Pod): Promise<void> {
    const { client, signal } = this.#deps;
    try {
      await client.resource(PODS).delete(mirror, { gracePeriodSeconds: 0, preconditions: { uid: mirror.metadata.uid } }, { signal });
    } catch (error) {
      if (!isNotFound(error) && !isConflict(error)) throw error;
    }
    this.#forget(mirror);
  }

  /** Unless another one has been made in its place since. */
  #forget(mirror: Pod): void {
    if (this.#mirrors.get(keyOf(mirror))?.metadata.uid === mirror.metadata.uid) this.#mirrors.delete(keyOf(mirror));
  }

  async #create({ apiVersion, kind, metadata: { name, namespace, labels, annotations = {} }, spec }: Pod): Promise<void> {
    const { client, signal, node } = this.#deps;
    const owner = node().metadata;
    const owners = owner.uid ? { ownerReferences: [{ apiVersion: "v1", kind: "Node", name: owner.name, uid: owner.uid, controller: true }] } : {};
    const metadata = { name, namespace, labels, annotations: { ...annotations, [CONFIG_MIRROR]: annotations[CONFIG_HASH] ?? "" }, ...owners };
    try {
      const created = await client.resource(PODS).create(jsonCopy({ apiVersion, kind, metadata, spec }), { signal });
      this.#mirrors.set(keyOf(created), created);
    } catch (error) {
      if (!isAlreadyExists(error)) throw error; // the informer will show it to us
    }
  }
}

function isMirrorOf(mirror: Pod, pod: Pod): boolean {
  return mirror.metadata.annotations?.[CONFIG_MIRROR] === pod.metadata.annotations?.[CONFIG_HASH];
}
