import { expect, test } from "vitest";
import type { ApiObject } from "../api/meta/object-meta.ts";
import { Cached } from "../registry/generic/cached.ts";
import type { WatchItem } from "./answer.ts";
import { EventBytes } from "./event-bytes.ts";

const entry = (name: string, bytes = 10): Cached => new Cached(name, { apiVersion: "v1", kind: "ConfigMap", metadata: { name, annotations: { long: "x".repeat(bytes) } } } as unknown as ApiObject, 1);

const text = (bytes: Uint8Array | readonly Uint8Array[]): string => Buffer.concat([bytes].flat() as Uint8Array[]).toString();

test("watchers that see the same share its bytes: events, and batches of them; another type or encoding has its own", () => {
  const bytes = new EventBytes();
  let encoded = 0;
  const encode = ({ type, entry: { key } }: WatchItem): Uint8Array => { encoded++; return Buffer.from(`${type} ${key};`); };
  const [a, b] = [entry("a"), entry("b")];
  const batch = (): WatchItem[] => [{ type: "ADDED", entry: a }, { type: "MODIFIED", entry: b }];
  const first = bytes.of("json", batch(), encode);
  expect(text(first)).toBe("ADDED a;MODIFIED b;");
  expect(bytes.of("json", batch(), encode)).toBe(first);
  expect(encoded).toBe(2);
  expect(text(bytes.of("json", [{ type: "MODIFIED", entry: b }], encode))).toBe("MODIFIED b;");
  expect(encoded).toBe(2);
  expect(text(bytes.of("json", [{ type: "DELETED", entry: b }], encode))).toBe("DELETED b;");
  bytes.of("protobuf", batch(), encode);
  expect(encoded).toBe(5);
});

test("each who watches is told how long every event is, also of those that others were sent before", () => {
  const bytes = new EventBytes(), encode = ({ entry: { key } }: WatchItem): Uint8Array => Buffer.from(key);
  const batch: WatchItem[] = [{ type: "ADDED", entry: entry("a") }, { type: "ADDED", entry: entry("long") }];
  for (let i = 0; i < 2; i++) {
    const sizes: number[] = [];
    for (const items of [batch, batch.slice(1)]) bytes.of("json", items, encode, (size) => void sizes.push(size));
    expect(sizes).toEqual([1, 4, 4]);
  }
});

test("what is kept is bounded, in events and in bytes", () => {
  const bytes = new EventBytes();
  let encoded = 0;
  const ask = (one: Cached, size: number): void => void bytes.of("json", [{ type: "ADDED", entry: one }], () => { encoded++; return new Uint8Array(size); });
  const [small, large] = [entry("small"), entry("large")];
  ask(small, 10);
  for (let i = 0; i < 1_024; i++) ask(entry(`other-${i}`), 10);
  ask(small, 10);
  expect(encoded).toBe(1_026);
  ask(large, 9 * 1024 * 1024); // more than all may be
  ask(large, 9 * 1024 * 1024);
  expect(encoded).toBe(1_028);
});

test("large events that have come together are shared, too; too many of them are not made one, nor copied for each who watches", () => {
  const bytes = new EventBytes(), encode = ({ entry: { key } }: WatchItem): Uint8Array => Buffer.alloc(300_000, key);
  const batch = (count: number): WatchItem[] => Array.from({ length: count }, (_, i) => ({ type: "ADDED", entry: entries[i]! }));
  const entries = Array.from({ length: 100 }, (_, i) => entry(String(i)));
  const first = bytes.of("json", batch(5), encode);
  expect(first.length).toBe(1_500_000);
  expect(bytes.of("json", batch(5), encode)).toBe(first);
  for (let i = 6; i < 25; i++) bytes.of("json", batch(i), encode);
  expect(bytes.of("json", batch(5), encode)).not.toBe(first);
  const parts = bytes.of("json", batch(100), encode) as readonly Uint8Array[];
  expect(parts.map(({ length }) => length)).toEqual(Array.from({ length: 100 }, () => 300_000));
});
