/**
 * Answers that stream, to clients that asked by WebSocket: a log as binary frames after an empty one, a watch as one frame an event, text or binary as its encoding is. What such a client sends
 * is not read. Who shakes hands otherwise than a WebSocket's client does is refused as Go's library refuses it; but for an origin, which programs do not have, nobody is asked.
 *
 * Source: kubernetes v1.36 apiserver/pkg/endpoints/handlers/watch.go, streaming/pkg/httpstream/wsstream/stream.go; golang.org/x/net/websocket hybi.go, server.go
 */
import type { Duplex, Readable } from "node:stream";
import { CBOR_SEQUENCE, MEDIA_TYPES } from "../api/codec/negotiate.ts";
import { assemble } from "../api/codec/pieces.ts";
import { WATCH_LENGTH_BYTES } from "../api/codec/watch-frames.ts";
import { WEBSOCKET_TOKEN_PREFIX } from "../authn/bearer-token.ts";
import type { Clock } from "../lifecycle/clock.ts";
import { webSocket, webSocketAnswer } from "../net/websocket.ts";
import { type Answer, isStream, type RawAnswer, type WatchAnswer } from "./answer.ts";
import type { ServerRequest } from "./request.ts";
import { type EventBatch, type Presentation, watchEncoder } from "./respond.ts";

const BINARY = "binary.k8s.io";
const BASE64 = "base64.binary.k8s.io";
const BAD_REQUEST = "HTTP/1.1 400 Bad Request\r\n", FORBIDDEN = "HTTP/1.1 403 Forbidden\r\n";

interface LogAnswer extends RawAnswer { readonly body: Readable }
type Streamed = WatchAnswer | LogAnswer;

/** Whatever else somebody asks for by WebSocket is answered as to anybody, and so is a watch that there is no such form of. */
export function canStream(answer: Answer, how: Presentation): answer is Streamed {
  if (how.request.header("upgrade")?.toLowerCase() !== "websocket") return false;
  if (answer.type === "raw") return answer.status === 200 && !answer.passedOn && isStream(answer.body);
  return answer.type === "watch" && hasEncoder(answer, how);
}

function hasEncoder(answer: WatchAnswer, how: Presentation): boolean {
  try {
    watchEncoder(answer, how);
    return true;
  } catch {
    return false; // why is told when it is answered without a WebSocket
  }
}

interface Handshake {
  /** As the client is to be told; undefined: it asks for none. */
  readonly protocol: string | undefined;
  /** What it is refused with. */
  readonly refusal: string | undefined;
}

/** A log has protocols of its own. Of a watch any is taken, and of several one that a log has. */
function handshakeOf({ header, webSocketProtocols }: ServerRequest, isLog: boolean): Handshake {
  const wanted = webSocketProtocols.filter((name) => name !== "" && !name.startsWith(WEBSOCKET_TOKEN_PREFIX));
  const protocol = wanted.find((name) => name === BINARY || name === BASE64) ?? (wanted.length === 1 && !isLog ? wanted[0] : undefined);
  if (!header("sec-websocket-key")) return { protocol, refusal: `${BAD_REQUEST}\r\nmismatch challenge/response` };
  if (header("sec-websocket-version") !== "13") return { protocol, refusal: `${BAD_REQUEST}Sec-WebSocket-Version: 13\r\n\r\nmissing or bad WebSocket Version` };
  return { protocol, refusal: isLog && wanted.length > 0 && protocol === undefined ? `${FORBIDDEN}\r\n` : undefined };
}

interface Connection {
  readonly socket: Duplex;
  readonly head: Uint8Array;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

export async function streamOverWebSocket(answer: Streamed, how: Presentation, { socket, head, clock, signal }: Connection): Promise<void> {
  const { request } = how;
  const { protocol, refusal } = handshakeOf(request, answer.type === "raw");
  if (refusal !== undefined) {
    if (answer.type === "raw") answer.body.destroy();
    socket.end(refusal);
    return;
  }
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
      const type = protocol === BASE64 ? "text" : "binary";
      await send(Buffer.alloc(0), type);
      for await (const chunk of answer.body as AsyncIterable<Uint8Array>) {
        if (ended.aborted) break;
        await send(type === "text" ? Buffer.from(Buffer.from(chunk).toString("base64")) : chunk, type);
      }
      return;
    }
    const { contentType, encode } = watchEncoder({ ...answer, eventSized: undefined }, how); // upstream measures those over HTTP alone
    const isText = contentType.startsWith(MEDIA_TYPES.json);
    for await (const batch of answer.batches) {
      if (ended.aborted) break;
      if (contentType === CBOR_SEQUENCE) {
        for (const item of batch) await send(bytesOf(encode([item])), "binary");
        continue;
      }
      const events = encode(batch);
      const bytes = bytesOf(events);
      for (const event of isText ? lines(bytes) : messages(bytes)) await send(event, isText ? "text" : "binary");
    }
  } finally {
    if (!gone.signal.aborted) peer.close(1000);
  }
}

function bytesOf(events: EventBatch): Uint8Array { return events instanceof Uint8Array ? events : assemble(events); }

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
