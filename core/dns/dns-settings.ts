/**
 * What users can say about names that are not the cluster's: the ConfigMap kube-system/coracle-dns, with the keys and forms of the ConfigMap kube-dns of old.
 *
 *   stubDomains:          {"acme.example": ["10.0.0.53", "10.0.0.54:5353"]}    servers for a domain and all below it; the longest domain counts
 *   upstreamNameservers:  ["192.0.2.53"]                                       for all other names, instead of the host's own
 *
 * What cannot be read is left out and named in the log; the host's servers stand in. Pure.
 *
 * Source: https://kubernetes.io/docs/tasks/administer-cluster/dns-custom-nameservers/ (as of the time of kube-dns)
 */
import { errorText } from "../api/meta/error-text.ts";
import type { ConfigMap } from "../api/gen/core.v1.ts";
import { formatIp, parseIp } from "../net/cidr.ts";

export const DNS_SETTINGS = { namespace: "kube-system", name: "coracle-dns" } as const;
/** The C library's limit. */
const SERVERS_MAX = 3;

export interface DnsSettings {
  /** Undefined: those of the host. */
  readonly upstreams: readonly string[] | undefined;
  /** By domain, in lower case, without a dot at the end. */
  readonly stubs: ReadonlyMap<string, readonly string[]>;
  readonly problems: readonly string[];
}

export const NO_DNS_SETTINGS: DnsSettings = { upstreams: undefined, stubs: new Map(), problems: [] };

export function dnsSettings({ data = {} }: Pick<Readonly<ConfigMap>, "data">): DnsSettings {
  const problems: string[] = [];
  const upstreams = serversOf(jsonOf(data["upstreamNameservers"], "upstreamNameservers", problems), "upstreamNameservers", problems);
  const stubs = new Map<string, readonly string[]>();
  const domains = jsonOf(data["stubDomains"], "stubDomains", problems);
  if (domains !== undefined && (typeof domains !== "object" || domains === null || Array.isArray(domains))) problems.push("stubDomains: must be a map of domains to lists of servers");
  else
    for (const [domain, list] of Object.entries(domains ?? {})) {
      const servers = serversOf(list, `stubDomains[${domain}]`, problems);
      if (servers !== undefined) stubs.set(domain.toLowerCase().replace(/\.$/, ""), servers);
    }
  return { upstreams, stubs, problems };
}

/** Who is to be asked for a name, out of the settings; undefined: the host's servers. */
export function serversFor({ upstreams, stubs }: DnsSettings, name: string): readonly string[] | undefined {
  if (stubs.size > 0)
    for (let domain = name.toLowerCase().replace(/\.$/, ""); domain !== ""; domain = domain.includes(".") ? domain.slice(domain.indexOf(".") + 1) : "") {
      const servers = stubs.get(domain);
      if (servers) return servers;
    }
  return upstreams;
}

/** "10.0.0.53", "10.0.0.53:5353", "[fd00::53]:5353", "fd00::53%eth0" */
export function splitServer(server: string, defaultPort: number): { readonly address: string; readonly port: number } {
  const match = /^(?:\[([^\]]+)\]|([^:]+)):(\d+)$/.exec(server);
  return match ? { address: match[1] ?? match[2]!, port: Number(match[3]) } : { address: server, port: defaultPort };
}

function jsonOf(text: string | undefined, key: string, problems: string[]): unknown {
  if (text === undefined || text.trim() === "") return undefined;
  try {
    return JSON.parse(text);
  } catch (error) {
    problems.push(`${key}: ${errorText(error)}`);
    return undefined;
  }
}

function serversOf(value: unknown, key: string, problems: string[]): readonly string[] | undefined {
  if (value === undefined) return undefined;
  const servers = (Array.isArray(value) ? value : []).flatMap((one): string[] => {
    const { address, port } = splitServer(String(one), 53);
    const ip = parseIp(address);
    if (ip === undefined || port < 1 || port > 65_535) {
      problems.push(`${key}: ${JSON.stringify(one)} is no address of a server`);
      return [];
    }
    return [port === 53 ? formatIp(ip) : `${ip.family === 6 ? `[${formatIp(ip)}]` : formatIp(ip)}:${port}`];
  });
  if (servers.length > 0) return servers.slice(0, SERVERS_MAX);
  problems.push(`${key}: must be a list of servers`);
  return undefined;
}
