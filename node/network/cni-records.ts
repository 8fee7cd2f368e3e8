/**
 * What libcni notes of each pod's network (a file a pod, which the runtime writes after a pod has its network and removes with it), and calling a plugin once more as it was
 * called then. The record has all the plugin was told.
 *
 * Source: cni v1.3 libcni/api.go (cachedInfo), SPEC.md
 */
import { statfsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { ifThere } from "../../core/lifecycle/if-there.ts";
import type { Log } from "../../core/observe/log.ts";
import { type Exec, ExecError } from "../os/exec.ts";

/** Fixed in libcni. */
export const CNI_RESULTS = "/var/lib/cni/results";
const KIND = "cniCacheV1";

export interface CniInterface { readonly name?: string; readonly mac?: string; /** The pod's network namespace; absent: it is on the host. */ readonly sandbox?: string }
export interface CniResult { readonly interfaces?: readonly CniInterface[]; readonly ips?: readonly { readonly address?: string }[] }
export interface CniRecord {
  readonly kind?: string;
  readonly containerId?: string;
  /** Of the whole network, base64. */
  readonly config?: string;
  readonly ifName?: string;
  readonly networkName?: string;
  readonly netns?: string;
  readonly cniArgs?: readonly (readonly string[])[];
  readonly capabilityArgs?: { readonly portMappings?: readonly unknown[] };
  readonly result?: CniResult;
}

export interface RecordsOptions { readonly resultsDir: string; /** Of the plugins' configuration: only its pods are ours. */ readonly network: string; readonly log: Log }

/** Their files' paths, whose ever they are. */
export async function recordPaths({ resultsDir, network }: Omit<RecordsOptions, "log">): Promise<string[]> {
  return (await namesIn(resultsDir)).filter((name) => name.startsWith(`${network}-`)).map((name) => join(resultsDir, name));
}

/** None where there is no directory. */
export async function namesIn(directory: string): Promise<readonly string[]> { return (await ifThere(readdir(directory))) ?? []; }

export async function readRecords(options: RecordsOptions): Promise<{ readonly path: string; readonly record: CniRecord }[]> {
  const found = await Promise.all((await recordPaths(options)).map(async (path) => ({ path, record: await readRecord(path, options) })));
  return found.flatMap(({ path, record }) => (record ? [{ path, record }] : []));
}

/** Undefined: it is somebody else's, or cannot be read now. */
export async function readRecord(path: string, { network, log }: Pick<RecordsOptions, "network" | "log">): Promise<CniRecord | undefined> {
  try {
    const record = JSON.parse(await readFile(path, "utf8")) as CniRecord;
    return record.kind === KIND && record.networkName === network ? record : undefined;
  } catch (error) {
    log.debug("a record of a pod's network cannot be read", { path, error }); // it is being written, or the pod has just gone
    return undefined;
  }
}

/** The pod's network namespace. */
export function sandboxOf({ netns, ifName, result }: CniRecord): string | undefined {
  return netns || result?.interfaces?.find(({ name, sandbox }) => name === ifName && sandbox)?.sandbox;
}

/** Whether the pod's namespace is still mounted there: when a pod ends, the file stays a little longer. Source: containernetworking/plugins v1.7 pkg/ns/ns_linux.go IsNSorErr */
export function isNamespace(path: string): boolean {
  try {
    return statfsSync(path).type === NSFS_MAGIC;
  } catch {
    return false;
  }
}

const NSFS_MAGIC = 0x6e736673;

export interface PluginCall { readonly plugin: string; readonly id: string; readonly netns: string; readonly env: Readonly<Record<string, string>>; readonly config: string }

/** What the plugin was told when the pod of this record started, and `more`; undefined if it has not been asked. */
export function pluginCall(record: CniRecord, plugin: string, more: object): PluginCall | undefined {
  const { containerId: id, config, ifName, networkName, result } = record;
  const netns = sandboxOf(record);
  if (!id || !config || !ifName || !result || !netns) return undefined;
  const { cniVersion, plugins = [] } = JSON.parse(Buffer.from(config, "base64").toString()) as { readonly cniVersion?: string; readonly plugins?: readonly { readonly type?: string }[] };
  const own = plugins.find(({ type }) => type === plugin);
  return own && { plugin, id, netns, env: { CNI_CONTAINERID: id, CNI_NETNS: netns, CNI_IFNAME: ifName }, config: JSON.stringify({ ...own, cniVersion, name: networkName, ...more }) };
}

export interface PluginPlaces {
  /** Where plugins are: the first has those that are called here. */
  readonly cniBinDirs: readonly [string, ...string[]];
  /** Where plugins find the programs they call. */
  readonly binDir: string;
  readonly run: Exec;
}

/** What the plugin answers. Throws ExecError if it fails. */
export async function runPlugin(command: "ADD" | "DEL", { plugin, env, config }: PluginCall, { cniBinDirs, binDir, run }: PluginPlaces, signal: AbortSignal): Promise<string> {
  const { exitCode, stdout, stderr } = await run(join(cniBinDirs[0], plugin), [], { env: { ...env, CNI_COMMAND: command, CNI_PATH: cniBinDirs.join(":"), PATH: `${binDir}:/usr/sbin:/usr/bin:/sbin:/bin` }, stdin: config, signal });
  if (exitCode !== 0) throw new ExecError("failed", `${plugin} ${command}: exit code ${exitCode}: ${(stderr || stdout).trim()}`);
  return stdout;
}
