/**
 * What a request is answered with, before any encoding. HTTP encodes it as negotiated (respond.ts); a caller in this process takes the objects
 * as they are (in-process.ts).
 */
import type { Duplex, Readable } from "node:stream";
import type { Printer } from "../api/codec/table/printer.ts";
import type { GroupKind } from "../api/meta/gvk.ts";
import type { ApiObject, ListMeta } from "../api/meta/object-meta.ts";
import type { HeaderPairs } from "../net/response-head.ts";
import type { Cached } from "../registry/generic/cached.ts";
import type { ServedResource } from "../registry/registry.ts";
import type { Sending } from "./tracing/sending.ts";

/** One object: a resource's own, or of another kind (Status, Scale, a review). */
export interface ObjectAnswer {
  readonly type: "object";
  readonly status: number;
  readonly object: Readonly<ApiObject> | Readonly<Record<string, unknown>>;
  /** Set when `object` is one of a resource, in the version it was asked for. */
  readonly stored?: { readonly entry: Cached; readonly served: ServedResource } | undefined;
  /** The kind as which it can be shown in a Table. Absent: it cannot. */
  readonly printedAs?: GroupKind | undefined;
  /** Where its kind does not say how: the Scale of a custom resource. */
  readonly printer?: Printer | undefined;
  /** The custom resource that it is a view of: it is written in what that can be written in. */
  readonly viewOf?: ServedResource | undefined;
}

/** An object of a resource, as the request's version has it. */
export function stored(status: number, served: ServedResource, entry: Cached): ObjectAnswer {
  return { type: "object", status, object: served.fromStorage(entry.object), stored: { served, entry }, printedAs: served.row };
}

export interface ListAnswer {
  readonly type: "list";
  readonly served: ServedResource;
  readonly entries: readonly Cached[];
  readonly metadata: ListMeta;
}

export interface WatchItem {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly entry: Cached;
}
export interface BookmarkItem {
  readonly type: "BOOKMARK";
  readonly resourceVersion: string;
  /** Ends the initial events of a streaming list. */
  readonly initialEventsEnd?: boolean;
}
/** Ends the watch. */
export interface ErrorItem {
  readonly type: "ERROR";
  readonly error: unknown;
}

export interface WatchAnswer {
  readonly type: "watch";
  readonly served: ServedResource;
  readonly batches: AsyncIterable<readonly (WatchItem | BookmarkItem | ErrorItem)[]>;
  /** Is told of each event how many bytes it is, once it is encoded. */
  readonly eventSized?: ((bytes: number) => void) | undefined;
}

/** Ready bytes: discovery, OpenAPI, metrics, health, logs. */
export interface RawAnswer {
  readonly type: "raw";
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Of a proxy: what the server behind said, which is passed on beside what this one says itself. `headers` has it joined. */
  readonly passedOn?: PassedOn | undefined;
  /** What the bytes are of, where it is an object of the API: the audit log has it. */
  readonly document?: object | undefined;
  readonly body: string | Uint8Array | Slowly | Readable;
}

/** What is long work to write: it is written as it is taken, and others have their turn meanwhile. */
export interface Slowly { readonly pieces: Iterable<string | Uint8Array> }

/** What ends when somebody ends it. */
export function isStream(body: RawAnswer["body"]): body is Readable { return !(typeof body === "string" || body instanceof Uint8Array || isSlowly(body)); }

export function isSlowly(body: RawAnswer["body"]): body is Slowly { return typeof body === "object" && "pieces" in body; }

export interface PassedOn {
  /** As they came, each as often. */
  readonly headers: HeaderPairs;
  /** Of the body; undefined: until its end. */
  readonly length: number | undefined;
}

/** The connection leaves HTTP: whoever gets the socket speaks on it. */
export interface UpgradeAnswer {
  readonly type: "upgrade";
  take(socket: Duplex, head: Buffer): void;
}

export type Answer = (ObjectAnswer | ListAnswer | WatchAnswer | RawAnswer | UpgradeAnswer) & {
  readonly warnings?: readonly string[] | undefined;
  /** Is told how many bytes the answer is, once it is encoded. */
  readonly sized?: ((bytes: number) => void) | undefined;
  /** Is told that whoever asked went while the answer was sent. */
  readonly brokenOff?: (() => void) | undefined;
  /** Is told how it is sent, and that it is. Absent: nobody traces it. */
  readonly sending?: Sending | undefined;
};

export function raw(body: string | Uint8Array | Slowly, contentType = "text/plain; charset=utf-8", status = 200, headers: Readonly<Record<string, string>> = {}): RawAnswer {
  return { type: "raw", status, headers: { "content-type": contentType, ...headers }, body };
}

export function json(value: unknown, status = 200): RawAnswer {
  return raw(JSON.stringify(value), "application/json", status);
}
