/** Filters on what a node has left: resources and host ports. */
import { hostPortsOf } from "../snapshot.ts";
import type { Filter } from "../plugin.ts";

/** Always reported first, as upstream does; the rest in alphabetical order. */
const FIRST = ["cpu", "memory", "ephemeral-storage"];

export const nodeResourcesFit: Filter = {
  name: "NodeResourcesFit",
  preemptable: true,
  reject({ requests }, { allocatable, requested, pods }) {
    const reasons: string[] = [];
    if (pods.size + 1 > (allocatable["pods"] ?? 0)) reasons.push("Too many pods");
    const names = Object.keys(requests).filter((name) => !FIRST.includes(name)).sort();
    for (const name of [...FIRST, ...names]) {
      const wanted = requests[name] ?? 0;
      if (wanted > 0 && wanted > (allocatable[name] ?? 0) - (requested[name] ?? 0)) reasons.push(`Insufficient ${name}`);
    }
    return reasons;
  },
};

export const nodePorts: Filter = {
  name: "NodePorts",
  preemptable: true,
  reject({ pod }, { hostPorts }) {
    for (const wanted of hostPortsOf(pod)) if (conflicts(wanted, hostPorts.keys())) return ["node(s) didn't have free ports for the requested pod ports"];
    return [];
  },
};

/** The same port and protocol on the same address, or on all of them. */
function conflicts(wanted: string, used: Iterable<string>): boolean {
  const [ip, protocol, port] = wanted.split("/");
  for (const other of used) {
    const [otherIp, otherProtocol, otherPort] = other.split("/");
    if (port === otherPort && protocol === otherProtocol && (ip === otherIp || ip === "0.0.0.0" || otherIp === "0.0.0.0")) return true;
  }
  return false;
}
