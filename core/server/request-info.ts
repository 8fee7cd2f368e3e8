/**
 * What a request is about, read from its method and path.
 *
 *   /api/v1/namespaces/{ns}/pods/{name}/{subresource}/{rest…}      /apis/{group}/{version}/…      anything else: a path
 *
 * Source: kubernetes v1.36 apiserver/pkg/endpoints/request/requestinfo.go
 */
import { parseFieldSelector } from "../api/meta/field-selector.ts";
import { withoutLast } from "../api/meta/linear.ts";
import { pathSegmentName } from "../api/meta/names.ts";
import type { Verb } from "../api/request/attributes.ts";
import { isTrue } from "../api/request/query.ts";

export interface ResourceRequestInfo {
  readonly isResource: true;
  readonly verb: Verb;
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  /** What follows the subresource: the path below …/proxy/. Begins with "/" if there is any. */
  readonly rest: string;
  /** Whether the path goes on below a subresource where no route of a built-in resource does. */
  readonly isBelowRoutes: boolean;
  /** Whether the path has a place for a namespace and names none there: …/namespaces//pods. */
  readonly namesNoNamespace: boolean;
  readonly path: string;
}

export interface PathRequestInfo {
  readonly isResource: false;
  readonly verb: Verb;
  readonly path: string;
  /** What it is about is missing, so that nobody can be asked whether it is allowed. */
  readonly isIncomplete?: boolean;
}

export type RequestInfo = ResourceRequestInfo | PathRequestInfo;

/** Subresources of a namespace object itself; any other word after /namespaces/{ns}/ is a resource in it. */
const NAMESPACE_SUBRESOURCES = new Set(["status", "finalize"]);
/** Everything after these belongs to the request's target. */
const OPEN_ENDED = new Set(["proxy"]);
/** A client whose namespace is an empty text asks like this. */
const NO_NAMESPACE = /^\/(?:api|apis\/[^/]+)\/[^/]+\/(?:watch\/)?namespaces\/\/[^/]/;

export function requestInfo(method: string, path: string, query: URLSearchParams): RequestInfo {
  const parts = path.split("/").filter((part) => part !== "");
  const other: PathRequestInfo = { isResource: false, verb: method.toLowerCase(), path };
  const core = parts[0] === "api";
  if (!core && parts[0] !== "apis") return other;
  const group = core ? "" : (parts[1] ?? "");
  const version = parts[core ? 1 : 2] ?? "";
  const groupParts = core ? 2 : 3;
  const decoded = parts.slice(groupParts).map((part) => decodePart(part).split("/")); // an escaped slash parts, too: no name has one
  const all = decoded.flat();
  let rest = all;
  if (rest.length === 0) return other;

  let verb = verbOf(method);
  if (rest[0] === "watch" || rest[0] === "proxy") { // the old forms /api/v1/watch/…, long deprecated
    if (rest.length === 1) return { ...other, isIncomplete: true };
    if (rest[0] === "watch") verb = "watch";
    else verb = "proxy";
    rest = rest.slice(1);
  }
  let namespace = "";
  const namesNoNamespace = rest.length > 1 && !NAMESPACE_SUBRESOURCES.has(rest[1]!) && NO_NAMESPACE.test(path);
  if (namesNoNamespace) rest = rest.slice(1);
  else if (rest[0] === "namespaces" && rest.length > 1) {
    namespace = rest[1]!;
    if (rest.length > 2 && !NAMESPACE_SUBRESOURCES.has(rest[2]!)) rest = rest.slice(2);
  }
  const [resource = "", name = "", third = ""] = rest;
  const subresource = verb === "proxy" ? "" : third;
  if (verb === "get" && name === "") verb = "list";
  if (verb === "delete" && name === "") verb = "deletecollection";
  let listName = "";
  if (verb === "list") {
    if (isTrue(query.get("watch"))) verb = "watch";
    listName = nameSelected(query.get("fieldSelector"));
  }
  const below = OPEN_ENDED.has(subresource) ? path.slice(indexAfter(path, `/${subresource}`, partsBefore(path, groupParts + partsFor(decoded, all.length - rest.length + 3)))) : "";
  return { isResource: true, verb, group, version, resource, subresource, namespace, name: name || listName, rest: below, isBelowRoutes: rest.length > 3 && !OPEN_ENDED.has(subresource), namesNoNamespace, path };
}

function verbOf(method: string): Verb {
  switch (method) {
    case "POST": return "create";
    case "PUT": return "update";
    case "PATCH": return "patch";
    case "DELETE": return "delete";
    case "GET": case "HEAD": return "get";
    default: return ""; // none that a resource knows
  }
}

function decodePart(part: string): string {
  if (!part.includes("%")) return part;
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // not an escape after all: the name will simply not be found
  }
}

/** A list of metadata.name=x, whatever else it selects, is a request for that one object, which is how RBAC's resourceNames come to apply to lists. */
function nameSelected(fieldSelector: string | null): string {
  if (!fieldSelector?.includes("metadata.name")) return "";
  try {
    const name = parseFieldSelector(fieldSelector).exactMatch("metadata.name") ?? "";
    return pathSegmentName(name).length === 0 ? name : "";
  } catch {
    return ""; // the list refuses it
  }
}

/** Whether a part of the path is empty, but for the ends, the place of a namespace and what belongs to the request's target: no route has such. */
export function hasEmptyPart(path: string, below = ""): boolean {
  if (NO_NAMESPACE.test(path)) return hasEmptyPart(path.replace("/namespaces//", "/namespaces/"), below);
  return withoutLast(path.slice(0, path.length - below.length).replace(/%2f/gi, "/").replace(/^\/+/, ""), "/").includes("//");
}

/** How many parts of the path make the first `count` of what they are decoded. */
function partsFor(decoded: readonly (readonly string[])[], count: number): number {
  let made = 0;
  return decoded.findIndex((one) => (made += one.length) >= count) + 1;
}

/** Offset in `path` just before its nth non-empty part (1-based). */
function partsBefore(path: string, nth: number): number {
  let at = 0;
  for (let seen = 0; at < path.length; at++) {
    if (path[at] === "/" && path[at + 1] !== "/" && path[at + 1] !== undefined && ++seen === nth) return at;
  }
  return at;
}

function indexAfter(path: string, text: string, from: number): number {
  return path.startsWith(text, from) ? from + text.length : path.length;
}
