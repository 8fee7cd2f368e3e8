/** The rules of a GRPCRoute as those of an HTTPRoute would be: a method is a path, and endpoints speak HTTP/2. Pure. */
import type { GrpcRoute, GrpcRouteMatch } from "./gateway-types.ts";
import { type Problems, type References, type RuleSet, ruleSetOf, unsupported } from "./http-route-rules.ts";
import type { RouteMatch } from "./host-routes.ts";

export function grpcRuleSet({ metadata, spec }: GrpcRoute, references: References): RuleSet {
  return ruleSetOf(spec.rules ?? [{}], matchOf, { kind: "GRPCRoute", namespace: metadata.namespace ?? "", protocol: "h2c" }, references);
}

/** Source: https://gateway-api.sigs.k8s.io/reference/spec/#grpcmethodmatch */
function matchOf({ method: { type = "Exact", service, method } = {}, headers = [] }: GrpcRouteMatch, problems: Problems): RouteMatch {
  for (const one of [type, ...headers.map((header) => header.type ?? "Exact")]) if (one !== "Exact") unsupported(problems, `matches of type ${one} are not supported`);
  const path = service && method ? ({ type: "Exact", value: `/${service}/${method}` } as const) : service ? ({ type: "Prefix", value: `/${service}` } as const) : method ? ({ type: "Method", value: method } as const) : ({ type: "Prefix", value: "/" } as const);
  return { path, grpc: true, headers: headers.map(({ name, value }) => ({ name: name.toLowerCase(), value })) };
}
