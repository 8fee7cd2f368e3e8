/**
 * Whose turn it is among requests of one connection of HTTP/1.1. A client may send them without waiting for answers, a thousand in a piece that is read at once: node's parser begins
 * them all, and each costs its memory until it is answered. Here it is given no more while enough are under way, and the connection is not read meanwhile. What was parsed is
 * acted on one at a time, as Go does: what is read may be what was written just before.
 *
 *   server.emit("connection", socket);
 *   const turns = requestTurns(socket, () => underWay);
 *   turns.inTurn(() => answer());                      once those before it have ended
 *   turns.next();                                      one of them has ended
 *   const head = Buffer.concat([head, turns.leave()])  the connection is somebody else's from here on
 */
import type { Socket } from "node:net";

export interface RequestTurns {
  next(): void;
  /** Now, or when as many as have been given before have ended: until `next` is called for this one, it has the connection to itself. Never, if the connection is lost before. */
  inTurn(begin: () => void): void;
  /** What came and was not given to the parser. It gets nothing more. */
  leave(): Buffer;
}

/** Requests that may be under way, or wait for their turn, before the parser waits; those of one slice may be more. */
const UNDER_WAY_MAX = 16;
/** What the parser gets at once. Twice as much after each in which no request began: of a body there may be much. */
const SLICE_BYTES_MIN = 4 * 1024;

/** `underWay`: how many requests of this connection are not answered yet. */
export function requestTurns(socket: Socket, underWay: () => number): RequestTurns {
  const parsers = socket.listeners("data") as ((bytes: Buffer) => void)[];
  let waiting: Buffer[] = [];
  let slice = SLICE_BYTES_MIN;
  let isParsing = false, isHeld = false, hasLeft = false;
  const parsed: (() => void)[] = []; // whose turn has not come
  let isTaken = false; // by a request that was begun in its turn

  function inTurn(begin: () => void): void {
    if (isTaken) return void parsed.push(begin);
    isTaken = true;
    begin();
  }

  function next(): void {
    isTaken = false;
    if (socket.destroyed) parsed.length = 0;
    const first = parsed.shift();
    if (first) inTurn(first);
    parse();
  }

  function parse(): void {
    if (isParsing || hasLeft) return;
    isParsing = true; // what it begins may end at once
    while (waiting.length > 0 && underWay() < UNDER_WAY_MAX) {
      const [piece] = waiting as [Buffer], before = underWay();
      const part = piece.subarray(0, slice);
      if (part.length === piece.length) waiting.shift();
      else waiting[0] = piece.subarray(part.length);
      for (const parser of parsers) parser.call(socket, part);
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
    parse();
  }

  for (const parser of parsers) socket.off("data", parser);
  socket.on("data", take);
  return {
    next,
    inTurn,
    leave() {
      socket.off("data", take);
      hasLeft = true;
      const rest = Buffer.concat(waiting);
      waiting = [];
      return rest;
    },
  };
}
