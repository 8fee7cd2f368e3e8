/**
 * Answers that stream, to clients that asked by WebSocket: a log as binary frames, a watch as one frame an event, text or binary as its encoding is. What such a client sends is not read.
 *
 * Source: kubernetes v1.36 apiserver/pkg/endpoints/handlers/watch.go, apimachinery/pkg/util/httpstream/wsstream/stream.go
 */
import type { Duplex } from "node:stream";
import { MEDIA_TYPES } from "../api/codec/negotiate.ts";
import { assemble } from "../api/codec/pieces.ts";
import { WATCH_LENGTH_BYTES } from "../api/codec/watch-frames.ts";
import type { Clock } from "../lifecycle/clock.ts";
import { webSocket, webSocketAnswer, webSocketProblem } from "../net/websocket.ts";
import type { RawAnswer, WatchAnswer } from "./answer.ts";
import type { ServerRequest } from "./request.ts";
import { type Presentation, watchEncoder } from "./respond.ts";

const BINARY = "binary.k8s.io";
const BASE64 = "base64.binary.k8s.io";

export function canStream(request: ServerRequest): boolean {
  return request.header("upgrade")?.toLowerCase() === "websocket" && webSocketProblem((name) => request.header(name)) === undefined;
}

interface Connection {
  readonly socket: Duplex;
  readonly head: Uint8Array;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

export async function streamOverWebSocket(answer: RawAnswer | WatchAnswer, how: Presentation, { socket, head, clock, signal }: Connection): Promise<void> {
  const { request } = how;
  const protocol = request.webSocketProtocols.find((name) => name === BINARY || name === BASE64);
  if (answer.type === "raw" && answer.status !== 200) throw new Error("an error is answered without a WebSocket");
  socket.write(webSocketAnswer(request.header("sec-websocket-key")!, protocol));
  const gone = new AbortController();
  let room: (() => void) | undefined;
  const peer = webSocket(socket, {
    early: head, clock, message: () => undefined,
    drain: () => room?.(),
    closed: () => { gone.abort(); room?.(); },
  });
  const ended = AbortSignal.any([signal, gone.signal]);
  const send = async (bytes: Uint8Array, type: "binary" | "text"): Promise<void> => {
    if (!peer.send([bytes], type) && !gone.signal.aborted) await new Promise<void>((resolve) => (room = resolve));
  };
  try {
    if (answer.type === "raw") {
      for await (const chunk of chunksOf(answer)) {
        if (ended.aborted) break;
        await send(protocol === BASE64 ? Buffer.from(Buffer.from(chunk).toString("base64")) : chunk, protocol === BASE64 ? "text" : "binary");
      }
      return;
    }
    const { contentType, encode } = watchEncoder(answer, how);
    const isText = contentType.startsWith(MEDIA_TYPES.json);
    for await (const batch of answer.batches) {
      if (ended.aborted) break;
      const events = encode(batch);
      const bytes = events instanceof Uint8Array ? events : assemble(events);
      for (const event of isText ? lines(bytes) : messages(bytes)) await send(event, isText ? "text" : "binary");
    }
  } finally {
    if (!gone.signal.aborted) peer.close(1000);
  }
}

function chunksOf({ body }: RawAnswer): AsyncIterable<Uint8Array> { return typeof body === "string" ? once(Buffer.from(body)) : body instanceof Uint8Array ? once(body) : body; }

async function* once(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield bytes;
}

/** A batch of a watch in JSON is lines, each with its end. */
function* lines(batch: Uint8Array): Iterable<Uint8Array> {
  for (let start = 0; start < batch.length; ) {
    const end = batch.indexOf(10, start);
    const next = end < 0 ? batch.length : end + 1;
    yield batch.subarray(start, next);
    start = next;
  }
}

/** A batch in protobuf is messages, each with its length in front, which a frame has itself. */
function* messages(batch: Uint8Array): Iterable<Uint8Array> {
  const view = new DataView(batch.buffer, batch.byteOffset, batch.byteLength);
  for (let start = 0; start < batch.length; ) {
    const from = start + WATCH_LENGTH_BYTES;
    start = from + view.getUint32(start);
    yield batch.subarray(from, start);
  }
}
