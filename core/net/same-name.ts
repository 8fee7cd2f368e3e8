/**
 * Whom Go trusts and OpenSSL does not: a certificate whose authority has the very name it has itself, which may be none at all. OpenSSL takes it for one that
 * signed itself and looks for nobody else; Go tries the keys. Tools that make certificates for their webhooks make such pairs.
 */
import { X509Certificate } from "node:crypto";

const SERVER_AUTH = new Set(["1.3.6.1.5.5.7.3.1", "2.5.29.37.0"]); // or any use
const CERTIFICATE = /-----BEGIN CERTIFICATE-----(?:(?!-----BEGIN ).)*?-----END CERTIFICATE-----/gs;

/** Whether an authority of the bundle (PEM) signed this server's certificate (DER), and both are valid. */
export function signedByOneOf(der: Uint8Array, bundle: string, nowMs: number): boolean {
  const leaf = new X509Certificate(der);
  if (!isValid(leaf, nowMs) || !(leaf.keyUsage?.some((use) => SERVER_AUTH.has(use)) ?? true)) return false;
  return (bundle.match(CERTIFICATE) ?? []).some((pem) => {
    const authority = new X509Certificate(pem);
    return authority.ca && isValid(authority, nowMs) && leaf.checkIssued(authority) && leaf.verify(authority.publicKey);
  });
}

function isValid({ validFrom, validTo }: X509Certificate, nowMs: number): boolean {
  return Date.parse(validFrom) <= nowMs && nowMs <= Date.parse(validTo);
}
