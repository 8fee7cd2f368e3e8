/**
 * How much a pod may send and receive (annotations kubernetes.io/ingress-bandwidth and kubernetes.io/egress-bandwidth, bits a second), as an nftables table. Pure.
 *
 * On the bridge: what a pod sends is counted as it comes onto it, what it receives as it leaves it, other pods of this node included. What is too much is dropped, and
 * TCP slows down to what is not. Addresses are the pod's own.
 *
 * API: https://kubernetes.io/docs/concepts/extend-kubernetes/compute-storage-net/network-plugins/#support-traffic-shaping
 */
import { isQuantity, parseQuantity } from "../../core/api/meta/quantity.ts";
import { parseIp } from "../../core/net/cidr.ts";

const BANDWIDTH_TABLE = "coracle-bandwidth";
const INGRESS = "kubernetes.io/ingress-bandwidth", EGRESS = "kubernetes.io/egress-bandwidth";
const AT = `bridge ${BANDWIDTH_TABLE}`;
/** A quarter of a second's worth may come at once, and never less than two of the largest packets the kernel makes for itself. */
const BURST_SECONDS = 0.25, BURST_BYTES_MIN = 131_072;

/** Bytes a second. */
export interface BandwidthLimit { readonly ingress: number | undefined; readonly egress: number | undefined }
export interface LimitedPod { readonly name: string; readonly ips: readonly string[]; readonly limit: BandwidthLimit }

/** Undefined: no limit. What cannot be read is none: the runtime refuses the pod then. */
export function limitOf(annotations: Readonly<Record<string, string>>): BandwidthLimit | undefined {
  const [ingress, egress] = [INGRESS, EGRESS].map((name) => bytesOf(annotations[name]));
  return ingress === undefined && egress === undefined ? undefined : { ingress, egress };
}

function bytesOf(text: string | undefined): number | undefined {
  if (text === undefined || !isQuantity(text)) return undefined;
  return Math.max(1, Math.floor(parseQuantity(text).number() / 8));
}

/** Replaces the table, in one transaction; without pods it is gone. */
export function bandwidthText(pods: readonly LimitedPod[]): string {
  const lines = [`add table ${AT}`, `delete table ${AT}`];
  if (pods.length > 0) lines.push(`add table ${AT}`, `add chain ${AT} egress { type filter hook prerouting priority 0; }`, `add chain ${AT} ingress { type filter hook postrouting priority 0; }`);
  for (const { name, ips, limit } of pods)
    for (const text of ips) {
      const ip = parseIp(text)?.family === 6 ? "ip6" : "ip";
      if (limit.egress !== undefined) lines.push(`add rule ${AT} egress ${ip} saddr ${text} ${over(limit.egress)} drop comment "${name}"`);
      if (limit.ingress !== undefined) lines.push(`add rule ${AT} ingress ${ip} daddr ${text} ${over(limit.ingress)} drop comment "${name}"`);
    }
  return lines.map((line) => `${line}\n`).join("");
}

function over(bytes: number): string { return `limit rate over ${bytes} bytes/second burst ${Math.max(BURST_BYTES_MIN, Math.ceil(bytes * BURST_SECONDS))} bytes`; }
