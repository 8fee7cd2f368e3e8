/** The documents of the issuer of tokens, which are read and nothing else. */
import { openIdDocument } from "../../core/authn/openid.ts";
import { methodNotAllowed } from "../../core/api/meta/status-error.ts";
import { type Answer, raw } from "../../core/server/answer.ts";
import type { ServerRequest } from "../../core/server/request.ts";

/** Nothing, if something else is asked for. Throws 405. */
export function openIdAnswer({ method, path }: Pick<ServerRequest, "method" | "path">, issuer: Parameters<typeof openIdDocument>[1]): Answer | undefined {
  const found = openIdDocument(path, issuer);
  if (!found) return undefined;
  if (method !== "GET") throw methodNotAllowed();
  return raw(found.body, found.contentType, 200, { "cache-control": found.cacheControl });
}
