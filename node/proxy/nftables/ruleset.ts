/**
 * What is in our nftables table besides its frame (frame.ts): map elements, chains and affinity sets, all by name. Pure data, and how two of them differ.
 *
 * The order in a transaction matters to the kernel: an element may only name a chain that exists, and a chain may only go once no element names it.
 * Older kernels count elements deleted in the same transaction as still there, so chains are emptied in one transaction and deleted in the next
 * (`garbage`).
 */
import type { Family } from "../../../core/net/cidr.ts";

export type ContainerName = "cluster-ips" | "hairpin-connections" | "service-ips" | "service-nodeports" | "no-endpoint-services" | "no-endpoint-nodeports" | "firewall-ips";

/** `value` is "" in a set, a verdict in a map. */
export interface Element { readonly container: ContainerName; readonly key: string; readonly value: string }

/** The part of the ruleset that belongs to one Service port. */
export interface Piece {
  readonly elements: readonly Element[];
  readonly chains: ReadonlyMap<string, readonly string[]>;
  /** Affinity sets: their definitions by name. */
  readonly sets: ReadonlyMap<string, string>;
}

export interface Ruleset {
  readonly containers: ReadonlyMap<ContainerName, ReadonlyMap<string, string>>;
  readonly chains: ReadonlyMap<string, readonly string[]>;
  readonly sets: ReadonlyMap<string, string>;
}

export interface Leftovers { readonly chains: readonly string[]; readonly sets: readonly string[] }

export const CONTAINERS: readonly ContainerName[] = ["cluster-ips", "hairpin-connections", "service-ips", "service-nodeports", "no-endpoint-services", "no-endpoint-nodeports", "firewall-ips"];
export const EMPTY_RULESET: Ruleset = { containers: new Map(), chains: new Map(), sets: new Map() };

/** Elements in one command: nft's parser takes time that grows with the length of a list. */
const BATCH = 500;

/** Two Services may want the same external address and port: the first keeps it. */
export function merge(pieces: Iterable<Piece>): Ruleset {
  const containers = new Map(CONTAINERS.map((name) => [name, new Map<string, string>()]));
  const chains = new Map<string, readonly string[]>();
  const sets = new Map<string, string>();
  for (const piece of pieces) {
    for (const { container, key, value } of piece.elements) {
      const elements = containers.get(container)!;
      if (!elements.has(key)) elements.set(key, value);
    }
    for (const [name, rules] of piece.chains) chains.set(name, rules);
    for (const [name, definition] of piece.sets) sets.set(name, definition);
  }
  return { containers, chains, sets };
}

export interface Transaction {
  /** Commands for `nft -f`; "" when nothing differs. */
  readonly text: string;
  /** What is empty and unused once `text` has been applied. */
  readonly garbage: Leftovers;
}

export function difference(table: string, family: Family, before: Ruleset, after: Ruleset): Transaction {
  const at = `${family === 4 ? "ip" : "ip6"} ${table}`;
  const lines: string[] = [];
  const added: string[] = [];
  for (const container of CONTAINERS) {
    const old = before.containers.get(container) ?? new Map<string, string>(), now = after.containers.get(container) ?? new Map<string, string>();
    const gone = [...old].filter(([key, value]) => now.get(key) !== value).map(([key]) => key);
    const fresh = [...now].filter(([key, value]) => old.get(key) !== value).map(([key, value]) => (value === "" ? key : `${key} : ${value}`));
    lines.push(...inBatches(gone, (list) => `delete element ${at} ${container} { ${list} }`));
    added.push(...inBatches(fresh, (list) => `add element ${at} ${container} { ${list} }`));
  }
  for (const [name, definition] of after.sets) if (!before.sets.has(name)) lines.push(`add set ${at} ${name} { ${definition} }`);
  const changed: [string, readonly string[]][] = [];
  for (const [name, rules] of after.chains) {
    const old = before.chains.get(name);
    if (old === rules || (old !== undefined && sameRules(old, rules))) continue;
    lines.push(`add chain ${at} ${name}`, `flush chain ${at} ${name}`);
    changed.push([name, rules]);
  }
  for (const [name, rules] of changed) for (const rule of rules) lines.push(`add rule ${at} ${name} ${rule}`);
  lines.push(...added);
  const chains = [...before.chains.keys()].filter((name) => !after.chains.has(name));
  const sets = [...before.sets.keys()].filter((name) => !after.sets.has(name));
  lines.push(...chains.map((name) => `flush chain ${at} ${name}`));
  return { text: lines.length === 0 ? "" : `${lines.join("\n")}\n`, garbage: { chains, sets } };
}

export function deletion(table: string, family: Family, { chains, sets }: Leftovers): string {
  const at = `${family === 4 ? "ip" : "ip6"} ${table}`;
  return [...chains.map((name) => `delete chain ${at} ${name}\n`), ...sets.map((name) => `delete set ${at} ${name}\n`)].join("");
}

function sameRules(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((rule, i) => rule === b[i]);
}

function inBatches(items: readonly string[], command: (list: string) => string): string[] {
  const commands: string[] = [];
  for (let i = 0; i < items.length; i += BATCH) commands.push(command(items.slice(i, i + BATCH).join(", ")));
  return commands;
}
