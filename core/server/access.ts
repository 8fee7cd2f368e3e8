/**
 * Who a caller is and what it may do, asked of the authenticator and the authorizer, in the API server's words.
 */
import { notAllowed, StatusError, unauthorized } from "../api/meta/status-error.ts";
import type { Attributes } from "../api/request/attributes.ts";
import { ANONYMOUS, type UserInfo } from "../api/request/user.ts";
import type { Authenticated } from "../authn/authenticator.ts";
import type { Authorizer } from "../authz/authorizer.ts";
import type { RequestInfo } from "./request-info.ts";
import type { ServerRequest } from "./request.ts";
import type { ServerDeps } from "./scope.ts";

/** Throws 401. */
export async function authenticate(server: Pick<ServerDeps, "authenticator" | "log">, request: ServerRequest): Promise<Authenticated> {
  try {
    return (await server.authenticator.authenticate(request, request.signal)) ?? { user: ANONYMOUS };
  } catch (error) {
    if (error instanceof StatusError) throw error;
    server.log.warn("a request could not be authenticated", { path: request.path, error });
    throw unauthorized();
  }
}

/** Throws 403. */
export async function authorize(authorizer: Authorizer, attributes: Attributes): Promise<void> {
  const { decision, reason } = await authorizer.authorize(attributes);
  if (decision !== "allow") throw refused(attributes, reason);
}

/** What authorization refuses tells of what it was asked: no browser is to take it for anything else. Source: kubernetes v1.36 apiserver/pkg/endpoints/handlers/responsewriters/errors.go */
export function unsniffed(request: ServerRequest, error: unknown): unknown {
  request.setHeader?.("X-Content-Type-Options", "nosniff");
  return error;
}

export function refused(attributes: Attributes, reason: string): StatusError {
  const { user, ...attempt } = attributes;
  return notAllowed(attributes.isResource ? { ...attempt, user: user.name, path: undefined } : { ...attempt, user: user.name }, reason);
}

export function attributesOf(info: RequestInfo, request: ServerRequest, user: UserInfo): Attributes {
  if (!info.isResource) return { ...info, user };
  const { verb, group, version, resource, subresource, namespace, name, path } = info;
  const selects = SELECTING.has(verb) && !(verb === "watch" && OLD_WATCH.test(path));
  return {
    isResource: true, verb, group, version, resource, subresource, namespace, name, path, user,
    labelSelector: selects ? request.query.get("labelSelector") ?? undefined : undefined,
    fieldSelector: selects ? request.query.get("fieldSelector") ?? undefined : undefined,
  };
}

/** What is asked for is some of what there is, and authorizers may look at which; of the old form of watches not all take selectors. Source: kubernetes v1.36 apiserver/pkg/endpoints/request/requestinfo.go */
const SELECTING: ReadonlySet<string> = new Set(["list", "watch", "deletecollection"]);
const OLD_WATCH = /^\/+(?:api|apis\/+[^/]+)\/+[^/]+\/+watch\//;
