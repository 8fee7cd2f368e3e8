import { expect, test } from "vitest";
import type { Node } from "../core/api/gen/core.v1.ts";
import { seenElsewhere } from "./seen-elsewhere.ts";

const at = (...addresses: string[]): Node => ({ metadata: { name: "edge-1" }, status: { addresses: [{ type: "Hostname", address: "edge-1" }, ...addresses.map((address) => ({ type: "InternalIP", address }))] } }) as Node;

test.each([
  { name: "at its address", own: ["192.168.1.50"], from: "192.168.1.50", told: undefined },
  { name: "at one of its addresses", own: ["192.168.1.50", "2001:db8::5"], from: "2001:db8::5", told: undefined },
  { name: "at a temporary address of its network", own: ["192.168.1.50", "2001:db8::5"], from: "2001:db8::7f3a", told: undefined },
  { name: "behind NAT", own: ["192.168.1.50"], from: "203.0.113.7", told: /called from 203\.0\.113\.7, and the node's address is 192\.168\.1\.50, .*UDP 4789/ },
  { name: "in another network of IPv6", own: ["2001:db8::5"], from: "2001:db8:0:1::5", told: /2001:db8:0:1::5/ },
  { name: "at an address of the other family, of which it has told none", own: ["192.168.1.50"], from: "2001:db8::5", told: undefined },
  { name: "on the same link", own: ["192.168.1.50", "2001:db8::5"], from: "fe80::7f3a", told: undefined },
  { name: "before it has said where it is", own: [], from: "203.0.113.7", told: undefined },
])("a node that a server sees $name", ({ own, from, told }) => {
  expect(seenElsewhere(at(...own), from)).toEqual(told === undefined ? undefined : expect.stringMatching(told));
});
