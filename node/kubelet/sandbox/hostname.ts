/** What a pod is called, and the /etc/hosts that says so. Source: kubernetes v1.36 pkg/kubelet/kubelet_pods.go, pkg/kubelet/util/util.go */
import type { HostAlias, Pod } from "../../../core/api/gen/core.v1.ts";
import { DNS1123_LABEL_BYTES_MAX, dns1123Label, dns1123Subdomain } from "../../../core/api/meta/names.ts";

/** Linux' limit. */
const HOSTNAME_BYTES_MAX = 64;

export interface PodHostname { readonly hostname: string; readonly domain: string; /** What the kernel is told: the FQDN when the pod wants it. */ readonly kernelName: string }

/** Throws an Error for the user when a name is no name. */
export function podHostname(pod: Pod, clusterDomain: string): PodHostname {
  const { hostname, subdomain, hostnameOverride, setHostnameAsFQDN } = pod.spec;
  if (hostnameOverride !== undefined) {
    const problems = dns1123Subdomain(hostnameOverride);
    if (problems.length > 0) throw new Error(`pod HostnameOverride "${hostnameOverride}" is not a valid DNS subdomain: ${problems.join(";")}`);
    const name = truncate(pod.metadata.name, hostnameOverride);
    return { hostname: name, domain: "", kernelName: name };
  }
  check("Hostname", hostname);
  check("Subdomain", subdomain);
  const short = truncate(pod.metadata.name, hostname || pod.metadata.name);
  const domain = subdomain ? `${subdomain}.${pod.metadata.namespace ?? ""}.svc.${clusterDomain}` : "";
  const kernelName = setHostnameAsFQDN && domain !== "" ? `${short}.${domain}` : short;
  if (kernelName.length > HOSTNAME_BYTES_MAX) throw new Error(`failed to construct FQDN from pod hostname and cluster domain, FQDN ${kernelName} is too long (${HOSTNAME_BYTES_MAX} characters is the max, ${kernelName.length} characters requested)`);
  return { hostname: short, domain, kernelName };
}

function check(what: string, name: string | undefined): void {
  const problems = name ? dns1123Label(name) : [];
  if (problems.length > 0) throw new Error(`pod ${what} "${name}" is not a valid DNS label: ${problems.join(";")}`);
}

function truncate(podName: string, hostname: string): string {
  if (hostname.length <= DNS1123_LABEL_BYTES_MAX) return hostname;
  const cut = hostname.slice(0, DNS1123_LABEL_BYTES_MAX).replace(/[-.]+$/, "");
  if (cut === "") throw new Error(`hostname for pod "${podName}" was invalid: "${hostname}"`);
  return cut;
}

/** For a pod with a network of its own. */
export function managedHosts({ hostname, domain }: PodHostname, ips: readonly string[], aliases: readonly HostAlias[] = []): string {
  return [
    "# Kubernetes-managed hosts file.", "127.0.0.1\tlocalhost", "::1\tlocalhost ip6-localhost ip6-loopback", "fe00::0\tip6-localnet", "fe00::0\tip6-mcastprefix",
    "fe00::1\tip6-allnodes", "fe00::2\tip6-allrouters", ...ips.map((ip) => (domain === "" ? `${ip}\t${hostname}` : `${ip}\t${hostname}.${domain}\t${hostname}`)), "",
  ].join("\n") + aliasLines(aliases);
}

/** For a pod in the node's network: the node's own, and the pod's aliases. */
export function nodeHosts(nodeHostsFile: string, aliases: readonly HostAlias[] = []): string {
  return `# Kubernetes-managed hosts file (host network).\n${nodeHostsFile}${aliasLines(aliases)}`;
}

function aliasLines(aliases: readonly HostAlias[]): string {
  if (aliases.length === 0) return "";
  return ["", "# Entries added by HostAliases.", ...aliases.map(({ ip, hostnames = [] }) => `${ip}\t${hostnames.join("\t")}`), ""].join("\n");
}
