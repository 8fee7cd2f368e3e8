/** Which browsers' pages of elsewhere may ask: CORS, with credentials. A preflight request goes no further, and nobody is asked who sends it. Source: kubernetes v1.36 apiserver/pkg/server/filters/cors.go */
import type { Random } from "../lifecycle/random.ts";
import type { Handler } from "./scope.ts";

const HEADERS = {
  "Access-Control-Allow-Methods": "POST, GET, OPTIONS, PUT, DELETE, PATCH",
  "Access-Control-Allow-Headers": "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since",
  "Access-Control-Expose-Headers": "Date",
  "Access-Control-Allow-Credentials": "true",
};

/** `isAllowed`: an origin, scheme://host:port as browsers send it; undefined: none is. */
export function crossOrigin(handler: Handler, { isAllowed, random }: { readonly isAllowed: ((origin: string) => boolean) | undefined; readonly random: Pick<Random, "uuid"> }): Handler {
  if (!isAllowed) return handler;
  return (request) => {
    const origin = request.header("origin") ?? "";
    if (origin === "" || !isAllowed(origin)) return handler(request);
    for (const [name, value] of Object.entries({ "Access-Control-Allow-Origin": origin, ...HEADERS })) request.setHeader?.(name, value);
    if (request.method !== "OPTIONS") return handler(request);
    request.setHeader?.("Audit-Id", request.header("audit-id") || random.uuid());
    return Promise.resolve({ type: "raw", status: 204, headers: {}, body: "" });
  };
}

/** Why a pattern of origins is not taken, as upstream says it: one that can end anywhere lets in hosts that only begin alike. Source: kubernetes v1.36 apiserver/pkg/server/options/server_run_options.go validateCorsAllowedOriginList */
export function originPatternProblem(pattern: string): string | undefined {
  if (pattern === "") return "empty value in cors-allowed-origins";
  const isPinned = (pattern.includes("^") || pattern.includes("//")) && (pattern.includes("$") || pattern.includes(":"));
  return isPinned ? undefined : "cors-allowed-origins has an invalid regular expression: regular expression does not pin to start/end of host in the origin header";
}
