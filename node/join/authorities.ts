/**
 * Whom the cluster trusts, as it says while this node runs: a bundle that names another authority counts without a restart, for the node's own connections, for who calls its kubelet, and for
 * the certificates that it asks for (node-certificates.ts). None of servers' is taken away, or a token that names it would seem to be of another cluster.
 */
import { CLIENT_CA_KEY, CLUSTER_SETTINGS, SERVER_CA_KEY } from "../../core/client/cluster-objects.ts";
import type { Client } from "../../core/client/client.ts";
import { CONFIG_MAPS } from "../../core/client/resources.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Random } from "../../core/lifecycle/random.ts";
import type { Runnable } from "../../core/lifecycle/run-all.ts";
import type { Log } from "../../core/observe/log.ts";
import { certificateHash } from "../../core/pki/join-token.ts";
import { readCertificatePems, toPem } from "../../core/pki/pem.ts";
import type { NodeIdentity } from "./identity.ts";

/** One small answer each, over the connection that is there anyway: a thousand nodes are three in a second. */
const LOOK_EVERY_MS = 300_000;
const ANSWER_MS_MAX = 30_000; // over a slow link a handshake alone takes ten seconds

interface Deps {
  readonly identity: NodeIdentity;
  /** In the node's own name; what it tells is never something remembered. */
  readonly client: Client;
  /** Callers are judged by others now. */
  readonly onClientCa: () => void;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

export function followAuthorities({ identity, client, onClientCa, clock, random, log }: Deps): Runnable {
  async function look(signal: AbortSignal): Promise<void> {
    const { data = {} } = await client.resource(CONFIG_MAPS).get(CLUSTER_SETTINGS, { signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS_MAX)]) });
    await trustFurther(identity, data[SERVER_CA_KEY] ?? "", log);
    const before = identity.cluster;
    if (before === undefined || Bun.deepEquals(before.settings, data)) return;
    await identity.setCluster((now) => ({ servers: now?.servers ?? [], settings: { ...data } })); // what else is new counts from the next start, where it would be read anyway
    if (before.settings[CLIENT_CA_KEY] === data[CLIENT_CA_KEY]) return;
    log.info("the cluster has other authorities that sign for callers", { count: readCertificatePems(data[CLIENT_CA_KEY] ?? "").length });
    onClientCa();
  }

  return {
    name: "authorities",
    async run(signal, ready) {
      ready();
      await clock.sleep(random.next() * LOOK_EVERY_MS, signal); // nodes that start together do not ask together
      if (signal.aborted) return;
      for await (const _ of clock.every(LOOK_EVERY_MS, signal)) {
        await look(signal).catch((error: unknown) => {
          if (!signal.aborted) log.debug("the cluster's authorities cannot be read now", { error });
        });
      }
    },
  };
}

/** Authorities that are not known yet: they may soon be the only ones that sign. */
export async function trustFurther(identity: NodeIdentity, current: string, log: Log): Promise<void> {
  const known = identity.ca ?? "", hashes = new Set(readCertificatePems(known).map(certificateHash));
  const added = readCertificatePems(current).filter((der) => !hashes.has(certificateHash(der)));
  if (added.length === 0) return;
  await identity.setCa(`${known.trimEnd()}\n${added.map((der) => toPem("CERTIFICATE", der)).join("")}`);
  log.info("the cluster has further authorities that sign for its servers", { count: added.length });
}
