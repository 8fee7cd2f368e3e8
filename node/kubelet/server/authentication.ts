/**
 * Who calls the kubelet: a client certificate of the cluster's client CA, or a bearer token the API server vouches for (TokenReview).
 * Who says nothing is refused, or system:anonymous where the settings open the kubelet to everybody.
 *
 * Source: kubernetes v1.36 cmd/kubelet/app/auth.go, apiserver/pkg/authentication/request/x509
 */
import { createHash } from "node:crypto";
import type { UserInfo } from "../../../core/api/request/user.ts";
import { ANONYMOUS, GROUP_AUTHENTICATED } from "../../../core/api/request/user.ts";
import type { Client } from "../../../core/client/client.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Metrics } from "../../../core/observe/metrics.ts";
import type { PeerCertificate } from "../../../core/net/tls.ts";
import { chainProblem } from "../../../core/pki/verify-chain.ts";
import { type Certificate, parseCertificate } from "../../../core/pki/x509.ts";
import type { AccessSettings } from "../settings.ts";
import { delegatedMeter } from "./delegated-meter.ts";
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
  readonly access: Pick<AccessSettings, "anonymous" | "tokens" | "tokenTtlMs">;
  readonly clock: Clock;
  readonly metrics?: Metrics | undefined;
}

const TOKENS_MAX = 4096;

/** What follows the first blank: nothing, if that is another one. Source: kubernetes v1.36 apiserver/pkg/authentication/request/bearertoken/bearertoken.go */
function bearerToken(authorization = ""): string | undefined {
  const [scheme = "", token = ""] = authorization.trim().split(" ");
  return scheme.toLowerCase() === "bearer" && token !== "" ? token : undefined;
}

/** Undefined: it is not known who calls. Throws when the API server cannot be asked. */
export type Authenticate = (caller: Caller, signal: AbortSignal) => Promise<UserInfo | undefined>;

export function authentication({ client, roots, access, clock, metrics }: AuthenticationOptions): Authenticate {
  const asked = delegatedMeter(metrics, "authn", clock);
  const verified = new WeakMap<PeerCertificate, { readonly certificate: Certificate; readonly roots: readonly Certificate[] }>();
  const tokens = expiringCache<UserInfo | undefined>({ clock, entriesMax: TOKENS_MAX });

  function byCertificate(peer: PeerCertificate): UserInfo | undefined {
    const nowMs = clock.nowMs();
    const before = verified.get(peer), trusted = roots();
    const certificate = before?.certificate ?? parseCertificate(peer.raw);
    if (before?.roots !== trusted) { // of a connection that lasts, too: an authority may be trusted no longer
      if (chainProblem(certificate, { roots: trusted, intermediates: peer.issuers.map(parseCertificate), usage: "client auth", nowMs }) !== undefined) return undefined;
      verified.set(peer, { certificate, roots: trusted });
    }
    if (nowMs > certificate.notAfterMs) return undefined;
    const { commonName, organizations } = certificate.subject;
    return commonName === "" ? undefined : { name: commonName, groups: [...organizations, GROUP_AUTHENTICATED] };
  }

  async function byToken(token: string, signal: AbortSignal): Promise<UserInfo | undefined> {
    const key = createHash("sha256").update(token).digest("base64");
    const before = tokens.get(key);
    if (before) return before.value;
    const review = (await asked(() => client.request({
      method: "POST", path: "/apis/authentication.k8s.io/v1/tokenreviews", signal,
      body: { apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", metadata: {}, spec: { token } },
    }))) as { readonly status?: {
      readonly authenticated?: boolean;
      readonly error?: string;
      readonly user?: { readonly username?: string; readonly uid?: string; readonly groups?: readonly string[]; readonly extra?: Record<string, readonly string[]> };
    } };
    const { authenticated = false, user, error = "" } = review.status ?? {};
    const found: UserInfo | undefined = authenticated && user?.username ? { name: user.username, uid: user.uid, groups: user.groups ?? [], extra: user.extra } : undefined;
    if (found || error === "") tokens.set(key, found, access.tokenTtlMs); // why it does not know one may be over the next time: it was made a moment ago
    return found;
  }

  return async ({ peerCertificate, authorization }, signal) => {
    if (peerCertificate) {
      const user = byCertificate(peerCertificate);
      if (user) return user;
    }
    const token = access.tokens ? bearerToken(authorization) : undefined;
    if (token !== undefined) return await byToken(token, signal);
    return access.anonymous && !peerCertificate ? ANONYMOUS : undefined; // a certificate of somebody else's is none
  };
}
