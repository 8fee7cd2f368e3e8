/**
 * HTTP/2 streams beside one whose reader has paused, for clients and servers.
 *
 *   import "./waiting-frames.ts";      once a process, beside whatever makes or takes connections of HTTP/2
 *
 * While one stream waits for its window, Bun lets whatever is written to another one of its connection wait as well, until the peer's next frame: a download, or a watch, stopped for as
 * long as its peer had nothing to say, and for ever where it waited itself. Here what waits is sent, as far as its windows go, once it has been written.
 *
 * Source: https://github.com/oven-sh/bun/pull/43422
 */
import { clientPrototypes } from "./engine-http2.ts";

/** As a bit of what writeStream says: nothing of it waits. */
const SENT = 16;

interface Frames {
  writeStream(...written: unknown[]): number;
  /** What may not be sent yet goes on waiting. */
  flush(): unknown;
}

function sendWaitingFrames(): void {
  const prototype = clientPrototypes().frames as Partial<Frames> | undefined, writeStream = prototype?.writeStream;
  if (!writeStream) return;
  const waiting = new Set<Frames>();
  const send = (frames: Frames): void => {
    waiting.delete(frames);
    frames.flush();
  };
  prototype.writeStream = function (this: Frames, ...written) {
    const told = writeStream.apply(this, written);
    if ((told & SENT) === 0 && !waiting.has(this)) {
      waiting.add(this);
      process.nextTick(send, this);
    }
    return told;
  };
}

sendWaitingFrames();
