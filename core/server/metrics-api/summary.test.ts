import { expect, test } from "vitest";
import { systemClock as clock } from "../../lifecycle/clock.ts";
import { silentLog as log } from "../../observe/log.ts";
import { summaryOf, summaryReader } from "./summary.ts";

const time = "2026-01-02T03:04:05Z";
const stats = (swapUsageBytes?: number) => ({ cpu: { time, usageNanoCores: 5.4 }, memory: { time, workingSetBytes: 2048 }, ...(swapUsageBytes === undefined ? {} : { swap: { swapUsageBytes } }) });

test("what the metrics API says comes from the kubelets' statistics: processor, memory, and swap where it is counted", () => {
  expect(summaryOf({ node: stats(4096), pods: [{ podRef: { uid: "u" }, containers: [{ name: "a", ...stats() }, { name: "b" }] }] })).toEqual({
    node: { time, nanoCores: 5, workingSetBytes: 2048, swapBytes: 4096 }, pods: new Map([["u", [{ name: "a", usage: { time, nanoCores: 5, workingSetBytes: 2048 } }, { name: "b", usage: undefined }]]]),
  });
});

test.each([
  ["an amount that is a text", { usageNanoCores: "1", time }, { workingSetBytes: 1 }], ["one without end", { usageNanoCores: Number.POSITIVE_INFINITY, time }, { workingSetBytes: 1 }], ["less than nothing", { usageNanoCores: 1, time }, { workingSetBytes: -1 }],
  ["no time", { usageNanoCores: 1, time: {} }, { workingSetBytes: 1 }], ["a time of no calendar", { usageNanoCores: 1, time: "2026-99-99T00:00:00Z" }, { workingSetBytes: 1 }],
])("a node that says %s says nothing", (_, cpu, memory) => {
  const odd = { cpu, memory } as never;
  expect(summaryOf({ node: odd, pods: [{ podRef: { uid: "u" }, containers: [{ name: "a", ...(odd as object) }] }] })).toEqual({ node: undefined, pods: new Map([["u", [{ name: "a", usage: undefined }]]]) });
});

test("a node that is known to be silent is not asked", async () => {
  const asked: string[] = [];
  const dialer = { connect: ({ nodeName }: { readonly nodeName: string }) => { asked.push(nodeName); return Promise.reject(new Error("dial tcp: refused")); } };
  const nodes: Record<string, object> = Object.fromEntries([["silent", "Unknown"], ["unready", "False"], ["ready", "True"]].map(([name, status]) => [name!, { status: { conditions: [{ type: "Ready", status }], addresses: [{ type: "InternalIP", address: "10.0.0.1" }] } }]));
  const registry = { storeOf: () => ({ get: async (_: string, name: string) => ({ object: nodes[name] }) }) };
  const reader = summaryReader({ dialer, kubeletTls: () => ({}) } as never);
  const found = await reader.read({ server: { clock, log, registry }, info: { resource: "nodes" }, signal: new AbortController().signal } as never, Object.keys(nodes), () => true);
  expect([[...found], asked.sort()]).toEqual([[], ["ready", "unready"]]);
});
