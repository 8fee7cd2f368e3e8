/** Which of the API server's requests are served when there are many: priority and fairness, or limits of how many at once. */
import type { Client } from "../core/client/client.ts";
import type { Informers } from "../core/client/informer-factory.ts";
import { FLOW_SCHEMAS, PRIORITY_LEVEL_CONFIGURATIONS } from "../core/client/resources.ts";
import type { Clock } from "../core/lifecycle/clock.ts";
import type { Runnable } from "../core/lifecycle/run-all.ts";
import type { Log } from "../core/observe/log.ts";
import type { Metrics } from "../core/observe/metrics.ts";
import type { Registry } from "../core/registry/registry.ts";
import { fairnessDebugPaths } from "../core/server/fairness/debug.ts";
import { Fairness } from "../core/server/fairness/fairness.ts";
import { flowMetrics } from "../core/server/fairness/flow-metrics.ts";
import { maxInFlight } from "../core/server/fairness/max-in-flight.ts";
import { fairnessUpkeep } from "../core/server/fairness/upkeep.ts";
import { ResourceSizes } from "../core/server/fairness/work-estimate.ts";
import type { PathHandler, ServerDeps } from "../core/server/scope.ts";
import type { ApiServerArgs } from "./apiserver-args.ts";
import { ConfigError } from "./config/config.ts";

interface Deps {
  readonly client: Client;
  readonly informers: Informers;
  readonly registry: () => Registry;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
}

export interface ServerFairness {
  readonly enter: NonNullable<ServerDeps["fairness"]>;
  /** Requests wait, and what each takes is taken down. */
  readonly isCrowded: () => boolean;
  readonly paths: readonly PathHandler[];
  readonly parts: readonly Runnable[];
}

/** Throws ConfigError. Source of the numbers: kubernetes v1.36 apiserver/pkg/server/options/server_run_options.go */
export function fairnessOf(args: ApiServerArgs, { client, informers, registry, clock, log, metrics }: Deps): ServerFairness {
  const reading = args.integer("max-requests-inflight") ?? 400;
  const writing = args.integer("max-mutating-requests-inflight") ?? 200;
  if (!args.boolean("enable-priority-and-fairness", true)) return { enter: maxInFlight({ reading, writing }), isCrowded: () => false, paths: [], parts: [] };
  if (reading + writing <= 0) throw new ConfigError("--kube-apiserver-arg max-requests-inflight and max-mutating-requests-inflight must not both be 0 with priority and fairness");
  const schemas = informers.of(FLOW_SCHEMAS);
  const levels = informers.of(PRIORITY_LEVEL_CONFIGURATIONS);
  const sizes = new ResourceSizes(clock);
  const fairness = new Fairness({
    requestMs: requestTimes(args).requestMs, seats: reading + writing, schemas: () => schemas.list(), levels: () => levels.list(), clock, later: (work) => void setImmediate(work),
    sizeOf: (info) => sizes.of(registry(), info),
  });
  flowMetrics(metrics, fairness);
  return {
    enter: (request, info, user) => fairness.enter(request, info, user),
    isCrowded: () => fairness.isCrowded,
    paths: [fairnessDebugPaths(fairness, clock)],
    parts: [fairnessUpkeep({ fairness, schemas, levels, schemaClient: client.resource(FLOW_SCHEMAS), levelClient: client.resource(PRIORITY_LEVEL_CONFIGURATIONS), clock, log })],
  };
}

/** How long requests and watches may take; undefined: as usual. Throws ConfigError. Source: kubernetes v1.36 apiserver/pkg/server/options/server_run_options.go */
export function requestTimes(args: ApiServerArgs): Pick<ServerDeps, "requestMs" | "watchMsMin"> {
  const requestMs = args.durationMs("request-timeout"), watchSeconds = args.integer("min-request-timeout");
  if (requestMs === 0) throw new ConfigError("--kube-apiserver-arg request-timeout must be longer than that: nothing would be answered");
  if (watchSeconds === 0) throw new ConfigError("--kube-apiserver-arg min-request-timeout must be longer than that: every watch would end as it begins");
  return { requestMs, watchMsMin: watchSeconds === undefined ? undefined : watchSeconds * 1000 };
}
