import { expect, test } from "vitest";
import { resourceMetrics } from "../server/pod-metrics.ts";
import { parsePressure, pressuresOf, swapOf } from "./pressure.ts";

const TEXT = "some avg10=1.50 avg60=0.25 avg300=0.00 total=1234\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
const WAITS = { some: { total: 1_234_000, avg10: 1.5, avg60: 0.25, avg300: 0 }, full: { total: 7000, avg10: 0, avg60: 0, avg300: 0 } };

test("how long tasks wait, in nanoseconds, where the kernel counts it by group", () => {
  expect(parsePressure(TEXT)).toEqual(WAITS);
  const text = (path: string, _: string, file: string): string | undefined => (path === "/kubepods" && file !== "io.pressure" ? TEXT : undefined);
  expect(pressuresOf({ version: 2, text }, "/kubepods")).toEqual({ cpu: WAITS, memory: WAITS, io: undefined });
  expect(pressuresOf({ version: 1, text }, "/kubepods")).toEqual({ cpu: undefined, memory: undefined, io: undefined });
});

test("what of a group is swapped, and what more may be, where it is limited and counted", () => {
  const group = (files: Record<string, string>, version: 1 | 2 = 2) => ({ version, text: (path: string, _: string, file: string) => (path === "/p" ? files[file] : undefined) });
  const stat = { "memory.stat": "anon 1\n" };
  expect(swapOf(group({ ...stat, "memory.swap.current": "4096\n", "memory.swap.max": "10000\n" }), "/p", "T")).toEqual({ time: "T", swapAvailableBytes: 5904, swapUsageBytes: 4096 });
  expect(swapOf(group({ ...stat, "memory.swap.current": "4096\n", "memory.swap.max": "max\n" }), "/p", "T")).toEqual({ time: "T", swapUsageBytes: 4096 });
  const first = "swap 1\ntotal_swap 4096\n";
  expect(swapOf(group({ "memory.stat": first, "memory.memsw.limit_in_bytes": "9223372036854771712\n" }, 1), "/p", "T")).toEqual({ time: "T", swapUsageBytes: 4096 });
  expect(swapOf(group({ "memory.stat": first, "memory.memsw.limit_in_bytes": "10000\n" }, 1), "/p", "T")).toEqual({ time: "T", swapAvailableBytes: 5904, swapUsageBytes: 4096 });
  const none = { time: "T", swapAvailableBytes: 0, swapUsageBytes: 0 }; // the kernel counts none
  expect([swapOf(group(stat), "/p", "T"), swapOf(group(stat, 1), "/p", "T")]).toEqual([none, none]);
  expect([swapOf(group({}), "/p", "T"), swapOf(group(stat), undefined, "T")]).toEqual([undefined, undefined]);
});

test("what is swapped is told of the node, its pods and their containers; where nothing is counted, nothing", () => {
  const time = "2026-01-02T03:04:05Z";
  const swap = { time, swapAvailableBytes: 300, swapUsageBytes: 100 };
  const container = { name: "c", startTime: time, swap };
  const podRef = { name: "p", namespace: "d", uid: "u" };
  const text = resourceMetrics({ node: { nodeName: "n", startTime: time, swap: { time, swapUsageBytes: 1000 } }, pods: [{ podRef, startTime: time, containers: [container, { name: "none", startTime: time }, { name: "free", startTime: time, swap: { time, swapUsageBytes: 5 } }], swap }] });
  expect(text.split("\n").filter((line) => line.includes("swap") && !line.startsWith("#"))).toEqual([
    'container_swap_limit_bytes{container="c",namespace="d",pod="p"} 400 1767323045000', 'container_swap_usage_bytes{container="c",namespace="d",pod="p"} 100 1767323045000', 'container_swap_usage_bytes{container="free",namespace="d",pod="p"} 5 1767323045000',
    "node_swap_usage_bytes 1000 1767323045000", 'pod_swap_usage_bytes{namespace="d",pod="p"} 100 1767323045000',
  ]);
});
