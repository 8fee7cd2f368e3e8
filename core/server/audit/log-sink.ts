/** Audit events as lines: JSON, or the older text. Source: kubernetes v1.36 apiserver/plugin/pkg/audit/log/backend.go */
import { stringify } from "../../api/codec/json.ts";
import { aborted } from "../../lifecycle/aborted.ts";
import type { AuditSink } from "./auditor.ts";
import { legacyLine } from "./event.ts";

export type AuditFormat = "json" | "legacy";

export interface LineWriter { write(line: string): Promise<void>; close(): Promise<void> }

export function logSink(lines: LineWriter, format: AuditFormat): AuditSink {
  return {
    write: (event) => lines.write(format === "json" ? stringify(event) : legacyLine(event)),
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
