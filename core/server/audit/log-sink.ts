/** Audit events as lines: JSON, or the older text. Source: kubernetes v1.36 apiserver/plugin/pkg/audit/log/backend.go */
import { stringify } from "../../api/codec/json.ts";
import { aborted } from "../../lifecycle/aborted.ts";
import type { Clock } from "../../lifecycle/clock.ts";
import type { Counter } from "../../observe/metrics.ts";
import type { AuditSink } from "./auditor.ts";
import { type Batching, bufferedSink } from "./buffered-sink.ts";
import { type AuditEvent, legacyLine } from "./event.ts";

export type AuditFormat = "json" | "legacy";

/** `write` resolves once the line is written, or with false once it is lost; it must not throw. */
export interface LineWriter { write(line: string): Promise<boolean>; close(): Promise<void> }

/** Nobody has an answer before what they asked is written. `isStrict`: nor is a request gone on with that cannot be written down. */
export function logSink(lines: LineWriter, format: AuditFormat, { isStrict = false }: { readonly isStrict?: boolean } = {}): AuditSink {
  return {
    comesFirst: isStrict,
    write: (event) => lines.write(lineOf(event, format)),
    part: {
      name: "audit log",
      async run(signal, ready) {
        ready();
        await aborted(signal);
        await lines.close();
      },
    },
  };
}

/** Nobody waits until it is written. */
export function bufferedLogSink(lines: LineWriter, format: AuditFormat, options: Batching & { readonly clock: Clock; readonly errors: Counter }): AuditSink {
  return bufferedSink({
    name: "audit log",
    async deliver(items) {
      await Promise.all(items.map((event) => lines.write(lineOf(event, format))));
      return "taken"; // what is lost is counted where it is
    },
    lost: (items) => options.errors.inc({ plugin: "log" }, items.length),
    close: () => lines.close(),
  }, options);
}

function lineOf(event: AuditEvent, format: AuditFormat): string { return format === "json" ? stringify(event) : legacyLine(event); }
