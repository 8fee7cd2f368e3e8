/**
 * An answer on its way to who asked, as its trace has it: put into bytes, written, and with its end the end of the request's span.
 *
 * Source: kubernetes v1.36 apiserver/pkg/endpoints/handlers/{get,watch,responsewriters/writers}.go
 */
import type { RequestInfo } from "../request-info.ts";
import type { ServerRequest } from "../request.ts";
import type { Span } from "./tracer.ts";

interface Sent {
  readonly request: ServerRequest;
  readonly info: RequestInfo;
  readonly span: Span;
  /** Of the verb, which sends what it has come to. Absent: none has. */
  readonly part: Span | undefined;
  /** The part says that it is about to write. */
  readonly isTold: boolean;
  readonly code: number;
}

export class Sending {
  readonly #sent: Sent;

  constructor(sent: Sent) {
    this.#sent = sent;
  }

  /** Of one object or list, which began to be encoded at `beganMs` (Clock.uptimeMs). End it. */
  serializing(contentType: string, beganMs: number): Span {
    return this.#outer.child("SerializeObject", 1, this.#attributes(contentType), beganMs);
  }

  /** Of a watch that begins with what is there, until that is sent: end it with `listed`. Undefined: another watch. */
  watching(contentType: string): Span | undefined {
    const span = this.#sent.part?.child("WatchServer.HandleHTTP", 1, this.#attributes(contentType));
    span?.event("About to start writing response");
    return span;
  }

  /** What a watch begins with is sent. */
  listed(watching: Span): void {
    watching.event("Writing initial events done");
    watching.end();
    this.#sent.part?.end();
  }

  /** Nothing more is sent. */
  done(): void {
    const { span, part, isTold, code } = this.#sent;
    if (isTold) part?.event("Writing http response done");
    part?.end();
    span.end(code);
  }

  get #outer(): Span { return this.#sent.part ?? this.#sent.span; }

  #attributes(contentType: string): Readonly<Record<string, string>> {
    const { request: { method, path, protocol = "" }, info, span } = this.#sent;
    const mediaType = contentType.split(";", 1)[0]!;
    const encodeGV = info.isResource ? (info.group === "" ? info.version : `${info.group}/${info.version}`) : "";
    return { "audit-id": span.auditId, method, url: path, protocol, mediaType, encoder: JSON.stringify({ encodeGV, encoder: mediaType.split(/[/.]/).at(-1), name: "versioning" }) };
  }
}
