/** The audit log of the API server, as upstream's --audit-* settings ask for it. */
import { auditErrors, auditor, type Auditor, type AuditSink } from "../core/server/audit/auditor.ts";
import type { Batching } from "../core/server/audit/buffered-sink.ts";
import { bufferedLogSink, logSink } from "../core/server/audit/log-sink.ts";
import { readPolicy, type AuditPolicy } from "../core/server/audit/policy.ts";
import { RotatingFile } from "../core/server/audit/rotating-file.ts";
import { truncatingSink } from "../core/server/audit/truncating-sink.ts";
import { webhookPost } from "../core/server/audit/webhook-post.ts";
import { waitingWebhookSink, webhookSink } from "../core/server/audit/webhook-sink.ts";
import type { Clock } from "../core/lifecycle/clock.ts";
import type { Runnable } from "../core/lifecycle/run-all.ts";
import type { Log } from "../core/observe/log.ts";
import type { Counter, Metrics } from "../core/observe/metrics.ts";
import type { ApiServerArgs } from "./apiserver-args.ts";
import { ConfigError, fromFile } from "./config/config.ts";
import { followKubeconfig } from "./kubeconfig-file.ts";
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
  return { audit: auditor({ policy: policyOf(policyFile, deps.log), sinks, ...deps }), parts: sinks.map(({ part }) => part) };
}

function policyOf(path: string, log: Log): AuditPolicy {
  const problems: string[] = [];
  const policy = fromFile("kube-apiserver-arg audit-policy-file", path, (text) => readPolicy(text, (problem) => void problems.push(problem)));
  if (problems.length > 0) log.warn("the audit policy has what is not known, or twice: that is passed by", { path, problems });
  return policy;
}

interface SinkDeps { readonly clock: Clock; readonly log: Log; readonly errors: Counter }

function logOf(args: ApiServerArgs, { clock, log, errors }: SinkDeps): AuditSink | undefined {
  const path = args.text("audit-log-path");
  if (!path) return undefined;
  const format = args.text("audit-log-format") ?? "json";
  if (format !== "json" && format !== "legacy") throw new ConfigError(`--kube-apiserver-arg audit-log-format must be json or legacy, not ${JSON.stringify(format)}`);
  const mode = modeOf(args, "log") ?? "blocking";
  const batching = mode === "batch" ? batchingOf(args, "log", { batchSizeMax: 1, batchWaitMs: 0, throttles: false }) : undefined;
  const bytesMax = eventBytesMax(args, "log");
  const megabytesMax = args.integer("audit-log-maxsize") ?? MEGABYTES_MAX;
  const file = path === "-" ? standardOutput(process.stdout) : new RotatingFile({
    path, clock, log, bytesMax: megabytesMax === 0 ? Number.POSITIVE_INFINITY : megabytesMax * MEGABYTE, filesMax: args.integer("audit-log-maxbackup") ?? FILES_MAX,
    ageMaxMs: (args.integer("audit-log-maxage") ?? DAYS_MAX) * DAY_MS, compress: args.boolean("audit-log-compress", false), lost: (lines) => errors.inc({ plugin: "log" }, lines),
  });
  const sink = batching ? bufferedLogSink(file, format, { ...batching, clock, errors }) : logSink(file, format, { isStrict: mode === "blocking-strict" });
  return bytesMax === undefined ? sink : truncatingSink(sink, { bytesMax, errors });
}

/** Source of the numbers: kubernetes v1.36 apiserver/pkg/server/options/audit.go */
function webhookOf(args: ApiServerArgs, { clock, log, errors }: SinkDeps): AuditSink | undefined {
  const path = args.text("audit-webhook-config-file");
  if (!path) return undefined;
  const mode = modeOf(args, "webhook") ?? "batch";
  const batching = mode === "batch" ? batchingOf(args, "webhook", { batchSizeMax: 400, batchWaitMs: 30_000, throttles: true }) : undefined;
  const bytesMax = eventBytesMax(args, "webhook");
  const { server, credentials } = followKubeconfig(path);
  const deps = { post: webhookPost(() => ({ url: server, ...credentials() })), clock, log, errors, initialBackoffMs: args.durationMs("audit-webhook-initial-backoff") ?? args.durationMs("audit-webhook-batch-initial-backoff") ?? 10_000 };
  const sink = batching ? webhookSink({ ...deps, ...batching }) : waitingWebhookSink(deps, { isStrict: mode === "blocking-strict" });
  return bytesMax === undefined ? sink : truncatingSink(sink, { bytesMax, errors });
}

type Plugin = "log" | "webhook";

const MODES = ["batch", "blocking", "blocking-strict"] as const;

/** Undefined: it is not said. Throws ConfigError. */
function modeOf(args: ApiServerArgs, plugin: Plugin): (typeof MODES)[number] | undefined {
  const text = args.text(`audit-${plugin}-mode`);
  const mode = MODES.find((one) => one === text);
  if (text !== undefined && !mode) throw refused(`invalid audit ${plugin} mode ${text}, allowed modes are ${JSON.stringify(MODES.join(","))}`);
  return mode;
}

/** Throws ConfigError. */
function batchingOf(args: ApiServerArgs, plugin: Plugin, standard: Pick<Batching, "batchSizeMax" | "batchWaitMs"> & { readonly throttles: boolean }): Batching {
  const throttles = args.boolean(`audit-${plugin}-batch-throttle-enable`, standard.throttles);
  const qps = args.decimal(`audit-${plugin}-batch-throttle-qps`) ?? (standard.throttles ? 10 : 0);
  const batching = {
    bufferSize: args.integer(`audit-${plugin}-batch-buffer-size`) ?? 10_000, batchSizeMax: args.integer(`audit-${plugin}-batch-max-size`) ?? standard.batchSizeMax,
    batchWaitMs: args.durationMs(`audit-${plugin}-batch-max-wait`) ?? standard.batchWaitMs, throttleQps: throttles ? qps : 0, throttleBurst: args.integer(`audit-${plugin}-batch-throttle-burst`) ?? (standard.throttles ? 15 : 0),
  };
  const positive: readonly (readonly [string, number])[] = [["buffer size", batching.bufferSize], ["max batch size", batching.batchSizeMax], ...(throttles ? [["throttle QPS", qps], ["throttle burst", batching.throttleBurst]] as const : [])];
  for (const [what, value] of positive) if (value <= 0) throw refused(`invalid audit batch ${plugin} ${what} ${value}, must be a positive number`);
  return batching;
}

/** How large an event may be, if not as large as it is. Lists are limited by their events: each comes alone. Throws ConfigError. */
function eventBytesMax(args: ApiServerArgs, plugin: Plugin): number | undefined {
  const eventMax = args.integer(`audit-${plugin}-truncate-max-event-size`) ?? 100 * 1024;
  const batchMax = args.integer(`audit-${plugin}-truncate-max-batch-size`) ?? 10 * MEGABYTE;
  if (eventMax <= 0) throw refused(`invalid audit truncate ${plugin} max event size ${eventMax}, must be a positive number`);
  if (batchMax < eventMax) throw refused(`invalid audit truncate ${plugin} max batch size ${batchMax}, must be greater than max event size (${eventMax})`);
  return args.boolean(`audit-${plugin}-truncate-enabled`, false) ? eventMax : undefined;
}

function refused(why: string): ConfigError { return new ConfigError(`--kube-apiserver-arg: ${why}`); }
