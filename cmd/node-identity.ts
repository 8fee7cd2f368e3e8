/** Which node this machine is: its name and addresses, from the flags or from the machine. */
import { hostname, networkInterfaces } from "node:os";
import { readFileSync } from "node:fs";
import { dns1123Subdomain } from "../core/api/meta/names.ts";
import { parseIp } from "../core/net/cidr.ts";
import type { Log } from "../core/observe/log.ts";
import { ConfigError } from "./config/config.ts";
import type { Settings } from "./config/flags.ts";

export interface ThisNode {
  readonly name: string;
  /** The node's own first; at least one. */
  readonly ips: readonly string[];
}

export async function thisNode({ nodeName, nodeIp }: Settings, { log }: { readonly log: Log }): Promise<ThisNode> {
  const name = (nodeName ?? hostname()).toLowerCase();
  for (const text of dns1123Subdomain(name)) throw new ConfigError(`${JSON.stringify(name)} cannot be a node name: ${text}; choose one with --node-name`);
  for (const ip of nodeIp) if (!parseIp(ip)) throw new ConfigError(`--node-ip: ${JSON.stringify(ip)} is no IP address`);
  const ips = nodeIp.length > 0 ? nodeIp : addresses();
  if (ips.length > 0) return { name, ips };
  log.warn("this machine has no address but loopback: pods can be reached from this machine only; set --node-ip once there is a network");
  return { name, ips: ["127.0.0.1"] };
}

/** The address of the interface with the default route, else the first that is not loopback. */
function addresses(): string[] {
  const all = Object.entries(networkInterfaces()).flatMap(([device, list]) => (list ?? []).map((entry) => ({ device, ...entry })));
  const usable = all.filter(({ internal, family, device }) => !internal && family === "IPv4" && !/^(cni|veth|docker|vx|flannel)/.test(device));
  const preferred = usable.find(({ device }) => device === defaultRouteDevice()) ?? usable[0];
  return preferred ? [preferred.address] : [];
}

function defaultRouteDevice(): string | undefined {
  try {
    const row = readFileSync("/proc/net/route", "utf8").split("\n").slice(1).find((line) => line.split("\t")[1] === "00000000");
    return row?.split("\t")[0];
  } catch (error) {
    if ((error as { code?: unknown }).code === "ENOENT") return undefined; // not Linux
    throw error;
  }
}
