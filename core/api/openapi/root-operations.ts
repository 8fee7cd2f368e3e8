/**
 * The paths around the resources: discovery, the version, the issuer's keys. Each has a small OpenAPI v3 document of its own: rootDocuments.
 */
import type { GroupVersion } from "../meta/gvk.ts";
import type { Facts } from "../schema/facts.ts";
import type { ResourceRow } from "../schema/resources.ts";
import { groupWords, isCustom, PRODUCES, type Operation } from "./operations.ts";
import { META, type Descriptions } from "./schema.ts";
import { documentV3, type ServerInfo } from "./v3.ts";

/** The groups whose own paths are told: not those that consist of custom resources. */
export function groupsTold(versions: readonly GroupVersion[], rows: readonly ResourceRow[]): string[] {
  const byGroup = Map.groupBy(rows, ({ group }) => group);
  return [...new Set(versions.map(({ group }) => group))].filter((group) => !isCustom(byGroup.get(group) ?? []));
}

/** `groups` without duplicates; "" is the core group. */
export function rootOperations(groups: readonly string[]): Operation[] {
  return [
    read("/api/", "getCoreAPIVersions", "get available API versions", "core", `${META}APIVersions`),
    read("/apis/", "getAPIVersions", "get available API versions", "apis", `${META}APIGroupList`),
    ...groups.filter((group) => group !== "").map((group) => {
      const name = groupWords(group).join("");
      return read(`/apis/${group}/`, `get${name}APIGroup`, "get information of a group", name.charAt(0).toLowerCase() + name.slice(1), `${META}APIGroup`);
    }),
    read("/version/", "getCodeVersion", "get the version information for this server", "version", "io.k8s.apimachinery.pkg.version.Info", ["application/json"]),
    read("/.well-known/openid-configuration/", "getServiceAccountIssuerOpenIDConfiguration", "get service account issuer OpenID configuration, also known as the 'OIDC discovery doc'", "WellKnown", undefined, ["application/json"], []),
    read("/openid/v1/jwks/", "getServiceAccountIssuerOpenIDKeyset", "get service account issuer OpenID JSON Web Key Set (contains public token verification keys)", "openid", undefined, ["application/jwk-set+json"], []),
  ];
}

/** By the path in the index: "api", "apis", "apis/apps", "version" … */
export function rootDocuments(groups: readonly string[], { facts, descriptions, version }: { readonly facts: Facts; readonly descriptions: Descriptions } & ServerInfo): ReadonlyMap<string, () => object> {
  return new Map(rootOperations(groups).map((operation) => [operation.path.slice(1, -1), () => documentV3([operation], { version, descriptions, facts })]));
}

function read(path: string, id: string, description: string, tag: string, ref: string | undefined, produces: readonly string[] = PRODUCES, consumes = produces): Operation {
  return {
    path, method: "get", id, description, tag, action: undefined, kind: undefined, parameters: [], body: undefined, consumes, produces,
    responses: [{ code: 200, description: "OK", ref }],
  };
}
