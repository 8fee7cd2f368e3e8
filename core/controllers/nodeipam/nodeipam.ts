/**
 * Gives every node its range of pod addresses: spec.podCIDR, spec.podCIDRs, cut from the cluster's ranges.
 *
 * Ranges go round: one that a node has given back is the last to be given out again. Nothing is remembered but where the round stands;
 * what is in use is read from the nodes.
 *
 * Source: kubernetes v1.36 pkg/controller/nodeipam/ipam/{range_allocator,cidrset}
 */
import type { Node } from "../../api/gen/core.v1.ts";
import { isDeleting } from "../../api/meta/object-meta.ts";
import { NODES } from "../../client/resources.ts";
import { type Cidr, cidrsOverlap, formatCidr, nthSubnet, parseCidr, subnetCount } from "../../net/cidr.ts";
import { type Controller, itself } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";

export interface NodeIpamConfig {
  /** One of each family, in the order in which nodes list them: --cluster-cidr */
  readonly clusterCidrs: readonly string[];
  /** Never given to nodes, should they lie within: --service-cluster-ip-range */
  readonly serviceCidrs: readonly string[];
  readonly maskSizeIpv4?: number | undefined;
  readonly maskSizeIpv6?: number | undefined;
}

const MASK_SIZE_IPV4 = 24;
const MASK_SIZE_IPV6 = 64;

/** The next range of `prefix` bits in `range`, from the `from`th on and round, that overlaps none of `used`. */
export function nextFree(range: Cidr, prefix: number, used: readonly Cidr[], from: bigint): { readonly cidr: Cidr; readonly index: bigint } | undefined {
  const count = subnetCount(range, prefix);
  const taken = new Set(used.filter((one) => one.family === range.family && one.prefix === prefix).map(formatCidr));
  const odd = used.filter((one) => one.family === range.family && one.prefix !== prefix);
  for (let n = 0n; n < count; n++) {
    const index = (from + n) % count;
    const cidr = nthSubnet(range, prefix, index);
    if (!taken.has(formatCidr(cidr)) && !odd.some((one) => cidrsOverlap(one, cidr))) return { cidr, index };
  }
  return undefined;
}

export function nodeIpamController({ client, informers, events, config }: Pick<ControllerDeps, "client" | "informers" | "events"> & { readonly config: NodeIpamConfig }): Controller {
  const nodes = informers.of(NODES);
  const nodeClient = client.resource(NODES);
  const recorder = events.from({ component: "cidrAllocator" });
  const ranges = config.clusterCidrs.map(mustParse);
  const reserved = config.serviceCidrs.map(mustParse);
  const next = ranges.map(() => 0n);

  return {
    name: "node_ipam",
    workers: 1, // two at once would give out the same range
    watches: [itself(nodes)],
    async reconcile(key, { signal, log }) {
      const node = nodes.get(key);
      if (node === undefined || isDeleting(node) || (node.spec?.podCIDRs ?? []).length > 0) return;
      const used = [...reserved, ...[...nodes.list()].flatMap(({ spec }) => (spec?.podCIDRs ?? []).flatMap((text) => parseCidr(text) ?? []))];
      const found = ranges.map((range, i) => {
        const prefix = range.family === 4 ? config.maskSizeIpv4 ?? MASK_SIZE_IPV4 : config.maskSizeIpv6 ?? MASK_SIZE_IPV6;
        return nextFree(range, prefix, used, next[i] ?? 0n);
      });
      const cidrs = found.flatMap((one) => (one === undefined ? [] : [formatCidr(one.cidr)]));
      if (cidrs.length < ranges.length) {
        tell(node, "CIDRNotAvailable");
        throw new Error(`failed to allocate cidr from cluster cidr at idx:${found.indexOf(undefined)}: CIDR allocation failed; there are no remaining CIDRs left to allocate in the accepted range`);
      }
      try {
        const written = await nodeClient.patch(node, "application/merge-patch+json", { metadata: { uid: node.metadata.uid }, spec: { podCIDR: cidrs[0], podCIDRs: cidrs } }, { signal });
        await nodes.caughtUp([written], signal);
      } catch (error) {
        if (!signal.aborted) tell(node, "CIDRAssignmentFailed");
        throw error;
      }
      for (const [i, one] of found.entries()) if (one !== undefined) next[i] = one.index + 1n;
      log.info("node has its pod addresses", { cidrs });
    },
  };

  function tell({ metadata: { name, uid } }: Readonly<Node>, status: string): void {
    recorder.event({ apiVersion: "v1", kind: "Node", name, uid }, "Normal", status, `Node ${name} status is now: ${status}`);
  }
}

function mustParse(text: string): Cidr {
  const cidr = parseCidr(text);
  if (cidr === undefined) throw new Error(`not an address range: ${text}`);
  return cidr;
}
