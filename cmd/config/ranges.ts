/** The address ranges of a cluster, checked before anything is started with them. */
import { cidrContains, cidrSize, cidrsOverlap, formatCidr, formatIp, nthAddress, parseCidr, parseIp } from "../../core/net/cidr.ts";
import { dns1123Subdomain, dns1123SubdomainWithUnderscore, wildcardDns1123Subdomain } from "../../core/api/meta/names.ts";
import { ConfigError } from "./config.ts";
import { FLAGS, type Settings } from "./flags.ts";

const DNS_DEFAULT = FLAGS.find((flag) => flag.name === "cluster-dns")?.default;
/** Which address of the Services the DNS has in every cluster whose owner did not choose another. */
const DNS_NTH = 10n;

/**
 * Addresses and ranges as Kubernetes writes them, whatever way the owner did (objects made of them are refused in any other), with what follows from them, and from those that stand for the machine's
 * own. What is none is left for checkRanges to tell.
 */
export function withOwnAddresses(settings: Settings): Settings {
  const { clusterCidr, serviceCidr, clusterDns, advertiseAddress } = settings;
  return withAdvertised(withClusterDns(Object.freeze({
    ...settings, clusterCidr: canonicalText(clusterCidr), serviceCidr: canonicalText(serviceCidr), clusterDns: canonicalText(clusterDns),
    ...(advertiseAddress !== undefined && { advertiseAddress: canonicalText(advertiseAddress) }),
  })));
}

/** All addresses are none that others could be told: the node's is meant. Source: kubernetes v1.36 pkg/controlplane/apiserver/options/options.go (Complete) */
function withAdvertised(settings: Settings): Settings {
  return parseIp(settings.advertiseAddress ?? "")?.value === 0n ? Object.freeze({ ...settings, advertiseAddress: undefined }) : settings;
}

/** Of addresses and ranges between commas; what is neither stays as it is. */
export function canonicalText(text: string): string {
  return text.split(",").map((part) => {
    const ip = parseIp(part.trim()), cidr = parseCidr(part.trim());
    return ip ? formatIp(ip) : cidr ? formatCidr(cidr) : part;
  }).join(",");
}

/** With another range of Services alone, the DNS goes with it. */
function withClusterDns(settings: Settings): Settings {
  const range = parseCidr(settings.serviceCidr.split(",")[0]!), dns = parseIp(settings.clusterDns);
  if (settings.clusterDns !== DNS_DEFAULT || !range || !dns || cidrContains(range, dns) || cidrSize(range) <= DNS_NTH) return settings;
  return Object.freeze({ ...settings, clusterDns: formatIp(nthAddress(range, DNS_NTH)) });
}

/** Throws ConfigError naming the flag. Where ours is disabled, the DNS may be anywhere, as one of each node's own at 169.254.20.10: no Service is made for it. */
export function checkRanges({ clusterCidr, serviceCidr, clusterDns, serviceNodePortRange, advertiseAddress, bindAddress, disable, clusterDomain, tlsSan }: Settings): void {
  const pods = cidrs("--cluster-cidr", clusterCidr);
  const services = cidrs("--service-cidr", serviceCidr);
  for (const a of pods) for (const b of services) if (a.family === b.family && cidrsOverlap(a, b)) throw new ConfigError(`--cluster-cidr ${clusterCidr} and --service-cidr ${serviceCidr} overlap: addresses would be ambiguous`);
  const dns = parseIp(clusterDns);
  if (!dns) throw new ConfigError(`--cluster-dns: ${JSON.stringify(clusterDns)} is no IP address`);
  if (!disable.includes("dns") && !services.some((range) => range.family === dns.family && cidrContains(range, dns))) throw new ConfigError(`--cluster-dns ${clusterDns} is not in --service-cidr ${serviceCidr}: choose an address of it`);
  const [first, last] = /^(\d+)-(\d+)$/.exec(serviceNodePortRange)?.slice(1).map(Number) ?? [];
  if (first === undefined || last === undefined || first < 1 || last > 65_535 || first > last) throw new ConfigError(`--service-node-port-range must be like 30000-32767, not ${JSON.stringify(serviceNodePortRange)}`);
  if (advertiseAddress !== undefined && !parseIp(advertiseAddress)) throw new ConfigError(`--advertise-address: ${JSON.stringify(advertiseAddress)} is no IP address`);
  const domain = dns1123Subdomain(clusterDomain.toLowerCase())[0];
  if (clusterDomain !== "" && domain !== undefined) throw new ConfigError(`--cluster-domain: ${JSON.stringify(clusterDomain)} is no domain: ${domain}`);
  for (const name of tlsSan)
    if (!parseIp(name) && dns1123SubdomainWithUnderscore(name.toLowerCase()).length > 0 && wildcardDns1123Subdomain(name.toLowerCase()).length > 0)
      throw new ConfigError(`--tls-san: ${JSON.stringify(name)} is neither an IP address nor a name that a server could be found by`);
  if (!parseIp(bindAddress)) throw new ConfigError(`--bind-address: ${JSON.stringify(bindAddress)} is no IP address`);
}

/** Pods reach the API server at its Service only if both addresses are of one family. A machine may have but some of its addresses yet, so that is no reason not to start. */
export function isOfServicesFamily({ serviceCidr }: Pick<Settings, "serviceCidr">, address: string): boolean {
  return address.includes(":") === serviceCidr.split(",")[0]!.includes(":");
}

/** What to do about it, and what with a cluster that has begun so, whose ranges stay. */
export function otherFamily(address: string, { serviceCidr }: Pick<Settings, "serviceCidr">): string {
  const [pods, services, dns, family] = address.includes(":") ? ["fd00:42::/56", "fd00:43::/112", "fd00:43::a", "IPv6"] : ["10.42.0.0/16", "10.43.0.0/16", "10.43.0.10", "IPv4"];
  return `pods will not reach this server at the Service kubernetes: its address ${address} is of another family than --service-cidr ${serviceCidr}. Give a new cluster ranges of ${family}, as --cluster-cidr ${pods} --service-cidr ${services} --cluster-dns ${dns}, or this server another --node-ip`;
}

/** Undefined: all. Throws ConfigError. */
export function nodePortCidrs({ nodeportAddresses = [] }: Pick<Settings, "nodeportAddresses">, nodeIps: readonly string[]): readonly string[] | undefined {
  if (nodeportAddresses.length === 0) return undefined;
  return nodeportAddresses.flatMap((text) => {
    if (text === "primary") return nodeIps.map((ip) => `${ip}/${ip.includes(":") ? 128 : 32}`);
    if (!parseCidr(text)) throw new ConfigError(`--nodeport-addresses: ${JSON.stringify(text)} is no address range such as 192.168.0.0/16, nor "primary"`);
    return [text];
  });
}

function cidrs(flag: string, text: string) {
  return text.split(",").map((part) => {
    const cidr = parseCidr(part.trim());
    if (!cidr) throw new ConfigError(`${flag}: ${JSON.stringify(part)} is no address range such as 10.42.0.0/16`);
    return cidr;
  });
}
