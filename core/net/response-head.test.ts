import { expect, test } from "vitest";
import { type Head, HeadError, readHead } from "./response-head.ts";

const OK = "HTTP/1.1 200 OK\r\n";

test.each<[string, string, Partial<Head>]>([
  ["with a length", `${OK}Content-Length: 2\r\n\r\n`, { status: 200, statusText: "OK", framing: { type: "length", length: 2 } }],
  ["with the same length twice", `${OK}Content-Length: 2\r\nContent-Length: 2\r\n\r\n`, { headers: [["Content-Length", "2"]], framing: { type: "length", length: 2 } }],
  ["in chunks, and a length that says nothing", `${OK}Content-Length: 2\r\nTransfer-Encoding: Chunked\r\nTrailer: x-sum, X-A\r\n\r\n`, { headers: [["Transfer-Encoding", "Chunked"], ["Trailer", "x-sum, X-A"]], framing: { type: "chunked" }, trailerNames: ["X-Sum", "X-A"] }],
  ["until the end", OK, { framing: { type: "length", length: undefined }, trailerNames: [] }],
  ["of an old version", "HTTP/1.0 200\r\nTransfer-Encoding: gzip\r\n\r\n", { statusText: "", framing: { type: "length", length: undefined } }],
  ["of a new version", "HTTP/2.0 200 OK\r\n\r\n", { status: 200 }],
  ["in lines that go on, with a name that is none", `${OK}X-A: 1\r\n  2\r\nBad Name: 3\r\n\r\n`, { headers: [["X-A", "1 2"], ["Bad Name", "3"]] }],
  ["without a body", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", { framing: { type: "length", length: 0 } }],
])("a head %s", (_, text, expected) => expect(readHead(text)).toMatchObject(expected));

test.each([
  ["SSH-2.0-OpenSSH", 'malformed HTTP response "SSH-2.0-OpenSSH"'],
  ["\0\x01\"", 'malformed HTTP response "\\x00\\x01\\""'],
  ["hello there", 'malformed HTTP status code "there"'],
  ["HTTP/1.1 20 OK", 'malformed HTTP status code "20"'],
  ["HTTP/1.x 200 OK", 'malformed HTTP version "HTTP/1.x"'],
  [`${OK}NoColon\r\n`, 'malformed MIME header: missing colon: "NoColon"'],
  [`${OK} : 1\r\n`, 'malformed MIME header initial line: " : 1"'],
  [`${OK}X-A: a\x01b\r\n`, 'malformed MIME header line: "X-A: a\\x01b"'],
  [`${OK}X(A: 1\r\n`, 'malformed MIME header line: "X(A: 1"'],
  [`${OK}Content-Length: xx\r\n`, 'bad Content-Length "xx"'],
  [`${OK}Content-Length: +2\r\n`, 'bad Content-Length "+2"'],
  [`${OK}Content-Length: \r\n`, 'invalid empty Content-Length ""'],
  [`${OK}Content-Length: 2\r\nContent-Length: 3\r\n`, 'http: message cannot contain multiple Content-Length headers; got ["2" "3"]'],
  [`${OK}Transfer-Encoding: gzip, chunked\r\n`, 'unsupported transfer encoding: "gzip, chunked"'],
  [`${OK}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n`, 'too many transfer encodings: ["chunked" "chunked"]'],
])("%j is refused", (text, message) => expect(() => readHead(text)).toThrow(new HeadError(message)));
