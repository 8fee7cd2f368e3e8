/**
 * Field selectors: `status.phase=Running,spec.nodeName!=`. Which fields a kind offers is the registry's business.
 *
 *   const selector = parseFieldSelector(query);                 throws badRequest
 *   checkFieldsSupported(selector, ["status.phase"]);           throws badRequest; metadata.name and metadata.namespace are always there
 *   selector.matches({ "metadata.name": "a", "status.phase": "Running" })      a field that is missing reads as ""
 *
 * In a value, backslash escapes `\`, `,` and `=`.
 *
 * Source: kubernetes v1.36 apimachinery/pkg/fields/selector.go, pkg/runtime/conversion.go
 */
import { badRequest } from "./status-error.ts";
import { goQuote } from "./go-quote.ts";

export interface FieldRequirement { readonly field: string; readonly operator: "=" | "!="; readonly value: string }

export class FieldSelector {
  readonly requirements: readonly FieldRequirement[];
  /** What is wanted of each field: a query of a megabyte is asked of each object of a list. */
  #byField: ReadonlyMap<string, FieldRule> | undefined;
  constructor(requirements: readonly FieldRequirement[]) { this.requirements = requirements; }

  matches(fields: Readonly<Record<string, string>>): boolean {
    for (const [field, { wanted, refused }] of this.#byField ??= rulesOf(this.requirements)) {
      const value = fields[field] ?? "";
      if (refused.has(value) || wanted.size > 1 || (wanted.size === 1 && !wanted.has(value))) return false;
    }
    return true;
  }

  /** The value the field must have, if the selector names one: lets a list become a get, a watch an index look-up. */
  exactMatch(field: string): string | undefined {
    return this.requirements.find((requirement) => requirement.field === field && requirement.operator === "=")?.value;
  }

  toString(): string {
    return this.requirements.map(({ field, operator, value }) => `${field}${operator}${escapeFieldValue(value)}`).join(",");
  }
}

/** A field has one value: two that are wanted are one too many. */
interface FieldRule { readonly wanted: Set<string>; readonly refused: Set<string> }

function rulesOf(requirements: readonly FieldRequirement[]): ReadonlyMap<string, FieldRule> {
  const byField = new Map<string, FieldRule>();
  for (const { field, operator, value } of requirements) {
    let rule = byField.get(field);
    if (!rule) byField.set(field, rule = { wanted: new Set(), refused: new Set() });
    rule[operator === "=" ? "wanted" : "refused"].add(value);
  }
  return byField;
}

/** Throws badRequest with upstream's text. Terms are sorted, so equal selectors print the same. */
export function parseFieldSelector(text: string): FieldSelector {
  const requirements: FieldRequirement[] = [];
  for (const term of splitTerms(text).sort()) {
    if (term === "") continue;
    const parts = /^(.*?)(!=|==|=)(.*)$/s.exec(term);
    if (!parts) throw badRequest(`invalid selector: '${text}'; can't understand '${term}'`);
    const [, field = "", operator, value = ""] = parts;
    const unescaped = unescapeFieldValue(value);
    if (field === "" && unescaped === "") continue;
    requirements.push({ field, operator: operator === "!=" ? "!=" : "=", value: unescaped });
  }
  return new FieldSelector(requirements);
}

/** At commas that no backslash escapes. */
function splitTerms(text: string): string[] {
  const terms = [""];
  for (const part of text.match(/\\.|./gsu) ?? []) {
    if (part === ",") terms.push("");
    else terms[terms.length - 1] += part;
  }
  return terms;
}

export function escapeFieldValue(value: string): string { return value.replace(/[\\,=]/g, "\\$&"); }

function unescapeFieldValue(value: string): string {
  return value.replace(/\\(.?)|[,=]/gsu, (match, escaped: string | undefined) => {
    if (escaped === undefined) throw badRequest(`invalid field selector: unescaped character in value: ${match.codePointAt(0)}`);
    if (escaped !== "\\" && escaped !== "," && escaped !== "=") throw badRequest(`invalid field selector: invalid escape sequence: ${match}`);
    return escaped;
  });
}

/** Kinds that say it their own way. Source: kubernetes v1.36 pkg/apis/{batch,resource}/v1/conversion.go */
const UNSUPPORTED: ReadonlyMap<string, (field: string) => string> = new Map([
  ["Job", (field) => `field label ${goQuote(field)} not supported for Job`],
  ["ResourceSlice", (field) => `field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: ${field}`],
]);
const ALWAYS = ["metadata.name", "metadata.namespace"];
/** With a word of their own on fields, and none on the namespace: most have none. Source: kubernetes v1.36 conversion.go of pkg/apis/{certificates,core,resource} */
const UNPLACED = ["CertificateSigningRequest", "ClusterTrustBundle", "Namespace", "Node", "PodCertificateRequest", "ResourceSlice"];

/**
 * Throws badRequest for a field this kind has no selector for. `supported` undefined: a kind without selectable fields of its own,
 * for which upstream has another wording.
 */
export function checkFieldsSupported(selector: FieldSelector, supported?: readonly string[], kind = ""): void {
  for (const { field } of selector.requirements) {
    const isAlways = ALWAYS.includes(field) && !(field === "metadata.namespace" && UNPLACED.includes(kind));
    if (isAlways || supported?.includes(field)) continue;
    throw badRequest(supported
      ? UNSUPPORTED.get(kind)?.(field) ?? `field label not supported: ${field}`
      : `${goQuote(field)} is not a known field selector: only "metadata.name", "metadata.namespace"`);
  }
}
