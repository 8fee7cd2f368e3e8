/**
 * What NetworkPolicies ask of this node, as an nftables ruleset. Pure.
 *
 *   NetworkPolicies, Namespaces, Pods ─▶ planPolicies ─▶ PolicyRuleset ─▶ ruleset.ts
 *
 * A planner remembers from one plan to the next what was made of the same objects (memory.ts): a pod that comes or goes costs its namespace and the sets it is
 * in, and sets that are the same objects are the same sets. One policy may name tens of thousands of peers: after each, others may have their turn.
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
import type { IPBlock, NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort } from "../../core/api/gen/networking.v1.ts";
import type { Labels } from "../../core/api/meta/label-requirement.ts";
import { labelSelector } from "../../core/api/meta/label-selector.ts";
import { atOnce, type Pausing } from "../../core/lifecycle/breather.ts";
import { type Cidr, type Family, formatCidr, outermost, parseStoredCidr } from "../../core/net/cidr.ts";
import { Memory } from "./memory.ts";
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
/** Ports or ranges of addresses that stand in a rule itself. More are a set of their own: each peer's rule has them, and nft takes time that grows with the square of what it reads in one. */
const INLINE_MAX = 64;
const EVERYTHING: LabelSelector = {};
const NOBODY: readonly PolicyPod[] = [];
const ANYTHING: readonly Match[] = [{ text: "", family: undefined }];
/** Where an allowed packet goes on: what the sender may send, the receiver may still not receive. */
const ALLOWED: Readonly<Record<Direction, string>> = { ingress: "accept", egress: "goto check-ingress" };

export function policyPlanner(): (world: PolicyWorld) => Pausing<PolicyRuleset> {
  const memory = new Memory();
  const selectors = new WeakMap<LabelSelector, Selector>();
  const keys: Known["keys"] = new WeakMap(), blocks: Known["blocks"] = new WeakMap();
  return function* (world) {
    const ruleset = yield* plan(world, { memory, selectors, keys, blocks });
    memory.turn();
    return ruleset;
  };
}

/** Once, for want of a plan before. */
export function planPolicies(world: PolicyWorld): PolicyRuleset { return atOnce(policyPlanner()(world)); }

type Selector = ReturnType<typeof labelSelector>;
interface Known { readonly memory: Memory; readonly selectors: WeakMap<LabelSelector, Selector>; readonly keys: WeakMap<NetworkPolicyPeer, { readonly namespace: string; readonly key: string }>; readonly blocks: WeakMap<IPBlock, Block> }
/** A range of addresses without others, which are a set of that name if they are many. */
interface Block { readonly cidr: Cidr; readonly without: readonly string[]; readonly name: string | undefined }

function* plan({ policies, namespaces, pods }: PolicyWorld, { memory, selectors, keys, blocks }: Known): Pausing<PolicyRuleset> {
  const sets = new Map<string, NamedSet>();
  const chains = new Map<string, readonly string[]>();
  const grouped = new Map<string, PolicyPod[]>();
  for (const pod of pods) append(grouped, pod.namespace, pod);
  const podsOf = new Map<string, readonly PolicyPod[]>();
  for (const [namespace, list] of grouped) podsOf.set(namespace, memory.recall(`pods ${namespace}`, list, () => list));
  const spaces = memory.recall("namespaces", [...namespaces].flat(), () => [...namespaces]);
  const policiesOf = new Map<string, Readonly<NetworkPolicy>[]>();
  for (const policy of policies.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))) append(policiesOf, policy.metadata.namespace ?? "", policy);
  const ruleset = rulesetOf(sets, chains);
  for (const [namespace, own] of policiesOf) for (const direction of ["ingress", "egress"] as const) yield* isolate(namespace, own.filter((policy) => restricts(policy, direction)), direction);
  return ruleset;

  /** Of one namespace: its pods here that any of its policies selects. */
  function* isolate(namespace: string, own: readonly Readonly<NetworkPolicy>[], direction: Direction): Pausing<void> {
    const wanted: Selector[] = [];
    for (const { spec } of own) {
      wanted.push(selectorOf(spec.podSelector ?? EVERYTHING));
      yield;
    }
    const selected = new Map<Readonly<NetworkPolicy>, PolicyPod[]>();
    for (const pod of podsOf.get(namespace) ?? []) {
      yield;
      if (!pod.local || pod.ips.length === 0) continue;
      const applying = own.filter((_, i) => wanted[i]!.matches(pod.labels));
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
    for (const [policy, here] of selected) chains.set(nameOf(direction, "policy", namespace, policy.metadata.name), yield* rulesOf(policy, direction, here));
  }

  function* rulesOf(policy: Readonly<NetworkPolicy>, direction: Direction, here: readonly PolicyPod[]): Pausing<string[]> {
    const namespace = policy.metadata.namespace ?? "";
    const rules = direction === "ingress" ? (policy.spec.ingress ?? []).map(({ from = [], ports = [] }) => ({ peers: from, ports })) : (policy.spec.egress ?? []).map(({ to = [], ports = [] }) => ({ peers: to, ports }));
    const side = direction === "ingress" ? "saddr" : "daddr";
    const lines: string[] = [];
    for (const { peers, ports } of rules) {
      const from = peers.length === 0 ? ANYTHING : yield* matchPeers(peers, namespace, side);
      const at = ports.length === 0 ? ANYTHING : yield* matchPorts(ports, () => (direction === "ingress" ? [here] : receivers(peers, namespace)));
      for (const one of from) {
        for (const other of at) if (other.family === undefined || one.family === undefined || other.family === one.family) lines.push([one.text, other.text, ALLOWED[direction]].filter((text) => text !== "").join(" "));
        yield;
      }
    }
    return lines;
  }

  /** A range may be of pods' addresses, too. */
  function receivers(peers: readonly NetworkPolicyPeer[], namespace: string): Iterable<readonly PolicyPod[]> {
    return peers.length === 0 || peers.some(({ ipBlock }) => ipBlock) ? podsOf.values() : peers.values().map((peer) => podsOfPeer(peer, namespace));
  }

  function* matchPeers(peers: readonly NetworkPolicyPeer[], namespace: string, side: "saddr" | "daddr"): Pausing<readonly Match[]> {
    const found: Match[] = [];
    for (const peer of peers) {
      found.push(...matchPeer(peer, namespace, side));
      yield;
    }
    return found;
  }

  function matchPeer(peer: NetworkPolicyPeer, namespace: string, side: "saddr" | "daddr"): Match[] {
    if (peer.ipBlock) return matchBlock(peer.ipBlock, side);
    const key = keyOf(peer, namespace);
    let known: readonly PolicyPod[] | undefined;
    return ([4, 6] as const).map((family) => {
      const name = `pods${family}/${key}`;
      if (!sets.has(name)) {
        const members = (known ??= podsOfPeer(peer, namespace));
        sets.set(
          name,
          memory.recall(name, [members], () => ({ kind: "set", definition: `typeof ${ipOf(family)} saddr;`, elements: new Map(members.flatMap(({ ips }) => ips.filter((ip) => familyOf(ip) === family).map((ip): [string, string] => [ip, ""]))) })),
        );
      }
      return { text: `${ipOf(family)} ${side} @${name}`, family };
    });
  }

  function podsOfPeer(peer: NetworkPolicyPeer, namespace: string): readonly PolicyPod[] {
    const { ipBlock, podSelector = EVERYTHING, namespaceSelector } = peer;
    if (ipBlock) return NOBODY;
    const key = keyOf(peer, namespace), wanted = selectorOf(podSelector);
    const from = (namespaceSelector === undefined ? [namespace] : selectedNamespaces(namespaceSelector)).flatMap((name) => { const list = podsOf.get(name); return list ? [list] : []; });
    const parts = from.map((list) => memory.recall(`of ${key} in ${list[0]!.namespace}`, [list], () => list.filter(({ labels }) => wanted.matches(labels))));
    return memory.recall(`of ${key}`, parts, () => parts.flat());
  }

  function selectedNamespaces(selector: LabelSelector): readonly string[] {
    const wanted = selectorOf(selector);
    return memory.recall(`namespaces ${canonical(selector)}`, [spaces], () => spaces.filter(([, labels]) => wanted.matches(labels)).map(([name]) => name));
  }

  function selectorOf(selector: LabelSelector): Selector {
    const known = selectors.get(selector) ?? labelSelector(selector);
    selectors.set(selector, known);
    return known;
  }

  /** One for each pair of selectors. */
  function keyOf(peer: NetworkPolicyPeer, namespace: string): string {
    const known = keys.get(peer);
    if (known?.namespace === namespace) return known.key;
    const key = digest([namespaceScope(peer, namespace), canonical(peer.podSelector ?? EVERYTHING)]);
    keys.set(peer, { namespace, key });
    return key;
  }

  function* matchPorts(ports: readonly NetworkPolicyPort[], receivers: () => Iterable<readonly PolicyPod[]>): Pausing<readonly Match[]> {
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
    for (const [protocol, list] of numbers) if (!whole.has(protocol)) plain.push({ text: `meta l4proto ${protocol} th dport ${listed("ports", "th dport", withoutOverlaps(list))}`, family: undefined });
    return named.size === 0 ? plain : [...plain, ...(yield* matchNamed([...named.values()], receivers()))];
  }

  function matchBlock(block: IPBlock, side: "saddr" | "daddr"): Match[] {
    const known = blocks.get(block) ?? readBlock(block);
    if (!known) return [];
    blocks.set(block, known);
    const { cidr, without, name } = known, ip = ipOf(cidr.family);
    return [{ text: `${ip} ${side} ${formatCidr(cidr)}${without.length === 0 ? "" : ` ${ip} ${side} != ${listed(`except${cidr.family}`, `${ip} saddr`, without, name)}`}`, family: cidr.family }];
  }

  /** As a rule has them: one by one, or as a set. */
  function listed(kind: string, of: string, elements: readonly string[], known?: string): string {
    if (elements.length <= INLINE_MAX) return `{ ${elements.join(", ")} }`;
    const name = `${kind}/${known ?? digest(elements)}`;
    if (!sets.has(name)) sets.set(name, memory.recall(name, [], () => ({ kind: "set", definition: `typeof ${of}; flags interval;`, elements: new Map(elements.map((element): [string, string] => [element, ""])) })));
    return `@${name}`;
  }

  /** A name means another number on each pod: pairs of address and port. */
  function* matchNamed(ports: readonly NetworkPolicyPort[], receivers: Iterable<readonly PolicyPod[]>): Pausing<readonly Match[]> {
    const wanted = new Set(ports.map(({ port, protocol = "TCP" }) => `${protocol} ${port}`)), key = digest([...wanted]);
    const parts: Readonly<Record<Family, readonly string[]>>[] = [];
    for (const list of receivers) {
      parts.push(memory.recall(`ports ${key} of ${list[0]?.namespace} ${list.length}`, list, () => elementsOf(wanted, list))); // keys that tell lists apart well enough: what a result is of is compared in any case
      yield;
    }
    const found: Match[] = [];
    for (const family of [4, 6] as const) {
      const { name, set } = yield* memory.recallInPieces(`ports${family} ${key} of ${parts.length} ${parts.reduce((sum, part) => sum + part[family].length, 0)}`, parts, () => namedSet(family, parts));
      if (set.elements.size === 0) continue;
      sets.set(name, set);
      found.push({ text: `${ipOf(family)} daddr . meta l4proto . th dport @${name}`, family });
    }
    return found;
  }
}

function* namedSet(family: Family, parts: readonly Readonly<Record<Family, readonly string[]>>[]): Pausing<{ readonly name: string; readonly set: NamedSet }> {
  const elements = new Map<string, string>();
  for (const part of parts) {
    for (const element of part[family]) elements.set(element, "");
    yield;
  }
  return { name: `ports${family}/${digest([...elements.keys()].toSorted())}`, set: { kind: "set", definition: `typeof ${ipOf(family)} daddr . meta l4proto . th dport;`, elements } };
}

function elementsOf(wanted: ReadonlySet<string>, pods: readonly PolicyPod[]): Readonly<Record<Family, readonly string[]>> {
  const found: Record<Family, string[]> = { 4: [], 6: [] };
  for (const pod of pods)
    for (const { name, protocol, port } of pod.ports) {
      if (!wanted.has(`${protocol} ${name}`)) continue;
      for (const ip of pod.ips) found[familyOf(ip)].push(`${ip} . ${protocol.toLowerCase()} . ${port}`);
    }
  return found;
}

/** Policies from before there were types are about what pods receive, and about what they send if they say anything of it. */
function restricts({ spec }: Readonly<NetworkPolicy>, direction: Direction): boolean {
  const types = spec.policyTypes?.length ? spec.policyTypes : ["Ingress", ...(spec.egress?.length ? ["Egress"] : [])];
  return types.includes(direction === "ingress" ? "Ingress" : "Egress");
}

/** Undefined: it is no range. */
function readBlock({ cidr: text, except = [] }: IPBlock): Block | undefined {
  const cidr = parseStoredCidr(text);
  if (!cidr) return undefined;
  const without = outermost(except.flatMap((one) => parseStoredCidr(one) ?? []).filter(({ family }) => family === cidr.family)).map(formatCidr);
  return { cidr, without, name: without.length > INLINE_MAX ? digest(without) : undefined };
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
function familyOf(ip: string): Family { return ip.includes(":") ? 6 : 4; }
function ipOf(family: Family): string { return family === 4 ? "ip" : "ip6"; }
