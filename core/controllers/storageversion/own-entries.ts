/**
 * Says in StorageVersions, where their gate is switched on, in which version this server writes each resource, which it reads and which it serves: who migrates stored objects waits until all
 * servers write in the same. Belongs to the API server; said once it has a Lease, without which it would be taken for one that is gone, and once more every ten minutes.
 *
 * Source: kubernetes v1.36 apiserver/pkg/storageversion/{manager,updater}.go, kube-aggregator/pkg/apiserver/apiserver.go
 */
import { isDeepStrictEqual } from "node:util";
import type { ServerStorageVersion, StorageVersion } from "../../api/gen/apiserverinternal.v1alpha1.ts";
import { ifFound } from "../../api/meta/if-found.ts";
import type { Client } from "../../client/client.ts";
import { LEASES, STORAGE_VERSIONS } from "../../client/resources.ts";
import { type Clock, timestamp } from "../../lifecycle/clock.ts";
import type { Runnable } from "../../lifecycle/run-all.ts";
import type { Log } from "../../observe/log.ts";
import { entriesWith, statusWith } from "./entries.ts";

const PERIOD_MS = 10 * 60_000;
const AGAIN_MS = 1_000;

interface Options {
  readonly client: Client;
  readonly clock: Clock;
  readonly log: Log;
  /** Of this server; also its Lease's name. */
  readonly serverId: string;
  /** By "<group>.<plural>". */
  readonly entries: ReadonlyMap<string, Omit<ServerStorageVersion, "apiServerID">>;
}

export function ownStorageVersions({ client, clock, log, serverId, entries }: Options): Runnable {
  const versions = client.resource(STORAGE_VERSIONS), leases = client.resource(LEASES);

  async function tell(name: string, entry: Omit<ServerStorageVersion, "apiServerID">, signal: AbortSignal): Promise<void> {
    const found = await ifFound(versions.get({ metadata: { name } }, { signal }))
      ?? await versions.create({ apiVersion: "internal.apiserver.k8s.io/v1alpha1", kind: "StorageVersion", metadata: { name }, spec: {} }, { signal });
    const before = found.status?.storageVersions ?? [], after = entriesWith(before, { apiServerID: serverId, ...entry });
    if (isDeepStrictEqual(before, after)) return;
    await versions.updateStatus({ ...found, status: statusWith(found, after, timestamp(clock.nowMs())) } satisfies StorageVersion, { signal });
  }

  /** False: not all is said. */
  async function tellAll(signal: AbortSignal): Promise<boolean> {
    try {
      if (!await ifFound(leases.get({ metadata: { namespace: "kube-system", name: serverId } }, { signal }))) return false;
      for (const [name, entry] of entries) await tell(name, entry, signal);
      return true;
    } catch (error) {
      if (!signal.aborted) log.warn("which versions this server stores could not be told, will try again", { error });
      return false;
    }
  }

  return {
    name: "storage versions",
    async run(signal, ready) {
      ready();
      while (!signal.aborted) await clock.sleep(await tellAll(signal) ? PERIOD_MS : AGAIN_MS, signal);
    },
  };
}
