/**
 * Who calls the kubelet: a client certificate of the cluster's client CA, or a bearer token the API server vouches for (TokenReview).
 * Anonymous requests are refused.
 *
 * Source: kubernetes v1.36 cmd/kubelet/app/auth.go, apiserver/pkg/authentication/request/x509
 */
import { createHash } from "node:crypto";
import type { UserInfo } from "../../../core/api/request/user.ts";
import { GROUP_AUTHENTICATED } from "../../../core/api/request/user.ts";
import type { Client } from "../../../core/client/client.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { PeerCertificate } from "../../../core/net/tls.ts";
import { chainProblem } from "../../../core/pki/verify-chain.ts";
import { type Certificate, parseCertificate } from "../../../core/pki/x509.ts";
import type { CallerTtls } from "./caller-ttls.ts";
import { expiringCache } from "./expiring-cache.ts";

export interface Caller {
  readonly peerCertificate: PeerCertificate | undefined;
  /** The Authorization header. */
  readonly authorization: string | undefined;
}

export interface AuthenticationOptions {
  readonly client: Client;
  /** The client CA. Asked each time: it can be replaced while running. */
  readonly roots: () => readonly Certificate[];
  readonly clock: Clock;
  readonly ttls: CallerTtls;
}

const TOKENS_MAX = 4096;

/** Undefined: it is not known who calls. Throws when the API server cannot be asked. */
export type Authenticate = (caller: Caller, signal: AbortSignal) => Promise<UserInfo | undefined>;

export function authentication({ client, roots, clock, ttls }: AuthenticationOptions): Authenticate {
  const verified = new WeakMap<PeerCertificate, Certificate>();
  const tokens = expiringCache<UserInfo | undefined>({ clock, entriesMax: TOKENS_MAX });

  function byCertificate(peer: PeerCertificate): UserInfo | undefined {
    const nowMs = clock.nowMs();
    let certificate = verified.get(peer);
    if (!certificate) {
      certificate = parseCertificate(peer.raw);
      if (chainProblem(certificate, { roots: roots(), intermediates: peer.issuers.map(parseCertificate), usage: "client auth", nowMs }) !== undefined) return undefined;
      verified.set(peer, certificate);
    }
    if (nowMs > certificate.notAfterMs) return undefined;
    const { commonName, organizations } = certificate.subject;
    return commonName === "" ? undefined : { name: commonName, groups: [...organizations, GROUP_AUTHENTICATED] };
  }

  async function byToken(token: string, signal: AbortSignal): Promise<UserInfo | undefined> {
    const key = createHash("sha256").update(token).digest("base64");
    const before = tokens.get(key);
    if (before) return before.value;
    const review = (await client.request({
      method: "POST", path: "/apis/authentication.k8s.io/v1/tokenreviews", signal,
      body: { apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", metadata: {}, spec: { token } },
    })) as { readonly status?: { readonly authenticated?: boolean; readonly user?: { readonly username?: string; readonly uid?: string; readonly groups?: readonly string[]; readonly extra?: Record<string, readonly string[]> } } };
    const { authenticated = false, user } = review.status ?? {};
    const found: UserInfo | undefined = authenticated && user?.username ? { name: user.username, uid: user.uid, groups: user.groups ?? [], extra: user.extra } : undefined;
    tokens.set(key, found, ttls.tokenMs);
    return found;
  }

  return async ({ peerCertificate, authorization }, signal) => {
    if (peerCertificate) {
      const user = byCertificate(peerCertificate);
      if (user) return user;
    }
    const token = /^Bearer +(\S+) *$/i.exec(authorization ?? "")?.[1];
    return token === undefined ? undefined : await byToken(token, signal);
  };
}
