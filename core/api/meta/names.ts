/**
 * Names and the like: what is wrong with one, in upstream's words. Each function returns its complaints; none means valid.
 *
 *   for (const detail of dns1123Label(name)) errors.push(invalid(path, name, detail));
 *   for (const detail of nameProblems("dns1123Subdomain", name, { prefix: true })) …      metadata.generateName
 *
 * Label keys and values count bytes in their message where the others count characters; upstream does too.
 *
 * Source: kubernetes v1.36 apimachinery/pkg/util/validation/validation.go, pkg/api/validate/content/*.go, pkg/api/validation/{generic,path}.go
 */
import { byteLength } from "./byte-length.ts";

export const DNS1123_LABEL_BYTES_MAX = 63;
export const DNS1123_SUBDOMAIN_BYTES_MAX = 253;
const LABEL_VALUE_BYTES_MAX = 63;
const PORT_NAME_BYTES_MAX = 15;

const DNS1123_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const DNS1123_SUBDOMAIN = `${DNS1123_LABEL}(\\.${DNS1123_LABEL})*`;
const DNS1123_LABEL_UNDERSCORE = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
const DNS1123_SUBDOMAIN_UNDERSCORE = `${DNS1123_LABEL_UNDERSCORE}(\\.${DNS1123_LABEL_UNDERSCORE})*`;
export const DNS1035_LABEL = "[a-z]([-a-z0-9]*[a-z0-9])?";
const WILDCARD_SUBDOMAIN = `\\*\\.${DNS1123_SUBDOMAIN}`;
const QUALIFIED_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_VALUE = `(${QUALIFIED_NAME})?`;
const C_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*";
const CONFIG_MAP_KEY = "[-._a-zA-Z0-9]+";
const HTTP_HEADER_NAME = "[-A-Za-z0-9]+";
const PERCENT = "[0-9]+%";

const MATCH = {
  dns1123Label: whole(DNS1123_LABEL), dns1123Subdomain: whole(DNS1123_SUBDOMAIN), dns1123SubdomainCaseless: new RegExp(`^${DNS1123_SUBDOMAIN}$`, "i"), dns1123SubdomainUnderscore: whole(DNS1123_SUBDOMAIN_UNDERSCORE),
  dns1035Label: whole(DNS1035_LABEL), wildcardSubdomain: whole(WILDCARD_SUBDOMAIN), qualifiedName: whole(QUALIFIED_NAME), labelValue: whole(LABEL_VALUE),
  cIdentifier: whole(C_IDENTIFIER), configMapKey: whole(CONFIG_MAP_KEY), httpHeaderName: whole(HTTP_HEADER_NAME), percent: whole(PERCENT),
};

function whole(pattern: string): RegExp { return new RegExp(`^${pattern}$`); }

function maxLengthMessage(max: number): string { return `must be no more than ${max} characters`; }
function maxBytesMessage(max: number): string { return `must be no more than ${max} bytes`; }
export function rangeMessage(min: number, max: number): string { return `must be between ${min} and ${max}, inclusive`; }
export const EMPTY_MESSAGE = "must be non-empty";

/** `message (e.g. 'a',  or 'b', regex used for validation is '…')`: the odd punctuation is upstream's. */
export function regexMessage(message: string, pattern: string, ...examples: readonly string[]): string {
  if (examples.length === 0) return `${message} (regex used for validation is '${pattern}')`;
  return `${message} (e.g. ${examples.map((example) => `'${example}', `).join(" or ")}regex used for validation is '${pattern}')`;
}

function check(value: string, { max, match, message, tooLong = maxLengthMessage }: { max?: number; match: RegExp; message: string; tooLong?: (max: number) => string }): string[] {
  const problems: string[] = [];
  if (max !== undefined && byteLength(value) > max) problems.push(tooLong(max));
  if (!match.test(value)) problems.push(message);
  return problems;
}

const DNS1123_LABEL_MESSAGE = regexMessage(
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
  DNS1123_LABEL, "my-name", "123-abc",
);
export function dns1123Label(value: string): string[] { return label(value, maxLengthMessage); }

/** The same of fields that are checked by what their types declare: k8s-short-name. */
export function shortName(value: string): string[] { return label(value, maxBytesMessage); }

function label(value: string, tooLong: (max: number) => string): string[] {
  const message = MATCH.dns1123Subdomain.test(value) ? "must not contain dots" : DNS1123_LABEL_MESSAGE;
  return check(value, { max: DNS1123_LABEL_BYTES_MAX, match: MATCH.dns1123Label, message, tooLong });
}

const DNS1123_SUBDOMAIN_MESSAGE = regexMessage(
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
  DNS1123_SUBDOMAIN, "example.com",
);
export function dns1123Subdomain(value: string): string[] {
  return check(value, { max: DNS1123_SUBDOMAIN_BYTES_MAX, match: MATCH.dns1123Subdomain, message: DNS1123_SUBDOMAIN_MESSAGE });
}

/** The same of kinds whose names are checked by what their types declare: k8s-long-name. */
export function longName(value: string): string[] {
  return check(value, { max: DNS1123_SUBDOMAIN_BYTES_MAX, match: MATCH.dns1123Subdomain, message: DNS1123_SUBDOMAIN_MESSAGE, tooLong: maxBytesMessage });
}

const CASELESS_MESSAGE = regexMessage("an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character", DNS1123_SUBDOMAIN, "Example.com");
/** k8s-long-name-caseless. The message shows the other pattern, as upstream's. */
export function longNameCaseless(value: string): string[] {
  return check(value, { max: DNS1123_SUBDOMAIN_BYTES_MAX, match: MATCH.dns1123SubdomainCaseless, message: CASELESS_MESSAGE, tooLong: maxBytesMessage });
}

const DNS1123_SUBDOMAIN_UNDERSCORE_MESSAGE = regexMessage(
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character",
  DNS1123_SUBDOMAIN_UNDERSCORE, "example.com",
);
export function dns1123SubdomainWithUnderscore(value: string): string[] {
  return check(value, { max: DNS1123_SUBDOMAIN_BYTES_MAX, match: MATCH.dns1123SubdomainUnderscore, message: DNS1123_SUBDOMAIN_UNDERSCORE_MESSAGE });
}

const DNS1035_LABEL_MESSAGE = regexMessage(
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
  DNS1035_LABEL, "my-name", "abc-123",
);
export function dns1035Label(value: string): string[] {
  return check(value, { max: DNS1123_LABEL_BYTES_MAX, match: MATCH.dns1035Label, message: DNS1035_LABEL_MESSAGE });
}

const WILDCARD_MESSAGE = regexMessage(
  "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' " +
  "and end with an alphanumeric character",
  WILDCARD_SUBDOMAIN, "*.example.com",
);
export function wildcardDns1123Subdomain(value: string): string[] {
  return check(value, { max: DNS1123_SUBDOMAIN_BYTES_MAX, match: MATCH.wildcardSubdomain, message: WILDCARD_MESSAGE });
}

const QUALIFIED_NAME_MESSAGE = regexMessage(
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character", QUALIFIED_NAME, "MyName", "my.name", "123-abc",
);
/** Label and annotation keys, resource names: `example.com/MyName`, `my.name`. */
export function qualifiedName(value: string): string[] {
  if (value.length <= LABEL_VALUE_BYTES_MAX && MATCH.qualifiedName.test(value)) return []; // as most are, without a prefix
  const parts = value.split("/");
  if (parts.length > 2) return [`a valid label key ${QUALIFIED_NAME_MESSAGE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`];
  const name = parts.at(-1)!;
  const problems = parts.length === 2 ? prefixProblems(parts[0]!) : [];
  if (name === "") problems.push(`name part ${EMPTY_MESSAGE}`);
  else if (byteLength(name) > LABEL_VALUE_BYTES_MAX) problems.push(`name part ${maxBytesMessage(LABEL_VALUE_BYTES_MAX)}`);
  if (!MATCH.qualifiedName.test(name)) problems.push(`name part ${QUALIFIED_NAME_MESSAGE}`);
  return problems;
}

function prefixProblems(prefix: string): string[] {
  if (prefix === "") return [`prefix part ${EMPTY_MESSAGE}`];
  const problems: string[] = [];
  if (byteLength(prefix) > DNS1123_SUBDOMAIN_BYTES_MAX) problems.push(`prefix part ${maxBytesMessage(DNS1123_SUBDOMAIN_BYTES_MAX)}`);
  if (!MATCH.dns1123Subdomain.test(prefix)) problems.push(`prefix part ${DNS1123_SUBDOMAIN_MESSAGE}`);
  return problems;
}

const LABEL_VALUE_MESSAGE = regexMessage(
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  LABEL_VALUE, "MyValue", "my_value", "12345",
);
export function labelValue(value: string): string[] {
  const problems = byteLength(value) > LABEL_VALUE_BYTES_MAX ? [maxBytesMessage(LABEL_VALUE_BYTES_MAX)] : [];
  if (!MATCH.labelValue.test(value)) problems.push(LABEL_VALUE_MESSAGE);
  return problems;
}

const C_IDENTIFIER_MESSAGE = regexMessage(
  "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_'", C_IDENTIFIER, "my_name", "MY_NAME", "MyName",
);
export function cIdentifier(value: string): string[] { return check(value, { match: MATCH.cIdentifier, message: C_IDENTIFIER_MESSAGE }); }

export function relaxedEnvVarName(value: string): string[] {
  if (value === "") return [`environment variable name ${EMPTY_MESSAGE}`];
  return /^[ -<>-~]*$/.test(value) ? [] : ["a valid environment variable name must consist only of printable ASCII characters other than '='"];
}

const CONFIG_MAP_KEY_MESSAGE = regexMessage(
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.'", CONFIG_MAP_KEY, "key.name", "KEY_NAME", "key-name",
);
/** Keys of ConfigMaps and Secrets. */
export function configMapKey(value: string): string[] {
  return [...check(value, { max: DNS1123_SUBDOMAIN_BYTES_MAX, match: MATCH.configMapKey, message: CONFIG_MAP_KEY_MESSAGE }), ...parentDirectoryProblems(value)];
}

function parentDirectoryProblems(value: string): string[] {
  if (value === "." || value === "..") return [`must not be '${value}'`];
  return value.startsWith("..") ? ["must not start with '..'"] : [];
}

export function portName(value: string): string[] {
  const problems: string[] = [];
  if (byteLength(value) > PORT_NAME_BYTES_MAX) problems.push(maxLengthMessage(PORT_NAME_BYTES_MAX));
  if (!/^[-a-z0-9]+$/.test(value)) problems.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
  if (!/[a-z]/.test(value)) problems.push("must contain at least one letter (a-z)");
  if (value.includes("--")) problems.push("must not contain consecutive hyphens");
  if (value.startsWith("-") || value.endsWith("-")) problems.push("must not begin or end with a hyphen");
  return problems;
}

export function portNumber(value: number): string[] { return inRange(value, 1, 65535); }
/** User ids; group ids have the same range. */
export function userId(value: number): string[] { return inRange(value, 0, 2 ** 31 - 1); }
function inRange(value: number, min: number, max: number): string[] { return value >= min && value <= max ? [] : [rangeMessage(min, max)]; }

const HTTP_HEADER_NAME_MESSAGE = regexMessage("a valid HTTP header must consist of alphanumeric characters or '-'", HTTP_HEADER_NAME, "X-Header-Name");
export function httpHeaderName(value: string): string[] { return check(value, { match: MATCH.httpHeaderName, message: HTTP_HEADER_NAME_MESSAGE }); }

const PERCENT_MESSAGE = regexMessage("a valid percent string must be a numeric string followed by an ending '%'", PERCENT, "1%", "93%");
export function percent(value: string): string[] { return check(value, { match: MATCH.percent, message: PERCENT_MESSAGE }); }

/** Names of objects whose rule is only that they fit into a URL path: RBAC roles and bindings, for example. */
export function pathSegmentName(value: string, { prefix = false }: { readonly prefix?: boolean } = {}): string[] {
  if (!prefix && (value === "." || value === "..")) return [`may not be '${value}'`];
  return ["/", "%"].filter((part) => value.includes(part)).map((part) => `may not contain '${part}'`);
}

/** How a kind's names must look. */
export type NameRule = "dns1123Label" | "dns1123Subdomain" | "dns1035Label" | "pathSegment";

/** `prefix`: the value is a generateName, so a trailing dash will not stay at the end. */
export function nameProblems(rule: NameRule, value: string, { prefix = false }: { readonly prefix?: boolean } = {}): string[] {
  const name = prefix && rule !== "pathSegment" && value.length > 1 && value.endsWith("-") ? `${value.slice(0, -2)}a` : value;
  switch (rule) {
    case "dns1123Label": return dns1123Label(name);
    case "dns1123Subdomain": return dns1123Subdomain(name);
    case "dns1035Label": return dns1035Label(name);
    case "pathSegment": return pathSegmentName(name, { prefix });
  }
}
