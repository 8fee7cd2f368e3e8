/**
 * Where the body of an HTTP/1 message begins; -1: not there yet. Lines without a carriage return are lines too, as for Go's client: small servers send them.
 * Looks no further than it must, so that many heads in a row cost what they weigh. `from`: there is no line end before that counts.
 */
export function headEnd(bytes: Buffer, from = 0): number {
  for (let at = bytes.indexOf(10, from); at >= 0; at = bytes.indexOf(10, at + 1)) {
    if (bytes[at + 1] === 10) return at + 2;
    if (bytes[at + 1] === 13 && bytes[at + 2] === 10) return at + 3;
  }
  return -1;
}
