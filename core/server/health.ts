/**
 * /healthz, /livez, /readyz with their checks, /version, /metrics.
 *
 * Source: kubernetes v1.36 apiserver/pkg/server/healthz/healthz.go
 */
import type { Metrics } from "../observe/metrics.ts";
import { raw } from "./answer.ts";
import type { PathHandler } from "./handler.ts";

export interface HealthCheck {
  readonly name: string;
  /** Which of the endpoints ask it. /healthz asks all of them. */
  readonly endpoints: readonly ("livez" | "readyz")[];
  /** Why it fails; undefined: it does not. */
  check(): string | undefined | Promise<string | undefined>;
}

export interface VersionInfo {
  readonly major: string;
  readonly minor: string;
  readonly gitVersion: string;
  readonly gitCommit: string;
  readonly gitTreeState: string;
  readonly buildDate: string;
  readonly goVersion: string;
  readonly compiler: string;
  readonly platform: string;
}

export function healthPaths(checks: readonly HealthCheck[]): PathHandler {
  return async ({ path, query }) => {
    const [, endpoint = "", wanted] = path.split("/");
    if (endpoint !== "healthz" && endpoint !== "livez" && endpoint !== "readyz") return undefined;
    const asked = checks.filter(({ endpoints, name }) => (endpoint === "healthz" || endpoints.includes(endpoint)) && (wanted === undefined || wanted === "" || name === wanted));
    if (wanted && asked.length === 0) return undefined;
    const excluded = query.getAll("exclude");
    const lines: string[] = [];
    let failed = false;
    for (const { name, check } of asked) {
      if (excluded.includes(name)) {
        lines.push(`[+]${name} excluded: ok`);
        continue;
      }
      const problem = await check();
      failed ||= problem !== undefined;
      lines.push(problem === undefined ? `[+]${name} ok` : `[-]${name} failed: reason withheld`);
    }
    if (failed) return raw(`${lines.join("\n")}\n${endpoint} check failed\n`, "text/plain; charset=utf-8", 500, { "x-content-type-options": "nosniff" });
    return raw(query.has("verbose") ? `${lines.join("\n")}\n${endpoint} check passed\n` : "ok");
  };
}

export function versionPath(version: VersionInfo): PathHandler {
  return ({ path }) => (path === "/version" || path === "/version/" ? raw(JSON.stringify(version, undefined, 2), "application/json") : undefined);
}

export function metricsPath(metrics: Metrics): PathHandler {
  return ({ path }) => (path === "/metrics" ? raw(metrics.render(), "text/plain; version=0.0.4; charset=utf-8") : undefined);
}
