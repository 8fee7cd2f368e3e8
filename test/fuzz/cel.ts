/** Expressions: of the grammar, with any types, and garbled. They end, with a value, an error or a problem, and cost no more than they may. */
import { DYN, INT, listOf, mapOf, STRING } from "../../core/cel/check/type.ts";
import { compile, estimate, evaluate } from "../../core/cel/compile.ts";
import { kubernetesEnvironment } from "../../core/cel/kubernetes.ts";
import { fromJson } from "../../core/cel/value/json.ts";
import { listFrom, mapFrom } from "../../core/cel/value/value.ts";
import { type Chance, garbled } from "./chance.ts";
import type { Target } from "./fuzz.ts";

const COST_LIMIT = 1_000_000;
const environment = kubernetesEnvironment().with({ variables: { x: DYN, s: STRING, l: listOf(INT), m: mapOf(STRING, INT) } });
const variables = { x: fromJson({ a: { b: [{ c: 1 }, null, "x"] }, n: 1.5 }), s: "hello wörld", l: listFrom([1n, 2n, 3n]), m: mapFrom([["a", 1n], ["b", 2n]]) };

const LEAVES = ["1", "-1", "9223372036854775807", "2u", "1.5", "'a'", "\"\"", "b'x'", "true", "null", "s", "l", "m", "x", "x.a", "x.a.b[0].c", "l[0]", "m.a", "q", "[]", "{}", "[1, 'a']", "{'a': 1}", "int", "timestamp('2020-01-01T00:00:00Z')", "duration('1h')",
  "'10.0.0.0/8'", "'1.2.3'", "'[a-z]+('", "'%s %d %q'", "'https://a.b/c?d'", "optional.none()", "quantity('1Gi')", "dyn(1)", "'a'.charAt(0)", "r'\\d+'"];
const FUNCTIONS = ["size", "int", "uint", "double", "string", "bytes", "bool", "timestamp", "duration", "type", "dyn", "url", "ip", "cidr", "isIP", "isURL", "isCIDR", "quantity", "isQuantity", "semver", "isSemver", "has", "sets.contains", "sets.intersects", "sets.equivalent", "optional.of", "lists.range", "strings.quote",
  "ip.isCanonical", "format.named"];
const METHODS = ["size", "startsWith", "endsWith", "contains", "matches", "find", "findAll", "split", "join", "replace", "substring", "indexOf", "lastIndexOf", "charAt", "trim", "lowerAscii", "upperAscii", "format", "sum", "min", "max", "isSorted", "sort", "distinct", "slice", "flatten", "reverse", "first", "last", "getFullYear",
  "getHours", "orValue", "value", "hasValue", "family", "containsIP", "containsCIDR", "masked", "asInteger", "compareTo", "isLessThan", "add", "sub", "major", "getQuery", "getHost", "validate", "unwrapOpt", "or"];
const MACROS = ["all", "exists", "exists_one", "map", "filter", "transformList", "transformMap", "optMap", "sortBy"];
const OPERATORS = ["+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "&&", "||", "in"];

function expression(chance: Chance, depth: number): string {
  if (depth <= 0 || chance.is(0.15)) return chance.one(LEAVES);
  const below = (): string => expression(chance, depth - 1);
  switch (chance.below(9)) {
    case 0: case 1: return `(${below()} ${chance.one(OPERATORS)} ${below()})`;
    case 2: return `${chance.one(["!", "-"])}${below()}`;
    case 3: return `(${below()} ? ${below()} : ${below()})`;
    case 4: return `${chance.one(FUNCTIONS)}(${chance.many(2, below).join(", ")})`;
    case 5: return `${below()}.${chance.one(METHODS)}(${chance.many(2, below).join(", ")})`;
    case 6: return `${below()}.${chance.one(MACROS)}(q, ${chance.is(0.3) ? "w, " : ""}${below()})`;
    case 7: return chance.is(0.5) ? `[${chance.many(3, below).join(", ")}]` : `{${chance.many(2, () => `${below()}: ${below()}`).join(", ")}}`;
    default: return chance.is(0.5) ? `${below()}[${chance.is(0.3) ? "?" : ""}${below()}]` : `${below()}.${chance.is(0.3) ? "?" : ""}a`;
  }
}

export const celTarget: Target = {
  name: "cel", allows: [],
  make(chance) {
    const text = expression(chance, 1 + chance.below(5));
    return chance.is(0.25) ? garbled(chance, text) : text;
  },
  take(text: string) {
    const compiled = compile(text, environment);
    if (compiled.problem !== undefined) return;
    const { min, max } = estimate(compiled, () => undefined);
    evaluate(compiled, variables, { costLimit: COST_LIMIT });
    if (min > max) throw new RangeError(`costs at least ${min} and at most ${max}`);
  },
};
