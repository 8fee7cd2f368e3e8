/**
 * What answers at a port of a component's own, where upstream's kube-controller-manager and kube-scheduler tell how they are: who asks, may they, then
 * the paths. Nothing else is there, and /healthz, /livez and /readyz are for everybody.
 *
 * Source: kubernetes v1.36 controller-manager/app/serve.go, cmd/kube-scheduler/app/server.go, apiserver/pkg/server/options/authorization.go
 */
import { statusOf } from "../api/meta/status-error.ts";
import { isAnonymous } from "../authn/authn.ts";
import { type Answer, raw } from "./answer.ts";
import { attributesOf, authenticate, refused, unsniffed } from "./access.ts";
import { requestInfo } from "./request-info.ts";
import type { ServerRequest } from "./request.ts";
import type { Handler, PathHandler, ServerDeps } from "./scope.ts";
import { Undecided } from "./undecided.ts";

interface Deps extends Pick<ServerDeps, "authenticator" | "log"> {
  readonly authorizer: Pick<ServerDeps["authorizer"], "authorize">;
  readonly paths: readonly PathHandler[];
}

const ALWAYS_ALLOWED: ReadonlySet<string> = new Set(["/healthz", "/livez", "/readyz"]);

export function componentHandler(deps: Deps): Handler {
  async function answer(request: ServerRequest): Promise<Answer> {
    const { user } = await authenticate(deps, request);
    if (isAnonymous(user)) request.takeNoMore?.();
    const attributes = attributesOf(requestInfo(request.method, request.path, request.query), request, user);
    if (!ALWAYS_ALLOWED.has(request.path)) {
      const { decision, reason, error } = await deps.authorizer.authorize(attributes);
      if (decision !== "allow" && error !== undefined) throw new Undecided(error);
      if (decision !== "allow") throw unsniffed(request, refused(attributes, reason));
    }
    for (const handler of deps.paths) {
      const found = await handler(request, user);
      if (found) return found;
    }
    return raw("404 page not found\n", "text/plain; charset=utf-8", 404, { "x-content-type-options": "nosniff" });
  }

  return async (request) => {
    try {
      return await answer(request);
    } catch (error) {
      if (error instanceof Undecided) return error.answer(request);
      const status = statusOf(error);
      if (status.code === 500) deps.log.error("request failed", { method: request.method, path: request.path, error });
      return { type: "object", status: status.code ?? 500, object: { ...status } };
    }
  };
}
