/**
 * How a client reaches the API server: over HTTP (core/client/http-transport.ts), or, in the server's own process, by calling the
 * same chain of authentication, authorization, admission and registry without a socket and without encoding.
 *
 * Objects that come back are frozen and may be shared with the server's cache: copy before changing.
 */
import type { ApiObject } from "../api/meta/object-meta.ts";

export interface ApiRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Path below the server's root, without the query: "/api/v1/namespaces/default/pods". */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | undefined>>;
  /** A JSON value. The callee may keep it: hand over ownership. */
  readonly body?: unknown;
  /** For PATCH: which patch `body` is. Absent: JSON. */
  readonly contentType?: string;
  /** Is told the status code of an answer that is not thrown. */
  readonly answered?: ((code: number) => void) | undefined;
  /** Is told how many bytes the request and its answer had, where they are encoded; not of a watch. */
  readonly sized?: ((bytes: { readonly sent: number; readonly received: number }) => void) | undefined;
  readonly signal: AbortSignal;
}

export interface ApiWatchEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK";
  readonly object: Readonly<ApiObject>;
}

export interface Transport {
  /** The answer's object. Throws StatusError for a Status answer of 4xx or 5xx, and when the server cannot be reached (reason "ServiceUnavailable"). */
  call(request: ApiRequest): Promise<unknown>;
  /** The events of a `watch=true` request. Throws StatusError for a refusal and for an ERROR event (410 "Expired": list again). Ends when the server ends it or `signal` aborts. */
  watch(request: ApiRequest): AsyncIterable<ApiWatchEvent>;
}
