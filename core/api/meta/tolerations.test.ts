import { expect, test } from "vitest";
import type { Toleration } from "../gen/core.v1.ts";
import { tolerates } from "./tolerations.ts";

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
