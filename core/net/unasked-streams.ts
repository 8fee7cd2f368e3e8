/**
 * HTTP/2 streams that a server opens unasked, for clients of servers that anybody may have written.
 *
 *   import "../../core/net/unasked-streams.ts";      once a process, beside whatever makes connections: node:http2 itself, or @grpc/grpc-js
 *
 * RFC 9113 (5.1) has them end the connection. Bun makes a stream of them that it shows to nobody, and that says the connection's error once more at its end: where nobody
 * can listen, so that the process would end. They end without a word here; those that we opened, whose numbers are odd, say what they always said.
 */
import { clientPrototypes } from "./engine-http2.ts";

interface Stream { readonly id?: number; _destroy(error: Error | null, done: (error?: Error | null) => void): void }

function quietUnaskedStreams(): void {
  const streams = clientPrototypes().streams as Stream;
  const { _destroy: destroy } = streams;
  streams._destroy = function (this: Stream, error, done) { destroy.call(this, error, (this.id ?? 1) % 2 === 0 ? () => done(null) : done); };
}

quietUnaskedStreams();
