/**
 * A client of a gRPC service on a unix socket, driven by a table of its methods (facts.ts).
 *
 *   const driver = rpcClient<Methods>({ socket, methods: serviceMethods(text, "csi.v1"), nowMs });
 *   const { node_id } = await driver.call("Node/NodeGetInfo", {}, { signal });
 *
 * The connection is made at the first call and again after it was lost. Nothing is retried here: whoever calls knows what may be repeated.
 */
import { type CallOptions, Client, connectivityState, credentials, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import "../../core/net/spent-connections.ts";
import { decode, encode } from "./codec.ts";
import type { Method } from "./facts.ts";

/** As the generated types of a service list them: name → request, response. */
export type MethodTypes<M> = { readonly [K in keyof M]: { readonly request: object; readonly response: object; readonly stream: boolean } };
export type UnaryOf<M extends MethodTypes<M>> = { [K in keyof M]: M[K]["stream"] extends true ? never : K }[keyof M] & string;
export type StreamOf<M extends MethodTypes<M>> = { [K in keyof M]: M[K]["stream"] extends true ? K : never }[keyof M] & string;

export interface RpcCall {
  readonly signal?: AbortSignal | undefined;
  /** Absent: the client's. 0: none, for what takes as long as it takes (pulling an image, stopping a container). */
  readonly timeoutMs?: number | undefined;
  /** As RpcClientOptions has it, for this call. Absent: the client's. */
  readonly waitForReady?: boolean | undefined;
  /** Headers of the call. */
  readonly metadata?: Readonly<Record<string, string>> | undefined;
}

export interface RpcClient<M extends MethodTypes<M>> {
  call<N extends UnaryOf<M>>(method: N, request: M[N]["request"], call?: RpcCall): Promise<M[N]["response"]>;
  /** Ends when `signal` aborts or the other side has said all; throws RpcError when the stream breaks. */
  stream<N extends StreamOf<M>>(method: N, request: M[N]["request"], signal: AbortSignal): AsyncIterable<M[N]["response"]>;
  /** Keeps the connection up, and tells whether it is there, each time that changes, until `close`. */
  attend(told: (isConnected: boolean) => void): void;
  close(): void;
}

/** The names of gRPC's codes, as they are written in Go's errors. */
export type RpcErrorCode =
  | "Canceled" | "Unknown" | "InvalidArgument" | "DeadlineExceeded" | "NotFound" | "AlreadyExists" | "PermissionDenied" | "ResourceExhausted"
  | "FailedPrecondition" | "Aborted" | "OutOfRange" | "Unimplemented" | "Internal" | "Unavailable" | "DataLoss" | "Unauthenticated";

/** `message` reads as Go prints a gRPC error, because it ends up in events and statuses that people and tools know by heart; `detail` is the other side's own text. */
export class RpcError extends Error {
  readonly method: string;
  readonly code: RpcErrorCode;
  readonly detail: string;
  constructor({ method, code, detail, cause }: { method: string; code: RpcErrorCode; detail: string; cause?: unknown }) {
    super(`rpc error: code = ${code} desc = ${detail}`, { cause });
    this.name = "RpcError";
    this.method = method;
    this.code = code;
    this.detail = detail;
  }
}

/** Upstream's runtimeRequestTimeout, and its limit for CSI. */
const CALL_TIMEOUT_MS = 120_000;
/** Upstream's limit for one message. */
const MESSAGE_BYTES_MAX = 16 << 20;
/** What is being restarted is asked again this soon: it is on this machine, nobody is flooded. */
const RECONNECT_MS_MAX = 1_000;

const CODES: Readonly<Record<number, RpcErrorCode>> = {
  [status.CANCELLED]: "Canceled", [status.UNKNOWN]: "Unknown", [status.INVALID_ARGUMENT]: "InvalidArgument", [status.DEADLINE_EXCEEDED]: "DeadlineExceeded",
  [status.NOT_FOUND]: "NotFound", [status.ALREADY_EXISTS]: "AlreadyExists", [status.PERMISSION_DENIED]: "PermissionDenied",
  [status.RESOURCE_EXHAUSTED]: "ResourceExhausted", [status.FAILED_PRECONDITION]: "FailedPrecondition", [status.ABORTED]: "Aborted",
  [status.OUT_OF_RANGE]: "OutOfRange", [status.UNIMPLEMENTED]: "Unimplemented", [status.INTERNAL]: "Internal", [status.UNAVAILABLE]: "Unavailable",
  [status.DATA_LOSS]: "DataLoss", [status.UNAUTHENTICATED]: "Unauthenticated",
};

export interface RpcClientOptions {
  /** A path, or an endpoint as `--container-runtime-endpoint` takes it (unix:///…, npipe:////./pipe/…, tcp://host:port). */
  readonly socket: string;
  readonly methods: ReadonlyMap<string, Method>;
  readonly nowMs: () => number;
  /** A call waits for the connection until its time limit, rather than fail as soon as nobody answers there. */
  readonly waitForReady?: boolean | undefined;
  /** Of calls that say nothing else. */
  readonly timeoutMs?: number | undefined;
}

export function rpcClient<M extends MethodTypes<M>>({ socket, methods, nowMs, waitForReady: usuallyWaits = false, timeoutMs: usualMs = CALL_TIMEOUT_MS }: RpcClientOptions): RpcClient<M> {
  const client = new Client(target(socket), credentials.createInsecure(), {
    "grpc.max_receive_message_length": MESSAGE_BYTES_MAX, "grpc.max_send_message_length": MESSAGE_BYTES_MAX,
    "grpc.initial_reconnect_backoff_ms": 100, "grpc.max_reconnect_backoff_ms": RECONNECT_MS_MAX,
    "grpc.default_authority": "localhost", "grpc.enable_http_proxy": 0,
  });

  function methodNamed(name: string): Method {
    const method = methods.get(name);
    if (!method) throw new Error(`there is no method ${name}`);
    return method;
  }

  return {
    call(name, request, { signal, timeoutMs = usualMs, waitForReady = usuallyWaits, metadata } = {}) {
      const method = methodNamed(name);
      return new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(new RpcError({ method: name, code: "Canceled", detail: "context canceled" }));
        const deadlineMs = timeoutMs > 0 ? nowMs() + timeoutMs : Infinity;
        const options: CallOptions = timeoutMs > 0 ? { deadline: deadlineMs } : {};
        const call = client.makeUnaryRequest(
          method.path, (value: object) => encode(method.request, value), (bytes: Buffer) => decode(method.response, bytes),
          request, headersOf(metadata, waitForReady), options,
          (error, response) => {
            signal?.removeEventListener("abort", cancel);
            // the other side knows the time limit, too, and cancels at it; where this process is busy, its word comes before our own timer
            if (error?.code === status.CANCELLED && !signal?.aborted && nowMs() >= deadlineMs) reject(new RpcError({ method: name, code: "DeadlineExceeded", detail: "context deadline exceeded", cause: error }));
            else if (error) reject(rpcError(name, error));
            else resolve((response ?? {}) as never);
          },
        );
        const cancel = (): void => call.cancel();
        signal?.addEventListener("abort", cancel, { once: true });
      });
    },

    async *stream(name, request, signal) {
      const method = methodNamed(name);
      if (signal.aborted) return;
      const stream = client.makeServerStreamRequest(method.path, (value: object) => encode(method.request, value), (bytes: Buffer) => decode(method.response, bytes), request);
      const cancel = (): void => stream.cancel();
      signal.addEventListener("abort", cancel, { once: true });
      try {
        for await (const message of stream) yield message as never;
      } catch (error) {
        if (!signal.aborted) throw rpcError(name, error as ServiceError);
      } finally {
        signal.removeEventListener("abort", cancel);
        stream.cancel();
      }
    },

    attend(told) {
      const channel = client.getChannel();
      let was: boolean | undefined;
      const look = (): void => {
        const state = channel.getConnectivityState(true);
        if (state === connectivityState.SHUTDOWN) return;
        const is = state === connectivityState.READY;
        if (is !== was) told((was = is));
        channel.watchConnectivityState(state, Number.POSITIVE_INFINITY, look);
      };
      look();
    },

    close: () => client.close(),
  };
}

function headersOf(given: RpcCall["metadata"], waitForReady: boolean): Metadata {
  const metadata = new Metadata({ waitForReady });
  for (const [name, value] of Object.entries(given ?? {})) metadata.set(name, value);
  return metadata;
}

function rpcError(method: string, error: ServiceError): RpcError {
  return new RpcError({ method, code: CODES[error.code] ?? "Unknown", detail: inGoWords(error.details ?? error.message), cause: error });
}

/** What grpc-js says itself, as Go's client does, and without times: what is told again is known again, in events and in the log. */
function inGoWords(detail: string): string {
  if (detail.startsWith("Deadline exceeded after ")) return "context deadline exceeded";
  const [, why] = /^No connection established\. Last error: (.*?)(?: \(\d{4}-[^)]*\))?\. Resolution note: /s.exec(detail) ?? [];
  if (why === undefined) return detail;
  const [, code = "", path = ""] = /connect (E[A-Z]+) (\S+)/.exec(why) ?? [];
  const dialing = Object.hasOwn(DIALING, code) ? `dial unix ${path}: connect: ${DIALING[code]}` : why;
  return `connection error: desc = "transport: Error while dialing: ${dialing}"`;
}

const DIALING: Readonly<Record<string, string>> = { ENOENT: "no such file or directory", ECONNREFUSED: "connection refused", EACCES: "permission denied" };

function target(socket: string): string {
  if (socket.startsWith("unix:")) return socket;
  if (socket.startsWith("npipe://")) return `unix:${socket.slice("npipe://".length).replaceAll("/", "\\")}`;
  if (socket.startsWith("tcp://")) return `dns:${socket.slice("tcp://".length)}`;
  return `unix:${socket}`;
}
