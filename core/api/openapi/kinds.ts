/** Which kinds a type is registered as: most as one, DeleteOptions and WatchEvent in every group version there is. */
import { type GroupVersionKind, parseApiVersion } from "../meta/gvk.ts";
import type { Facts } from "../schema/facts.ts";
import { RETIRED_KINDS } from "../schema/retired-kinds.ts";

/** Meta types that every group version registers; of the others only those of "v1" are told. */
const EVERYWHERE = ["DeleteOptions", "WatchEvent"];
/** Not in upstream's scheme: discovery documents have one of their own, and metrics are another server's. */
const APART = ["apidiscovery.k8s.io", "metrics.k8s.io"];
const CORE = ["Status", "APIGroup", "APIGroupList", "APIResourceList", "APIVersions"];

export function kindIndex(facts: Facts): (typeName: string) => readonly GroupVersionKind[] {
  const kinds = new Map<string, GroupVersionKind[]>();
  const everywhere = new Map(EVERYWHERE.map((kind) => [kind, facts.typeOf({ group: "", kind, version: "v1" })?.name]));
  const add = (kind: GroupVersionKind): void => {
    const name = everywhere.get(kind.kind) ?? facts.typeOf(kind)?.name;
    if (name !== undefined) kinds.set(name, [...(kinds.get(name) ?? []), kind]);
  };
  const retired = [...RETIRED_KINDS.keys()].map((apiVersion) => ({ ...parseApiVersion(apiVersion), kinds: [] as readonly string[] })); // they register the meta types too
  const versions = [...facts.groupVersions(), ...retired].sort((a, b) => a.group < b.group || (a.group === b.group && a.version < b.version) ? -1 : 1);
  for (const { group, version, kinds: registered } of versions) {
    for (const kind of registered) {
      add({ group, kind, version });
      add({ group, kind: `${kind}List`, version });
    }
    if (!APART.includes(group)) for (const kind of EVERYWHERE) add({ group, kind, version });
  }
  for (const kind of CORE) add({ group: "", kind, version: "v1" });
  return (typeName) => kinds.get(typeName) ?? [];
}
