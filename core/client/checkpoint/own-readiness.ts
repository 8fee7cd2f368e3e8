/**
 * While no server can be reached, nobody adds pods to the endpoints of Services. This node does it for its own, for itself: a pod of it that has become ready meanwhile is an endpoint here.
 *
 * Whose pods are ready is what the kubelet would write to the server, if it could. Nothing is taken away that the server said: a Service may want its pods ready or not, and one that fails its
 * probe is better than none where nobody replaces it.
 */
import type { Pod } from "../../api/gen/core.v1.ts";
import type { EndpointSlice } from "../../api/gen/discovery.v1.ts";
import { isConditionTrue } from "../../api/meta/conditions.ts";
import type { ApiRequest, ApiWatchEvent } from "../transport.ts";

const POD_STATUS = /^\/api\/v1\/namespaces\/[^/]+\/pods\/[^/]+\/status$/;
const SLICES = /^\/apis\/discovery\.k8s\.io\/v1\/(namespaces\/[^/]+\/)?endpointslices$/;

export function listsEndpoints(path: string): boolean { return SLICES.test(path); }

export class OwnReadiness {
  readonly #ready = new Set<string>(); // uids of pods
  #changed = Promise.withResolvers<void>();
  #serial = 0;

  /** Resolves when a pod has become ready, or is no longer. */
  get changed(): Promise<void> { return this.#changed.promise; }

  /** A write that may be a pod's status: what of it differs from what the server knows. */
  heard({ method, path, body }: Pick<ApiRequest, "method" | "path" | "body">): void {
    if (method !== "PATCH" || !POD_STATUS.test(path)) return;
    const { metadata, status } = (body ?? {}) as Partial<Pod>;
    if (!metadata?.uid) return;
    const isReady = isConditionTrue(status?.conditions, "Ready");
    if (isReady === this.#ready.has(metadata.uid)) return;
    if (isReady) this.#ready.add(metadata.uid);
    else this.#ready.delete(metadata.uid);
    this.#tell();
  }

  /** The server knows it all again. */
  forget(): void {
    this.#ready.clear();
    this.#tell();
  }

  /** What differs from what has been shown (by key, changed with it), as events. `slices`: as the server had them. */
  *events(slices: Iterable<readonly [key: string, slice: EndpointSlice]>, shown: Map<string, string>): Generator<ApiWatchEvent> {
    for (const [key, slice] of slices) {
      const uids = (slice.endpoints ?? []).flatMap((endpoint) => (this.#isReadyNow(endpoint) ? endpoint.targetRef!.uid! : [])).join();
      if (uids === (shown.get(key) ?? "")) continue;
      shown.set(key, uids);
      const endpoints = (slice.endpoints ?? []).map((endpoint) => (this.#isReadyNow(endpoint) ? { ...endpoint, conditions: { ...endpoint.conditions, ready: true, serving: true } } : endpoint));
      yield { type: "MODIFIED", object: { ...slice, metadata: { ...slice.metadata, resourceVersion: `own-${++this.#serial}` }, endpoints } as never };
    }
  }

  #isReadyNow({ conditions, targetRef }: NonNullable<EndpointSlice["endpoints"]>[number]): boolean {
    return conditions?.ready === false && !conditions.terminating && targetRef?.uid !== undefined && this.#ready.has(targetRef.uid);
  }

  #tell(): void {
    const told = this.#changed;
    this.#changed = Promise.withResolvers();
    told.resolve();
  }
}
