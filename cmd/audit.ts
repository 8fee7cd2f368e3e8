/** The audit log of the API server, as upstream's --audit-* settings ask for it. */
import { auditErrors, auditor, type Auditor, type AuditSink } from "../core/server/audit/auditor.ts";
import { type AuditFormat, logSink } from "../core/server/audit/log-sink.ts";
import { readPolicy, type AuditPolicy } from "../core/server/audit/policy.ts";
import { RotatingFile } from "../core/server/audit/rotating-file.ts";
import { webhookPost } from "../core/server/audit/webhook-post.ts";
import { webhookSink } from "../core/server/audit/webhook-sink.ts";
import type { Clock } from "../core/lifecycle/clock.ts";
import type { Runnable } from "../core/lifecycle/run-all.ts";
import type { Log } from "../core/observe/log.ts";
import type { Counter, Metrics } from "../core/observe/metrics.ts";
import type { ApiServerArgs } from "./apiserver-args.ts";
import { ConfigError, fromFile } from "./config/config.ts";
import { readKubeconfig } from "./kubeconfig-file.ts";
import { standardOutput } from "./standard-output.ts";

const MEGABYTE = 1024 * 1024;
const DAY_MS = 24 * 60 * 60 * 1000;
/** Source: kubernetes v1.36 apiserver/pkg/server/options/audit.go NewAuditOptions */
const MEGABYTES_MAX = 100, FILES_MAX = 100, DAYS_MAX = 366;

/** Throws ConfigError. Without a policy, or nowhere to write to, nothing is recorded, as upstream has it. */
export function auditOf(args: ApiServerArgs, deps: { readonly clock: Clock; readonly log: Log; readonly metrics: Metrics }): { readonly audit: Auditor | undefined; readonly parts: readonly Runnable[] } {
  const errors = auditErrors(deps.metrics);
  const sinks = [logOf(args, { ...deps, errors }), webhookOf(args, { ...deps, errors })].filter((sink) => sink !== undefined);
  const policyFile = args.text("audit-policy-file");
  if (policyFile === undefined || sinks.length === 0) return { audit: undefined, parts: [] };
  return { audit: auditor({ policy: policyOf(policyFile), sinks, ...deps }), parts: sinks.map(({ part }) => part) };
}

function policyOf(path: string): AuditPolicy {
  return fromFile("kube-apiserver-arg audit-policy-file", path, readPolicy);
}

interface SinkDeps { readonly clock: Clock; readonly log: Log; readonly errors: Counter }

function logOf(args: ApiServerArgs, { clock, log, errors }: SinkDeps): AuditSink | undefined {
  const path = args.text("audit-log-path");
  if (!path) return undefined;
  const format = args.text("audit-log-format") ?? "json";
  if (format !== "json" && format !== "legacy") throw new ConfigError(`--kube-apiserver-arg audit-log-format must be json or legacy, not ${JSON.stringify(format)}`);
  const megabytesMax = args.integer("audit-log-maxsize") ?? MEGABYTES_MAX;
  const file = path === "-" ? standardOutput(process.stdout) : new RotatingFile({
    path, clock, log, bytesMax: megabytesMax === 0 ? Number.POSITIVE_INFINITY : megabytesMax * MEGABYTE, filesMax: args.integer("audit-log-maxbackup") ?? FILES_MAX,
    ageMaxMs: (args.integer("audit-log-maxage") ?? DAYS_MAX) * DAY_MS, lost: (lines) => errors.inc({ plugin: "log" }, lines),
  });
  return logSink(file, format as AuditFormat);
}

/** Source of the numbers: kubernetes v1.36 apiserver/pkg/server/options/audit.go */
function webhookOf(args: ApiServerArgs, { clock, log, errors }: SinkDeps): AuditSink | undefined {
  const path = args.text("audit-webhook-config-file");
  if (!path) return undefined;
  const { server, credentials } = readKubeconfig(path, { anonymous: true });
  return webhookSink({
    post: webhookPost({ url: server, ...credentials }), clock, log, errors,
    batchSizeMax: args.integer("audit-webhook-batch-max-size") ?? 400, bufferSize: args.integer("audit-webhook-batch-buffer-size") ?? 10_000, batchWaitMs: args.durationMs("audit-webhook-batch-max-wait") ?? 30_000,
    throttleQps: args.boolean("audit-webhook-batch-throttle-enable", true) ? (args.integer("audit-webhook-batch-throttle-qps") ?? 10) : 0, throttleBurst: args.integer("audit-webhook-batch-throttle-burst") ?? 15,
    initialBackoffMs: args.durationMs("audit-webhook-initial-backoff") ?? 10_000,
  });
}
