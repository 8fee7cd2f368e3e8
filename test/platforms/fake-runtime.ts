/**
 * A program: node/cri/memory-runtime.ts as a container runtime others can call.
 *
 *   fake-runtime ENDPOINT IMAGE…      ENDPOINT: \\.\pipe\name on Windows, a socket's path, or 127.0.0.1:port; IMAGEs are there, no others
 *
 * Prints "serving" once it does, and then every call that changed something.
 */
import { type handleServerStreamingCall, type handleUnaryCall, Server, ServerCredentials, type ServiceDefinition, status } from "@grpc/grpc-js";
import { CriError } from "../../node/cri/client.ts";
import { decode, encode } from "../../node/cri/codec.ts";
import { criMethods } from "../../node/cri/facts.ts";
import { memoryRuntime } from "../../node/cri/memory-runtime.ts";

const [endpoint = "", ...images] = process.argv.slice(2);
const runtime = memoryRuntime({ nowMs: () => Date.now() });
for (const image of images) runtime.images.add(image);

const CODES: Readonly<Record<string, number>> = { NotFound: status.NOT_FOUND, Canceled: status.CANCELLED, Unimplemented: status.UNIMPLEMENTED };
const server = new Server({ "grpc.max_receive_message_length": 16 << 20 });
const methods = [...criMethods()];
const services = Map.groupBy(methods, ([, { path }]) => path.split("/")[1]!);
for (const of of services.values()) {
  const definition: Record<string, object> = {};
  const handlers: Record<string, unknown> = {};
  for (const [name, { path, request, response, stream }] of of) {
    const plain = path.split("/")[2]!;
    definition[plain] = {
      path, requestStream: false, responseStream: stream, originalName: plain,
      requestSerialize: (value: object) => encode(request, value), requestDeserialize: (bytes: Buffer) => decode(request, bytes),
      responseSerialize: (value: object) => encode(response, value), responseDeserialize: (bytes: Buffer) => decode(response, bytes),
    };
    handlers[plain] = stream ? (events satisfies handleServerStreamingCall<object, object>) : unary(name);
  }
  server.addService(definition as unknown as ServiceDefinition, handlers as never);
}

function unary(name: string): handleUnaryCall<object, object> {
  return (call, answer) => {
    const before = runtime.calls.length;
    runtime.call(name as never, call.request as never).then(
      (response) => answer(null, response),
      (error: unknown) => answer({ code: error instanceof CriError ? CODES[error.code] ?? status.UNKNOWN : status.INTERNAL, details: (error as Error).message }),
    ).finally(() => { for (const done of runtime.calls.slice(before)) console.log(done); });
  };
}

function events(call: Parameters<handleServerStreamingCall<object, object>>[0]): void {
  const stop = new AbortController();
  call.on("cancelled", () => stop.abort());
  call.on("error", () => stop.abort());
  void (async () => {
    for await (const event of runtime.events(stop.signal)) call.write(event);
    call.end();
  })();
}

server.bindAsync(/^[\d.]+:\d+$/.test(endpoint) ? endpoint : `unix:${endpoint}`, ServerCredentials.createInsecure(), (error) => {
  if (error) throw error;
  console.log("serving");
});
