/**
 * What the requirements of a large selector want of each label, found out once: a query of a megabyte is asked of each object of a list, and looks at no more than the object's own labels then.
 *
 *   const rules = labelRules(requirements);
 *   rulesHold(rules, labels)           as if each requirement were asked
 */
import { type LabelRequirement, type Labels, parseInt64 } from "./label-requirement.ts";

/** Of one key. */
interface Rule {
  needed: boolean;
  unwanted: boolean;
  /** Undefined: any. */
  allowed: ReadonlySet<string> | undefined;
  readonly refused: Set<string>;
  /** Exclusive; undefined: no bound. */
  above: bigint | undefined;
  below: bigint | undefined;
  /** A bound that is no number: nothing is beyond it. */
  hopeless: boolean;
}

export interface LabelRules { readonly byKey: ReadonlyMap<string, Readonly<Rule>>; readonly needed: number }

/** With more keys than these an object's labels are gone through instead. */
const KEYS_MAX = 64;

export function labelRules(requirements: readonly LabelRequirement[]): LabelRules {
  const byKey = new Map<string, Rule>();
  for (const requirement of requirements) {
    const { key } = requirement;
    let rule = byKey.get(key);
    if (!rule) byKey.set(key, rule = { needed: false, unwanted: false, allowed: undefined, refused: new Set(), above: undefined, below: undefined, hopeless: false });
    add(rule, requirement);
  }
  return { byKey, needed: [...byKey.values()].filter(({ needed }) => needed).length };
}

/** Mutates `rule`. */
function add(rule: Rule, { operator, values }: LabelRequirement): void {
  if (operator !== "!" && operator !== "!=" && operator !== "notin") rule.needed = true;
  switch (operator) {
    case "=": case "==": case "in": {
      const wanted = operator === "in" ? values : values.slice(0, 1), { allowed } = rule;
      rule.allowed = new Set(allowed ? wanted.filter((value) => allowed.has(value)) : wanted);
      return;
    }
    case "!=": case "notin":
      for (const value of values) rule.refused.add(value);
      return;
    case "!":
      rule.unwanted = true;
      return;
    case "gt": case "lt": {
      const bound = parseInt64(values[0] ?? "");
      if (bound === undefined) rule.hopeless = true;
      else if (operator === "gt") rule.above = rule.above === undefined || bound > rule.above ? bound : rule.above;
      else rule.below = rule.below === undefined || bound < rule.below ? bound : rule.below;
    }
  }
}

export function rulesHold({ byKey, needed }: LabelRules, labels: Labels): boolean {
  let met = 0;
  for (const key of byKey.size > KEYS_MAX ? Object.keys(labels) : byKey.keys()) {
    const rule = byKey.get(key);
    const value: unknown = labels[key];
    if (!rule || typeof value !== "string") continue;
    if (!holds(rule, value)) return false;
    if (rule.needed) met++;
  }
  return met === needed;
}

function holds({ unwanted, allowed, refused, above, below, hopeless }: Readonly<Rule>, value: string): boolean {
  if (unwanted || hopeless || refused.has(value) || (allowed && !allowed.has(value))) return false;
  if (above === undefined && below === undefined) return true;
  const number = parseInt64(value);
  return number !== undefined && (above === undefined || number > above) && (below === undefined || number < below);
}
