/** What a request is answered with the help of: the server's parts, and what is known of the one request. */
import type { AdmissionRequest } from "../admission/plugin.ts";
import type { Attributes } from "../api/request/attributes.ts";
import type { UserInfo } from "../api/request/user.ts";
import type { Authenticator } from "../authn/authenticator.ts";
import type { Authorizer } from "../authz/authorizer.ts";
import type { Clock } from "../lifecycle/clock.ts";
import type { Random } from "../lifecycle/random.ts";
import type { Log } from "../observe/log.ts";
import type { Metrics } from "../observe/metrics.ts";
import type { WatchCache } from "../registry/generic/watch-cache.ts";
import type { Registry, ServedResource } from "../registry/registry.ts";
import type { Answer } from "./answer.ts";
import type { Auditor, AuditRecord } from "./audit/auditor.ts";
import type { Ticket } from "./fairness/too-many-requests.ts";
import type { RequestInfo, ResourceRequestInfo } from "./request-info.ts";
import type { Metered, WatchMeter } from "./request-metrics.ts";
import type { RequestBody, ServerRequest } from "./request.ts";
import type { Span, Tracer } from "./tracing/tracer.ts";

/** Answers requests that are not about a resource: health, discovery, OpenAPI, metrics. Undefined: not one of its paths. */
export type PathHandler = (request: ServerRequest, user: UserInfo) => Promise<Answer | undefined> | Answer | undefined;

/** Answers one verb of one subresource, or of a resource that is not stored; `${verb} ${group}/${resource}/${subresource}` names it. */
export type ResourceHandler = (scope: Scope) => Promise<Answer>;

export interface ServerDeps {
  readonly registry: Registry;
  readonly cache: WatchCache;
  readonly authenticator: Authenticator;
  readonly authorizer: Authorizer;
  /** Who the caller is to be taken for, when Impersonate-* headers ask for it. Throws 403. */
  impersonate(attributes: Attributes, request: ServerRequest): Promise<{ readonly user: UserInfo; /** The verb that allowed it, if it is one of those for certain requests only. */ readonly constraint: string }>;
  readonly admission: { admit(request: AdmissionRequest): Promise<void>; validate(request: AdmissionRequest): Promise<void> };
  readonly paths: readonly PathHandler[];
  /** Servers behind this one, which answer for groups of their own. */
  readonly aggregation?: { /** Whether all of them are known. Absent: they are. */ readonly synced?: boolean; answer(request: ServerRequest, user: UserInfo, known?: { readonly traceparent?: string | undefined; readonly auditId?: string | undefined; readonly unavailable?: (() => void) | undefined }): Promise<Answer> | undefined } | undefined;
  /** Finds what answers a request that the generic verbs do not: reviews, tokens, bindings, logs, exec, proxies. */
  special(info: ResourceRequestInfo): ResourceHandler | undefined;
  /** Lets a request in, or makes it wait its turn, or throws TooManyRequests. Absent: everybody comes in. */
  readonly fairness?: ((request: ServerRequest, info: RequestInfo, user: UserInfo) => Ticket | Promise<Ticket>) | undefined;
  readonly audit?: Auditor | undefined;
  readonly tracer?: Tracer | undefined;
  /** How long an answer is waited for, and a watch lasts at least; absent: a minute, and half an hour. */
  readonly requestMs?: number | undefined;
  /** Headers that say who the caller is, by their name in lower case, beside those everybody uses: nobody behind this server gets them. */
  readonly isWithheld?: ((header: string) => boolean) | undefined;
  readonly watchMsMin?: number | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** One request, as the verbs see it. */
export interface Scope {
  readonly request: ServerRequest;
  readonly info: ResourceRequestInfo;
  readonly served: ServedResource;
  readonly user: UserInfo;
  readonly server: ServerDeps;
  readonly signal: AbortSignal;
  /** Texts for the Warning header. */
  readonly warnings: string[];
  /** Absent: nothing is recorded of this request. */
  readonly audit?: AuditRecord | undefined;
  /** Absent: this request is not traced. */
  readonly span?: Span | undefined;
  readonly metered?: Pick<Metered, "sent" | "took"> | undefined;
  /** The object of the body, or what a patch made, had an empty list or map that is left out of it: see Canonical. */
  sentEmpty?: readonly string[];
  /** The object of the body as it was sent, or as a patch made it. */
  sent?: object;
  /** What of it was sent otherwise than it is stored: see Canonical. */
  respelled?: ReadonlySet<object> | undefined;
  /** Of a watch. */
  readonly watched?: WatchMeter | undefined;
}

export type Handler = (request: ServerRequest) => Promise<Answer>;

/** What the request brings with it. Throws 413 when it is too large. */
export async function bodyOf({ request, metered, span }: Scope): Promise<RequestBody> {
  const body = await request.body();
  span?.event("limitedReadBody succeeded", body.type === "bytes" ? { len: body.bytes.length } : undefined);
  if (body.type === "bytes") metered?.sent(body.bytes.length);
  return body;
}
