/**
 * What a machine is given to join a cluster: a secret, and the hash of the CA certificate by which it knows the server before it tells the secret.
 *
 *   K10<SHA-256 of the certificate, hex>::<secret>
 *
 * The secret is a bootstrap token (abcdef.0123456789abcdef) or the cluster's own token. It can stand alone; then the first server that answers is
 * believed. The hash is the certificate's fingerprint as every tool shows it: openssl x509 -fingerprint -sha256.
 */
import { createHash } from "node:crypto";
import { readCertificatePems } from "./pem.ts";

export interface JoinToken {
  /** Lower-case hex. */
  readonly caHash: string | undefined;
  readonly secret: string;
}

const PREFIX = "K10";
const DAMAGED = /^K10([0-9a-f]{8}|.*::)/s;
const FULL = /^K10([0-9a-f]{64})::(.+)$/s;

/** Throws, with advice, for what begins like a full token but is none. */
export function parseJoinToken(text: string): JoinToken {
  const token = text.trim();
  const [, caHash, secret] = FULL.exec(token) ?? [];
  if (caHash !== undefined && secret !== undefined) return { caHash, secret };
  if (DAMAGED.test(token)) throw new Error("the token is damaged: it must be K10, 64 hexadecimal digits, two colons and the secret; was it copied whole?");
  if (token === "") throw new Error("the token is empty");
  return { caHash: undefined, secret: token };
}

/** `caPem`: a bundle; its first certificate is the one that signs. */
export function formatJoinToken(caPem: string, secret: string): string {
  const [first] = readCertificatePems(caPem);
  if (!first) throw new Error("no certificate found");
  return `${PREFIX}${certificateHash(first)}::${secret}`;
}

export function certificateHash(der: Uint8Array): string { return createHash("sha256").update(der).digest("hex"); }
