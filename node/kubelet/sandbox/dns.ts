/**
 * The resolv.conf of a pod.
 *
 * Source: kubernetes v1.36 pkg/kubelet/network/dns/dns.go; limits: pkg/apis/core/validation/validation.go
 */
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import type { DNSConfig } from "../../cri/gen/runtime.v1.ts";
import { formatPod, isHostNetwork } from "../pod-spec.ts";

export interface Resolver { readonly servers: readonly string[]; readonly searches: readonly string[]; readonly options: readonly string[] }

export interface DnsFacts {
  readonly pod: Pod;
  /** The host's; undefined when it has none. */
  readonly host: Resolver | undefined;
  readonly nodeIps: readonly string[];
  readonly clusterDns: readonly string[];
  readonly clusterDomain: string;
}

/** For events, about the pod or the node itself. */
interface Warning { readonly about: "pod" | "node"; readonly reason: string; readonly message: string }

export interface PodDns { readonly config: DNSConfig; readonly warnings: readonly Warning[] }

const CLUSTER_OPTIONS: readonly string[] = ["ndots:5"];
const SERVERS_MAX = 3;
const SEARCHES_MAX = 32;
/** Of the cluster: its namespace's services, all services, all of it. */
const CLUSTER_SEARCHES = 3;
const SEARCH_BYTES_MAX = 2048;
const SEARCH_PATH_BYTES_MAX = 253;

export function parseResolvConf(text: string): Resolver {
  const servers: string[] = [];
  let searches: string[] = [];
  const options = new Map<string, string>();
  for (const line of text.split("\n")) {
    const [keyword, ...words] = line.trim().split(/\s+/);
    if (keyword === "nameserver" && words[0]) servers.push(words[0]);
    if (keyword === "search") searches = words.filter((path) => path !== ".").map((path) => path.replace(/\.$/, ""));
    if (keyword === "options") for (const option of words) options.set(option.split(":")[0]!, option);
  }
  return { servers, searches, options: [...options.values()] };
}

/** What of the host's search paths pods of this node cannot have, to be told once. `path`: of the file they are from. */
export function searchProblem({ searches }: Resolver, { path, clusterDomain }: { readonly path: string; readonly clusterDomain: string }): string | undefined {
  const max = SEARCHES_MAX - (clusterDomain === "" ? 0 : CLUSTER_SEARCHES);
  if (searches.length > max) return `Resolv.conf file '${path}' contains search line consisting of more than ${max} domains!`;
  if (searches.some(({ length }) => length > SEARCH_PATH_BYTES_MAX)) return `Resolv.conf file "${path}" contains a search path which length is more than allowed ${SEARCH_PATH_BYTES_MAX} chars!`;
  return searches.join(" ").length > SEARCH_BYTES_MAX ? `Resolv.conf file '${path}' contains search line which length is more than allowed ${SEARCH_BYTES_MAX} chars!` : undefined;
}

export function podDns(facts: DnsFacts): PodDns {
  const { pod } = facts;
  const warnings: Warning[] = [];
  const base = baseOf(facts, warnings);
  const { nameservers = [], searches = [], options = [] } = pod.spec.dnsConfig ?? {};
  const merged = new Map(base.options.map((option) => [option.split(":")[0]!, option]));
  for (const { name = "", value } of options) merged.set(name, value ? `${name}:${value}` : name);
  const config = { servers: [...new Set([...base.servers, ...nameservers])], searches: [...new Set([...base.searches, ...searches])], options: [...merged.values()] };
  return { config: fit(config, warnings), warnings };
}

function baseOf({ pod, host, nodeIps, clusterDns, clusterDomain }: DnsFacts, warnings: Warning[]): Resolver {
  const policy = pod.spec.dnsPolicy ?? "ClusterFirst";
  if (policy === "None") return { servers: [], searches: [], options: [] };
  const ofCluster = policy === "ClusterFirstWithHostNet" || (policy === "ClusterFirst" && !isHostNetwork(pod));
  if (ofCluster && clusterDns.length > 0) {
    const own = clusterDomain === "" ? [] : [`${pod.metadata.namespace ?? ""}.svc.${clusterDomain}`, `svc.${clusterDomain}`, clusterDomain];
    return { servers: clusterDns, searches: [...new Set([...own, ...(host?.searches ?? [])])], options: CLUSTER_OPTIONS };
  }
  if (ofCluster) {
    const message = `kubelet does not have ClusterDNS IP configured and cannot create Pod using "ClusterFirst" policy. Falling back to "Default" policy.`;
    warnings.push({ about: "node", reason: "MissingClusterDNS", message }, { about: "pod", reason: "MissingClusterDNS", message: `pod: "${formatPod(pod)}". ${message}` });
  }
  if (host) return host;
  const loopback = nodeIps.map((ip) => (ip.includes(":") ? "::1" : "127.0.0.1"));
  return { servers: loopback.length > 0 ? loopback : ["127.0.0.1"], searches: ["."], options: [] };
}

function fit({ servers, searches, options }: Required<{ [K in keyof Resolver]: string[] }>, warnings: Warning[]): DNSConfig {
  const keptServers = servers.slice(0, SERVERS_MAX);
  if (keptServers.length < servers.length) {
    warnings.push({ about: "pod", reason: "DNSConfigForming", message: `Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: ${keptServers.join(" ")}` });
  }
  const keptSearches = searches.slice(0, SEARCHES_MAX).filter((path) => path.length <= SEARCH_PATH_BYTES_MAX);
  while (keptSearches.join(" ").length > SEARCH_BYTES_MAX) keptSearches.pop();
  if (keptSearches.length < searches.length) {
    warnings.push({ about: "pod", reason: "DNSConfigForming", message: `Search Line limits were exceeded, some search paths have been omitted, the applied search line is: ${keptSearches.join(" ")}` });
  }
  return { servers: keptServers, searches: keptSearches, options };
}
