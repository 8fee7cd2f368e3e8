import { expect, test } from "vitest";
import { orderOf } from "./bytecode-order.ts";

test("an order of bytecode has the functions of all records, each where it ran first", () => {
  expect(orderOf(["v2\nF b\nK name\nF a\nM m\n", "v2\nF a\nS text\nF c\n"])).toBe("v2\nF b\nF a\nM m\nF c\n");
});
