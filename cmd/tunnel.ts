/** Both ends of the tunnel, with what they know of the cluster: core/tunnel/tunnel.ts, node/tunnel/tunnel.ts. */
import type { Node, Pod } from "../core/api/gen/core.v1.ts";
import { compareText } from "../core/api/meta/compare-text.ts";
import { objectKey } from "../core/api/meta/object-meta.ts";
import { StatusError } from "../core/api/meta/status-error.ts";
import type { Authenticator } from "../core/authn/authenticator.ts";
import type { Informers } from "../core/client/informer-factory.ts";
import { NODES, PODS } from "../core/client/resources.ts";
import type { Clock } from "../core/lifecycle/clock.ts";
import type { Random } from "../core/lifecycle/random.ts";
import { cidrContains, parseCidr, parseIp } from "../core/net/cidr.ts";
import type { ProxyOf } from "../core/net/environment-proxy.ts";
import { GrpcError } from "../core/net/grpc/status.ts";
import type { HttpsServerOptions } from "../core/net/http-server.ts";
import type { Log } from "../core/observe/log.ts";
import type { Metrics } from "../core/observe/metrics.ts";
import { directDialer, type NodeDialer } from "../core/server/node-proxy/dialer.ts";
import { tunnelDialer } from "../core/tunnel/dialer.ts";
import { tunnelServer } from "../core/tunnel/tunnel.ts";
import type { KubeletSettings } from "../node/kubelet/settings.ts";
import { allowedAddress } from "../node/tunnel/allow-list.ts";
import type { TunnelCredentials } from "../node/tunnel/open-stream.ts";
import { type TunnelAgent, tunnelAgent } from "../node/tunnel/tunnel.ts";
import { seenElsewhere } from "./seen-elsewhere.ts";
import type { ThisNode } from "./node-identity.ts";

interface Base { readonly clock: Clock; readonly random: Random; readonly log: Log; readonly metrics: Metrics }

export interface ServerTunnelOptions extends Base {
  readonly nodeName: string;
  /** How many servers of this cluster live: an agent keeps a tunnel to each. */
  readonly serverCount: () => number;
  readonly informers: Informers;
  readonly authenticator: Authenticator;
  /** Of a node that is somewhere else than it says. */
  readonly onSeenElsewhere: (nodeName: string, message: string) => void;
  readonly stopping: () => AbortSignal;
}

/** By then a node that has got another address has told it. */
const SETTLED_MS = 60_000;

/** How the server reaches nodes; and its https handler, with agents let in. */
export interface ServerTunnel {
  readonly dialer: NodeDialer;
  /** Answers nodes that dial in; all else is for `others`. */
  handler(others: HttpsServerOptions["handler"]): HttpsServerOptions["handler"];
}

export function serverTunnel({ nodeName, informers, authenticator, onSeenElsewhere, ...rest }: ServerTunnelOptions): ServerTunnel {
  const nodes = informers.of(NODES);
  const told = new Map<string, string>(); // of a node

  async function lookWhereItIs(calling: string, remoteAddress: string, signal: AbortSignal): Promise<void> {
    await rest.clock.sleep(SETTLED_MS, signal);
    const node = signal.aborted ? undefined : (nodes.get(objectKey("", calling)) as Readonly<Node> | undefined);
    const message = node && seenElsewhere(node, remoteAddress);
    if (message === undefined || told.get(calling) === message) return;
    told.set(calling, message);
    onSeenElsewhere(calling, message);
  }

  const tunnel = tunnelServer({
    ...rest, serverId: nodeName,
    onOpen: (calling, remoteAddress, signal) => void lookWhereItIs(calling, remoteAddress, signal),
    async authenticate(request, { peerCertificate, remoteAddress }, signal) {
      const header = (name: string): string | undefined => [request.headers[name] ?? []].flat().join(", ") || undefined;
      const found = await authenticator.authenticate({ header, webSocketProtocols: [], peerCertificate, remoteAddress }, signal).catch((cause: unknown) => {
        if (cause instanceof StatusError) throw new GrpcError("unauthenticated", cause.message, { cause });
        throw cause;
      });
      const { name = "", groups = [] } = found?.user ?? {};
      if (!name.startsWith(NODE_USER) || !groups.includes("system:nodes")) throw new GrpcError("permission-denied", `user ${JSON.stringify(name)} is no node`);
      const nodeName = name.slice(NODE_USER.length);
      if (nodes.synced && !nodes.get(objectKey("", nodeName))) throw new GrpcError("not-found", `node ${JSON.stringify(nodeName)} is not there, or not yet`);
      return nodeName;
    },
  });
  nodes.onChange(({ object: { metadata }, deleted }) => {
    if (!deleted) return;
    told.delete(metadata.name);
    tunnel.disconnect(metadata.name, "the node was deleted");
  });

  return {
    dialer: tunnelDialer({ tunnel, direct: directDialer(rest.clock), localNode: nodeName, nodeOf: (host) => nodeAt(host, [...nodes.list()], nodeName), clock: rest.clock }),
    handler: (others) => (request, response, connection) => (tunnel.serves(request) ? tunnel.accept(request, response, connection) : others(request, response, connection)),
  };
}

/**
 * Whose pod has the address or else, of which node it is: which a node says itself, so that this server's own goes before, and then who was there first. By name a node is found by its own alone: another
 * could be that of a webhook somewhere else.
 */
export function nodeAt(host: string, nodes: readonly Readonly<Node>[], own: string): string | undefined {
  const ip = parseIp(host);
  if (!ip) return host === "localhost" ? undefined : nodes.find(({ metadata }) => metadata.name === host)?.metadata.name;
  if (OUR_PLACE.some((range) => cidrContains(range, ip))) return undefined;
  const runsPod = nodes.find(({ spec }) => spec?.podCIDRs?.some((text) => { const range = parseCidr(text); return range !== undefined && cidrContains(range, ip); }));
  if (runsPod) return runsPod.metadata.name;
  const having = nodes.filter(({ status }) => status?.addresses?.some(({ address }) => address === host));
  return (having.find(({ metadata }) => metadata.name === own) ?? having.toSorted(byAge)[0])?.metadata.name;
}

/** Here, or on this machine's link, whoever says that it is his. */
const OUR_PLACE = ["0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "::/127", "fe80::/10"].map((text) => parseCidr(text)!);

function byAge({ metadata: a }: Readonly<Node>, { metadata: b }: Readonly<Node>): number { return compareText(`${a.creationTimestamp ?? ""} ${a.name}`, `${b.creationTimestamp ?? ""} ${b.name}`); }

const NODE_USER = "system:node:";

export interface NodeTunnelOptions extends Base {
  readonly node: ThisNode;
  readonly kubelet: Pick<KubeletSettings, "address" | "port">;
  readonly informers: Informers;
  /** https://host:port of every server. */
  readonly servers: () => readonly string[];
  readonly credentials: () => TunnelCredentials;
  readonly proxyOf: ProxyOf;
}

export function nodeTunnel({ node, kubelet, informers, ...rest }: NodeTunnelOptions): TunnelAgent {
  const nodes = informers.of(NODES);
  const pods = informers.of(PODS, { fieldSelector: `spec.nodeName=${node.name}` });
  const self = () => nodes.get(objectKey("", node.name));
  const list = {
    kubelet: { host: kubelet.address === "::" ? "127.0.0.1" : kubelet.address, port: kubelet.port },
    nodeHosts: () => [node.name, ...node.ips, ...(self()?.status?.addresses ?? []).map(({ address }) => address)],
    podCidrs: () => self()?.spec?.podCIDRs ?? [],
    hostPorts: () => new Set([...pods.list()].flatMap(tcpHostPorts)),
  };
  return tunnelAgent({
    ...rest, nodeName: node.name, allowed: (address) => allowedAddress(address, list),
    identifiers: { host: [node.name], ipv4: node.ips.filter((ip) => !ip.includes(":")), ipv6: node.ips.filter((ip) => ip.includes(":")) },
  });
}

function tcpHostPorts({ spec }: Readonly<Pod>): number[] {
  return [...(spec.initContainers ?? []), ...spec.containers].flatMap(({ ports = [] }) => ports.filter(({ protocol = "TCP" }) => protocol === "TCP").map(({ hostPort = 0 }) => hostPort)).filter((port) => port > 0);
}
