/**
 * What is asked for and nobody serves. Upstream has two answers: below the paths of groups that are built in its router's Status, and for all else,
 * groups of definitions among it, the plain text of Go's HTTP library.
 *
 * Source: kubernetes v1.36 apiserver/pkg/server/handler.go, pkg/util/notfoundhandler/not_found_handler.go
 */
import { NOT_SERVED, StatusError, statusError } from "../api/meta/status-error.ts";
import { builtInResources } from "../api/schema/resources.ts";
import { type Answer, raw } from "./answer.ts";

const TOO_EARLY = statusError({ code: 503, reason: "ServiceUnavailable", message: "the request has been made before all known HTTP paths have been installed, please try again", details: { retryAfterSeconds: 5 } }).status;

export class NotServed extends StatusError {
  constructor() {
    super({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message: NOT_SERVED, reason: "NotFound", details: {}, code: 404 });
  }
}

/** `isAllKnown`: what other servers serve behind this one, too. Until it is, who asks is not to take it for nothing. */
export function notServedAnswer(error: NotServed, path: string, { isAllKnown }: { readonly isAllKnown: boolean }): Answer {
  if (hasRouter(path)) return { type: "object", status: 404, object: { ...error.status } };
  if (!isAllKnown) return { type: "object", status: TOO_EARLY.code!, object: { ...TOO_EARLY } };
  return raw("404 page not found\n", "text/plain; charset=utf-8", 404, { "x-content-type-options": "nosniff" });
}

/** What has a router of its own without being a group. */
const ROUTED = ["/.well-known/openid-configuration/", "/openid/v1/jwks/"];

function hasRouter(path: string): boolean {
  if (ROUTED.some((root) => path.startsWith(root))) return true;
  const [, root, group] = path.split("/");
  return root === "api" || root === "version" || (root === "apis" && builtInResources.groupVersions().some((one) => one.group !== "" && one.group === group));
}
