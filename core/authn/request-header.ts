/**
 * Front proxies: who connects with a certificate of the request-header CA tells us in headers whom it speaks for.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/apiserver/pkg/authentication/request/headerrequest/requestheader.go
 */
import type { Clock } from "../lifecycle/clock.ts";
import type { Certificate } from "../pki/x509.ts";
import type { Authenticator, Credentials } from "./authenticator.ts";
import { refuse } from "./authn.ts";
import { certificateVerifier } from "./x509.ts";

export interface RequestHeaderOptions {
  readonly roots: () => readonly Certificate[];
  readonly clock: Clock;
  /** Common names a proxy may have; empty: any. */
  readonly allowedNames: readonly string[];
  /** Whether the proxy's word for a user's uid is taken, too. Upstream's default: not. */
  readonly uids?: boolean | undefined;
}

const USER = "x-remote-user";
const UID = "x-remote-uid";
const GROUP = "x-remote-group";
const EXTRA_PREFIX = "x-remote-extra-";

export function requestHeaderAuthenticator({ roots, clock, allowedNames, uids = false }: RequestHeaderOptions): Authenticator {
  const verify = certificateVerifier({ roots, clock });
  return {
    async authenticate(credentials) {
      const { peerCertificate } = credentials;
      const name = credentials.header(USER) ?? "";
      if (!peerCertificate || name === "") return undefined;
      const { commonName } = verify(peerCertificate).subject;
      if (allowedNames.length > 0 && !allowedNames.includes(commonName)) throw refuse(`x509: subject with cn=${commonName} is not in the allowed list`);
      const groups: string[] = [];
      const extra = new Map<string, string[]>(); // whose keys may be "constructor", too
      for (const [header, value] of headerPairsOf(credentials)) {
        if (header === GROUP && value !== "") groups.push(value);
        else if (header.startsWith(EXTRA_PREFIX)) {
          const key = extraKey(header.slice(EXTRA_PREFIX.length));
          extra.set(key, [...extra.get(key) ?? [], value]);
        }
      }
      return { user: { name, uid: uids ? credentials.header(UID) || undefined : undefined, groups, extra: Object.fromEntries(extra) } };
    },
  };
}

function headerPairsOf(credentials: Credentials): Iterable<readonly [string, string]> {
  return credentials.headers?.() ?? (credentials.header(GROUP) ?? "").split(", ").map((group) => [GROUP, group] as const);
}

/** Header names hold less than keys do: the rest is percent-encoded. What cannot be decoded stays as it is. */
function extraKey(encoded: string): string {
  try {
    return decodeURIComponent(encoded);
  } catch {
    return encoded; // recorded all the same, as upstream does
  }
}
