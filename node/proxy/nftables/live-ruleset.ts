/**
 * A Ruleset that changes one Service at a time, and knows what has changed since the kernel last had it: with thousands of Services, one that changes costs what
 * it has itself.
 *
 *   live.set(key, pieces)        what the Service has from now on; undefined: it is gone
 *   table.sync(live, signal, live.delta())  ─▶ live.commit()
 *
 * Two Services may want the same external address and port: the first keeps it, and the next has it once that is gone. At a cluster IP nobody is before the Service whose it is, and at what a load balancer
 * has given nobody who only says so.
 */
import { type NamedSet, type Piece, rankOf, type Ruleset } from "./ruleset.ts";

/** `value`: undefined where there is to be nothing. */
interface Claim { readonly owner: string; readonly value: string | undefined; readonly rank: ReturnType<typeof rankOf> }

/** By rank, and of each by owner, in the order in which they came. */
type Waiting = [Map<string, Claim>, Map<string, Claim>, Map<string, Claim>];

type Table<V> = Map<string, Map<string, V>>;

export class LiveRuleset implements Ruleset {
  readonly containers: Table<string> = new Map();
  readonly chains = new Map<string, readonly string[]>();
  readonly sets = new Map<string, NamedSet>();
  readonly #pieces = new Map<string, readonly Piece[]>();
  readonly #owners: Table<Claim> = new Map(); // of each element in `containers`
  readonly #waiting: Table<Waiting> = new Map(); // for an element that somebody else owns; a thousand Services may share their pods
  readonly #users = new Map<string, number>(); // pieces that have a chain
  /** What was there before the changes; undefined: nothing was. */
  readonly #oldElements: Table<string | undefined> = new Map();
  readonly #oldChains = new Map<string, readonly string[] | undefined>();
  readonly #oldSets = new Map<string, NamedSet | undefined>();

  get size(): number { return this.#pieces.size; }

  set(owner: string, pieces: readonly Piece[] | undefined): void {
    const before = this.#pieces.get(owner) ?? [], after = pieces ?? [];
    if (after.length > 0) this.#pieces.set(owner, after);
    else this.#pieces.delete(owner);
    this.#setElements(owner, before, after);
    this.#setChains(before, after);
    this.#setSets(before, after);
  }

  /** What has changed since `commit`, as two small rulesets. */
  delta(): { readonly before: Ruleset; readonly after: Ruleset } {
    const part = (elements: (container: string, key: string, old: string | undefined) => string | undefined, chain: (name: string, old: readonly string[] | undefined) => readonly string[] | undefined, set: (name: string, old: NamedSet | undefined) => NamedSet | undefined): Ruleset => ({
      containers: new Map([...this.#oldElements].map(([name, touched]) => [name, present([...touched].map(([key, old]) => [key, elements(name, key, old)]))])),
      chains: present([...this.#oldChains].map(([name, old]) => [name, chain(name, old)])),
      sets: present([...this.#oldSets].map(([name, old]) => [name, set(name, old)])),
    });
    return {
      before: part((_, __, old) => old, (_, old) => old, (_, old) => old),
      after: part((name, key) => this.containers.get(name)?.get(key), (name) => this.chains.get(name), (name) => this.sets.get(name)),
    };
  }

  commit(): void {
    this.#oldElements.clear();
    this.#oldChains.clear();
    this.#oldSets.clear();
  }

  #setElements(owner: string, before: readonly Piece[], after: readonly Piece[]): void {
    const wanted: Table<Claim> = new Map();
    for (const { elements } of after) for (const element of elements) {
      const { container, key, value, isHeld } = element, rank = rankOf(element), other = wanted.get(container)?.get(key);
      if (other === undefined || rank < other.rank) insert(wanted, container, key, { owner, value: isHeld ? undefined : value, rank });
    }
    for (const { elements } of before) for (const { container, key } of elements) if (!wanted.get(container)?.has(key)) this.#release(container, key, owner);
    for (const [container, elements] of wanted) for (const [key, claim] of elements) this.#claim(container, key, claim);
  }

  #claim(container: string, key: string, claim: Claim): void {
    const first = this.#owners.get(container)?.get(key);
    const waiting: Waiting = this.#waiting.get(container)?.get(key) ?? [new Map(), new Map(), new Map()];
    if (first?.owner === claim.owner && waiting.some(({ size }, rank) => rank < claim.rank && size > 0)) { // it had a better right, which is another's now
      this.#release(container, key, claim.owner);
      return this.#claim(container, key, claim);
    }
    if (first === undefined || first.owner === claim.owner) return this.#put(container, key, claim);
    forget(waiting, claim.owner);
    insert(this.#waiting, container, key, waiting);
    if (claim.rank >= first.rank) return void waiting[claim.rank].set(claim.owner, claim);
    waiting[first.rank] = new Map([[first.owner, first], ...waiting[first.rank]]);
    this.#put(container, key, claim);
  }

  #release(container: string, key: string, owner: string): void {
    const waiting = this.#waiting.get(container)?.get(key);
    const isFirst = this.#owners.get(container)?.get(key)?.owner === owner;
    const next = isFirst && waiting ? waiting.map(firstOf).find((one) => one !== undefined) : undefined;
    if (waiting) {
      forget(waiting, next?.owner ?? owner);
      if (waiting.every(({ size }) => size === 0)) remove(this.#waiting, container, key);
    }
    if (isFirst) this.#put(container, key, next);
  }

  #put(container: string, key: string, claim: Claim | undefined): void {
    const old = this.containers.get(container)?.get(key);
    if (claim) insert(this.#owners, container, key, claim);
    else remove(this.#owners, container, key);
    if (old === claim?.value) return;
    if (!this.#oldElements.get(container)?.has(key)) insert(this.#oldElements, container, key, old);
    if (claim?.value !== undefined) insert(this.containers, container, key, claim.value);
    else remove(this.containers, container, key);
  }

  #setChains(before: readonly Piece[], after: readonly Piece[]): void {
    const remember = (name: string): void => { if (!this.#oldChains.has(name)) this.#oldChains.set(name, this.chains.get(name)); };
    for (const { chains } of after) for (const [name, rules] of chains) {
      remember(name);
      this.chains.set(name, rules);
      this.#users.set(name, (this.#users.get(name) ?? 0) + 1);
    }
    for (const { chains } of before) for (const name of chains.keys()) {
      const users = this.#users.get(name)! - 1;
      if (users > 0) this.#users.set(name, users);
      else {
        remember(name);
        this.#users.delete(name);
        this.chains.delete(name);
      }
    }
  }

  /** They are their Service's alone. */
  #setSets(before: readonly Piece[], after: readonly Piece[]): void {
    const next = new Map(after.flatMap(({ sets }) => [...sets]));
    const remember = (name: string): void => { if (!this.#oldSets.has(name)) this.#oldSets.set(name, this.sets.get(name)); };
    for (const { sets } of before) for (const name of sets.keys()) if (!next.has(name)) {
      remember(name);
      this.sets.delete(name);
    }
    for (const [name, set] of next) {
      remember(name);
      this.sets.set(name, set);
    }
  }
}

function firstOf(claims: ReadonlyMap<string, Claim>): Claim | undefined { return claims.values().next().value; }

function forget(waiting: Waiting, owner: string): void { for (const claims of waiting) claims.delete(owner); }

function insert<V>(table: Table<V>, container: string, key: string, value: V): void {
  let entries = table.get(container);
  if (!entries) table.set(container, (entries = new Map()));
  entries.set(key, value);
}

function remove<V>(table: Table<V>, container: string, key: string): void {
  const entries = table.get(container);
  entries?.delete(key);
  if (entries?.size === 0) table.delete(container);
}

function present<V>(entries: readonly (readonly [string, V | undefined])[]): Map<string, V> {
  return new Map(entries.filter((entry): entry is readonly [string, V & {}] => entry[1] !== undefined));
}
