/** /debug/pprof and /debug/flags of the API server, and of the components that have ports of their own. */
import type { DebugPages } from "../observe/debug-pages.ts";
import { raw } from "./answer.ts";
import type { ServerRequest } from "./request.ts";
import type { PathHandler } from "./scope.ts";

export function debugPath(pages: DebugPages): PathHandler {
  return async (request) => {
    if (!request.path.startsWith("/debug/")) return undefined;
    const { method, path, query, signal } = request;
    const found = await pages({ method, path, query, signal, body: () => textOf(request) });
    return found && raw(found.body, found.contentType, found.status, found.headers);
  };
}

async function textOf(request: ServerRequest): Promise<string> {
  const body = await request.body();
  return body.type === "bytes" ? Buffer.from(body.bytes).toString() : String(body.value);
}
