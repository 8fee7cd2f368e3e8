/**
 * Which resource a request is for, and what handles its verb. Upstream's router has ways to certain paths only: what it has none to is told here as it is told there.
 *
 * Source: kubernetes v1.36 apiserver/pkg/endpoints/installer.go, apiextensions-apiserver/pkg/apiserver/customresource_handler.go
 */
import { badRequest, methodNotAllowed, methodNotSupported, notFound } from "../api/meta/status-error.ts";
import type { ServedResource } from "../registry/registry.ts";
import { checkAcceptable, isPrintable } from "./acceptable.ts";
import { NotServed } from "./not-served.ts";
import { hasEmptyPart, requestInfo, type ResourceRequestInfo } from "./request-info.ts";
import type { ServerRequest } from "./request.ts";
import type { ResourceHandler, ServerDeps } from "./scope.ts";

/** Throws NotServed, 400 and 405. */
export function servedResource(request: ServerRequest, info: ResourceRequestInfo, registry: ServerDeps["registry"]): ServedResource {
  if (info.path.includes("//") && isNameless(request, registry)) throw badRequest("name must be provided");
  const served = registry.find(info.group, info.version, info.resource);
  if (!served || hasEmptyPart(info.path, info.rest)) throw new NotServed();
  const { namespaced, verbs } = served.row;
  const isUnplaced = namespaced && info.namespace === "";
  if (served.custom) {
    if (info.verb === "watch" && request.method !== "GET") throw methodNotAllowed(); // POST …/watch/pods and the like
    if ((isUnplaced && !isListing(info.verb)) || isElsewhere(info, namespaced)) throw new NotServed();
    return served;
  }
  if (hasNoRoute(info, served.row)) throw new NotServed();
  if (isUnplaced) info.namesNoNamespace ? refuseUnplaced(info, served.row) : refuseEverywhere(info, verbs);
  if (info.verb === "watch" && request.method !== "GET") throw methodNotAllowed();
  if (request.method === "HEAD" && info.subresource !== "proxy") throw methodNotAllowed(); // upstream's router knows none
  return served;
}

/** A handler of its own, or the verb's. Where we do not serve metrics.k8s.io, a custom resource may. Throws NotServed, 404 and 405. */
export function handlerOf(info: ResourceRequestInfo, served: ServedResource, { special, verbs }: { readonly special: ServerDeps["special"]; readonly verbs: Readonly<Record<string, ResourceHandler>> }): ResourceHandler {
  return (served.custom ? undefined : special(info)) ?? genericHandler(verbs, info, served);
}

/** Of many objects. */
export function isListing(verb: string): boolean { return verb === "list" || verb === "watch"; }

/** Whether upstream's router has no way there: to a subresource there is not and below one, to the objects of what can only be created, through a namespace to what lives in none, and by the old form …/proxy/pods. */
function hasNoRoute(info: ResourceRequestInfo, { verbs, subresources, namespaced }: ServedResource["row"]): boolean {
  const { verb, name, subresource, isBelowRoutes } = info;
  if (verb === "proxy" || isBelowRoutes || isElsewhere(info, namespaced)) return true;
  if (subresource !== "") return !subresources.some((one) => one.name === subresource);
  const isCollection = verb === "list" || verb === "watch"; // with a name where a field selector asks for one
  return name !== "" && !isCollection && !verbs.some((one) => NAMED.has(one));
}

/** …/pods//log: the way is there, and only the name is missing. */
const NAMELESS = /^(\/(?:api|apis\/[^/]+)\/[^/]+\/(?:namespaces\/[^/]+\/)?[^/]+\/)(\/[^/].*)$/;

function isNameless({ method, path, query }: ServerRequest, registry: ServerDeps["registry"]): boolean {
  const [, before, after] = NAMELESS.exec(path) ?? [];
  const named = before === undefined ? undefined : requestInfo(method, `${before}x${after}`, query);
  if (!named?.isResource || named.name !== "x" || named.subresource === "" || hasEmptyPart(named.path, named.rest)) return false;
  const served = registry.find(named.group, named.version, named.resource);
  return served !== undefined && !served.custom && !hasNoRoute(named, served.row);
}

function isElsewhere({ namespace, namesNoNamespace, resource, name }: ResourceRequestInfo, namespaced: boolean): boolean { return (namespace !== "" || namesNoNamespace) && !namespaced && !(resource === "namespaces" && name === namespace); }

/** Where the namespace's place in the path is empty, those of all namespaces are listed and watched; for the rest there is none. Throws 400 and 405. */
function refuseUnplaced(info: ResourceRequestInfo, { verbs, subresources }: ServedResource["row"]): void {
  const { verb, name, subresource } = info;
  const allowed: readonly string[] = subresource === "" ? verbs : subresources.find((one) => one.name === subresource)?.verbs ?? [];
  if (!allowed.includes(verb) || (NAMED.has(verb) && name === "") || (verb === "create" && (name === "") !== (subresource === ""))) throw methodNotAllowed();
  const isCollection = subresource === "" && (verb === "list" || verb === "watch" || verb === "create"); // with a name where a field selector asks for one
  if (!isCollection) throw badRequest("Namespace parameter required.");
}

/** Of what lives in namespaces all of them together can be listed and watched, and nothing else done: upstream's router has no way there. Throws 404 and 405. */
function refuseEverywhere({ verb, name }: ResourceRequestInfo, allowed: readonly string[]): void {
  const isList = verb === "list" || verb === "watch"; // with a name where a field selector asks for one
  if (!allowed.includes("list") || (name !== "" && !isList)) throw new NotServed();
  if (!isList) throw methodNotAllowed();
}

/** The verb of the resource itself, or of a subresource that is a part or a view of it. Throws 404 and 405. */
function genericHandler(verbs: Readonly<Record<string, ResourceHandler>>, info: ResourceRequestInfo, { row, store, custom }: ServedResource): ResourceHandler {
  const allowed: readonly string[] | undefined = info.subresource === "" ? row.verbs : row.subresources.find(({ name }) => name === info.subresource)?.verbs;
  if (!allowed && custom) throw notFound({ group: info.group, resource: info.resource }, info.name);
  if (!allowed || isElsewhere(info, row.namespaced)) throw new NotServed();
  const handler = Object.hasOwn(verbs, info.verb) ? verbs[info.verb] : undefined;
  if (!handler || !store || !allowed.includes(info.verb) || !(custom || fitsPath(info, row.namespaced)))
    throw custom || (info.verb === "watch" && allowed.includes("list")) ? methodNotSupported({ group: info.group, resource: info.resource }, info.verb) : methodNotAllowed();
  return async (scope) => {
    const printable = isPrintable(scope);
    checkAcceptable(scope, printable);
    const answer = await handler(scope);
    return printable || answer.type !== "object" ? answer : { ...answer, printedAs: undefined };
  };
}

/** Verbs that are about one object. */
const NAMED: ReadonlySet<string> = new Set(["get", "update", "patch", "delete"]);

/** One object is named, a collection is not; objects are made where they will be. */
function fitsPath({ verb, name, subresource, namespace, namesNoNamespace }: ResourceRequestInfo, namespaced: boolean): boolean {
  if (NAMED.has(verb)) return name !== "";
  return verb !== "create" || ((name === "") === (subresource === "") && (!namespaced || namespace !== "" || namesNoNamespace));
}
