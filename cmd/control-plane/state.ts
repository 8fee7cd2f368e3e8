/** What one server keeps, or shares with the others: the store and how it is sealed, the authorities and their keys, the cluster's token. */
import { existsSync } from "node:fs";
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Random } from "../../core/lifecycle/random.ts";
import type { Log } from "../../core/observe/log.ts";
import type { Metrics } from "../../core/observe/metrics.ts";
import { signerFirst } from "../../core/pki/authority.ts";
import { serversAlone, SERVING_NAME, type ServingNames } from "../../core/pki/identities.ts";
import { openPki, type Pki } from "../../core/pki/pki.ts";
import { apiServerId } from "../../core/server/kubernetes-endpoints.ts";
import { machineAddresses } from "../../node/network/node-ip.ts";
import type { TransformTrace } from "../../storage/encryption/provider.ts";
import type { Store } from "../../storage/store.ts";
import type { ApiServerArgs } from "../apiserver-args.ts";
import { criticalSettings } from "../cluster-settings.ts";
import type { Settings } from "../config/flags.ts";
import { type Datastore, openDatastore } from "../datastore.ts";
import { refuseEmptyEtcd, refuseVanishedStore, refuseWithoutEtcd, rememberEtcd } from "../datastore-place.ts";
import { type Encryption, openEncryption } from "../encryption.ts";
import { measuredStore } from "../measured-store.ts";
import type { Paths } from "../paths.ts";
import { followSharedKeys, shareKeys } from "../shared-keys.ts";
import type { SnapshotOptions } from "../snapshot-path.ts";
import { clusterSecret, clusterToken, givenToken } from "../token-file.ts";
import { releasedMs } from "../version.ts";

interface Options {
  readonly settings: Settings;
  readonly args: ApiServerArgs;
  readonly paths: Paths;
  readonly node: { readonly name: string; readonly ips: readonly string[] };
  /** The Service `kubernetes`, which the serving certificate names. */
  readonly apiServiceIp: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Absent: nothing is traced. */
  readonly trace: TransformTrace | undefined;
  /** Ends waiting for the datastore. */
  readonly signal: AbortSignal;
}

export interface State {
  readonly store: Store;
  readonly datastore: Datastore;
  readonly encryption: Encryption;
  readonly pki: Pki;
  /** What clients call this server, and no node. */
  readonly serverNames: () => readonly string[];
  /** Of the cluster's token, without the CA's hash. */
  readonly joinSecret: string;
  /** Has the file of the token name the authority by which servers are known now. */
  tellToken(): Promise<void>;
  readonly snapshots: SnapshotOptions;
}

export async function openState({ settings, args, paths, node, apiServiceIp, clock, random, log, metrics, trace, signal }: Options): Promise<State> {
  const wasUsed = existsSync(paths.tls);
  if (settings.datastoreEndpoint === undefined) {
    await refuseWithoutEtcd(paths);
    await refuseVanishedStore(paths, wasUsed);
  }
  const datastore = await openDatastore({ settings, path: paths.store, snapshots: settings.snapshotDir ?? paths.snapshots, wasUsed, clock, log, signal });
  const { store: beneath, isShared } = datastore;
  if (isShared) await refuseEmptyEtcd(paths, beneath);
  const providerFile = args.text("encryption-provider-config");
  const encryption = await openEncryption({
    beneath, isShared, serverId: apiServerId(node.name), clock, random, metrics, trace, log: log.with({ part: "encryption" }), on: settings.secretsEncryption, own: paths.encryption,
    given: providerFile, reload: args.boolean("encryption-provider-config-automatic-reload", false),
  });
  const { store } = encryption;
  const given = givenToken(settings);
  const secret = await clusterSecret({ path: paths.token, given, random, log });
  if (isShared) await shareKeys({ store, dir: paths.tls, secret, given, settings: criticalSettings(settings), clock, random, log, releasedMs: releasedMs() });
  if (settings.datastoreEndpoint !== undefined) await rememberEtcd(paths, settings.datastoreEndpoint);
  const shared = isShared ? await followSharedKeys({ store, dir: paths.tls, secret, random, log }) : undefined;
  const names = (): ServingNames => ({ nodeName: node.name, nodeIps: node.ips, otherIps: machineAddresses(), serviceIps: [apiServiceIp], clusterDomain: settings.clusterDomain, extra: [...settings.tlsSan, ...(settings.advertiseAddress ? [settings.advertiseAddress] : [])] });
  const own = await openPki({ dir: paths.tls, clock, random, log, releasedMs: releasedMs(), names });
  const pki: Pki = {
    ...own,
    async renew() {
      await shared?.look().catch((error: unknown) => log.warn("the other servers' authorities cannot be looked up, next try soon", { error }));
      return await own.renew();
    },
  };
  const token = (): Promise<string> => clusterToken({ path: paths.token, given: secret, caPem: signerFirst(pki.authority("server-ca"), pki.leaf(SERVING_NAME).certificate), random, log });
  const joinSecret = await token();
  return {
    store: measuredStore(store, { metrics, nowMs: clock.uptimeMs }), datastore, encryption, pki, serverNames: () => serversAlone(names(), { hasNode: !settings.disableAgent }),
    joinSecret, tellToken: async () => void await token(),
    snapshots: { store: beneath, paths, providerFile, secret: joinSecret, settings: criticalSettings(settings), random },
  };
}
