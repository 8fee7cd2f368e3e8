/** get: one object, as new as is asked for, or the view of it that a subresource is. */
import { badRequest } from "../../api/meta/status-error.ts";
import { isTrue } from "../../api/request/query.ts";
import type { Cached } from "../../registry/generic/cached.ts";
import { type Answer, stored } from "../answer.ts";
import type { Scope } from "../scope.ts";
import { badVersion, versionError } from "./options.ts";
import { reach } from "./reach.ts";
import { keyOf } from "./traced.ts";
import { subresourceOf, viewAnswer } from "./view.ts";

export async function getObject(scope: Scope): Promise<Answer> {
  const { info, served, request, signal, span } = scope;
  if (request.query.has("export") && isTrue(request.query.get("export"))) throw badRequest("the export parameter, deprecated since v1.14, is no longer supported");
  const resourceVersion = request.query.get("resourceVersion") ?? "";
  const wrong = versionError(resourceVersion);
  if (wrong) throw badVersion(wrong);
  span?.event("About to Get from storage");
  const part = span?.child("cacher.Get", 1, { "audit-id": span.auditId, key: keyOf(scope, info.name), "resource-version": resourceVersion });
  let entry: Cached;
  try {
    await reach(scope, resourceVersion);
    part?.event("About to fetch object from cache");
    entry = served.store!.known(info.namespace, info.name);
  } finally {
    part?.end();
  }
  const view = subresourceOf(scope);
  await served.ready([entry.object], signal);
  if (view?.type === "view") return viewAnswer(scope, (view.show ?? view.read)(served.custom ? served.fromStorage(entry.object) : entry.object));
  return stored(200, served, entry);
}
