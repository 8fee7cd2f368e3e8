/**
 * Pods' ports on this machine, put back when somebody has emptied the kernel's packet filter: the portmap plugin writes its rules once, when a pod starts.
 *
 *   libcni's record of each pod ─▶ is the pod's id in the plugin's chains? ─ no ─▶ portmap DEL, ADD
 *
 * The record (a file a pod, which the runtime writes after a pod has its network and removes with it) has all the plugin was told. The plugin marks its rules with the
 * sandbox's id, and removes by it. A pod that is gone, network namespace and all, is left alone.
 *
 * Source: cni v1.3 libcni/api.go (cachedInfo); plugins v1.7 plugins/meta/portmap/portmap_nftables.go
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Log } from "../../core/observe/log.ts";
import { type Exec, exec, ExecError } from "../os/exec.ts";
import type { Nft } from "../os/exec-nft.ts";

/** What the portmap plugin makes. */
const HOST_PORT_TABLE = "cni_hostport";
const CHAINS = ["hostports", "hostip_hostports"];
/** Fixed in libcni. */
export const CNI_RESULTS = "/var/lib/cni/results";
const KIND = "cniCacheV1";

export interface HostPortsOptions {
  /** Of the plugin's configuration: only its pods are ours. */
  readonly network: string;
  /** Where the plugin is. */
  readonly cniBinDir: string;
  /** Where the plugin finds the nft program. */
  readonly binDir: string;
  readonly nft: Pick<Nft, "chain">;
  readonly log: Log;
  readonly resultsDir?: string | undefined;
  readonly run?: Exec | undefined;
}

export interface PluginCall { readonly id: string; readonly env: Readonly<Record<string, string>>; readonly config: string; readonly netns: string }

interface Plugin { readonly type?: string }
interface CachedInfo {
  readonly kind?: string;
  readonly containerId?: string;
  readonly config?: string;
  readonly ifName?: string;
  readonly networkName?: string;
  readonly netns?: string;
  readonly capabilityArgs?: { readonly portMappings?: readonly unknown[] };
  readonly result?: { readonly interfaces?: readonly { readonly name?: string; readonly sandbox?: string }[] };
}

/** What the plugin was told when the pod of this record started; undefined if the pod has no ports here, or is not of this network. */
export function portmapCall(record: string, network: string): PluginCall | undefined {
  const { kind, containerId: id, config, ifName, networkName, netns, capabilityArgs, result } = JSON.parse(record) as CachedInfo;
  if (kind !== KIND || networkName !== network || !id || !config || !ifName || !result || (capabilityArgs?.portMappings ?? []).length === 0) return undefined;
  const { cniVersion, plugins = [] } = JSON.parse(Buffer.from(config, "base64").toString()) as { readonly cniVersion?: string; readonly plugins?: readonly Plugin[] };
  const plugin = plugins.find(({ type }) => type === "portmap");
  const sandbox = netns || result.interfaces?.find(({ name, sandbox: at }) => name === ifName && at)?.sandbox;
  if (!plugin || !sandbox) return undefined;
  return {
    id, netns: sandbox, env: { CNI_CONTAINERID: id, CNI_NETNS: sandbox, CNI_IFNAME: ifName },
    config: JSON.stringify({ ...plugin, cniVersion, name: network, runtimeConfig: { portMappings: capabilityArgs?.portMappings }, prevResult: result }),
  };
}

/** Puts back what is missing. Asks the kernel nothing as long as no pod has ports here. */
export async function ensureHostPorts(options: HostPortsOptions, signal: AbortSignal): Promise<void> {
  const { network, cniBinDir, binDir, nft, log, resultsDir = CNI_RESULTS, run = exec } = options;
  const calls = existsSync(resultsDir) ? readdirSync(resultsDir).filter((name) => name.startsWith(`${network}-`)).flatMap(read) : [];
  if (calls.length === 0) return;
  const chains = await Promise.all((["ip", "ip6"] as const).flatMap((family) => CHAINS.map((chain) => nft.chain(family, HOST_PORT_TABLE, chain, { signal }))));
  const rules = chains.join("\n");
  for (const call of calls.filter(({ id, netns }) => !rules.includes(id) && existsSync(netns))) {
    log.warn("the host ports of a pod are gone from the kernel, writing them again", { sandbox: call.id });
    for (const command of ["DEL", "ADD"]) await plugin(command, call); // what is left of them would be there twice
  }

  function read(name: string): PluginCall[] {
    try {
      return [portmapCall(readFileSync(join(resultsDir, name), "utf8"), network) ?? []].flat();
    } catch (error) {
      log.debug("a record of a pod's network cannot be read", { name, error }); // it is being written, or the pod has just gone
      return [];
    }
  }

  async function plugin(command: string, { env, config }: PluginCall): Promise<void> {
    const { exitCode, stdout, stderr } = await run(join(cniBinDir, "portmap"), [], { env: { ...env, CNI_COMMAND: command, CNI_PATH: cniBinDir, PATH: `${binDir}:/usr/sbin:/usr/bin:/sbin:/bin` }, stdin: config, signal });
    if (exitCode !== 0) throw new ExecError("failed", `portmap ${command}: exit code ${exitCode}: ${(stderr || stdout).trim()}`);
  }
}
