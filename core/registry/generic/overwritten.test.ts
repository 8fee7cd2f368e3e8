import { expect, test } from "vitest";
import { cachedOf } from "./cached.ts";
import { Overwritten } from "./overwritten.ts";

let revision = 0;
const version = (bytes: number) => cachedOf({ key: "/a", value: { kind: "ConfigMap", apiVersion: "v1", metadata: { name: "a" }, data: { text: "x".repeat(bytes) } }, revision: ++revision });

test("a version that was overwritten has its bytes until many others were", () => {
  const overwritten = new Overwritten();
  const first = version(1_000), bytes = first.json();
  overwritten.add(first);
  for (let i = 0; i < 1_000; i++) {
    const next = version(1_000);
    next.json();
    overwritten.add(next);
  }
  expect(first.json()).toBe(bytes);
  const last = version(1_000), lastBytes = last.json();
  overwritten.add(last);
  for (let i = 0; i < 2_000; i++) {
    const next = version(3_000);
    next.json();
    overwritten.add(next);
  }
  expect([first.bytesHeld, last.bytesHeld]).toEqual([0, 0]);
  expect(last.json()).not.toBe(lastBytes);
});

test("a large one has them no longer, and does not take the room of others", () => {
  const overwritten = new Overwritten();
  const small = version(100), large = version(1_000_000);
  for (const entry of [small, large]) {
    entry.json();
    overwritten.add(entry);
  }
  expect(large.bytesHeld).toBe(0);
  expect(small.bytesHeld).toBeGreaterThan(100);
});

test("what nobody has asked for since has them no longer, and what has none is not kept", () => {
  const overwritten = new Overwritten();
  const asked = version(1_000), gone = version(1_000);
  for (const entry of [asked, gone]) {
    entry.json();
    overwritten.add(entry);
  }
  gone.forget();
  expect(overwritten.forgetUnused()).toBe(0);
  asked.json();
  expect(overwritten.size).toBe(1);
  expect(overwritten.forgetUnused()).toBe(0);
  expect(overwritten.forgetUnused()).toBeGreaterThan(1_000);
  expect([asked.bytesHeld, overwritten.size]).toEqual([0, 0]);
});
