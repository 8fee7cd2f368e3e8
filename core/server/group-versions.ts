/** Which versions of which groups are served here. */
import { builtInResources, type ServedGroupVersion } from "../api/schema/resources.ts";
import type { Registry } from "../registry/registry.ts";

/** Built-in ones in their order, then those that only custom resources have. */
export function groupVersions(registry: Registry): ServedGroupVersion[] {
  const built = builtInVersions(registry);
  const known = new Set(built.map(({ group, version }) => `${group}/${version}`));
  const custom = new Map<string, ServedGroupVersion>();
  for (const { group, version } of registry.rows())
    if (!known.has(`${group}/${version}`)) custom.set(`${group}/${version}`, { group, version, groupPriority: 1000, versionPriority: 100 });
  return [...built, ...custom.values()];
}

/** Whether it is one of `builtInVersions`. */
export function isBuiltInVersion(registry: Registry, wanted: Pick<ServedGroupVersion, "group" | "version">): boolean {
  return builtInResources.everyGroupVersion().some(({ group, version }) => group === wanted.group && version === wanted.version) && registry.rowsOf(wanted).length > 0;
}

/** Those served: each has a resource. */
export function builtInVersions(registry: Registry): ServedGroupVersion[] {
  const served = new Set(registry.rows().map(({ group, version }) => `${group}/${version}`));
  return builtInResources.everyGroupVersion().filter(({ group, version }) => served.has(`${group}/${version}`));
}
