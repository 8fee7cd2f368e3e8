/** What a schema may ask of a number. Source: kubernetes v1.36 kube-openapi/pkg/validation/validate/{validator,values}.go */
import { goFloat, goNumber } from "../../../api/meta/go-float.ts";
import type { Finding } from "./finding.ts";
import { isKnownFormat } from "./formats.ts";

export interface NumberRules {
  readonly format?: string;
  readonly maximum?: number;
  readonly exclusiveMaximum?: boolean;
  readonly minimum?: number;
  readonly exclusiveMinimum?: boolean;
  readonly multipleOf?: number;
}

const INT32_MAX = 2n ** 31n - 1n;
const INT64_MAX = 2n ** 63n - 1n;

/** Integers too large for a double are bigints. */
export function isNumber(value: unknown): value is number | bigint { return typeof value === "number" || typeof value === "bigint"; }

export function numberType(value: number | bigint): "integer" | "number" { return typeof value === "bigint" || Number.isSafeInteger(value) ? "integer" : "number"; }

/** `type`: the one type the schema names, "" for none or several. */
export function numberFindings(value: number | bigint, rules: NumberRules, { path, type }: { readonly path: string; readonly type: string }): Finding[] {
  const { maximum, minimum, multipleOf, exclusiveMaximum = false, exclusiveMinimum = false } = rules;
  const findings: Finding[] = [];
  const at = { type, format: isKnownFormat(type, rules.format ?? "") ? rules.format! : "", path };
  const add = (message: string | undefined, shown?: number | bigint): void => {
    if (message !== undefined) findings.push(shown === undefined ? { type: "other", path: undefined, message } : { type: "other", path, message, value: shown });
  };
  add(outOfRange(value, "Checked", at));
  const shown = (limit: number): string => (numberType(value) === "integer" ? goNumber(limit) : goFloat(limit));
  const bound = (given: number, what: string): number => {
    const misfit = outOfRange(given, what, at);
    add(misfit);
    return misfit === undefined ? asNumberLike(value, given) : given;
  };
  if (multipleOf !== undefined) {
    const factor = bound(multipleOf, "MultipleOf");
    if (factor <= 0) add(`factor MultipleOf declared for ${path} must be positive: ${shown(factor)}`, factor);
    else if (!isMultiple(value, factor)) add(`${path} in body should be a multiple of ${shown(factor)}`, value);
  }
  if (minimum !== undefined) {
    const least = bound(minimum, "Minimum boundary");
    if (exclusiveMinimum ? value <= least : value < least) add(`${path} in body should be greater than ${exclusiveMinimum ? "" : "or equal to "}${shown(least)}`, value);
  }
  if (maximum !== undefined) {
    const most = bound(maximum, "Maximum boundary");
    if (exclusiveMaximum ? value >= most : value > most) add(`${path} in body should be less than ${exclusiveMaximum ? "" : "or equal to "}${shown(most)}`, value);
  }
  return findings;
}

/** An integer is compared with integers: of a bound, what stands after the point is left out. */
function asNumberLike(value: number | bigint, bound: number): number { return numberType(value) === "integer" ? Math.trunc(bound) : bound; }

function isMultiple(value: number | bigint, factor: number): boolean {
  if (Number.isInteger(factor) && numberType(value) === "integer") return BigInt(value) % BigInt(factor) === 0n;
  const quotient = factor < 1 ? (1 / factor) * Number(value) : Number(value) / factor;
  return isNearInteger(quotient);
}

/** Or so near that the difference is less than a thousand-millionth of it. Source: kubernetes v1.36 vendor/github.com/go-openapi/swag/conv/convert.go IsFloat64AJSONInteger */
export function isNearInteger(value: number): boolean {
  if (!Number.isFinite(value) || Math.abs(value) > Number.MAX_SAFE_INTEGER) return false;
  const rounded = Math.round(value);
  return value === rounded || Math.abs(value - rounded) < 1e-9 * Math.abs(rounded);
}

/** Why a number cannot be of the type and format. */
function outOfRange(value: number | bigint, what: string, { type, format, path }: { readonly type: string; readonly format: string; readonly path: string }): string | undefined {
  if (fits(value, type, format)) return undefined;
  return format === "" ? `${what} value must be of type ${type} (default format) in ${path}` : `${what} value must be of type ${type} with format ${format} in ${path}`;
}

function fits(value: number | bigint, type: string, format: string): boolean {
  if (type === "integer") {
    if (typeof value === "number" && !Number.isInteger(value)) return false;
    const exact = BigInt(value);
    const max = format === "int32" ? INT32_MAX : INT64_MAX;
    return exact <= max && exact >= -max - 1n;
  }
  return format !== "float" || Number.isFinite(Math.fround(Number(value)));
}
