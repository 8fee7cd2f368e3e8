/**
 * /healthz, /livez, /readyz with their checks, /version, /metrics.
 *
 * Source: kubernetes v1.36 apiserver/pkg/server/healthz/healthz.go
 */
import { checkRoute, MEDIA_TYPES } from "../api/codec/negotiate.ts";
import type { ZPages } from "../api/codec/zpages.ts";
import { methodNotAllowed } from "../api/meta/status-error.ts";
import { exposeSlowly } from "../observe/exposition.ts";
import { isOfControlPlane } from "../observe/families.ts";
import type { Metrics } from "../observe/metrics.ts";
import { startedSeconds } from "../observe/process-metrics.ts";
import { isOfSlis, sliCounts } from "../observe/slis.ts";
import { raw, type RawAnswer } from "./answer.ts";
import type { ServerRequest } from "./request.ts";
import type { PathHandler } from "./scope.ts";

export interface HealthCheck {
  readonly name: string;
  /** Which of the endpoints ask it. /healthz asks what /livez does, and what names it. */
  readonly endpoints: readonly Endpoint[];
  /** Why it fails at that endpoint; undefined: it does not. */
  check(endpoint: Endpoint): string | undefined | Promise<string | undefined>;
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

const ENDPOINTS = ["healthz", "livez", "readyz"] as const;
export type Endpoint = (typeof ENDPOINTS)[number];

function isEndpoint(name: string): name is Endpoint { return (ENDPOINTS as readonly string[]).includes(name); }

export function endpointsOf({ endpoints }: Pick<HealthCheck, "endpoints">): readonly Endpoint[] { return endpoints.includes("livez") ? ["healthz", ...endpoints] : endpoints; }

interface Resetting {
  /** Who may delete what was counted, may. */
  readonly canReset?: boolean;
}

/** `slis` counts what the checks found, and is shown at /metrics/slis. */
export function healthPaths(checks: readonly HealthCheck[], slis?: Metrics, resetting?: Resetting): PathHandler {
  return healthPathsOf((endpoint) => checks.filter((check) => endpointsOf(check).includes(endpoint)), slis, resetting);
}

/** The same for checks that come and go. Undefined: there is no such endpoint. */
export function healthPathsOf(checksOf: (endpoint: Endpoint) => readonly Pick<HealthCheck, "name" | "check">[] | undefined, slis?: Metrics, { canReset = true }: Resetting = {}): PathHandler {
  const count = slis ? sliCounts(slis) : () => undefined;

  async function ask(endpoint: Endpoint, { name, check }: Pick<HealthCheck, "name" | "check">): Promise<string | undefined> {
    const problem = await check(endpoint);
    count(endpoint, name, problem === undefined);
    return problem;
  }

  return async (request) => {
    const { path, query } = request;
    if (slis && path === "/metrics/slis") {
      for (const endpoint of ENDPOINTS) for (const one of checksOf(endpoint) ?? []) await ask(endpoint, one); // nobody may have asked for long
      return shown(countable(slis, canReset), request, isOfSlis);
    }
    const [, endpoint = "", ...rest] = path.split("/");
    if (!isEndpoint(endpoint) || path.endsWith("/")) return undefined;
    const asked = checksOf(endpoint);
    if (!asked) return undefined;
    const wanted = rest.join("/");
    if (wanted !== "") {
      const one = asked.find(({ name }) => name === wanted);
      if (!one) return undefined;
      const problem = await ask(endpoint, one);
      return problem === undefined ? raw("ok") : raw(`internal server error: ${problem}\n`, "text/plain; charset=utf-8", 500, NO_SNIFFING);
    }
    const excluded = new Set(query.getAll("exclude"));
    const lines: string[] = [];
    let failed = false;
    for (const one of asked) {
      if (excluded.delete(one.name)) {
        lines.push(`[+]${one.name} excluded: ok`);
        continue;
      }
      const problem = await ask(endpoint, one);
      failed ||= problem !== undefined;
      lines.push(problem === undefined ? `[+]${one.name} ok` : `[-]${one.name} failed: reason withheld`);
    }
    if (excluded.size > 0) lines.push(`warn: some health checks cannot be excluded: no matches for ${[...excluded].sort().map((name) => JSON.stringify(name)).join(",")}`);
    if (failed) return raw(`${lines.join("\n")}\n${endpoint} check failed\n`, "text/plain; charset=utf-8", 500, NO_SNIFFING);
    return raw(query.has("verbose") ? `${lines.join("\n")}\n${endpoint} check passed\n` : "ok", "text/plain; charset=utf-8", 200, NO_SNIFFING);
  };
}

const NO_SNIFFING = { "x-content-type-options": "nosniff" };

/** /flagz and /statusz. */
export function zpagesPath(pages: ZPages): PathHandler {
  return (request) => {
    const page = pages(request.path, { accept: request.header("accept"), userAgent: request.header("user-agent"), pretty: request.query.get("pretty") ?? undefined });
    return page && raw(page.body, page.contentType, 200, page.headers);
  };
}

/** Beside what was built: the version it behaves as, and the oldest that may share the store with it. Source: component-base/compatibility/version.go */
export function versionPath({ major, minor, ...build }: VersionInfo): PathHandler {
  const version = { major, minor, emulationMajor: major, emulationMinor: minor, minCompatibilityMajor: major, minCompatibilityMinor: String(Number(minor) - 1), ...build };
  return (request) => {
    if (request.path !== "/version" && request.path !== "/version/") return undefined;
    if (request.method !== "GET") throw methodNotAllowed();
    checkRoute(request.header("accept") ?? "", { types: [MEDIA_TYPES.json] });
    return raw(JSON.stringify(version, undefined, 2), "application/json");
  };
}

export function metricsPath(metrics: Metrics, { canReset = true }: Resetting = {}): PathHandler {
  return (request) => (request.path === "/metrics" ? shown(countable(metrics, canReset), request, isOfControlPlane) : undefined);
}

function countable(metrics: Metrics, canReset: boolean): Countable { return canReset ? metrics : { families: (shown) => metrics.families(shown) }; }

type Countable = Pick<Metrics, "families"> & Partial<Pick<Metrics, "reset">>;

/** Or what was counted begins anew. Source: kubernetes v1.36 component-base/metrics/http.go HandlerWithReset */
export function shown(metrics: Countable, request: ServerRequest, isShown: (family: string) => boolean = () => true): RawAnswer {
  if (request.method === "DELETE" && metrics.reset) {
    metrics.reset(isShown);
    return raw("metrics reset\n", "text/plain; charset=utf-8");
  }
  const { pieces, contentType } = exposeSlowly(metrics.families(isShown), request.header("accept"));
  return raw({ pieces }, contentType, 200, { "process-start-time-unix": String(Math.floor(startedSeconds())) });
}
