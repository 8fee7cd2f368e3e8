/**
 * What a StorageVersion says of all servers together, of what each says of itself: whether they write in the same version.
 *
 * Source: kubernetes v1.36 apiserver/pkg/storageversion/updater.go
 */
import type { ServerStorageVersion, StorageVersion, StorageVersionCondition, StorageVersionStatus } from "../../api/gen/apiserverinternal.v1alpha1.ts";
import { findCondition } from "../../api/meta/conditions.ts";
import { withoutCondition } from "../conditions.ts";

const TYPE = "AllEncodingVersionsEqual";

/** With these entries in place of those it has. */
export function statusWith({ metadata: { generation }, status }: Pick<StorageVersion, "metadata" | "status">, storageVersions: ServerStorageVersion[], now: string): StorageVersionStatus {
  const versions = new Set(storageVersions.map(({ encodingVersion }) => encodingVersion));
  const commonEncodingVersion = versions.size === 1 ? storageVersions[0]?.encodingVersion : undefined, before = status?.commonEncodingVersion;
  const is = commonEncodingVersion === undefined ? { status: "False", reason: "CommonEncodingVersionUnset", message: "Common encoding version unset" } : { status: "True", reason: "CommonEncodingVersionSet", message: "Common encoding version set" };
  const old = findCondition(status?.conditions, TYPE), isSame = old?.status === is.status && (before === undefined || commonEncodingVersion === undefined || before === commonEncodingVersion);
  const condition: StorageVersionCondition = { type: TYPE, ...is, observedGeneration: generation, lastTransitionTime: isSame ? old.lastTransitionTime : now };
  return { storageVersions, ...(commonEncodingVersion === undefined ? {} : { commonEncodingVersion }), conditions: [...withoutCondition(status?.conditions, TYPE), condition] };
}

/** With what this server says of itself, in its place. */
export function entriesWith(entries: readonly ServerStorageVersion[], own: ServerStorageVersion): ServerStorageVersion[] {
  const isOwn = ({ apiServerID }: ServerStorageVersion): boolean => apiServerID === own.apiServerID;
  return entries.some(isOwn) ? entries.map((one) => (isOwn(one) ? own : one)) : [...entries, own];
}
