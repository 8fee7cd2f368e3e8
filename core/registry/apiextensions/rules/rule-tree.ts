/**
 * Asks all rules of a schema about an object: those of the root, then those of what is in it.
 *
 *   const tree = ruleTree(structure);                                  undefined if there are no rules
 *   tree.check(object, { old, correlated, warn })                      what is wrong
 *
 * Rules are compiled when they are first asked. One that compares with the past (oldSelf) is asked only where there is one. What has not changed is not
 * held against a rule that does not compare: it is only warned of. All rules together may cost so much for one object; when that is spent, no more are
 * asked, and the object is refused.
 *
 * Source: kubernetes v1.36 apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go
 */
import type { ValidationRule } from "../../../api/gen/apiextensions.v1.ts";
import { child, duplicate, type FieldError, forbidden, formatFieldError, index, invalid, key, OMIT_VALUE, required } from "../../../api/meta/field-error.ts";
import { isMap, type JsonMap } from "../../../api/patch/json-value.ts";
import { evaluate, type Variables } from "../../../cel/compile.ts";
import { CALL_COST_LIMIT, kubernetesEnvironment, RUNTIME_COST_BUDGET } from "../../../cel/kubernetes.ts";
import type { Environment } from "../../../cel/check/declarations.ts";
import { declaredType, withObjectMeta } from "../../../cel/schema/declared-type.ts";
import { valueOf } from "../../../cel/schema/schema-value.ts";
import { isError, Optional } from "../../../cel/value/value.ts";
import { type Correlated, itemKey } from "../custom/correlate.ts";
import type { Structure } from "../custom/structure.ts";
import { compileRules, type CompiledRule, UndeclaredError } from "./compiled-rule.ts";
import { type RuleMeter, unmeasured } from "./rule-meter.ts";

const MESSAGE_BYTES_MAX = 5 * 1024;
const BUDGET_SPENT = "validation failed due to running out of cost budget, no further validation rules will be run";

export interface RuleTree {
  /** `correlated`: of an update. `budget`: what all rules may cost. */
  check(object: unknown, options: CheckOptions): Checked;
}

export interface CheckOptions {
  readonly old: unknown;
  readonly correlated?: Correlated | undefined;
  readonly path?: string;
  readonly budget?: number;
  readonly warn?: (warning: string) => void;
}

export interface Checked {
  readonly errors: FieldError[];
  /** What is left of it; negative if it was not enough. */
  readonly budget: number;
}

/** `root`: whether the structure is a resource. */
export function ruleTree(structure: Structure, { root = true, meter = unmeasured }: { readonly root?: boolean; readonly meter?: RuleMeter } = {}): RuleTree | undefined {
  if (!isAsked(structure)) return undefined;
  const environment = kubernetesEnvironment();
  let node: RuleNode | undefined;
  return {
    check(object, { old, correlated, path = "", budget = RUNTIME_COST_BUDGET, warn = () => undefined }) {
      const round: Round = { errors: [], budget, warn };
      const asked = (node ??= new RuleNode(structure, root, { environment, meter }));
      meter.evaluated(() => asked.check({ path, value: object, old, past: { current: correlated, parent: undefined } }, round));
      return { errors: round.errors, budget: round.budget };
    },
  };
}

/** Whether there are rules that are ever asked. `misplaced`: see RuleNode. */
function isAsked({ has, rules, type, properties, items, additional }: Structure, misplaced = false): boolean {
  if (!has.rules || rules.length > 0) return has.rules;
  return (items !== undefined && isAsked(items, misplaced || type !== "array")) || (additional !== undefined && isAsked(additional, misplaced))
    || (!misplaced && [...properties.values()].some((property) => property.has.rules && isDeclared(property) && isAsked(property)));
}

/** Where nothing is said of a field's type no rule knows the field, and none below it is asked. */
function isDeclared({ schema, embedded }: Structure): boolean { return declaredType(schema, { root: embedded }) !== undefined; }

interface Compiling { readonly environment: Environment; readonly meter: RuleMeter }

/** One object being checked. */
interface Round {
  readonly errors: FieldError[];
  /** Negative: no more rules are asked. */
  budget: number;
  readonly warn: (warning: string) => void;
}

interface Place {
  readonly path: string;
  readonly value: unknown;
  readonly old: unknown;
  readonly past: Past;
}

/** What tells whether something has changed: the value's own past or, if it has none, that of the nearest that has. */
interface Past {
  readonly current: Correlated | undefined;
  readonly parent: Correlated | undefined;
}

class RuleNode {
  readonly #structure: Structure;
  readonly #root: boolean;
  readonly #how: Compiling;
  #compiled: readonly CompiledRule[] | UndeclaredError | undefined;
  readonly #below = new Map<Structure, RuleNode>();
  readonly #undeclared = new Set<Structure>();

  /** No type can be declared for what is here, as it is not where its schema says: in a list that is to be an object. */
  readonly #misplaced: boolean;

  constructor(structure: Structure, root: boolean, { misplaced = false, ...how }: Compiling & { readonly misplaced?: boolean }) {
    this.#structure = structure;
    this.#root = root;
    this.#how = how;
    this.#misplaced = misplaced;
  }

  check(place: Place, round: Round): void {
    const { value } = place;
    if (value === null || value === undefined || !this.#structure.has.rules) return;
    if (this.#structure.rules.length > 0) this.#ask(place, round);
    if (round.budget < 0) return;
    if (Array.isArray(value)) this.#checkItems(value, place, round);
    else if (isMap(value)) this.#checkFields(value, place, round);
  }

  #checkFields(value: JsonMap, { path, old, past }: Place, round: Round): void {
    const { properties, additional } = this.#structure;
    for (const [name, below] of Object.entries(value)) {
      const property = properties.get(name);
      const structure = property ?? additional;
      if (!structure?.has.rules || (property && (this.#misplaced || !this.#knows(property)))) continue;
      const before = isMap(old) && Object.hasOwn(old, name) ? old[name] : undefined;
      this.#node(structure).check({ path: property ? child(path, name) : key(path, name), value: below, old: before, past: pastOfField(past, name) }, round);
      if (round.budget < 0) return;
    }
  }

  #checkItems(value: readonly unknown[], { path, old, past }: Place, round: Round): void {
    const { items, listType, listMapKeys } = this.#structure;
    if (!items?.has.rules) return;
    const before = new Map(listType === "map" && Array.isArray(old) ? old.toReversed().map((item) => [itemKey(item, listMapKeys), item]) : []);
    const node = this.#node(items, this.#structure.type !== "array");
    for (const [i, item] of value.entries()) {
      const itsKey = itemKey(item, listMapKeys);
      node.check({ path: index(path, i), value: item, old: itsKey === undefined ? undefined : before.get(itsKey), past: past.current ? { current: past.current.item(i), parent: past.current } : past }, round);
      if (round.budget < 0) return;
    }
  }

  #knows(property: Structure): boolean {
    if (this.#below.has(property)) return true;
    if (!this.#undeclared.has(property) && !isDeclared(property)) this.#undeclared.add(property);
    return !this.#undeclared.has(property);
  }

  #node(structure: Structure, misplaced = false): RuleNode {
    const known = this.#below.get(structure);
    if (known) return known;
    const node = new RuleNode(structure, structure.embedded, { ...this.#how, misplaced: misplaced || this.#misplaced });
    this.#below.set(structure, node);
    return node;
  }

  #rules(): readonly CompiledRule[] | UndeclaredError {
    if (this.#compiled) return this.#compiled;
    if (this.#misplaced) return (this.#compiled = new UndeclaredError());
    try {
      return (this.#compiled = this.#how.meter.compiled(() => compileRules(this.#structure.schema, { root: this.#root, environment: this.#how.environment }).rules));
    } catch (error) {
      if (error instanceof UndeclaredError) return (this.#compiled = error);
      throw error;
    }
  }

  #ask(place: Place, round: Round): void {
    const { type } = this.#structure;
    const fail = (detail: string): void => { round.errors.push(invalid(shown(place.path), type, detail)); };
    const rules = this.#rules();
    if (rules instanceof UndeclaredError) {
      fail(`rule compiler initialization error: ${rules.message}`);
      return;
    }
    if (round.budget <= 0) {
      fail(BUDGET_SPENT);
      round.budget = -1;
      return;
    }
    const variables = this.#variables(place, rules.some(({ usesOldSelf }) => usesOldSelf));
    for (const compiled of rules) {
      if (compiled.error !== undefined) fail(`rule compile error: ${compiled.error}`);
      else if (compiled.program && hasPast(compiled, place.old))
        this.#askOne(compiled, compiled.program, { place, round, variables: variables(compiled.rule.optionalOldSelf === true), ofMessage: variables(false), fail });
      if (round.budget < 0) return;
    }
  }

  /** `compares`: whether any of the rules speaks of oldSelf: else it has no value, in messages neither. */
  #variables({ value, old }: Place, compares: boolean): (optional: boolean) => Variables {
    const schema = this.#root ? withObjectMeta(this.#structure.schema) : this.#structure.schema;
    const self = valueOf(value, schema);
    if (!compares) return () => ({ self });
    const had = old !== undefined && old !== null;
    const oldSelf = had ? valueOf(old, schema) : undefined;
    return (optional) => ({ self, oldSelf: optional ? new Optional(oldSelf) : oldSelf });
  }

  #askOne({ rule, message, usesOldSelf, fieldPath }: CompiledRule, program: NonNullable<CompiledRule["program"]>, { place, round, variables, ofMessage, fail }: Asking): void {
    const { value, cost, exceeded } = evaluate(program.compiled, variables, { costLimit: CALL_COST_LIMIT });
    if (cost > round.budget) {
      fail(BUDGET_SPENT);
      round.budget = -1;
      return;
    }
    round.budget -= cost;
    if (exceeded && isError(value)) {
      fail(`'${value.message}': no further validation rules will be run due to call cost exceeds limit for rule: ${nameOf(rule)}`);
      round.budget = -1;
      return;
    }
    if (isError(value)) {
      const misfit = value.message.startsWith("no such overload");
      fail(misfit ? `'${value.message}': call arguments did not match a supported operator, function or macro signature for rule: ${nameOf(rule)}` : `${value.message} evaluating rule: ${nameOf(rule)}`);
      return;
    }
    if (value === true) return;
    const path = fieldPath === "" ? place.path : child(place.path, fieldPath);
    const add = (error: FieldError): void => {
      if (!usesOldSelf && isUnchanged(place.past)) round.warn(formatFieldError(error));
      else round.errors.push(error);
    };
    const told = message && this.#message(message, { expression: rule.messageExpression!, variables: ofMessage, round });
    if (told && "stop" in told) {
      add(invalid(shown(path), this.#structure.type, told.stop));
      round.budget = -1;
      return;
    }
    const detail = told?.text ?? (rule.message ? rule.message.trim() : `failed rule: ${nameOf(rule)}`);
    const isAggregate = this.#structure.type === "object" || this.#structure.type === "array";
    add(errorFor(rule, { path: shown(path), value: isAggregate ? OMIT_VALUE : place.value, detail }));
  }

  /** Undefined: it could not be told that way. */
  #message({ compiled }: NonNullable<CompiledRule["message"]>, { expression, variables, round }: { readonly expression: string; readonly variables: Variables; readonly round: Round }): { readonly text: string } | { readonly stop: string } | undefined {
    const { value, cost, exceeded } = evaluate(compiled, variables, { costLimit: CALL_COST_LIMIT });
    if (cost > round.budget) return { stop: "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run" };
    if (exceeded) return { stop: `no further validation rules will be run due to call cost exceeds limit for messageExpression: ${JSON.stringify(expression)}` };
    round.budget -= cost;
    const text = typeof value === "string" ? value.trim() : "";
    return text === "" || text.includes("\n") || Buffer.byteLength(text) > MESSAGE_BYTES_MAX ? undefined : { text };
  }
}

interface Asking {
  readonly place: Place;
  readonly round: Round;
  readonly variables: Variables;
  /** An oldSelf in a message is never optional: where the rule's is, a message that asks whether there is one cannot be made. */
  readonly ofMessage: Variables;
  readonly fail: (detail: string) => void;
}

function hasPast({ usesOldSelf, rule }: CompiledRule, old: unknown): boolean { return !usesOldSelf || rule.optionalOldSelf === true || (old !== undefined && old !== null); }

/** A resource's kind and version are never excused. */
function pastOfField(past: Past, name: string): Past {
  if (!past.current) return past;
  if (!past.parent && (name === "apiVersion" || name === "kind")) return { current: undefined, parent: undefined };
  return { current: past.current.field(name), parent: past.current };
}

function isUnchanged({ current, parent }: Past): boolean { return (current ?? parent)?.unchanged ?? false; }

/** As upstream shows the path of the whole object. */
function shown(path: string): string { return path === "" ? "<nil>" : path; }

function nameOf({ rule, message }: ValidationRule): string { return (message ? message : rule).trim(); }

function errorFor({ reason }: ValidationRule, { path, value, detail }: { readonly path: string; readonly value: unknown; readonly detail: string }): FieldError {
  switch (reason) {
    case "FieldValueForbidden": return forbidden(path, detail);
    case "FieldValueRequired": return required(path, detail);
    case "FieldValueDuplicate": return duplicate(path, value);
    default: return invalid(path, value, detail);
  }
}
