import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { LabelAllowLists } from "../core/observe/metrics.ts";
import { apiServerArgs } from "./apiserver-args.ts";
import { applyMetricsSettings } from "./metrics-settings.ts";

function applied(...given: readonly string[]): { readonly disabled: readonly string[]; readonly lists: unknown } {
  const disabled: string[] = [];
  let lists: LabelAllowLists = new Map();
  applyMetricsSettings(apiServerArgs(given), { disable: (names) => void disabled.push(...names), allowLabels: (given) => { lists = given; } });
  return { disabled, lists: Object.fromEntries([...lists].map(([metric, labels]) => [metric, Object.fromEntries([...labels].map(([label, values]) => [label, [...values]]))])) };
}

function manifest(text: string): string {
  const path = join(mkdtempSync(join(tmpdir(), "metrics-")), "lists.yaml");
  writeFileSync(path, text);
  return `allow-metric-labels-manifest=${path}`;
}

test("what is not shown, and which label values are told apart", () => {
  expect(applied()).toEqual({ disabled: [], lists: {} });
  expect(applied("disabled-metrics=a_total,b", "show-hidden-metrics-for-version=1.35")).toEqual({ disabled: ["a_total", "b"], lists: {} });
  expect(applied("allow-metric-labels=a_total,code='200,404'", "allow-metric-labels=a_total,verb=GET").lists).toEqual({ a_total: { code: ["200", "404"], verb: ["GET"] } });
  expect(applied('allow-metric-labels="a_total,code=200,404","b,verb=GET"').lists).toEqual({ a_total: { code: ["200", "404"] }, b: { verb: ["GET"] } });
  expect(applied(manifest('"a_total,code": "200,404"\n"b,verb": ""\n')).lists).toEqual({ a_total: { code: ["200", "404"] }, b: { verb: [""] } });
});

test.each<[given: readonly string[], told: string]>([
  [["show-hidden-metrics-for-version=1.34"], "must be omitted or have the value '1.35'; only the previous minor version is allowed"],
  [["disabled-metrics=a b"], 'must be fully qualified metric names matching'],
  [["allow-metric-labels=a=1"], "must have keys with format `metricName,labelName`"],
  [["allow-metric-labels=a,b"], "must be formatted as key=value"],
  [["allow-metric-labels-manifest=/none"], "failed to read allow list manifest"],
  [["allow-metric-labels=a,b=1", "allow-metric-labels-manifest=/none"], "cannot specify both"],
])("%j is refused", (given, told) => expect(() => applied(...given)).toThrow(told));
