/** What a pod shares with its host, and how it finds others: host ports, user namespaces, host name, DNS, host aliases. Source: kubernetes v1.36 pkg/apis/core/validation/validation.go */
import { child, duplicate, type FieldError, forbidden, index, invalid, required, tooLong } from "../../../../api/meta/field-error.ts";
import type { Container, HostAlias, PodDNSConfig, PodSpec } from "../../../../api/gen/core.v1.ts";
import { byteLength } from "../../../../api/meta/byte-length.ts";
import { dns1123SubdomainWithUnderscore } from "../../../../api/meta/names.ts";
import { legacyIp } from "../../checks/ip.ts";
import { isDns1123Subdomain, problems } from "../../checks/values.ts";
import { containersOf } from "../containers.ts";
import type { PodRules } from "../rules.ts";

const NAMESERVERS_MAX = 3;
const SEARCHES_MAX = 32;
const SEARCHES_BYTES_MAX = 2048;
const HOSTNAME_OVERRIDE_BYTES_MAX = 64;

/** A port of the host can be given to one container port. */
export function* validateHostPorts(path: string, containers: readonly Container[]): Iterable<FieldError> {
  const taken = new Set<string>();
  for (const [i, { ports }] of containers.entries()) {
    for (const [j, { hostPort, hostIP, protocol }] of (ports ?? []).entries()) {
      if (!hostPort) continue;
      const key = `${protocol ?? ""}/${hostIP ?? ""}/${hostPort}`;
      if (taken.has(key)) yield duplicate(child(index(child(index(path, i), "ports"), j), "hostPort"), key);
      taken.add(key);
    }
  }
}

/** On the host's network a container's port is a port of the host. */
export function* validateHostNetwork(path: string, spec: Readonly<PodSpec>, { isPod }: PodRules): Iterable<FieldError> {
  if (!spec.hostNetwork) return;
  for (const [i, { ports }] of (spec.containers ?? []).entries())
    for (const [j, { hostPort = 0, containerPort }] of (ports ?? []).entries())
      if ((isPod || hostPort !== 0) && hostPort !== containerPort)
        yield invalid(child(index(child(index(child(path, "containers"), i), "ports"), j), "hostPort"), hostPort, "must match `containerPort` when `hostNetwork` is true");
}

export function* validateHostUsers(path: string, spec: Readonly<PodSpec>, rules: PodRules): Iterable<FieldError> {
  if (spec.hostUsers !== false) return;
  const text = "when `hostUsers` is false";
  if (spec.hostNetwork && !rules.allowHostNetworkInUserNamespace) yield forbidden(child(path, "hostNetwork"), text);
  if (spec.hostPID) yield forbidden(child(path, "HostPID"), text);
  if (spec.hostIPC) yield forbidden(child(path, "HostIPC"), text);
  if (rules.allowVolumeDevicesInUserNamespace) return;
  for (const { container, path: at } of containersOf(spec, path)) if (container.volumeDevices?.length) yield forbidden(child(at, "volumeDevices"), text);
}

export function* validateHostnameOverride(path: string, spec: Readonly<PodSpec>): Iterable<FieldError> {
  const name = spec.hostnameOverride;
  if (name === undefined) return;
  const at = child(path, "hostnameOverride");
  if (spec.setHostnameAsFQDN) yield forbidden(at, "may not be specified when setHostnameAsFQDN is true");
  if (spec.hostNetwork) yield forbidden(at, "may not be specified when hostNetwork is true");
  if (byteLength(name) > HOSTNAME_OVERRIDE_BYTES_MAX) yield tooLong(at, HOSTNAME_OVERRIDE_BYTES_MAX);
  yield* isDns1123Subdomain(at, name);
}

export function* validateDnsConfig(path: string, config: PodDNSConfig | undefined, policy: string | undefined): Iterable<FieldError> {
  if (policy === "None") {
    if (!config) { yield required(path, "must provide `dnsConfig` when `dnsPolicy` is None"); return; }
    if (!config.nameservers?.length) { yield required(child(path, "nameservers"), "must provide at least one DNS nameserver when `dnsPolicy` is None"); return; }
  }
  if (!config) return;
  const { nameservers = [], searches = [], options = [] } = config;
  if (nameservers.length > NAMESERVERS_MAX) yield invalid(child(path, "nameservers"), nameservers, `must not have more than ${NAMESERVERS_MAX} nameservers`);
  for (const [i, server] of nameservers.entries()) yield* legacyIp(index(child(path, "nameservers"), i), server);
  const at = child(path, "searches");
  if (searches.length > SEARCHES_MAX) yield invalid(at, searches, `must not have more than ${SEARCHES_MAX} search paths`);
  if (byteLength(searches.join(" ")) > SEARCHES_BYTES_MAX) yield invalid(at, searches, `must not have more than ${SEARCHES_BYTES_MAX} characters (including spaces) in the search list`);
  for (const [i, search] of searches.entries()) {
    if (search === ".") continue;
    const domain = search.replace(/\.$/, "");
    yield* problems(index(at, i), domain, dns1123SubdomainWithUnderscore(domain));
  }
  for (const [i, { name }] of options.entries()) if (!name) yield required(index(child(path, "options"), i), "must not be empty");
}

export function* validateHostAliases(path: string, aliases: readonly HostAlias[]): Iterable<FieldError> {
  for (const [i, { ip, hostnames }] of aliases.entries()) {
    yield* legacyIp(child(index(path, i), "ip"), ip);
    for (const [j, name] of (hostnames ?? []).entries()) yield* isDns1123Subdomain(index(child(index(path, i), "hostnames"), j), name);
  }
}
