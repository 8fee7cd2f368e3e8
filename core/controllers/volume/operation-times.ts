/**
 * How long volumes take from when one is first wanted until its claim has it, and from when it is to go until it is gone: what provisioners do in between cannot be seen otherwise.
 *
 * Source: kubernetes v1.36 pkg/controller/volume/persistentvolume/metrics/metrics.go
 */
import type { ObjectKey } from "../../api/meta/object-meta.ts";
import type { Clock } from "../../lifecycle/clock.ts";
import type { Metrics } from "../../observe/metrics.ts";

type Operation = "provision" | "delete";

const SECONDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600];

/** By claim, or by volume. */
export interface OperationTimes {
  /** It may have begun before. */
  began(key: ObjectKey, provisioner: string, operation: Operation): void;
  ended(key: ObjectKey): void;
  /** A step of it; it goes on. */
  failed(key: ObjectKey): void;
  /** Nobody wants it any more. */
  forget(key: ObjectKey): void;
}

export function operationTimes(metrics: Metrics, clock: Pick<Clock, "uptimeMs">): OperationTimes {
  const seconds = metrics.histogram("volume_operation_total_seconds", "[ALPHA] Storage operation end to end duration in seconds", SECONDS);
  const errors = metrics.counter("volume_operation_errors_total", "[ALPHA] Total volume operation errors");
  const sinceMs = new Map<ObjectKey, { readonly labels: { readonly plugin_name: string; readonly operation_name: Operation }; readonly atMs: number }>();
  return {
    began(key, plugin_name, operation_name) {
      if (!sinceMs.has(key)) sinceMs.set(key, { labels: { plugin_name, operation_name }, atMs: clock.uptimeMs() });
    },
    ended(key) {
      const begun = sinceMs.get(key);
      if (begun) seconds.observe((clock.uptimeMs() - begun.atMs) / 1000, begun.labels);
      sinceMs.delete(key);
    },
    failed(key) {
      const begun = sinceMs.get(key);
      if (begun) errors.inc(begun.labels);
    },
    forget: (key) => void sinceMs.delete(key),
  };
}
