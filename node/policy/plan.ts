/**
 * What NetworkPolicies ask of this node, as an nftables ruleset. Pure.
 *
 *   NetworkPolicies, Namespaces, Pods ─▶ planPolicies ─▶ PolicyRuleset ─▶ table.ts
 *
 * A policy is enforced where its pod is: what a pod may receive by the node it runs on, what it may send likewise. So there is a chain for each policy that
 * selects a pod of this node; a chain for each combination of policies that pods have, which asks them one after the other and drops what none allows; and maps
 * from pods' addresses to those. Peers are sets of addresses, one for each pair of selectors, however many rules use it.
 *
 * Addresses are those after the translation of Services. Pods on the host's network are the node's, and neither selected nor peers.
 *
 * API: https://kubernetes.io/docs/concepts/services-networking/network-policies/
 */
import { createHash } from "node:crypto";
import type { LabelSelector } from "../../core/api/gen/meta.v1.ts";
import type { NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort } from "../../core/api/gen/networking.v1.ts";
import { labelSelector, type Labels } from "../../core/api/meta/label-selector.ts";
import { cidrContains, type Family, formatCidr, parseCidr, parseIp } from "../../core/net/cidr.ts";
import { type NamedSet, type PolicyRuleset, rulesetOf } from "./ruleset.ts";

export interface PolicyPod {
  readonly namespace: string;
  readonly labels: Labels;
  /** In canonical form. */
  readonly ips: readonly string[];
  readonly ports: readonly { readonly name: string; readonly protocol: string; readonly port: number }[];
  /** On this node. */
  readonly local: boolean;
}

export interface PolicyWorld {
  readonly policies: readonly Readonly<NetworkPolicy>[];
  readonly namespaces: ReadonlyMap<string, Labels>;
  readonly pods: readonly PolicyPod[];
}

type Direction = "ingress" | "egress";
/** A condition on a packet, and the family it can hold in; undefined: both. */
interface Match { readonly text: string; readonly family: Family | undefined }

/** The kernel's limit is 255. */
const NAME_LENGTH_MAX = 200;
const ANYTHING: readonly Match[] = [{ text: "", family: undefined }];
/** Where an allowed packet goes on: what the sender may send, the receiver may still not receive. */
const ALLOWED: Readonly<Record<Direction, string>> = { ingress: "accept", egress: "goto check-ingress" };

export function planPolicies({ policies, namespaces, pods }: PolicyWorld): PolicyRuleset {
  const sets = new Map<string, NamedSet>();
  const chains = new Map<string, readonly string[]>();
  const podsOf = new Map<string, PolicyPod[]>();
  for (const pod of pods) append(podsOf, pod.namespace, pod);
  const policiesOf = new Map<string, Readonly<NetworkPolicy>[]>();
  for (const policy of policies.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))) append(policiesOf, policy.metadata.namespace ?? "", policy);
  const ruleset = rulesetOf(sets, chains);
  for (const [namespace, own] of policiesOf) for (const direction of ["ingress", "egress"] as const) isolate(namespace, own.filter((policy) => restricts(policy, direction)), direction);
  return ruleset;

  /** Of one namespace: its pods here that any of its policies selects. */
  function isolate(namespace: string, own: readonly Readonly<NetworkPolicy>[], direction: Direction): void {
    const selectors = own.map(({ spec }) => labelSelector(spec.podSelector ?? {}));
    const selected = new Map<Readonly<NetworkPolicy>, PolicyPod[]>();
    for (const pod of podsOf.get(namespace) ?? []) {
      if (!pod.local || pod.ips.length === 0) continue;
      const applying = own.filter((_, i) => selectors[i]!.matches(pod.labels));
      if (applying.length === 0) continue;
      for (const policy of applying) append(selected, policy, pod);
      const chain = nameOf(direction, "pods", namespace, digest(applying.map(({ metadata }) => metadata.name)));
      if (!chains.has(chain)) chains.set(chain, [...applying.map(({ metadata }) => `jump ${nameOf(direction, "policy", namespace, metadata.name)}`), "drop"]);
      for (const ip of pod.ips) {
        const family = familyOf(ip);
        ruleset.put(`${direction}${family}`, ip, `goto ${chain}`);
        ruleset.put(`self${family}`, `${ip} . ${ip}`, "");
      }
    }
    for (const [policy, here] of selected) chains.set(nameOf(direction, "policy", namespace, policy.metadata.name), rulesOf(policy, direction, here));
  }

  function rulesOf(policy: Readonly<NetworkPolicy>, direction: Direction, here: readonly PolicyPod[]): string[] {
    const namespace = policy.metadata.namespace ?? "";
    const rules = direction === "ingress" ? (policy.spec.ingress ?? []).map(({ from = [], ports = [] }) => ({ peers: from, ports })) : (policy.spec.egress ?? []).map(({ to = [], ports = [] }) => ({ peers: to, ports }));
    const side = direction === "ingress" ? "saddr" : "daddr";
    return rules.flatMap(({ peers, ports }) => {
      const from = peers.length === 0 ? ANYTHING : peers.flatMap((peer) => matchPeer(peer, namespace, side));
      const receivers = direction === "ingress" ? here : peers.length === 0 ? pods : peers.flatMap((peer) => podsOfPeer(peer, namespace));
      const at = ports.length === 0 ? ANYTHING : matchPorts(ports, receivers);
      return from.flatMap((one) => at.filter(({ family }) => family === undefined || one.family === undefined || family === one.family).map((other) => [one.text, other.text, ALLOWED[direction]].filter((text) => text !== "").join(" ")));
    });
  }

  function matchPeer(peer: NetworkPolicyPeer, namespace: string, side: "saddr" | "daddr"): Match[] {
    if (peer.ipBlock) return matchBlock(peer.ipBlock.cidr, peer.ipBlock.except ?? [], side);
    const key = digest([namespaceScope(peer, namespace), canonical(peer.podSelector ?? {})]);
    return ([4, 6] as const).map((family) => {
      const name = `pods${family}/${key}`;
      if (!sets.has(name)) sets.set(name, { kind: "set", definition: `typeof ${ipOf(family)} saddr;`, elements: new Map(podsOfPeer(peer, namespace).flatMap(({ ips }) => ips.filter((ip) => familyOf(ip) === family).map((ip): [string, string] => [ip, ""]))) });
      return { text: `${ipOf(family)} ${side} @${name}`, family };
    });
  }

  function podsOfPeer({ ipBlock, podSelector, namespaceSelector }: NetworkPolicyPeer, namespace: string): PolicyPod[] {
    if (ipBlock) return [];
    const wanted = labelSelector(podSelector ?? {});
    const spaces = namespaceSelector === undefined ? [namespace] : selectedNamespaces(namespaceSelector);
    return spaces.flatMap((space) => (podsOf.get(space) ?? []).filter(({ labels }) => wanted.matches(labels)));
  }

  function selectedNamespaces(selector: LabelSelector): string[] {
    const wanted = labelSelector(selector);
    return [...namespaces].filter(([, labels]) => wanted.matches(labels)).map(([name]) => name);
  }

  function matchPorts(ports: readonly NetworkPolicyPort[], receivers: readonly PolicyPod[]): Match[] {
    const numbers = new Map<string, string[]>();
    const whole = new Set<string>();
    const named = new Map<string, NetworkPolicyPort>();
    for (const one of ports) {
      const protocol = (one.protocol ?? "TCP").toLowerCase();
      if (one.port === undefined) whole.add(protocol);
      else if (typeof one.port === "string") named.set(`${protocol} ${one.port}`, one);
      else append(numbers, protocol, one.endPort === undefined || one.endPort <= one.port ? String(one.port) : `${one.port}-${one.endPort}`);
    }
    const plain = [...whole].map((protocol): Match => ({ text: `meta l4proto ${protocol}`, family: undefined }));
    for (const [protocol, list] of numbers) if (!whole.has(protocol)) plain.push({ text: `meta l4proto ${protocol} th dport { ${withoutOverlaps(list).join(", ")} }`, family: undefined });
    return [...plain, ...(named.size === 0 ? [] : matchNamed([...named.values()], receivers))];
  }

  /** A name means another number on each pod: pairs of address and port. */
  function matchNamed(ports: readonly NetworkPolicyPort[], receivers: readonly PolicyPod[]): Match[] {
    const found: Record<Family, Map<string, string>> = { 4: new Map(), 6: new Map() };
    for (const pod of receivers)
      for (const { name, protocol, port } of pod.ports) {
        if (!ports.some((one) => one.port === name && (one.protocol ?? "TCP") === protocol)) continue;
        for (const ip of pod.ips) found[familyOf(ip)].set(`${ip} . ${protocol.toLowerCase()} . ${port}`, "");
      }
    return ([4, 6] as const).flatMap((family) => {
      const elements = found[family];
      if (elements.size === 0) return [];
      const name = `ports${family}/${digest([...elements.keys()].toSorted())}`;
      sets.set(name, { kind: "set", definition: `typeof ${ipOf(family)} daddr . meta l4proto . th dport;`, elements });
      return [{ text: `${ipOf(family)} daddr . meta l4proto . th dport @${name}`, family }];
    });
  }
}

/** Policies from before there were types are about what pods receive, and about what they send if they say anything of it. */
function restricts({ spec }: Readonly<NetworkPolicy>, direction: Direction): boolean {
  const types = spec.policyTypes?.length ? spec.policyTypes : ["Ingress", ...(spec.egress?.length ? ["Egress"] : [])];
  return types.includes(direction === "ingress" ? "Ingress" : "Egress");
}

function matchBlock(text: string, except: readonly string[], side: "saddr" | "daddr"): Match[] {
  const cidr = parseCidr(text);
  if (!cidr) return [];
  const ip = ipOf(cidr.family);
  const without = except.flatMap((one) => parseCidr(one) ?? []).filter(({ family }) => family === cidr.family);
  const outer = without.filter((one, i) => !without.some((other, j) => i !== j && cidrContains(other, { family: one.family, value: one.base }) && (other.prefix < one.prefix || (other.prefix === one.prefix && j < i))));
  return [{ text: `${ip} ${side} ${formatCidr(cidr)}${outer.length === 0 ? "" : ` ${ip} ${side} != { ${outer.map(formatCidr).join(", ")} }`}`, family: cidr.family }];
}

/** nft refuses a set with one range inside another. */
function withoutOverlaps(ranges: readonly string[]): string[] {
  const spans = ranges.map((text) => text.split("-").map(Number)).map(([from, to]) => ({ from: from!, to: to ?? from! })).toSorted((a, b) => a.from - b.from);
  const merged: { from: number; to: number }[] = [];
  for (const span of spans) {
    const last = merged.at(-1);
    if (last && span.from <= last.to + 1) last.to = Math.max(last.to, span.to);
    else merged.push({ ...span });
  }
  return merged.map(({ from, to }) => (from === to ? String(from) : `${from}-${to}`));
}

function namespaceScope({ namespaceSelector }: NetworkPolicyPeer, namespace: string): string { return namespaceSelector === undefined ? `=${namespace}` : canonical(namespaceSelector); }

function canonical({ matchLabels = {}, matchExpressions = [] }: LabelSelector): string {
  return JSON.stringify([Object.entries(matchLabels).toSorted(), matchExpressions.map(({ key, operator, values = [] }) => JSON.stringify([key, operator, values.toSorted()])).toSorted()]);
}

function nameOf(...parts: readonly string[]): string {
  const name = parts.join("/");
  return name.length <= NAME_LENGTH_MAX ? name : `${name.slice(0, NAME_LENGTH_MAX - 17)}-${digest([name])}`;
}

function append<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
}

function digest(parts: readonly string[]): string { return createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 16); }
function familyOf(ip: string): Family { return parseIp(ip)?.family ?? 4; }
function ipOf(family: Family): string { return family === 4 ? "ip" : "ip6"; }
