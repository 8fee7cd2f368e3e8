/**
 * Traces: one span for each request that is sampled, with what happened in it as events, handed over when it is done.
 *
 * The API server is a public endpoint: whether a trace is recorded is its own decision, whatever context a client sends; it passes its own on. Only of who may do or watch everything
 * the request is a part of the trace it is sent in.
 *
 * Source: kubernetes v1.36 component-base/tracing, apiserver/pkg/endpoints/filters/traces.go, apiserver/pkg/endpoints/handlers/trace_util.go
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { isTrue } from "../../api/request/query.ts";
import type { Clock } from "../../lifecycle/clock.ts";
import type { Random } from "../../lifecycle/random.ts";
import type { SpanAttributes, SpanStart } from "../../observe/spans.ts";
import type { ServerRequest } from "../request.ts";
import type { RequestInfo, ResourceRequestInfo } from "../request-info.ts";
import { scopeOf, verbOf } from "../request-labels.ts";

export type AttributeValue = string | number | boolean;

export interface SpanEvent {
  readonly name: string;
  readonly atMs: number;
  /** Absent: none. */
  readonly attributes?: SpanAttributes | undefined;
}

export interface SpanData {
  readonly traceId: Uint8Array;
  readonly spanId: Uint8Array;
  readonly parentSpanId: Uint8Array | undefined;
  readonly name: string;
  /** 1 internal, 2 server, 3 client: OTLP's numbers. */
  readonly kind: 1 | 2 | 3;
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, AttributeValue>>;
  readonly events: readonly SpanEvent[];
  readonly isError: boolean;
}

export interface Tracer {
  /** Undefined: not this one. */
  start(request: ServerRequest, info: RequestInfo, auditId: string): Span | undefined;
  /** What is begun by `part` in the course of `work` is a part of `span`. */
  within<T>(span: Span, work: () => Promise<T>): Promise<T>;
  /** For who is not handed the request: the store. Undefined: what goes on is part of no trace. */
  part(name: string, attributes: SpanAttributes): Span | undefined;
}

const PER_MILLION = 1_000_000;

export function tracer({ samplingRatePerMillion, clock, random, record }: { readonly samplingRatePerMillion: number; readonly clock: Clock; readonly random: Random; readonly record: (span: SpanData) => void }): Tracer {
  const around = new AsyncLocalStorage<Span>();
  return {
    within: (span, work) => around.run(span, work),
    part: (name, attributes) => around.getStore()?.child(name, 1, attributes),
    start(request, info, auditId) {
      const isSampled = random.next() * PER_MILLION < samplingRatePerMillion;
      const outer = TRACE_PARENT.exec(request.header("traceparent") ?? "")?.groups;
      if (!isSampled && !isRecorded(outer)) return undefined;
      const query = request.query.toString();
      const span = new Span({ clock, random, record }, {
        traceId: random.bytes(16), parentSpanId: undefined, name: nameOf(request.method, info), kind: 2,
        attributes: {
          "http.request.method": request.method, "url.scheme": "https", "url.path": request.path, "http.target": query === "" ? request.path : `${request.path}?${query}`, "user_agent.original": request.header("user-agent") ?? "",
          "client.address": request.remoteAddress, "network.peer.address": request.remoteAddress, "audit-id": auditId.slice(0, AUDIT_ID_LENGTH_MAX), "k8s.request.verb": info.verb,
          ...(info.isResource ? { "k8s.api.group": info.group, "k8s.api.version": info.version, "k8s.resource.name": info.resource, "k8s.namespace.name": info.namespace } : {}),
        },
      });
      span.asks({ isSampled, outer: outer && { traceId: Buffer.from(outer["trace"]!, "hex"), spanId: Buffer.from(outer["span"]!, "hex"), isRecorded: isRecorded(outer) } });
      return span;
    },
  };
}

/** Whatever a client makes of it. Source: kubernetes v1.36 apiserver/pkg/audit/context.go GetAuditIDTruncated */
const AUDIT_ID_LENGTH_MAX = 64;

/** API: https://www.w3.org/TR/trace-context/ */
const TRACE_PARENT = /^00-(?<trace>(?!0{32})[0-9a-f]{32})-(?<span>(?!0{16})[0-9a-f]{16})-(?<flags>[0-9a-f]{2})$/;
/** Theirs is the trace that they are in. */
const TRUSTED: ReadonlySet<string> = new Set(["system:masters", "system:monitoring"]);

function isRecorded(outer: Readonly<Record<string, string>> | undefined): boolean { return outer !== undefined && (Number.parseInt(outer["flags"]!, 16) & 1) === 1; }

/** What is asked for, whoever and wherever it is. */
function nameOf(method: string, info: RequestInfo): string {
  if (!info.isResource) return method;
  const { group, version, namespace, resource, name, subresource } = info;
  const parts = [group === "" ? "api" : `apis/${group}`, version, ...(namespace === "" ? [] : ["namespaces/{:namespace}"]), resource, ...(name === "" ? [] : ["{:name}"]), ...(subresource === "" ? [] : [subresource])];
  return `${method} /${parts.join("/")}`;
}

/** Of what is done for a request that somebody answers. */
export function requestFields({ request, info, auditId }: { readonly request: ServerRequest; readonly info: ResourceRequestInfo; readonly auditId: string }): SpanAttributes {
  const { group, version, name, subresource, namespace, resource } = info;
  return {
    accept: request.header("accept") ?? "", "audit-id": auditId.slice(0, AUDIT_ID_LENGTH_MAX), client: request.remoteAddress, "api-group": group, "api-version": version, name, subresource, namespace, protocol: request.protocol ?? "", resource, scope: scopeOf(info),
    url: request.path, "user-agent": request.header("user-agent") ?? "", verb: verbOf(request, info),
  };
}

const HANDLERS: Readonly<Record<string, string>> = { get: "Get", list: "List", create: "Create", update: "Update", patch: "Patch", delete: "Delete", deletecollection: "Delete" };

/** What upstream calls who answers it. Undefined: a watch, unless it begins with what is there. */
export function handlerName(verb: string, query: URLSearchParams): string | undefined {
  if (verb !== "watch") return HANDLERS[verb] ?? verb;
  return query.has("sendInitialEvents") && isTrue(query.get("sendInitialEvents")) && isTrue(query.get("allowWatchBookmarks")) ? "WatchList" : undefined;
}

/** Traces that begin on our side. Undefined: not this one. */
export function rootSpans({ samplingRatePerMillion, ...deps }: SpanDeps & { readonly samplingRatePerMillion: number }): (name: string, start: SpanStart) => Span | undefined {
  return (name, { kind, attributes }) => (deps.random.next() * PER_MILLION >= samplingRatePerMillion ? undefined : new Span(deps, { traceId: deps.random.bytes(16), parentSpanId: undefined, name, kind, attributes }));
}

interface Asking {
  readonly isSampled: boolean;
  /** Absent: it is sent in none. */
  readonly outer: { readonly traceId: Uint8Array; readonly spanId: Uint8Array; readonly isRecorded: boolean } | undefined;
}

interface SpanDeps { readonly clock: Clock; readonly random: Random; readonly record: (span: SpanData) => void }
type Begun = Pick<SpanData, "traceId" | "parentSpanId" | "name" | "kind" | "attributes">;

export class Span {
  readonly #deps: SpanDeps;
  #begun: Begun;
  readonly #spanId: Uint8Array;
  readonly #startMs: number;
  readonly #startUptimeMs: number;
  readonly #events: SpanEvent[] = [];
  #asking: Asking | undefined;
  #isDropped = false;
  #isOver = false;

  constructor(deps: SpanDeps, begun: Begun, sinceUptimeMs = deps.clock.uptimeMs()) {
    this.#deps = deps;
    this.#begun = begun;
    this.#spanId = deps.random.bytes(8);
    this.#startMs = deps.clock.nowMs() - (deps.clock.uptimeMs() - sinceUptimeMs);
    this.#startUptimeMs = sinceUptimeMs;
  }

  /** Whether it is recorded, and as a part of what, is known when the caller is. */
  asks(asking: Asking): void {
    this.#asking = asking;
    this.#isDropped = !asking.isSampled;
  }

  /** Nothing has been made of it before. */
  askedBy(groups: readonly string[]): void {
    const outer = this.#asking?.outer;
    if (!outer || !groups.some((group) => TRUSTED.has(group))) return;
    this.#isDropped = !outer.isRecorded;
    this.#begun = { ...this.#begun, traceId: outer.traceId, parentSpanId: outer.spanId };
  }

  get isRecorded(): boolean { return !this.#isDropped; }

  /** For the header of that name, in requests made on behalf of this one. API: https://www.w3.org/TR/trace-context/ */
  get traceparent(): string {
    return `00-${Buffer.from(this.#begun.traceId).toString("hex")}-${Buffer.from(this.#spanId).toString("hex")}-01`;
  }

  /** Of the request that it is of, as it is known elsewhere; "" of none. */
  get auditId(): string { return String(this.#begun.attributes["audit-id"] ?? ""); }

  event(name: string, attributes?: SpanAttributes): void {
    this.#events.push({ name, atMs: this.#nowMs(), attributes });
  }

  /** A part of this one: end it before. It may have begun a while ago. */
  child(name: string, kind: 1 | 3, attributes: Readonly<Record<string, AttributeValue>>, sinceUptimeMs?: number): Span {
    return new Span(this.#deps, { traceId: this.#begun.traceId, parentSpanId: this.#spanId, name, kind, attributes }, sinceUptimeMs);
  }

  /** The first time. `code`: of HTTP, if there is one. */
  end(code?: number, isError: boolean = code !== undefined && code >= 500): void {
    if (this.#isDropped || this.#isOver) return;
    this.#isOver = true;
    const { attributes } = this.#begun;
    this.#deps.record({
      ...this.#begun, spanId: this.#spanId, startMs: this.#startMs, endMs: this.#nowMs(), events: this.#events,
      attributes: code === undefined ? attributes : { ...attributes, "http.response.status_code": code }, isError,
    });
  }

  #nowMs(): number {
    return this.#startMs + (this.#deps.clock.uptimeMs() - this.#startUptimeMs);
  }
}
