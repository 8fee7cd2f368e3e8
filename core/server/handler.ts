/**
 * The chain, on one screen. Every request takes it, from the network or from within this process:
 *
 *   what is asked (request-info) → who asks (authn, impersonation) → is it their turn (fairness) → may they (authz)
 *     → the verb (which calls admission and the registry), or another server behind this one (aggregation)
 *
 * What is thrown anywhere below becomes the Status the client gets.
 */
import { internalError, StatusError, statusOf } from "../api/meta/status-error.ts";
import type { Attributes } from "../api/request/attributes.ts";
import type { UserInfo } from "../api/request/user.ts";
import type { Authenticated } from "../authn/authenticator.ts";
import { isAnonymous } from "../authn/authn.ts";
import type { ServedResource } from "../registry/registry.ts";
import { attributesOf, authenticate, refused, unsniffed } from "./access.ts";
import { type Answer, raw } from "./answer.ts";
import { answeredObject, shownObject } from "./answered-object.ts";
import type { AuditRecord } from "./audit/auditor.ts";
import { Deadlines, OVERDUE, type Timed } from "./deadline.ts";
import { deprecation } from "./deprecation.ts";
import { FLOW_HEADERS, type Ticket, TooManyRequests } from "./fairness/too-many-requests.ts";
import { isLasting } from "./lasting.ts";
import { NotServed, notServedAnswer } from "./not-served.ts";
import { type RequestInfo, requestInfo, type ResourceRequestInfo } from "./request-info.ts";
import { type Metered, requestMetrics } from "./request-metrics.ts";
import type { ServerRequest } from "./request.ts";
import { handlerOf, isListing, servedResource } from "./route.ts";
import type { Handler, ResourceHandler, Scope, ServerDeps } from "./scope.ts";
import { Sending } from "./tracing/sending.ts";
import { handlerName, requestFields, type Span } from "./tracing/tracer.ts";
import { Undecided } from "./undecided.ts";

/** What a request takes with it on its way. */
interface Flight {
  /** What is to be said of how the caller proved who it is. */
  shown: Authenticated | undefined;
  authenticationMs: number;
  readonly auditId: string;
  /** For the audit record. */
  readonly receivedMs: number;
  span: Span | undefined;
  /** Of what the verb has done, which goes on until its answer is sent. */
  part: Span | undefined;
  /** It is answered, whatever is still done for it. */
  isAnswered: boolean;
  /** The part says that it is about to write. */
  isTold: boolean;
  audit: AuditRecord | undefined;
  ticket: Ticket | undefined;
  metered: Metered;
  /** For its turn. */
  waitedMs: number;
  /** Goes with whatever the answer is, a refusal too. */
  warnings: readonly string[];
}

/** Who asks is not known, or not asked for. */
const NOBODY: UserInfo = { name: "", groups: [] };

export function apiHandler(server: ServerDeps, verbs: Readonly<Record<string, ResourceHandler>>): Handler {
  const meter = requestMetrics(server.metrics, server.clock);
  const deadlines = new Deadlines(server.clock, ({ group, version, resource }) => server.registry.find(group, version, resource) !== undefined, server.requestMs);
  const deprecated = new WeakMap<ServedResource, boolean>();

  function isDeprecated(served: ServedResource): boolean {
    let is = deprecated.get(served);
    if (is === undefined) deprecated.set(served, (is = served.custom ? served.custom.warnings.length > 0 : deprecation(served.row) !== undefined));
    return is;
  }

  async function identify(request: ServerRequest, info: RequestInfo, flight: Flight): Promise<UserInfo> {
    const startMs = server.clock.uptimeMs();
    const caller = await authenticate(server, request).catch((error: unknown) => {
      request.takeNoMore?.();
      meter.authenticated(error instanceof StatusError && error.cause === undefined ? "failure" : "error", server.clock.uptimeMs() - startMs);
      flight.audit = server.audit?.turnedAway(request, attributesOf(info, request, NOBODY), flight);
      throw error;
    });
    flight.authenticationMs = server.clock.uptimeMs() - startMs;
    meter.authenticated({ user: caller.user.name }, flight.authenticationMs);
    flight.shown = caller;
    flight.warnings = caller.warnings ?? [];
    if (isAnonymous(caller.user)) request.takeNoMore?.(); // strangers get no more of HTTP/2 than of HTTP/1.1: kubernetes v1.36 apiserver/pkg/endpoints/filters/authentication.go
    return caller.user;
  }

  async function answer(request: ServerRequest, info: RequestInfo, flight: Flight): Promise<Answer> {
    const beganMs = server.clock.uptimeMs();
    const caller = request.user ?? (await identify(request, info, flight));
    flight.span?.askedBy(caller.groups);
    if (flight.span?.isRecorded === false) flight.span = undefined;
    if (!request.user) flight.span?.child("authentication", 1, {}, beganMs).end();
    const asCaller = attributesOf(info, request, caller);
    flight.audit = server.audit?.begin(request, asCaller, flight);
    const arrived = flight.audit?.arrived;
    if (arrived && !(await arrived)) {
      flight.audit = undefined;
      throw new Undecided("failed to store audit event");
    }
    if (!request.user) flight.audit?.took("authentication", flight.authenticationMs);
    for (const [key, value] of Object.entries(flight.shown?.annotations ?? {})) flight.audit?.annotate(key, value);
    const user = request.user ?? (await actingAs(request, asCaller, flight));
    if (server.fairness && !request.user && !isLasting(info)) await takeTurn(server.fairness, request, info, user, flight);
    if (!flight.isAnswered) flight.metered.entered();
    await permit(request, user === caller ? asCaller : attributesOf(info, request, user), flight);
    if (request.path.startsWith("//")) throw new NotServed(); // nothing is there, although it has been read and authorized as if it were
    const elsewhere = server.aggregation?.answer(request, user, { traceparent: flight.span?.traceparent, auditId: flight.auditId, unavailable: () => flight.metered.cutShort("aggregator", 503) });
    if (elsewhere) {
      if (info.verb === "watch") flight.ticket?.done(); // however long that server takes to begin
      return await elsewhere;
    }
    return info.isResource ? await answerOfResource(request, info, user, flight) : await answerOfPath(request, user, flight);
  }

  /** Whom the caller is to be taken for: itself, unless it asks for another. Throws 403. */
  async function actingAs(request: ServerRequest, asCaller: Attributes, { audit }: Flight): Promise<UserInfo> {
    const startMs = server.clock.uptimeMs();
    const { user, constraint } = await server.impersonate(asCaller, request).catch((error: unknown) => {
      audit?.took("impersonation", server.clock.uptimeMs() - startMs);
      throw unsniffed(request, error);
    });
    if (user !== asCaller.user) {
      audit?.impersonated(user, constraint);
      audit?.took("impersonation", server.clock.uptimeMs() - startMs);
    }
    return user;
  }

  /** Throws TooManyRequests. */
  async function takeTurn(fairness: NonNullable<ServerDeps["fairness"]>, request: ServerRequest, info: RequestInfo, user: UserInfo, flight: Flight): Promise<void> {
    const arrivedMs = server.clock.uptimeMs();
    const part = flight.span?.child("priorityandfairness", 1, {});
    if (flight.isAnswered) leave(request);
    const entered = fairness(request, info, user);
    const waitingMs = server.clock.uptimeMs();
    const ticket = entered instanceof Promise ? await entered : entered;
    if (flight.isAnswered) return leave(request, ticket);
    flight.ticket = ticket;
    if (entered instanceof Promise) flight.audit?.took("apf-queue-wait", server.clock.uptimeMs() - waitingMs);
    flight.waitedMs = server.clock.uptimeMs() - arrivedMs;
    meter.waited(flight.waitedMs);
    part?.end();
  }

  async function answerOfPath(request: ServerRequest, user: UserInfo, flight: Flight): Promise<Answer> {
    flight.metered.served();
    for (const handler of server.paths) {
      const found = await handler(request, user);
      if (found) return found;
    }
    throw new NotServed();
  }

  async function answerOfResource(request: ServerRequest, info: ResourceRequestInfo, user: UserInfo, flight: Flight): Promise<Answer> {
    const { shown } = flight;
    const served = servedResource(request, info, server.registry);
    const warnings = flight.warnings = [...(shown?.warnings ?? []), ...(served.custom?.warnings ?? [])]; // also of what turns out to be not there
    const handler = handlerOf(info, served, { special: server.special, verbs });
    const isWatch = info.verb === "watch";
    const scope: Scope = {
      request, info, served, user, server, warnings, audit: flight.audit, span: flight.span, metered: flight.metered,
      signal: shown?.ends && isWatch ? AbortSignal.any([request.signal, shown.ends]) : request.signal,
      watched: isWatch ? meter.watch(request, info) : undefined,
    };
    if (isDeprecated(served)) {
      meter.deprecated(info);
      flight.audit?.annotate("k8s.io/deprecated", "true");
    }
    flight.metered.served();
    const name = flight.span && handlerName(info.verb, request.query);
    if (!flight.span || name === undefined) return await handler(scope);
    const part = flight.span.child(name, 1, requestFields({ request, info, auditId: flight.auditId }));
    try {
      const answer = await handler({ ...scope, span: part });
      flight.isTold = !isListing(info.verb);
      if (flight.isTold) part.event("About to write a response");
      return answer;
    } finally {
      if (flight.isAnswered) part.end();
      else flight.part = part;
    }
  }

  async function permit(request: ServerRequest, attributes: Attributes, { audit, span }: Flight): Promise<void> {
    const startMs = server.clock.uptimeMs();
    const part = span?.child("authorization", 1, {});
    const { decision, reason, error } = await server.authorizer.authorize(attributes);
    const isUndecided = decision !== "allow" && error !== undefined;
    const tookMs = server.clock.uptimeMs() - startMs;
    meter.authorized(isUndecided ? "error" : decision, tookMs);
    audit?.took("authorization", tookMs);
    if (isUndecided) {
      audit?.annotate("authorization.k8s.io/reason", "internal error");
      throw new Undecided(error);
    }
    audit?.annotate("authorization.k8s.io/decision", decision === "allow" ? "allow" : "forbid");
    audit?.annotate("authorization.k8s.io/reason", reason);
    part?.end();
    if (decision !== "allow") throw unsniffed(request, refused(attributes, reason));
  }

  return async (request) => {
    const startMs = server.clock.uptimeMs();
    const info = requestInfo(request.method, request.path, request.query);
    const auditId = server.audit || request.setHeader ? request.header("audit-id") || server.random.uuid() : "";
    request.setHeader?.("Audit-Id", auditId);
    if (!info.isResource && info.isIncomplete) return incomplete(request);
    const metered = meter.begin(request, info);
    const flight: Flight = { auditId, receivedMs: server.audit ? server.clock.nowMs() : 0, metered, waitedMs: 0, span: server.tracer?.start(request, info, auditId), part: undefined, isAnswered: false, isTold: false, audit: undefined, shown: undefined, authenticationMs: 0, ticket: undefined, warnings: [] };
    let within: Timed | undefined;
    let found: Answer;
    try {
      within = deadlines.timed(request, info);
      found = await within.inTime(answer(within.request, info, flight));
    } catch (error) {
      if (!within) flight.audit = server.audit?.turnedAway(request, attributesOf(info, request, NOBODY), flight); // how long it is to take cannot be read
      found = error instanceof TooManyRequests ? error.answer : failure(server, request, error);
      if (error instanceof TooManyRequests && (!info.isResource || server.registry.find(info.group, info.version, info.resource))) metered.dropped();
    } finally {
      within?.done();
      flight.isAnswered = true;
      flight.ticket?.done();
    }
    const isOverdue = found === OVERDUE;
    if (isOverdue) for (const name of FLOW_HEADERS) request.setHeader?.(name, undefined); // upstream answers before what has set them
    if (flight.warnings.length > 0) found = { ...found, warnings: [...new Set(flight.warnings)] };
    const code = codeOf(found);
    metered.end(code, { durationMs: server.clock.uptimeMs() - startMs, waitedMs: flight.waitedMs, isOverdue });
    if (flight.audit) {
      recordEnd(flight.audit, { request, info, code, found, nowMs: server.clock.nowMs(), tookMs: server.clock.uptimeMs() - startMs });
      await flight.audit.recorded();
    }
    if (flight.span) found = traced(found, { request, info, code }, flight.span, flight);
    return metered.sized && !request.user && (found.type === "object" || found.type === "list") ? { ...found, sized: metered.sized, brokenOff: () => metered.brokenOff() } : found;
  };
}

/** It took too long, and nobody waits for it any more: it has no turn. */
function leave({ signal }: ServerRequest, ticket?: Ticket): never {
  ticket?.done();
  throw signal.reason ?? new Error("the request has been answered");
}

/** Over the network the trace goes on until the answer is sent. */
function traced(found: Answer, { request, info, code }: { readonly request: ServerRequest; readonly info: RequestInfo; readonly code: number }, span: Span, { part, isTold }: Flight): Answer {
  if (!request.user) return { ...found, sending: new Sending({ request, info, span, part, isTold, code }) };
  part?.end();
  span.end(code);
  return found;
}

/** Source: kubernetes v1.36 apiserver/pkg/endpoints/filters/requestinfo.go */
function incomplete({ path, wire }: ServerRequest): Answer {
  const url = `${wire?.rawPath ?? path}${wire?.rawQuery ? `?${wire.rawQuery}` : ""}`.replace(/[&<>]/g, (sign) => (sign === "&" ? "&amp;" : sign === "<" ? "&lt;" : "&gt;"));
  return raw(`Internal Server Error: ${JSON.stringify(url)}: failed to create RequestInfo: unable to determine kind and namespace from url, ${url}\n`, "text/plain; charset=utf-8", 500, { "x-content-type-options": "nosniff" });
}

function failure({ log, aggregation }: ServerDeps, request: ServerRequest, error: unknown): Answer {
  if (error instanceof NotServed) return notServedAnswer(error, request.path, { isAllKnown: aggregation?.synced ?? true });
  if (error instanceof Undecided) return error.answer(request);
  const status = statusOf(error);
  const code = status.code ?? 500;
  if (code >= 500 && !(error instanceof StatusError) && !request.signal.aborted) log.error("request failed", { method: request.method, path: request.path, error });
  return { type: "object", status: code, object: error instanceof StatusError || code !== 500 ? { ...status } : { ...internalError(error).status } };
}

function codeOf(answer: Answer): number { return "status" in answer ? answer.status : answer.type === "upgrade" ? 101 : 200; }

/** Of what lasts the end is recorded when the client is gone; callers in this process last as long as it does. */
function recordEnd(audit: AuditRecord, { request, info, code, found, nowMs, tookMs }: { readonly request: ServerRequest; readonly info: RequestInfo; readonly code: number; readonly found: Answer; readonly nowMs: number; readonly tookMs: number }): void {
  const object = audit.wantsResponse || code >= 400 || (found.type === "object" && found.object.kind === "Status") ? answeredObject(found) : undefined;
  const { kind, status, message, reason, details } = (object ?? {}) as { readonly kind?: string; readonly status?: string; readonly message?: string; readonly reason?: string; readonly details?: object };
  audit.respond(code, kind === "Status" && code !== 406 && typeof status === "string" ? { metadata: {}, status, ...(message ? { message } : {}), ...(reason ? { reason } : {}), ...(details ? { details } : {}) } : undefined);
  const lasts = code < 400 && (found.type === "watch" || found.type === "upgrade" || isLasting(info));
  if (object !== undefined && !lasts && code !== 406) audit.responseObject(audit.wantsResponse && code < 400 ? shownObject(found, request, nowMs) : object);
  if (audit.isTurnedAway) return audit.stage("ResponseStarted");
  if (lasts || info.verb === "watch" || isLasting(info)) audit.stage("ResponseStarted");
  if (!lasts) {
    audit.tookAltogether(tookMs);
    return audit.stage("ResponseComplete");
  }
  if (request.user) return;
  if (request.signal.aborted) audit.stage("ResponseComplete"); // who asked has gone before there was an answer
  else request.signal.addEventListener("abort", () => audit.stage("ResponseComplete"), { once: true });
}
