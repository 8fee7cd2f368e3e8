import { expect, test } from "vitest";
import { type ObjectKey, objectKey, splitKey } from "../../core/api/meta/object-meta.ts";
import { shared } from "./certificates.ts";

const secrets = (namespace: string, count: number): ObjectKey[] => Array.from({ length: count }, (_, i) => objectKey(namespace, `s${i}`));
const counts = (keys: ReadonlySet<ObjectKey>): Record<string, number> => Object.fromEntries([...Map.groupBy(keys, (key) => splitKey(key).namespace)].map(([namespace, own]) => [namespace, own.length]));

test("of more Secrets than are watched each namespace has its share: who names few has all of them", () => {
  const few = new Set([...secrets("greedy", 500), ...secrets("a", 3)]);
  expect(shared(few, 503)).toBe(few);
  expect(counts(shared(new Set([...secrets("greedy", 5000), ...secrets("a", 3), ...secrets("b", 40), ...secrets("too", 400)]), 100))).toEqual({ a: 3, b: 32, too: 32, greedy: 33 });
  expect([...shared(new Set(secrets("one", 9)), 2)]).toEqual(secrets("one", 2));
});
