/** Waits for a socket that is being connected. One that fails, is given up or takes too long is destroyed, and what it says afterwards is heard by nobody. */
import type { Socket } from "node:net";
import type { Clock } from "../lifecycle/clock.ts";

export interface Connecting {
  /** "connect" of TCP, "secureConnect" of TLS. */
  readonly event: "connect" | "secureConnect";
  readonly signal: AbortSignal;
  /** What the caller is told; undefined: the other side closed. */
  failure(error: NodeJS.ErrnoException | undefined): Error;
  /** Why it is not good enough, once it is there. */
  refusal?(): Error | undefined;
  /** Absent: as long as the signal lets it. */
  readonly limit?: { readonly clock: Clock; readonly ms: number; error(): Error } | undefined;
}

export async function whenConnected<S extends Socket>(socket: S, { event, signal, failure, refusal, limit }: Connecting): Promise<S> {
  const { promise, resolve, reject } = Promise.withResolvers<S>();
  const onError = (error: NodeJS.ErrnoException): void => reject(failure(error));
  const onClose = (): void => reject(failure(undefined));
  const quit = (): void => reject(new Error("context canceled"));
  const late = limit?.clock.after(limit.ms, () => reject(limit.error()));
  socket.once(event, () => {
    const problem = refusal?.();
    if (problem) reject(problem);
    else resolve(socket);
  }).on("error", onError).on("close", onClose);
  signal.addEventListener("abort", quit, { once: true });
  if (signal.aborted) quit();
  try {
    return await promise;
  } catch (error) {
    socket.on("error", () => undefined); // what comes now comes after the end
    socket.destroy();
    throw error;
  } finally {
    late?.cancel();
    signal.removeEventListener("abort", quit);
    socket.off("error", onError).off("close", onClose);
  }
}
