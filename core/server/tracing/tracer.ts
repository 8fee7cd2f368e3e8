/**
 * Traces: one span for each request that is sampled, with what happened in it as events, handed over when it is done.
 *
 * The API server is a public endpoint: whether a trace is recorded is its own decision, whatever context a client sends; it passes its own on.
 *
 * Source: kubernetes v1.36 component-base/tracing, apiserver/pkg/endpoints/filters/traces.go
 */
import type { Clock } from "../../lifecycle/clock.ts";
import type { Random } from "../../lifecycle/random.ts";
import type { SpanStart } from "../../observe/spans.ts";
import type { ServerRequest } from "../request.ts";
import type { RequestInfo } from "../request-info.ts";

export type AttributeValue = string | number | boolean;

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
  readonly events: readonly { readonly name: string; readonly atMs: number }[];
  readonly isError: boolean;
}

export interface Tracer {
  /** Undefined: not this one. */
  start(request: ServerRequest, info: RequestInfo, auditId: string): Span | undefined;
}

const PER_MILLION = 1_000_000;

export function tracer({ samplingRatePerMillion, clock, random, record }: { readonly samplingRatePerMillion: number; readonly clock: Clock; readonly random: Random; readonly record: (span: SpanData) => void }): Tracer {
  return {
    start(request, info, auditId) {
      if (random.next() * PER_MILLION >= samplingRatePerMillion) return undefined;
      return new Span({ clock, random, record }, {
        traceId: random.bytes(16), parentSpanId: undefined, name: "KubernetesAPI", kind: 2,
        attributes: {
          "http.request.method": request.method, "url.path": request.path, "user_agent.original": request.header("user-agent") ?? "", "client.address": request.remoteAddress, "audit-id": auditId, "k8s.request.verb": info.verb,
          ...(info.isResource ? { "k8s.api.group": info.group, "k8s.api.version": info.version, "k8s.resource.name": info.resource, "k8s.namespace.name": info.namespace } : {}),
        },
      });
    },
  };
}

/** Traces that begin on our side. Undefined: not this one. */
export function rootSpans({ samplingRatePerMillion, ...deps }: SpanDeps & { readonly samplingRatePerMillion: number }): (name: string, start: SpanStart) => Span | undefined {
  return (name, { kind, attributes }) => (deps.random.next() * PER_MILLION >= samplingRatePerMillion ? undefined : new Span(deps, { traceId: deps.random.bytes(16), parentSpanId: undefined, name, kind, attributes }));
}

interface SpanDeps { readonly clock: Clock; readonly random: Random; readonly record: (span: SpanData) => void }
type Begun = Pick<SpanData, "traceId" | "parentSpanId" | "name" | "kind" | "attributes">;

export class Span {
  readonly #deps: SpanDeps;
  readonly #begun: Begun;
  readonly #spanId: Uint8Array;
  readonly #startMs: number;
  readonly #startUptimeMs: number;
  readonly #events: { name: string; atMs: number }[] = [];

  constructor(deps: SpanDeps, begun: Begun) {
    this.#deps = deps;
    this.#begun = begun;
    this.#spanId = deps.random.bytes(8);
    this.#startMs = deps.clock.nowMs();
    this.#startUptimeMs = deps.clock.uptimeMs();
  }

  /** For the header of that name, in requests made on behalf of this one. API: https://www.w3.org/TR/trace-context/ */
  get traceparent(): string {
    return `00-${Buffer.from(this.#begun.traceId).toString("hex")}-${Buffer.from(this.#spanId).toString("hex")}-01`;
  }

  event(name: string): void {
    this.#events.push({ name, atMs: this.#nowMs() });
  }

  /** A part of this one: end it before. */
  child(name: string, kind: 1 | 3, attributes: Readonly<Record<string, AttributeValue>>): Span {
    return new Span(this.#deps, { traceId: this.#begun.traceId, parentSpanId: this.#spanId, name, kind, attributes });
  }

  /** `code`: of HTTP, if there is one. */
  end(code?: number, isError: boolean = code !== undefined && code >= 500): void {
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
