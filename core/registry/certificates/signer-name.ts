/** Names of signers, `example.com/signer-name`, and of the trust bundles that belong to one. Source: kubernetes v1.36 pkg/apis/core/validation/names.go */
import { type FieldError, invalid, required, tooLong } from "../../api/meta/field-error.ts";
import { byteLength } from "../../api/meta/byte-length.ts";
import { goQuote } from "../../api/meta/go-quote.ts";
import { dns1123Label, DNS1123_LABEL_BYTES_MAX, dns1123Subdomain, DNS1123_SUBDOMAIN_BYTES_MAX } from "../../api/meta/names.ts";

const PATH_BYTES_MAX = DNS1123_SUBDOMAIN_BYTES_MAX + DNS1123_LABEL_BYTES_MAX + 1;
const NAME_BYTES_MAX = DNS1123_SUBDOMAIN_BYTES_MAX + PATH_BYTES_MAX + 1;

export function isKubernetesSigner(name: string): boolean {
  const host = name.split("/")[0]!;
  return host === "kubernetes.io" || host.endsWith(".kubernetes.io");
}

export function* signerName(path: string, name: string | undefined): Iterable<FieldError> {
  if (!name) { yield required(path); return; }
  const segments = name.split("/");
  const [domain = "", signer = ""] = segments;
  if (segments.length !== 2) { yield invalid(path, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'"); return; }
  if (byteLength(domain) > DNS1123_SUBDOMAIN_BYTES_MAX) yield tooLong(path, DNS1123_SUBDOMAIN_BYTES_MAX);
  yield* labels(path, domain, dns1123Label);
  if (!domain.includes(".")) yield invalid(path, domain, "should be a domain with at least two segments separated by dots");
  yield* labels(path, signer, dns1123Subdomain);
  if (byteLength(name) > NAME_BYTES_MAX) yield tooLong(path, NAME_BYTES_MAX);
}

/** What is wrong with the first of the labels that has something wrong with it. */
function* labels(path: string, dotted: string, check: (label: string) => string[]): Iterable<FieldError> {
  const label = dotted.split(".").find((part) => check(part).length > 0);
  if (label !== undefined) for (const text of check(label)) yield invalid(path, dotted, `validating label ${goQuote(label)}: ${text}`);
}

/** A bundle's name as a projection gives it: of a signer if there is a colon in it. */
export function trustBundleName(name: string): string[] {
  const colon = name.lastIndexOf(":");
  return trustBundleNameFor(colon < 0 ? "" : name.slice(0, colon).replaceAll(":", "/"), name);
}

export function trustBundleNameFor(signer: string, name: string): string[] {
  if (signer === "") return name.includes(":") ? [`ClusterTrustBundle without signer name must not have ":" in its name`] : dns1123Subdomain(name);
  const prefix = `${signer.replaceAll("/", ":")}:`;
  return name.startsWith(prefix) ? dns1123Subdomain(name.slice(prefix.length)) : [`ClusterTrustBundle for signerName ${signer} must be named with prefix ${prefix}`];
}
