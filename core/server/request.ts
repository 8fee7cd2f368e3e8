/** A request as the chain sees it: from the network, or from a caller in this process. */
import type { Readable } from "node:stream";
import type { HeaderPairs } from "../net/response-head.ts";
import type { UserInfo } from "../api/request/user.ts";
import type { PeerCertificate } from "../net/tls.ts";

export type RequestBody =
  /** From the network: bytes of a media type. */
  | { readonly type: "bytes"; readonly contentType: string; readonly bytes: Buffer }
  /** From this process: a JSON value; `contentType` tells which kind of patch it is. */
  | { readonly type: "value"; readonly contentType: string; readonly value: unknown };

export interface ServerRequest {
  readonly method: string;
  /** Without the query. Where it leads to the objects of a resource it is as it came, percent-encoded; before that, and elsewhere, it is not: readable-path.ts. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** Lower-case name; several of a name are joined by ", ". */
  header(name: string): string | undefined;
  /** All of them, lower-case names, each as often as it was sent. */
  headers(): Iterable<readonly [name: string, value: string]>;
  readonly webSocketProtocols: readonly string[];
  readonly peerCertificate?: PeerCertificate | undefined;
  readonly remoteAddress: string;
  /** "HTTP/1.1", "HTTP/2.0". Absent for callers in this process. */
  readonly protocol?: string | undefined;
  /** Set for callers in this process, whose identity needs no proof. */
  readonly user?: UserInfo | undefined;
  /** Sets a header of the answer, whatever that will be; undefined: takes it back. Absent for callers in this process. */
  readonly setHeader?: ((name: string, value: string | undefined) => void) | undefined;
  /** Sends an answer before the answer (1xx). Absent for callers in this process. */
  readonly tellEarly?: ((status: number, headers: HeaderPairs) => void) | undefined;
  /** The connection takes no further requests. Absent where there is at most one at a time. */
  readonly takeNoMore?: (() => void) | undefined;
  /** What a proxy passes on as it came: absent for callers in this process. Whoever takes the body must not call `body()`. */
  readonly wire?: { readonly body: Readable; readonly rawQuery: string; readonly rawPath?: string } | undefined;
  /** The server reads and writes CBOR, too: its feature gate is on. */
  readonly cbor?: boolean | undefined;
  /** Reads the body; throws 413 when it is too large. */
  body(): Promise<RequestBody>;
  readonly signal: AbortSignal;
  /** When `signal` will abort because the client waits no longer, by Clock.uptimeMs. Absent: it has not said so. */
  readonly deadlineMs?: number | undefined;
}
