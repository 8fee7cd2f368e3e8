/** The answer that comes on a stream of HTTP/2, as `fetch` gives it: read no faster than its reader reads, and unpacked. A text is put together without a stream of its own. */
import type * as http2 from "node:http2";

/** Of a Response what is asked for here; names of headers are in lower case. */
export interface FetchAnswer extends Pick<Response, "status" | "ok" | "body" | "text"> { readonly headers: Pick<Headers, "get"> }

interface Told {
  /** Called for each piece that comes. */
  heard(): void;
  /** Why it ended early, if it did. */
  failure(): unknown;
}

type Bytes = Uint8Array<ArrayBuffer>;

/** Who reads: hears of each piece, then once of the end, with why it came early. */
interface Reader { piece(piece: Bytes): void; end(error: unknown): void }

/** NGHTTP2_CANCEL */
const CANCEL = 8;
/** An answer without a body: Response insists on it. */
const BODILESS: ReadonlySet<number> = new Set([204, 205, 304]);
/** Said of the packed body. */
const OF_PACKED: ReadonlySet<string> = new Set(["content-encoding", "content-length"]);

const utf8 = new TextDecoder();

export class Http2Answer implements FetchAnswer {
  readonly status: number;
  readonly headers: FetchAnswer["headers"];
  readonly #stream: http2.ClientHttp2Stream;
  readonly #isPacked: boolean;
  readonly #arrived: Bytes[] = []; // before anybody read
  #reader: Reader | undefined;
  #ended: { readonly error: unknown } | undefined;
  #body: ReadableStream<Bytes> | undefined;

  constructor(stream: http2.ClientHttp2Stream, received: http2.IncomingHttpHeaders & http2.IncomingHttpStatusHeader, { heard, failure }: Told) {
    const isPacked = received["content-encoding"] === "gzip";
    this.status = received[":status"] ?? 502;
    this.headers = { get: (name) => (isPacked && OF_PACKED.has(name) ? null : received[name]?.toString() ?? null) };
    this.#isPacked = isPacked;
    this.#stream = stream;
    stream.on("data", (piece: Bytes) => {
      heard();
      if (this.#reader) return this.#reader.piece(piece);
      this.#arrived.push(piece);
      stream.pause();
    });
    stream.on("end", () => this.#end(failure()));
    stream.on("close", () => this.#end(failure() ?? new Error("http2: unexpected end of the stream")));
  }

  get ok(): boolean { return this.status >= 200 && this.status < 300; }

  get body(): ReadableStream<Bytes> | null {
    if (BODILESS.has(this.status)) return null;
    return (this.#body ??= this.#isPacked ? this.#pieces().pipeThrough(new DecompressionStream("gzip")) : this.#pieces());
  }

  async text(): Promise<string> {
    if (BODILESS.has(this.status)) return "";
    if (this.#isPacked) return await new Response(this.body).text();
    const pieces: Bytes[] = [];
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#read({ piece: (piece) => void pieces.push(piece), end: (error) => (error === undefined ? resolve() : reject(error)) });
    await promise;
    return utf8.decode(pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces));
  }

  #end(error: unknown): void {
    if (this.#ended) return;
    this.#ended = { error };
    this.#reader?.end(error);
  }

  #read(reader: Reader): void {
    this.#reader = reader;
    for (const piece of this.#arrived.splice(0)) reader.piece(piece);
    if (this.#ended) reader.end(this.#ended.error);
    else this.#stream.resume();
  }

  #pieces(): ReadableStream<Bytes> {
    const stream = this.#stream;
    return new ReadableStream({
      start: (controller) => this.#read({
        piece(piece) {
          controller.enqueue(piece);
          if ((controller.desiredSize ?? 0) <= 0) stream.pause();
        },
        end: (error) => (error === undefined ? controller.close() : controller.error(error)),
      }),
      pull: () => void stream.resume(),
      cancel: () => {
        this.#reader = { piece: () => undefined, end: () => undefined };
        stream.close(CANCEL);
      },
    });
  }
}
