/** Names and formats: format.dns1123Label().validate(text). Source: kubernetes v1.36 apiserver/pkg/cel/library/format.go */
import { labelValue, nameProblems, qualifiedName, type NameRule } from "../../api/meta/names.ts";
import { defineFunction, method, overload, type Library } from "../check/declarations.ts";
import { STRING, listOf, optionalOf, struct } from "../check/type.ts";
import { isBase64, isDate, isDateTime, requestUriProblem, uuidPattern } from "../string-formats.ts";
import { type EvalError, listFrom, noSuchOverload, Opaque, Optional, type Value } from "../value/value.ts";

const FORMAT_TYPE = struct("kubernetes.NamedFormat");

export class NamedFormat extends Opaque {
  override readonly type = FORMAT_TYPE;
  override readonly goType = "cel.Format";
  readonly name: string;
  readonly problems: (text: string) => readonly string[];
  /** As long as the pattern that checks it, which it is charged for. */
  readonly patternLength: number;
  constructor(name: string, problems: (text: string) => readonly string[], patternLength: number) { super(); this.name = name; this.problems = problems; this.patternLength = patternLength; }
  override equals(other: Value): boolean | EvalError { return other instanceof NamedFormat ? other.name === this.name : noSuchOverload(other); }
}

const DATE_TIME_LENGTH = 71;
const FORMATS: ReadonlyMap<string, NamedFormat> = new Map(Object.entries({
  dns1123Label: named("DNS1123Label", "dns1123Label", 30), dns1123Subdomain: named("DNS1123Subdomain", "dns1123Subdomain", 60), dns1035Label: named("DNS1035Label", "dns1035Label", 30),
  qualifiedName: new NamedFormat("QualifiedName", qualifiedName, 60),
  dns1123LabelPrefix: named("DNS1123LabelPrefix", "dns1123Label", 30, true), dns1123SubdomainPrefix: named("DNS1123SubdomainPrefix", "dns1123Subdomain", 60, true),
  dns1035LabelPrefix: named("DNS1035LabelPrefix", "dns1035Label", 30, true), labelValue: new NamedFormat("LabelValue", labelValue, 40),
  uri: new NamedFormat("URI", (text) => [requestUriProblem(text)].filter((problem) => problem !== undefined), 1103),
  uuid: checked("uuid", (text) => uuidPattern().test(text), "does not match the UUID format", 70), byte: checked("byte", isBase64, "invalid base64", 84),
  date: checked("date", isDate, "invalid date", DATE_TIME_LENGTH), datetime: checked("datetime", isDateTime, "invalid datetime", DATE_TIME_LENGTH),
}));

export const formatLibrary: Library = {
  functions: [
    defineFunction("validate", method("format-validate", [FORMAT_TYPE, STRING], optionalOf(listOf(STRING)), ([format, text]) => {
      const problems = (format as NamedFormat).problems(text as string);
      return problems.length === 0 ? Optional.none : new Optional(listFrom(problems));
    })),
    defineFunction("format.named", overload("format-named", [STRING], optionalOf(FORMAT_TYPE), ([name]) => new Optional(FORMATS.get(name as string)))),
    ...[...FORMATS].map(([name, format]) => defineFunction(`format.${name}`, overload(`format.${name}`, [], FORMAT_TYPE, () => format))),
  ],
};

function named(name: string, rule: NameRule, length: number, prefix = false): NamedFormat { return new NamedFormat(name, (text) => nameProblems(rule, text, { prefix }), length); }

function checked(name: string, accepts: (text: string) => boolean, problem: string, length: number): NamedFormat {
  return new NamedFormat(name, (text) => (accepts(text) ? [] : [problem]), length);
}
