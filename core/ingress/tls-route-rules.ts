/** The one rule of a TLSRoute as that of an HTTPRoute would be: whatever is asked for by a name goes to these endpoints. Pure. */
import type { TlsRoute } from "./gateway-types.ts";
import { type References, type RuleSet, ruleSetOf } from "./http-route-rules.ts";

export function tlsRuleSet({ metadata, spec }: TlsRoute, references: References): RuleSet {
  return ruleSetOf(spec.rules ?? [{}], () => ({ path: { type: "Prefix", value: "/" } }), { kind: "TLSRoute", namespace: metadata.namespace ?? "" }, references);
}
