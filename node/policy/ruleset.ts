/**
 * The table of network policies: sets, maps and chains by name, as text for nft, whole or as what two of them differ in. Pure.
 *
 *   forward         answers pass; what no policy could say anything about does not; what a pod sends to itself passes ─▶ egress maps ─▶ check-ingress ─▶ ingress maps ─▶ accepted
 *
 * Packets of a connection that was allowed once are asked about again, those of its answers are not: a policy that changes ends what it no longer allows.
 * Traffic between a pod and its own node does not pass here, and is always allowed: probes, the node's DNS.
 */
import type { Pausing } from "../../core/lifecycle/breather.ts";
import { BRIDGE } from "../os/pod-bridge.ts";

export interface NamedSet {
  readonly kind: "set" | "map";
  readonly definition: string;
  /** Value "" in a set, a verdict in a map. */
  readonly elements: ReadonlyMap<string, string>;
}

export interface PolicyRuleset {
  readonly sets: ReadonlyMap<string, NamedSet>;
  readonly chains: ReadonlyMap<string, readonly string[]>;
  /** Adds to one of the sets and maps of the frame. */
  put(container: string, key: string, value: string): void;
}

export const POLICY_TABLE = "coracle-policy";
const AT = `inet ${POLICY_TABLE}`;
/** Elements in one command: nft's parser takes time that grows with the length of a list. */
const BATCH = 500;

const FRAME_CHAINS: ReadonlyMap<string, readonly string[]> = new Map([
  ["forward", [
    "ct direction reply accept", "ct state related accept",
    "icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept", // two pods of one bridge would not find each other
    `iifname "${BRIDGE}" oifname "${BRIDGE}" jump within-bridge`,
    "ip saddr . ip daddr @self4 accept", "ip6 saddr . ip6 daddr @self6 accept",
    "ip saddr vmap @egress4", "ip6 saddr vmap @egress6", "goto check-ingress",
  ]],
  // Policies know pods by their addresses. Each has one more, of its link, in clusters without IPv6, too; and what is sent to all pods has none of theirs. Networks that route between pods of one node pass neither.
  ["within-bridge", ["ip6 saddr fe80::/10 drop", "ip6 daddr fe80::/10 drop", "fib daddr type { broadcast, multicast } drop"]],
  ["check-ingress", ["ip daddr vmap @ingress4", "ip6 daddr vmap @ingress6", "accept"]],
]);

export function rulesetOf(sets: Map<string, NamedSet>, chains: Map<string, readonly string[]>): PolicyRuleset {
  for (const family of [4, 6]) {
    const ip = family === 4 ? "ip" : "ip6"; // typeof: see the frame of the service proxy
    sets.set(`ingress${family}`, { kind: "map", definition: `typeof ${ip} daddr : verdict;`, elements: new Map() });
    sets.set(`egress${family}`, { kind: "map", definition: `typeof ${ip} saddr : verdict;`, elements: new Map() });
    sets.set(`self${family}`, { kind: "set", definition: `typeof ${ip} saddr . ${ip} daddr;`, elements: new Map() });
  }
  return { sets, chains, put: (container, key, value) => void (sets.get(container)!.elements as Map<string, string>).set(key, value) };
}

/** Replaces whatever there is, in one transaction. */
export function* wholeText(ruleset: PolicyRuleset): Pausing<string> {
  const lines = [`add table ${AT}`, `delete table ${AT}`, `add table ${AT}`, `add chain ${AT} forward { type filter hook forward priority 0; policy accept; }`];
  for (const name of [...FRAME_CHAINS.keys(), ...ruleset.chains.keys()]) lines.push(`add chain ${AT} ${name}`);
  for (const [name, set] of ruleset.sets) {
    lines.push(`add ${set.kind} ${AT} ${name} { ${set.definition} }`, ...elementLines("add", name, [...set.elements]));
    yield;
  }
  for (const [name, rules] of [...FRAME_CHAINS, ...ruleset.chains]) {
    for (const rule of rules) lines.push(`add rule ${AT} ${name} ${rule}`);
    yield;
  }
  return text(lines);
}

export interface PolicyTransaction {
  readonly text: string;
  /** Deletes what is empty and unused once `text` has been applied; "" if nothing is. */
  readonly cleanup: string;
}

/** The order matters to the kernel: an element may only name a chain that exists, and a chain may only go once nothing names it. */
export function* differenceText(before: PolicyRuleset, after: PolicyRuleset): Pausing<PolicyTransaction> {
  const lines: string[] = [], late: string[] = [], cleanup: string[] = [];
  for (const name of after.chains.keys()) if (!before.chains.has(name)) lines.push(`add chain ${AT} ${name}`);
  for (const [name, set] of after.sets) {
    const old = before.sets.get(name);
    if (old === set) continue;
    yield;
    if (!old) lines.push(`add ${set.kind} ${AT} ${name} { ${set.definition} }`);
    lines.push(...elementLines("delete", name, [...(old?.elements ?? [])].filter(([key, value]) => set.elements.get(key) !== value)));
    late.push(...elementLines("add", name, [...set.elements].filter(([key, value]) => old?.elements.get(key) !== value)));
  }
  for (const [name, rules] of after.chains) {
    yield;
    const old = before.chains.get(name);
    if (old && old.length === rules.length && old.every((rule, i) => rule === rules[i])) continue;
    if (old) lines.push(`flush chain ${AT} ${name}`);
    for (const rule of rules) lines.push(`add rule ${AT} ${name} ${rule}`);
  }
  lines.push(...late);
  for (const name of before.chains.keys()) {
    if (after.chains.has(name)) continue;
    lines.push(`flush chain ${AT} ${name}`);
    cleanup.push(`delete chain ${AT} ${name}`);
  }
  for (const [name, { kind }] of before.sets) if (!after.sets.has(name)) cleanup.push(`delete ${kind} ${AT} ${name}`);
  return { text: text(lines), cleanup: text(cleanup) };
}

export const REMOVE_TEXT = `add table ${AT}\ndelete table ${AT}\n`;

function elementLines(verb: "add" | "delete", name: string, elements: readonly (readonly [string, string])[]): string[] {
  const items = elements.map(([key, value]) => (value === "" || verb === "delete" ? key : `${key} : ${value}`));
  return Array.from({ length: Math.ceil(items.length / BATCH) }, (_, i) => `${verb} element ${AT} ${name} { ${items.slice(i * BATCH, (i + 1) * BATCH).join(", ")} }`);
}

function text(lines: readonly string[]): string { return lines.map((line) => `${line}\n`).join(""); }
