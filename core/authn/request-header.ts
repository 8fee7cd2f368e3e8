/**
 * Front proxies: who connects with a certificate of the request-header CA tells us in headers whom it speaks for.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/apiserver/pkg/authentication/request/headerrequest/requestheader.go
 */
import { headerText } from "../api/request/header-text.ts";
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
  readonly headers?: ProxyHeaders | undefined;
}

/** Which headers tell, in any case. */
export interface ProxyHeaders {
  /** The first that has a value counts. */
  readonly user: readonly string[];
  /** None: the proxy's word for a user's uid is not taken. */
  readonly uid: readonly string[];
  /** All values of all of them. */
  readonly group: readonly string[];
  readonly extraPrefixes: readonly string[];
}

export const STANDARD_PROXY_HEADERS: ProxyHeaders = { user: ["X-Remote-User"], uid: [], group: ["X-Remote-Group"], extraPrefixes: ["X-Remote-Extra-"] };

/** Of a header's name in lower case: whether it says who somebody is, which nobody behind us is told as it came. */
export function isProxyHeader({ user, uid, group, extraPrefixes }: ProxyHeaders): (name: string) => boolean {
  const names = new Set([...user, ...uid, ...group].map((name) => name.toLowerCase())), prefixes = extraPrefixes.map((prefix) => prefix.toLowerCase());
  return (name) => names.has(name) || prefixes.some((prefix) => name.startsWith(prefix));
}

export function requestHeaderAuthenticator({ roots, clock, allowedNames, headers = STANDARD_PROXY_HEADERS }: RequestHeaderOptions): Authenticator {
  const verify = certificateVerifier({ roots, clock });
  const lower = (names: readonly string[]): string[] => names.map((name) => name.toLowerCase());
  const [userHeaders, uidHeaders, groupHeaders, prefixes] = [lower(headers.user), lower(headers.uid), lower(headers.group), lower(headers.extraPrefixes)];
  return {
    async authenticate(credentials) {
      const { peerCertificate } = credentials;
      const name = firstOf(credentials, userHeaders) ?? "";
      if (!peerCertificate || name === "") return undefined;
      const { commonName } = verify(peerCertificate).subject;
      if (allowedNames.length > 0 && !allowedNames.includes(commonName)) throw refuse(`x509: subject with cn=${commonName} is not in the allowed list`);
      const pairs = [...headerPairsOf(credentials, groupHeaders)].map(([header, field]) => [header, headerText(field)] as const);
      const groups = groupHeaders.flatMap((wanted) => pairs.flatMap(([header, value]) => (header === wanted && value !== "" ? value : [])));
      const extra = new Map<string, string[]>(); // whose keys may be "constructor", too
      for (const prefix of prefixes) {
        for (const [header, value] of pairs) {
          if (!header.startsWith(prefix)) continue;
          const key = extraKey(header.slice(prefix.length));
          extra.set(key, [...extra.get(key) ?? [], value]);
        }
      }
      return { user: { name, uid: firstOf(credentials, uidHeaders), groups, extra: Object.fromEntries(extra) } };
    },
  };
}

/** Of a header that was sent several times the first value counts, though it is empty. */
function firstOf(credentials: Credentials, names: readonly string[]): string | undefined {
  for (const name of names) {
    if (!credentials.header(name)) continue;
    const value = credentials.headers ? firstPair(credentials.headers(), name) : credentials.header(name);
    if (value) return headerText(value);
  }
  return undefined;
}

function firstPair(pairs: Iterable<readonly [string, string]>, wanted: string): string | undefined {
  for (const [name, value] of pairs) if (name === wanted) return value;
  return undefined;
}

function headerPairsOf(credentials: Credentials, groupHeaders: readonly string[]): Iterable<readonly [string, string]> {
  return credentials.headers?.() ?? groupHeaders.flatMap((name) => (credentials.header(name) ?? "").split(", ").map((group) => [name, group] as const));
}

/** Header names hold less than keys do: the rest is percent-encoded. What cannot be decoded stays as it is. */
function extraKey(encoded: string): string {
  try {
    return decodeURIComponent(encoded);
  } catch {
    return encoded; // recorded all the same, as upstream does
  }
}
