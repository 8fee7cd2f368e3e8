/** Ends an answer so that the client sees it was not whole. */
import type { ServerResponse } from "node:http";
import type { Http2ServerResponse } from "node:http2";

export function cutOff(response: ServerResponse): void {
  const { stream } = response as unknown as Partial<Http2ServerResponse>;
  if (stream) stream.on("error", () => undefined).destroy(new Error("cut off")); // of `close` with a code Bun makes an end like any, once there has been a byte
  else response.socket?.destroy();
}
