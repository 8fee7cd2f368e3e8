/** The answer that comes on a stream of HTTP/2, as `fetch` gives it: read no faster than its reader reads, and unpacked. */
import type * as http2 from "node:http2";

interface Told {
  /** Called for each piece that comes. */
  heard(): void;
  /** Why it ended early, if it did. */
  failure(): unknown;
}

/** NGHTTP2_CANCEL */
const CANCEL = 8;
/** An answer without a body: Response insists on it. */
const BODILESS: ReadonlySet<number> = new Set([204, 205, 304]);

export function bodyOf(stream: http2.ClientHttp2Stream, { ":status": status = 502, ...received }: http2.IncomingHttpHeaders & http2.IncomingHttpStatusHeader, told: Told): Response {
  const headers = new Headers(pairsOf(received));
  const packed = headers.get("content-encoding") === "gzip";
  if (packed) for (const name of ["content-encoding", "content-length"]) headers.delete(name);
  const pieces = piecesOf(stream, told);
  return new Response(BODILESS.has(status) ? null : packed ? pieces.pipeThrough(new DecompressionStream("gzip")) : pieces, { status, headers });
}

function piecesOf(stream: http2.ClientHttp2Stream, { heard, failure }: Told): ReadableStream<Uint8Array<ArrayBuffer>> {
  let ended = false;
  return new ReadableStream({
    start(controller) {
      const end = (error: unknown): void => {
        if (ended) return;
        ended = true;
        if (error === undefined) controller.close();
        else controller.error(error);
      };
      stream.on("data", (piece: Uint8Array<ArrayBuffer>) => {
        heard();
        if (ended) return;
        controller.enqueue(piece);
        if ((controller.desiredSize ?? 0) <= 0) stream.pause();
      });
      stream.on("end", () => end(failure()));
      stream.on("close", () => end(failure() ?? new Error("http2: unexpected end of the stream")));
    },
    pull: () => void stream.resume(),
    cancel() {
      ended = true;
      stream.close(CANCEL);
    },
  });
}

function pairsOf(headers: http2.IncomingHttpHeaders): [string, string][] {
  return Object.entries(headers).flatMap(([name, value]): [string, string][] => (name.startsWith(":") || value === undefined ? [] : [[name, Array.isArray(value) ? value.join(", ") : value]]));
}
