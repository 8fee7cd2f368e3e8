/**
 * What is in our nftables table besides its frame (frame.ts): elements, chains, sets and maps, all by name. Pure data, and how two of them differ.
 *
 * The order in a transaction matters to the kernel: an element may only name a chain that exists, and a chain may only go once no element names it.
 * Older kernels count elements deleted in the same transaction as still there, so chains are emptied in one transaction and deleted in the next
 * (`garbage`).
 */
import type { Family } from "../../../core/net/cidr.ts";

/** Sets and maps of the frame. */
export type ContainerName = "cluster-ips" | "hairpin-connections" | "tcp-endpoints" | "udp-endpoints" | "sctp-endpoints" | "service-ips" | "service-nodeports" | "no-endpoint-services" | "no-endpoint-nodeports" | "firewall-ips";

/** `container`: one of the frame's, or a map among `sets`. `value` is what stands behind the key: "" in a set, `: goto chain` or `: address . port` in a map. */
export interface Element {
  readonly container: string;
  readonly key: string;
  readonly value: string;
  /** By what right it is the Service's; absent: it says so. */
  readonly right?: Right | undefined;
  /** There is to be none, and no other Service's either. */
  readonly isHeld?: true | undefined;
}

/** To an address: its own cluster IP, which nobody else gets; or one that it was given as its load balancer's. External addresses are what anybody who may write a Service says. */
export type Right = "own" | "given";

/** Lower goes before. */
export function rankOf({ right }: Pick<Element, "right">): 0 | 1 | 2 { return right === "own" ? 0 : right === "given" ? 1 : 2; }

export interface NamedSet { readonly kind: "set" | "map"; readonly definition: string }

/** The part of the ruleset that belongs to one Service port. */
export interface Piece {
  readonly elements: readonly Element[];
  /** Two pieces may have the same chain, with the same rules. */
  readonly chains: ReadonlyMap<string, readonly string[]>;
  /** Maps of endpoints, whose elements are among `elements`, and sets of clients, which the kernel fills. A name has one definition for ever. */
  readonly sets: ReadonlyMap<string, NamedSet>;
}

export interface Ruleset {
  readonly containers: ReadonlyMap<string, ReadonlyMap<string, string>>;
  readonly chains: ReadonlyMap<string, readonly string[]>;
  readonly sets: ReadonlyMap<string, NamedSet>;
}

/** Chains by name, sets by name and kind. */
export interface Leftovers { readonly chains: readonly string[]; readonly sets: ReadonlyMap<string, NamedSet["kind"]> }

export const CONTAINERS: readonly ContainerName[] = ["cluster-ips", "hairpin-connections", "tcp-endpoints", "udp-endpoints", "sctp-endpoints", "service-ips", "service-nodeports", "no-endpoint-services", "no-endpoint-nodeports", "firewall-ips"];
export const NO_LEFTOVERS: Leftovers = { chains: [], sets: new Map() };
export const EMPTY_RULESET: Ruleset = { containers: new Map(), chains: new Map(), sets: new Map() };

/** Elements in one command: nft's parser takes time that grows with the length of a list. */
const BATCH = 500;
const NOTHING: ReadonlyMap<string, string> = new Map();

/** Two Services may want the same external address and port: the first keeps it, unless the other has a better right to it. */
export function merge(pieces: Iterable<Piece>): Ruleset {
  const best = new Map<string, Map<string, Element>>();
  const chains = new Map<string, readonly string[]>();
  const sets = new Map<string, NamedSet>();
  for (const piece of pieces) {
    for (const element of piece.elements) {
      const { container, key } = element;
      let elements = best.get(container);
      if (!elements) best.set(container, (elements = new Map()));
      const before = elements.get(key);
      if (before === undefined || rankOf(element) < rankOf(before)) elements.set(key, element);
    }
    for (const [name, rules] of piece.chains) chains.set(name, rules);
    for (const [name, definition] of piece.sets) sets.set(name, definition);
  }
  const containers = [...best].map(([name, elements]) => [name, new Map([...elements].flatMap(([key, { value, isHeld }]) => (isHeld ? [] : [[key, value]])))] as const);
  return { containers: new Map(containers.filter(([, elements]) => elements.size > 0)), chains, sets };
}

export interface Transaction {
  /** The same as `text`, where elements are all that differs. */
  readonly elements: { readonly remove: readonly Element[]; readonly add: readonly Element[] } | undefined;
  /** Commands for `nft -f`; "" when nothing differs. */
  readonly text: string;
  /** What is empty and unused once `text` has been applied. */
  readonly garbage: Leftovers;
}

export function difference(table: string, family: Family, before: Ruleset, after: Ruleset): Transaction {
  const at = `${family === 4 ? "ip" : "ip6"} ${table}`;
  const lines: string[] = [];
  const added: string[] = [];
  const remove: Element[] = [], add: Element[] = [];
  for (const container of new Set([...before.containers.keys(), ...after.containers.keys()])) {
    const old = before.containers.get(container) ?? NOTHING, now = after.containers.get(container) ?? NOTHING;
    const gone = [...old].filter(([key, value]) => now.get(key) !== value).map(([key]) => key);
    const next = [...now].filter(([key, value]) => old.get(key) !== value);
    const fresh = next.map(([key, value]) => (value === "" ? key : `${key} ${value}`));
    for (const key of gone) remove.push({ container, key, value: "" });
    for (const [key, value] of next) add.push({ container, key, value });
    lines.push(...inBatches(gone, (list) => `delete element ${at} ${container} { ${list} }`));
    added.push(...inBatches(fresh, (list) => `add element ${at} ${container} { ${list} }`));
  }
  const others = lines.length;
  for (const [name, { kind, definition }] of after.sets) {
    if (before.sets.has(name)) continue;
    lines.push(`add ${kind} ${at} ${name} { ${definition} }`);
    if (kind === "map") lines.push(`flush map ${at} ${name}`); // one from before may be there yet; the clients in a set stay
  }
  const changed: [string, readonly string[]][] = [];
  for (const [name, rules] of after.chains) {
    const old = before.chains.get(name);
    if (old === rules || (old !== undefined && sameRules(old, rules))) continue;
    lines.push(`add chain ${at} ${name}`, `flush chain ${at} ${name}`);
    changed.push([name, rules]);
  }
  let onlyElements = lines.length === others;
  for (const [name, rules] of changed) for (const rule of rules) lines.push(`add rule ${at} ${name} ${rule}`);
  lines.push(...added);
  const chains = [...before.chains.keys()].filter((name) => !after.chains.has(name));
  const sets = new Map([...before.sets].flatMap(([name, { kind }]) => (after.sets.has(name) ? [] : [[name, kind] as const])));
  lines.push(...chains.map((name) => `flush chain ${at} ${name}`));
  onlyElements &&= chains.length === 0;
  return { elements: onlyElements ? { remove, add } : undefined, text: lines.length === 0 ? "" : `${lines.join("\n")}\n`, garbage: { chains, sets } };
}

export function deletion(table: string, family: Family, { chains, sets }: Leftovers): string {
  const at = `${family === 4 ? "ip" : "ip6"} ${table}`;
  return [...chains.map((name) => `delete chain ${at} ${name}\n`), ...[...sets].map(([name, kind]) => `delete ${kind} ${at} ${name}\n`)].join("");
}

function sameRules(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((rule, i) => rule === b[i]);
}

function inBatches(items: readonly string[], command: (list: string) => string): string[] {
  const commands: string[] = [];
  for (let i = 0; i < items.length; i += BATCH) commands.push(command(items.slice(i, i + BATCH).join(", ")));
  return commands;
}
