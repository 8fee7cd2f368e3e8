/**
 * Where the API servers are, besides those that were named: the endpoints of the Service `kubernetes`. Remembered with the identity, so that an agent whose
 * first server is gone for good still finds the others after a restart.
 */
import type { EndpointSlice } from "../../core/api/gen/discovery.v1.ts";
import type { Informer } from "../../core/client/informer.ts";
import { aborted } from "../../core/lifecycle/aborted.ts";
import type { Runnable } from "../../core/lifecycle/run-all.ts";
import type { Log } from "../../core/observe/log.ts";
import type { Cluster } from "./identity.ts";

interface Deps {
  readonly slices: Informer<EndpointSlice>;
  readonly identity: { readonly cluster: Cluster | undefined; setCluster(change: (before: Cluster | undefined) => Cluster): Promise<void> };
  readonly log: Log;
}

/** Keeps `identity.cluster.servers` as the cluster has them. */
export function learnServers({ slices, identity, log }: Deps): Runnable {
  return {
    name: "API servers",
    async run(signal, ready) {
      ready();
      let writing: Promise<void> = Promise.resolve();
      const stop = slices.onChange(({ object, deleted }) => {
        if (deleted || object.metadata.namespace !== "default" || object.metadata.name !== "kubernetes") return;
        writing = writing.then(() => keep(serversOf(object))).catch((error: unknown) => log.warn("the API servers' addresses are not kept", { error }));
      });
      await aborted(signal);
      stop();
      await writing;
    },
  };

  async function keep(servers: readonly string[]): Promise<void> {
    const { cluster } = identity;
    if (servers.length === 0 || cluster === undefined || cluster.servers.join() === servers.join()) return;
    await identity.setCluster((before) => ({ settings: before?.settings ?? cluster.settings, servers }));
    log.info("API servers of the cluster", { servers });
  }
}

/** https://host:port of each. */
function serversOf({ endpoints, ports, addressType }: Readonly<EndpointSlice>): string[] {
  const port = ports?.find(({ name }) => name === "https")?.port;
  if (port === undefined) return [];
  return (endpoints ?? []).filter(({ conditions }) => conditions?.ready !== false).flatMap(({ addresses }) => addresses.map((address) => `https://${addressType === "IPv6" ? `[${address}]` : address}:${port}`)).sort();
}
