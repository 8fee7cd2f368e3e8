/** get: one object, as new as is asked for, or the view of it that a subresource is. */
import { badRequest } from "../../api/meta/status-error.ts";
import { isTrue } from "../../api/request/query.ts";
import { type Answer, stored } from "../answer.ts";
import type { Scope } from "../scope.ts";
import { badVersion, versionError } from "./options.ts";
import { reach } from "./reach.ts";
import { subresourceOf, viewAnswer } from "./view.ts";

export async function getObject(scope: Scope): Promise<Answer> {
  const { info, served, request, signal } = scope;
  if (request.query.has("export") && isTrue(request.query.get("export"))) throw badRequest("the export parameter, deprecated since v1.14, is no longer supported");
  const resourceVersion = request.query.get("resourceVersion") ?? "";
  const wrong = versionError(resourceVersion);
  if (wrong) throw badVersion(wrong);
  scope.span?.event("About to Get from storage");
  await reach(scope, resourceVersion);
  const entry = served.store!.known(info.namespace, info.name);
  const view = subresourceOf(scope);
  await served.ready([entry.object], signal);
  if (view?.type === "view") return viewAnswer(scope, (view.show ?? view.read)(served.custom ? served.fromStorage(entry.object) : entry.object));
  return stored(200, served, entry);
}
