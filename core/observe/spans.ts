/**
 * What belongs together in a trace, without anybody handing it on: a span that begins while another is open, in the same chain of calls, is a part of it.
 *
 *   await spans.during("syncPod", { kind: 1, attributes: { "k8s.pod.name": name } }, () => sync());       // calls of the runtime within it are its parts
 *
 * Whether a trace is recorded at all is decided where it begins.
 */
import { AsyncLocalStorage } from "node:async_hooks";

export interface OpenSpan {
  /** For the header of that name, in requests made on behalf of this one. API: https://www.w3.org/TR/trace-context/ */
  readonly traceparent: string;
  child(name: string, kind: 1 | 3, attributes: SpanAttributes): OpenSpan;
  end(code?: number, isError?: boolean): void;
}

export type SpanAttributes = Readonly<Record<string, string | number | boolean>>;
/** 1 internal, 3 client: OTLP's numbers. */
export interface SpanStart { readonly kind: 1 | 3; readonly attributes: SpanAttributes }

export interface Spans {
  /** What `work` does is a span, an error when it throws. `work` gets undefined where nothing is recorded. */
  during<T>(name: string, start: SpanStart, work: (span: OpenSpan | undefined) => Promise<T>): Promise<T>;
}

export const noSpans: Spans = { during: (_name, _start, work) => work(undefined) };

/** `begin`: undefined for a trace that is not recorded. */
export function spansFrom(begin: (name: string, start: SpanStart) => OpenSpan | undefined): Spans {
  const around = new AsyncLocalStorage<{ readonly span: OpenSpan | undefined }>();
  return {
    async during(name, start, work) {
      const outer = around.getStore();
      const span = outer ? outer.span?.child(name, start.kind, start.attributes) : begin(name, start);
      try {
        const result = await around.run({ span }, () => work(span));
        span?.end();
        return result;
      } catch (error) {
        span?.end(undefined, true);
        throw error;
      }
    },
  };
}
