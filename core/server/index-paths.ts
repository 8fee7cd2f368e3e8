/** / and /index.html: which paths there are. Source: kubernetes v1.36 apiserver/pkg/server/routes/index.go */
import type { Registry } from "../registry/registry.ts";
import { raw } from "./answer.ts";
import { allVersions, type Foreign } from "./discovery.ts";
import { endpointsOf, type HealthCheck } from "./health.ts";
import type { PathHandler } from "./scope.ts";

interface Deps {
  readonly registry: Registry;
  readonly foreign?: Foreign | undefined;
  readonly checks: readonly HealthCheck[];
}

const FIXED = ["/.well-known/openid-configuration", "/api", "/api/v1", "/apis", "/apis/", "/flagz", "/healthz", "/livez", "/metrics", "/metrics/resources", "/metrics/slis", "/openapi/v2", "/openapi/v3", "/openapi/v3/", "/openid/v1/jwks", "/readyz", "/statusz", "/version"];

export function indexPaths({ registry, foreign, checks }: Deps): PathHandler {
  return ({ path }) => {
    if (path !== "/" && path !== "/index.html") return undefined;
    const groups = allVersions(registry, foreign).filter(({ group }) => group !== "").flatMap(({ group, version }) => [`/apis/${group}`, `/apis/${group}/${version}`]);
    const health = checks.flatMap((check) => endpointsOf(check).map((endpoint) => `/${endpoint}/${check.name}`));
    return raw(JSON.stringify({ paths: [...new Set([...FIXED, ...groups, ...health])].sort() }, undefined, 2), "application/json");
  };
}
