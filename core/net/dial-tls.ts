/** TLS over a connection that somebody else made, verified or not; what goes wrong is told in Go's words. */
import { isIP } from "node:net";
import type { Duplex } from "node:stream";
import { checkServerIdentity, connect, type PeerCertificate, type TLSSocket } from "node:tls";
import { type Clock, systemClock } from "../lifecycle/clock.ts";
import { holdBack } from "./held-back.ts";
import { signedByOneOf } from "./same-name.ts";
import { ANCHORS, KEY_AGREEMENTS, WRONG_KEY_USAGE } from "./tls.ts";
import { whenConnected } from "./when-connected.ts";

export interface Verification {
  /** PEM. Without: whom this machine trusts. */
  readonly ca: string | undefined;
  /** The name that is asked for, which the certificate must carry. */
  readonly serverName: string;
  /** What it must carry instead, one of them. */
  readonly names?: readonly { readonly type: "DNS" | "URI"; readonly value: string }[] | undefined;
  /** What is spoken then, HTTP/1.1 unless it says something else; undefined: nobody here knows. */
  readonly alpn?: "http/1.1" | "h2" | undefined;
  /** What we show of ourselves, PEM. */
  readonly client?: { readonly cert: string; readonly key: string } | undefined;
  /** A moment that is certainly past: a clock that says less is not set, and cannot tell what is not valid yet. */
  readonly releasedMs?: number | undefined;
  /** Any certificate will do. */
  readonly insecure?: boolean | undefined;
  readonly signal: AbortSignal;
  /** How long it may take. Absent: as long as the signal lets it. */
  readonly limit?: { readonly clock: Clock; readonly ms: number } | undefined;
}

/** Closes the connection when it cannot be trusted. */
export async function dialTls(connection: Duplex, { ca, serverName, names, client, releasedMs, insecure = false, signal, limit, ...rest }: Verification): Promise<Duplex> {
  const alpn = "alpn" in rest ? rest.alpn : "http/1.1";
  const socket: TLSSocket = connect({
    socket: connection, ALPNProtocols: alpn && [alpn], ...KEY_AGREEMENTS, rejectUnauthorized: false, ...(ca === undefined ? {} : { ca, ...ANCHORS }), ...client, ...(isIP(serverName) ? {} : { servername: serverName }),
    checkServerIdentity: () => undefined, // below, as what is trusted is: for names and addresses alike
  });
  holdBack(socket, connection);
  try {
    return await whenConnected(socket, {
      event: "secureConnect", signal,
      failure: (error) => (error ? new Error(tlsReason(error), { cause: error }) : new Error("EOF")),
      refusal: () => (insecure ? undefined : mistrust(socket, { serverName, names, ca, releasedMs })),
      limit: limit && { ...limit, error: () => new Error("tls: i/o timeout") },
    });
  } catch (error) {
    connection.destroy();
    throw error;
  }
}

/** Nothing was sent yet but what a handshake needs. The machine's clock, as the TLS library takes it. */
function mistrust(socket: TLSSocket, { serverName, names = [], ca, releasedMs = 0 }: Pick<Verification, "serverName" | "names" | "ca" | "releasedMs">): Error | undefined {
  const certificate = socket.getPeerCertificate();
  const code = socket.authorized ? "" : codeOf(socket.authorizationError);
  const nowMs = systemClock.nowMs();
  const judgedMs = code === "CERT_NOT_YET_VALID" && nowMs < releasedMs ? Date.parse(certificate.valid_from) : ANOTHER_AUTHORITY.has(code) ? nowMs : undefined;
  const trusted = socket.authorized || (judgedMs !== undefined && ca !== undefined && signedByOneOf(certificate.raw, ca, judgedMs));
  const uris = namesIn(certificate, "URI:");
  const isFor = names.length > 0 ? names.some(({ type, value }) => (type === "URI" ? uris.includes(value) : carries(certificate, value))) : carries(certificate, serverName);
  if (!trusted && (isFor || !UNKNOWN_AUTHORITY.has(code))) return new Error(tlsReason({ code, message: code })); // the name is looked at before whoever signed it
  return isFor ? undefined : new Error(`tls: failed to verify certificate: x509: ${notFor(certificate, names.length > 0 ? names.map(({ value }) => value) : [serverName])}`);
}

/** As an alternative name: a common name alone counts for nothing, though the runtime would look at it. */
function carries(certificate: PeerCertificate, name: string): boolean {
  return certificate.subjectaltname !== undefined && !checkServerIdentity(name, certificate);
}

/** An error or its code, as the runtime has it. */
function codeOf(error: unknown): string {
  return String((error as NodeJS.ErrnoException | undefined)?.code ?? error);
}

function namesIn({ subjectaltname = "" }: Pick<PeerCertificate, "subjectaltname">, prefix: string): string[] {
  return subjectaltname.split(", ").flatMap((one) => (one.startsWith(prefix) ? one.slice(prefix.length) : []));
}

/** Of a name names are told, of an address addresses. Source: Go crypto/x509/verify.go HostnameError */
function notFor(certificate: PeerCertificate, wanted: readonly string[]): string {
  if (certificate.subjectaltname === undefined && wanted.some((name) => !checkServerIdentity(name, certificate))) return "certificate relies on legacy Common Name field, use SANs instead";
  const host = wanted.join(" or "), isAddress = isIP(wanted[0]!) !== 0;
  const names = namesIn(certificate, isAddress ? "IP Address:" : "DNS:");
  if (names.length > 0) return `certificate is valid for ${names.join(", ")}, not ${host}`;
  return isAddress ? `cannot validate certificate for ${host} because it doesn't contain any IP SANs` : `certificate is not valid for any names, but wanted to match ${host}`;
}

const UNKNOWN_AUTHORITY: ReadonlySet<string> = new Set(["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "UNABLE_TO_GET_ISSUER_CERT", "UNABLE_TO_GET_ISSUER_CERT_LOCALLY", "SELF_SIGNED_CERT_IN_CHAIN", "DEPTH_ZERO_SELF_SIGNED_CERT", "CERT_SIGNATURE_FAILURE"]);

/** What is told of a certificate that another one of the bundle may have signed: same-name.ts. */
export const ANOTHER_AUTHORITY: ReadonlySet<string> = new Set([...UNKNOWN_AUTHORITY, "CERT_HAS_EXPIRED", "CERT_NOT_YET_VALID"]);

function tlsReason({ code = "", message }: Pick<NodeJS.ErrnoException, "code" | "message">): string {
  if (code === "ECONNRESET" && message.includes("before secure TLS connection")) return "EOF"; // closed by somebody who speaks something else
  if (message.includes("WRONG_VERSION_NUMBER")) return "tls: first record does not look like a TLS handshake"; // as plain HTTP is answered
  if (code === WRONG_KEY_USAGE) return "tls: failed to verify certificate: x509: its key usage is without digital signature"; // which Go does not ask for
  if (UNKNOWN_AUTHORITY.has(code)) return "tls: failed to verify certificate: x509: certificate signed by unknown authority";
  if (code === "CERT_HAS_EXPIRED" || code === "CERT_NOT_YET_VALID") return "tls: failed to verify certificate: x509: certificate has expired or is not yet valid";
  return `tls: ${message}`;
}
