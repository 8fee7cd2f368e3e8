/**
 * The client of a container runtime: CRI v1 over gRPC on a unix socket (a named pipe on Windows).
 *
 *   const cri = criClient({ socket: "/run/containerd/containerd.sock", nowMs: clock.nowMs });
 *   const { pod_sandbox_id } = await cri.call("RuntimeService/RunPodSandbox", { config }, { signal });
 *   for await (const event of cri.events(signal)) …
 *
 * The connection is made at the first call and again after it was lost; a call waits for it until its time limit, unless it says otherwise. Nothing is retried here:
 * whoever calls knows what may be repeated.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/cri-client/pkg/{remote_runtime,remote_image}.go (limits)
 */
import { criMethods } from "./facts.ts";
import type { ContainerEventResponse, Methods } from "./gen/runtime.v1.ts";
import { type RpcCall, type RpcClient, rpcClient, RpcError } from "./rpc-client.ts";

export { type RpcCall as CriCall, RpcError as CriError, type RpcErrorCode as CriErrorCode } from "./rpc-client.ts";

type UnaryMethod = { [M in keyof Methods]: Methods[M]["stream"] extends true ? never : M }[keyof Methods];

export interface Cri {
  call<M extends UnaryMethod>(method: M, request: Methods[M]["request"], call?: RpcCall): Promise<Methods[M]["response"]>;
  /** What happens to containers from now on. Ends when `signal` aborts, throws CriError when the stream breaks: list again, then call again. */
  events(signal: AbortSignal): AsyncIterable<ContainerEventResponse>;
  close(): void;
}

export function isCriNotFound(error: unknown): boolean {
  return error instanceof RpcError && error.code === "NotFound";
}

interface CriOptions {
  /** A path, or an endpoint as `--container-runtime-endpoint` takes it (unix:///…, npipe:////./pipe/…, tcp://host:port). */
  readonly socket: string;
  /** Where images are, if somebody else looks after them. */
  readonly imageSocket?: string | undefined;
  readonly nowMs: () => number;
  readonly timeoutMs?: number | undefined;
}

export function criClient({ socket, imageSocket = socket, nowMs, timeoutMs }: CriOptions): Cri {
  const clientAt = (where: string): RpcClient<Methods> => rpcClient<Methods>({ socket: where, methods: criMethods(), nowMs, waitForReady: true, timeoutMs });
  const runtime = clientAt(socket);
  const images = imageSocket === socket ? runtime : clientAt(imageSocket);
  return {
    call: (method, request, call) => (method.startsWith("ImageService/") ? images : runtime).call(method, request, call),
    events: (signal) => runtime.stream("RuntimeService/GetContainerEvents", {}, signal),
    close() {
      runtime.close();
      if (images !== runtime) images.close();
    },
  };
}
