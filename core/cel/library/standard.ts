/**
 * What the language itself has: operators, conversions, size(), matches(), times of timestamps, and the macros.
 *
 * Source: cel-go common/stdlib/standard.go
 */
import { defineFunction, defineOperator, definePattern, defineUnguarded, method, overload, type FunctionDeclaration, type Implementation, type Library } from "../check/declarations.ts";
import { BOOL, BYTES, DOUBLE, DURATION, DYN, INT, NULL, STRING, TIMESTAMP, TYPE, UINT, listOf, mapOf, param, typeOfType, type Kind, type Type } from "../check/type.ts";
import { compileRegex } from "../regex.ts";
import { OPERATORS } from "../syntax/expr.ts";
import { STANDARD_MACROS } from "../syntax/macros.ts";
import { add, divide, modulo, multiply, negate, subtract } from "../value/arithmetic.ts";
import { toBool, toBytes, toDouble, toDuration, toInt, toText, toTimestamp, toUint } from "../value/convert.ts";
import { inZone, type TimeFields } from "../value/time.ts";
import { compare, type Duration, EvalError, List, Mapping, noSuchOverload, sizeOf, typeOf, type Timestamp, type Value } from "../value/value.ts";

const A = param("A");
const B = param("B");

/** Kinds that answer a call they do not know themselves. */
const ANSWERING: readonly Kind[] = ["string", "timestamp", "duration"];

const ORDERED: readonly (readonly [name: string, left: Type, right: Type])[] = [
  ["bool", BOOL, BOOL], ["int64", INT, INT], ["int64_double", INT, DOUBLE], ["int64_uint64", INT, UINT], ["uint64", UINT, UINT], ["uint64_double", UINT, DOUBLE], ["uint64_int64", UINT, INT],
  ["double", DOUBLE, DOUBLE], ["double_int64", DOUBLE, INT], ["double_uint64", DOUBLE, UINT], ["string", STRING, STRING], ["bytes", BYTES, BYTES], ["timestamp", TIMESTAMP, TIMESTAMP], ["duration", DURATION, DURATION],
];
const ORDERED_KINDS: readonly Kind[] = ["bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration"];

const arithmetic: readonly FunctionDeclaration[] = [
  binary(OPERATORS.add, ["bytes", "double", "duration", "int", "list", "string", "timestamp", "uint"], add,
    ["add_bytes", BYTES, BYTES, BYTES], ["add_double", DOUBLE, DOUBLE, DOUBLE], ["add_duration_duration", DURATION, DURATION, DURATION], ["add_duration_timestamp", DURATION, TIMESTAMP, TIMESTAMP],
    ["add_timestamp_duration", TIMESTAMP, DURATION, TIMESTAMP], ["add_int64", INT, INT, INT], ["add_list", listOf(A), listOf(A), listOf(A)], ["add_string", STRING, STRING, STRING], ["add_uint64", UINT, UINT, UINT]),
  binary(OPERATORS.divide, ["int", "uint", "double"], divide, ["divide_double", DOUBLE, DOUBLE, DOUBLE], ["divide_int64", INT, INT, INT], ["divide_uint64", UINT, UINT, UINT]),
  binary(OPERATORS.modulo, ["int", "uint"], modulo, ["modulo_int64", INT, INT, INT], ["modulo_uint64", UINT, UINT, UINT]),
  binary(OPERATORS.multiply, ["int", "uint", "double"], multiply, ["multiply_double", DOUBLE, DOUBLE, DOUBLE], ["multiply_int64", INT, INT, INT], ["multiply_uint64", UINT, UINT, UINT]),
  binary(OPERATORS.subtract, ["double", "duration", "int", "timestamp", "uint"], subtract,
    ["subtract_double", DOUBLE, DOUBLE, DOUBLE], ["subtract_duration_duration", DURATION, DURATION, DURATION], ["subtract_int64", INT, INT, INT], ["subtract_timestamp_duration", TIMESTAMP, DURATION, TIMESTAMP],
    ["subtract_timestamp_timestamp", TIMESTAMP, TIMESTAMP, DURATION], ["subtract_uint64", UINT, UINT, UINT]),
  defineOperator(OPERATORS.negate, forKinds(OPERATORS.negate, ["bool", "int", "double", "duration"], ([value]) => negate(value!)), overload("negate_double", [DOUBLE], DOUBLE), overload("negate_int64", [INT], INT)),
];

const comparisons: readonly FunctionDeclaration[] = [
  ordered(OPERATORS.less, "less", (order) => order < 0), ordered(OPERATORS.lessEquals, "less_equals", (order) => order <= 0),
  ordered(OPERATORS.greater, "greater", (order) => order > 0), ordered(OPERATORS.greaterEquals, "greater_equals", (order) => order >= 0),
];

/** Evaluated by those who plan. */
const planned: readonly FunctionDeclaration[] = [
  defineFunction(OPERATORS.conditional, overload("conditional", [BOOL, A, A], A)),
  defineFunction(OPERATORS.and, overload("logical_and", [BOOL, BOOL], BOOL)),
  defineFunction(OPERATORS.or, overload("logical_or", [BOOL, BOOL], BOOL)),
  defineFunction(OPERATORS.notStrictlyFalse, overload("not_strictly_false", [BOOL], BOOL)),
  defineFunction(OPERATORS.equals, overload("equals", [A, A], BOOL)),
  defineFunction(OPERATORS.notEquals, overload("not_equals", [A, A], BOOL)),
  defineFunction(OPERATORS.index, overload("index_list", [listOf(A), INT], A), overload("index_map", [mapOf(A, B), A], B)),
];

const aggregates: readonly FunctionDeclaration[] = [
  defineOperator(OPERATORS.in, ([value, within]) => isIn(value!, within!), overload("in_list", [A, listOf(A)], BOOL), overload("in_map", [A, mapOf(A, B)], BOOL)),
  defineOperator("size", forKinds("size", ["bytes", "list", "map", "string"], ([value]) => BigInt(sizeOf(value!)!)),
    overload("size_bytes", [BYTES], INT), method("bytes_size", [BYTES], INT), overload("size_list", [listOf(A)], INT), method("list_size", [listOf(A)], INT),
    overload("size_map", [mapOf(A, B)], INT), method("map_size", [mapOf(A, B)], INT), overload("size_string", [STRING], INT), method("string_size", [STRING], INT)),
];

const conversions: readonly FunctionDeclaration[] = [
  conversion("bool", BOOL, toBool, ["bool_to_bool", BOOL], ["string_to_bool", STRING]),
  conversion("bytes", BYTES, toBytes, ["bytes_to_bytes", BYTES], ["string_to_bytes", STRING]),
  conversion("double", DOUBLE, toDouble, ["double_to_double", DOUBLE], ["int64_to_double", INT], ["string_to_double", STRING], ["uint64_to_double", UINT]),
  conversion("duration", DURATION, toDuration, ["duration_to_duration", DURATION], ["int64_to_duration", INT], ["string_to_duration", STRING]),
  conversion("int", INT, toInt, ["int64_to_int64", INT], ["double_to_int64", DOUBLE], ["duration_to_int64", DURATION], ["string_to_int64", STRING], ["timestamp_to_int64", TIMESTAMP], ["uint64_to_int64", UINT]),
  conversion("string", STRING, toText, ["string_to_string", STRING], ["bool_to_string", BOOL], ["bytes_to_string", BYTES], ["double_to_string", DOUBLE], ["duration_to_string", DURATION],
    ["int64_to_string", INT], ["timestamp_to_string", TIMESTAMP], ["uint64_to_string", UINT]),
  conversion("timestamp", TIMESTAMP, toTimestamp, ["timestamp_to_timestamp", TIMESTAMP], ["int64_to_timestamp", INT], ["string_to_timestamp", STRING]),
  conversion("uint", UINT, toUint, ["uint64_to_uint64", UINT], ["double_to_uint64", DOUBLE], ["int64_to_uint64", INT], ["string_to_uint64", STRING]),
  defineOperator("dyn", ([value]) => value!, overload("to_dyn", [A], DYN)),
  defineOperator("type", ([value]) => typeOf(value!), overload("type", [A], typeOfType(A))),
];

const strings: readonly FunctionDeclaration[] = [
  defineUnguarded("contains", method("contains_string", [STRING, STRING], BOOL, ofTexts((text, part) => text.includes(part)))),
  defineUnguarded("endsWith", method("ends_with_string", [STRING, STRING], BOOL, ofTexts((text, end) => text.endsWith(end)))),
  defineUnguarded("startsWith", method("starts_with_string", [STRING, STRING], BOOL, ofTexts((text, start) => text.startsWith(start)))),
  matches(),
];

const times: readonly FunctionDeclaration[] = [
  time("getFullYear", "year", (at) => at.year), time("getMonth", "month", (at) => at.month), time("getDayOfYear", "day_of_year", (at) => at.dayOfYear),
  time("getDayOfMonth", "day_of_month", (at) => at.date - 1), time("getDate", "day_of_month_1_based", (at) => at.date), time("getDayOfWeek", "day_of_week", (at) => at.dayOfWeek),
  time("getHours", "hours", (at) => at.hours, 3_600_000_000_000n), time("getMinutes", "minutes", (at) => at.minutes, 60_000_000_000n),
  time("getSeconds", "seconds", (at) => at.seconds, 1_000_000_000n), time("getMilliseconds", "milliseconds", (at) => at.milliseconds, 1_000_000n),
];

export const standardLibrary: Library = {
  functions: [
    ...planned, defineOperator(OPERATORS.not, ([value]) => (typeof value === "boolean" ? !value : noSuchOverload(value)), overload("logical_not", [BOOL], BOOL)),
    ...arithmetic, ...comparisons, ...aggregates, ...conversions, ...strings, ...times,
  ],
  macros: STANDARD_MACROS,
  types: [BOOL, BYTES, DOUBLE, DURATION, INT, listOf(A), mapOf(A, B), NULL, STRING, TIMESTAMP, TYPE, UINT],
};

function binary(name: string, kinds: readonly Kind[], apply: (a: Value, b: Value) => Value, ...overloads: readonly (readonly [id: string, left: Type, right: Type, result: Type])[]): FunctionDeclaration {
  return defineOperator(name, forKinds(name, kinds, ([a, b]) => apply(a!, b!)), ...overloads.map(([id, left, right, result]) => overload(id, [left, right], result)));
}

function ordered(name: string, id: string, holds: (order: number) => boolean): FunctionDeclaration {
  const apply = forKinds(name, ORDERED_KINDS, ([a, b]) => {
    const order = compare(a!, b!);
    return typeof order === "number" ? holds(order) : order;
  });
  return defineOperator(name, apply, ...ORDERED.map(([suffix, left, right]) => overload(`${id}_${suffix}`, [left, right], BOOL)));
}

/** Only for first values of these kinds. */
export function forKinds(name: string, kinds: readonly Kind[], apply: Implementation): Implementation {
  return (args) => {
    const { kind } = typeOf(args[0]!);
    if (kinds.includes(kind)) return apply(args);
    return ANSWERING.includes(kind) ? noSuchOverload() : new EvalError(`no such overload: ${name}`);
  };
}

function conversion(name: string, to: Type, convert: (value: Value) => Value, ...from: readonly (readonly [id: string, from: Type])[]): FunctionDeclaration {
  return defineFunction(name, ...from.map(([id, type]) => overload(id, [type], to, ([value]) => convert(value!))));
}

function ofTexts(apply: (text: string, other: string) => Value): Implementation {
  return ([text, other]) => (typeof text === "string" && typeof other === "string" ? apply(text, other) : noSuchOverload(typeof text === "string" ? other : text));
}

/** Unlike other patterns it is asked whatever the types of the values are. */
function matches(): FunctionDeclaration {
  const { overloads: [of], ...declared } = definePattern("matches", matching, (error) => error.message, method("matches_string", [STRING, STRING], BOOL));
  const apply = forKinds("matches", ["string"], (args) => (typeof args[1] === "string" ? of!.apply!(args) : noSuchOverload(args[1])));
  return { ...declared, apply, overloads: [overload("matches", [STRING, STRING], BOOL), method("matches_string", [STRING, STRING], BOOL)] };
}

function matching(pattern: string): Implementation {
  const regex = compileRegex(pattern);
  return ([text]) => regex.test(text as string);
}

function isIn(value: Value, within: Value): Value {
  if (within instanceof List) return within.contains(value);
  return within instanceof Mapping ? within.has(value) : noSuchOverload(within);
}

/** `unit`: of durations, in nanoseconds; missing if durations have no such part. */
function time(name: string, part: string, of: (at: TimeFields) => number, unit?: bigint): FunctionDeclaration {
  const zoned = part === "seconds" ? "timestamp_to_seconds_tz" : `timestamp_to_${part}_with_tz`;
  return defineFunction(name,
    method(`timestamp_to_${part}`, [TIMESTAMP], INT, ([at]) => BigInt(of(inZone(at as Timestamp, "UTC")))),
    method(zoned, [TIMESTAMP, STRING], INT, ([at, zone]) => inNamedZone(at as Timestamp, zone as string, of)),
    ...(unit === undefined ? [] : [method(`duration_to_${part}`, [DURATION], INT, ([span]) => (span as Duration).nanos / unit)]));
}

function inNamedZone(at: Timestamp, zone: string, of: (at: TimeFields) => number): Value {
  try {
    return BigInt(of(inZone(at, zone)));
  } catch (error) {
    return new EvalError((error as Error).message);
  }
}
