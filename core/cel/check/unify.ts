/**
 * What types stand for one another. A variable of a type stands for the type it was first used as, or for a more general one it is used as later.
 *
 * Source: cel-go checker/{types,mapping}.go
 */
import { isDyn, isDynOrError, listOf, mapOf, opaque, sameType, typeOfType, DYN, type Type } from "./type.ts";

/** What type variables stand for, by their names. */
export type Substitutions = ReadonlyMap<string, Type>;

/** Whether values of the first types may stand where the second are asked for. What variables stand for then is added to what is `known`, of which there may be as much as the expression is long. */
export function assignable(from: readonly Type[], to: readonly Type[], known: Map<string, Type>): boolean {
  const found = new Found(known);
  const isAssignable = allAssignable(found, from, to);
  if (isAssignable) found.keep();
  return isAssignable;
}

/** What is known, with what a trial has added to it. */
class Found {
  readonly #known: Map<string, Type>;
  readonly #added = new Map<string, Type>();

  constructor(known: Map<string, Type>) { this.#known = known; }

  get(name: string): Type | undefined { return this.#added.get(name) ?? this.#known.get(name); }
  set(name: string, type: Type): void { this.#added.set(name, type); }
  keep(): void { for (const [name, type] of this.#added) this.#known.set(name, type); }
}

/** The more general of two types of which one may stand for the other. */
export function mostGeneral(a: Type, b: Type): Type { return isAsGeneral(a, b) ? a : b; }

/** More than what is nested as deep as an expression may be has. */
const PARTS_MAX = 512;

export class TypeTooLarge extends Error {
  override readonly name = "TypeTooLarge";
  constructor() { super(`type size exceeds limit: ${PARTS_MAX}`); }
}

/** Throws TypeTooLarge: in `[1].map(x, {x: x}).map(x, {x: x})` and so on each type has twice as many parts as the one before. */
export function bounded(type: Type): Type {
  if (type.parts > PARTS_MAX) throw new TypeTooLarge();
  return type;
}

/** `open`: what variables that stand for nothing become. Throws TypeTooLarge. */
export function substitute(known: Substitutions, type: Type, open: "dyn" | "kept" = "kept"): Type {
  const found = known.get(type.text);
  if (found) return substitute(known, found, open);
  if (type.kind === "param") return open === "dyn" ? DYN : type;
  if (type.parameters.length === 0) return type;
  const parameters = type.parameters.map((parameter) => substitute(known, parameter, open));
  switch (type.kind) {
    case "list": return bounded(listOf(parameters[0]!));
    case "map": return bounded(mapOf(parameters[0]!, parameters[1]!));
    case "type": return bounded(typeOfType(parameters[0]!));
    default: return bounded(opaque(type.name, ...parameters));
  }
}

function isAsGeneral(a: Type, b: Type): boolean {
  if (isDyn(a) || a.kind === "param") return true;
  if (isDyn(b) || b.kind === "param" || a.kind !== b.kind) return false;
  switch (a.kind) {
    case "opaque": return a.name === b.name && a.parameters.length === b.parameters.length && a.parameters.every((parameter, i) => isAsGeneral(parameter, b.parameters[i]!));
    case "list": case "map": return a.parameters.every((parameter, i) => isAsGeneral(parameter, b.parameters[i]!));
    case "type": return true;
    default: return sameType(a, b);
  }
}

function allAssignable(found: Found, a: readonly Type[], b: readonly Type[]): boolean {
  return a.length === b.length && a.every((type, i) => isAssignable(found, type, b[i]!));
}

function isAssignable(found: Found, a: Type, b: Type): boolean {
  if (b.kind === "param") {
    const { valid, known } = standsFor(found, a, b);
    if (valid) return true;
    if (known) return false;
  }
  if (a.kind === "param") return standsFor(found, b, a).valid;
  if (isDynOrError(a) || isDynOrError(b)) return true;
  if (a.kind === "null") return isNullable(b);
  if (b.kind === "null") return isNullable(a);
  switch (a.kind) {
    case "type": return b.kind === "type";
    case "opaque": case "list": case "map": return a.kind === b.kind && a.name === b.name && allAssignable(found, a.parameters, b.parameters);
    default: return a.kind === b.kind && a.name === b.name;
  }
}

/** Lets `variable` stand for `type`, if it may. */
function standsFor(found: Found, type: Type, variable: Type): { readonly valid: boolean; readonly known: boolean } {
  if (sameType(type, variable)) return { valid: true, known: true };
  const before = found.get(variable.text);
  if (before) {
    if (sameType(type, before)) return { valid: true, known: true };
    if (!isAssignable(found, type, before)) return { valid: false, known: true };
    const general = mostGeneral(type, before);
    if (!isWithin(found, variable, general)) found.set(variable.text, general);
    return { valid: true, known: true };
  }
  if (isWithin(found, variable, type)) return { valid: false, known: false };
  found.set(variable.text, type);
  return { valid: true, known: false };
}

function isWithin(found: Found, variable: Type, type: Type): boolean {
  if (sameType(variable, type)) return true;
  if (type.kind === "param") {
    const known = found.get(type.text);
    return known !== undefined && isWithin(found, variable, known);
  }
  return type.parameters.some((parameter) => isWithin(found, variable, parameter));
}

function isNullable({ kind }: Type): boolean { return ["null", "opaque", "struct", "any", "duration", "timestamp"].includes(kind); }
