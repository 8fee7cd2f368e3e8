/**
 * What can be told wrong of an expression although its types are right: durations, timestamps and patterns that are written out and are none, lists and
 * maps of several types, formats that do not fit what they are given.
 *
 * Source: cel-go cel/validator.go, ext/formatting.go
 */
import { compileRegex, RegexError } from "../regex.ts";
import { formatProblem } from "../library/string-format.ts";
import { childrenOf, type Call, type Expr } from "../syntax/expr.ts";
import type { Issue } from "../syntax/source.ts";
import { toDuration, toTimestamp } from "../value/convert.ts";
import { isError, type Value } from "../value/value.ts";
import type { Checked } from "./checker.ts";
import { equivalentTypes, withoutOptional, type Type } from "./type.ts";

export function literalIssues({ expr, types }: Checked, places: ReadonlyMap<number, number>): Issue[] {
  const issues: Issue[] = [];
  const report = (id: number, message: string): void => { issues.push({ at: places.get(id), message }); };
  const calls: Call[] = [];
  const aggregates: Expr[] = [];
  visit(expr, false, (each, inFormat) => {
    if (each.kind === "call") calls.push(each);
    else if (!inFormat) aggregates.push(each);
  });
  for (const [name, isWrong] of Object.entries(CHECKS)) {
    for (const call of calls.filter((each) => each.name === name)) {
      const arg = call.args[0];
      if (arg?.kind === "literal" && isWrong(arg.value)) report(arg.id, `invalid ${name} argument`);
    }
  }
  for (const each of aggregates) checkTypes(each, types, report);
  for (const call of calls) checkFormat(call, types, report);
  return issues;
}

const CHECKS: Readonly<Record<string, (value: Value) => boolean>> = {
  duration: (value) => isError(toDuration(value)), timestamp: (value) => isError(toTimestamp(value)), matches: (value) => typeof value === "string" && isNoPattern(value),
};

type Report = (id: number, message: string) => void;

/** What is within comes first. */
function visit(expr: Expr, inFormat: boolean, see: (expr: Expr, inFormat: boolean) => void): void {
  const within = inFormat || (expr.kind === "call" && expr.name === "format");
  for (const below of childrenOf(expr)) visit(below, within, see);
  see(expr, inFormat);
}

function isNoPattern(pattern: string): boolean {
  try {
    compileRegex(pattern);
    return false;
  } catch (error) {
    if (error instanceof RegexError) return true;
    throw error;
  }
}

/** The type of the first counts; of a list only the first other one is told. */
function checkTypes(expr: Expr, types: Checked["types"], report: Report): void {
  const typeOf = ({ id }: Expr, optional = false): Type => (optional ? withoutOptional(types.get(id)!) : types.get(id)!);
  const differs = (id: number, first: Type, type: Type): boolean => {
    if (equivalentTypes(first, type)) return false;
    report(id, `expected type '${first.text}' but found '${type.text}'`);
    return true;
  };
  if (expr.kind === "list") {
    const elements = expr.elements.map((element, i) => ({ id: element.id, type: typeOf(element, expr.optional.has(i)) }));
    elements.some(({ id, type }) => differs(id, elements[0]!.type, type));
  } else if (expr.kind === "map") {
    const [first] = expr.entries;
    for (const { key, value, optional } of expr.entries) {
      differs(key.id, typeOf(first!.key), typeOf(key));
      differs(value.id, typeOf(first!.value, first!.optional), typeOf(value, optional));
    }
  }
}

function checkFormat({ id, name, target, args: [list, ...more] }: Call, types: Checked["types"], report: Report): void {
  if (name !== "format" || target?.kind !== "literal" || typeof target.value !== "string" || list?.kind !== "list" || more.length > 0) return;
  const problem = formatProblem(target.value, list.elements, types);
  if (problem) report(problem.id ?? id, problem.message);
}
