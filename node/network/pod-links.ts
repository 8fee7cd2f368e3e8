/**
 * Pods' interfaces on their bridge, put back when somebody has taken them off it, or the bridge away, and made again when somebody has deleted them: the bridge plugin puts
 * them there once, when a pod starts.
 *
 *   a veth without a bridge ─▶ is it in libcni's record of a pod of ours? ─ yes ─▶ on the bridge again, with hairpin mode as the plugin sets it
 *   a record whose veth is not there, twice ─▶ bridge DEL, ADD with the addresses it had, and noted in the record
 *
 * The pod's containers go on meanwhile, and so do connections that wait long enough.
 *
 * Source: plugins v1.7 plugins/main/bridge/bridge.go, plugins/ipam/host-local/backend/allocator/config.go (args.cni.ips)
 */
import { existsSync } from "node:fs";
import { rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Log } from "../../core/observe/log.ts";
import { type Exec, exec } from "../os/exec.ts";
import type { Link, Netlink } from "../os/netlink.ts";
import { BRIDGE } from "../os/pod-bridge.ts";
import { CNI_RESULTS, type CniInterface, type CniRecord, type CniResult, isNamespace, pluginCall, readRecords, recordPaths, runPlugin } from "./cni-records.ts";

export interface PodLinksOptions {
  /** Its index. */
  readonly bridge: number;
  /** Of the plugin's configuration: only its pods are ours. */
  readonly network: string;
  readonly resultsDir: string;
  readonly log: Log;
}

/** Asks for no record as long as each veth has a bridge. */
export async function ensurePodLinks(netlink: Pick<Netlink, "links" | "setLink">, { bridge, network, resultsDir, log }: PodLinksOptions): Promise<void> {
  const loose = netlink.links().filter(({ kind, master }) => kind === "veth" && master === 0);
  if (loose.length === 0) return;
  const ours = new Set((await readRecords({ resultsDir, network, log })).flatMap(({ record }) => hostInterfaces(record).map(({ name }) => name)));
  const back = loose.filter(({ name }) => ours.has(name));
  for (const { index } of back) netlink.setLink(index, { up: true, master: bridge, hairpin: true });
  if (back.length > 0) log.warn("interfaces of pods were off their bridge, put back", { interfaces: back.map(({ name }) => name) });
}

/** A pod's interfaces that are not in the pod. */
function hostInterfaces({ result }: CniRecord): CniInterface[] { return (result?.interfaces ?? []).filter(({ name, sandbox }) => name && !sandbox); }

export interface LostLinksOptions {
  readonly network: string;
  readonly links: () => readonly Link[];
  readonly cniBinDirs: readonly [string, ...string[]];
  readonly binDir: string;
  readonly log: Log;
  readonly resultsDir?: string | undefined;
  readonly run?: Exec | undefined;
}

/** To be called now and then, and tells whether any was made again. Reads no record as long as there are as many veths on the pods' bridge as pods. */
export function lostPodLinks({ network, links, cniBinDirs, binDir, log, resultsDir = CNI_RESULTS, run = exec }: LostLinksOptions): (signal: AbortSignal) => Promise<boolean> {
  let missed: ReadonlySet<string> = new Set(); // paths of records, as last looked: when a pod ends, its interface goes before its record

  async function remake(path: string, record: CniRecord, signal: AbortSignal): Promise<boolean> {
    const ips = (record.result?.ips ?? []).flatMap(({ address }) => address?.split("/")[0] ?? []);
    const call = pluginCall(record, "bridge", { args: { cni: { ips } } });
    const isThere = (): boolean => call !== undefined && isNamespace(call.netns) && existsSync(path);
    if (!call || !isThere()) return false;
    const pod = ["K8S_POD_NAMESPACE", "K8S_POD_NAME"].map((name) => record.cniArgs?.find(([key]) => key === name)?.[1] ?? "").join("/");
    try {
      await runPlugin("DEL", call, { cniBinDirs, binDir, run }, signal); // its addresses are held for it, and would be refused
      const { interfaces = [] } = JSON.parse(await runPlugin("ADD", call, { cniBinDirs, binDir, run }, signal)) as CniResult;
      if (!isThere()) {
        await runPlugin("DEL", call, { cniBinDirs, binDir, run }, signal); // it has ended meanwhile, and nobody else gives its addresses back
        return false;
      }
      await note(path, { ...record, result: { ...record.result, interfaces } });
      log.warn("the interface of a pod had been deleted, made again", { pod, ips });
      return true;
    } catch (error) {
      if (!signal.aborted && isThere()) log.error("the interface of a pod has been deleted and cannot be made again: a new pod in its place has one", { pod, ips, error });
      return false;
    }
  }

  return async (signal) => {
    const there = links(), names = new Set(there.flatMap(({ name, mac }) => [name, mac]));
    const bridge = there.find(({ name }) => name === BRIDGE)?.index;
    const enough = (await recordPaths({ resultsDir, network })).length <= there.filter(({ kind, master }) => kind === "veth" && bridge !== undefined && master === bridge).length;
    const lost = enough ? [] : (await readRecords({ resultsDir, network, log })).filter(({ record }) => hostInterfaces(record).some(({ name = "", mac = "" }) => !names.has(name) && !(mac && names.has(mac)))); // one that was renamed is there
    let isAnyMade = false;
    for (const { path, record } of lost) if (missed.has(path) && (await remake(path, record, signal))) isAnyMade = true;
    missed = new Set(lost.map(({ path }) => path));
    return isAnyMade;
  };
}

/** Whole or not at all. */
async function note(path: string, record: CniRecord): Promise<void> {
  const draft = join(dirname(path), `.${record.containerId}.new`);
  await writeFile(draft, JSON.stringify(record), { mode: 0o600 });
  if (existsSync(path)) await rename(draft, path);
  else await rm(draft);
}
