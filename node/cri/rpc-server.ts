/**
 * A gRPC service of ours on a unix socket, driven by a table of its methods (facts.ts). What is not implemented answers Unimplemented.
 *
 *   rpcServer<Methods>({ name: "pod-resources", socket, methods, calls: { "PodResourcesLister/List": async () => … }, log })
 */
import { mkdir, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { type sendUnaryData, Server, ServerCredentials, type ServerUnaryCall, type ServerWritableStream, status } from "@grpc/grpc-js";
import { aborted } from "../../core/lifecycle/aborted.ts";
import type { Runnable } from "../../core/lifecycle/run-all.ts";
import type { Log } from "../../core/observe/log.ts";
import { decode, encode } from "./codec.ts";
import type { Method } from "./facts.ts";
import type { MethodTypes, RpcErrorCode, StreamOf, UnaryOf } from "./rpc-client.ts";

/** What a call throws to be answered with this code; any other error is Unknown, as in Go. */
export class RpcFailure extends Error {
  readonly code: RpcErrorCode;
  constructor(code: RpcErrorCode, message: string) {
    super(message);
    this.name = "RpcFailure";
    this.code = code;
  }
}

const NUMBERS: Partial<Record<RpcErrorCode, status>> = {
  NotFound: status.NOT_FOUND, InvalidArgument: status.INVALID_ARGUMENT, ResourceExhausted: status.RESOURCE_EXHAUSTED, FailedPrecondition: status.FAILED_PRECONDITION,
  Unavailable: status.UNAVAILABLE, Internal: status.INTERNAL, Unimplemented: status.UNIMPLEMENTED,
};

export interface RpcServerOptions<M extends MethodTypes<M>> {
  readonly name: string;
  readonly socket: string;
  readonly methods: ReadonlyMap<string, Method>;
  readonly calls: { readonly [N in UnaryOf<M>]?: (request: M[N]["request"]) => Promise<M[N]["response"]> | M[N]["response"] };
  /** Asked before each call: whether it is answered. Absent: always. */
  readonly allow?: (() => boolean) | undefined;
  /** Of an older version of the service, with messages that are part of the newer one's. */
  readonly older?: { readonly methods: ReadonlyMap<string, Method>; readonly calls: { readonly [N in UnaryOf<M>]?: (request: M[N]["request"]) => Promise<M[N]["response"]> | M[N]["response"] } } | undefined;
  /** Methods that say one thing after another; `signal` aborts when the caller has gone. */
  readonly streams?: { readonly [N in StreamOf<M>]?: (request: M[N]["request"], signal: AbortSignal) => AsyncIterable<M[N]["response"]> };
  readonly log: Log;
}

/** Takes the socket over from whoever left it behind. */
export function rpcServer<M extends MethodTypes<M>>({ name, socket, methods, calls, allow = () => true, older, streams = {}, log }: RpcServerOptions<M>): Runnable {
  function serveCalls(server: Server, known: ReadonlyMap<string, Method>, answers: object): void {
    const named = Object.entries(answers) as [string, (request: object) => Promise<object> | object][];
    if (named.length > 0) server.addService(
      Object.fromEntries(named.map(([method]) => [method, definitionOf(known.get(method)!)])),
      Object.fromEntries(named.map(([method, answer]) => [method, (call: ServerUnaryCall<object, object>, done: sendUnaryData<object>) => {
        Promise.resolve(call.request).then(allow() ? answer : refuse).then((response) => done(null, response), (error: Error) => {
          log.debug("a call was answered with an error", { server: name, method, error });
          done({ name: error.name, message: error.message, details: error.message, code: error instanceof RpcFailure ? NUMBERS[error.code] ?? status.UNKNOWN : status.UNKNOWN }, null);
        });
      }])),
    );
  }

  return {
    name,
    async run(signal, ready) {
      const server = new Server();
      const streaming = Object.entries(streams) as [string, (request: object, signal: AbortSignal) => AsyncIterable<object>][];
      if (streaming.length > 0) server.addService(
        Object.fromEntries(streaming.map(([method]) => [method, definitionOf(methods.get(method)!)])),
        Object.fromEntries(streaming.map(([method, answers]) => [method, (call: ServerWritableStream<object, object>) => void relay(call, answers)])),
      );
      serveCalls(server, methods, calls);
      if (older) serveCalls(server, older.methods, older.calls);
      await mkdir(dirname(socket), { recursive: true, mode: 0o750 });
      await rm(socket, { force: true });
      await new Promise<void>((resolve, reject) => server.bindAsync(`unix:${socket}`, ServerCredentials.createInsecure(), (error) => (error ? reject(error) : resolve())));
      ready();
      await aborted(signal);
      server.forceShutdown();
      await rm(socket, { force: true });
    },
  };
}

function refuse(): never { throw new RpcFailure("ResourceExhausted", "rejected by rate limit"); }

async function relay(call: ServerWritableStream<object, object>, answers: (request: object, signal: AbortSignal) => AsyncIterable<object>): Promise<void> {
  const gone = new AbortController();
  call.on("cancelled", () => gone.abort());
  try {
    for await (const answer of answers(call.request, gone.signal)) {
      if (gone.signal.aborted) break;
      call.write(answer);
    }
    call.end();
  } catch (error) {
    call.destroy(error as Error);
  }
}

function definitionOf({ path, request, response, stream }: Method) {
  return {
    path, requestStream: false, responseStream: stream,
    requestSerialize: (value: object) => encode(request, value), requestDeserialize: (bytes: Buffer) => decode(request, bytes),
    responseSerialize: (value: object) => encode(response, value), responseDeserialize: (bytes: Buffer) => decode(response, bytes),
  };
}
