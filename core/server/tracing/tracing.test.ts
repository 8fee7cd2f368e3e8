import { Server, ServerCredentials } from "@grpc/grpc-js";
import { expect, test } from "vitest";
import { WireReader } from "../../api/codec/protobuf-wire.ts";
import { systemClock } from "../../lifecycle/clock.ts";
import { systemRandom } from "../../lifecycle/random.ts";
import { silentLog } from "../../observe/log.ts";
import { requestInfo } from "../request-info.ts";
import type { ServerRequest } from "../request.ts";
import { OtlpExporter } from "./exporter.ts";
import { type SpanData, tracer } from "./tracer.ts";

const request = { method: "GET", path: "/api/v1/namespaces/a/pods", remoteAddress: "10.0.0.9", header: () => "kubectl" } as unknown as ServerRequest;
const info = requestInfo("GET", request.path, new URLSearchParams());

/** Fields of a message by number, nested as far as `path` says. */
function fields(bytes: Uint8Array, path: readonly number[]): Uint8Array[] {
  const [first, ...rest] = path;
  if (first === undefined) return [bytes];
  const found: Uint8Array[] = [];
  for (const reader = new WireReader(bytes); !reader.done;) {
    const tag = reader.varint();
    if (Math.floor(tag / 8) === first && tag % 8 === 2) found.push(...fields(reader.bytes(), rest));
    else reader.skip(tag % 8);
  }
  return found;
}

test("a request that is sampled becomes a span with its parts, of one trace", () => {
  const spans: SpanData[] = [];
  const tracing = (samplingRatePerMillion: number) => tracer({ samplingRatePerMillion, clock: systemClock, random: systemRandom, record: (span) => void spans.push(span) });
  expect(tracing(0).start(request, info, "id")).toBeUndefined();
  const span = tracing(1_000_000).start(request, info, "id")!;
  expect(span.traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
  span.event("Authentication succeeded");
  span.child("webhook", 3, {}).end();
  span.end(503);
  expect(spans.map(({ name, kind, isError, events }) => [name, kind, isError, events.length])).toEqual([["webhook", 3, false, 0], ["KubernetesAPI", 2, true, 1]]);
  expect(spans[0]!.parentSpanId).toEqual(spans[1]!.spanId);
  expect(spans[0]!.traceId).toEqual(spans[1]!.traceId);
  expect(spans[1]!.attributes).toMatchObject({ "http.request.method": "GET", "http.response.status_code": 503, "k8s.resource.name": "pods", "audit-id": "id" });
});

test("a collector gets the spans over gRPC, with the headers it wants", async () => {
  const taken = Promise.withResolvers<{ body: Buffer; key: unknown }>();
  const collector = new Server();
  const identity = (bytes: Buffer): Buffer => bytes;
  collector.addService({ Export: { path: "/opentelemetry.proto.collector.trace.v1.TraceService/Export", requestStream: false, responseStream: false, requestSerialize: identity, requestDeserialize: identity, responseSerialize: identity, responseDeserialize: identity } }, {
    Export: (call: { request: Buffer; metadata: { get(name: string): unknown[] } }, done: (error: null, value: Buffer) => void) => {
      taken.resolve({ body: call.request, key: call.metadata.get("api-key")[0] });
      done(null, Buffer.alloc(0));
    },
  });
  const port = await new Promise<number>((resolve, reject) => collector.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) => (error ? reject(error) : resolve(bound))));
  const stop = new AbortController();
  const exporter = new OtlpExporter({ endpoint: `127.0.0.1:${port}`, headers: { "api-key": "k" }, resource: { "service.name": "apiserver" }, clock: systemClock, log: silentLog });
  const running = exporter.run(stop.signal, () => undefined);
  tracer({ samplingRatePerMillion: 1_000_000, clock: systemClock, random: systemRandom, record: (span) => exporter.record(span) }).start(request, info, "id")!.end(200);
  stop.abort();
  const { body, key } = await taken.promise;
  await running;
  collector.forceShutdown();
  expect(key).toBe("k");
  expect(fields(body, [1, 2, 2, 5]).map((name) => Buffer.from(name).toString())).toEqual(["KubernetesAPI"]);
  expect(fields(body, [1, 2, 2, 1]).map((id) => id.length)).toEqual([16]);
  expect(fields(body, [1, 1, 1, 2, 1]).map((value) => Buffer.from(value).toString())).toEqual(["apiserver"]);
});
