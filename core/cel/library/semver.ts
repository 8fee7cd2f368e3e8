/** Versions: semver("1.2.3").isLessThan(semver("1.3.0")). Source: kubernetes v1.36 apiserver/pkg/cel/library/semverlib.go; blang/semver */
import { byteLength } from "../../api/meta/byte-length.ts";
import { bounded64 } from "../../api/meta/go-integer.ts";
import { goQuote } from "../../api/meta/go-quote.ts";
import { defineFunction, method, overload, type Library } from "../check/declarations.ts";
import { BOOL, INT, STRING, struct } from "../check/type.ts";
import { compareStrings, EvalError, isError, noSuchOverload, Opaque, type Value } from "../value/value.ts";

const SEMVER_TYPE = struct("kubernetes.Semver");
const S = SEMVER_TYPE;

export class Semver extends Opaque {
  override readonly type = SEMVER_TYPE;
  override readonly goType = "cel.Semver";
  readonly numbers: readonly bigint[];
  readonly prerelease: readonly (string | bigint)[];
  constructor(numbers: readonly bigint[], prerelease: readonly (string | bigint)[]) { super(); this.numbers = numbers; this.prerelease = prerelease; }
  override equals(other: Value): boolean | EvalError { return other instanceof Semver ? compareVersions(this, other) === 0 : noSuchOverload(other); }
}

export const semverLibrary: Library = {
  functions: [
    defineFunction("semver",
      overload("string_to_semver", [STRING], S, ([text]) => parse(text as string)),
      overload("string_bool_to_semver", [STRING, BOOL], S, ([text, normalize]) => parse(text as string, normalize as boolean))),
    defineFunction("isSemver",
      overload("is_semver_string", [STRING], BOOL, ([text]) => !isError(parse(text as string))),
      overload("is_semver_string_bool", [STRING, BOOL], BOOL, ([text, normalize]) => !isError(parse(text as string, normalize as boolean)))),
    defineFunction("isGreaterThan", method("semver_is_greater_than", [S, S], BOOL, ([a, b]) => compareVersions(a as Semver, b as Semver) > 0)),
    defineFunction("isLessThan", method("semver_is_less_than", [S, S], BOOL, ([a, b]) => compareVersions(a as Semver, b as Semver) < 0)),
    defineFunction("compareTo", method("semver_compare_to", [S, S], INT, ([a, b]) => BigInt(compareVersions(a as Semver, b as Semver)))),
    ...["major", "minor", "patch"].map((name, i) => defineFunction(name, method(`semver_${name}`, [S], INT, ([version]) => BigInt.asIntN(64, (version as Semver).numbers[i]!)))),
  ],
};

/** As it is written by the rules, with nothing added or left out; undefined for anything else. */
export function versionOf(text: string): Semver | undefined {
  const version = parse(text);
  return version instanceof Semver ? version : undefined;
}

/** What semver("…") gives. */
export function semverValue(text: string): Value { return parse(text); }

/** Below, at or above 0. */
export function compareVersions(a: Semver, b: Semver): number {
  for (let i = 0; i < 3; i++) if (a.numbers[i] !== b.numbers[i]) return a.numbers[i]! < b.numbers[i]! ? -1 : 1;
  if (a.prerelease.length === 0 || b.prerelease.length === 0) return Math.sign(b.prerelease.length - a.prerelease.length);
  for (let i = 0; i < Math.min(a.prerelease.length, b.prerelease.length); i++) {
    const order = comparePrereleases(a.prerelease[i]!, b.prerelease[i]!);
    if (order !== 0) return order;
  }
  return Math.sign(a.prerelease.length - b.prerelease.length);
}

/** Numbers come before words. */
function comparePrereleases(a: string | bigint, b: string | bigint): number {
  if (typeof a === "string") return typeof b === "string" ? compareStrings(a, b) : 1;
  return typeof b === "string" || a < b ? -1 : a > b ? 1 : 0;
}

function parse(text: string, normalize = false): Value {
  const written = normalize ? normalized(text) : text;
  if (isError(written)) return written;
  if (written === "") return new EvalError("Version string empty");
  const [major, minor, rest] = splitInThree(written);
  if (major === undefined || minor === undefined || rest === undefined) return new EvalError("No Major.Minor.Patch elements found");
  const plus = rest.indexOf("+");
  const beforeBuild = plus < 0 ? rest : rest.slice(0, plus);
  const dash = beforeBuild.indexOf("-");
  const patch = dash < 0 ? beforeBuild : beforeBuild.slice(0, dash);
  const numbers = ([["major", major], ["minor", minor], ["patch", patch]] as const).map(([name, digits]) => number(name, digits));
  const prerelease = dash < 0 ? [] : beforeBuild.slice(dash + 1).split(".").map(prereleasePart);
  const build = plus < 0 ? [] : rest.slice(plus + 1).split(".").map(buildPart);
  const error = [...numbers, ...prerelease, ...build].find((part) => part instanceof EvalError);
  return error ?? new Semver(numbers as bigint[], prerelease as (string | bigint)[]);
}

function splitInThree(text: string): readonly string[] {
  const parts = text.split(".");
  return parts.length <= 3 ? parts : [parts[0]!, parts[1]!, parts.slice(2).join(".")];
}

function number(name: string, digits: string): bigint | EvalError {
  if (/[^0-9]/.test(digits)) return new EvalError(`Invalid character(s) found in ${name} number ${goQuote(digits)}`);
  if (digits.length > 1 && digits.startsWith("0")) return new EvalError(`${name[0]!.toUpperCase()}${name.slice(1)} number must not contain leading zeroes ${goQuote(digits)}`);
  return unsigned(digits);
}

function unsigned(digits: string): bigint | EvalError {
  if (digits === "") return new EvalError('strconv.ParseUint: parsing "": invalid syntax');
  return bounded64(digits) ?? new EvalError(`strconv.ParseUint: parsing ${goQuote(digits)}: value out of range`);
}

function prereleasePart(part: string): string | bigint | EvalError {
  if (part === "") return new EvalError("Prerelease is empty");
  if (/^\d+$/.test(part)) return part.length > 1 && part.startsWith("0") ? new EvalError(`Numeric PreRelease version must not contain leading zeroes ${goQuote(part)}`) : unsigned(part);
  return /^[0-9A-Za-z-]+$/.test(part) ? part : new EvalError(`Invalid character(s) found in prerelease ${goQuote(part)}`);
}

function buildPart(part: string): string | EvalError {
  if (part === "") return new EvalError("Build meta data is empty");
  return /^[0-9A-Za-z-]+$/.test(part) ? part : new EvalError(`Invalid character(s) found in build meta data ${goQuote(part)}`);
}

/** Without a v, without leading zeros, with as many numbers as it takes. */
function normalized(text: string): string | EvalError {
  const parts = splitInThree(text.startsWith("v") ? text.slice(1) : text).map((part) => {
    if (byteLength(part) <= 1) return part;
    const trimmed = part.replace(/^0+/, "");
    return /^\d/.test(trimmed) ? trimmed : `0${trimmed}`;
  });
  if (parts.length < 3 && /[+-]/.test(parts.at(-1)!)) return new EvalError("short version cannot contain PreRelease/Build meta data");
  return [...parts, "0", "0"].slice(0, Math.max(parts.length, 3)).join(".");
}
