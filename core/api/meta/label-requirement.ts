/** One requirement of a label selector: whether labels meet it, how it is written, and what can be wrong with it. */
import { type FieldError, formatFieldErrors, index, invalid, key as keyPath } from "./field-error.ts";
import { labelValue, qualifiedName } from "./names.ts";

export type Labels = Readonly<Record<string, string>>;
export type LabelOperator = "=" | "==" | "!=" | "in" | "notin" | "exists" | "!" | "gt" | "lt";
export interface LabelRequirement { readonly key: string; readonly operator: LabelOperator; readonly values: readonly string[] }

const INT64_MAX = 2n ** 63n - 1n;

export function meets({ key, operator, values }: LabelRequirement, labels: Labels): boolean {
  const found: unknown = labels[key];
  const value = typeof found === "string" ? found : undefined; // "constructor" finds what is nobody's label
  switch (operator) {
    case "=": case "==": return value !== undefined && value === values[0];
    case "in": return value !== undefined && values.includes(value);
    case "!=": case "notin": return value === undefined || !values.includes(value);
    case "exists": return value !== undefined;
    case "!": return value === undefined;
    case "gt": case "lt": {
      const left = value === undefined ? undefined : parseInt64(value);
      const right = parseInt64(values[0] ?? "");
      return left !== undefined && right !== undefined && (operator === "gt" ? left > right : left < right);
    }
  }
}

/** Undefined: it is none, or too large for one. */
export function parseInt64(text: string): bigint | undefined {
  if (!/^[+-]?\d{1,64}$/.test(text)) return undefined;
  const value = BigInt(text.replace(/^\+/, ""));
  return value > INT64_MAX || value < -INT64_MAX - 1n ? undefined : value;
}

export function formatRequirement({ key, operator, values }: LabelRequirement): string {
  const listed = values.toSorted().join(",");
  switch (operator) {
    case "!": return `!${key}`;
    case "exists": return key;
    case "in": case "notin": return `${key} ${operator} (${listed})`;
    case "gt": return `${key}>${listed}`;
    case "lt": return `${key}<${listed}`;
    default: return `${key}${operator}${listed}`;
  }
}

/** Throws what is wrong with a requirement, all of it at once. */
export function checkRequirement({ key, operator, values }: LabelRequirement): void {
  const errors: FieldError[] = [];
  const keyProblems = qualifiedName(key);
  if (keyProblems.length > 0) errors.push(invalid("key", key, keyProblems.join("; ")));
  errors.push(...checkCount(operator, values));
  values.forEach((value, at) => {
    const problems = labelValue(value);
    if (problems.length > 0) errors.push(invalid(keyPath(index("values", at), key), value, problems.join("; ")));
  });
  if (errors.length > 0) throw new Error(formatFieldErrors(errors));
}

function checkCount(operator: LabelOperator, values: readonly string[]): FieldError[] {
  switch (operator) {
    case "in": case "notin":
      return values.length > 0 ? [] : [invalid("values", values, "for 'in', 'notin' operators, values set can't be empty")];
    case "exists": case "!":
      return values.length === 0 ? [] : [invalid("values", values, "values set must be empty for exists and does not exist")];
    case "gt": case "lt":
      return [
        ...(values.length === 1 ? [] : [invalid("values", values, "for 'Gt', 'Lt' operators, exactly one value is required")]),
        ...values.flatMap((value, at) => (parseInt64(value) !== undefined ? [] : [invalid(index("values", at), value, "for 'Gt', 'Lt' operators, the value must be an integer")])),
      ];
    default:
      return values.length === 1 ? [] : [invalid("values", values, "exact-match compatibility requires one single value")];
  }
}
