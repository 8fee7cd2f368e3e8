/**
 * Whom Go trusts and OpenSSL does not, of those whom an authority of the bundle signed itself. OpenSSL looks for one authority and believes what names and key identifiers say; Go tries the key
 * of each that has the name. So it is with
 *
 *   an authority of the very name of what it signed, which may be none at all: it is taken for one that signed itself. Tools that make certificates for their webhooks make such pairs
 *   an authority renewed with its key: another serial number or key identifier than what it signed before says
 *   an old authority beside a new one of the same name, of which one has expired or has another key
 */
import { X509Certificate } from "node:crypto";

const SERVER_AUTH = new Set(["1.3.6.1.5.5.7.3.1", "2.5.29.37.0"]); // or any use
const CERTIFICATE = /-----BEGIN CERTIFICATE-----(?:(?!-----BEGIN ).)*?-----END CERTIFICATE-----/gs;
const NAME_CONSTRAINTS = Buffer.from("0603551d1e", "hex"); // the extension's OID: what those allow is the library's to say

/** Whether an authority of the bundle (PEM) signed this server's certificate (DER), and both are valid. */
export function signedByOneOf(der: Uint8Array, bundle: string, nowMs: number): boolean {
  const leaf = new X509Certificate(der);
  if (!isValid(leaf, nowMs) || !isForServers(leaf)) return false;
  return (bundle.match(CERTIFICATE) ?? []).some((pem) => {
    const authority = new X509Certificate(pem);
    return authority.ca && isValid(authority, nowMs) && isForServers(authority) && !authority.raw.includes(NAME_CONSTRAINTS) && mayHaveIssued(authority, leaf) && leaf.verify(authority.publicKey);
  });
}

/** It has the name, and may sign certificates: which the library tells of one that signed itself. */
function mayHaveIssued(authority: X509Certificate, leaf: X509Certificate): boolean {
  return leaf.checkIssued(authority) || (leaf.issuer === authority.subject && authority.checkIssued(authority));
}

/** Each certificate on the way must be, an authority's as well. Source: Go crypto/x509 checkChainForKeyUsage */
function isForServers({ keyUsage }: X509Certificate): boolean { return keyUsage?.some((use) => SERVER_AUTH.has(use)) ?? true; }

function isValid({ validFrom, validTo }: X509Certificate, nowMs: number): boolean {
  return Date.parse(validFrom) <= nowMs && nowMs <= Date.parse(validTo);
}
