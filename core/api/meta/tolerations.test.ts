import { expect, test } from "vitest";
import type { Toleration } from "../gen/core.v1.ts";
import { tolerates, tolerationsOf } from "./tolerations.ts";

const taint = (value: string) => ({ key: "sla", value, effect: "NoExecute" as const });

test.each<[operator: NonNullable<Toleration["operator"]>, value: string, of: string, tolerated: boolean]>([
  ["Gt", "950", "951", true], ["Gt", "950", "950", false], ["Gt", "950", "800", false], ["Lt", "950", "800", true], ["Lt", "950", "950", false], ["Lt", "950", "951", false],
  ["Gt", "-1", "0", true], ["Gt", "9007199254740992", "9007199254740993", true], ["Lt", "9223372036854775807", "9223372036854775806", true],
  ["Gt", "950", "high", false], ["Lt", "high", "950", false], ["Lt", "950", "0800", false], ["Gt", "+1", "2", false], ["Gt", "0", "", false], ["Gt", "0", "9223372036854775808", false],
  ["Equal", "950", "950", true], ["Equal", "950", "0950", false],
])("%s %j tolerates %j: %j", (operator, value, of, tolerated) => expect(tolerates({ key: "sla", operator, value }, taint(of))).toBe(tolerated));

test("numbers, too, are of one key and one effect", () => {
  expect(tolerates({ key: "other", operator: "Gt", value: "1" }, taint("2"))).toBe(false);
  expect(tolerates({ key: "sla", operator: "Gt", value: "1", effect: "NoSchedule" }, taint("2"))).toBe(false);
  expect(tolerates({ key: "sla", operator: "Gt", value: "1", effect: "NoExecute" }, taint("2"))).toBe(true);
});

const KEYS = ["", "a", "b", "c"], EFFECTS = [undefined, "NoSchedule", "NoExecute"] as const;

test("of many tolerations it is the first that tolerates, as if each was asked", () => {
  const all = Array.from({ length: 60 }, (_, i): Toleration => {
    const key = KEYS[(i * 7) % 4]!, effect = EFFECTS[(i * 5) % 3];
    return { ...(key === "" ? { operator: "Exists" as const } : { key, operator: i % 3 === 0 ? "Exists" as const : "Equal" as const, value: i % 3 === 0 ? "" : `v${i % 10}` }), ...(effect && { effect }) };
  });
  for (let from = 0; from < all.length; from++)
    for (const key of KEYS.slice(1))
      for (const effect of ["NoSchedule", "NoExecute", "PreferNoSchedule"] as const)
        for (let value = 0; value < 10; value++) {
          const held = all.slice(from), one = { key, effect, value: `v${value}` };
          expect(tolerationsOf(held).of(one)).toBe(held.find((toleration) => tolerates(toleration, one)));
        }
});

test("thousands of taints are not each held against thousands of tolerations; what stays as it is is read once", () => {
  let reads = 0;
  const counted = (toleration: Toleration): Toleration => ({ ...toleration, get effect() { reads++; return toleration.effect; } }) as Toleration;
  const all = Object.freeze(Array.from({ length: 2000 }, (_, i) => counted(i % 2 === 0 ? { key: `k${i}`, operator: "Exists", effect: "NoSchedule" } : { operator: "Exists", effect: "NoSchedule" })));
  const taints = Array.from({ length: 2000 }, (_, i) => ({ key: `k${i}`, effect: "NoExecute" as const }));
  for (const one of taints) expect(tolerationsOf(all).of(one)).toBeUndefined();
  expect(reads).toBeLessThan(2000 * 4);
});
