import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Node } from "../../../core/api/gen/core.v1.ts";
import { informerFactory } from "../../../core/client/informer-factory.ts";
import { NODES, SERVICE_CIDRS } from "../../../core/client/resources.ts";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import { systemRandom } from "../../../core/lifecycle/random.ts";
import { runAll } from "../../../core/lifecycle/run-all.ts";
import { silentLog } from "../../../core/observe/log.ts";
import { eventually, fakeApi } from "../../../test/fake-api.ts";
import { fakeHcn } from "../../../test/fake-hcn.ts";
import type { HcnNetwork } from "../../os/hcn.ts";
import { networkAndMask, parseRoutePrint, type WindowsRoute } from "../../os/route.windows.ts";
import { peerOf, ROUTER_MAC_ANNOTATION } from "../overlay.ts";
import { planVxlan } from "../vxlan-plan.ts";
import { addresses, isSameNetwork, overlayNetwork, planRemoteSubnets, remoteSubnets, windowsCniConfig } from "./hns-settings.ts";
import { windowsNetwork } from "./windows-network.ts";

const ROUTE_PRINT = `===========================================================================
Schnittstellenliste
  6...00 15 5d 01 02 03 ......Microsoft Hyper-V Network Adapter
===========================================================================

IPv4-Routentabelle
===========================================================================
Aktive Routen:
     Netzwerkziel    Netzwerkmaske          Gateway    Schnittstelle Metrik
          0.0.0.0          0.0.0.0      192.168.1.1     192.168.1.10     25
        10.42.1.0    255.255.255.0     192.168.1.11     192.168.1.10     26
      192.168.1.0    255.255.255.0   Auf Verbindung      192.168.1.10    281
===========================================================================
Ständige Routen:
  Netzwerkadresse          Netzmaske  Gatewayadresse  Metrik
          0.0.0.0          0.0.0.0      192.168.1.1  Standard
===========================================================================
`.replaceAll("\n", "\r\n");

test("routes are read in any language", () => {
  expect(parseRoutePrint(ROUTE_PRINT)).toEqual([
    { to: "0.0.0.0/0", via: "192.168.1.1", interfaceIp: "192.168.1.10", metric: 25 }, { to: "10.42.1.0/24", via: "192.168.1.11", interfaceIp: "192.168.1.10", metric: 26 },
    { to: "192.168.1.0/24", via: undefined, interfaceIp: "192.168.1.10", metric: 281 },
  ]);
  expect([networkAndMask("10.42.1.0/24"), networkAndMask("10.42.0.0/15"), networkAndMask("0.0.0.0/0")]).toEqual([["10.42.1.0", "255.255.255.0"], ["10.42.0.0", "255.254.0.0"], ["0.0.0.0", "0.0.0.0"]]);
});

test("a node's range has places for everyone", () => {
  expect(addresses("10.42.7.0/24")).toEqual({ gateway: "10.42.7.1", bridge: "10.42.7.2", firstPod: "10.42.7.3", lastPod: "10.42.7.253", sourceVip: "10.42.7.254" });
});

test("the CNI plugins are told where pods are and what goes out by the node's address", () => {
  const facts = { podCidr: "10.42.7.0/24", clusterCidrs: ["10.42.0.0/16"], serviceCidrs: ["10.43.0.0/16"], nodeIp: "192.168.1.10", clusterDns: "10.43.0.10", clusterDomain: "cluster.local", ipamDir: "C:\\ipam" };
  const overlay = JSON.parse(windowsCniConfig({ ...facts, type: "Overlay" })) as { plugins: [Record<string, unknown>] };
  expect(overlay.plugins[0]).toEqual({
    type: "win-overlay", apiVersion: 2, capabilities: { portMappings: true, dns: true }, loopbackDSR: true, dns: { nameservers: ["10.43.0.10"], search: ["svc.cluster.local"] },
    ipam: { type: "host-local", dataDir: "C:\\ipam", ranges: [[{ subnet: "10.42.7.0/24", rangeStart: "10.42.7.3", rangeEnd: "10.42.7.253" }]] },
    policies: [
      { name: "EndpointPolicy", value: { Type: "OutBoundNAT", Settings: { Exceptions: ["10.42.0.0/16", "10.43.0.0/16"] } } },
      { name: "EndpointPolicy", value: { Type: "SDNRoute", Settings: { DestinationPrefix: "10.43.0.0/16", NeedEncap: true } } },
      { name: "EndpointPolicy", value: { Type: "ProviderAddress", Settings: { ProviderAddress: "192.168.1.10" } } },
    ],
  });
  expect(JSON.parse(windowsCniConfig({ ...facts, type: "L2Bridge" }))).toMatchObject({ plugins: [{ type: "win-bridge", ipam: { ranges: [[{ gateway: "10.42.7.2" }]] }, policies: [{}, {}, { value: { Settings: { DestinationPrefix: "192.168.1.10/32" } } }] }] });
});

test("other nodes' pods are behind their nodes; a Windows node names its router itself, and Linux nodes send there", () => {
  const linux = { name: "linux", ips: ["192.168.1.11"], podCidrs: ["10.42.1.0/24"] }, win = { name: "win", ips: ["192.168.1.12"], podCidrs: ["10.42.2.0/24"], mac: "00:15:5d:aa:bb:cc" };
  const wanted = remoteSubnets([linux, win, { name: "v6", ips: ["fd00::1"], podCidrs: ["10.42.3.0/24"] }]);
  const network: HcnNetwork = { ID: "n", ...overlayNetwork({ podCidr: "10.42.7.0/24", adapter: "Ethernet" }) };
  const { remove, add } = planRemoteSubnets(network, wanted);
  expect(remove).toEqual([]);
  expect(add.map(({ Settings }) => Settings)).toEqual([
    { DestinationPrefix: "10.42.1.0/24", IsolationId: 4096, ProviderAddress: "192.168.1.11", DistributedRouterMacAddress: "0A-58-0A-2A-01-00" },
    { DestinationPrefix: "10.42.2.0/24", IsolationId: 4096, ProviderAddress: "192.168.1.12", DistributedRouterMacAddress: "00-15-5D-AA-BB-CC" },
  ]);
  const later = { ...network, Policies: [...(network.Policies ?? []), ...add] };
  expect(planRemoteSubnets(later, wanted)).toEqual({ remove: [], add: [] });
  expect(planRemoteSubnets(later, remoteSubnets([linux])).remove).toEqual([add[1]]);
  expect(isSameNetwork(later, overlayNetwork({ podCidr: "10.42.7.0/24", adapter: undefined }))).toBe(true);
  expect(isSameNetwork(later, overlayNetwork({ podCidr: "10.42.8.0/24", adapter: undefined }))).toBe(false);

  const node = { apiVersion: "v1", kind: "Node", metadata: { name: "win", annotations: { [ROUTER_MAC_ANNOTATION]: "00:15:5d:aa:bb:cc" } }, spec: { podCIDRs: ["10.42.2.0/24"] }, status: { addresses: [{ type: "InternalIP", address: "192.168.1.12" }] } } as unknown as Node;
  expect(planVxlan([peerOf(node)!], 4)).toMatchObject({ neighbours: new Map([["10.42.2.0", "00:15:5d:aa:bb:cc"]]), forwardings: new Map([["00:15:5d:aa:bb:cc", "192.168.1.12"]]) });
});

async function start(overlay: "vxlan" | "host-gw") {
  const api = fakeApi(), hcn = fakeHcn(), stop = new AbortController();
  const directory = mkdtempSync(join(tmpdir(), "windows-network-"));
  const routes: WindowsRoute[] = [{ to: "10.42.9.0/24", via: "192.168.1.99", interfaceIp: "127.0.0.1", metric: 1 }, { to: "0.0.0.0/0", via: "192.168.1.1", interfaceIp: "127.0.0.1", metric: 1 }];
  const informers = informerFactory({ client: api.client, clock: systemClock, random: systemRandom, log: silentLog });
  hcn.settle = (network) => ({ ...network, Policies: [...(network.Policies ?? []), { Type: "ProviderAddress", Settings: { ProviderAddress: "127.0.0.1" } }, { Type: "DrMacAddress", Settings: { Address: "00-15-5D-AA-BB-CC" } }] });
  const network = windowsNetwork({
    informers, client: api.client, nodeName: "win", nodeIp: "127.0.0.1", adapter: "Ethernet", overlay, clusterCidrs: ["10.42.0.0/16", "fd00:42::/56"], serviceCidrs: ["10.43.0.0/16", "fd00:43::/112"], clusterDns: "10.43.0.10", clusterDomain: "cluster.local",
    cniConfDir: join(directory, "cni"), stateDir: directory, hcn: () => hcn, exec: async () => ({ exitCode: 0, stdout: "", stderr: "" }), clock: systemClock, log: silentLog,
    routes: {
      list: () => routes, remove: ({ to }) => void routes.splice(routes.findIndex((route) => route.to === to), 1),
      add: ({ to, via }) => void routes.push({ to, via, interfaceIp: "127.0.0.1", metric: 1 }),
    },
  });
  const running = runAll([informers, network], stop.signal);
  const node = (name: string, podCIDR: string, ip: string) => api.client.resource(NODES).create({ apiVersion: "v1", kind: "Node", metadata: { name }, spec: { podCIDR, podCIDRs: [podCIDR] }, status: { addresses: [{ type: "InternalIP", address: ip }] } } as never, { signal: stop.signal });
  return { api, hcn, network, routes, directory, node, [Symbol.asyncDispose]: async () => { stop.abort(); await running; rmSync(directory, { recursive: true }); } };
}

test("an overlay comes with the node's range, follows the other nodes, and comes back after a reboot", async () => {
  await using at = await start("vxlan");
  await at.node("linux", "10.42.1.0/24", "192.168.1.11");
  await at.node("win", "10.42.7.0/24", "127.0.0.1");
  await eventually(() => at.network.state(), Boolean);
  expect(at.hcn.calls).toEqual(["createNetwork coracle", "addPolicy RemoteSubnetRoute 10.42.1.0/24", "addPolicy HostRoute"]);
  expect(at.network.state()).toMatchObject({ type: "Overlay", sourceVip: "10.42.7.254", remoteSubnets: [{ prefix: "10.42.1.0/24", providerAddress: "192.168.1.11", mac: "0a:58:0a:2a:01:00" }] });
  const written = readFileSync(join(at.directory, "cni", "10-coracle.conflist"), "utf8");
  expect(JSON.parse(written)).toMatchObject({ plugins: [{ type: "win-overlay" }] });
  expect(written, "of a cluster of both families").not.toContain("fd00");
  await at.api.client.resource(SERVICE_CIDRS).create({ apiVersion: "networking.k8s.io/v1", kind: "ServiceCIDR", metadata: { name: "more" }, spec: { cidrs: ["10.43.0.0/16", "10.44.7.0/24"] } } as never, { signal: new AbortController().signal });
  await eventually(() => readFileSync(join(at.directory, "cni", "10-coracle.conflist"), "utf8"), (text) => text.includes('"DestinationPrefix": "10.44.7.0/24"') && text.includes('"10.43.0.0/16"'));
  await eventually(() => at.api.all(NODES).find(({ metadata }) => metadata.name === "win")?.metadata.annotations?.[ROUTER_MAC_ANNOTATION], (mac) => mac === "00:15:5d:aa:bb:cc");

  at.hcn.deleteNetwork(at.hcn.networks()[0]!.ID); // the machine has been started anew
  at.hcn.calls.length = 0;
  await at.node("second", "10.42.2.0/24", "192.168.1.12");
  await eventually(() => at.hcn.calls, (calls) => calls.length >= 4);
  expect(at.hcn.calls).toEqual(["createNetwork coracle", "addPolicy RemoteSubnetRoute 10.42.1.0/24", "addPolicy RemoteSubnetRoute 10.42.2.0/24", "addPolicy HostRoute"]);
});

test("with host-gw the node is a router: an interface on the bridge, and routes to other nodes' pods", async () => {
  await using at = await start("host-gw");
  await at.node("linux", "10.42.1.0/24", "192.168.1.11");
  await at.node("win", "10.42.7.0/24", "127.0.0.1");
  await eventually(() => at.network.state(), Boolean);
  expect(at.hcn.calls).toEqual(["createNetwork coracle", "createEndpoint 10.42.7.2", "attachToHost coracle-host"]);
  expect(at.routes.map(({ to, via }) => `${to} ${via}`)).toEqual(["0.0.0.0/0 192.168.1.1", "10.42.1.0/24 192.168.1.11"]); // what led to a node that is gone is gone
  expect(at.network.state()).toMatchObject({ type: "L2Bridge", remoteSubnets: [] });
});
