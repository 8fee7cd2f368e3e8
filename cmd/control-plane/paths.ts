/** What a server answers beside resources: health, metrics, discovery, OpenAPI, and what is Coracle's own. */
import { zpages } from "../../core/api/codec/zpages.ts";
import type { Descriptions } from "../../core/api/openapi/schema.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import { type Metrics, metricsRegistry } from "../../core/observe/metrics.ts";
import type { Registry } from "../../core/registry/registry.ts";
import type { SchedulingExplainer } from "../../core/scheduler/explainer.ts";
import type { Aggregation } from "../../core/server/aggregation/aggregator.ts";
import { discoveryPaths } from "../../core/server/discovery.ts";
import { type HealthCheck, healthPaths, metricsPath, versionPath, zpagesPath } from "../../core/server/health.ts";
import { indexPaths } from "../../core/server/index-paths.ts";
import { openApiPaths } from "../../core/server/openapi.ts";
import type { PathHandler } from "../../core/server/scope.ts";
import { descriptionsPath, installScripts } from "../assets.ts";
import type { Settings } from "../config/flags.ts";
import { explainSchedulingPath } from "../explain-scheduling.ts";
import { ownExecutable } from "../own-command.ts";
import { shownFlags } from "../shown-flags.ts";
import { type SnapshotOptions, snapshotPath } from "../snapshot-path.ts";
import { apiVersion, versionInfo } from "../version.ts";
import { installerPaths } from "./installer-paths.ts";

interface Options {
  readonly settings: Settings;
  /** Of executables that machines of other kinds are given. */
  readonly directory: string;
  /** `https://${host}` */
  readonly url: string;
  /** address:port of this server, as URLs have it. */
  readonly host: string;
  readonly registry: Registry;
  readonly aggregation: Aggregation;
  readonly checks: readonly HealthCheck[];
  readonly cbor: boolean;
  /** Profiles may be taken, and counts reset. */
  readonly profiling: boolean;
  readonly debug: PathHandler;
  readonly podResources: PathHandler;
  readonly explainer: SchedulingExplainer;
  readonly snapshots: SnapshotOptions;
  readonly fairness: readonly PathHandler[];
  readonly identity: PathHandler;
  readonly clock: Clock;
  readonly metrics: Metrics;
}

/** The first that knows a path answers. */
export function serverPaths({ settings, directory, url, host, registry, aggregation, checks, cbor, profiling, debug, podResources, explainer, snapshots, fairness, identity, clock, metrics }: Options): readonly PathHandler[] {
  const resetting = { canReset: profiling };
  const statusPaths = ["/flagz", "/healthz", "/livez", "/metrics", "/readyz", "/statusz", "/version"];
  return [
    healthPaths(checks, metricsRegistry(), resetting),
    zpagesPath(zpages({ component: "apiserver", flags: shownFlags(settings), version: versionInfo(), paths: statusPaths, cbor, clock })),
    versionPath(versionInfo()),
    metricsPath(metrics, resetting),
    podResources,
    discoveryPaths(registry, host, aggregation),
    openApiPaths({ clock, registry, version: apiVersion(), cbor, descriptions: loadDescriptions, foreign: aggregation }),
    ...fairness,
    indexPaths({ registry, foreign: aggregation, checks }),
    identity,
    explainSchedulingPath(explainer),
    snapshotPath(snapshots),
    installerPaths({ script: installScripts()["join.sh"], url, directory, own: ownExecutable() }),
    ...(profiling ? [debug] : []),
  ];
}

/** What documents and the columns of Tables say of types and fields; none in a build without it. */
export async function loadDescriptions(): Promise<Descriptions> {
  const path = descriptionsPath();
  if (!path) return {};
  return JSON.parse(Buffer.from(Bun.zstdDecompressSync(await Bun.file(path).bytes())).toString()) as Descriptions;
}
