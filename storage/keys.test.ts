import { expect, test } from "vitest";
import { compareKeys, keyOrder } from "./keys.ts";

const KEYS = ["", "a", "a/b", "b", "\u007f", "\ud7ff", "\ue000", "\uffff", "\u{10000}", "a\u{1f600}", "a\uffee", "a\ud7ff", "a\u{1f600}b"];

test("keys are in the order of their bytes, one by one and one with many", () => {
  for (const key of KEYS) {
    const order = keyOrder(key);
    for (const other of KEYS) {
      const expected = Buffer.compare(Buffer.from(other), Buffer.from(key));
      expect([other, key, Math.sign(compareKeys(other, key)), Math.sign(order(other))]).toEqual([other, key, expected, expected]);
    }
  }
});
