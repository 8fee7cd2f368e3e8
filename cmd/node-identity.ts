/** Which node this machine is: its name and addresses, from the flags or from the machine. */
import { hostname } from "node:os";
import { dns1123Subdomain } from "../core/api/meta/names.ts";
import { parseIp } from "../core/net/cidr.ts";
import { type NodeAddresses, nodeAddresses } from "../node/network/node-ip.ts";
import { ConfigError } from "./config/config.ts";
import type { Settings } from "./config/flags.ts";

/** `ips`: the node's own first; at least one. */
export interface ThisNode extends NodeAddresses {
  readonly name: string;
}

export function thisNode({ nodeName, nodeIp }: Settings): ThisNode {
  const name = (nodeName ?? hostname()).toLowerCase();
  for (const text of dns1123Subdomain(name)) throw new ConfigError(`${JSON.stringify(name)} cannot be a node name: ${text}; choose one with --node-name`);
  for (const ip of nodeIp) if (!parseIp(ip)) throw new ConfigError(`--node-ip: ${JSON.stringify(ip)} is no IP address`);
  return { name, ...nodeAddresses(nodeIp) };
}

/** Mounts, namespaces and the network's rules are root's. Throws ConfigError. */
export function mustBeRoot(command: "server" | "agent"): void {
  if (process.platform !== "linux" || process.geteuid?.() === 0) return;
  throw new ConfigError(`a node needs root: run it as root${command === "server" ? ", or give --disable-agent, a --data-dir and a --write-kubeconfig of yours for a control plane alone" : ""}`);
}
