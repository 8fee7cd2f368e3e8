/**
 * More of lists: sum, min, max, isSorted, indexOf; slice, flatten, sort, sortBy, distinct, reverse, lists.range; sets.contains and its like.
 *
 * Source: kubernetes v1.36 apiserver/pkg/cel/library/lists.go; cel-go ext/{lists,sets}.go
 */
import { defineFunction, defineOperator, defineUnguarded, method, overload, type FunctionDeclaration, type Implementation, type Library, type OverloadCost } from "../check/declarations.ts";
import { BOOL, BYTES, DOUBLE, DURATION, DYN, INT, STRING, TIMESTAMP, UINT, listOf, param, type Type } from "../check/type.ts";
import { add } from "../value/arithmetic.ts";
import { goTypeName } from "../value/convert.ts";
import { goTypeOf } from "../value/go-type.ts";
import { compare, Duration, equal, EvalError, isError, List, listFrom, noSuchOverload, sizeOf, typeOf, Uint, type Value } from "../value/value.ts";
import type { CostNode } from "../cost/call-estimate.ts";
import { LIST_COST, STRING_FACTOR } from "../cost/factors.ts";
import { fixed, LARGEST, product, sum as sumOf, times, type Estimate } from "../cost/size-estimate.ts";
import { SORT_BY_MACRO } from "./sort-by.ts";
import { forKinds } from "./standard.ts";

const [A, T] = [param("A"), param("T")];
const LIST_T = listOf(T);
/** As Kubernetes names them in its overloads; cel-go uses the types' own names. */
const COMPARABLE: readonly (readonly [name: string, type: Type])[] = [["int", INT], ["uint", UINT], ["double", DOUBLE], ["bool", BOOL], ["duration", DURATION], ["timestamp", TIMESTAMP], ["string", STRING], ["bytes", BYTES]];
const ZEROS: readonly (readonly [name: string, type: Type, zero: Value])[] = [["int", INT, 0n], ["uint", UINT, new Uint(0n)], ["double", DOUBLE, 0], ["duration", DURATION, new Duration(0n)]];
const FLATTEN_ALL = 2 ** 63;

export const listsLibrary: Library = {
  functions: [
    defineFunction("isSorted", ...COMPARABLE.map(([name, type]) => method(`list_${name}_is_sorted_bool`, [listOf(type)], BOOL, ([list]) => isSorted(list as List)))),
    defineFunction("sum", ...ZEROS.map(([name, type, zero]) => method(`list_${name}_sum_${name}`, [listOf(type)], type, ([list]) => sum(list as List, zero)))),
    defineFunction("max", ...COMPARABLE.map(([name, type]) => method(`list_${name}_max_${name}`, [listOf(type)], type, ([list]) => extreme(list as List, "max", -1)))),
    defineFunction("min", ...COMPARABLE.map(([name, type]) => method(`list_${name}_min_${name}`, [listOf(type)], type, ([list]) => extreme(list as List, "min", 1)))),
    defineFunction("indexOf", method("list_a_index_of_int", [listOf(A), A], INT, ([list, value]) => BigInt([...(list as List)].findIndex((each) => equal(each, value!) === true)))),
    defineFunction("lastIndexOf", method("list_a_last_index_of_int", [listOf(A), A], INT, ([list, value]) => BigInt([...(list as List)].findLastIndex((each) => equal(each, value!) === true)))),
  ],
};

export const moreListsLibrary: Library = {
  functions: [
    defineFunction("slice", method("list_slice", [LIST_T, INT, INT], LIST_T, ([list, start, end]) => slice(list as List, start as bigint, end as bigint), allocating(sliceSize, (_, result) => sizeIn(result)))),
    defineUnguarded("flatten",
      method("list_flatten", [listOf(LIST_T)], LIST_T, ([list]) => flatten(list!, undefined), flattening(() => 1n)),
      method("list_flatten_int", [listOf(DYN), INT], listOf(DYN), ([list, depth]) => flatten(list!, depth!), flattening(([depth]) => wholeIn(depth!, LARGEST)))),
    sorting("sort", "sort", (type) => [listOf(type)], ([list]) => sortedBy(list as List, list as List), ({ target }) => target),
    sorting("@sortByAssociatedKeys", "sortByAssociatedKeys", (type) => [LIST_T, listOf(type)], ([list, keys]) => sortedBy(list as List, keys as List), ({ args }) => args[0]),
    defineFunction("lists.range", overload("lists_range", [INT], listOf(INT), ([end]) => new Range(end as bigint), allocating(({ args }) => fixed(wholeIn(args[0]!, LARGEST)), (_, result) => sizeIn(result)))),
    defineFunction("reverse", method("list_reverse", [LIST_T], LIST_T, ([list]) => listFrom([...(list as List)].reverse()), allocating(({ target, sizeOf }) => sizeOf(target!), (_, result) => sizeIn(result)))),
    defineFunction("distinct", method("list_distinct", [LIST_T], LIST_T, ([list]) => distinct(list as List), {
      estimate: ({ target, sizeOf }) => target && listCall(2, product(sizeOf(target), sizeOf(target))), actual: ([list]) => comparingAll(list as List), ahead: true,
    })),
  ],
  macros: [SORT_BY_MACRO],
};

export const setsLibrary: Library = {
  functions: [
    defineFunction("sets.contains", overload("list_sets_contains_list", [LIST_T, LIST_T], BOOL, ([all, some]) => containsAll(all as List, some as List), comparing(1))),
    defineFunction("sets.equivalent", overload("list_sets_equivalent_list", [LIST_T, LIST_T], BOOL, ([a, b]) => containsAll(a as List, b as List) && containsAll(b as List, a as List), comparing(2))),
    defineFunction("sets.intersects", overload("list_sets_intersects_list", [LIST_T, LIST_T], BOOL, ([a, b]) => [...(a as List)].some((value) => (b as List).contains(value)), comparing(1))),
  ],
};

function isComparable(value: Value): boolean {
  const { kind } = typeOf(value);
  return COMPARABLE.some(([, type]) => type.kind === kind);
}

function isSorted(list: List): Value {
  let before: Value | undefined;
  for (const value of list) {
    if (!isComparable(value)) return noSuchOverload(value);
    const order = before === undefined ? 0 : compare(before, value);
    if (order === 1) return false;
    before = value;
  }
  return true;
}

function sum(list: List, zero: Value): Value {
  let total = zero;
  for (const value of list) {
    total = add(total, value);
    if (isError(total)) return total;
  }
  return total;
}

function extreme(list: List, name: string, worse: 1 | -1): Value {
  let best: Value | undefined;
  for (const value of list) {
    if (!isComparable(value)) return noSuchOverload(value);
    if (best === undefined) best = value;
    else if (compare(best, value) === worse) best = value;
  }
  return best ?? new EvalError(`${name} called on empty list`);
}

function slice(list: List, start: bigint, end: bigint): Value {
  const cannot = (why: string): EvalError => new EvalError(`cannot slice(${start}, ${end}), ${why}`);
  if (start < 0n || end < 0n) return cannot("negative indexes not supported");
  if (start > end) return cannot("start index must be less than or equal to end index");
  if (BigInt(list.size) < end) return cannot(`list is length ${list.size}`);
  return listFrom(Array.from({ length: Number(end - start) }, (_, i) => list.at(Number(start) + i)));
}

/** `depth`: undefined for one that is not given. */
function flatten(list: Value, depth: Value | undefined): Value {
  if (depth !== undefined && typeof depth !== "bigint") return new EvalError(`internal error: interface conversion: ref.Val is ${goTypeOf(depth)}, not types.Int`);
  if (!(list instanceof List)) return new EvalError(`no such overload: ${goTypeName(typeOf(list))}.flatten(${depth === undefined ? "" : "int"})`);
  if (depth !== undefined && depth < 0n) return new EvalError("level must be non-negative");
  const flat: Value[] = [];
  const collect = (from: List, left: number): void => {
    for (const value of from) {
      if (value instanceof List && left > 0) collect(value, left - 1);
      else flat.push(value);
    }
  };
  collect(list, Number(depth ?? 1n));
  return listFrom(flat);
}

/** 0, 1, 2 …: made as they are read, so that one too long is stopped for what it costs before it has been made. */
class Range extends List {
  override readonly size: number;
  constructor(end: bigint) { super(); this.size = Math.max(0, Number(end)); }
  override at(index: number): Value { return BigInt(index); }
}

function sortedBy(list: List, keys: List): Value {
  if (list.size !== keys.size) {
    return new EvalError(`@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got ${list.size} and ${keys.size} elements respectively`);
  }
  if (list.size === 0) return list;
  const type = typeOf(keys.at(0));
  if (!isComparable(keys.at(0))) return new EvalError("list elements must be comparable");
  const pairs = Array.from({ length: list.size }, (_, i) => ({ key: keys.at(i), value: list.at(i) }));
  if (pairs.some(({ key }) => typeOf(key) !== type)) return new EvalError("list elements must have the same type");
  return listFrom(pairs.sort((a, b) => Number(compare(a.key, b.key))).map(({ value }) => value));
}

function distinct(list: List): Value {
  const values: Value[] = [];
  for (const value of list) if (!values.some((other) => equal(value, other) === true)) values.push(value);
  return listFrom(values);
}

function containsAll(list: List, values: List): boolean { return [...values].every((value) => list.contains(value)); }

function sorting(name: string, id: string, args: (type: Type) => readonly Type[], apply: Implementation, keys: (call: { readonly target: CostNode | undefined; readonly args: readonly CostNode[] }) => CostNode | undefined): FunctionDeclaration {
  const sort: Implementation = (values) => (values.every((value) => value instanceof List) ? apply(values) : noSuchOverload());
  return defineOperator(name, forKinds(name, ["list"], sort), ...COMPARABLE.map(([, type]) => method(`list_${type.name}_${id}`, args(type), args(type)[0]!, undefined, {
    estimate: ({ target, args: given, sizeOf }) => {
      const node = keys({ target, args: given });
      return node && listCall(type === STRING || type === BYTES ? 2 + STRING_FACTOR : 2, product(sizeOf(node), sizeOf(node)));
    },
    actual: (values) => comparingAll(values.at(-1) as List), ahead: true,
  })));
}

/** Makes a list: as dear as it is long. */
function listCall(factor: number, size: Estimate): { readonly cost: Estimate; readonly size: Estimate } {
  return { cost: sumOf(times(size, factor), fixed(1n), fixed(BigInt(LIST_COST))), size };
}

function listCost(factor: number, size: number): number { return Math.trunc(size * factor) + 1 + LIST_COST; }

function allocating(estimate: (call: { readonly target: CostNode | undefined; readonly args: readonly CostNode[]; readonly sizeOf: (node: CostNode) => Estimate }) => Estimate, actual: (args: readonly Value[], result: Value) => number): OverloadCost {
  return { estimate: (call) => listCall(1, estimate(call)), actual: (args, result) => listCost(1, actual(args, result)) };
}

function flattening(depth: (args: readonly CostNode[]) => bigint): OverloadCost {
  return {
    estimate: ({ target, args, sizeOf }) => target && listCall(Number(depth(args)), sizeOf(target)),
    actual: ([list, levels]) => listCost(levels === undefined ? 1 : Math.min(Number(levels as bigint), FLATTEN_ALL), sizeIn(list!)),
  };
}

/** Each element with each. */
function comparingAll(keys: List): number {
  if (!(keys instanceof List) || keys.size === 0) return listCost(2, 0);
  const { kind } = typeOf(keys.at(0));
  return listCost(kind === "string" || kind === "bytes" ? 2 + STRING_FACTOR : 2, keys.size ** 2);
}

function comparing(factor: number): OverloadCost {
  return {
    estimate: ({ args: [a, b], sizeOf }) => ({ cost: sumOf(times(product(sizeOf(a!), sizeOf(b!)), factor), fixed(1n)) }),
    actual: ([a, b]) => 1 + Math.trunc(sizeIn(a!) * sizeIn(b!) * factor), ahead: true,
  };
}

function sliceSize({ target, args, sizeOf }: { readonly target: CostNode | undefined; readonly args: readonly CostNode[]; readonly sizeOf: (node: CostNode) => Estimate }): Estimate {
  const size = sizeOf(target!);
  return fixed(BigInt.asUintN(64, wholeIn(args[1]!, size.max) - wholeIn(args[0]!, 0n)));
}

/** A number that is written out. */
function wholeIn({ expr }: CostNode, otherwise: bigint): bigint {
  if (expr?.kind !== "literal" || typeof expr.value !== "bigint") return otherwise;
  return expr.value < 0n ? 0n : expr.value;
}

function sizeIn(value: Value): number { return sizeOf(value) ?? 1; }
