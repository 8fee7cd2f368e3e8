/**
 * The endpoints of the kube-dns Service: for each node, the address its DNS listens on, in a slice of its own that goes with the node. Run by the server, since
 * nodes may not write EndpointSlices.
 *
 *   Node (its pod CIDR) ─▶ EndpointSlice kube-system/kube-dns-<node>: the gateway of its pods, port 10053
 *
 * Where the pod network is somebody else's, nobody has to have that gateway: there it is the node's own address.
 *
 * The Service has internalTrafficPolicy Local, so a node's proxy uses only that node's. A node of somebody else's kubelet has no DNS within: its slice has a few of the nodes
 * that have it and are ready, under its own name, for its proxy to take them.
 */
import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { Node } from "../api/gen/core.v1.ts";
import type { EndpointSlice } from "../api/gen/discovery.v1.ts";
import { isReady } from "../api/meta/conditions.ts";
import { type NewObject, objectKey } from "../api/meta/object-meta.ts";
import { isAlreadyExists, isConflict, isNotFound } from "../api/meta/status-error.ts";
import type { Client } from "../client/client.ts";
import type { Index } from "../client/informer.ts";
import type { Informers } from "../client/informer-factory.ts";
import { nodeAddresses } from "../client/node-addresses.ts";
import { isOurNode } from "../client/our-nodes.ts";
import { DNS_SLICE_MANAGER } from "../client/our-slices.ts";
import { ENDPOINT_SLICES, NODES } from "../client/resources.ts";
import type { Clock } from "../lifecycle/clock.ts";
import type { Runnable } from "../lifecycle/run-all.ts";
import { workQueue } from "../lifecycle/work-queue.ts";
import { formatIp, nthAddress, parseCidr } from "../net/cidr.ts";
import type { Log } from "../observe/log.ts";
import { DNS_PORT } from "./dns.ts";

const NAMESPACE = "kube-system", SERVICE = "kube-dns";
const NAME_LENGTH_MAX = 253;
/** How many nodes answer for one that has no DNS. */
const STAND_INS_MAX = 3;
const OTHERS: Index<Node> = { name: "of somebody else's kubelet", valuesOf: (node) => (isOurNode(node) ? [] : ["yes"]) };

export interface DnsEndpointsOptions { readonly client: Client; readonly informers: Informers; readonly ownNetwork: boolean; readonly clock: Clock; readonly log: Log }

/** What decides where DNS listens on a node. */
export interface DnsNode { readonly metadata: { readonly labels?: Readonly<Record<string, string>> | undefined }; readonly spec?: Node["spec"] | undefined; readonly status?: Node["status"] | undefined }

/** Where DNS listens on a node: its pods' gateway, of each family it has. On Windows, and unless the network is ours, that is nobody's address, and the node's own are taken. */
export function dnsAddresses({ metadata, spec = {}, status }: DnsNode, { ownNetwork }: { readonly ownNetwork: boolean }): string[] {
  const isWindows = metadata.labels?.["kubernetes.io/os"] === "windows";
  if (isWindows || !ownNetwork) return nodeAddresses({ status }, "InternalIP").filter((address) => !isWindows || !address.includes(":"));
  return (spec.podCIDRs?.length ? spec.podCIDRs : spec.podCIDR ? [spec.podCIDR] : []).flatMap((text) => {
    const cidr = parseCidr(text);
    return cidr ? [formatIp(nthAddress(cidr, 1n))] : [];
  });
}

/** The nodes whose DNS answers for those that have none. Servers come first: they are the ones that stay. */
function standIns(nodes: Iterable<Readonly<Node>>): Readonly<Node>[] {
  const rank = ({ metadata: { name, labels } }: Readonly<Node>): string => `${labels?.["node-role.kubernetes.io/control-plane"] === undefined ? 1 : 0} ${name}`;
  return [...nodes].filter((node) => isOurNode(node) && isReady(node) && node.metadata.deletionTimestamp === undefined).toSorted((a, b) => (rank(a) < rank(b) ? -1 : 1)).slice(0, STAND_INS_MAX);
}

export function dnsEndpoints({ client, informers, ownNetwork, clock, log }: DnsEndpointsOptions): Runnable {
  const nodes = informers.of(NODES);
  const slices = informers.of(ENDPOINT_SLICES);
  const resource = client.resource(ENDPOINT_SLICES);
  const queue = workQueue<string>(clock);

  async function reconcile(nodeName: string, signal: AbortSignal): Promise<void> {
    const node = nodes.get(objectKey("", nodeName));
    if (!node || node.metadata.deletionTimestamp !== undefined) return; // the garbage collector takes its slices
    const all = slicesOf(node, (isOurNode(node) ? [node] : standIns(nodes.list())).flatMap((one) => dnsAddresses(one, { ownNetwork })));
    for (const wanted of all) {
      const found = slices.get(objectKey(NAMESPACE, wanted.metadata.name!));
      if (!found) await resource.create(wanted, { signal });
      else if (differs(found, wanted)) await resource.update({ ...wanted, metadata: { ...found.metadata, ...wanted.metadata } } as EndpointSlice, { signal });
    }
    for (const v6 of [false, true]) { // of a family the node has no address of any more
      const name = sliceName(nodeName, v6), left = slices.get(objectKey(NAMESPACE, name));
      if (left && all.length > 0 && !all.some(({ metadata }) => metadata.name === name)) await resource.delete(left, {}, { signal });
    }
  }

  return {
    name: "dns-endpoints",
    async run(signal, ready) {
      const unwatch = [
        nodes.onChange(({ object, old, deleted }) => {
          queue.add(object.metadata.name);
          if (deleted || old === undefined || isReady(old) !== isReady(object)) for (const { metadata } of nodes.by(OTHERS, "yes")) queue.add(metadata.name);
        }),
        slices.onChange(({ object: { metadata } }) => {
          const owner = metadata.labels?.["endpointslice.kubernetes.io/managed-by"] === DNS_SLICE_MANAGER ? metadata.ownerReferences?.[0]?.name : undefined;
          if (owner !== undefined) queue.add(owner);
        }),
      ];
      ready();
      await Promise.all([nodes.whenSynced(signal), slices.whenSynced(signal)]);
      for (let name = await queue.take(signal); name !== undefined; name = await queue.take(signal)) {
        try {
          await reconcile(name, signal);
          queue.forget(name);
        } catch (error) {
          if (signal.aborted) break;
          if (!isConflict(error) && !isAlreadyExists(error) && !isNotFound(error)) log.warn("the DNS endpoint of a node cannot be written", { node: name, error });
          queue.addRateLimited(name);
        } finally {
          queue.done(name);
        }
      }
      for (const end of unwatch) end();
    },
  };
}

function slicesOf(node: Readonly<Node>, addresses: readonly string[]): NewObject<EndpointSlice>[] {
  return [false, true].flatMap((v6) => {
    const ofFamily = addresses.filter((address) => address.includes(":") === v6);
    return ofFamily.length === 0 ? [] : [sliceOf(node, ofFamily, v6)];
  });
}

function sliceOf(node: Readonly<Node>, addresses: readonly string[], v6: boolean): NewObject<EndpointSlice> {
  return {
    apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice",
    metadata: {
      name: sliceName(node.metadata.name, v6), namespace: NAMESPACE,
      labels: { "kubernetes.io/service-name": SERVICE, "endpointslice.kubernetes.io/managed-by": DNS_SLICE_MANAGER, "k8s-app": "kube-dns" },
      ownerReferences: [{ apiVersion: "v1", kind: "Node", name: node.metadata.name, uid: node.metadata.uid }],
    },
    addressType: v6 ? "IPv6" : "IPv4",
    endpoints: addresses.map((address) => ({ addresses: [address], conditions: { ready: true, serving: true, terminating: false }, nodeName: node.metadata.name })),
    ports: [{ name: "dns", port: DNS_PORT, protocol: "UDP" }, { name: "dns-tcp", port: DNS_PORT, protocol: "TCP" }],
  };
}

function sliceName(node: string, v6: boolean): string {
  const name = `${SERVICE}-${node}${v6 ? "-ipv6" : ""}`;
  return name.length <= NAME_LENGTH_MAX ? name : `${name.slice(0, NAME_LENGTH_MAX - 17).replace(/[.-]+$/, "")}-${createHash("sha256").update(name).digest("hex").slice(0, 16)}`;
}

function differs(found: Readonly<EndpointSlice>, wanted: NewObject<EndpointSlice>): boolean {
  const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));
  return !isDeepStrictEqual(plain([found.endpoints, found.ports, found.metadata.ownerReferences]), plain([wanted.endpoints, wanted.ports, wanted.metadata.ownerReferences]))
    || Object.entries(wanted.metadata.labels ?? {}).some(([name, value]) => found.metadata.labels?.[name] !== value);
}
