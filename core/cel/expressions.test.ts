/**
 * expressions.txt: what the language says, as cel-go says it with the libraries of Kubernetes 1.36.
 *
 *   expression
 *     = type: value, cost spent of least–most
 *     ? type: why there is no value when it is evaluated, cost least–most
 *     ! why there is no program, as a JSON string; "program " stands before what is found only when it is made ready
 */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { goQuote } from "../api/meta/go-quote.ts";
import { BOOL, DOUBLE, DYN, INT, listOf, mapOf, STRING, Type } from "./check/type.ts";
import { compile, estimate, evaluate } from "./compile.ts";
import { kubernetesEnvironment } from "./kubernetes.ts";
import { toText } from "./value/convert.ts";
import { goFixed } from "../api/meta/go-float.ts";
import { fromJson } from "./value/json.ts";
import { formatTimestamp } from "./value/time.ts";
import { Duration, EvalError, List, listFrom, mapFrom, Mapping, Optional, Timestamp, typeOf, Uint, type Value } from "./value/value.ts";

const COST_LIMIT = 1_000_000;
const TEXT_MAX = 12n;
const environment = kubernetesEnvironment().with({ variables: { x: DYN, s: STRING, l: listOf(INT), ls: listOf(STRING), m: mapOf(STRING, INT), i: INT, d: DOUBLE, b: BOOL } });
const variables = {
  x: fromJson({ a: { b: [{ c: "deep" }] } }), s: "hello wörld", l: listFrom([1n, 2n, 3n]), ls: listFrom(["a", "bb", "a"]), m: mapFrom([["a", 1n], ["b", 2n]]), i: 5n, d: 2.5, b: true,
};

function written(value: Value): string {
  if (value === null) return "null";
  if (typeof value === "string") return goQuote(value);
  if (typeof value === "number") return Number.isFinite(value) ? goFixed(value).replace(/^(-?\d+)$/, "$1.0") : `double("${value}")`;
  if (typeof value === "bigint" || typeof value === "boolean") return String(value);
  if (value instanceof Uint) return `${value.value}u`;
  if (value instanceof Uint8Array) return `b"${[...value].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("")}"`;
  if (value instanceof List) return `[${[...value].map(written).join(", ")}]`;
  if (value instanceof Mapping) return `{${[...value.keys()].map((key) => `${written(key)}: ${written(value.find(key)!)}`).sort().join(", ")}}`;
  if (value instanceof Optional) return value.value === undefined ? "optional.none()" : `optional.of(${written(value.value)})`;
  if (value instanceof Timestamp) return `timestamp("${formatTimestamp(new Timestamp(value.nanos, 0))}")`;
  if (value instanceof Duration) return `duration("${toText(value)}")`;
  return value instanceof Type ? value.name : typeOf(value).name;
}

function told(expression: string): string {
  const compiled = compile(expression, environment);
  if (compiled.problem !== undefined) return `! ${JSON.stringify(`${compiled.planning ? "program " : ""}${compiled.problem}`)}`;
  const { min, max } = estimate(compiled, ({ type }) => (type.kind === "string" || type.kind === "bytes" ? { min: 0n, max: TEXT_MAX } : undefined));
  const { value, cost } = evaluate(compiled, variables, { costLimit: COST_LIMIT });
  if (value instanceof EvalError) return `? ${compiled.type.text}: ${JSON.stringify(value.message)}, cost ${min}–${max}`;
  return `= ${compiled.type.text}: ${written(value)}, cost ${cost} of ${min}–${max}`;
}

const sections = readFileSync(new URL("./expressions.txt", import.meta.url), "utf8").split(/^# /m).slice(1).map((section) => {
  const [title = "", ...lines] = section.trimEnd().split("\n");
  return [title, lines] as const;
});

test.each(sections)("%s", (_, lines) => {
  const ours = lines.flatMap((line) => (/^ {2}[=?!] /.test(line) ? [] : [line, `  ${told(line)}`]));
  expect(ours).toEqual(lines);
});
