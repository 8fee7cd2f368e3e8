/**
 * Spans as OTLP has them: the message ExportTraceServiceRequest in protobuf.
 *
 * API: https://github.com/open-telemetry/opentelemetry-proto/blob/v1.5.0/opentelemetry/proto/trace/v1/trace.proto
 */
import { boolField, bytesField, intField, nest, textField } from "../../protobuf/fields.ts";
import { BackwardWriter, FIXED64 } from "../../protobuf/wire.ts";
import type { AttributeValue, SpanData } from "./tracer.ts";

export type ResourceAttributes = Readonly<Record<string, string>>;

const SCOPE = "k8s.io/component-base/tracing";
const STATUS_ERROR = 2;

export function encodeSpans(resource: ResourceAttributes, spans: readonly SpanData[]): Uint8Array {
  const writer = new BackwardWriter();
  nest(writer, 1, () => { // resource_spans
    nest(writer, 2, () => { // scope_spans
      for (const span of spans.toReversed()) nest(writer, 2, () => writeSpan(writer, span));
      nest(writer, 1, () => textField(writer, 1, SCOPE));
    });
    nest(writer, 1, () => attributes(writer, 1, resource));
  });
  return writer.finish();
}

/** Fields are written last to first, as the writer goes. */
function writeSpan(writer: BackwardWriter, { traceId, spanId, parentSpanId, name, kind, startMs, endMs, attributes: own, events, isError }: SpanData): void {
  if (isError) nest(writer, 15, () => intField(writer, 3, STATUS_ERROR));
  for (const { name: what, atMs, attributes: told } of events.toReversed())
    nest(writer, 11, () => {
      if (told) attributes(writer, 3, told);
      textField(writer, 2, what);
      time(writer, 1, atMs);
    });
  attributes(writer, 9, own);
  time(writer, 8, endMs);
  time(writer, 7, startMs);
  intField(writer, 6, kind);
  textField(writer, 5, name);
  if (parentSpanId) bytesField(writer, 4, parentSpanId);
  bytesField(writer, 2, spanId);
  bytesField(writer, 1, traceId);
}

function attributes(writer: BackwardWriter, field: number, values: Readonly<Record<string, AttributeValue>>): void {
  for (const [key, value] of Object.entries(values).toReversed())
    nest(writer, field, () => {
      nest(writer, 2, () => {
        if (typeof value === "string") textField(writer, 1, value);
        else if (typeof value === "boolean") boolField(writer, 2, value);
        else intField(writer, 3, value);
      });
      textField(writer, 1, key);
    });
}

/** Nanoseconds since 1970. */
function time(writer: BackwardWriter, field: number, ms: number): void {
  const fixed = Buffer.alloc(8);
  fixed.writeBigUInt64LE(BigInt(Math.round(ms * 1000)) * 1000n);
  writer.raw(fixed);
  writer.tag(field, FIXED64);
}
