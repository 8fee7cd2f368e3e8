import { expect, test } from "vitest";
import type { CacheEvent } from "./audience.ts";
import { cachedOf } from "./cached.ts";
import { EventWindow, type WindowBytes } from "./event-window.ts";

const FRESH_MS = 75_000;

/** A window that has been told of `count` updates of one object of so many bytes, one each millisecond from 0 on. */
function told(count: number, bytes: number, all?: WindowBytes): EventWindow {
  const window = new EventWindow(0, all), text = "x".repeat(bytes);
  const version = (revision: number) => cachedOf({ key: "a", value: { metadata: { name: "a" }, text }, revision });
  for (let i = 1; i <= count; i++) window.push({ type: "MODIFIED", entry: version(i), previous: version(i - 1) } satisfies CacheEvent, i);
  return window;
}

const remembered = (window: EventWindow): number => window.after(window.oldest).length;

test("a burst is remembered as long as a client needs to come back, then its end", () => {
  const window = told(5_000, 10);
  expect(remembered(window)).toBe(5_000);
  window.forgetOld(FRESH_MS + 1);
  expect(remembered(window)).toBe(5_000);
  window.forgetOld(FRESH_MS + 2_001);
  expect(remembered(window)).toBe(3_000);
  window.forgetOld(10 * FRESH_MS);
  expect(remembered(window)).toBe(1_024);
});

test("large versions are remembered by their bytes, the last hundred always", () => {
  const large = told(300, 50_000);
  expect(remembered(large)).toBeGreaterThan(120);
  expect(remembered(large)).toBeLessThan(130);
  large.forgetOld(10 * FRESH_MS);
  expect(remembered(large)).toBe(100);
});

test("large versions of many kinds take no more memory together than a small machine has", () => {
  const all = { sum: 0 };
  const windows = Array.from({ length: 20 }, () => told(100, 1_000_000, all));
  expect(windows.reduce((sum, window) => sum + remembered(window), 0)).toBeLessThan(190); // of a megabyte each
  expect(windows.map(remembered).every((count) => count > 5)).toBe(true); // what is fresh, up to 6 MiB
  for (const window of windows) window.forgetOld(10 * FRESH_MS);
  expect(all.sum).toBeLessThan(66 * 1024 * 1024);
  expect(windows.every((window) => remembered(window) > 0)).toBe(true);
});

test("a large version among small ones counts as what it is, where that is known", () => {
  const window = new EventWindow(0);
  const version = (revision: number, bytes: number) => cachedOf({ key: "a", value: { metadata: { name: "a" }, text: "x".repeat(bytes) }, revision });
  for (let i = 1; i <= 160; i++) {
    const previous = version(i - 1, i % 16 === 2 ? 1_000_000 : 10);
    previous.json();
    window.push({ type: "MODIFIED", entry: version(i, 10), previous }, i);
  }
  expect(remembered(window)).toBeLessThan(120);
});

test("a version that has been written as JSON is not written again to be measured", () => {
  let written = 0;
  const text = { toJSON: () => `${++written}` };
  const previous = cachedOf({ key: "a", value: { metadata: { name: "a" }, text } as never, revision: 1 }), entry = cachedOf({ key: "a", value: { metadata: { name: "a" } }, revision: 2 });
  previous.json();
  new EventWindow(0).push({ type: "MODIFIED", entry, previous }, 1);
  expect(written).toBe(1);
});

test("objects that are made, and stay, cost nothing: no version is held for the window's sake", () => {
  const window = new EventWindow(0);
  const entry = cachedOf({ key: "a", value: { metadata: { name: "a" }, text: "x".repeat(100_000) }, revision: 1 });
  for (let i = 1; i <= 1_000; i++) window.push({ type: "ADDED", entry: { ...entry, revision: i } as typeof entry, previous: undefined }, i);
  expect(remembered(window)).toBe(1_000);
});

test("a watch begins after a revision that is remembered, and is refused before", () => {
  const window = told(2_000, 10);
  expect(window.after(1_998).map(({ entry }) => entry.revision)).toEqual([1_999, 2_000]);
  expect(window.after(2_000)).toEqual([]);
  window.forgetOld(10 * FRESH_MS);
  expect(window.oldest).toBe(976);
  expect(window.after(976)).toHaveLength(1_024);
  expect(() => window.after(975)).toThrow("too old resource version: 975 (976)");
});

test("after its beginning nothing is known of what was before", () => {
  const window = new EventWindow(0);
  window.begin(7);
  expect(window.after(7)).toEqual([]);
  expect(() => window.after(6)).toThrow("too old resource version");
});

test("an event is found by its revision", () => {
  const window = told(5_000, 10);
  expect([5_000, 4_999, 5_001].map((revision) => window.at(revision)?.entry.revision)).toEqual([5_000, 4_999, undefined]);
  window.forgetOld(10 * FRESH_MS);
  expect(window.at(1)).toBe(undefined);
});

test("a version that is forgotten is held no longer: large ones filled the memory with a thousand that nobody could ask for", async () => {
  const window = new EventWindow(0);
  const versions: WeakRef<object>[] = [];
  let previous = cachedOf({ key: "a", value: { metadata: { name: "a" } }, revision: 0 });
  for (let revision = 1; revision <= 900; revision++) {
    const entry = cachedOf({ key: "a", value: { metadata: { name: "a" }, text: "x".repeat(100_000) }, revision });
    versions.push(new WeakRef(entry));
    window.push({ type: "MODIFIED", entry, previous }, revision);
    previous = entry;
  }
  await new Promise((resolve) => setTimeout(resolve, 0)); // a WeakRef holds what it refers to until then
  Bun.gc(true);
  expect(versions.filter((one) => one.deref() !== undefined).length).toBeLessThan(150);
  expect(remembered(window)).toBe(100);
});
