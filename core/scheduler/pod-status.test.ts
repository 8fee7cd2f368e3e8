import { expect, test } from "vitest";
import type { PodCondition } from "../api/gen/core.v1.ts";
import type { Client } from "../client/client.ts";
import { systemClock as clock } from "../lifecycle/clock.ts";
import { pod } from "../../test/scheduling-cluster.ts";
import { type StatusChange, writePodStatus } from "./pod-status.ts";

const said = { type: "PodScheduled", status: "False", reason: "Unschedulable", message: "0/1 nodes are available: 1 Insufficient cpu." } as const;
const known: PodCondition = { ...said, observedGeneration: 1, lastTransitionTime: "2026-01-01T00:00:00Z" };

async function written(change: StatusChange, { generation = 1 } = {}): Promise<readonly unknown[]> {
  const patches: unknown[] = [];
  const client = { resource: () => ({ patch: (_: unknown, __: string, patch: { readonly status: unknown }) => Promise.resolve(patches.push(patch.status)) }) } as unknown as Client;
  await writePodStatus(pod("p", { metadata: { generation }, status: { conditions: [known] } }), change, { client, clock, signal: new AbortController().signal });
  return patches;
}

test("what is said already is not said again", async () => {
  expect(await written({ condition: said })).toEqual([]);
});

test("nor because the pod's spec has changed meanwhile and the answer has not", async () => {
  expect(await written({ condition: said }, { generation: 2 })).toEqual([]);
});

test("another answer tells which spec it is about", async () => {
  const message = "0/2 nodes are available: 2 Insufficient cpu.";
  expect(await written({ condition: { ...said, message } }, { generation: 2 })).toMatchObject([{ conditions: [{ message, observedGeneration: 2 }] }]);
});
