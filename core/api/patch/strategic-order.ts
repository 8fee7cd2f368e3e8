/**
 * The order of a list after a strategic merge: items the patch names come in the patch's order, the others keep the live order, and the two
 * are woven together so that an item of the others stands before a patch item it preceded live.
 *
 * Source: kubernetes v1.36 apimachinery/pkg/util/strategicpatch/patch.go normalizeElementOrder, mergeSortedSlice
 */
import { formatGo, goTypeOf, isMap, valueAt } from "./json-value.ts";

export interface Orders {
  readonly patchOrder: readonly unknown[];
  readonly liveOrder: readonly unknown[];
  /** undefined: items are scalars and identify themselves. */
  readonly mergeKey: string | undefined;
}

export function orderMerged(merged: readonly unknown[], { patchOrder, liveOrder, mergeKey }: Orders): readonly unknown[] {
  const patchRanks = ranks(patchOrder, mergeKey);
  const liveRanks = ranks(liveOrder, mergeKey);
  const rankIn = (order: ReadonlyMap<unknown, number>) => (item: unknown): number => order.get(identityOf(item, mergeKey)) ?? -1;
  const inPatch = rankIn(patchRanks);
  const inLive = rankIn(liveRanks);
  const fromPatch = merged.filter((item) => inPatch(item) >= 0).sort((a, b) => inPatch(a) - inPatch(b));
  const others = sortOthers(merged.filter((item) => inPatch(item) < 0), inLive);
  return weave(others, fromPatch, inLive);
}

/** As many are sorted one by one. */
const BLOCK_SIZE = 20; // Go's sort.SliceStable

/** What is not in the live order either, as of a list that an empty order names nothing of, comes before what was before it: upstream calls it less than all. */
function sortOthers(items: readonly unknown[], rank: (item: unknown) => number): readonly unknown[] {
  if (items.length > BLOCK_SIZE || items.every((item) => rank(item) >= 0)) return items.toSorted((a, b) => rank(a) - rank(b));
  const sorted: unknown[] = [];
  for (const item of items) {
    let at = sorted.length;
    while (at > 0 && (rank(item) < 0 || rank(sorted[at - 1]) < 0 || rank(item) < rank(sorted[at - 1]))) at--;
    sorted.splice(at, 0, item);
  }
  return sorted;
}

function ranks(order: readonly unknown[], mergeKey: string | undefined): Map<unknown, number> {
  const found = new Map<unknown, number>();
  order.forEach((item, at) => {
    const identity = identityOf(item, mergeKey);
    if (!found.has(identity)) found.set(identity, at);
  });
  return found;
}

function identityOf(item: unknown, mergeKey: string | undefined): unknown {
  if (mergeKey === undefined) return item;
  if (!isMap(item)) throw new Error(`expected a map[string]interface {}, but received a ${goTypeOf(item)}`);
  const value = valueAt(item, mergeKey);
  if (value === undefined) throw new Error(`map: ${formatGo(item)} does not contain declared merge key: ${mergeKey}`);
  return value;
}

/** An item of `left` goes first only if both are known and it was first live. */
function weave(left: readonly unknown[], right: readonly unknown[], rank: (item: unknown) => number): unknown[] {
  const woven: unknown[] = [];
  let at = 0;
  for (const item of right) {
    const limit = rank(item);
    while (at < left.length && limit >= 0 && rank(left[at]) >= 0 && rank(left[at]) < limit) woven.push(left[at++]);
    woven.push(item);
  }
  return [...woven, ...left.slice(at)];
}
