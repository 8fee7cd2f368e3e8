/** The rules of an HTTPRoute as routes, and what is wrong with them. Pure. */
import type { Service } from "../api/gen/core.v1.ts";
import { headerField } from "../api/request/header-text.ts";
import type { BackendTls } from "./backend-tls.ts";
import type { Problem } from "./conditions.ts";
import { type BackendRef, GATEWAY_GROUP, type HeaderFilter, type HttpRoute, type HttpRouteFilter, type HttpRouteMatch, type HttpRouteRule, type PathModifier, type ReferenceGrant } from "./gateway-types.ts";
import { escaped, routePath } from "./route-path.ts";
import type { RouteMatch } from "./host-routes.ts";
import type { Action, Backend, HeaderEdit, Mirror, PathRewrite, Redirect, Rewrite, Route } from "./route-table.ts";

export interface RuleSet {
  /** Without hosts: those come with the listeners. */
  readonly routes: readonly Pick<Route, "match" | "action">[];
  /** Something we cannot do: the route is not accepted. */
  readonly unsupported: Problem | undefined;
  /** A reference that leads nowhere: the route is accepted, and its requests answer 500. */
  readonly unresolved: Problem | undefined;
}

export interface References {
  serviceOf(namespace: string, name: string): Pick<Readonly<Service>, "spec"> | undefined;
  /** How its endpoints are spoken to with TLS. */
  tlsOf(namespace: string, service: string): readonly BackendTls[];
  /** Whether `namespace` lets routes or Gateways of another refer to its object. */
  isGranted(from: { readonly kind: string; readonly namespace: string }, to: { readonly kind: string; readonly namespace: string; readonly name: string }): boolean;
}

export type Problems = { unsupported?: Problem; unresolved?: Problem };

/** Whose rules they are. */
interface Owner { readonly kind: "HTTPRoute" | "GRPCRoute" | "TLSRoute" | "TCPRoute"; readonly namespace: string; readonly protocol?: Backend["protocol"] }

export function ruleSet({ metadata, spec }: HttpRoute, references: References): RuleSet {
  return ruleSetOf(spec.rules ?? [{}], matchOf, { kind: "HTTPRoute", namespace: metadata.namespace ?? "" }, references);
}

export function ruleSetOf<M extends object>(rules: readonly (Omit<HttpRouteRule, "matches"> & { readonly matches?: readonly M[] })[], matchOfOne: (match: M, problems: Problems) => RouteMatch, owner: Owner, references: References): RuleSet {
  const problems: Problems = {};
  const routes = rules.flatMap((rule) => {
    const matches = (rule.matches?.length ? rule.matches : [{} as M]).map((match) => matchOfOne(match, problems));
    const action = actionOf(rule, owner, references, problems);
    return matches.map((match) => ({ match, action }));
  });
  return { routes, unsupported: problems.unsupported, unresolved: problems.unresolved };
}

export function unsupported(problems: Problems, message: string): void { problems.unsupported ??= { reason: "UnsupportedValue", message }; }

function matchOf({ path = {}, headers = [], queryParams = [], method }: HttpRouteMatch, problems: Problems): RouteMatch {
  const type = path.type ?? "PathPrefix";
  if (type !== "PathPrefix" && type !== "Exact") unsupported(problems, `path matches of type ${type} are not supported`);
  for (const one of [...headers, ...queryParams]) if ((one.type ?? "Exact") !== "Exact") unsupported(problems, `matches of type ${one.type} are not supported`);
  const first = <T extends { readonly name: string; readonly value: string }>(list: readonly T[], nameOf: (name: string) => string) => [...new Map(list.toReversed().map(({ name, value }) => [nameOf(name), { name: nameOf(name), value }])).values()];
  return { path: { type: type === "Exact" ? "Exact" : "Prefix", value: routePath(path.value ?? "/") }, method, headers: first(headers, (name) => name.toLowerCase()), query: first(queryParams, (name) => name) };
}

function actionOf({ filters = [], backendRefs = [], timeouts }: Omit<HttpRouteRule, "matches">, owner: Owner, references: References, problems: Problems): Action {
  const edits = editsOf(filters.filter(({ type }) => type !== "CORS"), problems);
  const cors = filters.find(({ type }) => type === "CORS")?.cors, redirect = redirectOf(filters);
  if (redirect) return { type: "redirect", edits, cors, redirect };
  const limits = [timeouts?.request, timeouts?.backendRequest].map(durationMs).filter((ms) => ms > 0); // 0: none
  const timeoutMs = limits.length > 0 ? Math.min(...limits) : undefined;
  if (backendRefs.length === 0) return { type: "fail", status: 500 };
  return {
    type: "forward", edits, cors, timeoutMs, backends: backendRefs.map((ref) => backendOf(ref, owner, references, problems)),
    rewrite: rewriteOf(filters), mirrors: mirrorsOf(filters, owner, references, problems),
  };
}

function redirectOf(filters: readonly HttpRouteFilter[]): Redirect | undefined {
  const asked = filters.find(({ type }) => type === "RequestRedirect")?.requestRedirect;
  return asked && { scheme: asked.scheme, hostname: asked.hostname, port: asked.port, path: pathOf(asked.path), statusCode: asked.statusCode ?? 302 };
}

function rewriteOf(filters: readonly HttpRouteFilter[]): Rewrite | undefined {
  const asked = filters.find(({ type }) => type === "URLRewrite")?.urlRewrite;
  return asked && { hostname: asked.hostname, path: pathOf(asked.path) };
}

/** Those whose references lead nowhere are told, and left out. */
function mirrorsOf(filters: readonly HttpRouteFilter[], owner: Owner, references: References, problems: Problems): Mirror[] | undefined {
  const mirrors = filters.flatMap(({ type, requestMirror: asked }): Mirror[] => {
    if (type !== "RequestMirror" || !asked) return [];
    const { percent = 100, fraction } = asked, backend = backendOf(asked.backendRef, owner, references, problems);
    return backend.invalid ? [] : [{ backend, share: fraction ? fraction.numerator / (fraction.denominator ?? 100) : percent / 100 }];
  });
  return mirrors.length > 0 ? mirrors : undefined;
}

function backendOf(ref: BackendRef, owner: Owner, references: References, problems: Problems): Backend {
  const { kind: from, namespace: own, protocol } = owner;
  const { group = "", kind = "Service", name, namespace = own, port, weight = 1, filters = [] } = ref;
  const service = references.serviceOf(namespace, name);
  const problem: Problem | undefined = group !== "" || kind !== "Service" ? { reason: "InvalidKind", message: `backends of kind ${kind} are not supported` }
    : namespace !== own && !references.isGranted({ kind: from, namespace: own }, { kind: "Service", namespace, name }) ? { reason: "RefNotPermitted", message: `namespace ${namespace} has no ReferenceGrant for Service ${name}` }
    : !service ? { reason: "BackendNotFound", message: `service ${namespace}/${name} not found` }
    : service.spec.type === "ExternalName" ? { reason: "UnsupportedValue", message: `service ${namespace}/${name} is of type ExternalName, which routes do not follow` } // as the Gateway API has it
    : port === undefined ? { reason: "UnsupportedValue", message: `the reference to Service ${name} has no port` } : undefined;
  if (problem) problems.unresolved ??= problem;
  const tls = problem ? [] : references.tlsOf(namespace, name);
  const redirect = redirectOf(filters), rewrite = rewriteOf(filters), mirrors = mirrorsOf(filters, owner, references, problems);
  return {
    namespace, service: name, port: port ?? 0, weight, edits: editsOf(filters, problems), ...(protocol && { protocol }), ...(problem && { invalid: true }),
    ...(redirect && { redirect }), ...(rewrite && { rewrite }), ...(mirrors && { mirrors }), ...(tls.length > 0 && { tls }),
  };
}

function editsOf(filters: readonly HttpRouteFilter[], problems: Problems): HeaderEdit[] {
  return filters.flatMap(({ type, requestHeaderModifier, responseHeaderModifier }): HeaderEdit[] => {
    switch (type) {
      case "RequestHeaderModifier": return [edit("request", requestHeaderModifier)];
      case "ResponseHeaderModifier": return [edit("response", responseHeaderModifier)];
      case "RequestRedirect": case "URLRewrite": case "RequestMirror": return [];
      default:
        unsupported(problems, `filters of type ${type} are not supported`);
        return [];
    }
  });
}

function edit(on: "request" | "response", { set = [], add = [], remove = [] }: HeaderFilter = {}): HeaderEdit {
  const lower = (list: typeof set) => list.map(({ name, value }) => ({ name: name.toLowerCase(), value: headerField(value).replace(/[\r\n]+/g, " ") })); // one line, whatever it says
  return { on, set: lower(set), add: lower(add), remove: remove.map((name) => name.toLowerCase()) };
}

function pathOf(path: PathModifier | undefined): PathRewrite | undefined {
  if (path?.type === "ReplaceFullPath") return { type: "ReplaceFullPath", value: escaped(path.replaceFullPath ?? "/") };
  return path?.type === "ReplacePrefixMatch" ? { type: "ReplacePrefixMatch", value: escaped(path.replacePrefixMatch ?? "/") } : undefined;
}

/** Go's durations, as far as the Gateway API allows them: "1h2m3s4ms". */
export function durationMs(text: string | undefined): number {
  const units: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 };
  return [...(text ?? "").matchAll(/(?<!\d)(\d+)(ms|h|m|s)/g)].reduce((sum, [, count, unit]) => sum + Number(count) * (units[unit ?? ""] ?? 0), 0);
}

interface Grant { readonly metadata: { readonly namespace?: string | undefined }; readonly spec: ReferenceGrant["spec"] }

/** Whether a grant's namespace, its own, lets one object refer to another. */
export function grants(all: Iterable<Grant>): References["isGranted"] {
  const allowed = new Map<string, Set<string>>(); // to what, by from where: of grants and references there may be thousands, and each of these is asked about
  for (const { metadata: { namespace = "" }, spec } of all) {
    const targets = spec.to.flatMap(({ group, kind, name = "" }) => (group === "" ? [`${kind} ${name}`] : []));
    for (const { group, kind, namespace: other } of spec.from) {
      if (group !== GATEWAY_GROUP) continue;
      const from = `${kind} ${other} ${namespace}`, known = allowed.get(from) ?? new Set();
      for (const target of targets) known.add(target);
      allowed.set(from, known);
    }
  }
  return (from, to) => {
    const targets = allowed.get(`${from.kind} ${from.namespace} ${to.namespace}`);
    return targets !== undefined && (targets.has(`${to.kind} `) || targets.has(`${to.kind} ${to.name}`));
  };
}
