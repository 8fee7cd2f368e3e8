/**
 * What is asked for and nobody serves. Upstream has two answers: below the paths of groups that are built in its router's Status, and for all else,
 * groups of definitions among it, the plain text of Go's HTTP library.
 *
 * Source: kubernetes v1.36 apiserver/pkg/server/handler.go, pkg/util/notfoundhandler/not_found_handler.go
 */
import { StatusError } from "../api/meta/status-error.ts";
import { builtInResources } from "../api/schema/resources.ts";
import { type Answer, raw } from "./answer.ts";

export class NotServed extends StatusError {
  constructor() {
    super({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message: "the server could not find the requested resource", reason: "NotFound", details: {}, code: 404 });
  }
}

export function notServedAnswer(error: NotServed, path: string): Answer {
  if (hasRouter(path)) return { type: "object", status: 404, object: { ...error.status } };
  return raw("404 page not found\n", "text/plain; charset=utf-8", 404, { "x-content-type-options": "nosniff" });
}

/** What has a router of its own without being a group. */
const ROUTED = ["/.well-known/openid-configuration/", "/openid/v1/jwks/"];

function hasRouter(path: string): boolean {
  if (ROUTED.some((root) => path.startsWith(root))) return true;
  const [, root, group] = path.split("/");
  return root === "api" || root === "version" || (root === "apis" && builtInResources.groupVersions().some((one) => one.group !== "" && one.group === group));
}
