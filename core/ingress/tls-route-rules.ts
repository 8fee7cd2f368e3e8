/** The one rule of a TLSRoute or TCPRoute as that of an HTTPRoute would be: whatever is asked for by a name, or comes at all, goes to these endpoints. Pure. */
import type { TcpRoute, TlsRoute } from "./gateway-types.ts";
import { type References, type RuleSet, ruleSetOf } from "./http-route-rules.ts";

export function tlsRuleSet(route: TlsRoute, references: References): RuleSet { return ruleSetFor("TLSRoute", route, references); }

export function tcpRuleSet(route: TcpRoute, references: References): RuleSet { return ruleSetFor("TCPRoute", route, references); }

function ruleSetFor(kind: "TLSRoute" | "TCPRoute", { metadata, spec }: TlsRoute, references: References): RuleSet {
  return ruleSetOf(spec.rules ?? [{}], () => ({ path: { type: "Prefix", value: "/" } }), { kind, namespace: metadata.namespace ?? "" }, references);
}
