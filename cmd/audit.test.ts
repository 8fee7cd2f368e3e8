import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { systemClock } from "../core/lifecycle/clock.ts";
import { silentLog } from "../core/observe/log.ts";
import { metricsRegistry } from "../core/observe/metrics.ts";
import { apiServerArgs } from "./apiserver-args.ts";
import { auditOf } from "./audit.ts";

function audit(...args: string[]): ReturnType<typeof auditOf> {
  const directory = mkdtempSync(join(tmpdir(), "audit-settings-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const policy = join(directory, "policy.yaml");
  writeFileSync(policy, "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]");
  return auditOf(apiServerArgs([`audit-policy-file=${policy}`, `audit-log-path=${join(directory, "audit.log")}`, ...args]), { clock: systemClock, log: silentLog, metrics: metricsRegistry() });
}

test.each([
  [[]], [["audit-log-mode=blocking", "audit-log-batch-buffer-size=0"]], [["audit-log-mode=blocking-strict", "audit-log-compress"]], [["audit-log-truncate-enabled", "audit-log-truncate-max-event-size=1000"]],
  [["audit-log-mode=batch", "audit-log-batch-max-size=10", "audit-log-batch-max-wait=1s", "audit-log-batch-throttle-enable", "audit-log-batch-throttle-qps=0.5", "audit-log-batch-throttle-burst=1"]],
])("%o is taken", (args) => expect(audit(...args).parts.map(({ name }) => name)).toEqual(["audit log"]));

test.each([
  [["audit-log-mode=none"], 'invalid audit log mode none, allowed modes are "batch,blocking,blocking-strict"'],
  [["audit-log-mode=batch", "audit-log-batch-buffer-size=0"], "invalid audit batch log buffer size 0, must be a positive number"],
  [["audit-log-mode=batch", "audit-log-batch-throttle-enable"], "invalid audit batch log throttle QPS 0, must be a positive number"],
  [["audit-log-truncate-max-event-size=0"], "invalid audit truncate log max event size 0, must be a positive number"],
  [["audit-log-truncate-max-batch-size=10"], "invalid audit truncate log max batch size 10, must be greater than max event size (102400)"],
])("%o is refused", (args, told) => expect(() => audit(...args)).toThrow(told));
