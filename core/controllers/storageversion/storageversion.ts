/**
 * Takes what API servers that are gone have said of themselves out of StorageVersions, where their gate is switched on; and those that nothing is left of away.
 *
 *   a server's Lease is deleted ─▶ what it has said, wherever it stands
 *   a StorageVersion changes ─▶ what servers without a Lease have said in it
 *
 * Source: kubernetes v1.36 pkg/controller/storageversiongc
 */
import type { Lease } from "../../api/gen/coordination.v1.ts";
import type { ServerStorageVersion, StorageVersion } from "../../api/gen/apiserverinternal.v1alpha1.ts";
import { ifFound } from "../../api/meta/if-found.ts";
import { objectKey } from "../../api/meta/object-meta.ts";
import { LEASES, STORAGE_VERSIONS } from "../../client/resources.ts";
import { timestamp } from "../../lifecycle/clock.ts";
import { settleAll } from "../../lifecycle/settle-all.ts";
import { type Controller, itself, mapped, nameOfKey } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { statusWith } from "./entries.ts";

const NAMESPACE = "kube-system";

function isServers(lease: Readonly<Lease> | undefined): boolean { return lease?.metadata.labels?.["apiserver.kubernetes.io/identity"] === "kube-apiserver"; }

export function storageVersionControllers({ client, informers, clock }: Pick<ControllerDeps, "client" | "informers" | "clock">): Controller[] {
  const leases = informers.of(LEASES), versions = informers.of(STORAGE_VERSIONS);
  const leaseClient = client.resource(LEASES), versionClient = client.resource(STORAGE_VERSIONS);

  const leaseOf = async (name: string, signal: AbortSignal): Promise<Readonly<Lease> | undefined> => await ifFound(leaseClient.get({ metadata: { namespace: NAMESPACE, name } }, { signal }));

  async function keep(version: Readonly<StorageVersion>, stays: (entry: ServerStorageVersion) => boolean, signal: AbortSignal): Promise<void> {
    const entries = version.status?.storageVersions ?? [], left = entries.filter(stays);
    if (left.length === entries.length) return;
    if (left.length === 0) await ifFound(versionClient.delete(version, { preconditions: { uid: version.metadata.uid, resourceVersion: version.metadata.resourceVersion } }, { signal }));
    else await versionClient.updateStatus({ ...version, status: statusWith(version, left, timestamp(clock.nowMs())) }, { signal });
  }

  return [{
    name: "storage_version_garbage_collector_leases",
    workers: 1,
    watches: [mapped(leases, ({ object, deleted }) => (deleted && object.metadata.namespace === NAMESPACE && isServers(object) ? [objectKey("", object.metadata.name)] : []))],
    async reconcile(key, { signal }) {
      const { name } = nameOfKey(key).metadata;
      if (await leaseOf(name, signal)) return;
      const { items } = await versionClient.list({}, { signal });
      await settleAll(items.map(async (version) => await keep(version, ({ apiServerID }) => apiServerID !== name, signal)));
    },
  }, {
    name: "storage_version_garbage_collector_storageversions",
    workers: 1,
    watches: [itself(versions)],
    reads: [leases],
    async reconcile(key, { signal }) {
      const named = versions.get(key)?.status?.storageVersions ?? [];
      if (named.every(({ apiServerID = "" }) => isServers(leases.get(objectKey(NAMESPACE, apiServerID))))) return;
      const version = await ifFound(versionClient.get(nameOfKey(key), { signal }));
      if (!version) return;
      const gone = new Set<string>();
      for (const { apiServerID = "" } of version.status?.storageVersions ?? []) if (!isServers(await leaseOf(apiServerID, signal))) gone.add(apiServerID);
      await keep(version, ({ apiServerID = "" }) => !gone.has(apiServerID), signal);
    },
  }];
}
