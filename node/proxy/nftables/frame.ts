/**
 * The fixed part of our table: base chains on the kernel's hooks, the empty maps, and the rules that look packets up in them. One table a family.
 *
 * Sets and maps are declared with `typeof`, and nothing but addresses, ports and the like is looked up in an anonymous one: the nft of Debian 12 (1.0.6) dies of
 * anything else that ours has written, in whatever table it is, and with it whatever an administrator uses it for. There is a map of endpoints for each protocol: a port
 * in what a map gives must be one of its protocol's (nft adds that condition to the rule), for of `th dport` there it says that it contradicts the rule, if the map is older.
 *
 *   prerouting, output   source ranges are checked (before translation) ─▶ services: masquerade mark, lookup by address, lookup by node port
 *   input, forward,
 *   output               new connections to services without endpoints, to ports a cluster IP does not have, to service addresses nobody has
 *   postrouting          masquerade what is marked, and connections of a pod to itself through a Service
 *
 * Source: kubernetes v1.36 pkg/proxy/nftables/proxier.go setupNFTables (hooks, priorities, order)
 */
import type { Family } from "../../../core/net/cidr.ts";
import { MASQUERADE_MARK } from "../../os/packet-marks.ts";
import { ENDPOINT_NUMBER, MASQUERADE, REJECT_CHAIN } from "./render.ts";
import { CONTAINERS, type ContainerName } from "./ruleset.ts";

export interface FrameOptions {
  readonly table: string;
  readonly family: Family;
  /** Of this family. */
  readonly clusterCidrs: readonly string[];
  readonly serviceCidrs: readonly string[];
  /** Where node ports answer; undefined: at all of the node's addresses but loopback. */
  readonly nodePortCidrs?: readonly string[] | undefined;
}

const BASE_CHAINS: readonly (readonly [name: string, hook: string])[] = [
  ["filter-prerouting-pre-dnat", "type filter hook prerouting priority -110"],
  ["filter-output-pre-dnat", "type filter hook output priority -110"],
  ["filter-input", "type filter hook input priority 0"],
  ["filter-forward", "type filter hook forward priority 0"],
  ["filter-output", "type filter hook output priority 0"],
  ["nat-prerouting", "type nat hook prerouting priority -100"],
  ["nat-output", "type nat hook output priority -100"],
  ["nat-postrouting", "type nat hook postrouting priority 100"],
];
const DISPATCH_CHAINS = ["services", "cluster-ips-check", "masquerading", "service-endpoints-check", "nodeport-endpoints-check", "firewall-check", REJECT_CHAIN];

/** Names the frame uses: all others belong to services. */
export const FRAME_CHAINS: ReadonlySet<string> = new Set([...BASE_CHAINS.map(([name]) => name), ...DISPATCH_CHAINS]);

/** Commands that make the frame, or make it anew around what is there already: maps are emptied, affinity sets keep their clients. */
export function frameText({ table, family, clusterCidrs, serviceCidrs, nodePortCidrs }: FrameOptions): string {
  const ip = family === 4 ? "ip" : "ip6";
  const at = `${ip} ${table}`;
  const notLoopback = family === 4 ? "ip daddr != 127.0.0.0/8" : "ip6 daddr != ::1";
  const nodeAddresses = nodePortCidrs?.map((cidr) => `${notLoopback} ${ip} daddr ${cidr}`) ?? [notLoopback];
  const destination = `${ip} daddr . meta l4proto . th dport`;
  const endpoints = (protocol: string): string => `map ${at} ${protocol}-endpoints { typeof ${ip} daddr . ${protocol} dport . ${ENDPOINT_NUMBER} : ${ip} daddr . ${protocol} dport; }`;
  const types: Readonly<Record<ContainerName, string>> = {
    "cluster-ips": `set ${at} cluster-ips { typeof ${ip} daddr; }`,
    "hairpin-connections": `set ${at} hairpin-connections { typeof ${ip} saddr . ${destination}; }`,
    "tcp-endpoints": endpoints("tcp"),
    "udp-endpoints": endpoints("udp"),
    "sctp-endpoints": endpoints("sctp"),
    "service-ips": `map ${at} service-ips { typeof ${destination} : verdict; }`,
    "service-nodeports": `map ${at} service-nodeports { typeof meta l4proto . th dport : verdict; }`,
    "no-endpoint-services": `map ${at} no-endpoint-services { typeof ${destination} : verdict; }`,
    "no-endpoint-nodeports": `map ${at} no-endpoint-nodeports { typeof meta l4proto . th dport : verdict; }`,
    "firewall-ips": `map ${at} firewall-ips { typeof ${destination} : verdict; }`,
  };
  const rules: Readonly<Record<string, readonly string[]>> = {
    "filter-prerouting-pre-dnat": ["ct state new jump firewall-check"],
    "filter-output-pre-dnat": ["ct state new jump firewall-check"],
    "filter-input": ["ct state new jump nodeport-endpoints-check", "ct state new jump service-endpoints-check"],
    "filter-forward": ["ct state new jump service-endpoints-check", "ct state new jump cluster-ips-check"],
    "filter-output": ["ct state new jump service-endpoints-check", "ct state new jump cluster-ips-check"],
    "nat-prerouting": ["jump services"],
    "nat-output": ["jump services"],
    "nat-postrouting": ["jump masquerading"],
    services: [
      ...(clusterCidrs.length > 0 ? [`${ip} daddr @cluster-ips ${ip} saddr != { ${clusterCidrs.join(", ")} } ${MASQUERADE}`] : []),
      `${destination} vmap @service-ips`,
      ...nodeAddresses.map((condition) => `fib daddr type local ${condition} meta l4proto . th dport vmap @service-nodeports`),
    ],
    "cluster-ips-check": [`${ip} daddr @cluster-ips reject`, ...(serviceCidrs.length > 0 ? [`${ip} daddr { ${serviceCidrs.join(", ")} } drop`] : [])],
    masquerading: [
      `mark and ${MASQUERADE_MARK} != 0 mark set mark xor ${MASQUERADE_MARK} masquerade fully-random`,
      `ct status dnat ${ip} saddr . ${ip} daddr . meta l4proto . th dport @hairpin-connections masquerade fully-random`,
    ],
    "service-endpoints-check": [`${destination} vmap @no-endpoint-services`],
    "nodeport-endpoints-check": nodeAddresses.map((condition) => `${condition} meta l4proto . th dport vmap @no-endpoint-nodeports`),
    "firewall-check": [`${destination} vmap @firewall-ips`],
    [REJECT_CHAIN]: ["reject"],
  };
  const lines = [
    `add table ${at}`,
    ...CONTAINERS.map((name) => `add ${types[name]}`),
    ...BASE_CHAINS.map(([name, hook]) => `add chain ${at} ${name} { ${hook}; }`),
    ...DISPATCH_CHAINS.map((name) => `add chain ${at} ${name}`),
    ...[...FRAME_CHAINS].map((name) => `flush chain ${at} ${name}`),
    ...CONTAINERS.map((name) => `flush ${types[name].slice(0, 3)} ${at} ${name}`),
    ...[...FRAME_CHAINS].flatMap((name) => rules[name]!.map((rule) => `add rule ${at} ${name} ${rule}`)),
  ];
  return `${lines.join("\n")}\n`;
}
