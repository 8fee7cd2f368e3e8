/**
 * From a Service port to its part of the nftables ruleset. Pure.
 *
 *   service-ips, service-nodeports   address, protocol, port ─▶ one of the chains below
 *   tcp-endpoints/3                  to one of three endpoints at random, by address, port and number in the map `tcp-endpoints`: all Services that have
 *                                    nothing but a cluster IP share these chains, and one that changes costs some elements of one map
 *   cluster/…  local/…               the same for a Service that can be reached from outside, by number in a map of its own.
 *                                    With session affinity a chain for each endpoint, which remembers the client in a set with a timeout
 *   external/…                       in front of them for traffic from outside: masquerades, or keeps to this node
 *   firewall/…                       loadBalancerSourceRanges, before the address is translated
 *   no-endpoint-…                    rejects where no node has an endpoint, drops where only this one has none
 *
 * Chain names are the Service's own (cluster/default/web/tcp/http), and where they are not a comment has it, so that `nft list ruleset` can be read.
 *
 * Source: kubernetes v1.36 pkg/proxy/nftables/proxier.go (which packet goes where)
 */
import { createHash } from "node:crypto";
import { MASQUERADE_MARK } from "../../os/packet-marks.ts";
import type { Backend, PortPlan } from "../desired.ts";
import type { ContainerName, Element, NamedSet, Piece, Right } from "./ruleset.ts";

export const MASQUERADE = `mark set mark or ${MASQUERADE_MARK}`;
export const REJECT_CHAIN = "reject-chain";
/** What a key in a map of endpoints is made of; the rules have their own count in it. */
export const ENDPOINT_NUMBER = "numgen random mod 65536";
/** The kernel's limit is 255. */
const NAME_LENGTH_MAX = 240;
/** nft's limit is 127. */
const COMMENT_LENGTH_MAX = 120;

/** `clusterCidrs`: of the port's family; packets from there are this cluster's own. */
export function renderPort(plan: PortPlan, clusterCidrs: readonly string[]): Piece {
  const { protocol, port, clusterIp, nodePort, externalIps, loadBalancerIps, anyBackend, internalLocal, externalLocal } = plan;
  const ip = plan.family === 4 ? "ip" : "ip6";
  const elements: Element[] = [];
  const chains = new Map<string, readonly string[]>();
  const sets = new Map<string, NamedSet>();
  const add = (container: ContainerName, key: string, value = ""): void => void elements.push({ container, key, value });
  const own = (container: ContainerName, value: string): void => void elements.push({ container, key: at(clusterIp), value, right: "own" });
  const given = new Set(loadBalancerIps);
  const hold = (address: string, right: Right): void => void elements.push({ container: "service-ips", key: at(address), value: "", right, isHeld: true });
  const at = (address: string): string => `${address} . ${protocol} . ${port}`;
  const named = `comment "${`${plan.namespace}/${plan.service}${plan.portName === "" ? "" : `:${plan.portName}`}`.slice(0, COMMENT_LENGTH_MAX)}"`;

  const cluster = chainName("cluster", plan), local = chainName("local", plan), external = chainName("external", plan), firewall = chainName("firewall", plan);
  const internalBackends = internalLocal ? plan.localBackends : plan.clusterBackends;
  const externalBackends = externalLocal ? plan.localBackends : plan.clusterBackends;
  const without = `${named} : ${anyBackend ? "drop" : `goto ${REJECT_CHAIN}`}`;
  const vips = [...externalIps, ...loadBalancerIps];
  const shared = vips.length === 0 && nodePort === 0 && plan.affinitySeconds === 0;

  add("cluster-ips", clusterIp);
  if (internalBackends.length === 0) {
    own("no-endpoint-services", without);
    hold(clusterIp, "own");
  } else if (shared) sharedChain();
  else own("service-ips", `: goto ${internalLocal ? local : cluster}`);

  for (const vip of vips) {
    const right = given.has(vip) ? "given" : undefined;
    if (anyBackend) elements.push({ container: "service-ips", key: at(vip), value: `: goto ${external}`, right });
    else if (right) hold(vip, right);
    if (externalBackends.length === 0) elements.push({ container: "no-endpoint-services", key: at(vip), value: without, right });
  }
  if (nodePort !== 0) {
    if (anyBackend) add("service-nodeports", `${protocol} . ${nodePort}`, `: goto ${external}`);
    if (externalBackends.length === 0) add("no-endpoint-nodeports", `${protocol} . ${nodePort}`, without);
  }
  if (anyBackend && (vips.length > 0 || nodePort !== 0)) chains.set(external, externalRules());
  if (loadBalancerIps.length > 0 && plan.sourceRanges.length > 0) {
    for (const vip of loadBalancerIps) add("firewall-ips", at(vip), `: goto ${firewall}`);
    const sources = [...plan.sourceRanges, ...(plan.nodeInSourceRanges ? loadBalancerIps : [])];
    chains.set(firewall, [`${ip} saddr != { ${sources.join(", ")} } drop`]);
  }

  const reachable = new Map([...plan.clusterBackends, ...plan.localBackends].map((backend) => [`${backend.ip} ${backend.port}`, backend]));
  for (const backend of reachable.values()) if (backend.local) add("hairpin-connections", `${backend.ip} . ${backend.ip} . ${protocol} . ${backend.port}`);
  if (plan.affinitySeconds > 0) for (const backend of reachable.values()) affinityChain(backend);
  if (!shared && plan.clusterBackends.length > 0) chains.set(cluster, spread("cluster", plan.clusterBackends));
  if (!shared && plan.localBackends.length > 0) chains.set(local, spread("local", plan.localBackends));
  return { elements, chains, sets };

  function sharedChain(): void {
    const map = `${protocol}-endpoints` as const, count = internalBackends.length;
    chains.set(`${map}/${count}`, [`dnat ${ip} addr . port to ${ip} daddr . ${protocol} dport . numgen random mod ${count} map @${map}`]);
    own("service-ips", `${named} : goto ${map}/${count}`);
    for (const [i, backend] of internalBackends.entries()) add(map, `${clusterIp} . ${port} . ${i}`, `: ${backend.ip} . ${backend.port}`);
  }

  function externalRules(): string[] {
    if (!externalLocal) return [MASQUERADE, ...(externalBackends.length > 0 ? [`goto ${cluster}`] : [])];
    const rules: string[] = [];
    if (plan.clusterBackends.length > 0) { // from inside the cluster the policy does not count
      if (clusterCidrs.length > 0) rules.push(`${ip} saddr { ${clusterCidrs.join(", ")} } goto ${cluster}`);
      rules.push(`fib saddr type local ${MASQUERADE}`, `fib saddr type local goto ${cluster}`);
    }
    if (externalBackends.length > 0) rules.push(`goto ${local}`);
    return rules;
  }

  function affinityChain(backend: Backend): void {
    const set = affinitySet(backend);
    sets.set(set, { kind: "set", definition: `typeof ${ip} saddr; flags dynamic,timeout; timeout ${plan.affinitySeconds}s;` });
    const target = plan.family === 4 ? `${backend.ip}:${backend.port}` : `[${backend.ip}]:${backend.port}`;
    chains.set(endpointChain(backend), [`update @${set} { ${ip} saddr }`, `meta l4proto ${protocol} dnat to ${target}`]);
  }

  function spread(kind: "cluster" | "local", backends: readonly Backend[]): string[] {
    const numbered = `numgen random mod ${backends.length}`;
    if (plan.affinitySeconds === 0) {
      const map = mapOf(`${kind}-endpoints`, `${ip} daddr . ${protocol} dport`, backends.map((backend) => `${backend.ip} . ${backend.port}`));
      return [`meta l4proto ${protocol} dnat ${ip} addr . port to ${numbered} map @${map}`];
    }
    const map = mapOf(`${kind}-affinity`, "verdict", backends.map((backend) => `goto ${endpointChain(backend)}`));
    return [...backends.map((backend) => `${ip} saddr @${affinitySet(backend)} goto ${endpointChain(backend)}`), `${numbered} vmap @${map}`];
  }

  function mapOf(kind: string, to: string, values: readonly string[]): string {
    const name = chainName(kind, plan);
    sets.set(name, { kind: "map", definition: `typeof ${ENDPOINT_NUMBER} : ${to};` });
    for (const [i, value] of values.entries()) elements.push({ container: name, key: String(i), value: `: ${value}` });
    return name;
  }

  function endpointChain(backend: Backend): string { return chainName("endpoint", plan, [backend.ip.replaceAll(":", "."), String(backend.port)]); }
  /** The time is part of the name: a set's timeout cannot be changed. */
  function affinitySet(backend: Backend): string { return chainName("affinity", plan, [backend.ip.replaceAll(":", "."), String(backend.port), String(plan.affinitySeconds)]); }
}

function chainName(kind: string, { namespace, service, protocol, portName }: PortPlan, rest: readonly string[] = []): string {
  const name = [kind, namespace, service, protocol, ...(portName === "" ? [] : [portName]), ...rest].join("/");
  if (name.length <= NAME_LENGTH_MAX) return name;
  return `${name.slice(0, NAME_LENGTH_MAX - 17)}-${createHash("sha256").update(name).digest("hex").slice(0, 16)}`;
}
