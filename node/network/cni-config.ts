/**
 * The CNI configuration of our own network: a bridge for the pods of this node, addresses out of its pod CIDRs, host ports through nftables.
 *
 *   pod ── veth ── cni0 (gateway, hairpin) ── routed by the host
 *
 * The default routes are the bridge plug-in's to add: then its result names their gateway, and Multus writes that to the pod's network-status (of a route
 * that is asked of the address plug-in it would write `<nil>`). Masquerading is not the plugin's business but masquerade.ts', which knows the whole cluster.
 */
import { BRIDGE } from "../os/pod-bridge.ts";

/** The network's name, by which libcni files what it did. */
export const CNI_NETWORK = "coracle";
export const CNI_FILE = "10-coracle.conflist";

export interface CniOptions {
  /** One of each family at most. */
  readonly podCidrs: readonly string[];
  readonly mtu: number;
  /** Where host-local remembers which address is whose. */
  readonly ipamDir: string;
  /** The address plug-in: host-local, or what stands around it. */
  readonly ipam?: string | undefined;
}

export function cniConfig({ podCidrs, mtu, ipamDir, ipam = "host-local" }: CniOptions): string {
  const config = {
    cniVersion: "1.0.0", name: CNI_NETWORK,
    plugins: [
      {
        type: "bridge", bridge: BRIDGE, mtu, isDefaultGateway: true, hairpinMode: true, ipMasq: false,
        forceAddress: true, // a node that was given another pod CIDR would otherwise never start a pod again
        ipam: { type: ipam, dataDir: ipamDir, ranges: podCidrs.map((subnet) => [{ subnet }]) },
      },
      { type: "portmap", capabilities: { portMappings: true }, snat: true, backend: "nftables" },
    ],
  };
  return `${JSON.stringify(config, undefined, 2)}\n`;
}
