/**
 * What a machine needs to know to join, as objects of the API:
 *
 *   kube-public/cluster-info       the server's address and CA, as kubeadm has it: for everyone, even who is nobody yet
 *   kube-system/coracle-cluster    the settings all nodes share, and who signs callers' and servers' certificates: for nodes
 *
 * Written at every start, and when authorities are others: this server knows best. Who may read them stands in the bootstrap policy.
 */
import { encodeYaml } from "../api/codec/yaml.ts";
import type { ConfigMap } from "../api/gen/core.v1.ts";
import { ifFound } from "../api/meta/if-found.ts";
import type { NewObject } from "../api/meta/object-meta.ts";
import type { Client } from "../client/client.ts";
import { CLIENT_CA_KEY, CLUSTER_INFO, CLUSTER_SETTINGS, SERVER_CA_KEY } from "../client/cluster-objects.ts";
import { CONFIG_MAPS } from "../client/resources.ts";

export interface JoinObjectsOptions {
  /** https://host:port */
  readonly server: string;
  /** PEM bundles: who signs servers' certificates, and callers'. */
  readonly serverCa: string;
  readonly clientCa: string;
  /** Settings by flag name: cluster-cidr, service-cidr … */
  readonly settings: Readonly<Record<string, string>>;
}

/** A setting that is another than the cluster was told before, by this server or another one. */
export interface ChangedSetting { readonly name: string; readonly before: string; readonly now: string }

export async function ensureJoinObjects(client: Client, { server, serverCa, clientCa, settings }: JoinObjectsOptions, signal: AbortSignal): Promise<readonly ChangedSetting[]> {
  const kubeconfig = {
    apiVersion: "v1", kind: "Config", preferences: {},
    clusters: [{ name: "", cluster: { "certificate-authority-data": Buffer.from(serverCa).toString("base64"), server } }], contexts: [], "current-context": "", users: [],
  };
  await write(client, { ...CLUSTER_INFO, apiVersion: "v1", kind: "ConfigMap", data: { kubeconfig: encodeYaml(kubeconfig) } }, signal);
  const before = await write(client, { ...CLUSTER_SETTINGS, apiVersion: "v1", kind: "ConfigMap", data: { ...settings, [CLIENT_CA_KEY]: clientCa, [SERVER_CA_KEY]: serverCa } }, signal);
  return Object.entries(settings).flatMap(([name, now]) => (before[name] === undefined || before[name] === now ? [] : [{ name, before: before[name], now }]));
}

/** What is so already is not written: a webhook that would refuse it is not asked. Returns what was there. */
async function write(client: Client, object: NewObject<ConfigMap>, signal: AbortSignal): Promise<Readonly<Record<string, string>>> {
  const found = await ifFound(client.resource(CONFIG_MAPS).get({ metadata: { name: object.metadata.name!, namespace: object.metadata.namespace } }, { signal }));
  if (!found || !Bun.deepEquals(found.data, object.data)) await client.resource(CONFIG_MAPS).apply(object, { fieldManager: "coracle", force: true, signal });
  return found?.data ?? {};
}
