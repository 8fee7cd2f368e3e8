/**
 * What the host's kernel must do for pods to have a network: forward packets, show bridged packets to the packet filter, remember enough connections; and for nodes and servers to hear each
 * other on a way that takes smaller packets than it says, as many modems' do, whose providers keep ICMP back.
 *
 * Source for the connection tracking figures: kubernetes v1.36 pkg/proxy/apis/config/v1alpha1/defaults.go, pkg/proxy/conntrack/sysctls.go
 */
import { existsSync } from "node:fs";
import type { Log } from "../../core/observe/log.ts";
import { exec } from "../os/exec.ts";
import { BRIDGE } from "../os/pod-bridge.ts";
import type { SysctlKeeper } from "../os/sysctl.ts";
import { keepHearingRouters, presentWaysOut } from "./router-advertisements.ts";
import { VXLAN_DEVICE } from "./vxlan.ts";

const FORWARDING_V6 = "net.ipv6.conf.all.forwarding";
/** 1: where what a connection sends does not arrive, smaller packets are tried. Else all that is large hangs, while heartbeats arrive. Source: linux Documentation/networking/ip-sysctl.rst */
const PROBE_MTU = "net.ipv4.tcp_mtu_probing";
const MODULES = ["br_netfilter", "nf_conntrack", "nf_tables", "vxlan"];

/** How many connections the kernel remembers, and for how long: never less than it does by itself, unless somebody asks for it. */
export interface Conntracking {
  /** 0: as many as the kernel wants. */
  readonly perCpu: number;
  readonly min: number;
  /** Of TCP; 0: as long as the kernel wants. */
  readonly establishedSeconds: number;
  readonly closeWaitSeconds: number;
  /** What somebody asks for, rather than what is usual: that is set although it is less. */
  readonly asked?: ReadonlySet<"max" | "established" | "closeWait"> | undefined;
}

/** On machines of many processors. */
const CONNECTIONS_MAX = 1_048_576;

export const CONNTRACKING: Conntracking = { perCpu: 32_768, min: 131_072, establishedSeconds: 86_400, closeWaitSeconds: 3_600 };

export interface HostOptions {
  readonly sysctl: SysctlKeeper;
  readonly usesV6: boolean;
  /** The one with the default route: on it, router advertisements go on being heard although the host forwards. */
  readonly interfaceName: string | undefined;
  /** On those too, which may come and go, unless it was a router before; absent: the machine's ways out. */
  readonly waysOut?: (() => readonly string[]) | undefined;
  readonly cpus: number;
  readonly conntrack?: Conntracking | undefined;
  readonly log: Log;
}

export interface PreparedHost {
  /** Whether packets between pods of this node pass the packet filter. */
  readonly bridgeNetfilter: boolean;
  /** Sets again what somebody has changed since, as updates of a system do when they apply its own settings. */
  readonly keep?: (() => void) | undefined;
}

export async function prepareHost({ cpus, conntrack = CONNTRACKING, ...options }: HostOptions, signal: AbortSignal): Promise<PreparedHost> {
  const { sysctl, log } = options;
  for (const module of MODULES) await loadModule(module, log, signal);
  const prepared = letPacketsThrough(options);
  rememberConnections(sysctl, cpus, conntrack);
  return prepared;
}

export function rememberConnections(sysctl: Pick<SysctlKeeper, "set" | "raise">, cpus: number, { perCpu, min, establishedSeconds, closeWaitSeconds, asked = new Set() }: Conntracking): void {
  const scaled = cpus * perCpu;
  const settings = [
    ["max", "nf_conntrack_max", perCpu > 0 ? (scaled > CONNECTIONS_MAX ? CONNECTIONS_MAX : Math.max(min, scaled)) : 0],
    ["established", "nf_conntrack_tcp_timeout_established", establishedSeconds], ["closeWait", "nf_conntrack_tcp_timeout_close_wait", closeWaitSeconds],
  ] as const;
  for (const [what, name, value] of settings) {
    if (value <= 0) continue;
    if (asked.has(what)) sysctl.set(`net.netfilter.${name}`, String(value));
    else sysctl.raise(`net.netfilter.${name}`, value);
  }
}

/** What the kernel has not, or does not let us set, is not tried again. */
export function letPacketsThrough({ sysctl, usesV6, interfaceName, waysOut = presentWaysOut, log }: Omit<HostOptions, "cpus" | "conntrack">): PreparedHost {
  const kept = new Map<string, string>();
  const set = (name: string, value: string): boolean => {
    const isSet = sysctl.set(name, value);
    if (isSet) kept.set(name, value);
    return isSet;
  };
  if (!set("net.ipv4.ip_forward", "1")) log.error("the kernel does not forward packets: pods will reach nothing beyond this node");
  sysctl.raise(PROBE_MTU, 1);
  const isRouter = usesV6 && sysctl.getOriginal(FORWARDING_V6) === "1"; // before it was a node: whoever made it one has it hear no routers where others send through it
  const hear = (): void => { if (usesV6) keepHearingRouters(sysctl, [...(interfaceName === undefined ? [] : [interfaceName]), ...(isRouter ? [] : waysOut())]); };
  if (usesV6) {
    hear();
    set(FORWARDING_V6, "1");
  }
  const ways = [BRIDGE, VXLAN_DEVICE, ...(interfaceName === undefined ? [] : [interfaceName])];
  const forward = (): void => { for (const name of ways) if (sysctl.get(`net/ipv4/conf/${name}/forwarding`) === "0") sysctl.set(`net/ipv4/conf/${name}/forwarding`, "1"); };
  forward(); // ip_forward changes those of all interfaces, if it is changed itself
  const filtersV6 = set("net.bridge.bridge-nf-call-ip6tables", "1"); // also without IPv6: pods of one bridge have it on their link
  const bridgeNetfilter = set("net.bridge.bridge-nf-call-iptables", "1") && (!usesV6 || filtersV6);
  if (!bridgeNetfilter) log.warn("no br_netfilter: between pods of this node no network policy holds, and connections to services show the node's address");
  return { bridgeNetfilter, keep: () => { hear(); kept.forEach((value, name) => void sysctl.set(name, value)); forward(); } };
}

/** Built in, loaded already, or not to be had: what matters is whether it works afterwards. */
async function loadModule(module: string, log: Log, signal: AbortSignal): Promise<void> {
  if (existsSync(`/sys/module/${module}`) || !existsSync("/proc/modules")) return;
  const problem = await exec("modprobe", ["--", module], { signal }).then(({ exitCode, stderr }) => (exitCode === 0 ? undefined : stderr.trim()), (error: unknown) => String(error));
  if (problem !== undefined) log.debug("a kernel module cannot be loaded", { module, problem });
}
