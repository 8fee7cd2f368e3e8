/**
 * UDP has no end of connection: the kernel would go on sending a client's packets to an endpoint that is gone for as long as the client keeps sending. So
 * whenever a UDP Service loses endpoints, or gets its first, flows that lead to none of its serving endpoints are forgotten. So they are when it gets an address or a
 * node port: who has sent there before would go on reaching nobody.
 *
 * Which flows are stale is decided in `staleFlows` (pure); the kernel lists and deletes them (os/flow-table.ts).
 *
 * Source: kubernetes v1.36 pkg/proxy/conntrack/cleanup.go
 */
import type { Breathe } from "../../core/lifecycle/breather.ts";
import { type Family, formatIp, ipFromBytes } from "../../core/net/cidr.ts";
import { type FlowTable, readFlow, type TrackedFlow } from "../os/flow-table.ts";
import type { PortPlan } from "./desired.ts";

/** Where a flow's first packet went, and who answers. */
export interface Flow { readonly originalIp: string; readonly originalPort: number; readonly replyIp: string; readonly replyPort: number }

export interface Conntrack {
  /** Deletes the stale flows of `plans` (UDP ports of one family); how many there were. */
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

export function staleFlows<F extends Flow>(flows: readonly F[], plans: readonly PortPlan[]): F[] {
  const byAddress = new Map<string, ReadonlySet<string>>();
  const byNodePort = new Map<number, ReadonlySet<string>>();
  for (const { protocol, servingBackends, clusterIp, port, nodePort, externalIps, loadBalancerIps } of plans) {
    if (protocol !== "udp" || servingBackends.length === 0) continue; // nobody to go to instead
    const serving = new Set(servingBackends.map(address));
    for (const ip of [clusterIp, ...externalIps, ...loadBalancerIps]) byAddress.set(`${ip} ${port}`, serving);
    if (nodePort !== 0) byNodePort.set(nodePort, serving);
  }
  return flows.filter(({ originalIp, originalPort, replyIp, replyPort }) => {
    const serving = byAddress.get(`${originalIp} ${originalPort}`) ?? byNodePort.get(originalPort);
    return serving !== undefined && !serving.has(`${replyIp} ${replyPort}`);
  });
}

function address({ ip, port }: { readonly ip: string; readonly port: number }): string { return `${ip} ${port}`; }

/** The kernel's table, the work on which lets others have their turn. */
export function conntrackOf(table: FlowTable, breathe: Breathe): Conntrack {
  return {
    async forgetStale(family, plans, signal) {
      const ports = new Set(plans.flatMap(({ port, nodePort }) => (nodePort === 0 ? [port] : [port, nodePort])));
      const flows: (Flow & Pick<TrackedFlow, "handle">)[] = [];
      for (const told of table.list(family)) {
        for (const message of told) {
          const flow = readFlow(message, (port) => ports.has(port));
          if (flow) flows.push({ ...flow, originalIp: ipText(flow.originalIp), replyIp: ipText(flow.replyIp) });
        }
        await breathe();
        signal.throwIfAborted();
      }
      const stale = staleFlows(flows, plans);
      for (const flow of stale) {
        table.delete(flow);
        await breathe();
        signal.throwIfAborted();
      }
      return stale.length;
    },
  };
}

function ipText(bytes: Uint8Array): string {
  const ip = ipFromBytes(bytes);
  return ip ? formatIp(ip) : "";
}
