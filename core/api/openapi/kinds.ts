/** Which kinds a type is registered as: most as one, DeleteOptions and WatchEvent in every group version there is. */
import type { GroupVersionKind } from "../meta/gvk.ts";
import type { Facts } from "../schema/facts.ts";

/** Meta types that every group version registers; of the others only those of "v1" are told. */
const EVERYWHERE = ["DeleteOptions", "WatchEvent"];
const CORE = ["Status", "APIGroup", "APIGroupList", "APIResourceList", "APIVersions"];

export function kindIndex(facts: Facts): (typeName: string) => readonly GroupVersionKind[] {
  const kinds = new Map<string, GroupVersionKind[]>();
  const add = (kind: GroupVersionKind): void => {
    const name = facts.typeOf(kind)?.name;
    if (name !== undefined) kinds.set(name, [...(kinds.get(name) ?? []), kind]);
  };
  const versions = [...facts.groupVersions()].sort((a, b) => a.group < b.group || (a.group === b.group && a.version < b.version) ? -1 : 1);
  for (const { group, version, kinds: registered } of versions) {
    for (const kind of registered) {
      add({ group, kind, version });
      add({ group, kind: `${kind}List`, version });
    }
    for (const kind of EVERYWHERE) add({ group, kind, version });
  }
  for (const kind of CORE) add({ group: "", kind, version: "v1" });
  return (typeName) => kinds.get(typeName) ?? [];
}
