/** How a webhook is reached: of admission and of conversion. Source: kubernetes v1.36 apiserver/pkg/util/webhook/validation.go */
import { child, type FieldError, invalid, required } from "../../api/meta/field-error.ts";
import { dns1123Subdomain, portNumber } from "../../api/meta/names.ts";

const FORM = "; desired format: https://host[/path]";

export function* webhookUrl(path: string, text: string): Iterable<FieldError> {
  if (!URL.canParse(text) && /[\s\x00-\x1f]|%(?![0-9a-fA-F]{2})/.test(text)) {
    yield required(path, `url must be a valid URL: parse ${JSON.stringify(text)}: invalid character in URL${FORM}`);
    return;
  }
  const { scheme, authority, query, fragment } = partsOf(text);
  if (scheme !== "https") yield invalid(path, scheme, `'https' is the only allowed URL scheme${FORM}`);
  const at = authority.lastIndexOf("@");
  const host = authority.slice(at + 1);
  if (host === "") yield invalid(path, host, `host must be specified${FORM}`);
  if (at >= 0) yield invalid(path, authority.slice(0, at), "user information is not permitted in the URL");
  if (fragment) yield invalid(path, fragment, "fragments are not permitted in the URL");
  if (query) yield invalid(path, query, "query parameters are not permitted in the URL");
}

/** As RFC 3986 takes a reference apart. */
function partsOf(text: string): { readonly scheme: string; readonly authority: string; readonly query: string; readonly fragment: string } {
  const [, scheme = "", authority = "", query = "", fragment = ""] = /^(?:([a-zA-Z][-+.a-zA-Z0-9]*):)?(?:\/\/([^/?#]*))?[^?#]*(?:\?([^#]*))?(?:#(.*))?$/s.exec(text) ?? [];
  return { scheme: scheme.toLowerCase(), authority, query, fragment };
}

interface Service { readonly name?: string | undefined; readonly namespace?: string | undefined; readonly path?: string | undefined; readonly port?: number | undefined }

/** Upstream's callers give the name where the namespace is asked for, and the other way round: what is missing is told under the other's name. */
export function* webhookService(path: string, { name, namespace, path: urlPath, port = 0 }: Service): Iterable<FieldError> {
  if (!namespace) yield required(child(path, "name"));
  if (!name) yield required(child(path, "namespace"));
  const problems = portNumber(port);
  if (problems.length > 0) yield invalid(child(path, "port"), port, `port is not valid: ${problems.join(", ")}`);
  if (urlPath) yield* servicePath(child(path, "path"), urlPath);
}

function* servicePath(path: string, urlPath: string): Iterable<FieldError> {
  if (urlPath === "/") return;
  if (urlPath === "//") { yield invalid(path, urlPath, "segment[0] may not be empty"); return; }
  if (!urlPath.startsWith("/")) yield invalid(path, urlPath, "must start with a '/'");
  for (const [i, step] of urlPath.slice(1).replace(/\/$/, "").split("/").entries()) {
    if (step === "") yield invalid(path, urlPath, `segment[${i}] may not be empty`);
    else for (const problem of dns1123Subdomain(step)) yield invalid(path, urlPath, `segment[${i}]: ${problem}`);
  }
}
