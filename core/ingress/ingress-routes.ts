/**
 * What an Ingress asks for, as routes and certificates. Pure.
 *
 * ImplementationSpecific paths are prefixes here. A backend that is no Service answers 503: we know no others.
 */
import type { Ingress, IngressBackend } from "../api/gen/networking.v1.ts";
import { keyOf } from "../api/meta/object-meta.ts";
import { routePath } from "./route-path.ts";
import type { RouteMatch } from "./host-routes.ts";
import type { Action, Route } from "./route-table.ts";

/** A certificate and the hosts it is shown for: "" for those nobody else has one for. `labels`: as of a route. */
export interface CertificateUse extends Pick<Route, "host" | "labels"> { readonly namespace: string; readonly secret: string }

const EVERYTHING: RouteMatch = { path: { type: "Prefix", value: "/" } };

export function ingressRoutes(ingress: Readonly<Ingress>): Route[] {
  const { rules = [], defaultBackend } = ingress.spec;
  const namespace = ingress.metadata.namespace ?? "";
  const common = { labels: "one", source: `ingress ${keyOf(ingress)}`, age: `${ingress.metadata.creationTimestamp ?? ""} ${keyOf(ingress)}` } as const;
  const routes: Route[] = [];
  for (const { host = "", http } of rules) {
    for (const { path, pathType, backend } of http?.paths ?? [])
      routes.push({ ...common, host: host.toLowerCase(), match: { path: { type: pathType === "Exact" ? "Exact" : "Prefix", value: routePath(path || "/") } }, fallback: false, action: actionOf(backend, namespace) });
  }
  if (defaultBackend)
    for (const host of new Set(["", ...rules.map((rule) => (rule.host ?? "").toLowerCase())])) routes.push({ ...common, host, match: EVERYTHING, fallback: true, action: actionOf(defaultBackend, namespace) });
  return routes;
}

/** Of one Ingress, that name no hosts: each is for those of all its rules. */
const HOSTLESS_MAX = 16;

/** Of one Ingress: each node watches each of them, whether or not they are there. */
const SECRETS_MAX = 1_000;

export function ingressCertificates({ metadata, spec }: Readonly<Ingress>): CertificateUse[] {
  let hostless = 0;
  const secrets = new Set<string>();
  const ofRules = [...new Set((spec.rules ?? []).map(({ host }) => host ?? ""))];
  return (spec.tls ?? []).flatMap(({ hosts, secretName }) => {
    if (!secretName || (!hosts?.length && ++hostless > HOSTLESS_MAX)) return [];
    if (!secrets.has(secretName) && secrets.size >= SECRETS_MAX) return [];
    secrets.add(secretName);
    const names = hosts?.length ? hosts : ofRules;
    return (names.length > 0 ? names : [""]).map((host) => ({ host: host.toLowerCase(), labels: "one", namespace: metadata.namespace ?? "", secret: secretName }));
  });
}

function actionOf({ service }: Readonly<IngressBackend>, namespace: string): Action {
  const port = service?.port?.name || service?.port?.number;
  if (!service || port === undefined) return { type: "fail", status: 503 };
  return { type: "forward", backends: [{ namespace, service: service.name, port, weight: 1, mayBeAlias: true }] };
}
