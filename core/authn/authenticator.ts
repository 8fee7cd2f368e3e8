/** Who is calling, from what the connection and the headers say. */
import type { UserInfo } from "../api/request/user.ts";
import type { PeerCertificate } from "../net/tls.ts";

export interface Credentials {
  /** The value of a header, lower-case name. */
  header(name: string): string | undefined;
  /** All headers, names in lower case, each as often as it was sent. Absent: `header` is all there is, values joined with ", ". */
  headers?(): Iterable<readonly [name: string, value: string]>;
  /** For WebSocket clients, which carry a bearer token in Sec-WebSocket-Protocol; the request's protocols. */
  readonly webSocketProtocols: readonly string[];
  /** The certificate the client proved to hold the key of. Whether to believe it is checked here, against the CA in question. */
  readonly peerCertificate?: PeerCertificate | undefined;
  readonly remoteAddress: string;
  /** Without the query. Absent: not a request. */
  readonly path?: string | undefined;
}

export interface Authenticated {
  readonly user: UserInfo;
  readonly audiences?: readonly string[] | undefined;
  /** For the Warning header, and for the audit event. */
  readonly warnings?: readonly string[] | undefined;
  readonly annotations?: Readonly<Record<string, string>> | undefined;
  /** Aborts when what was shown no longer counts: what lasts ends then. */
  readonly ends?: AbortSignal | undefined;
}

export interface Authenticator {
  /** The caller; undefined when these credentials are not of this authenticator's kind. Throws StatusError (401) when they are, but do not hold. */
  authenticate(credentials: Credentials, signal: AbortSignal): Promise<Authenticated | undefined>;
}
