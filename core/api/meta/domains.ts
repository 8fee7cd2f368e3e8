/** Names that start with somebody's domain. Source: kubernetes v1.36 apimachinery/pkg/util/validation/validation.go */
import { type FieldError, invalid, required } from "./field-error.ts";
import { dns1123Label, dns1123Subdomain, regexMessage } from "./names.ts";

const HTTP_PATH = "[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+";
const HTTP_PATH_MATCH = new RegExp(`^${HTTP_PATH}$`);

/** `example.com/what/ever`. */
export function* isDomainPrefixedPath(path: string, text: string): Iterable<FieldError> {
  if (text === "") { yield required(path); return; }
  const at = text.indexOf("/");
  if (at <= 0 || at === text.length - 1) { yield invalid(path, text, `must be a domain-prefixed path (such as "acme.io/foo")`); return; }
  const [host, rest] = [text.slice(0, at), text.slice(at + 1)];
  for (const problem of dns1123Subdomain(host)) yield invalid(path, host, problem);
  if (!HTTP_PATH_MATCH.test(rest)) yield invalid(path, rest, regexMessage("Invalid path", HTTP_PATH));
}

/** `a.example.com`, with or without the dot at the end. */
export function* isFullyQualifiedDomainName(path: string, text: string): Iterable<FieldError> {
  if (text === "") { yield required(path); return; }
  const name = text.endsWith(".") ? text.slice(0, -1) : text;
  const wrong = dns1123Subdomain(name);
  const labels = name.split(".");
  const bad = labels.find((label) => dns1123Label(label).length > 0);
  if (wrong.length > 0) yield invalid(path, name, wrong.join(","));
  else if (labels.length < 2) yield invalid(path, name, "should be a domain with at least two segments separated by dots");
  else if (bad !== undefined) yield invalid(path, bad, dns1123Label(bad).join(","));
}
