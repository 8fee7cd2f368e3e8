/**
 * Which implementation a call runs, and what the call costs.
 *
 * Where the types were known before, it is the overload that was found then; otherwise the first whose types the values have.
 *
 * Source: cel-go common/decls/decls.go, common/types/types.go
 */
import type { FunctionDeclaration, Implementation, Overload } from "../check/declarations.ts";
import type { Type } from "../check/type.ts";
import { EvalError, isError, List, Mapping, typeOf, type Value } from "../value/value.ts";

export interface Dispatch {
  readonly apply: Implementation;
  /** Undefined if it is known only when values are. */
  readonly overload: Overload | undefined;
}

/** `ids`: the overloads that fit the types. */
export function dispatch(declared: FunctionDeclaration, ids: readonly string[]): Dispatch {
  const overload = ids.length === 1 ? declared.overloads.find(({ id }) => id === ids[0]) : undefined;
  if (declared.apply) return { apply: declared.apply, overload };
  const candidates = overload ? [overload] : declared.overloads;
  return {
    overload,
    apply(args) {
      const error = args.find(isError);
      if (error) return error;
      const fitting = candidates.find((candidate) => candidate.apply && (declared.unguarded ? candidate.args.length === args.length : fits(candidate, args)));
      return fitting ? fitting.apply!(args) : new EvalError(`no such overload: ${declared.name}(${args.map((arg) => typeOf(arg).name).join(", ")})`);
    },
  };
}

function fits({ args }: Overload, values: readonly Value[]): boolean { return args.length === values.length && args.every((type, i) => isOfType(values[i]!, type)); }

/** Of lists and maps only the first entry is looked at. */
function isOfType(value: Value, type: Type): boolean {
  if (type.kind === "dyn" || type.kind === "any" || type.kind === "param") return true;
  if (typeOf(value).name !== type.name) return false;
  if (value instanceof List) return value.size === 0 || isOfType(value.at(0), type.parameters[0]!);
  if (!(value instanceof Mapping) || type.kind !== "map") return true;
  for (const key of value.keys()) return isOfType(key, type.parameters[0]!) && isOfType(value.find(key)!, type.parameters[1]!);
  return true;
}
