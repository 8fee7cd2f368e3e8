/**
 * The cluster's own names, answered out of the informers' copies. What it says follows the Kubernetes DNS specification 1.1.0; where that leaves a choice, CoreDNS.
 *
 *   <service>.<ns>.svc.<domain>                 its cluster IPs; headless: its ready endpoints; ExternalName: an alias
 *   <endpoint>.<service>.<ns>.svc.<domain>      one endpoint, by its hostname or its address with dashes
 *   _<port>._<protocol>.<service>.<ns>.svc…     SRV
 *   1-2-3-4.<ns>.pod.<domain>                   that address, if the namespace exists
 *   4.3.2.1.in-addr.arpa                        PTR, for cluster IPs and endpoints
 *   dns-version.<domain>                        TXT "1.1.0"
 *   <domain>, ns.dns.<domain>                   SOA and NS; the addresses of kube-dns
 *
 * Pure but for reading the copies.
 *
 * Source: https://github.com/kubernetes/dns/blob/master/docs/specification.md; coredns v1.12 plugin/kubernetes (choices)
 */
import type { Namespace, Service } from "../api/gen/core.v1.ts";
import type { EndpointSlice } from "../api/gen/discovery.v1.ts";
import { keyOf, objectKey, type ObjectKey } from "../api/meta/object-meta.ts";
import type { Index, Informer } from "../client/informer.ts";
import { type Cidr, cidrContains, formatIp, type Ip, ipBytes, ipFromBytes, parseIp, parseStoredIp } from "../net/cidr.ts";
import { RCODE, type Reply, type ResourceRecord, TYPE } from "./wire.ts";

/** How long clients may keep an answer, and that there is none. As kubeadm sets CoreDNS. */
const TTL = 30;
const VERSION_TTL = 28_800;
const DNS_SERVICE = { namespace: "kube-system", name: "kube-dns" } as const;
/** What DNS can say: RFC 1035 section 2.3.4. */
const NAME_LENGTH_MAX = 253, LABEL_LENGTH_MAX = 63;
const SPEC_VERSION = "1.1.0";
/** Where names of addresses are. */
const IPV4_APEX = "in-addr.arpa", IPV6_APEX = "ip6.arpa";

export interface ZoneSources {
  readonly services: Informer<Service>;
  readonly slices: Informer<EndpointSlice>;
  readonly namespaces: Informer<Namespace>;
}

export interface ZoneOptions extends ZoneSources {
  /** "cluster.local" */
  readonly domain: string;
  /** Whose reverse names nobody else knows: pods and services. */
  readonly cidrs: readonly Cidr[];
}

export interface ZoneAnswer extends Reply {
  /** The last answer is an alias for this name, which the asker wants looked up as well. */
  readonly chase?: string | undefined;
}

export const SERVICE_NAME_LABEL = "kubernetes.io/service-name";
const SLICES_BY_SERVICE: Index<EndpointSlice> = {
  name: "service",
  valuesOf: ({ metadata }) => { const name = metadata.labels?.[SERVICE_NAME_LABEL]; return name === undefined ? [] : [objectKey(metadata.namespace ?? "", name)]; },
};
export const SLICES_BY_ADDRESS: Index<EndpointSlice> = { name: "address", valuesOf: ({ endpoints }) => (endpoints ?? []).flatMap(({ addresses }) => addresses) };
const SERVICES_BY_ADDRESS: Index<Service> = { name: "address", valuesOf: ({ spec }) => (spec?.clusterIPs ?? []).filter((ip) => ip !== "None") };

interface Host { readonly name: string; readonly ip: Ip; readonly slice: Readonly<EndpointSlice> }

export class Zone {
  readonly #sources: ZoneSources;
  readonly #domain: string;
  readonly #cidrs: readonly Cidr[];

  constructor({ domain, cidrs, ...sources }: ZoneOptions) {
    this.#sources = sources;
    this.#domain = domain.toLowerCase();
    this.#cidrs = cidrs;
  }

  /** Whether the name is one of the domain, in lower case. */
  has(name: string): boolean { return name.endsWith(this.#domain) && (name.length === this.#domain.length || name.charCodeAt(name.length - this.#domain.length - 1) === 46); }

  /** Undefined for names that are not ours: ask others. */
  answer(name: string, type: number): ZoneAnswer | undefined {
    if (this.has(name)) {
      const labels = name.slice(0, Math.max(0, name.length - this.#domain.length - 1)).split(".").filter((label) => label !== "");
      if (type !== TYPE.ANY) return this.#inDomain(name, labels, type);
      const { rcode } = this.#inDomain(name, labels, TYPE.A); // whether there is such a name, and no more: "any" is mostly asked by who abuses servers
      return this.#reply(rcode, []);
    }
    const ip = reverseAddress(name);
    return ip && this.#reverse(name, ip, type);
  }

  #inDomain(name: string, labels: readonly string[], type: number): ZoneAnswer {
    const kind = labels.at(-1), namespace = labels.at(-2), service = labels.at(-3), rest = labels.slice(0, -3);
    if (kind === undefined) return this.#apex(name, type);
    if (kind === "dns" && labels.length === 2 && labels[0] === "ns") return this.#found(type, this.#servers(name));
    if (kind === "dns-version" && labels.length === 1) return this.#found(type, [{ type: "TXT", name, ttl: VERSION_TTL, texts: [SPEC_VERSION] }]);
    if (kind !== "svc" && kind !== "pod") return this.#noName();
    if (namespace === undefined) return this.#found(type, []);
    if (!this.#sources.namespaces.get(objectKey("", namespace))) return this.#noName();
    if (service === undefined) return this.#found(type, []);
    if (kind === "pod") return rest.length <= 2 ? this.#pod(name, service, type) : this.#noName(); // whatever stands before it, as CoreDNS has it
    const found = this.#sources.services.get(objectKey(namespace, service));
    if (!found) return this.#noName();
    if (found.spec?.type === "ExternalName") return rest.length === 0 ? this.#alias(name, found.spec.externalName ?? "", type) : this.#noName();
    if (rest.length === 0) return this.#service(name, found, type);
    if (rest.length === 1) return this.#endpoint(name, found, rest[0]!, type); // "_tcp" is none, and no name
    if (rest.length === 2) return this.#port(name, found, { name: rest[0]!.replace(/^_/, ""), protocol: rest[1]!.replace(/^_/, "") }, type);
    return this.#noName();
  }

  #apex(name: string, type: number): ZoneAnswer {
    const target = `${DNS_SERVICE.name}.${DNS_SERVICE.namespace}.svc.${this.#domain}`;
    const answer = this.#found(type, [this.#soa(), { type: "NS", name, ttl: TTL, target }]);
    return type === TYPE.NS ? { ...answer, additionals: this.#servers(target) } : answer;
  }

  /** Addresses of the cluster's DNS service, under that name. */
  #servers(name: string): ResourceRecord[] {
    const service = this.#sources.services.get(objectKey(DNS_SERVICE.namespace, DNS_SERVICE.name));
    return service ? clusterIps(service).map((ip) => address(name, ip)) : [];
  }

  #service(name: string, service: Readonly<Service>, type: number): ZoneAnswer {
    if (type === TYPE.SRV) return this.#srv(name, service, portsOf(service));
    if (!isHeadless(service)) return this.#found(type, clusterIps(service).map((ip) => address(name, ip)));
    const hosts = this.#hosts(service);
    return hosts.length === 0 ? this.#noName() : this.#found(type, unique(hosts.map(({ ip }) => address(name, ip))));
  }

  #endpoint(name: string, service: Readonly<Service>, host: string, type: number): ZoneAnswer {
    const hosts = this.#hosts(service).filter((one) => one.name === host);
    if (hosts.length === 0) return this.#noName();
    if (type === TYPE.SRV) return this.#srvOf(name, service, portsOf(service), hosts);
    return this.#found(type, unique(hosts.map(({ ip }) => address(name, ip))));
  }

  /** The addresses of a port's name are those of what has the port. */
  #port(name: string, service: Readonly<Service>, wanted: Pick<PortName, "name" | "protocol">, type: number): ZoneAnswer {
    const ports = portsOf(service).filter((one) => one.name === wanted.name && one.protocol === wanted.protocol);
    if (ports.length === 0) return this.#noName();
    if (!isHeadless(service)) return type === TYPE.SRV ? this.#srv(name, service, ports) : this.#found(type, clusterIps(service).map((ip) => address(name, ip)));
    const hosts = this.#hosts(service).filter(({ slice }) => portNumber(slice, wanted) !== undefined);
    if (type === TYPE.SRV) return this.#srvOf(name, service, ports, hosts);
    return hosts.length === 0 ? this.#noName() : this.#found(type, unique(hosts.map(({ ip }) => address(name, ip))));
  }

  #srv(name: string, service: Readonly<Service>, ports: readonly PortName[]): ZoneAnswer {
    if (isHeadless(service)) return this.#srvOf(name, service, ports, this.#hosts(service));
    const target = this.#nameOf(service), ips = clusterIps(service);
    const weight = Math.max(1, Math.floor(100 / (ports.length * ips.length))); // each address counts
    return {
      ...this.#reply(RCODE.NOERROR, ports.map(({ port }) => ({ type: "SRV", name, ttl: TTL, priority: 0, weight, port, target }))),
      additionals: ips.map((ip) => address(target, ip)),
    };
  }

  /** Endpoints may listen on another port than the Service names, and not all of them on the same. */
  #srvOf(name: string, service: Readonly<Service>, ports: readonly PortName[], hosts: readonly Host[]): ZoneAnswer {
    const targets = hosts.flatMap((host) => ports.flatMap((port) => {
      const number = portNumber(host.slice, port);
      return number === undefined ? [] : [{ host, number, target: `${host.name}.${this.#nameOf(service)}` }];
    }));
    if (targets.length === 0) return hosts.length === 0 ? this.#noName() : this.#found(TYPE.SRV, []); // of a name that has addresses no one says that there is none
    const weight = Math.max(1, Math.floor(100 / targets.length));
    return {
      ...this.#reply(RCODE.NOERROR, unique(targets.map(({ number, target }) => ({ type: "SRV", name, ttl: TTL, priority: 0, weight, port: number, target })))),
      additionals: unique(targets.map(({ host, target }) => address(target, host.ip))),
    };
  }

  #pod(name: string, label: string, type: number): ZoneAnswer {
    const ip = parseIp(/^\d+-\d+-\d+-\d+$/.test(label) ? label.replaceAll("-", ".") : label.replaceAll("-", ":"));
    return ip ? this.#found(type, [address(name, ip)]) : this.#noName();
  }

  #alias(name: string, externalName: string, type: number): ZoneAnswer {
    const target = externalName.toLowerCase().replace(/\.$/, "");
    if (parseStoredIp(target) || !isWritable(target)) return this.#noName(); // an address is no name
    if (type !== TYPE.A && type !== TYPE.AAAA && type !== TYPE.CNAME) return this.#found(type, []);
    return { ...this.#reply(RCODE.NOERROR, [{ type: "CNAME", name, ttl: TTL, target }]), chase: type === TYPE.CNAME ? undefined : target };
  }

  #reverse(name: string, ip: Ip, type: number): ZoneAnswer | undefined {
    const text = formatIp(ip);
    const services = this.#sources.services.by(SERVICES_BY_ADDRESS, text).map((service) => this.#nameOf(service));
    const endpoints = services.length > 0 ? [] : this.#sources.slices.by(SLICES_BY_ADDRESS, text).flatMap((slice) => {
      const key = SLICES_BY_SERVICE.valuesOf(slice)[Symbol.iterator]().next().value as ObjectKey | undefined;
      const service = key && this.#sources.services.get(key);
      return service ? hostsOf(slice).filter((host) => formatIp(host.ip) === text).map((host) => `${host.name}.${this.#nameOf(service)}`) : [];
    });
    const targets = [...new Set([...services, ...endpoints])];
    const apex = ip.family === 4 ? IPV4_APEX : IPV6_APEX;
    if (targets.length > 0) return this.#found(type, targets.map((target) => ({ type: "PTR", name, ttl: TTL, target })), apex);
    return this.#cidrs.some((cidr) => cidrContains(cidr, ip)) ? this.#noName(apex) : undefined;
  }

  #hosts(service: Readonly<Service>): Host[] {
    return this.#sources.slices.by(SLICES_BY_SERVICE, keyOf(service)).flatMap(hostsOf);
  }

  #nameOf({ metadata }: Readonly<Service>): string { return `${metadata.name}.${metadata.namespace}.svc.${this.#domain}`; }

  /** The name exists: those records of it that were asked for, perhaps none. */
  #found(type: number, records: readonly ResourceRecord[], apex?: string): ZoneAnswer {
    return this.#reply(RCODE.NOERROR, records.filter((record) => TYPE[record.type] === type), apex);
  }

  #noName(apex?: string): ZoneAnswer { return this.#reply(RCODE.NXDOMAIN, [], apex); }

  #reply(rcode: number, answers: readonly ResourceRecord[], apex?: string): ZoneAnswer {
    return { rcode, authoritative: true, answers, authorities: answers.length === 0 ? [this.#soa(apex)] : [], additionals: [] };
  }

  /** Of a name above the one that was asked for: else nobody may keep it in mind that there is none. RFC 2308 section 5 */
  #soa(apex = this.#domain): ResourceRecord {
    return { type: "SOA", name: apex, ttl: TTL, primary: `ns.dns.${this.#domain}`, mailbox: `hostmaster.${this.#domain}`, serial: 1, refresh: 7200, retry: 1800, expire: 86_400, minimum: TTL };
  }
}

interface PortName { readonly name: string; readonly protocol: string; readonly port: number }

function portsOf({ spec }: Readonly<Service>): PortName[] {
  return (spec?.ports ?? []).map(({ name = "", protocol = "TCP", port }) => ({ name, protocol: protocol.toLowerCase(), port }));
}

function portNumber({ ports }: Readonly<EndpointSlice>, wanted: Pick<PortName, "name" | "protocol">): number | undefined {
  return ports?.find(({ name, protocol }) => (name ?? "") === wanted.name && (protocol ?? "TCP").toLowerCase() === wanted.protocol)?.port ?? undefined;
}

function isHeadless({ spec }: Readonly<Service>): boolean { return spec?.clusterIP === "None"; }

function clusterIps({ spec }: Readonly<Service>): Ip[] {
  return (spec?.clusterIPs ?? [spec?.clusterIP ?? ""]).flatMap((text) => parseStoredIp(text) ?? []);
}

/** Ready endpoints; publishNotReadyAddresses is already in the slices, which then call all of them ready. */
function hostsOf(slice: Readonly<EndpointSlice>): Host[] {
  if (slice.addressType === "FQDN") return [];
  return (slice.endpoints ?? []).flatMap(({ addresses, conditions, hostname }) => {
    if (conditions?.ready === false) return [];
    return addresses.flatMap((text) => {
      const ip = parseStoredIp(text);
      return ip ? [{ ip, slice, name: hostname?.toLowerCase() || dashed(text) }] : [];
    });
  });
}

/** A name does not end with a dash: fd42:: is fd42--0. */
function dashed(ip: string): string { return ip.replace(/[.:]/g, "-").replace(/-$/, "-0"); }

/** The API does not count the letters of a label. */
function isWritable(name: string): boolean { return name.length <= NAME_LENGTH_MAX && name.split(".").every((label) => label.length > 0 && label.length <= LABEL_LENGTH_MAX); }

function address(name: string, ip: Ip): ResourceRecord {
  return { type: ip.family === 4 ? "A" : "AAAA", name, ttl: TTL, address: ipBytes(ip) };
}

function unique(records: readonly ResourceRecord[]): ResourceRecord[] {
  return [...new Map(records.map((record) => [JSON.stringify({ ...record, address: "address" in record ? [...record.address] : undefined }), record])).values()];
}

/** The address a name in in-addr.arpa or ip6.arpa stands for. */
function reverseAddress(name: string): Ip | undefined {
  if (name.endsWith(`.${IPV4_APEX}`)) return parseIp(name.slice(0, -`.${IPV4_APEX}`.length).split(".").reverse().join("."));
  if (!name.endsWith(`.${IPV6_APEX}`)) return undefined;
  const nibbles = name.slice(0, -`.${IPV6_APEX}`.length).split(".").reverse();
  return nibbles.length === 32 && nibbles.every((nibble) => /^[0-9a-f]$/.test(nibble)) ? ipFromBytes(Buffer.from(nibbles.join(""), "hex")) : undefined;
}
