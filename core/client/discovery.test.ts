import { expect, test } from "vitest";
import type { Client } from "./client.ts";
import { discover } from "./discovery.ts";

test.each<[what: string, answer: unknown]>([
  ["no list", { resources: "all" }], ["nothing in a list", { resources: [null] }], ["a resource without a name", { resources: [{ kind: "A" }] }], ["verbs that are none", { resources: [{ name: "as", verbs: 1 }] }],
])("a server that answers %s does not keep others' resources from being known", async (_, answer) => {
  const client = { request: async ({ path }: { path: string }) => (path === "/apis" ? { groups: [{ name: "odd.io", versions: [{ groupVersion: "odd.io/v1" }] }] } : path === "/api/v1" ? { resources: [{ name: "pods", kind: "Pod", namespaced: true, verbs: ["get"] }] } : answer) };
  const { resources, failed } = await discover(client as unknown as Client, new AbortController().signal);
  expect([resources.map(({ plural }) => plural), [...failed.keys()]]).toEqual([["pods"], ["odd.io/v1"]]);
});
