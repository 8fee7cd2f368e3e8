import { expect, test } from "vitest";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import { silentLog } from "../../../core/observe/log.ts";
import type { Client } from "../../../core/client/client.ts";
import { nodeLease } from "./lease.ts";

test("the lease is renewed four times in its life; after a failure sooner, then later and later, seven seconds at most", async () => {
  const stop = new AbortController();
  const waits: number[] = [];
  let periodMs = 0;
  let tries = 0;
  const clock = {
    ...systemClock,
    sleep: async (ms: number) => { waits.push(ms); if (waits.length === 8) stop.abort(); },
    async *every(ms: number) { periodMs = ms; yield; },
  };
  const client = { resource: () => ({ get: async () => { tries++; throw new Error("no route to host"); } }) } as unknown as Client;
  await nodeLease({ client, clock, log: silentLog, nodeName: "n1", durationSeconds: 40, nodeUid: () => undefined }).run(stop.signal, () => undefined);
  expect([periodMs, tries, waits]).toEqual([10_000, 8, [200, 400, 800, 1_600, 3_200, 6_400, 7_000, 7_000]]);
});

test("a renewal sends what is new, and which lease it knew; the owner, and that nobody counts whose its fields are, once", async () => {
  const stop = new AbortController();
  const stored = { metadata: { name: "n1", namespace: "kube-node-lease", resourceVersion: "7", managedFields: [{ manager: "coracle-agent" }] }, spec: { holderIdentity: "n1", leaseDurationSeconds: 40, renewTime: "2026-01-01T00:00:00.000000Z" } };
  const owner = { apiVersion: "v1", kind: "Node", name: "n1", uid: "u1" };
  const patches: unknown[] = [];
  let nowMs = Date.UTC(2026, 0, 1, 0, 0, 10);
  const clock = { ...systemClock, nowMs: () => nowMs, async *every() { yield; nowMs += 10_000; yield; } };
  const patch = async (_name: unknown, type: string, body: { metadata: object; spec: object }): Promise<unknown> => {
    patches.push([type, body]);
    return { metadata: { ...stored.metadata, ...body.metadata, managedFields: undefined, resourceVersion: String(7 + patches.length) }, spec: { ...stored.spec, ...body.spec } };
  };
  const client = { resource: () => ({ get: async () => stored, patch }) } as unknown as Client;
  await nodeLease({ client, clock, log: silentLog, nodeName: "n1", durationSeconds: 40, nodeUid: () => "u1" }).run(stop.signal, () => undefined);
  expect(patches).toEqual([
    ["application/merge-patch+json", { metadata: { resourceVersion: "7", ownerReferences: [owner], managedFields: [{}] }, spec: { renewTime: "2026-01-01T00:00:10.000000Z" } }],
    ["application/merge-patch+json", { metadata: { resourceVersion: "8" }, spec: { renewTime: "2026-01-01T00:00:20.000000Z" } }],
  ]);
});
