/** A version of a custom resource as a row of the table of resources: what discovery, OpenAPI and the handler know of it. */
import type { CustomResourceDefinitionNames, CustomResourceDefinitionVersion } from "../../../api/gen/apiextensions.v1.ts";
import { type ResourceRow, type ResourceVerb, storageVersionHash, type Subresource } from "../../../api/schema/resources.ts";
import type { CustomKind } from "./custom-kind.ts";
import { isTerminating } from "./custom-version.ts";

/** In upstream's order. */
const VERBS: readonly ResourceVerb[] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
const VERBS_TERMINATING: readonly ResourceVerb[] = ["delete", "deletecollection", "get", "list", "watch"];
const VERBS_PART: readonly ResourceVerb[] = ["get", "patch", "update"];

export function customRow(served: CustomKind, names: CustomResourceDefinitionNames, version: CustomResourceDefinitionVersion): ResourceRow {
  const { group, crd } = served;
  const { plural, kind } = names;
  const stored = served.versions().find(({ storage, served: isServed }) => storage && isServed);
  const { status, scale } = version.subresources ?? {};
  const subresources: Subresource[] = [
    ...(status ? [{ name: "status", kind: { group, version: version.name, kind }, verbs: VERBS_PART, connects: [] }] : []),
    ...(scale ? [{ name: "scale", kind: { group: "autoscaling", version: "v1", kind: "Scale" }, verbs: VERBS_PART, connects: [] }] : []),
  ];
  return {
    group, version: version.name, plural, kind, singular: names.singular ?? kind.toLowerCase(), listKind: names.listKind ?? `${kind}List`,
    shortNames: names.shortNames ?? [], categories: names.categories ?? [], namespaced: crd.spec.scope === "Namespaced",
    verbs: VERBS, discoveredVerbs: isTerminating(crd) ? VERBS_TERMINATING : VERBS, subresources,
    storageVersionHash: stored && storageVersionHash({ group, version: stored.name, kind }),
    returnsDeleted: false, custom: true,
  };
}
