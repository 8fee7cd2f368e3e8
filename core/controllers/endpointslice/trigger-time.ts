/**
 * Since when the world has been as an endpoint write tells it: the earliest change since the last write, for measuring how long programming takes.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/endpointslice/util/trigger_time_tracker.go
 */
import type { Pod, Service } from "../../api/gen/core.v1.ts";
import { keyOf, type ObjectKey } from "../../api/meta/object-meta.ts";
import { podCondition } from "../pod-state.ts";

interface Seen { readonly service: string; readonly pods: Map<string, string> }

export class TriggerTimes {
  readonly #seen = new Map<ObjectKey, Seen>();

  /** Timestamps in UTC of one form compare as text. */
  changedAt(service: Readonly<Service>, pods: readonly Readonly<Pod>[]): string | undefined {
    const key = keyOf(service);
    const before = this.#seen.get(key);
    const created = service.metadata.creationTimestamp;
    const times = before?.pods ?? new Map<string, string>(); // of ten thousand pods one has changed
    let earliest: string | undefined, there = 0;
    for (const pod of pods) {
      const at = podCondition(pod, "Ready")?.lastTransitionTime;
      if (at === undefined) continue;
      there++;
      const was = times.get(pod.metadata.name);
      if (at === was) continue;
      times.set(pod.metadata.name, at);
      if (at > (was ?? "") && (earliest === undefined || at < earliest)) earliest = at;
    }
    if (times.size > there) forgetOthers(times, pods);
    this.#seen.set(key, { service: created, pods: times });
    if (before === undefined) return created;
    if (created > before.service && (earliest === undefined || created < earliest)) earliest = created;
    return earliest;
  }

  forget(key: ObjectKey): void { this.#seen.delete(key); }
}

function forgetOthers(times: Map<string, string>, pods: readonly Readonly<Pod>[]): void {
  const there = new Set(pods.filter((pod) => podCondition(pod, "Ready")?.lastTransitionTime !== undefined).map(({ metadata }) => metadata.name));
  for (const name of times.keys()) if (!there.has(name)) times.delete(name);
}
