/**
 * Pods' ports on this machine, put back when somebody has emptied the kernel's packet filter: the portmap plugin writes its rules once, when a pod starts.
 *
 *   libcni's record of each pod (cni-records.ts) ─▶ is the pod's id in the plugin's chains? ─ no ─▶ portmap DEL, ADD
 *
 * The plugin marks its rules with the sandbox's id, and removes by it. A pod that is gone, network namespace and all, is left alone.
 *
 * Source: plugins v1.7 plugins/meta/portmap/portmap_nftables.go
 */
import { existsSync } from "node:fs";
import { settleEach } from "../../core/lifecycle/settle-all.ts";
import type { Log } from "../../core/observe/log.ts";
import { type Exec, exec } from "../os/exec.ts";
import type { Nft } from "../os/exec-nft.ts";
import { CNI_RESULTS, type CniRecord, isNamespace, type PluginCall, pluginCall, readRecords, runPlugin } from "./cni-records.ts";

/** What the portmap plugin makes. */
const HOST_PORT_TABLE = "cni_hostport";
const CHAINS = ["hostports", "hostip_hostports"];

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

/** Undefined if the pod has no ports here. */
export function portmapCall(record: CniRecord): PluginCall | undefined {
  const { capabilityArgs: { portMappings = [] } = {}, result } = record;
  return portMappings.length === 0 ? undefined : pluginCall(record, "portmap", { runtimeConfig: { portMappings }, prevResult: result });
}

/** Puts back what is missing; throws for those that cannot be, once the others are there. Asks the kernel nothing as long as no pod has ports here. */
export async function ensureHostPorts({ network, cniBinDir, binDir, nft, log, resultsDir = CNI_RESULTS, run = exec }: HostPortsOptions, signal: AbortSignal): Promise<void> {
  const calls = (await readRecords({ resultsDir, network, log })).flatMap(({ path, record }) => { const call = portmapCall(record); return call ? [{ path, call }] : []; });
  if (calls.length === 0) return;
  const chains = await Promise.all((["ip", "ip6"] as const).flatMap((family) => CHAINS.map((chain) => nft.chain(family, HOST_PORT_TABLE, chain, { signal }))));
  const rules = chains.join("\n");
  await settleEach(calls.filter(({ call: { id } }) => !rules.includes(id)), 1, async ({ path, call }) => {
    const isThere = (): boolean => isNamespace(call.netns) && existsSync(path);
    const ask = async (command: "DEL" | "ADD"): Promise<unknown> => await runPlugin(command, call, { cniBinDirs: [cniBinDir], binDir, run }, signal);
    if (!isThere()) return;
    log.warn("the host ports of a pod are gone from the kernel, writing them again", { sandbox: call.id });
    await ask("DEL"); // what is left of them would be there twice
    await ask("ADD");
    if (!isThere()) await ask("DEL"); // it has ended meanwhile, and its address will be another's
  });
}
