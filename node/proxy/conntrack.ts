/**
 * UDP has no end of connection: the kernel would go on sending a client's packets to an endpoint that is gone for as long as the client keeps sending. So
 * whenever a UDP Service loses endpoints, or gets its first, flows that lead to none of its serving endpoints are forgotten. So they are when it gets an address or a
 * node port: who has sent there before would go on reaching nobody.
 *
 * Which flows are stale is decided in `staleFlows` (pure); the conntrack program lists and deletes them.
 *
 * Source: kubernetes v1.36 pkg/proxy/conntrack/cleanup.go
 */
import type { Family } from "../../core/net/cidr.ts";
import { type Exec, exec } from "../os/exec.ts";
import type { PortPlan } from "./desired.ts";

/** Where a flow's first packet went, and who answers. */
export interface Flow { readonly originalIp: string; readonly originalPort: number; readonly replyIp: string; readonly replyPort: number }

export interface Conntrack {
  /** Deletes the stale flows of `plans` (UDP ports of one family); how many kinds of flow there were. */
  forgetStale(family: Family, plans: readonly PortPlan[], signal: AbortSignal): Promise<number>;
}

/** Whether the change from one plan of a port to the next can have made flows stale. */
export function losesFlows(before: PortPlan | undefined, after: PortPlan): boolean {
  if (after.protocol !== "udp" || after.servingBackends.length === 0) return false;
  if (before === undefined || before.servingBackends.length === 0) return true;
  const known = new Set(fronts(before));
  if (fronts(after).some((front) => !known.has(front))) return true;
  const now = new Set(after.servingBackends.map(address));
  return before.servingBackends.some((backend) => !now.has(address(backend)));
}

/** Where it is reached. */
function fronts({ clusterIp, port, nodePort, externalIps, loadBalancerIps }: PortPlan): string[] {
  return [...[clusterIp, ...externalIps, ...loadBalancerIps].map((ip) => address({ ip, port })), ...(nodePort === 0 ? [] : [String(nodePort)])];
}

export function staleFlows(flows: readonly Flow[], plans: readonly PortPlan[]): Flow[] {
  const byAddress = new Map<string, ReadonlySet<string>>();
  const byNodePort = new Map<number, ReadonlySet<string>>();
  for (const { protocol, servingBackends, clusterIp, port, nodePort, externalIps, loadBalancerIps } of plans) {
    if (protocol !== "udp" || servingBackends.length === 0) continue; // nobody to go to instead
    const serving = new Set(servingBackends.map(address));
    for (const ip of [clusterIp, ...externalIps, ...loadBalancerIps]) byAddress.set(`${ip} ${port}`, serving);
    if (nodePort !== 0) byNodePort.set(nodePort, serving);
  }
  const stale = new Map<string, Flow>();
  for (const flow of flows) {
    const reply = `${flow.replyIp} ${flow.replyPort}`;
    const serving = byAddress.get(`${flow.originalIp} ${flow.originalPort}`) ?? byNodePort.get(flow.originalPort);
    if (serving && !serving.has(reply)) stale.set(`${flow.originalIp} ${flow.originalPort} ${reply}`, flow);
  }
  return [...stale.values()];
}

function address({ ip, port }: { readonly ip: string; readonly port: number }): string { return `${ip} ${port}`; }

/** Lines of `conntrack -L`: the addresses of a flow's two directions, each as key=value. IPv6 is printed in canonical form. */
export function parseFlows(text: string): Flow[] {
  return text.split("\n").flatMap((line) => {
    const ips = [...line.matchAll(/\b(?:src|dst)=(\S+)/g)].map((match) => match[1]!);
    const ports = [...line.matchAll(/\b(?:sport|dport)=(\d+)/g)].map((match) => Number(match[1]));
    if (ips.length < 4 || ports.length < 4) return [];
    return [{ originalIp: ips[1]!, originalPort: ports[1]!, replyIp: ips[2]!, replyPort: ports[2]! }];
  });
}

export function conntrackProgram({ path, env, run = exec }: { readonly path: string; readonly env?: Readonly<Record<string, string>> | undefined; readonly run?: Exec | undefined }): Conntrack {
  return {
    async forgetStale(family, plans, signal) {
      const common = ["-p", "udp", "-f", family === 4 ? "ipv4" : "ipv6"];
      const options = { signal, ...(env && { env }) };
      const listed = await run(path, ["-L", ...common], options);
      if (listed.exitCode !== 0) throw new Error(`conntrack -L: ${listed.stderr.trim()}`);
      const stale = staleFlows(parseFlows(listed.stdout), plans);
      for (const { originalIp, originalPort, replyIp, replyPort } of stale) {
        const args = ["-D", ...common, "--orig-dst", originalIp, "--orig-port-dst", String(originalPort), "--reply-src", replyIp, "--reply-port-src", String(replyPort)];
        const { exitCode, stderr } = await run(path, args, options);
        if (exitCode !== 0 && !/0 flow entries/.test(stderr)) throw new Error(`conntrack -D: ${stderr.trim()}`);
      }
      return stale.length;
    },
  };
}
