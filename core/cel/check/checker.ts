/**
 * Finds the type of each part of an expression and what it refers to. Says what is wrong in cel-go's words.
 *
 *   const { expr, types, references, issues } = check(parsed, environment);
 *
 * The expression comes back with the names it was meant with: `optional.none()` is a call of a function, not of a method of `optional`.
 *
 * Source: cel-go checker/{checker,errors}.go
 */
import { OPERATORS, qualifiedName, type Call, type Comprehension, type Expr, type ListExpr, type MapExpr, type Select, type StructExpr } from "../syntax/expr.ts";
import type { Issue } from "../syntax/source.ts";
import { typeOf } from "../value/value.ts";
import type { Environment, FunctionDeclaration } from "./declarations.ts";
import { BOOL, DYN, ERROR, INT, formatArguments, isDyn, isDynOrError, isOptional, listOf, mapOf, optionalOf, param, sameType, withoutOptional, type Type } from "./type.ts";
import { assignable, bounded, mostGeneral, substitute, type Substitutions, TypeTooLarge } from "./unify.ts";

/** What a node refers to. */
export type Reference = { readonly kind: "variable"; readonly name: string } | { readonly kind: "type"; readonly type: Type } | { readonly kind: "overloads"; readonly ids: readonly string[] };

export interface Checked {
  readonly expr: Expr;
  readonly types: ReadonlyMap<number, Type>;
  readonly references: ReadonlyMap<number, Reference>;
  readonly issues: readonly Issue[];
}

export function check(expr: Expr, places: ReadonlyMap<number, number>, environment: Environment): Checked {
  return new Checker(environment, places).check(expr);
}

class Checker {
  readonly #environment: Environment;
  readonly #places: ReadonlyMap<number, number>;
  readonly #types = new Map<number, Type>();
  readonly #references = new Map<number, Reference>();
  readonly #issues: Issue[] = [];
  /** Of comprehensions, innermost last. */
  readonly #scopes: ReadonlyMap<string, Type>[] = [];
  readonly #known = new Map<string, Type>();
  #variables = 0;

  constructor(environment: Environment, places: ReadonlyMap<number, number>) { this.#environment = environment; this.#places = places; }

  check(expr: Expr): Checked {
    let checked = expr;
    try {
      checked = this.#visit(expr);
      for (const [id, type] of this.#types) this.#types.set(id, substitute(this.#known, type, "dyn"));
    } catch (error) {
      if (!(error instanceof TypeTooLarge)) throw error;
      this.#issues.push({ at: undefined, message: error.message });
    }
    return { expr: checked, types: this.#types, references: this.#references, issues: this.#issues };
  }

  #visit(expr: Expr): Expr {
    switch (expr.kind) {
      case "literal": return this.#typed(expr, typeOf(expr.value));
      case "ident": return this.#ident(expr, expr.name) ?? this.#undeclared(expr, expr.name);
      case "select": return this.#select(expr);
      case "call": return this.#call(expr);
      case "list": return this.#list(expr);
      case "map": return this.#map(expr);
      case "struct": return this.#struct(expr);
      case "comprehension": return this.#comprehension(expr);
      case "unspecified": return this.#typed(expr, ERROR);
    }
  }

  #ident(expr: Expr, written: string): Expr | undefined {
    const name = written.startsWith(".") ? written.slice(1) : written;
    const local = this.#scopes.findLast((scope) => scope.has(name))?.get(name);
    const global = local ? undefined : this.#environment.identifier(name);
    const type = local ?? global?.type;
    if (!type) return undefined;
    this.#references.set(expr.id, global?.names === "type" ? { kind: "type", type: type.parameters[0]! } : { kind: "variable", name });
    return this.#typed({ kind: "ident", id: expr.id, name }, type);
  }

  #select(expr: Select): Expr {
    const qualified = qualifiedName(expr);
    const ident = qualified === undefined ? undefined : this.#ident(expr, qualified);
    if (ident) return ident;
    const operand = this.#visit(expr.operand);
    const type = this.#fieldType(expr, operand, { field: expr.field, optional: false });
    return this.#typed({ ...expr, operand }, expr.test ? BOOL : substitute(this.#known, type));
  }

  #fieldType(expr: Expr, operand: Expr, { field, optional }: { readonly field: string; readonly optional: boolean }): Type {
    const operandType = substitute(this.#known, this.#typeOf(operand));
    const target = withoutOptional(operandType);
    const type = this.#fieldOf(expr, target, field);
    return optional || isOptional(operandType) ? optionalOf(type) : type;
  }

  #fieldOf(expr: Expr, target: Type, field: string): Type {
    switch (target.kind) {
      case "map": return target.parameters[1]!;
      case "struct": return this.#structField(expr.id, target.name, field) ?? ERROR;
      case "param":
        this.#assign(DYN, target);
        return DYN;
      default:
        if (!isDynOrError(target)) this.#issue(expr.id, `type '${target.text}' does not support field selection`);
        return DYN;
    }
  }

  #structField(id: number, struct: string, field: string): Type | undefined {
    const { structs } = this.#environment;
    if (!structs.has(struct)) {
      this.#issue(id, `unexpected failed resolution of '${struct}'`);
      return undefined;
    }
    const type = structs.field(struct, field);
    if (!type) this.#issue(id, `undefined field '${field}'`);
    return type;
  }

  #call(expr: Call): Expr {
    if (expr.name === OPERATORS.optSelect) return this.#optionalSelect(expr);
    const args = expr.args.map((arg) => this.#visit(arg));
    if (!expr.target) {
      const declared = this.#function(expr.name);
      return declared ? this.#resolved({ ...expr, name: declared.name, args }, declared) : this.#undeclared({ ...expr, args }, expr.name);
    }
    const prefix = qualifiedName(expr.target);
    const qualified = prefix === undefined ? undefined : this.#function(`${prefix}.${expr.name}`);
    if (qualified) return this.#resolved({ ...expr, name: qualified.name, target: undefined, args }, qualified);
    const target = this.#visit(expr.target);
    const declared = this.#function(expr.name);
    return declared ? this.#resolved({ ...expr, target, args }, declared) : this.#undeclared({ ...expr, target, args }, expr.name);
  }

  #function(name: string): FunctionDeclaration | undefined { return this.#environment.functions.get(name.startsWith(".") ? name.slice(1) : name); }

  #optionalSelect(expr: Call): Expr {
    const [operand, field] = [this.#visit(expr.args[0]!), expr.args[1]!];
    const type = this.#fieldType(expr, operand, { field: field.kind === "literal" ? String(field.value) : "", optional: true });
    this.#references.set(expr.id, { kind: "overloads", ids: ["select_optional_field"] });
    return this.#typed({ ...expr, args: [operand, field] }, substitute(this.#known, type));
  }

  #resolved(call: Call, declared: FunctionDeclaration): Expr {
    const args = call.target ? [call.target, ...call.args] : call.args;
    const types = args.map((arg) => this.#typeOf(arg));
    if (declared.name === OPERATORS.and || declared.name === OPERATORS.or) return this.#logical(call, declared, types);
    const ids: string[] = [];
    let result: Type | undefined;
    for (const overload of declared.overloads) {
      if (overload.method !== (call.target !== undefined)) continue;
      const fresh = this.#freshParameters([overload.result, ...overload.args]);
      if (!assignable(types, overload.args.map((arg) => substitute(fresh, arg)), this.#known)) continue;
      ids.push(overload.id);
      const returned = substitute(this.#known, substitute(fresh, overload.result));
      if (!result) result = returned;
      else if (!isDyn(result) && !sameType(returned, result)) result = DYN;
    }
    if (!result) {
      const shown = formatArguments(types.map((type) => substitute(this.#known, type, "dyn")), call.target !== undefined);
      this.#issue(call.id, `found no matching overload for '${declared.name}' applied to '${shown}'`);
      return this.#typed(call, ERROR);
    }
    this.#references.set(call.id, { kind: "overloads", ids });
    return this.#typed(call, result);
  }

  #logical(call: Call, declared: FunctionDeclaration, types: readonly Type[]): Expr {
    const wrong = types.map((type, i) => {
      if (this.#assign(type, BOOL)) return false;
      this.#mismatch(call.args[i]!.id, BOOL, type);
      return true;
    });
    if (wrong.includes(true)) return this.#typed(call, ERROR);
    this.#references.set(call.id, { kind: "overloads", ids: [declared.overloads[0]!.id] });
    return this.#typed(call, BOOL);
  }

  #freshParameters(types: readonly Type[]): Substitutions {
    const fresh = new Map<string, Type>();
    const collect = (type: Type): void => {
      if (type.kind === "param" && !fresh.has(type.text)) fresh.set(type.text, this.#variable());
      type.parameters.forEach(collect);
    };
    types.forEach(collect);
    return fresh;
  }

  #list(expr: ListExpr): Expr {
    let elementType: Type | undefined;
    const elements = expr.elements.map((written, i) => {
      const element = this.#visit(written);
      elementType = this.#joined(elementType, this.#entryType(element, expr.optional.has(i)));
      return element;
    });
    return this.#typed({ ...expr, elements }, listOf(elementType ?? this.#variable()));
  }

  #map(expr: MapExpr): Expr {
    let keyType: Type | undefined;
    let valueType: Type | undefined;
    const entries = expr.entries.map((entry) => {
      const key = this.#visit(entry.key);
      keyType = this.#joined(keyType, this.#typeOf(key));
      const value = this.#visit(entry.value);
      valueType = this.#joined(valueType, this.#entryType(value, entry.optional));
      return { ...entry, key, value };
    });
    return this.#typed({ ...expr, entries }, mapOf(keyType ?? this.#variable(), valueType ?? this.#variable()));
  }

  /** The type of an element; one written with a question mark must be optional. */
  #entryType(element: Expr, optional: boolean): Type {
    const type = this.#typeOf(element);
    if (!optional) return type;
    const inner = withoutOptional(type);
    if (!isOptional(type) && !isDyn(inner)) this.#mismatch(element.id, optionalOf(inner), inner);
    return inner;
  }

  /** Elements of several types make a list of anything; who forbids it looks at them afterwards. */
  #joined(before: Type | undefined, type: Type): Type {
    if (!before) return type;
    return this.#assign(before, type) ? mostGeneral(before, type) : DYN;
  }

  #struct(expr: StructExpr): Expr {
    const name = expr.name.startsWith(".") ? expr.name.slice(1) : expr.name;
    const ident = this.#environment.identifier(name);
    if (!ident) return this.#undeclared(expr, expr.name);
    let type: Type = ERROR;
    if (ident.names !== "type") this.#issue(expr.id, `'${ident.type.name}' is not a type`);
    else if (ident.type.parameters[0]!.kind !== "struct") this.#issue(expr.id, `'${ident.type.parameters[0]!.name}' is not a message type`);
    else type = ident.type.parameters[0]!;
    this.#references.set(expr.id, { kind: "variable", name });
    const fields = expr.fields.map((field) => {
      const value = this.#visit(field.value);
      const fieldType = this.#structField(field.id, name, field.name) ?? ERROR;
      const valueType = this.#entryType(value, field.optional);
      if (!this.#assign(fieldType, valueType)) this.#issue(field.id, `expected type of field '${field.name}' is '${fieldType.text}' but provided type is '${valueType.text}'`);
      return { ...field, value };
    });
    return this.#typed({ ...expr, name, fields }, type);
  }

  #comprehension(expr: Comprehension): Expr {
    const [range, init] = [this.#visit(expr.range), this.#visit(expr.init)];
    const accuType = this.#typeOf(init);
    const [first, second] = this.#elementTypes(range, expr.iterVar2 !== undefined);
    this.#scopes.push(new Map([[expr.accuVar, accuType]]));
    this.#scopes.push(new Map([[expr.iterVar, first], ...(expr.iterVar2 === undefined ? [] : [[expr.iterVar2, second] as const])]));
    const condition = this.#expected(expr.condition, BOOL);
    const step = this.#expected(expr.step, accuType);
    this.#scopes.pop();
    const result = this.#visit(expr.result);
    this.#scopes.pop();
    return this.#typed({ ...expr, range, init, condition, step, result }, substitute(this.#known, this.#typeOf(result)));
  }

  #elementTypes(range: Expr, two: boolean): readonly [Type, Type] {
    const type = substitute(this.#known, this.#typeOf(range));
    switch (type.kind) {
      case "list": return two ? [INT, type.parameters[0]!] : [type.parameters[0]!, ERROR];
      case "map": return [type.parameters[0]!, type.parameters[1]!];
      case "dyn": case "error": case "param":
        this.#assign(DYN, type);
        return [DYN, DYN];
      default:
        this.#issue(range.id, `expression of type '${type.text}' cannot be range of a comprehension (must be list, map, or dynamic)`);
        return [ERROR, ERROR];
    }
  }

  #expected(written: Expr, type: Type): Expr {
    const expr = this.#visit(written);
    if (!this.#assign(type, this.#typeOf(expr))) this.#mismatch(expr.id, type, this.#typeOf(expr));
    return expr;
  }

  #assign(to: Type, from: Type): boolean { return assignable([to], [from], this.#known); }

  #variable(): Type { return param(`_var${this.#variables++}`); }
  #typeOf(expr: Expr): Type { return this.#types.get(expr.id) ?? ERROR; }

  #typed<E extends Expr>(expr: E, type: Type): E {
    this.#types.set(expr.id, bounded(type));
    return expr;
  }

  #undeclared(expr: Expr, name: string): Expr {
    this.#issue(expr.id, `undeclared reference to '${name}' (in container '')`);
    return this.#typed(expr, ERROR);
  }

  #mismatch(id: number, expected: Type, found: Type): void { this.#issue(id, `expected type '${expected.text}' but found '${found.text}'`); }
  #issue(id: number, message: string): void { this.#issues.push({ at: this.#places.get(id), message }); }
}
