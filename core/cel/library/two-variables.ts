/** Macros over indexes and values, keys and values: `list.all(i, v, …)`, `map.transformMap(k, v, …)`. Source: cel-go ext/comprehensions.go */
import { defineFunction, overload, type Library } from "../check/declarations.ts";
import { mapOf, param } from "../check/type.ts";
import { MAP_INSERT, TWO_VARIABLE_MACROS } from "../syntax/macros.ts";
import { inserted } from "../value/mutable.ts";
import { isError, type Mapping, type Value } from "../value/value.ts";

const [K, V] = [param("K"), param("V")];
const MAP_KV = mapOf(K, V);

export const twoVariablesLibrary: Library = {
  functions: [
    defineFunction(MAP_INSERT,
      overload("@mapInsert_map_key_value", [MAP_KV, K, V], MAP_KV, ([map, key, value]) => inserted(map as Mapping, key!, value!)),
      overload("@mapInsert_map_map", [MAP_KV, MAP_KV], MAP_KV, ([map, more]) => allInserted(map as Mapping, more as Mapping))),
  ],
  macros: TWO_VARIABLE_MACROS,
};

function allInserted(map: Mapping, more: Mapping): Value {
  let result: Value = map;
  for (const key of more.keys()) {
    result = inserted(result as Mapping, key, more.find(key)!);
    if (isError(result)) return result;
  }
  return result;
}
