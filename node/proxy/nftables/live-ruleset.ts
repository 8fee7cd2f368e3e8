/**
 * A Ruleset that changes one Service at a time, and knows what has changed since the kernel last had it: with thousands of Services, one that changes costs what
 * it has itself.
 *
 *   live.set(key, pieces)        what the Service has from now on; undefined: it is gone
 *   table.sync(live, signal, live.delta())  ─▶ live.commit()
 *
 * Two Services may want the same external address and port: the first keeps it, and the next has it once that is gone.
 */
import { type ContainerName, CONTAINERS, type Piece, type Ruleset } from "./ruleset.ts";

interface Claim { readonly owner: string; readonly value: string }

export class LiveRuleset implements Ruleset {
  readonly containers = new Map(CONTAINERS.map((name) => [name, new Map<string, string>()]));
  readonly chains = new Map<string, readonly string[]>();
  readonly sets = new Map<string, string>();
  readonly #pieces = new Map<string, readonly Piece[]>();
  readonly #claims = new Map(CONTAINERS.map((name) => [name, new Map<string, Claim[]>()]));
  /** What was there before the changes; undefined: nothing was. */
  readonly #oldElements = new Map(CONTAINERS.map((name) => [name, new Map<string, string | undefined>()]));
  readonly #oldChains = new Map<string, readonly string[] | undefined>();
  readonly #oldSets = new Map<string, string | undefined>();

  get size(): number { return this.#pieces.size; }

  set(owner: string, pieces: readonly Piece[] | undefined): void {
    const before = this.#pieces.get(owner) ?? [], after = pieces ?? [];
    if (after.length > 0) this.#pieces.set(owner, after);
    else this.#pieces.delete(owner);
    this.#setElements(owner, before, after);
    replace(this.chains, this.#oldChains, before.map(({ chains }) => chains), after.map(({ chains }) => chains));
    replace(this.sets, this.#oldSets, before.map(({ sets }) => sets), after.map(({ sets }) => sets));
  }

  /** What has changed since `commit`, as two small rulesets. */
  delta(): { readonly before: Ruleset; readonly after: Ruleset } {
    const part = (elements: (name: ContainerName, key: string, old: string | undefined) => string | undefined, chain: (name: string, old: readonly string[] | undefined) => readonly string[] | undefined, set: (name: string, old: string | undefined) => string | undefined): Ruleset => ({
      containers: new Map([...this.#oldElements].map(([name, touched]) => [name, present([...touched].map(([key, old]) => [key, elements(name, key, old)]))])),
      chains: present([...this.#oldChains].map(([name, old]) => [name, chain(name, old)])),
      sets: present([...this.#oldSets].map(([name, old]) => [name, set(name, old)])),
    });
    return {
      before: part((_, __, old) => old, (_, old) => old, (_, old) => old),
      after: part((name, key) => this.containers.get(name)!.get(key), (name) => this.chains.get(name), (name) => this.sets.get(name)),
    };
  }

  commit(): void {
    for (const touched of this.#oldElements.values()) touched.clear();
    this.#oldChains.clear();
    this.#oldSets.clear();
  }

  #setElements(owner: string, before: readonly Piece[], after: readonly Piece[]): void {
    const wanted = new Map(CONTAINERS.map((name) => [name, new Map<string, string>()]));
    for (const { elements } of after) for (const { container, key, value } of elements) if (!wanted.get(container)!.has(key)) wanted.get(container)!.set(key, value);
    for (const { elements } of before) for (const { container, key } of elements) if (!wanted.get(container)!.has(key)) this.#claim(container, key, owner, undefined);
    for (const [container, elements] of wanted) for (const [key, value] of elements) this.#claim(container, key, owner, value);
  }

  #claim(container: ContainerName, key: string, owner: string, value: string | undefined): void {
    const all = this.#claims.get(container)!;
    const claims = all.get(key) ?? [];
    const old = claims[0]?.value;
    const at = claims.findIndex((claim) => claim.owner === owner);
    if (value === undefined) { if (at >= 0) claims.splice(at, 1); }
    else if (at >= 0) claims[at] = { owner, value };
    else claims.push({ owner, value });
    if (claims.length === 0) all.delete(key);
    else all.set(key, claims);
    const now = claims[0]?.value;
    if (now === old) return;
    const touched = this.#oldElements.get(container)!;
    if (!touched.has(key)) touched.set(key, old);
    if (now === undefined) this.containers.get(container)!.delete(key);
    else this.containers.get(container)!.set(key, now);
  }
}

/** Chains and sets are their Service's alone. */
function replace<V>(current: Map<string, V>, old: Map<string, V | undefined>, before: readonly ReadonlyMap<string, V>[], after: readonly ReadonlyMap<string, V>[]): void {
  const next = new Map(after.flatMap((one) => [...one]));
  const remember = (name: string): void => { if (!old.has(name)) old.set(name, current.get(name)); };
  for (const one of before) for (const name of one.keys()) if (!next.has(name)) {
    remember(name);
    current.delete(name);
  }
  for (const [name, value] of next) {
    remember(name);
    current.set(name, value);
  }
}

function present<V>(entries: readonly (readonly [string, V | undefined])[]): Map<string, V> {
  return new Map(entries.filter((entry): entry is readonly [string, V & {}] => entry[1] !== undefined));
}
