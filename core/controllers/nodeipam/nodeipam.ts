/**
 * Gives every node its range of pod addresses: spec.podCIDR, spec.podCIDRs, cut from the cluster's ranges.
 *
 * What is in use is what the nodes say (free-ranges.ts), told of each change: a new node costs the same in a cluster of any size.
 *
 * Source: kubernetes v1.36 pkg/controller/nodeipam/ipam/{range_allocator,cidrset}
 */
import type { Node } from "../../api/gen/core.v1.ts";
import { isDeleting, keyOf, type ObjectKey } from "../../api/meta/object-meta.ts";
import { NODES } from "../../client/resources.ts";
import { type Cidr, formatCidr, parseCidr } from "../../net/cidr.ts";
import { type Counter, exponential } from "../../observe/metrics.ts";
import { type Controller, mapped } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { FreeRanges } from "./free-ranges.ts";

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

export function nodeIpamController({ client, informers, events, metrics, config }: Pick<ControllerDeps, "client" | "informers" | "events" | "metrics"> & { readonly config: NodeIpamConfig }): Controller {
  const nodes = informers.of(NODES);
  const nodeClient = client.resource(NODES);
  const recorder = events.from({ component: "cidrAllocator" });
  const ranges = config.clusterCidrs.map((text) => {
    const range = mustParse(text);
    return new FreeRanges(range, range.family === 4 ? config.maskSizeIpv4 ?? MASK_SIZE_IPV4 : config.maskSizeIpv6 ?? MASK_SIZE_IPV6);
  });
  for (const range of ranges) for (const text of config.serviceCidrs) range.take(mustParse(text));
  const held = new Map<ObjectKey, readonly Cidr[]>(); // by nodes

  const each = (read: (range: FreeRanges) => number) => ranges.map((range, i) => [{ clusterCIDR: config.clusterCidrs[i]! }, read(range)] as const);
  metrics?.gaugeFrom("node_ipam_controller_cirdset_max_cidrs", "[ALPHA] Maximum number of CIDRs that can be allocated.", () => each(({ count }) => count)); // as upstream spells it
  metrics?.gaugeFrom("node_ipam_controller_cidrset_usage_cidrs", "[ALPHA] Gauge measuring percentage of allocated CIDRs.", () => each(({ used, count }) => used / count));
  const allocations = metrics?.counter("node_ipam_controller_cidrset_cidrs_allocations_total", "[ALPHA] Counter measuring total number of CIDR allocations.");
  const releases = metrics?.counter("node_ipam_controller_cidrset_cidrs_releases_total", "[ALPHA] Counter measuring total number of CIDR releases.");
  const tries = metrics?.histogram("node_ipam_controller_cidrset_allocation_tries_per_request", "[ALPHA] Number of endpoints added on each Service sync", exponential(1, 5, 5)); // as upstream describes it
  const count = (counter: Counter | undefined, cidrs: number): void => { if (cidrs > 0) for (const clusterCIDR of config.clusterCidrs) counter?.inc({ clusterCIDR }); };

  function note(key: ObjectKey, now: readonly Cidr[]): void {
    const before = held.get(key)?.length ?? 0;
    count(allocations, before === 0 ? now.length : 0);
    count(releases, now.length === 0 ? before : 0);
    for (const range of ranges) {
      for (const one of held.get(key) ?? []) range.giveBack(one);
      for (const one of now) range.take(one);
    }
    if (now.length > 0) held.set(key, now);
    else held.delete(key);
  }

  return {
    name: "node_ipam",
    workers: 1, // two at once would give out the same range
    watches: [mapped(nodes, ({ object, deleted }) => {
      const key = keyOf(object);
      note(key, deleted ? [] : (object.spec?.podCIDRs ?? []).flatMap((text) => parseCidr(text) ?? []));
      return [key];
    })],
    async reconcile(key, { signal, log }) {
      const node = nodes.get(key);
      if (node === undefined || isDeleting(node) || (node.spec?.podCIDRs ?? []).length > 0) return;
      const found = ranges.map((range) => range.next());
      const cidrs = found.flatMap((one) => (one === undefined ? [] : [formatCidr(one)]));
      if (cidrs.length < ranges.length) {
        tell(node, "CIDRNotAvailable");
        throw new Error(`failed to allocate cidr from cluster cidr at idx:${found.indexOf(undefined)}: CIDR allocation failed; there are no remaining CIDRs left to allocate in the accepted range`);
      }
      for (const [i, { passed }] of ranges.entries()) tries?.observe(passed, { clusterCIDR: config.clusterCidrs[i]! });
      try {
        const written = await nodeClient.patch(node, "application/merge-patch+json", { metadata: { uid: node.metadata.uid }, spec: { podCIDR: cidrs[0], podCIDRs: cidrs } }, { signal });
        await nodes.caughtUp([written], signal);
      } catch (error) {
        if (!signal.aborted) tell(node, "CIDRAssignmentFailed");
        throw error;
      }
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
