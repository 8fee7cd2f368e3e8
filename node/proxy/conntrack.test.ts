import { expect, test } from "vitest";
import { conntrackProgram, losesFlows, parseFlows, staleFlows } from "./conntrack.ts";
import type { PortPlan } from "./desired.ts";

const LISTING = `udp      17 25 src=10.42.0.9 dst=10.43.0.10 sport=40000 dport=53 [UNREPLIED] src=10.42.1.2 dst=10.42.0.9 sport=5353 dport=40000 mark=0 use=1
udp      17 170 src=10.42.0.9 dst=10.43.0.10 sport=40001 dport=53 src=10.42.1.3 dst=10.42.0.9 sport=5353 dport=40001 [ASSURED] mark=0 use=1
udp      17 25 src=172.30.0.9 dst=172.30.0.1 sport=40000 dport=30053 src=10.42.1.2 dst=172.30.0.1 sport=5353 dport=40000 mark=0 use=1
udp      17 25 src=10.42.0.9 dst=8.8.8.8 sport=40000 dport=53 src=8.8.8.8 dst=172.30.0.1 sport=53 dport=40000 mark=0 use=1
`;
const backend = (ip: string) => ({ ip, port: 5353, local: false });
const plan = (...ips: string[]): PortPlan => ({ protocol: "udp", family: 4, clusterIp: "10.43.0.10", port: 53, nodePort: 30053, externalIps: [], loadBalancerIps: [], servingBackends: ips.map(backend) }) as unknown as PortPlan;

test("flows to endpoints that no longer serve are stale; others', and those of services without any endpoint, are left alone", () => {
  const flows = parseFlows(LISTING);
  expect(flows).toHaveLength(4);
  expect(staleFlows(flows, [plan("10.42.1.3")])).toEqual([flows[0], flows[2]]);
  expect(staleFlows(flows, [plan()])).toEqual([]);
});

test("each kind of stale flow is deleted with one command; that it was gone already is no failure", async () => {
  const calls: string[] = [];
  const conntrack = conntrackProgram({
    path: "conntrack",
    run: async (_command, args) => {
      calls.push(args.join(" "));
      return args[0] === "-L" ? { exitCode: 0, stdout: LISTING, stderr: "" } : { exitCode: 1, stdout: "", stderr: "conntrack v1.4.8 (conntrack-tools): 0 flow entries have been deleted.\n" };
    },
  });
  expect(await conntrack.forgetStale(4, [plan("10.42.1.3")], new AbortController().signal)).toBe(2);
  expect(calls.slice(1)).toEqual([
    "-D -p udp -f ipv4 --orig-dst 10.43.0.10 --orig-port-dst 53 --reply-src 10.42.1.2 --reply-port-src 5353",
    "-D -p udp -f ipv4 --orig-dst 172.30.0.1 --orig-port-dst 30053 --reply-src 10.42.1.2 --reply-port-src 5353",
  ]);
});

test.each([
  [undefined, plan("a"), true], [plan(), plan("a"), true], [plan("a"), plan("a", "b"), false], [plan("a", "b"), plan("a"), true], [plan("a"), plan(), false],
  [plan("a"), { ...plan("a"), loadBalancerIps: ["192.0.2.1"] }, true], [{ ...plan("a"), nodePort: 0 }, plan("a"), true], [plan("a"), { ...plan("a"), nodePort: 0 }, false],
])("a change that may leave stale flows", (before, after, loses) => {
  expect(losesFlows(before, after)).toBe(loses);
});
