/**
 * The endpoints of the kube-dns Service: for each node, the address its DNS listens on, in a slice of its own that goes with the node. Run by the server, since
 * nodes may not write EndpointSlices.
 *
 *   Node (its pod CIDR) ─▶ EndpointSlice kube-system/kube-dns-<node>: the gateway of its pods, port 10053
 *
 * Where the pod network is somebody else's, nobody has to have that gateway: there it is the node's own address.
 *
 * The Service has internalTrafficPolicy Local, so a node's proxy uses only that node's.
 */
import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { Node } from "../api/gen/core.v1.ts";
import type { EndpointSlice } from "../api/gen/discovery.v1.ts";
import { type NewObject, objectKey } from "../api/meta/object-meta.ts";
import { isAlreadyExists, isConflict, isNotFound } from "../api/meta/status-error.ts";
import type { Client } from "../client/client.ts";
import type { Informers } from "../client/informer-factory.ts";
import { ENDPOINT_SLICES, NODES } from "../client/resources.ts";
import type { Clock } from "../lifecycle/clock.ts";
import type { Runnable } from "../lifecycle/run-all.ts";
import { workQueue } from "../lifecycle/work-queue.ts";
import { formatIp, nthAddress, parseCidr } from "../net/cidr.ts";
import type { Log } from "../observe/log.ts";
import { DNS_PORT } from "./dns.ts";

const NAMESPACE = "kube-system", SERVICE = "kube-dns", MANAGER = "coracle-dns";
const NAME_LENGTH_MAX = 253;

export interface DnsEndpointsOptions { readonly client: Client; readonly informers: Informers; readonly ownNetwork: boolean; readonly clock: Clock; readonly log: Log }

/** What decides where DNS listens on a node. */
export interface DnsNode { readonly metadata: { readonly labels?: Readonly<Record<string, string>> | undefined }; readonly spec?: Node["spec"] | undefined; readonly status?: Node["status"] | undefined }

/** Where DNS listens on a node: its pods' gateway, of each family it has. On Windows, and unless the network is ours, that is nobody's address, and the node's own are taken. */
export function dnsAddresses({ metadata, spec = {}, status }: DnsNode, { ownNetwork }: { readonly ownNetwork: boolean }): string[] {
  const isWindows = metadata.labels?.["kubernetes.io/os"] === "windows";
  if (isWindows || !ownNetwork) return (status?.addresses ?? []).filter(({ type, address }) => type === "InternalIP" && (!isWindows || !address.includes(":"))).map(({ address }) => address);
  return (spec.podCIDRs?.length ? spec.podCIDRs : spec.podCIDR ? [spec.podCIDR] : []).flatMap((text) => {
    const cidr = parseCidr(text);
    return cidr ? [formatIp(nthAddress(cidr, 1n))] : [];
  });
}

export function dnsEndpoints({ client, informers, ownNetwork, clock, log }: DnsEndpointsOptions): Runnable {
  const nodes = informers.of(NODES);
  const slices = informers.of(ENDPOINT_SLICES);
  const resource = client.resource(ENDPOINT_SLICES);
  const queue = workQueue<string>(clock);

  async function reconcile(nodeName: string, signal: AbortSignal): Promise<void> {
    const node = nodes.get(objectKey("", nodeName));
    if (!node || node.metadata.deletionTimestamp !== undefined) return; // the garbage collector takes its slices
    const all = slicesOf(node, dnsAddresses(node, { ownNetwork }));
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
        nodes.onChange(({ object }) => queue.add(object.metadata.name)),
        slices.onChange(({ object: { metadata } }) => {
          const owner = metadata.labels?.["endpointslice.kubernetes.io/managed-by"] === MANAGER ? metadata.ownerReferences?.[0]?.name : undefined;
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
  return addresses.map((address) => {
    const v6 = address.includes(":");
    return {
      apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice",
      metadata: {
        name: sliceName(node.metadata.name, v6), namespace: NAMESPACE,
        labels: { "kubernetes.io/service-name": SERVICE, "endpointslice.kubernetes.io/managed-by": MANAGER, "k8s-app": "kube-dns" },
        ownerReferences: [{ apiVersion: "v1", kind: "Node", name: node.metadata.name, uid: node.metadata.uid }],
      },
      addressType: v6 ? "IPv6" : "IPv4",
      endpoints: [{ addresses: [address], conditions: { ready: true, serving: true, terminating: false }, nodeName: node.metadata.name }],
      ports: [{ name: "dns", port: DNS_PORT, protocol: "UDP" }, { name: "dns-tcp", port: DNS_PORT, protocol: "TCP" }],
    };
  });
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
