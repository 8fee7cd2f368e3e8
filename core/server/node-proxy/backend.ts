/** What a request is passed on to: a kubelet, or something that listens in a pod or on a node. */
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import type { Duplex } from "node:stream";
import type { Endpoints, Node, Pod, Service } from "../../api/gen/core.v1.ts";
import { ifFound } from "../../api/meta/if-found.ts";
import { badRequest, isNotFound, notFound, serviceUnavailable, statusError } from "../../api/meta/status-error.ts";
import { parseIp } from "../../net/cidr.ts";
import { hostPort } from "../../net/dial-tcp.ts";
import type { Held } from "../../net/kept-connections.ts";
import { KUBELET_SERVER_NAME } from "../../net/tls.ts";
import type { Scope } from "../scope.ts";
import { type NodeDialer, secure } from "./dialer.ts";

export interface KubeletTls {
  /** PEM bundle that signed the kubelets' serving certificates. */
  readonly ca: string;
  /** PEM client certificate the kubelets know the API server by, and its key. */
  readonly cert: string;
  readonly key: string;
  /** Of this program: what a kubelet shows may be newer than a clock that is not set. */
  readonly releasedMs?: number | undefined;
}

export interface NodeProxyDeps {
  readonly dialer: NodeDialer;
  /** Asked for each connection: certificates are renewed while running. */
  readonly kubeletTls: () => KubeletTls;
  /** Absent: nobody counts who reads logs. */
  readonly logMeter?: LogMeter | undefined;
  /** Absent: nobody counts who opens streams. */
  readonly streamMeter?: StreamMeter | undefined;
  /** Logs may be asked for by stream: PodLogsQuerySplitStreams is switched on. */
  readonly splitsLogs?: boolean;
}

export interface StreamMeter { opened(subresource: "exec" | "attach" | "portforward"): void }

export interface LogMeter {
  asked(verified: boolean): void;
  /** What the kubelet showed is not to be believed. */
  notVerified(): void;
}

export interface Backend {
  /** host:port, for the Host header. */
  readonly host: string;
  /** "http" or "https". */
  readonly scheme: string;
  /** Throws an Error that reads as Go's. */
  connect(): Promise<Duplex>;
  /** Where connections are kept between requests. `fresh`: not one that was used before. */
  open?(fresh: boolean): Promise<Held>;
}

/** Source: --kubelet-port's default, used until the node has told its own */
const KUBELET_PORT = 10250;
/** Source: kubeadm's --kubelet-preferred-address-types, names last */
const ADDRESS_TYPES = ["InternalIP", "ExternalIP", "InternalDNS", "ExternalDNS", "Hostname"] as const;

export interface KubeletBackend extends Backend {
  /** What the node has declared that it can. */
  readonly features: readonly string[];
}

/** The kubelet of a node. Throws 404. */
export async function kubeletBackend(deps: NodeProxyDeps, scope: Scope, nodeName: string, { verify = true }: { readonly verify?: boolean } = {}): Promise<KubeletBackend> {
  const { host, port, features } = await kubeletAddress(scope, nodeName);
  const { clock } = scope.server;
  const { signal } = scope;
  return {
    host: hostPort(host, port), scheme: "https", features,
    async connect() {
      const { ca, cert, key, releasedMs } = deps.kubeletTls();
      return await secure(await deps.dialer.connect({ nodeName, host, port, signal }), { ca: verify ? ca : undefined, client: { cert, key }, serverName: KUBELET_SERVER_NAME, names: [{ type: "DNS", value: nodeName }], releasedMs }, { clock, signal });
    },
  };
}

async function kubeletAddress({ server, info, signal }: Scope, nodeName: string): Promise<{ readonly host: string; readonly port: number; readonly features: readonly string[] }> {
  const { object } = await server.registry.storeOf("", "nodes")!.get("", nodeName, signal).catch((error: unknown) => {
    throw isNotFound(error) ? notFound({ group: "", resource: info.resource }, nodeName) : error; // upstream's store takes the resource from the request
  });
  const node = object as unknown as Readonly<Node>;
  const addresses = node.status?.addresses ?? [];
  const host = ADDRESS_TYPES.map((type) => addresses.find((one) => one.type === type)?.address).find((address) => address !== undefined && address !== "");
  if (host === undefined) throw statusError({ code: 500, reason: "", message: `no preferred addresses found; known addresses: [${addresses.map(({ type, address }) => `{${type} ${address}}`).join(" ")}]` });
  return { host, port: node.status?.daemonEndpoints?.kubeletEndpoint?.Port || KUBELET_PORT, features: node.status?.declaredFeatures ?? [] };
}

/** What listens on a port of a pod, or of a node: with TLS unverified, as upstream does, because nobody knows its CA. */
function plainBackend(deps: NodeProxyDeps, { server: { clock }, signal }: Scope, { scheme, host, port, nodeName }: { readonly scheme: string; readonly host: string; readonly port: number; readonly nodeName: string | undefined }): Backend {
  const used = scheme === "https" ? "https" : "http";
  return {
    host: hostPort(host, port), scheme: used,
    async connect() {
      const connection = await deps.dialer.connect({ nodeName, host, port, signal });
      return used === "https" ? await secure(connection, { ca: undefined, serverName: host }, { clock, signal }) : connection;
    },
  };
}

export interface SchemeNamePort { readonly scheme: string; readonly name: string; readonly port: string }

/** "name", "name:port" or "scheme:name:port". Source: apimachinery pkg/util/net/port_split.go */
export function splitSchemeNamePort(id: string): SchemeNamePort | undefined {
  const parts = id.split(":");
  const [scheme, name, port] = parts.length === 1 ? ["", parts[0]!, ""] : parts.length === 2 ? ["", parts[0]!, parts[1]!] : parts.length === 3 ? [parts[0]!, parts[1]!, parts[2]!] : ["", "", ""];
  return name === "" || !["", "http", "https"].includes(scheme) ? undefined : { scheme, name, port };
}

/** pods/{id}/proxy. Source: kubernetes v1.36 pkg/registry/core/pod/strategy.go ResourceLocation */
export async function podBackend(deps: NodeProxyDeps, scope: Scope): Promise<Backend> {
  const { info, server, signal } = scope;
  const id = splitSchemeNamePort(info.name);
  if (!id) throw badRequest(`invalid pod request ${JSON.stringify(info.name)}`);
  const { spec, status } = (await server.registry.storeOf("", "pods")!.get(info.namespace, id.name, signal)).object as unknown as Readonly<Pod>;
  const host = status?.podIPs?.[0]?.ip ?? status?.podIP ?? "";
  if (!isGlobalUnicast(host)) throw badRequest("address not allowed");
  const port = id.port || String(spec.containers.find(({ ports = [] }) => ports.length > 0)?.ports?.[0]?.containerPort ?? (id.scheme === "https" ? 443 : 80));
  return plainBackend(deps, scope, { scheme: id.scheme, host, port: portNumber(port), nodeName: spec.nodeName });
}

/** services/{id}/proxy: a ready endpoint of it that is a pod. Source: kubernetes v1.36 pkg/registry/core/service/storage/storage.go */
export async function serviceBackend(deps: NodeProxyDeps, scope: Scope): Promise<Backend> {
  const { info, server, signal } = scope;
  const { namespace } = info;
  const { registry, random } = server;
  const id = splitSchemeNamePort(info.name);
  if (!id) throw badRequest(`invalid service request ${JSON.stringify(info.name)}`);
  let portName = id.port;
  if (/^[+-]?\d+$/.test(portName)) {
    const service = (await registry.storeOf("", "services")!.get(namespace, id.name, signal)).object as unknown as Readonly<Service>;
    const found = service.spec?.ports?.find(({ port }) => port === Number(portName));
    if (!found) throw serviceUnavailable(`no service port ${Number(portName)} found for service ${JSON.stringify(id.name)}`);
    portName = found.name ?? "";
  }
  const { subsets = [] } = (await endpointsOf(scope, id.name)) as unknown as Readonly<Endpoints>;
  if (subsets.length === 0) throw serviceUnavailable(`no endpoints available for service ${JSON.stringify(id.name)}`);
  for (const { addresses = [], ports = [] } of rotated(subsets, random.next())) {
    const port = ports.find(({ name = "" }) => name === portName);
    if (!port) continue;
    for (const { ip, targetRef } of rotated(addresses, random.next())) {
      if (!targetRef || targetRef.namespace !== namespace) continue;
      const pod = await podNamed(scope, targetRef.name ?? "");
      if (!pod?.status?.podIPs?.some((one) => one.ip === ip)) continue;
      return plainBackend(deps, scope, { scheme: id.scheme, host: ip, port: port.port, nodeName: pod.spec.nodeName });
    }
  }
  throw serviceUnavailable(`no endpoints available for service ${JSON.stringify(info.name)}`);
}

/** A service that has none is told of as one that is not there. */
async function endpointsOf({ info, server, signal }: Scope, name: string): Promise<unknown> {
  try {
    return (await server.registry.storeOf("", "endpoints")!.get(info.namespace, name, signal)).object;
  } catch (error) {
    throw isNotFound(error) ? notFound({ group: "", resource: "services" }, name) : error;
  }
}

async function podNamed({ info, server, signal }: Scope, name: string): Promise<Readonly<Pod> | undefined> {
  const entry = await ifFound(server.registry.storeOf("", "pods")!.get(info.namespace, name, signal));
  return entry?.object as unknown as Readonly<Pod> | undefined;
}

function rotated<T>(items: readonly T[], share: number): readonly T[] {
  const start = Math.floor(share * items.length);
  return [...items.slice(start), ...items.slice(0, start)];
}

/** nodes/{id}/proxy: the kubelet, unless another port is named. Source: kubernetes v1.36 pkg/registry/core/node/strategy.go */
export async function nodeBackend(deps: NodeProxyDeps, scope: Scope): Promise<Backend> {
  const id = splitSchemeNamePort(scope.info.name);
  if (!id) throw badRequest(`invalid node request ${JSON.stringify(scope.info.name)}`);
  const { host, port } = await kubeletAddress(scope, id.name);
  for (const address of isIP(host) ? [host] : (await lookup(host, { all: true })).map((one) => one.address))
    if (!isGlobalUnicast(address)) throw badRequest("address not allowed");
  if (id.port === "" || id.port === String(port)) return await kubeletBackend(deps, scope, id.name);
  return plainBackend(deps, scope, { scheme: id.scheme, host, port: portNumber(id.port), nodeName: id.name });
}

function portNumber(text: string): number {
  const port = Number(text);
  if (!Number.isInteger(port) || port < 1 || port > 65535) throw serviceUnavailable(`error trying to reach service: dial tcp: ${/^\d+$/.test(text) && port > 0 ? `address ${text}: invalid port` : `lookup tcp/${text}: unknown port`}`);
  return port;
}

/** Neither this machine itself, nor its link, nor many, however it is written: ::1 has many names. */
function isGlobalUnicast(address: string): boolean {
  const ip = parseIp(address);
  if (!ip) return false;
  const { family, value } = ip;
  if (family === 6) return value !== 0n && value !== 1n && value >> 118n !== LINK_LOCAL_V6 && value >> 120n !== MULTICAST_V6;
  const first = value >> 24n;
  return value !== 0n && value !== BROADCAST_V4 && first !== 127n && value >> 16n !== LINK_LOCAL_V4 && value >> 28n !== MULTICAST_V4;
}

const LINK_LOCAL_V6 = 0xfe80n >> 6n, MULTICAST_V6 = 0xffn, LINK_LOCAL_V4 = 0xa9fen, MULTICAST_V4 = 0xen, BROADCAST_V4 = 0xffff_ffffn;
