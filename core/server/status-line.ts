/** The status of an answer, in Go's words where node has others: HTTP/1.1 clients show them. Source: Go net/http/status.go */
import { type ServerResponse, STATUS_CODES } from "node:http";

const GO: Readonly<Record<number, string>> = { 413: "Request Entity Too Large", 414: "Request URI Too Long", 416: "Requested Range Not Satisfiable", 418: "I'm a teapot", 509: "status code 509" };

export function reasonOf(status: number): string { return GO[status] ?? STATUS_CODES[status] ?? `status code ${status}`; }

export function setStatus(response: ServerResponse, status: number): void {
  response.statusCode = status;
  if ((status in GO || !(status in STATUS_CODES)) && !("stream" in response)) response.statusMessage = reasonOf(status); // HTTP/2 has none
}
