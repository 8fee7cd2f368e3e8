/**
 * Since when the world has been as an endpoint write tells it: the earliest change since the last write, for measuring how long programming takes.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/endpointslice/util/trigger_time_tracker.go
 */
import type { Pod, Service } from "../../api/gen/core.v1.ts";
import { keyOf, type ObjectKey } from "../../api/meta/object-meta.ts";
import { podCondition } from "../pod-state.ts";

interface Seen { readonly service: string; readonly pods: ReadonlyMap<string, string> }

export class TriggerTimes {
  readonly #seen = new Map<ObjectKey, Seen>();

  /** Timestamps in UTC of one form compare as text. */
  changedAt(service: Readonly<Service>, pods: readonly Readonly<Pod>[]): string | undefined {
    const key = keyOf(service);
    const before = this.#seen.get(key);
    const created = service.metadata.creationTimestamp;
    const times = new Map<string, string>();
    let earliest: string | undefined;
    for (const pod of pods) {
      const at = podCondition(pod, "Ready")?.lastTransitionTime;
      if (at === undefined) continue;
      times.set(pod.metadata.name, at);
      if (at > (before?.pods.get(pod.metadata.name) ?? "") && (earliest === undefined || at < earliest)) earliest = at;
    }
    this.#seen.set(key, { service: created, pods: times });
    if (before === undefined) return created;
    if (created > before.service && (earliest === undefined || created < earliest)) earliest = created;
    return earliest;
  }

  forget(key: ObjectKey): void { this.#seen.delete(key); }
}
