import { expect, test } from "vitest";
import { ipBytes, parseIp } from "../../core/net/cidr.ts";
import type { FlowTable } from "../os/flow-table.ts";
import { attribute, be16, joined, nested, u8 } from "../os/netlink-message.ts";
import { conntrackOf, losesFlows, staleFlows } from "./conntrack.ts";
import type { PortPlan } from "./desired.ts";

const tuple = (source: string, sourcePort: number, destination: string, port: number, protocol: number): Uint8Array => joined([
  nested(1, attribute(1, ipBytes(parseIp(source)!)), attribute(2, ipBytes(parseIp(destination)!))),
  nested(2, attribute(1, u8(protocol)), attribute(2, be16(sourcePort)), attribute(3, be16(port))),
]);
/** From a client's port to `front`, answered by `endpoint`, as the kernel lists it. */
const told = (clientPort: number, front: readonly [string, number], endpoint: readonly [string, number], protocol = 17): Uint8Array => joined([
  Uint8Array.of(2, 0, 0, 0), nested(1, tuple("10.42.0.9", clientPort, ...front, protocol)), nested(2, tuple(...endpoint, "10.42.0.9", clientPort, protocol)), attribute(3, Uint8Array.of(0, 0, 1, 136)), attribute(12, be16(1), be16(clientPort)),
]);
const TOLD = [
  told(40_000, ["10.43.0.10", 53], ["10.42.1.2", 5353]), told(40_001, ["10.43.0.10", 53], ["10.42.1.2", 5353]), told(40_002, ["10.43.0.10", 53], ["10.42.1.3", 5353]),
  told(40_000, ["172.30.0.1", 30_053], ["10.42.1.2", 5353]), told(40_000, ["8.8.8.8", 53], ["8.8.8.8", 53]), told(40_000, ["10.43.0.10", 53], ["10.42.1.2", 5353], 6),
];
const backend = (ip: string) => ({ ip, port: 5353, local: false });
const plan = (...ips: string[]): PortPlan => ({ protocol: "udp", family: 4, clusterIp: "10.43.0.10", port: 53, nodePort: 30053, externalIps: [], loadBalancerIps: [], servingBackends: ips.map(backend) }) as unknown as PortPlan;

const tableOf = (deleted: string[], lists: number[] = []): FlowTable => ({
  list: (family) => (lists.push(family), [TOLD.slice(0, 2), TOLD.slice(2)]),
  delete: ({ handle }) => void deleted.push(Buffer.from(handle).readUInt16BE(handle.length - 2) + (Buffer.from(handle).includes(ipBytes(parseIp("172.30.0.1")!)) ? " node port" : "")),
});

test("flows to endpoints that no longer serve are stale; others', and those of services without any endpoint, are left alone", () => {
  const flow = (originalIp: string, originalPort: number, replyIp: string) => ({ originalIp, originalPort, replyIp, replyPort: 5353 });
  const flows = [flow("10.43.0.10", 53, "10.42.1.2"), flow("10.43.0.10", 53, "10.42.1.3"), flow("172.30.0.1", 30_053, "10.42.1.2"), flow("8.8.8.8", 53, "8.8.8.8")];
  expect(staleFlows(flows, [plan("10.42.1.3")])).toEqual([flows[0], flows[2]]);
  expect(staleFlows(flows, [plan()])).toEqual([]);
});

test("the kernel is asked once, and told of each stale flow of UDP; others have their turn meanwhile", async () => {
  const deleted: string[] = [], lists: number[] = [];
  let turns = 0;
  const conntrack = conntrackOf(tableOf(deleted, lists), async () => void turns++);
  expect(await conntrack.forgetStale(4, [plan("10.42.1.3")], new AbortController().signal)).toBe(3);
  expect({ lists, deleted, turns }).toEqual({ lists: [4], deleted: ["40000", "40001", "40000 node port"], turns: 2 + 3 });
});

test.each([
  [undefined, plan("a"), true], [plan(), plan("a"), true], [plan("a"), plan("a", "b"), false], [plan("a", "b"), plan("a"), true], [plan("a"), plan(), false],
  [plan("a"), { ...plan("a"), loadBalancerIps: ["192.0.2.1"] }, true], [{ ...plan("a"), nodePort: 0 }, plan("a"), true], [plan("a"), { ...plan("a"), nodePort: 0 }, false],
])("a change that may leave stale flows", (before, after, loses) => {
  expect(losesFlows(before, after)).toBe(loses);
});
