/**
 * Events that are too large go without what was sent and answered, and say so; those that are too large even then are lost, and counted.
 *
 * Source: kubernetes v1.36 apiserver/plugin/pkg/audit/truncate/truncate.go
 */
import { stringify } from "../../api/codec/json.ts";
import type { Counter } from "../../observe/metrics.ts";
import type { AuditSink } from "./auditor.ts";
import type { AuditEvent } from "./event.ts";

const TRUNCATED = "audit.k8s.io/truncated";

/** `bytesMax`: of an event as a line of JSON. */
export function truncatingSink(sink: AuditSink, { bytesMax, errors }: { readonly bytesMax: number; readonly errors: Counter }): AuditSink {
  return {
    ...sink,
    write(event) {
      const whole = sizeOf(event) <= bytesMax;
      const left = whole || !hasObjects(event) ? event : withoutObjects(event);
      if (whole || sizeOf(left) <= bytesMax) return sink.write(left);
      errors.inc({ plugin: "truncate" });
      return undefined;
    },
  };
}

function sizeOf(event: AuditEvent): number { return Buffer.byteLength(stringify(event)) + 1; }

function hasObjects({ level }: AuditEvent): boolean { return level === "Request" || level === "RequestResponse"; }

function withoutObjects({ requestObject: _request, responseObject: _response, annotations = {}, ...event }: AuditEvent): AuditEvent {
  return { ...event, annotations: Object.fromEntries(Object.entries({ ...annotations, [TRUNCATED]: "true" }).toSorted(([a], [b]) => (a < b ? -1 : 1))) };
}
