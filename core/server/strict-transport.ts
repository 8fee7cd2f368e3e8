/** Strict-Transport-Security on every answer, for browsers. Source: kubernetes v1.36 apiserver/pkg/server/filters/hsts.go */
import type { Handler } from "./scope.ts";

/** No directives: no header. */
export function strictTransport(handler: Handler, directives: readonly string[]): Handler {
  if (directives.length === 0) return handler;
  const value = directives.join("; ");
  return (request) => {
    request.setHeader?.("Strict-Transport-Security", value);
    return handler(request);
  };
}

/** What is wrong with directives, as upstream says it. Source: kubernetes v1.36 apiserver/pkg/server/options/server_run_options.go validateHSTSDirectives */
export function strictTransportProblem(directives: readonly string[]): string | undefined {
  for (const directive of directives) {
    if (directive.trim() === "") return "empty value in strict-transport-security-directives";
    if (directive !== "includeSubDomains" && directive !== "preload" && !/^max-age=[^=]*$/.test(directive))
      return "strict-transport-security-directives invalid, allowed values: max-age=expireTime, includeSubDomains, preload. see https://tools.ietf.org/html/rfc6797#section-6.1 for more information";
  }
  return undefined;
}
