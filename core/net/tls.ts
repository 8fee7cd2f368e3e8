/** What TLS servers and clients of ours present and accept, and what a server learns of its peers. */
import type { TLSSocket, TlsOptions } from "node:tls";
import type { TlsPolicy } from "./tls-policy.ts";

export interface TlsMaterial {
  /** PEM: the key, and its certificate followed by intermediates. */
  readonly key: string;
  readonly cert: string;
  /** PEM bundles a client's certificate may lead to. */
  readonly clientCas: readonly string[];
  /** Absent: TLS 1.2 and newer, with the library's ciphers. */
  readonly policy?: TlsPolicy | undefined;
}

/** What the API server calls every kubelet when it connects (SNI): one that shows others a certificate of somebody else's shows it the cluster's. */
export const KUBELET_SERVER_NAME = "kubelet.node.internal";

/** Whoever a bundle names is trusted: a root, an intermediate, or the very certificate that is shown. As in Go, where a pool has no other kind. */
export const ANCHORS = { allowPartialTrustChain: true } as const;

/** How keys may be agreed on: Go's, of which the library leaves out the last one by itself, and so all certificates of P-521 where TLS is 1.2. Source: go1.26 crypto/tls/defaults.go defaultCurvePreferences */
export const KEY_AGREEMENTS = { ecdhCurve: "X25519MLKEM768:X25519:P-256:P-384:P-521" } as const;

/** The library's code of a certificate whose key usage is without digital signature: neither a server nor a client may show it here. Go does not look. */
export const WRONG_KEY_USAGE = "ERR_SSL_KEY_USAGE_BIT_INCORRECT";

/** Whom a client of ours trusts, and what it shows. */
export interface OutboundTls {
  /** PEM. Absent, or empty: whom the system trusts. */
  readonly ca?: string | undefined;
  /** PEM: what we show. */
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  readonly serverName?: string | undefined;
  readonly insecure?: boolean | undefined;
}

/** The same, as `fetch` takes it. */
export function fetchTls({ ca, cert, key, serverName, insecure }: OutboundTls): object {
  return { ...KEY_AGREEMENTS, ...(ca ? { ca, ...ANCHORS } : {}), ...(cert ? { cert } : {}), ...(key ? { key } : {}), ...(serverName ? { serverName } : {}), ...(insecure ? { rejectUnauthorized: false } : {}) };
}

/** A client without a certificate, or with one we do not know, gets its connection all the same: who it is, is decided per request. Without client CAs none is asked for. */
export function tlsOptions({ key, cert, clientCas, policy }: TlsMaterial): TlsOptions {
  return { key, cert, ca: [...clientCas], ...ANCHORS, ...KEY_AGREEMENTS, requestCert: clientCas.length > 0, rejectUnauthorized: false, minVersion: policy?.minVersion ?? "TLSv1.2", ...(policy?.ciphers === undefined ? {} : { ciphers: policy.ciphers }) };
}

/**
 * A certificate the peer proved to hold the key of. That says nothing about who signed it: `authorized` tells whether it led to one of
 * the client CAs when the connection was made, and whoever trusts it checks again, against the one CA it speaks for.
 */
export interface PeerCertificate {
  readonly authorized: boolean;
  readonly subject: { readonly CN?: string; readonly O?: string | readonly string[]; readonly UID?: string };
  /** DER. */
  readonly raw: Uint8Array;
  /** DER of the certificates above it, nearest first. */
  readonly issuers: readonly Uint8Array[];
}

/** More than this is no chain anyone builds. */
const ISSUERS_MAX = 8;

export function peerCertificateOf(socket: TLSSocket): PeerCertificate | undefined {
  const leaf = socket.getPeerCertificate(true);
  if (!leaf?.raw) return undefined; // none was sent
  const issuers: Uint8Array[] = [];
  for (let at = leaf; issuers.length < ISSUERS_MAX && at.issuerCertificate?.raw && at.issuerCertificate !== at; at = at.issuerCertificate) issuers.push(at.issuerCertificate.raw);
  return { authorized: socket.authorized === true, subject: { ...leaf.subject } as PeerCertificate["subject"], raw: leaf.raw, issuers };
}

/** "10.0.0.7" rather than "::ffff:10.0.0.7", which sockets that accept both families report. */
export function plainAddress(address: string | undefined): string { return (address ?? "").replace(/^::ffff:(?=\d+\.)/i, ""); }
