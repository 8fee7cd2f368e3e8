/** Lists of resources and how much of each, as quotas reckon with them. Source: kubernetes v1.36 apiserver/pkg/quota/v1/resources.go */
import { addQuantity, compareQuantity, parseQuantity, type Quantity, subQuantity } from "../meta/quantity.ts";

export type Amounts = ReadonlyMap<string, Quantity>;

const ZERO = parseQuantity("0");

export function amountsOf(list: Readonly<Record<string, unknown>> | null | undefined): Map<string, Quantity> {
  return new Map(Object.entries(list ?? {}).map(([name, quantity]) => [name, parseQuantity(String(quantity))]));
}

export function listOf(amounts: Amounts): Record<string, string> { return Object.fromEntries([...amounts].map(([name, quantity]) => [name, quantity.toString()])); }

export function add(a: Amounts, b: Amounts): Map<string, Quantity> {
  const sum = new Map(a);
  for (const [name, quantity] of b) addTo(sum, name, quantity);
  return sum;
}

/** Mutates `sum`. */
export function addTo(sum: Map<string, Quantity>, name: string, quantity: Quantity): void {
  const before = sum.get(name);
  sum.set(name, before === undefined ? quantity : addQuantity(before, quantity));
}

/** What is more in `a` than in `b`: less counts as nothing. */
export function growth(a: Amounts, b: Amounts): Map<string, Quantity> {
  return new Map([...new Set([...a.keys(), ...b.keys()])].map((name) => {
    const more = subQuantity(a.get(name) ?? ZERO, b.get(name) ?? ZERO);
    return [name, more.sign > 0 ? more : ZERO];
  }));
}

export function only(amounts: Amounts, names: Iterable<string>): Map<string, Quantity> {
  const wanted = new Set(names);
  return new Map([...amounts].filter(([name]) => wanted.has(name)));
}

export function withoutZeros(amounts: Amounts): Map<string, Quantity> { return new Map([...amounts].filter(([, quantity]) => !quantity.isZero)); }

/** Names of which `used` is more than `hard`; what has no limit is never too much. */
export function exceeding(used: Amounts, hard: Amounts): string[] {
  return [...hard].filter(([name, limit]) => used.has(name) && compareQuantity(used.get(name)!, limit) > 0).map(([name]) => name);
}

export function equal(a: Amounts, b: Amounts): boolean {
  return a.size === b.size && [...a].every(([name, quantity]) => b.has(name) && compareQuantity(quantity, b.get(name)!) === 0);
}

/** "cpu=1,pods=2" */
export function format(amounts: Amounts): string { return [...amounts].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([name, quantity]) => `${name}=${quantity}`).join(","); }
