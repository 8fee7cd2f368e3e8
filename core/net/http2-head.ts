/**
 * How long the head of a request may be over HTTP/2. One that is longer ends the connection, and with it whatever else is on it: others' requests, and watches. So it is told before it is sent.
 *
 * Source: RFC 9113 section 6.5.2 (SETTINGS_MAX_HEADER_LIST_SIZE), golang.org/x/net/http2 transport.go (errRequestHeaderListSize)
 */

/** node:http2's own, in Bun, whatever the other side says it takes. */
const HEAD_BYTES_MAX = 65_535;
/** Of each field, beside its name and its value. */
const FIELD_BYTES = 32;

export class HeadTooLong extends Error {
  constructor() {
    super("http2: request header list larger than peer's advertised limit");
    this.name = "HeadTooLong";
  }
}

/** Throws HeadTooLong. `headers`: with :method, :path and those. */
export function checkHead(headers: Readonly<Record<string, string | readonly string[] | undefined>>): void {
  let bytes = 0;
  for (const [name, value = []] of Object.entries(headers))
    for (const one of typeof value === "string" ? [value] : value) bytes += name.length + Buffer.byteLength(one) + FIELD_BYTES;
  if (bytes > HEAD_BYTES_MAX) throw new HeadTooLong();
}
