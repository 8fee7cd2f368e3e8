/**
 * How fast requests of one connection of HTTP/1.1 are heard of. A client may send them without waiting for answers, a thousand in a piece that is read at once: node's parser begins
 * them all, and each costs its memory until it is answered. Here it is given no more while enough are under way, and the connection is not read meanwhile. Go begins one at a time.
 *
 *   server.emit("connection", socket);
 *   const turns = requestTurns(socket, () => underWay);
 *   turns.next();                                      one of them has ended
 *   const head = Buffer.concat([head, turns.leave()])  the connection is somebody else's from here on
 */
import type { Socket } from "node:net";

export interface RequestTurns {
  next(): void;
  /** What came and was not given to the parser. It gets nothing more. */
  leave(): Buffer;
}

/** Requests that may be under way before the parser waits; those of one slice may be more. */
const UNDER_WAY_MAX = 16;
/** What the parser gets at once. Twice as much after each in which no request began: of a body there may be much. */
const SLICE_BYTES_MIN = 4 * 1024;

/** `underWay`: how many requests of this connection are not answered yet. */
export function requestTurns(socket: Socket, underWay: () => number): RequestTurns {
  const parsers = socket.listeners("data") as ((bytes: Buffer) => void)[];
  let waiting: Buffer[] = [];
  let slice = SLICE_BYTES_MIN;
  let isParsing = false, isHeld = false, hasLeft = false;

  function next(): void {
    if (isParsing || hasLeft) return;
    isParsing = true; // what it begins may end at once
    while (waiting.length > 0 && underWay() < UNDER_WAY_MAX) {
      const [piece] = waiting as [Buffer], before = underWay();
      const part = piece.subarray(0, slice);
      if (part.length === piece.length) waiting.shift();
      else waiting[0] = piece.subarray(part.length);
      for (const parse of parsers) parse.call(socket, part);
      slice = underWay() === before ? slice * 2 : SLICE_BYTES_MIN;
    }
    isParsing = false;
    if (hasLeft) return;
    if (waiting.length > 0) {
      isHeld = true;
      socket.pause();
    } else if (isHeld) {
      isHeld = false;
      socket.resume();
    }
  }

  function take(piece: Buffer): void {
    waiting.push(piece);
    next();
  }

  for (const parse of parsers) socket.off("data", parse);
  socket.on("data", take);
  return {
    next,
    leave() {
      socket.off("data", take);
      hasLeft = true;
      const rest = Buffer.concat(waiting);
      waiting = [];
      return rest;
    },
  };
}
