/**
 * Client certificates: the common name is the user, organizations are groups.
 *
 * The certificate is verified here against the one CA that names users, for client authentication, whatever the TLS layer found: its
 * list of CAs also holds the front proxies', whose certificates must never name users.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/apiserver/pkg/authentication/request/x509/x509.go
 */
import { createHash } from "node:crypto";
import { GROUP_EXPIRED_NODES, type UserInfo } from "../api/request/user.ts";
import type { Clock } from "../lifecycle/clock.ts";
import type { PeerCertificate } from "../net/tls.ts";
import type { Metrics } from "../observe/metrics.ts";
import { chainProblem } from "../pki/verify-chain.ts";
import { type Certificate, parseCertificate } from "../pki/x509.ts";
import type { Authenticator } from "./authenticator.ts";
import { refuse } from "./authn.ts";
import type { RevokedNodes } from "./revoked-nodes.ts";

export interface CertificateOptions {
  /** Asked each time: CAs can be replaced while running. */
  readonly roots: () => readonly Certificate[];
  readonly clock: Clock;
  /** A moment that is certainly past: a clock that says less is not set, and cannot tell what is not valid yet. */
  readonly releasedMs?: number | undefined;
}

interface AuthenticatorOptions extends CertificateOptions {
  readonly revokedNodes?: RevokedNodes | undefined;
  readonly metrics?: Metrics | undefined;
}

const HOUR = 3600;
const DAY = 24 * HOUR;
const LEFT_SECONDS = [0, HOUR / 2, HOUR, 2 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 4 * DAY, 7 * DAY, 30 * DAY, 90 * DAY, 180 * DAY, 360 * DAY];

export function certificateAuthenticator({ revokedNodes, metrics, ...options }: AuthenticatorOptions): Authenticator {
  const left = metrics?.histogram("apiserver_client_certificate_expiration_seconds", "[ALPHA] Distribution of the remaining lifetime on the certificate used to authenticate a request.", LEFT_SECONDS).with({});
  const verify = certificateVerifier(options);
  const users = new WeakMap<Certificate, UserInfo>(); // all requests of a connection show the same one
  const times = new WeakMap<PeerCertificate, Pick<Certificate, "notBeforeMs" | "notAfterMs">>();

  function timeOf(peer: PeerCertificate): Pick<Certificate, "notBeforeMs" | "notAfterMs"> {
    let time = times.get(peer);
    if (!time) times.set(peer, (time = parse(peer.raw)));
    return time;
  }

  function isOutOfTime({ notBeforeMs, notAfterMs }: Pick<Certificate, "notBeforeMs" | "notAfterMs">, nowMs: number): boolean {
    return nowMs > notAfterMs || (nowMs < notBeforeMs && nowMs >= (options.releasedMs ?? 0));
  }

  return {
    async authenticate({ peerCertificate }, signal) {
      if (!peerCertificate) return undefined;
      const time = timeOf(peerCertificate), nowMs = options.clock.nowMs();
      left?.observe((time.notAfterMs - nowMs) / 1000); // whether or not it holds
      const unheld = isOutOfTime(time, nowMs) && nodeOutOfTime(peerCertificate, options);
      if (unheld) {
        await revokedNodes?.check(unheld, peerCertificate.raw, signal);
        return { user: { ...unheld, groups: [GROUP_EXPIRED_NODES] }, ends: undefined };
      }
      const certificate = verify(peerCertificate);
      if (certificate.subject.commonName === "") return undefined;
      let user = users.get(certificate);
      if (!user) users.set(certificate, (user = userOf(certificate)));
      return { user, ends: await revokedNodes?.check(user, certificate.raw, signal) };
    },
  };
}

/** Who it is when its certificate holds: before now, or later, if it was issued while clocks were ahead. Undefined: it was never a node's. */
function nodeOutOfTime(peer: PeerCertificate, { roots, clock }: CertificateOptions): UserInfo | undefined {
  const nowMs = clock.nowMs();
  const certificate = parse(peer.raw);
  const user = userOf(certificate);
  if (!user.name.startsWith("system:node:") || user.groups.join() !== "system:nodes") return undefined;
  const living = roots().filter(({ notAfterMs }) => notAfterMs >= nowMs);
  return chainProblem(certificate, { roots: living, usage: "client auth", nowMs: Math.min(Math.max(nowMs, certificate.notBeforeMs), certificate.notAfterMs) }) === undefined ? user : undefined;
}

function userOf({ subject, raw }: Certificate): UserInfo {
  const credential = `X509SHA256=${createHash("sha256").update(raw).digest("hex")}`;
  return { name: subject.commonName, uid: uidOf(subject.uids ?? []), groups: subject.organizations, extra: { "authentication.kubernetes.io/credential-id": [credential] } };
}

function uidOf(uids: readonly string[]): string | undefined {
  if (uids.length > 1) throw refuse(`expected 1 UID, but found multiple: [${uids.join(" ")}]`);
  if (uids[0] === "") throw refuse("UID cannot be an empty string");
  return uids[0];
}

/** Returns the parsed certificate, or throws 401. A connection's certificate is parsed and its signatures are checked once; dates each time. */
export function certificateVerifier({ roots, clock, releasedMs = 0 }: CertificateOptions): (peer: PeerCertificate) => Certificate {
  const verified = new WeakMap<PeerCertificate, { readonly certificate: Certificate; readonly roots: readonly Certificate[]; readonly untilMs: number }>();
  return (peer) => {
    const nowMs = clock.nowMs();
    const before = verified.get(peer);
    const trusted = roots();
    if (before && before.roots === trusted && hasBegun(before.certificate, nowMs) && nowMs <= before.untilMs) return before.certificate;
    const [certificate, ...intermediates] = [peer.raw, ...peer.issuers].map(parse);
    if (!certificate) throw refuse("no certificate");
    const problem = chainProblem(certificate, { roots: trusted, intermediates, usage: "client auth", nowMs: hasBegun(certificate, nowMs) ? Math.max(nowMs, certificate.notBeforeMs) : nowMs });
    if (problem !== undefined) throw refuse(`verifying certificate SN=${certificate.serial} failed: ${problem}`);
    const untilMs = Math.min(certificate.notAfterMs, ...[...trusted, ...intermediates].map(({ notAfterMs }) => notAfterMs).filter((end) => end >= nowMs)); // those that have ended are not what it leads to
    verified.set(peer, { certificate, roots: trusted, untilMs });
    return certificate;
  };

  function hasBegun({ notBeforeMs }: Certificate, nowMs: number): boolean { return nowMs >= notBeforeMs || nowMs < releasedMs; }
}

function parse(der: Uint8Array): Certificate {
  try {
    return parseCertificate(der);
  } catch (cause) {
    throw refuse(`certificate cannot be read: ${(cause as Error).message}`);
  }
}
