/**
 * Values that may be missing: `optional.of(x)`, `self.?a.b`, `list[?0]`, `.orValue(1)`, optMap().
 *
 * Source: cel-go cel/library.go (version 2, the one Kubernetes has)
 */
import { defineFunction, method, overload, type Library } from "../check/declarations.ts";
import { BOOL, DYN, INT, STRING, listOf, mapOf, optionalOf, OPTIONAL, param } from "../check/type.ts";
import { OPERATORS } from "../syntax/expr.ts";
import { OPTIONAL_MACROS } from "../syntax/macros.ts";
import { show } from "../value/show.ts";
import { Duration, EvalError, List, listFrom, Mapping, Optional, sizeOf, Timestamp, Uint, type Value } from "../value/value.ts";

const [K, V] = [param("K"), param("V")];
const OPTIONAL_V = optionalOf(V);
const [LIST_V, MAP_KV] = [listOf(V), mapOf(K, V)];
/** Year 1. */
const ZERO_TIME = -62_135_596_800_000_000_000n;

export const optionalsLibrary: Library = {
  functions: [
    defineFunction("optional.of", overload("optional_of", [V], OPTIONAL_V, ([value]) => new Optional(value!))),
    defineFunction("optional.ofNonZeroValue", overload("optional_ofNonZeroValue", [V], OPTIONAL_V, ([value]) => (isZero(value!) ? Optional.none : new Optional(value!)))),
    defineFunction("optional.none", overload("optional_none", [], OPTIONAL_V, () => Optional.none)),
    defineFunction("value", method("optional_value", [OPTIONAL_V], V, ([optional]) => valueOf(optional as Optional))),
    defineFunction("hasValue", method("optional_hasValue", [OPTIONAL_V], BOOL, ([optional]) => (optional as Optional).value !== undefined)),
    // These four are evaluated by those who plan.
    defineFunction("or", method("optional_or_optional", [OPTIONAL_V, OPTIONAL_V], OPTIONAL_V)),
    defineFunction("orValue", method("optional_orValue_value", [OPTIONAL_V, V], V)),
    defineFunction(OPERATORS.optSelect, overload("select_optional_field", [DYN, STRING], OPTIONAL_V)),
    defineFunction(OPERATORS.optIndex,
      overload("list_optindex_optional_int", [LIST_V, INT], OPTIONAL_V), overload("optional_list_optindex_optional_int", [optionalOf(LIST_V), INT], OPTIONAL_V),
      overload("map_optindex_optional_value", [MAP_KV, K], OPTIONAL_V), overload("optional_map_optindex_optional_value", [optionalOf(MAP_KV), K], OPTIONAL_V)),
    defineFunction(OPERATORS.index, overload("optional_list_index_int", [optionalOf(LIST_V), INT], OPTIONAL_V), overload("optional_map_index_value", [optionalOf(MAP_KV), K], OPTIONAL_V)),
    defineFunction("last", method("list_last", [LIST_V], OPTIONAL_V, ([list]) => elementOf(list as List, (list as List).size - 1))),
    defineFunction("first", method("list_first", [LIST_V], OPTIONAL_V, ([list]) => elementOf(list as List, 0))),
    defineFunction("optional.unwrap", overload("optional_unwrap", [listOf(OPTIONAL_V)], LIST_V, ([list]) => unwrapped(list as List))),
    defineFunction("unwrapOpt", method("optional_unwrapOpt", [listOf(OPTIONAL_V)], LIST_V, ([list]) => unwrapped(list as List))),
  ],
  macros: OPTIONAL_MACROS,
  types: [OPTIONAL],
};

function valueOf({ value }: Optional): Value { return value === undefined ? new EvalError("optional.none() dereference") : value; }

function elementOf(list: List, index: number): Value { return index >= 0 && index < list.size ? new Optional(list.at(index)) : Optional.none; }

function unwrapped(list: List): Value {
  const values: Value[] = [];
  for (const value of list) {
    if (!(value instanceof Optional)) return new EvalError(`value ${show(value)} is not optional`);
    if (value.value !== undefined) values.push(value.value);
  }
  return listFrom(values);
}

function isZero(value: Value): boolean {
  if (value === null || value === false || value === 0n || value === 0) return true;
  if (value instanceof Uint) return value.value === 0n;
  if (value instanceof Duration) return value.nanos === 0n;
  if (value instanceof Timestamp) return value.nanos === ZERO_TIME;
  return (typeof value === "string" || value instanceof Uint8Array || value instanceof List || value instanceof Mapping) && sizeOf(value) === 0;
}
