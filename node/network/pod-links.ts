/**
 * Pods' interfaces on their bridge, put back when somebody has taken them off it, or the bridge away: the bridge plugin puts them there once, when a pod starts.
 *
 *   a veth without a bridge ─▶ is it in libcni's record of a pod of ours? ─ yes ─▶ on the bridge again, with hairpin mode as the plugin sets it
 *
 * Source: cni v1.3 libcni/api.go (cachedInfo); plugins v1.7 plugins/main/bridge/bridge.go
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Log } from "../../core/observe/log.ts";
import type { Netlink } from "../os/netlink.ts";

interface Record { readonly kind?: string; readonly networkName?: string; readonly result?: { readonly interfaces?: readonly { readonly name?: string; readonly sandbox?: string }[] } }

export interface PodLinksOptions {
  /** Its index. */
  readonly bridge: number;
  /** Of the plugin's configuration: only its pods are ours. */
  readonly network: string;
  readonly resultsDir: string;
  readonly log: Log;
}

/** Asks for no record as long as each veth has a bridge. */
export function ensurePodLinks(netlink: Pick<Netlink, "links" | "setLink">, { bridge, network, resultsDir, log }: PodLinksOptions): void {
  const loose = netlink.links().filter(({ kind, master }) => kind === "veth" && master === 0);
  if (loose.length === 0 || !existsSync(resultsDir)) return;
  const ours = new Set(readdirSync(resultsDir).filter((name) => name.startsWith(`${network}-`)).flatMap(read));
  const back = loose.filter(({ name }) => ours.has(name));
  for (const { index } of back) netlink.setLink(index, { up: true, master: bridge, hairpin: true });
  if (back.length > 0) log.warn("interfaces of pods were off their bridge, put back", { interfaces: back.map(({ name }) => name) });

  function read(name: string): string[] {
    try {
      return hostInterfaces(readFileSync(join(resultsDir, name), "utf8"), network);
    } catch (error) {
      log.debug("a record of a pod's network cannot be read", { name, error }); // it is being written, or the pod has just gone
      return [];
    }
  }
}

/** A pod's interfaces that are not in the pod; none if it is of another network. */
function hostInterfaces(record: string, network: string): string[] {
  const { kind, networkName, result } = JSON.parse(record) as Record;
  if (kind !== "cniCacheV1" || networkName !== network) return [];
  return (result?.interfaces ?? []).flatMap(({ name, sandbox }) => (name && !sandbox ? [name] : []));
}
