/**
 * Whether a certificate and a key belong together, in the words of Go's crypto/tls, as the warning for a Secret of type kubernetes.io/tls tells it. Pure.
 *
 * Source: go1.26 crypto/tls/tls.go X509KeyPair
 */
import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { readPem } from "../../pki/pem.ts";

/** Undefined: they do. */
export function keyPairProblem(certificatePem: string, keyPem: string): string | undefined {
  const skipped: string[] = [];
  const leaf = take(certificatePem, (label) => label === "CERTIFICATE", skipped);
  if (!leaf) {
    if (skipped.length === 0) return "tls: failed to find any PEM data in certificate input";
    if (skipped.length === 1 && skipped[0]!.endsWith("PRIVATE KEY")) return "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched";
    return `tls: failed to find "CERTIFICATE" PEM block in certificate input after skipping PEM blocks of the following types: [${skipped.join(" ")}]`;
  }
  skipped.length = 0;
  const key = take(keyPem, (label) => label === "PRIVATE KEY" || label.endsWith(" PRIVATE KEY"), skipped);
  if (!key) {
    if (skipped.length === 0) return "tls: failed to find any PEM data in key input";
    if (skipped.length === 1 && skipped[0] === "CERTIFICATE") return "tls: found a certificate rather than a key in the PEM for the private key";
    return `tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input after skipping PEM blocks of the following types: [${skipped.join(" ")}]`;
  }
  const certificate = parsed(() => new X509Certificate(leaf));
  if (!certificate) return "x509: malformed certificate";
  const privateKey = DER_FORMS.map((type) => parsed(() => createPrivateKey({ key: Buffer.from(key), format: "der", type }))).find((found) => found !== undefined);
  if (!privateKey) return "tls: failed to parse private key";
  return mismatch(certificate, privateKey);
}

const DER_FORMS = ["pkcs1", "pkcs8", "sec1"] as const;

function mismatch(certificate: X509Certificate, key: KeyObject): string | undefined {
  if (certificate.checkPrivateKey(key)) return undefined;
  return certificate.publicKey.asymmetricKeyType === key.asymmetricKeyType ? "tls: private key does not match public key" : "tls: private key type does not match public key type";
}

/** The first block of that kind; labels of those before it are added to `skipped`. */
function take(pem: string, wanted: (label: string) => boolean, skipped: string[]): Uint8Array | undefined {
  for (const { label, der } of readPem(pem)) {
    if (wanted(label)) return der;
    skipped.push(label);
  }
  return undefined;
}

function parsed<T>(parse: () => T): T | undefined {
  try {
    return parse();
  } catch {
    return undefined; // anything may be in a Secret
  }
}
