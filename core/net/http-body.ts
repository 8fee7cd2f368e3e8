/**
 * Bodies with a limit: reading one whole, and writing to a peer that may not read.
 *
 * `response.write` never refuses: it returns false and keeps what it was given. A watcher that falls behind must therefore be
 * measured (`writableLength`) and dropped; it lists again.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerResponse } from "node:http2";
import type { Clock } from "../lifecycle/clock.ts";

export class BodyError extends Error {
  override readonly name = "BodyError";
  readonly code: "too-large" | "timeout" | "cut-off";
  constructor(code: BodyError["code"], options?: ErrorOptions) {
    super(`request body: ${code}`, options);
    this.code = code;
  }
}

export interface BodyLimits { readonly bytesMax: number; readonly timeoutMs: number; readonly clock: Clock }

/** The whole body. After "too-large" or "timeout" the rest is not read: answer and close the connection. */
export async function readBody(request: IncomingMessage, { bytesMax, timeoutMs, clock }: BodyLimits): Promise<Buffer> {
  const announced = Number(request.headers["content-length"] ?? 0);
  if (announced > bytesMax) throw new BodyError("too-large");
  const chunks: Buffer[] = [];
  let length = 0;
  return await new Promise<Buffer>((resolve, reject) => {
    const deadline = clock.after(timeoutMs, () => settle(new BodyError("timeout")));
    const onData = (chunk: Buffer): void => {
      length += chunk.length;
      if (length > bytesMax) settle(new BodyError("too-large"));
      else chunks.push(chunk);
    };
    const onEnd = (): void => settle();
    const onError = (cause: Error): void => settle(new BodyError("cut-off", { cause }));
    const onClose = (): void => settle(new BodyError("cut-off"));
    function settle(error?: BodyError): void {
      deadline.cancel();
      request.off("data", onData).off("end", onEnd).off("close", onClose).off("aborted", onClose);
      if (error) {
        request.pause();
        reject(error);
      } else {
        resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, length));
      }
    }
    request.on("data", onData).on("end", onEnd).on("error", onError).on("close", onClose).on("aborted", onClose);
  });
}

/** Bytes a watcher may be behind: several thousand events, or one very large object. */
const BACKLOG_BYTES_MAX = 8 * 1024 * 1024;

/** Writes unless the peer is too far behind: then drops it and returns false. What a false means is that there is no one left to write to. */
export function writeBounded(response: ServerResponse, chunk: string | Uint8Array, bytesMax: number = BACKLOG_BYTES_MAX): boolean {
  if (response.destroyed || response.writableEnded) return false;
  if (response.writableLength > bytesMax) {
    cutOff(response);
    return false;
  }
  response.write(chunk);
  return true;
}

/** Ends an answer so that the client sees it was not whole. */
export function cutOff(response: ServerResponse): void {
  const { stream } = response as unknown as Partial<Http2ServerResponse>;
  if (stream) stream.on("error", () => undefined).destroy(new Error("cut off")); // of `close` with a code Bun makes an end like any, once there has been a byte
  else response.socket?.destroy();
}
