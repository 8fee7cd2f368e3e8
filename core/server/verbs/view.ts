/** Subresources of an object, and how those that are views of it (Scale) are answered. */
import { parseApiVersion } from "../../api/meta/gvk.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { canonicalOwn } from "../../api/schema/canonical.ts";
import { builtInFacts } from "../../api/schema/facts.ts";
import type { Subresource } from "../../registry/generic/resource.ts";
import { STATUS_PART } from "../../registry/generic/status-part.ts";
import type { Answer } from "../answer.ts";
import { NotServed } from "../not-served.ts";
import type { Scope } from "../scope.ts";

/** A view can be printed as what it is (Scale). */
export function viewAnswer({ served }: Scope, object: ApiObject): Answer {
  return { type: "object", status: 200, object: served.custom ? written(object) : object, printedAs: { group: parseApiVersion(object.apiVersion).group, kind: object.kind }, printer: served.custom?.scalePrinter, viewOf: served.custom ? served : undefined };
}

/** As Go writes it: without what is zero. */
function written(view: ApiObject): ApiObject {
  const type = builtInFacts.typeOf({ ...parseApiVersion(view.apiVersion), kind: view.kind });
  return type ? canonicalOwn(type, view) : view;
}

/** Undefined for the resource itself. Throws 404 for a subresource that nobody answers for. */
export function subresourceOf({ info, served }: Scope): Subresource | undefined {
  if (info.subresource === "") return undefined;
  const found = served.definition.subresources?.[info.subresource] ?? (info.subresource === "status" ? STATUS_PART : undefined);
  if (!found) throw new NotServed();
  return found;
}
