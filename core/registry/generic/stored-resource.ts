/** One resource as its store sees it, and what a write of its objects is told. Interfaces only. */
import type { ApiObject } from "../../api/meta/object-meta.ts";
import type { Cached } from "./cached.ts";
import type { DeleteOptions } from "./deletion.ts";
import type { Subresource, WriteContext } from "./resource.ts";

/** What the store must know of a resource's row. */
export interface StoredResource {
  readonly group: string;
  readonly version: string;
  /** The group it is asked for in, and refused by, if that is not the one it is stored in. */
  readonly askedIn?: string | undefined;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
  readonly hasStatus: boolean;
  /** The object in its canonical form: fields in order, empty ones gone. `known`: a canonical one, parts of which it may have. `forgot`: called if a list that was sent empty is stored as none. */
  canonical(object: ApiObject, known?: Readonly<ApiObject>, forgot?: () => void): ApiObject;
  /** With lists that were sent empty, as plug-ins are shown them. Absent: as it is stored. */
  asSent?(object: ApiObject): ApiObject;
  /** Where objects are not stored as this store shows them: other versions, older schemas. */
  readonly form?: StoredForm | undefined;
}

/** How custom resources pass between storage and a version they are served in. */
export interface StoredForm {
  /** Makes sure that `shown` has what it needs of others (a webhook). Throws what the client is to be told. */
  ready(stored: Iterable<Readonly<ApiObject>>, signal: AbortSignal): Promise<void>;
  shown(stored: Readonly<ApiObject>): Readonly<ApiObject>;
  stored(object: Readonly<ApiObject>, signal: AbortSignal): Promise<ApiObject>;
}

/** Part of a trace. */
export interface WriteSpan { event(name: string, attributes?: Readonly<Record<string, string | number>>): void }

export interface WriteOptions {
  readonly context: WriteContext;
  readonly signal: AbortSignal;
  /** Validating admission: the last word before the write. Throws to refuse. */
  validate?(next: Readonly<ApiObject>, old: Readonly<ApiObject> | undefined): Promise<void>;
  warn?(text: string): void;
  /** What the client sent, of whose lists and maps those that are empty may be left out of the object. Absent: nobody did. */
  sent?(): object | undefined;
  /** Is told how far the write is. Absent: it is not traced. */
  readonly span?: WriteSpan | undefined;
  /** Called with the object as it will be, while the disk is at work: what the answer needs of it can be made meanwhile. It may yet come to nothing. */
  readonly ahead?: ((entry: Cached) => void) | undefined;
}

export interface UpdateOptions extends WriteOptions {
  /** Absent: the object itself. */
  readonly subresource?: Extract<Subresource, { type: "part" }> | undefined;
  readonly preconditions?: DeleteOptions["preconditions"];
  /** The client sent all of the object: where the resource asks for it, with the version it replaces. What was made from the object as it is needs none. */
  readonly isReplacement?: boolean;
  /** A patch made it: another uid in it is a field that may not change, and does not mean another object. */
  readonly isPatch?: boolean;
  /** Which of its own fields were sent as an empty list or map that is not stored; undefined: nothing was, deeper down neither. */
  emptied?(): readonly string[] | undefined;
}

export interface DeletingOptions extends Pick<WriteOptions, "context" | "signal"> {
  /** Admission, before each step: of the object as it is then, `found` as the delete came upon it. Throws to refuse. Absent: nobody is asked. */
  ask?(object: Readonly<ApiObject>, found: Readonly<ApiObject>): Promise<void>;
}

export interface Written {
  readonly entry: Cached;
  /** For an update: whether the object was created by it. */
  readonly created: boolean;
}
