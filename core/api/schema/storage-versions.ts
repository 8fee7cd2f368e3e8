/**
 * In which version each resource of the built-in API is stored, which versions can be read, and which are served.
 *
 * Source: kubernetes v1.36 apiserver/pkg/storageversion/manager.go, apiserver/pkg/endpoints/installer.go
 */
import type { ServerStorageVersion } from "../gen/apiserverinternal.v1alpha1.ts";
import { compareText } from "../meta/compare-text.ts";
import { formatApiVersion } from "../meta/gvk.ts";
import type { ResourceRow } from "./resources.ts";

/** By "<group>.<plural>", in the order of both; what is served in two groups is under the first. `known`: served or not. */
export function storageVersionsOf(served: readonly ResourceRow[], known: readonly ResourceRow[]): Map<string, Omit<ServerStorageVersion, "apiServerID">> {
  const entries = new Map<string, Omit<ServerStorageVersion, "apiServerID">>();
  const stored = served.filter(({ custom, storedAs }) => !custom && storedAs !== undefined).toSorted((a, b) => (a.group === b.group ? compareText(a.plural, b.plural) : compareText(a.group, b.group)));
  const seen = new Set<string>();
  for (const { group, plural, kind, storedAs } of stored) {
    const home = `${storedAs!} ${kind}`;
    if (seen.has(home)) continue;
    seen.add(home);
    const isOf = (row: ResourceRow): boolean => row.group === group && row.plural === plural;
    const elsewhere = stored.filter((row) => row.storedAs === storedAs && row.kind === kind && row.group !== group);
    entries.set(`${group || "core"}.${plural}`, { encodingVersion: storedAs, decodableVersions: [...new Set([...known.filter(isOf), ...elsewhere].map(formatApiVersion).concat(storedAs!))], servedVersions: served.filter(isOf).map(formatApiVersion) });
  }
  return entries;
}
