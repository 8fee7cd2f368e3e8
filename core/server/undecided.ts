/** Whether a request is allowed could not be found out, or that it has come could not be recorded: a text, as Go's HTTP library answers. Source: kubernetes v1.36 apiserver/pkg/endpoints/handlers/responsewriters/errors.go InternalError */
import { goQuote } from "../api/meta/go-quote.ts";
import { raw, type RawAnswer } from "./answer.ts";
import type { ServerRequest } from "./request.ts";

export class Undecided extends Error {
  override readonly name = "Undecided";

  answer({ path, wire }: Pick<ServerRequest, "path" | "wire">): RawAnswer {
    const asked = wire?.rawPath ?? path;
    const uri = wire?.rawQuery ? `${asked}?${wire.rawQuery}` : asked;
    const text = `Internal Server Error: ${goQuote(uri)}: ${this.message}`.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
    return raw(`${text}\n`, "text/plain; charset=utf-8", 500, { "x-content-type-options": "nosniff" });
  }
}
