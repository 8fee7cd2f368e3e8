/** How a webhook is reached: of admission and of conversion. Source: kubernetes v1.36 apiserver/pkg/util/webhook/validation.go */
import { child, type FieldError, invalid, required } from "../../api/meta/field-error.ts";
import { dns1123Subdomain, portNumber } from "../../api/meta/names.ts";
import { type GoUrl, parseUrl, UrlError } from "../../api/meta/go-url.ts";
import { readPem } from "../../pki/pem.ts";
import { parseCertificate } from "../../pki/x509.ts";

const FORM = "; desired format: https://host[/path]";

export function* webhookUrl(path: string, text: string): Iterable<FieldError> {
  const url = urlOf(text);
  if (typeof url === "string") { yield required(path, `url must be a valid URL: ${url}${FORM}`); return; }
  const { scheme, host, user, fragment, rawQuery } = url;
  if (scheme !== "https") yield invalid(path, scheme, `'https' is the only allowed URL scheme${FORM}`);
  if (host === "") yield invalid(path, host, `host must be specified${FORM}`);
  if (user !== undefined) yield invalid(path, user, "user information is not permitted in the URL");
  if (fragment !== "") yield invalid(path, fragment, "fragments are not permitted in the URL");
  if (rawQuery !== "") yield invalid(path, rawQuery, "query parameters are not permitted in the URL");
}

/** Or why it is none. */
function urlOf(text: string): GoUrl | string {
  try {
    return parseUrl(text);
  } catch (error) {
    if (error instanceof UrlError) return error.message;
    throw error;
  }
}

/** Why a bundle (base64 of PEM) has no certificate that could be trusted; undefined: it has one, or there is no bundle. */
export function caBundleProblem(caBundle = ""): string | undefined {
  if (caBundle === "") return undefined;
  const blocks = readPem(Buffer.from(caBundle, "base64").toString());
  const certificates = blocks.filter(({ label }) => label === "CERTIFICATE");
  if (certificates.some(({ der }) => isCertificate(der))) return undefined;
  const why = blocks.length === 0 ? "unable to parse bytes as PEM block" : certificates.length > 0 ? "failed to parse certificate: x509: malformed certificate" : "no valid certificate authority data seen";
  return `unable to load root certificates: ${why}`;
}

function isCertificate(der: Uint8Array): boolean {
  try {
    parseCertificate(der);
    return true;
  } catch {
    return false;
  }
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
