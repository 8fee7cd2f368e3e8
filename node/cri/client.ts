/**
 * The client of a container runtime: CRI v1 over gRPC on a unix socket (a named pipe on Windows).
 *
 *   const cri = criClient({ socket: "/run/containerd/containerd.sock", clock });
 *   const { pod_sandbox_id } = await cri.call("RuntimeService/RunPodSandbox", { config }, { signal });
 *   for await (const event of cri.events(signal)) …
 *
 * The connection is made at the first call and again after it was lost; a call waits for it until its time limit. Nothing is retried here:
 * whoever calls knows what may be repeated.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/cri-client/pkg/{remote_runtime,remote_image}.go (limits)
 */
import { type CallOptions, Client, credentials, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { decode, encode } from "./codec.ts";
import { criMethods } from "./facts.ts";
import type { ContainerEventResponse, Methods } from "./gen/runtime.v1.ts";

type UnaryMethod = { [M in keyof Methods]: Methods[M]["stream"] extends true ? never : M }[keyof Methods];

export interface CriCall {
  readonly signal?: AbortSignal | undefined;
  /** Default: CALL_TIMEOUT_MS. 0: none, for what takes as long as it takes (pulling an image, stopping a container). */
  readonly timeoutMs?: number | undefined;
}

export interface Cri {
  call<M extends UnaryMethod>(method: M, request: Methods[M]["request"], call?: CriCall): Promise<Methods[M]["response"]>;
  /** What happens to containers from now on. Ends when `signal` aborts, throws CriError when the stream breaks: list again, then call again. */
  events(signal: AbortSignal): AsyncIterable<ContainerEventResponse>;
  close(): void;
}

/** The names of gRPC's codes, as they are written in Go's errors. */
export type CriErrorCode =
  | "Canceled" | "Unknown" | "InvalidArgument" | "DeadlineExceeded" | "NotFound" | "AlreadyExists" | "PermissionDenied" | "ResourceExhausted"
  | "FailedPrecondition" | "Aborted" | "OutOfRange" | "Unimplemented" | "Internal" | "Unavailable" | "DataLoss" | "Unauthenticated";

/** `message` reads as Go prints a gRPC error, because it ends up in events and statuses that people and tools know by heart; `detail` is the runtime's own text. */
export class CriError extends Error {
  readonly method: string;
  readonly code: CriErrorCode;
  readonly detail: string;
  constructor({ method, code, detail, cause }: { method: string; code: CriErrorCode; detail: string; cause?: unknown }) {
    super(`rpc error: code = ${code} desc = ${detail}`, { cause });
    this.name = "CriError";
    this.method = method;
    this.code = code;
    this.detail = detail;
  }
}

export function isCriNotFound(error: unknown): boolean {
  return error instanceof CriError && error.code === "NotFound";
}

/** Upstream's runtimeRequestTimeout. */
const CALL_TIMEOUT_MS = 120_000;
/** Upstream's limit for one message. */
const MESSAGE_BYTES_MAX = 16 << 20;
/** A runtime that is being restarted is asked again this soon: it is on this machine, nobody is flooded. */
const RECONNECT_MS_MAX = 1_000;

const CODES: Readonly<Record<number, CriErrorCode>> = {
  [status.CANCELLED]: "Canceled", [status.UNKNOWN]: "Unknown", [status.INVALID_ARGUMENT]: "InvalidArgument", [status.DEADLINE_EXCEEDED]: "DeadlineExceeded",
  [status.NOT_FOUND]: "NotFound", [status.ALREADY_EXISTS]: "AlreadyExists", [status.PERMISSION_DENIED]: "PermissionDenied",
  [status.RESOURCE_EXHAUSTED]: "ResourceExhausted", [status.FAILED_PRECONDITION]: "FailedPrecondition", [status.ABORTED]: "Aborted",
  [status.OUT_OF_RANGE]: "OutOfRange", [status.UNIMPLEMENTED]: "Unimplemented", [status.INTERNAL]: "Internal", [status.UNAVAILABLE]: "Unavailable",
  [status.DATA_LOSS]: "DataLoss", [status.UNAUTHENTICATED]: "Unauthenticated",
};

/** `socket`: a path, or an endpoint as `--container-runtime-endpoint` takes it (unix:///…, npipe:////./pipe/…, tcp://host:port). */
export function criClient({ socket, nowMs }: { readonly socket: string; readonly nowMs: () => number }): Cri {
  const methods = criMethods();
  const client = new Client(target(socket), credentials.createInsecure(), {
    "grpc.max_receive_message_length": MESSAGE_BYTES_MAX, "grpc.max_send_message_length": MESSAGE_BYTES_MAX,
    "grpc.initial_reconnect_backoff_ms": 100, "grpc.max_reconnect_backoff_ms": RECONNECT_MS_MAX,
    "grpc.default_authority": "localhost", "grpc.enable_http_proxy": 0,
  });

  function methodNamed(name: string) {
    const method = methods.get(name);
    if (!method) throw new Error(`CRI has no method ${name}`);
    return method;
  }

  return {
    call(name, request, { signal, timeoutMs = CALL_TIMEOUT_MS } = {}) {
      const method = methodNamed(name);
      return new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(new CriError({ method: name, code: "Canceled", detail: "context canceled" }));
        const options: CallOptions = timeoutMs > 0 ? { deadline: nowMs() + timeoutMs } : {};
        const call = client.makeUnaryRequest(
          method.path, (value: object) => encode(method.request, value), (bytes: Buffer) => decode(method.response, bytes),
          request, new Metadata({ waitForReady: true }), options,
          (error, response) => {
            signal?.removeEventListener("abort", cancel);
            if (error) reject(criError(name, error));
            else resolve((response ?? {}) as never);
          },
        );
        const cancel = (): void => call.cancel();
        signal?.addEventListener("abort", cancel, { once: true });
      });
    },

    async *events(signal) {
      const name = "RuntimeService/GetContainerEvents";
      const method = methodNamed(name);
      if (signal.aborted) return;
      const stream = client.makeServerStreamRequest(method.path, (value: object) => encode(method.request, value), (bytes: Buffer) => decode(method.response, bytes), {});
      const cancel = (): void => stream.cancel();
      signal.addEventListener("abort", cancel, { once: true });
      try {
        for await (const event of stream) yield event as ContainerEventResponse;
      } catch (error) {
        if (!signal.aborted) throw criError(name, error as ServiceError);
      } finally {
        signal.removeEventListener("abort", cancel);
        stream.cancel();
      }
    },

    close: () => client.close(),
  };
}

function criError(method: string, error: ServiceError): CriError {
  return new CriError({ method, code: CODES[error.code] ?? "Unknown", detail: error.details ?? error.message, cause: error });
}

function target(socket: string): string {
  if (socket.startsWith("unix:")) return socket;
  if (socket.startsWith("npipe://")) return `unix:${socket.slice("npipe://".length).replaceAll("/", "\\")}`;
  if (socket.startsWith("tcp://")) return `dns:${socket.slice("tcp://".length)}`;
  return `unix:${socket}`;
}
