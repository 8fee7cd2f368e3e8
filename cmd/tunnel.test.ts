import { expect, test } from "vitest";
import type { Node } from "../core/api/gen/core.v1.ts";
import { nodeAt } from "./tunnel.ts";

const node = (name: string, podCidr: string, ...addresses: string[]): Node => ({ apiVersion: "v1", kind: "Node", metadata: { name, creationTimestamp: name === "liar" ? "2026-01-02T00:00:00Z" : "2026-01-01T00:00:00Z" }, spec: { podCIDRs: [podCidr] }, status: { addresses: addresses.map((address) => ({ type: "InternalIP", address })) } }) as unknown as Node;

test.each<[string, string | undefined]>([["10.42.1.7", "n1"], ["192.0.2.9", "liar"], ["192.0.2.1", "server"], ["192.0.2.2", "n1"], ["192.0.2.77", undefined], ["example.com", undefined], ["n1", "n1"], ["127.0.0.1", undefined], ["::1", undefined], ["localhost", undefined]])("%s is reached by way of %s, whatever a node says it is", (host, expected) => {
  const liar = node("liar", "10.42.9.0/24", "192.0.2.9", "192.0.2.1", "10.42.1.7", "192.0.2.2", "example.com", "n1", "127.0.0.1", "::1", "localhost");
  expect(nodeAt(host, [liar, node("n1", "10.42.1.0/24", "192.0.2.2"), node("server", "10.42.0.0/24", "192.0.2.1")], "server")).toBe(expected);
});
