/** Which kinds a type is registered as: most as one, DeleteOptions and WatchEvent in every group version there is. */
import type { GroupVersionKind } from "../meta/gvk.ts";
import type { Facts } from "../schema/facts.ts";

/** Meta types that every group version registers; of the others only those of "v1" are told. */
const EVERYWHERE = ["DeleteOptions", "WatchEvent"];
/** Group versions that upstream's scheme still knows and no server of v1.36 serves: they register the meta types too. */
const RETIRED: Readonly<Record<string, readonly string[]>> = {
  "admission.k8s.io": ["v1beta1"], "apiextensions.k8s.io": ["v1beta1"], "apiregistration.k8s.io": ["v1beta1"], apps: ["v1beta1", "v1beta2"], "authorization.k8s.io": ["v1beta1"], batch: ["v1beta1"],
  "discovery.k8s.io": ["v1beta1"], "events.k8s.io": ["v1beta1"], extensions: ["v1beta1"], "flowcontrol.apiserver.k8s.io": ["v1beta1", "v1beta2"], "imagepolicy.k8s.io": ["v1alpha1"],
  "node.k8s.io": ["v1alpha1", "v1beta1"], policy: ["v1beta1"], "rbac.authorization.k8s.io": ["v1alpha1", "v1beta1"], "scheduling.k8s.io": ["v1beta1"],
};
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
  const retired = Object.entries(RETIRED).flatMap(([group, of]) => of.map((version) => ({ group, version, kinds: [] as readonly string[] })));
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
