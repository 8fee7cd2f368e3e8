/** Which node this machine is: its name and addresses, from the flags or from the machine. */
import { hostname } from "node:os";
import { join } from "node:path";
import { dns1123Subdomain, labelValue } from "../core/api/meta/names.ts";
import { fileText } from "../core/lifecycle/file-text.ts";
import { type Family, parseCidr, parseIp } from "../core/net/cidr.ts";
import type { Log } from "../core/observe/log.ts";
import { ensurePrivateDirectory, writeDurably } from "../core/pki/durable-file.ts";
import { copyKept, type KeptFiles, mendKept } from "../core/pki/kept-twice.ts";
import { ensureLoneAddress } from "../node/network/lone-address.ts";
import { addressesElsewhere, chosenFamily, type NodeAddresses, nodeAddresses } from "../node/network/node-ip.ts";
import { openNetlink } from "../node/os/netlink.ts";
import { ConfigError } from "./config/config.ts";
import type { Settings } from "./config/flags.ts";

/** `ips`: the node's own first; at least one. */
export interface ThisNode extends NodeAddresses {
  readonly name: string;
}

type NodeSettings = Pick<Settings, "nodeName" | "nodeIp" | "dataDir">;

/** In the data directory. */
const NAME_FILE = "node-name";

/** Throws ConfigError. */
export async function thisNode({ nodeName, nodeIp, dataDir }: NodeSettings, { log, machine = hostname() }: { readonly log: Log; readonly machine?: string }): Promise<ThisNode> {
  await mendKept(kept(dataDir), log);
  const remembered = await readName(join(dataDir, NAME_FILE));
  const name = (nodeName ?? remembered ?? machine).toLowerCase();
  for (const text of problemsOf(name)) throw new ConfigError(`${JSON.stringify(name)} cannot be a node name: ${text}; choose one with --node-name`);
  checkAddresses(nodeIp);
  if (nodeName === undefined && name !== machine.toLowerCase()) log.info("this machine has another name than its node, which keeps its own; --node-name makes it another node", { node: name, machine });
  const elsewhere = isAtGivenAddress({ nodeIp }) ? addressesElsewhere(nodeIp) : [];
  if (elsewhere.length > 0) log.warn("no interface of this machine has the address of --node-ip: others may not find the node there", { nodeIp: elsewhere });
  return { name, ...nodeAddresses(nodeIp) };
}

/** Source: kubernetes v1.36 staging/src/k8s.io/component-helpers/node/util/ips.go (parseNodeIP) */
function checkAddresses(given: readonly string[]): void {
  const parsed = given.map((text) => parseIp(text) ?? refuse(`${JSON.stringify(text)} is no IP address`));
  if (parsed.length > 2 || (parsed.length === 2 && parsed[0]?.family === parsed[1]?.family)) refuse("must contain either a single IP or a dual-stack pair of IPs");
  if (parsed.length === 2 && parsed.some(({ value }) => value === 0n)) refuse("dual-stack node IP cannot include '0.0.0.0' or '::'");
}

function refuse(why: string): never { throw new ConfigError(`--node-ip: ${why}`); }

/** Whether it stays at the addresses that it was given; else it is looked where it is. */
export function isAtGivenAddress({ nodeIp }: Pick<Settings, "nodeIp">): boolean {
  return nodeIp.length > 0 && chosenFamily(nodeIp) === undefined;
}

/** Of the pods' addresses. */
export function podFamilies({ clusterCidr }: Pick<Settings, "clusterCidr">): readonly Family[] { return clusterCidr.split(",").flatMap((cidr) => parseCidr(cidr)?.family ?? []); }

/** Before thisNode, where there will be pods: a machine on no network gets an address that they can reach, unless it is given one. */
export function giveLoneAddress(settings: Pick<Settings, "nodeIp" | "clusterCidr">, log: Log): void {
  if (process.platform !== "linux" || isAtGivenAddress(settings)) return;
  try {
    using netlink = openNetlink();
    ensureLoneAddress(netlink, podFamilies(settings));
  } catch (error) {
    log.warn("this machine is on no network and could not be given an address: pods will not reach the API server", { error });
  }
}

/** Once it is a node: one that was refused may be given another name, as its machine may. */
export async function rememberName({ dataDir }: Pick<Settings, "dataDir">, { name }: ThisNode): Promise<void> {
  const file = join(dataDir, NAME_FILE);
  if (name !== await readName(file)) {
    await ensurePrivateDirectory(dataDir);
    await writeDurably(file, `${name}\n`);
  }
  await copyKept(kept(dataDir)).catch(() => undefined); // on a full disk the next start does
}

/** A machine that has been renamed would be another node without it: without a certificate, and without its pods. */
function kept(dataDir: string): KeptFiles {
  return { dir: dataDir, names: [NAME_FILE], isWhole: (_, text) => text.endsWith("\n") /* a part of a name is one, too */ && isName(text.trim()) };
}

function isName(text: string): boolean { return problemsOf(text).length === 0; }

/** It is the value of a label too (kubernetes.io/hostname), without which there is no Node; the names of machines may be longer. */
function problemsOf(name: string): readonly string[] { return [...dns1123Subdomain(name), ...labelValue(name)]; }

/** Mounts, namespaces and the network's rules are root's. Throws ConfigError. */
export function mustBeRoot(command: "server" | "agent"): void {
  if (process.platform !== "linux" || process.geteuid?.() === 0) return;
  throw new ConfigError(`a node needs root: run it as root${command === "server" ? ", or give --disable-agent, a --data-dir and a --write-kubeconfig of yours for a control plane alone" : ""}`);
}

/** Under which this machine became a node: its pods, volumes and certificates name it, whatever the machine is called later. */
async function readName(file: string): Promise<string | undefined> {
  const name = (await fileText(file))?.trim() ?? "";
  return isName(name) ? name : undefined;
}
