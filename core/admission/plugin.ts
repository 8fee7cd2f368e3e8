/** Admission: the last word on a write before it reaches the registry. Mutating plug-ins run first, then validating ones. */
import type { ApiObject } from "../api/meta/object-meta.ts";
import type { UserInfo } from "../api/request/user.ts";
import type { Reinvocation } from "./reinvocation.ts";

export type Operation = "CREATE" | "UPDATE" | "DELETE" | "CONNECT";

export interface AdmissionRequest {
  readonly operation: Operation;
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  /** Plural. */
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  /** "" on a create with generateName. */
  readonly name: string;
  /** The name in the path: "" of a POST. Absent: the same. */
  readonly pathName?: string | undefined;
  /** The object to be written: mutating plug-ins change it in place. Absent on DELETE. For CONNECT, the options object. */
  object: ApiObject | undefined;
  /** Frozen. Absent on CREATE and CONNECT. */
  readonly oldObject: Readonly<ApiObject> | undefined;
  /** CreateOptions, UpdateOptions, PatchOptions or DeleteOptions. */
  readonly options: Readonly<Record<string, unknown>>;
  readonly dryRun: boolean;
  readonly user: UserInfo;
  readonly signal: AbortSignal;
  /** When `signal` will abort because nobody waits any longer, by Clock.uptimeMs. Absent: nobody has said so. */
  readonly deadlineMs?: number | undefined;
  /** Sent to the client as a Warning header. */
  warn(text: string): void;
  /** Added to the audit event. */
  annotate(key: string, value: string): void;
  /** As `annotate`, but only for audit events that hold the request's body: its level is Request or RequestResponse. */
  annotateInFull?(key: string, value: () => string): void;
  /** How long a webhook took, for the audit event of a slow request. */
  took?(layer: "mutating-webhook" | "validating-webhook", ms: number): void;
  /** Of the trace this request is a part of; absent: it is not traced. */
  readonly span?: AdmissionSpan | undefined;
}

export interface AdmissionSpan {
  /** For the header of that name. */
  readonly traceparent: string;
  event(name: string): void;
  /** A part of it (kind 1), or a call to somebody else (kind 3): end it. */
  child(name: string, kind: 1 | 3, attributes: Readonly<Record<string, string>>): AdmissionSpan;
  end(): void;
}

export interface AdmissionPlugin {
  /** Upstream's name, as in --enable-admission-plugins. */
  readonly name: string;
  /** Cheap: called for every write. */
  handles(request: AdmissionRequest): boolean;
  /** May change `request.object`. Throws StatusError to refuse. */
  admit?(request: AdmissionRequest, reinvocation: Reinvocation): Promise<void> | void;
  /** Changes nothing. Throws StatusError to refuse. */
  validate?(request: AdmissionRequest): Promise<void> | void;
}
