import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type networkInterfaces, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { informerFactory } from "../../core/client/informer-factory.ts";
import { NODES } from "../../core/client/resources.ts";
import { type Clock, systemClock } from "../../core/lifecycle/clock.ts";
import { systemRandom } from "../../core/lifecycle/random.ts";
import type { Family } from "../../core/net/cidr.ts";
import { silentLog } from "../../core/observe/log.ts";
import { eventually, fakeApi } from "../../test/fake-api.ts";
import { oldNftDiesOf } from "../../test/old-nft.ts";
import type { ChainName } from "../os/chain-watch.ts";
import { type FilterChain, filterChains, NftError } from "../os/exec-nft.ts";
import type { Link, Netlink } from "../os/netlink.ts";
import { sysctlKeeper } from "../os/sysctl.ts";
import { addressWatch } from "./address-watch.ts";
import { allowThroughFirewall, passageText } from "./forward.ts";
import { planHostGateway } from "./host-gw.ts";
import { ensureBridge } from "./bridge.ts";
import { letPacketsThrough } from "./host.ts";
import { ensureLoneAddress } from "./lone-address.ts";
import { masqueradeText } from "./masquerade.ts";
import { tunnelGuardText } from "./tunnel-guard.ts";
import { nodeNetwork } from "./network.ts";
import { addressesElsewhere, addressesWithin, isAtHome, machineAddresses, movedTo, type NetworkFacts, type NodeAddresses, nodeAddresses, settledAt } from "./node-ip.ts";
import { noOverlay, type Peer, peersOf, ROUTER_MAC_ANNOTATION } from "./overlay.ts";
import { waysOut } from "./router-advertisements.ts";
import { vxlanOverlay } from "./vxlan.ts";
import { macFor, planVxlan } from "./vxlan-plan.ts";

const { signal } = new AbortController();

function directory(): Disposable & { readonly path: string } {
  const path = mkdtempSync(join(tmpdir(), "network-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true }) };
}

test.skipIf(process.platform !== "linux")("a node with a pod CIDR gets its configuration, and its peers' routes; heartbeats change nothing", async () => {
  using dir = directory();
  const api = fakeApi();
  const stop = new AbortController();
  const informers = informerFactory({ client: api.client, clock: systemClock, random: systemRandom, log: silentLog });
  const scripts: string[] = [], synced: string[] = [], bridged: boolean[] = [], config = join(dir.path, "net.d/10-coracle.conflist");
  let refusal: Error | undefined = new Error("this kernel has no nf_tables");
  const network = nodeNetwork({
    informers, nodeName: "n1", clusterCidrs: ["10.42.0.0/16"], serviceCidrs: ["10.43.0.0/16"], cniConfDir: join(dir.path, "net.d"), stateDir: join(dir.path, "state"), uplink: { interfaceName: undefined, mtu: 1500 },
    nft: { async apply(text) { if (refusal) throw refusal; scripts.push(text); }, names: async () => undefined, chain: async () => undefined },
    overlay: { ...noOverlay, overheadBytes: 50, async sync(own, others) { synced.push(`${own.name}: ${others.map((peer) => `${peer.name}=${peer.podCidrs.join()}@${peer.ips.join()}`).join(" ")}`); } },
    async onBridge() { await systemClock.sleep(10, signal); bridged.push(existsSync(config)); },
    cpus: 1, prepare: async () => ({ bridgeNetfilter: true }), clock: systemClock, log: silentLog,
  });
  const ended = Promise.all([informers.run(stop.signal, () => {}), network.run(stop.signal, () => {})]);
  const node = (name: string, n: number) => ({ apiVersion: "v1", kind: "Node", metadata: { name }, spec: { podCIDR: `10.42.${n}.0/24`, podCIDRs: [`10.42.${n}.0/24`] }, status: { addresses: [{ type: "Hostname", address: name }, { type: "InternalIP", address: `172.30.0.${n}` }] } });

  await api.client.resource(NODES).create(node("n1", 1) as never, { signal });
  const other = await api.client.resource(NODES).create(node("n2", 2) as never, { signal });
  await eventually(() => network.problem(), (problem) => problem === "this kernel has no nf_tables");
  refusal = undefined;
  await eventually(() => synced.at(-1), (last) => last === "n1: n2=10.42.2.0/24@172.30.0.2");
  await eventually(() => network.problem(), (problem) => problem === undefined);
  expect(bridged[0]).toBe(false); // whoever serves pods there is ready before there are any
  const { plugins } = JSON.parse(readFileSync(config, "utf8")) as { plugins: [{ mtu: number; ipam: { ranges: unknown; dataDir: string } }, { backend: string }] };
  expect(plugins[0]).toMatchObject({ type: "bridge", bridge: "cni0", mtu: 1450, isDefaultGateway: true, hairpinMode: true, ipMasq: false, ipam: { type: "host-local", ranges: [[{ subnet: "10.42.1.0/24" }]], dataDir: join(dir.path, "state/ipam") } });
  expect(plugins[0].ipam).not.toHaveProperty("routes"); // theirs would have no gateway in the result
  expect(plugins[1]).toMatchObject({ type: "portmap", backend: "nftables" });
  expect(scripts.map((text) => /table (.*)/.exec(text)![1])).toEqual(["ip coracle-masq", "inet coracle-tunnel"]);

  const syncs = synced.length;
  await api.client.resource(NODES).updateStatus({ ...other, status: { ...other.status, conditions: [{ type: "Ready", status: "True" }] } } as never, { signal });
  await api.client.resource(NODES).delete(other, {}, { signal });
  await eventually(() => synced.at(-1), (last) => last === "n1: ");
  expect(synced.length).toBe(syncs + 1);
  stop.abort();
  await ended;
  expect(existsSync(config)).toBe(true); // pods live on
});

test.skipIf(process.platform !== "linux")("what lets packets through is set again where a system has applied its own settings", async () => {
  using dir = directory();
  const stop = new AbortController();
  const path = (name: string): string => join(dir.path, "sys", name);
  const forwards = path("net/ipv4/ip_forward");
  mkdirSync(path("net/ipv4"), { recursive: true });
  writeFileSync(forwards, "0");
  const cards = ["eth1", "wwan0"];
  const ofRouters = (name: string): string => path(`net/ipv6/conf/${name}/accept_ra`), routersHeard = (name: string): string => readFileSync(ofRouters(name), "utf8");
  const accept = (name: string, value: string): void => {
    mkdirSync(dirname(ofRouters(name)), { recursive: true });
    writeFileSync(ofRouters(name), value);
  };
  for (const [name, value] of [["eth0", "1"], ["wwan0", "1"], ["eth1", "0"]] as const) accept(name, value);
  const quick = { ...systemClock, after: (ms: number, work: () => void) => systemClock.after(ms / 1000, work) };
  const informers = informerFactory({ client: fakeApi().client, clock: systemClock, random: systemRandom, log: silentLog });
  const sysctl = sysctlKeeper({ recordFile: join(dir.path, "record.json"), log: silentLog, root: path("") });
  const network = nodeNetwork({ informers, nodeName: "n1", clusterCidrs: [], serviceCidrs: [], cniConfDir: dir.path, stateDir: dir.path, uplink: { interfaceName: undefined, mtu: 1500 }, nft: { async apply() {}, names: async () => undefined, chain: async () => undefined }, overlay: noOverlay, cpus: 1, prepare: async () => letPacketsThrough({ sysctl, usesV6: true, interfaceName: "eth0", waysOut: () => cards, log: silentLog }), clock: quick, log: silentLog });
  const ended = network.run(stop.signal, () => {});
  for (let i = 0; i < 2; i++) {
    await eventually(() => readFileSync(forwards, "utf8"), (text) => text === "1");
    writeFileSync(forwards, "0");
  }
  await eventually(() => readFileSync(forwards, "utf8"), (text) => text === "1");
  expect(["eth0", "wwan0", "eth1"].map(routersHeard)).toEqual(["2", "2", "0"]); // eth1's are a program's to hear
  accept("usb0", "1");
  cards.push("usb0"); // put in
  await eventually(() => routersHeard("usb0"), (text) => text === "2");
  accept("eth0", "0"); // a program has taken it over
  writeFileSync(forwards, "0");
  await eventually(() => readFileSync(forwards, "utf8"), (text) => text === "1");
  expect(routersHeard("eth0")).toBe("0");
  expect(existsSync(path("net/bridge"))).toBe(false);
  stop.abort();
  await ended;
});

test.each([
  { name: "was a router before hears none where others may send through it", forwarded: "1", heard: ["2", "1"] },
  { name: "was none hears them on each way out", forwarded: "0", heard: ["2", "2"] },
])("a machine that $name, also after a restart", ({ forwarded, heard }) => {
  using dir = directory();
  const path = (name: string): string => join(dir.path, "net/ipv6/conf", name);
  for (const [name, value] of [["all/forwarding", forwarded], ["eth0/accept_ra", "1"], ["eth1/accept_ra", "1"]] as const) {
    mkdirSync(dirname(path(name)), { recursive: true });
    writeFileSync(path(name), value);
  }
  for (let starts = 0; starts < 2; starts++) {
    const sysctl = sysctlKeeper({ recordFile: join(dir.path, "record.json"), log: silentLog, root: dir.path });
    letPacketsThrough({ sysctl, usesV6: true, interfaceName: "eth0", waysOut: () => ["eth0", "eth1"], log: silentLog }).keep?.();
    expect(["eth0/accept_ra", "eth1/accept_ra", "all/forwarding"].map((name) => readFileSync(path(name), "utf8"))).toEqual([...heard, "1"]);
  }
});

test("routers are heard on network cards and where they have told of an address; never on what pods and containers are behind", () => {
  const line = (name: string, flags: string): string => `20010db8000000000000000000000005 02 40 00 ${flags}     ${name}\n`;
  const addresses6 = [line("eth0", "00"), line("br0", "00"), line("eth0.5", "80"), line("docker0", "00"), line("cni0", "00"), line("wg0", "80")].join("");
  expect(waysOut({ cards: ["eth0", "wwan0"], addresses6 })).toEqual(["eth0", "wwan0", "br0"]);
});

test.skipIf(process.platform !== "linux")("addresses of before a reboot are forgotten, those of before a restart are not", async () => {
  using dir = directory();
  const informers = informerFactory({ client: fakeApi().client, clock: systemClock, random: systemRandom, log: silentLog });
  const held = join(dir.path, "ipam/coracle/10.42.1.2");
  const start = async (): Promise<void> => {
    const stop = new AbortController();
    const network = nodeNetwork({ informers, nodeName: "n1", clusterCidrs: [], serviceCidrs: [], cniConfDir: dir.path, stateDir: dir.path, uplink: { interfaceName: undefined, mtu: 1500 }, nft: { async apply() {}, names: async () => undefined, chain: async () => undefined }, overlay: noOverlay, cpus: 1, prepare: async () => ({ bridgeNetfilter: true }), clock: systemClock, log: silentLog });
    await network.run(stop.signal, () => stop.abort());
  };
  mkdirSync(join(dir.path, "ipam/coracle"), { recursive: true });
  writeFileSync(held, "pod");
  writeFileSync(join(dir.path, "boot-id"), "another");
  await start();
  expect(existsSync(held)).toBe(false);
  mkdirSync(join(dir.path, "ipam/coracle"), { recursive: true });
  writeFileSync(held, "pod");
  await start();
  expect(existsSync(held)).toBe(true);
});

test("masquerading: between pods never, outward always, inward only towards other nodes, and what the proxy has marked never: it is masqueraded and the mark taken off there, or the tunnel would carry the mark on", () => {
  expect(masqueradeText({ clusterCidrs: ["10.42.0.0/16"], podCidrs: ["10.42.1.0/24"], bridgeNetfilter: true }).trim().split("\n").slice(4)).toEqual([
    "add rule ip coracle-masq postrouting mark and 0x4000 != 0 return",
    "add rule ip coracle-masq postrouting ip saddr { 10.42.0.0/16 } ip daddr { 10.42.0.0/16 } return",
    "add rule ip coracle-masq postrouting ip saddr { 10.42.0.0/16 } ip daddr != 224.0.0.0/4 masquerade fully-random",
    "add rule ip coracle-masq postrouting ip daddr { 10.42.1.0/24 } return",
    "add rule ip coracle-masq postrouting ip daddr { 10.42.0.0/16 } masquerade fully-random",
  ]);
  const six = masqueradeText({ clusterCidrs: [], podCidrs: ["fd42::/64"], bridgeNetfilter: false });
  expect(oldNftDiesOf(six)).toEqual([]);
  expect(six).toContain("add rule ip6 coracle-masq postrouting ct status dnat ip6 saddr { fd42::/64 } ip6 daddr { fd42::/64 } masquerade fully-random");
  expect(six).not.toContain("table ip coracle-masq");
});

test("through the tunnel comes what other nodes send, and nothing that a pod or a stranger does: nobody is a pod by saying so", () => {
  const ours = "udp dport 4789 @th,96,24 4096 counter drop";
  const rules = (text: string): string[] => { expect(oldNftDiesOf(text)).toEqual([]); return text.split("\n").filter((line) => line.startsWith("add rule")).map((line) => line.replace("add rule inet coracle-tunnel ", "")); };
  const forward = [`forward iifname "cni0" ${ours}`, `forward ct status dnat ${ours}`];
  expect(rules(tunnelGuardText({ udpPort: 4789, from: ["172.30.0.2", "fd30::2", "172.30.0.3"] }))).toEqual([`input ip saddr != { 172.30.0.2, 172.30.0.3 } ${ours}`, `input ip6 saddr != { fd30::2 } ${ours}`, ...forward]);
  expect(rules(tunnelGuardText({ udpPort: 4789, from: [] }))).toEqual([`input meta nfproto ipv4 ${ours}`, `input meta nfproto ipv6 ${ours}`, ...forward]);
  expect(tunnelGuardText({ udpPort: undefined, from: [] })).toBe("add table inet coracle-tunnel\ndelete table inet coracle-tunnel\n");
});

const facts: NetworkFacts = {
  route4: "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\neth1\t00000000\t010011AC\t0003\t0\t0\t600\t00000000\neth0\t00000000\t010011AC\t0003\t0\t0\t100\t00000000\neth0\t0000A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\n",
  route6: "00000000000000000000000000000000 00 00000000000000000000000000000000 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003     eth0\n",
  addresses6: "20010db8000000000000000000000007 02 40 00 01     eth0\n20010db8000000000000000000000005 02 40 00 80     eth0\nfe800000000000000000000000000005 02 40 20 80     eth0\n",
  addresses4: [{ interfaceName: "cni0", address: "10.42.0.1" }, { interfaceName: "eth1", address: "192.168.1.5" }, { interfaceName: "eth0", address: "192.168.0.5" }],
  loopback4: [],
  mtuOf: (name) => (name === "eth0" ? 1400 : undefined),
};

const ZERO = "0".repeat(32), V6_OF_WWAN = "20010db8000700000000000000000005 04 40 00 00    wwan0\n";
/** Default ones: metric, flags, interface. */
function routesV6(routes: readonly (readonly string[])[]): string {
  return routes.map(([metric = "", flags, name]) => `${ZERO} 00 ${ZERO} 00 fe800000000000000000000000000001 ${metric.padStart(8, "0")} 00000001 00000000 ${flags}    ${name}\n`).join("");
}

const OFFLINE = { route4: "", route6: "", addresses4: [], addresses6: "" };

test("a machine's own addresses among those of pods, but for what a pod network has made", () => {
  expect(addressesWithin(["10.42.0.0/16", "192.168.0.0/24", "2001:db8::/32"], facts).map(({ interfaceName, address }) => `${interfaceName} ${address}`)).toEqual(["eth0 192.168.0.5", "eth0 2001:db8::5"]);
  expect(addressesWithin(["10.43.0.0/16"], { addresses4: [{ interfaceName: "nodelocaldns", address: "10.43.0.10" }], addresses6: "" })).toEqual([]);
});

test("where others may find a machine: all networks it is on, none of containers, no address that it has given itself", () => {
  expect(machineAddresses({ ...facts, addresses4: [...facts.addresses4, { interfaceName: "usb0", address: "169.254.7.7" }] })).toEqual(["192.168.1.5", "192.168.0.5", "2001:db8::5"]);
});

const V6_OF_LO = "20010db8000000000000000000000001 01 80 00 80       lo\n";

test.each([
  { name: "the interface with the best default route; no temporary addresses", given: [], change: {}, ips: ["192.168.0.5", "2001:db8::5"], interfaceName: "eth0", mtu: 1400 },
  { name: "the best of those that are no last resort of NetworkManager", given: [], change: { route4: facts.route4.replace("\t100\t", "\t20100\t") }, ips: ["192.168.0.5", "2001:db8::5"], interfaceName: "eth0", mtu: 1400 },
  { name: "what the user chose", given: ["192.168.1.5"], change: {}, ips: ["192.168.1.5"], interfaceName: "eth1", mtu: 1500 },
  { name: "what the user chose, in other words", given: ["2001:DB8:0::0:5"], change: {}, ips: ["2001:db8::5"], interfaceName: "eth0", mtu: 1400 },
  { name: "no default route: the first that is not a container's", given: [], change: { route4: "", route6: "" }, ips: ["192.168.1.5"], interfaceName: "eth1", mtu: 1500 },
  { name: "no network at all", given: [], change: { route4: "", route6: "", addresses4: [], addresses6: "" }, ips: ["127.0.0.1"], interfaceName: undefined, mtu: 1500 },
  { name: "none but the loopback's own", given: [], change: { ...OFFLINE, loopback4: ["192.0.2.1"], addresses6: V6_OF_LO }, ips: ["192.0.2.1", "2001:db8::1"], interfaceName: undefined, mtu: 1500 },
  { name: "the loopback's own beside a network", given: [], change: { loopback4: ["192.0.2.1"] }, ips: ["192.168.0.5", "2001:db8::5"], interfaceName: "eth0", mtu: 1400 },
])("node address: $name", ({ given, change, ips, interfaceName, mtu }) => {
  expect(nodeAddresses(given, { ...facts, ...change })).toEqual({ ips, interfaceName, mtu });
});

test("which of the addresses that were given the machine has not: the loopback's may be those that routers lead to", () => {
  const of = (...addresses: string[]) => addresses.map((address) => ({ address })) as NonNullable<ReturnType<typeof networkInterfaces>[string]>;
  const interfaces = { lo: of("127.0.0.1", "::1", "192.0.2.1"), "br-lan": of("192.168.1.1"), eth0: of("2001:db8::5", "10.42.0.1") };
  expect(addressesElsewhere(["192.0.2.1", "192.168.1.1", "2001:DB8::0:5", "192.0.2.2", "127.0.0.1", "::1"], interfaces)).toEqual(["192.0.2.2", "127.0.0.1", "::1"]);
});

test.each([
  { given: "0.0.0.0", change: {}, ip: "192.168.0.5" },
  { given: "::", change: {}, ip: "2001:db8::5" },
  { given: "::", change: { addresses6: V6_OF_LO }, ip: "192.168.0.5" },
  { given: "0.0.0.0", change: { addresses4: [], loopback4: ["192.0.2.1"] }, ip: "2001:db8::5" },
  { given: "::", change: { route4: "", route6: "" }, ip: "2001:db8::5" },
  { given: "::", change: { route6: "" }, ip: "192.168.0.5" },
  { given: "::", change: { ...OFFLINE, loopback4: ["192.0.2.1"], addresses6: V6_OF_LO }, ip: "2001:db8::1", interfaceName: undefined, mtu: 1500 },
  { given: "::", change: OFFLINE, ip: "127.0.0.1", interfaceName: undefined, mtu: 1500 },
])("a node that is given $given has one address, of that family if there is one: $ip", ({ given, change, ip, ...where }) => {
  expect(nodeAddresses([given], { ...facts, ...change })).toEqual({ ips: [ip], family: given === "::" ? 6 : 4, interfaceName: "eth0", mtu: 1400, ...where });
});

test.each([
  { name: "what it wished for has come", own: "192.168.0.5", change: {}, to: ["2001:db8::5"] },
  { name: "what it wished for is where it was", own: "2001:db8::5", change: {}, to: undefined },
  { name: "what it wished for is another", own: "2001:db8::4", change: {}, to: ["2001:db8::5"] },
  { name: "what it wished for is gone, and may come again", own: "2001:db8::5", change: { addresses6: "" }, to: undefined },
  { name: "what it wished for is not there yet", own: "192.168.0.5", change: { addresses6: "" }, to: undefined },
  { name: "what it has instead is another", own: "192.168.0.4", change: { addresses6: "" }, to: ["192.168.0.5"] },
])("a node that wishes for IPv6 moves: $name", ({ own, change, to }) => {
  expect(movedTo({ ips: [own], interfaceName: "eth0", mtu: 1400, family: 6 }, [4], { ...facts, ...change })?.ips).toEqual(to);
});

const at = (interfaceName: string, address: string) => ({ interfaceName, address });
test.each([
  { name: "it is where it was", own: ["192.168.0.5", "2001:db8::5"], change: {}, to: undefined },
  { name: "and on another network too", own: ["192.168.1.5"], change: {}, to: undefined },
  { name: "another lease", own: ["192.168.0.4"], change: {}, to: ["192.168.0.5", "2001:db8::5"] },
  { name: "another prefix", own: ["192.168.0.5", "2001:db8:0:1::5"], change: {}, to: ["192.168.0.5", "2001:db8::5"] },
  { name: "its cable is out", own: ["192.168.0.5"], change: OFFLINE, to: undefined },
  { name: "its cable is out, and a tunnel still has an address", own: ["192.168.0.5"], change: { ...OFFLINE, addresses4: [at("wg0", "10.9.0.2")] }, to: undefined },
  { name: "another address where there is no router", own: ["192.168.0.5"], change: { ...OFFLINE, addresses4: [at("eth0", "192.168.0.6")] }, to: ["192.168.0.6"] },
  { name: "IPv6 has come, IPv4 has not yet", own: ["192.168.0.5"], change: { route4: "", addresses4: [] }, to: undefined },
  { name: "it was started on no network", own: ["127.0.0.1"], change: {}, to: ["192.168.0.5", "2001:db8::5"] },
  { name: "and is on none", own: ["127.0.0.1"], change: OFFLINE, to: undefined },
  { name: "it was started with the loopback's own address", own: ["192.0.2.1"], change: { loopback4: ["192.0.2.1"] }, to: ["192.168.0.5", "2001:db8::5"] },
  { name: "and still has no other", own: ["192.0.2.1"], change: { ...OFFLINE, loopback4: ["192.0.2.1"] }, to: undefined },
  { name: "it was given no address, and now is", own: ["169.254.7.7"], change: { addresses4: [at("eth0", "192.168.0.5"), at("eth0", "169.254.7.7")], addresses6: "" }, to: ["192.168.0.5"] },
  { name: "it is given no address", own: ["169.254.7.7"], change: { ...OFFLINE, addresses4: [at("eth0", "169.254.7.7")] }, to: undefined },
])("a node that moves: $name", ({ own, change, to }) => {
  expect(movedTo({ ips: own, interfaceName: "eth0", mtu: 1400 }, [4], { ...facts, ...change })?.ips).toEqual(to);
});

test("a machine that was started on no network moves to the first it is on, though that has IPv6 alone, unless its pods would not reach the API server there", () => {
  const own = { ips: ["192.0.2.1", "2001:db8::1"], interfaceName: undefined, mtu: 1500 };
  const of6 = { ...facts, route4: "", addresses4: [], loopback4: ["192.0.2.1"], addresses6: `${V6_OF_LO}${facts.addresses6}` };
  const to = (...families: Family[]) => movedTo(own, families, of6)?.ips;
  expect([to(6), to(6, 4), to(4), to(4, 6)]).toEqual([["2001:db8::5"], ["2001:db8::5"], undefined, undefined]);
  expect(movedTo({ ...own, family: 6 }, [4], of6)?.ips).toEqual(["2001:db8::5"]); // whoever chose that family knows
  expect(movedTo(own, [6], { ...of6, route6: "", addresses6: V6_OF_LO })).toBeUndefined();
});

test.each([
  { name: "its cable is out", own: "eth0", change: OFFLINE, to: ["127.0.0.1"] },
  { name: "its cable is out, and it would be no better off on its loopback", own: "eth0", change: OFFLINE, mayBeAlone: false, to: undefined },
  { name: "its cable is out, and it is on another network", own: "eth0", change: { ...OFFLINE, addresses4: [at("eth1", "10.9.0.1")] }, to: ["10.9.0.1"] },
  { name: "its cable is out, and it would be no better off on another network", own: "eth0", change: { ...OFFLINE, addresses4: [at("eth1", "10.9.0.1")] }, mayBeAlone: false, to: undefined },
  { name: "its cable is out, and on another network it has been given no address", own: "eth0", change: { ...OFFLINE, addresses4: [at("eth1", "169.254.7.7")] }, to: undefined },
  { name: "its network is back", own: "eth1", change: { addresses4: [at("eth1", "192.168.0.5"), at("eth0", "10.9.0.1")], addresses6: "" }, home: "eth0", to: ["10.9.0.1"] },
  { name: "its network is back, and leads nowhere yet", own: "eth1", change: { ...OFFLINE, addresses4: [at("eth0", "10.9.0.1"), at("eth1", "192.168.0.5")] }, home: "eth0", to: undefined },
  { name: "a private network leads on through it", own: "eth1", change: { addresses4: [at("eth1", "192.168.0.5"), at("tun0", "10.9.0.1")], addresses6: "", route4: facts.route4.replaceAll("eth0", "tun0") }, to: undefined },
  { name: "its router is gone, and it is still on its bridge", own: "br-lan", change: { ...OFFLINE, addresses4: [at("br-lan", "192.168.0.5")] }, to: undefined },
  { name: "it was started on no network, and is on one that leads nowhere else", own: undefined, change: { ...OFFLINE, addresses4: [at("eth0", "192.168.0.5")], loopback4: ["192.0.2.1"] }, to: ["192.168.0.5"] },
  { name: "it was started on no network, and has been given no address on one", own: undefined, change: { ...OFFLINE, addresses4: [at("eth0", "169.254.7.7")], loopback4: ["192.0.2.1"] }, to: undefined },
  { name: "it was started on no network, and is on one of another family than its pods", own: undefined, change: { ...OFFLINE, addresses6: facts.addresses6, loopback4: ["192.0.2.1"] }, to: undefined },
  { name: "it was started on no network, and is on none", own: undefined, change: { ...OFFLINE, loopback4: ["192.0.2.1"] }, to: undefined },
  { name: "its cable is in again, and its modem is the second way out", own: "eth1", ip: "192.168.1.5", change: {}, to: ["192.168.0.5", "2001:db8::5"] },
  { name: "its other network is as good, and was there sooner", own: "eth0", change: { route4: facts.route4.replace("\t600\t", "\t100\t") }, to: undefined },
  { name: "its modem is there, too", own: "eth0", change: {}, to: undefined },
  { name: "there is no internet on its cable, and its modem is the first way out", own: "eth0", change: { route4: facts.route4.replace("\t100\t", "\t20100\t") }, to: undefined },
  { name: "its own network is no way out any more", own: "eth1", ip: "192.168.1.5", change: { route4: facts.route4.replace(/eth1.*\n/, "") }, to: undefined },
  { name: "the first way out has another family", own: "eth1", ip: "192.168.1.5", change: { addresses4: [at("eth1", "192.168.1.5")] }, to: undefined },
  { name: "the first way out has given it no address", own: "eth1", ip: "192.168.1.5", change: { addresses4: [at("eth1", "192.168.1.5"), at("eth0", "169.254.7.7")] }, to: undefined },
])("where a node is after a minute: $name", ({ own, ip = own === undefined ? "192.0.2.1" : "192.168.0.5", change, mayBeAlone = true, home, to }) => {
  expect(settledAt({ ips: [ip], interfaceName: own, mtu: 1400 }, [4], { mayBeAlone, home }, { ...facts, ...change })?.ips).toEqual(to);
});

test.each([
  { name: "comes back to its first one", routes: [["2bc", "00000003", "wwan0"], ["64", "00000003", "eth0"]], to: ["2001:db8::5"] },
  { name: "comes back though NetworkManager finds no internet there", routes: [["2bc", "00000003", "wwan0"], ["4e84", "00000003", "eth0"]], to: ["2001:db8::5"] },
  { name: "stays where they are alike", routes: [["400", "00450003", "eth0"], ["400", "00450003", "wwan0"]], to: undefined },
  { name: "stays where it has lost its way out", routes: [["64", "00000003", "eth0"]], to: undefined },
  { name: "stays where its router thinks less of itself for a while", routes: [["400", "18450003", "wwan0"], ["400", "00450003", "eth0"]], to: undefined },
])("a node of IPv6 alone that is where its second way out leads $name", ({ routes, to }) => {
  const change = { addresses4: [], route4: "", route6: routesV6(routes), addresses6: `${facts.addresses6}${V6_OF_WWAN}` };
  expect(settledAt({ ips: ["2001:db8:7::5"], interfaceName: "wwan0", mtu: 1400 }, [6], {}, { ...facts, ...change })?.ips).toEqual(to);
});

test("a node whose router deprecates its address, as one does that has lost its own network, stays: it is reached there as before", () => {
  const own = { ips: ["2001:db8::5"], interfaceName: "eth0", mtu: 1400 }, here = { ...facts, ...OFFLINE, addresses6: facts.addresses6.replaceAll(" 80 ", " a0 ") };
  expect(settledAt(own, [6], { mayBeAlone: true }, here)).toBeUndefined();
  expect(settledAt(own, [6], { mayBeAlone: true }, { ...here, addresses6: "" })?.ips).toEqual(["127.0.0.1"]);
});

test.each([
  { name: "IPv6 has come, of a cluster of both", own: ["192.168.0.5"], families: [4, 6], change: {}, to: ["192.168.0.5", "2001:db8::5"] },
  { name: "IPv6 has come, of a cluster of IPv4", own: ["192.168.0.5"], families: [4], change: {}, to: undefined },
  { name: "IPv4 has come, of a cluster of IPv4, to a machine that was started with IPv6", own: ["2001:db8::5"], families: [4], change: {}, to: ["192.168.0.5", "2001:db8::5"] },
  { name: "IPv6 is not sure yet to be its own", own: ["192.168.0.5"], families: [4, 6], change: { addresses6: facts.addresses6.replaceAll(" 80 ", " c0 ") }, to: undefined },
  { name: "IPv6 has come, and IPv4 leads nowhere now", own: ["192.168.0.5"], families: [4, 6], change: { route4: "" }, to: undefined },
] as const)("a node that gets more addresses: $name", ({ own, families, change, to }) => {
  expect(movedTo({ ips: own, interfaceName: "eth0", mtu: 1400 }, families, { ...facts, ...change })?.ips).toEqual(to);
});

test("the pods' bridge has what it needs again when somebody has emptied it: with IPv6, an address of its link too", () => {
  const link = { index: 4, name: "cni0", mac: "0a:58:0a:2a:01:01", mtu: 1450, up: true } as Link;
  const emptied = (podCidrs: readonly string[], before: readonly string[] = []): readonly string[] => {
    const addresses = new Set(before);
    const netlink = { link: () => link, addresses: () => [...addresses], addAddress: (_: number, address: string) => void addresses.add(address), removeAddress: (_: number, address: string) => void addresses.delete(address) };
    ensureBridge(netlink as unknown as Netlink, { podCidrs, mtu: 1450 });
    return [...addresses];
  };
  expect(emptied(["10.42.1.0/24"])).toEqual(["10.42.1.1/24"]);
  expect(emptied(["10.42.1.0/24", "fd42:0:0:1::/64"])).toEqual(["10.42.1.1/24", "fd42:0:0:1::1/64", "fe80::858:aff:fe2a:101/64"]);
  expect(emptied(["fd42:0:0:1::/64"], ["fe80::7/64", "fd42::1/64"])).toEqual(["fe80::7/64", "fd42:0:0:1::1/64"]);
});

test.each([
  { name: "IPv4, on a small network", podCidrs: ["10.42.1.0/24"], mtu: 1280, made: { mtu: 1230, device: 2 } },
  { name: "both families, on a small network: not tied to its interface, whose packets are smaller", podCidrs: ["10.42.1.0/24", "fd42:0:0:1::/64"], mtu: 1280, made: { mtu: 1280, device: 0 } },
  { name: "both families, on a usual one", podCidrs: ["10.42.1.0/24", "fd42:0:0:1::/64"], mtu: 1500, made: { mtu: 1450, device: 2 } },
])("a tunnel's device carries what its pods' families need: $name", async ({ podCidrs, mtu, made }) => {
  const devices: unknown[] = [];
  const netlink = new Proxy({} as Netlink, {
    get: (_, name) => (name === "link" ? (wanted: string) => (wanted === "eth0" ? { index: 2 } : undefined)
      : name === "addVxlan" ? (_name: string, { mtu, device }: { readonly mtu: number; readonly device: number }) => devices.push({ mtu, device })
      : () => []),
  });
  await vxlanOverlay({ netlink: () => netlink, nodeIps: ["192.168.0.5"], uplink: { interfaceName: "eth0", mtu }, log: silentLog }).sync({ name: "n1", ips: ["192.168.0.5"], podCidrs }, [], signal);
  expect(devices).toEqual([made]);
});

test.skipIf(process.platform !== "linux")("where a tunnel over IPv6 would drop large packets, connections of TCP are told of smaller segments, until the network is larger", async () => {
  using dir = directory();
  const api = fakeApi(), stop = new AbortController(), scripts: string[] = [], uplink = { interfaceName: undefined, mtu: 1280 };
  const informers = informerFactory({ client: api.client, clock: systemClock, random: systemRandom, log: silentLog });
  const tunnel = (...nodeIps: string[]) => vxlanOverlay({ netlink: () => ({}) as Netlink, nodeIps, uplink, log: silentLog });
  const network = nodeNetwork({
    informers, nodeName: "n1", clusterCidrs: ["fd42::/56"], serviceCidrs: ["fd43::/112"], cniConfDir: join(dir.path, "net.d"), stateDir: join(dir.path, "state"), uplink,
    nft: { async apply(text) { scripts.push(text); }, names: async () => undefined, chain: async () => undefined },
    overlay: { ...tunnel("fd00::5"), async sync() {} }, cpus: 1, prepare: async () => ({ bridgeNetfilter: true }), clock: systemClock, log: silentLog,
  });
  const ended = Promise.all([informers.run(stop.signal, () => {}), network.run(stop.signal, () => {})]);
  const node = (name: string, n: number) => ({ apiVersion: "v1", kind: "Node", metadata: { name }, spec: { podCIDRs: [`fd42:0:0:${n}::/64`] }, status: { addresses: [{ type: "InternalIP", address: `fd00::${n}` }] } });
  await api.client.resource(NODES).create(node("n1", 5) as never, { signal });
  await eventually(() => scripts.at(-1), (text) => /table inet coracle-tunnel/.test(text ?? ""));
  expect(scripts.at(-1)!.split("\n").filter((line) => line.includes("maxseg")).map((line) => line.replace("add rule inet coracle-tunnel ", ""))).toEqual([
    `postrouting oifname "coracle-vxlan" meta nfproto ipv6 tcp flags syn tcp option maxseg size set 1150`, `prerouting iifname "coracle-vxlan" meta nfproto ipv6 tcp flags syn tcp option maxseg size set 1150`,
  ]);
  uplink.mtu = 1350;
  await api.client.resource(NODES).create(node("n2", 6) as never, { signal });
  await eventually(() => scripts.at(-1), (text) => text?.includes("fd00::6") ?? false);
  expect(scripts.at(-1)).not.toContain("maxseg");
  expect(tunnel("192.168.0.5").dropsLarge).toBe(false); // IPv4 takes them apart
  stop.abort();
  await ended;
});

test.skipIf(process.platform !== "linux").each(["ip coracle-masq", "ip6 coracle-masq", "inet coracle-tunnel"])("%s is written again when it alone is gone, though the first look fails; pods' interfaces are looked for now and then", async (lost) => {
  using dir = directory();
  const api = fakeApi(), stop = new AbortController(), there = new Set<string>();
  const informers = informerFactory({ client: api.client, clock: systemClock, random: systemRandom, log: silentLog });
  let tell: () => unknown = () => undefined, refusals = 0, linksSeen = 0, laterMs = 0;
  const network = nodeNetwork({
    informers, nodeName: "n1", clusterCidrs: ["10.42.0.0/16", "fd42::/56"], serviceCidrs: ["10.43.0.0/16"], cniConfDir: join(dir.path, "net.d"), stateDir: join(dir.path, "state"), uplink: { interfaceName: undefined, mtu: 1500 },
    nft: { async apply(text) { for (const [, table = ""] of text.matchAll(/add table (.*)/g)) there.add(table); }, names: async () => undefined, chain: async (family, table) => { if (refusals-- > 0) throw new Error("too many open files"); return there.has(`${family} ${table}`) ? "" : undefined; } },
    onTables: (look) => { tell = look; return () => undefined; }, ensureLinks: async () => void linksSeen++, overlay: { ...noOverlay, udpPort: 8472 }, cpus: 1, prepare: async () => ({ bridgeNetfilter: true }), clock: { ...systemClock, uptimeMs: () => systemClock.uptimeMs() + laterMs }, log: silentLog,
  });
  const ended = Promise.all([informers.run(stop.signal, () => {}), network.run(stop.signal, () => {})]);
  await api.client.resource(NODES).create({ apiVersion: "v1", kind: "Node", metadata: { name: "n1" }, spec: { podCIDRs: ["10.42.1.0/24", "fd42:0:0:1::/64"] }, status: { addresses: [{ type: "InternalIP", address: "172.30.0.1" }] } } as never, { signal });
  await eventually(() => there.size, (size) => size === 3);
  await systemClock.sleep(50, signal);
  there.delete(lost);
  refusals = 1;
  const before = linksSeen;
  tell();
  await eventually(() => there.has(lost), Boolean);
  await systemClock.sleep(50, signal);
  const addresses = [{ type: "InternalIP", address: "172.30.0.2" }];
  await api.client.resource(NODES).create({ apiVersion: "v1", kind: "Node", metadata: { name: "n2" }, spec: { podCIDRs: ["10.42.2.0/24"] }, status: { addresses } } as never, { signal });
  await systemClock.sleep(50, signal);
  expect(linksSeen).toBe(before); // tables and nodes tell nothing of them; tables come and go with pods
  laterMs = 20_000;
  tell();
  await eventually(() => linksSeen, (seen) => seen === before + 1); // also where there is always something new
  stop.abort();
  await ended;
});

test.skipIf(process.platform !== "linux")("what lets packets through, and the tables, are looked at every half minute where there is always something new, too", async () => {
  using dir = directory();
  const stop = new AbortController();
  const informers = informerFactory({ client: fakeApi().client, clock: systemClock, random: systemRandom, log: silentLog });
  let kept = 0, rounds = 0, laterMs = 0, tell: () => unknown = () => undefined;
  const network = nodeNetwork({
    informers, nodeName: "n1", clusterCidrs: [], serviceCidrs: [], cniConfDir: dir.path, stateDir: dir.path, uplink: { interfaceName: undefined, mtu: 1500 }, nft: { async apply() {}, names: async () => undefined, chain: async () => undefined },
    onTables: (look) => { tell = look; return () => undefined; }, ensureHostPorts: async () => void rounds++, overlay: noOverlay, cpus: 1, prepare: async () => ({ bridgeNetfilter: true, keep: () => void kept++ }),
    clock: { ...systemClock, uptimeMs: () => systemClock.uptimeMs() + laterMs }, log: silentLog,
  });
  const ended = network.run(stop.signal, () => {});
  const again = async (): Promise<void> => {
    const before = rounds;
    tell();
    await eventually(() => rounds, (now) => now > before);
  };
  await eventually(() => rounds, (now) => now > 0);
  await again();
  expect(kept).toBe(0);
  laterMs = 30_000;
  await again();
  await again();
  expect(kept).toBe(1);
  stop.abort();
  await ended;
});

test.skipIf(process.platform !== "linux")("a firewall's chain that drops all of a sudden lets through what is the cluster's as soon as it is told of", async () => {
  using dir = directory();
  const api = fakeApi(), stop = new AbortController(), written: string[] = [];
  const informers = informerFactory({ client: api.client, clock: systemClock, random: systemRandom, log: silentLog });
  const forward: FilterChain = { family: "ip", table: "filter", tableHandle: 1, name: "FORWARD", hook: "forward", rest: "accept", handedTo: [], commented: [] };
  let chains = [forward], watched: readonly ChainName[] = [], tell: () => void = () => undefined;
  const network = nodeNetwork({
    informers, nodeName: "n1", clusterCidrs: ["10.42.0.0/16"], serviceCidrs: ["10.43.0.0/16"], cniConfDir: join(dir.path, "net.d"), stateDir: join(dir.path, "state"), uplink: { interfaceName: undefined, mtu: 1500 },
    nft: { async apply(text) { written.push(text); }, names: async () => undefined, chain: async () => "", filters: async () => chains },
    watchChains: (names, look) => { watched = names; tell = look; }, overlay: noOverlay, cpus: 1, prepare: async () => ({ bridgeNetfilter: true }), clock: systemClock, log: silentLog,
  });
  const ended = Promise.all([informers.run(stop.signal, () => {}), network.run(stop.signal, () => {})]);
  await api.client.resource(NODES).create({ apiVersion: "v1", kind: "Node", metadata: { name: "n1" }, spec: { podCIDRs: ["10.42.1.0/24"] }, status: { addresses: [{ type: "InternalIP", address: "172.30.0.1" }] } } as never, { signal });
  await eventually(() => watched, (names) => names.length === 1 && names[0]!.name === "FORWARD");
  chains = [{ ...forward, rest: "drop" }];
  tell();
  await eventually(() => written.join(""), (text) => text.includes("insert rule ip filter FORWARD ip saddr 10.42.0.0/16"));
  stop.abort();
  await ended;
});

test.each([
  { name: "one thinks less of itself", routes: [["1", "18450003", "wwan0"], ["1", "00450003", "eth0"]], ip: "2001:db8::5" },
  { name: "one thinks more of itself", routes: [["1", "00450003", "eth0"], ["1", "08450003", "wwan0"]], ip: "2001:db8:7::5" },
  { name: "they are alike", routes: [["1", "00450003", "wwan0"], ["1", "00450003", "eth0"]], ip: "2001:db8::5" },
  { name: "one has the better metric", routes: [["1", "18450003", "wwan0"], ["2", "08450003", "eth0"]], ip: "2001:db8:7::5" },
  { name: "one has no internet, and is NetworkManager's last resort", routes: [["258", "00000003", "wwan0"], ["4e84", "00000003", "eth0"]], ip: "2001:db8::5" },
])("of two routers a node goes by one as the kernel does: $name", ({ routes, ip }) => {
  expect(nodeAddresses([], { ...facts, addresses6: `${facts.addresses6}${V6_OF_WWAN}`, route6: routesV6(routes) }).ips).toEqual(["192.168.0.5", ip]);
});

test("of several addresses a node has the same one whatever order the kernel tells them in, and one that is reached from everywhere before one of its site", () => {
  const lines = ["fd090000000000000000000000000005 02 40 00 80     eth0\n", "20010db8000000010000000000000005 02 40 00 80     eth0\n", "20010db8000000000000000000000005 02 40 00 80     eth0\n"];
  for (const addresses6 of [lines.join(""), lines.toReversed().join("")]) expect(nodeAddresses([], { ...facts, addresses6 }).ips).toEqual(["192.168.0.5", "2001:db8::5"]);
  expect(nodeAddresses([], { ...facts, addresses6: lines[0]! }).ips).toEqual(["192.168.0.5", "fd09::5"]);
});

test.each([
  { name: "has a network", facts: {}, families: [4], before: [], after: [] },
  { name: "is on no network", facts: OFFLINE, families: [4], before: [], after: ["192.0.2.1/32"] },
  { name: "is on no network, with pods of both families", facts: OFFLINE, families: [4, 6], before: ["192.0.2.1/32"], after: ["192.0.2.1/32", "2001:db8::1/128"] },
  { name: "is on a network again", facts: {}, families: [4, 6], before: ["127.0.0.1/8", "192.0.2.1/32", "2001:db8::1/128"], after: ["127.0.0.1/8"] },
] as const)("a machine that $name", ({ facts: change, families, before, after }) => {
  const addresses = new Set<string>(before);
  const netlink = { link: () => ({ index: 1 }) as Link, addresses: () => [...addresses], addAddress: (_: number, address: string) => void addresses.add(address), removeAddress: (_: number, address: string) => void addresses.delete(address) };
  ensureLoneAddress(netlink, families, { ...facts, ...change });
  expect([...addresses]).toEqual(after);
});

test("a node that has moved ends, once it has looked the same twice", async () => {
  const looks = [undefined, ["10.0.0.2"], undefined, "unreadable" as const, ["10.0.0.2"], ["10.0.0.2", "fd00::2"], ["10.0.0.2", "fd00::2"], ["never"]];
  const own = { ips: ["10.0.0.1"], interfaceName: "eth0", mtu: 1500 };
  const clock: Clock = { ...systemClock, async *every() { while (looks.length > 0) yield; } };
  const watch = addressWatch({ own, families: [4], clock, lookLong: () => undefined, log: silentLog, look: () => { const ips = looks.shift(); if (ips === "unreadable") throw new Error("EMFILE: too many open files"); return ips && { ...own, ips }; } });
  await expect(watch.run(new AbortController().signal, () => {})).rejects.toThrow("this machine was 10.0.0.1 and is 10.0.0.2, fd00::2 now: Coracle ends, to be started again with that");
  expect(looks).toEqual([["never"]]);
});

test("a node on no network ends once it has been there for a minute, its cable not having been in meanwhile", async () => {
  using dir = directory();
  const alone = { ips: ["127.0.0.1"], interfaceName: undefined, mtu: 1500 }, own = { ips: ["10.0.0.1"], interfaceName: "eth0", mtu: 1500 };
  const looks = [...Array.from({ length: 5 }, () => alone), undefined, ...Array.from({ length: 7 }, () => alone)];
  const clock: Clock = { ...systemClock, async *every() { while (looks.length > 0) yield; } };
  const watch = addressWatch({ own, families: [4], clock, log: silentLog, homeFile: join(dir.path, "home"), look: () => undefined, lookLong: (_, __, { mayBeAlone } = {}) => { const found = looks.shift(); return mayBeAlone ? found : undefined; } });
  await expect(watch.run(new AbortController().signal, () => {})).rejects.toThrow("this machine was 10.0.0.1 and is on no network now: Coracle ends, to be started again with that");
  expect(looks).toEqual([alone]);
});

test("a node that went where it still has an address, its network being gone, comes back to it", async () => {
  using dir = directory();
  const homeFile = join(dir.path, "network", "home");
  const node = (interfaceName: string) => ({ ips: ["10.0.0.1"], interfaceName, mtu: 1500 });
  const homes = async (own: NodeAddresses, found: NodeAddresses): Promise<readonly (string | undefined)[]> => {
    const told: (string | undefined)[] = [];
    const clock: Clock = { ...systemClock, async *every() { for (let i = 0; i < 6; i++) yield; } };
    const watch = addressWatch({ own, families: [4], clock, log: silentLog, homeFile, look: () => undefined, lookLong: (_, __, { home } = {}) => { told.push(home); return found; } });
    await expect(watch.run(new AbortController().signal, () => {})).rejects.toThrow("Coracle ends");
    return [...new Set(told)];
  };
  expect(await homes(node("out"), node("lan"))).toEqual([undefined]);
  expect(await homes(node("lan"), { ...node("lo"), interfaceName: undefined })).toEqual(["out"]);
  expect(await homes({ ...node("lo"), interfaceName: undefined }, node("lan"))).toEqual(["out"]);
  expect(await homes(node("lan"), node("out"))).toEqual(["out"]);
  const here = nodeAddresses();
  if (isAtHome(here)) expect(await homes(here, node("lan"))).toEqual([undefined]); // it is at home, wherever it came from
});

const peers: Peer[] = [
  { name: "n2", ips: ["172.30.0.2", "fd30::2"], podCidrs: ["10.42.2.0/24", "fd42:0:0:2::/64"] },
  { name: "n3", ips: ["172.30.0.3"], podCidrs: ["10.42.3.0/24"] },
];

test("what the tunnel knows of other nodes", () => {
  expect(planVxlan(peers, 4)).toEqual({
    routes: new Map([["10.42.2.0/24", "10.42.2.0"], ["fd42:0:0:2::/64", "fd42:0:0:2::"], ["10.42.3.0/24", "10.42.3.0"]]),
    neighbours: new Map([["10.42.2.0", "0a:58:0a:2a:02:00"], ["fd42:0:0:2::", "0a:58:0a:2a:02:00"], ["10.42.3.0", "0a:58:0a:2a:03:00"]]),
    forwardings: new Map([["0a:58:0a:2a:02:00", "172.30.0.2"], ["0a:58:0a:2a:03:00", "172.30.0.3"]]),
    unreachable: [],
  });
  expect(planVxlan(peers, 6)).toMatchObject({ forwardings: new Map([["0a:58:0a:2a:02:00", "fd30::2"]]), unreachable: ["n3"] });
  expect(macFor("fd42::/64")).toMatch(/^0a:58(:[0-9a-f]{2}){4}$/);
  expect(planHostGateway(peers)).toEqual(new Map([["10.42.2.0/24", "172.30.0.2"], ["fd42:0:0:2::/64", "fd30::2"], ["10.42.3.0/24", "172.30.0.3"]]));
});

test("a node that says its end of the tunnel is another node's gets none of that one's packets", () => {
  const honest = { name: "n2", ips: ["172.30.0.2"], podCidrs: ["10.42.2.0/24"] }, windows = { name: "w", ips: ["172.30.0.7"], podCidrs: ["10.42.7.0/24"], mac: "00:15:5d:aa:bb:cc" };
  for (const mac of ["0a:58:0a:2a:02:00", "00:15:5d:aa:bb:cc"]) for (const at of [0, 1, 2]) {
    const liar = { name: "n9", ips: ["172.30.0.9"], podCidrs: ["10.42.9.0/24"], mac };
    const { forwardings, neighbours } = planVxlan([honest, windows].toSpliced(at, 0, liar), 4);
    expect(forwardings.get("0a:58:0a:2a:02:00")).toBe("172.30.0.2");
    if (at === 2) expect([forwardings.get("00:15:5d:aa:bb:cc"), neighbours.get("10.42.9.0")]).toEqual(["172.30.0.7", "0a:58:0a:2a:09:00"]); // who was there before
  }
});

test("a node does not get packets of others by the range it registers with", () => {
  const node = (name: string, ip: string, podCIDRs: string[], creationTimestamp: string) => ({ apiVersion: "v1", kind: "Node", metadata: { name, creationTimestamp, annotations: { [ROUTER_MAC_ANNOTATION]: "" } }, spec: { podCIDRs }, status: { addresses: [{ type: "InternalIP", address: ip }] } }) as never;
  const own = node("n1", "172.30.0.1", ["10.42.1.0/24", "fd42:0:0:1::/64"], "2026-01-03T00:00:00Z");
  const others = [
    node("z", "172.30.0.9", ["10.42.2.0/24", "10.42.2.128/25", "10.42.1.128/25", "fd42::/56", "0.0.0.0/0", "172.30.0.0/24", "10.42.9.0/24"], "2026-01-05T00:00:00Z"),
    node("n3", "172.30.0.3", ["10.42.3.0/24", "fd42:0:0:3::/64"], "2026-01-04T00:00:00Z"), node("n2", "172.30.0.2", ["10.42.2.0/24"], "2026-01-01T00:00:00Z"), own, node("y", "172.30.0.8", ["10.42.0.0/16"], "2026-01-05T00:00:00Z"),
  ];
  expect(peersOf(own, others).map(({ name, podCidrs }) => [name, ...podCidrs])).toEqual([["n2", "10.42.2.0/24"], ["n3", "10.42.3.0/24", "fd42:0:0:3::/64"], ["z", "10.42.9.0/24"]]);
  expect(peersOf(own, others.slice(1, 4)).map(({ name }) => name)).toEqual(["n2", "n3"]);
});

test("a host's firewall that drops what it does not know lets through what is the cluster's, once, and other rules when it becomes something else", () => {
  const chain = (hook: string, change: Partial<FilterChain> = {}): FilterChain => ({ family: "ip", table: "filter", tableHandle: 1, name: hook.toUpperCase(), hook, rest: "drop", handedTo: [], commented: [{ comment: "ssh", handle: 3 }], ...change });
  const passage = { clusterCidrs: ["10.42.0.0/16", "fd42::/56"], ingressPorts: ["10080"], tunnel: { udpPort: 4789, peers: ["192.168.0.2", "fd00::2"] } };
  const rules = (text: string): string[] => text.trim().split("\n").map((line) => line.replace(/ counter accept comment "coracle pods [0-9a-f]{8}"$/, ""));
  expect(rules(passageText(chain("forward"), passage))).toEqual(["insert rule ip filter FORWARD ip saddr 10.42.0.0/16", "insert rule ip filter FORWARD ip daddr 10.42.0.0/16"]);
  expect(rules(passageText(chain("input", { family: "inet", name: "input" }), passage))).toEqual(["ip saddr 10.42.0.0/16", "ip6 saddr fd42::/56", "tcp dport 10080", "ip saddr 192.168.0.2 udp dport 4789", "ip6 saddr fd00::2 udp dport 4789"].map((match) => `insert rule inet filter input ${match}`));
  expect(rules(passageText(chain("output"), passage))).toEqual(["ip daddr 10.42.0.0/16", "ip daddr 192.168.0.2 udp dport 4789"].map((match) => `insert rule ip filter OUTPUT ${match}`));
  const [, comment] = /"(.*)"/.exec(passageText(chain("forward"), passage))!;
  const there = chain("forward", { commented: [{ comment: comment!, handle: 7 }, { comment: comment!, handle: 8 }] });
  expect([passageText(there, passage), passageText(chain("forward", { rest: "accept" }), passage), passageText(chain("prerouting"), passage)]).toEqual(["", "", ""]);
  expect(rules(passageText(chain("forward", { commented: [{ comment: "coracle pods", handle: 7 }] }), passage)).slice(0, 2)).toEqual(["delete rule ip filter FORWARD handle 7", "insert rule ip filter FORWARD ip saddr 10.42.0.0/16"]);
  expect(rules(passageText({ ...there, rest: "accept" }, passage))).toEqual(["delete rule ip filter FORWARD handle 7", "delete rule ip filter FORWARD handle 8"]);
});

test("chains that filter are found in what nft lists", () => {
  const text = JSON.stringify({ nftables: [{ metainfo: {} }, { table: { family: "inet", name: "filter", handle: 4 } }, { chain: { family: "inet", table: "filter", name: "input", handle: 1, type: "filter", hook: "input", prio: 0, policy: "drop" } }, { chain: { family: "inet", table: "filter", name: "mine", handle: 2 } }, { rule: { family: "inet", table: "filter", chain: "input", handle: 5, comment: "x" } }, { rule: { family: "inet", table: "filter", chain: "input", handle: 6, expr: [{ match: {} }, { jump: { target: "mine" } }] } }, { rule: { family: "inet", table: "filter", chain: "mine", handle: 7, expr: [{ goto: { target: "more" } }] } }] });
  expect(filterChains(text)).toEqual([{ family: "inet", table: "filter", tableHandle: 4, name: "input", hook: "input", rest: "drop", handedTo: ["mine", "more"], commented: [{ comment: "x", handle: 5 }] }]);
  expect(filterChains("")).toEqual([]);
});

test("a chain that accepts by policy drops the rest where a rule without a condition does, in a chain that all is handed over to as well", () => {
  const rest = (...rules: readonly [chain: string, ...expr: object[]][]): string => filterChains(JSON.stringify({ nftables: [
    { table: { family: "ip", name: "filter", handle: 4 } }, { chain: { family: "ip", table: "filter", name: "INPUT", type: "filter", hook: "input", policy: "accept" } },
    ...rules.map(([chain, ...expr], handle) => ({ rule: { family: "ip", table: "filter", chain, handle, expr } })),
  ] }))[0]!.rest;
  const match = { match: { op: "==" } }, xt = (type: string, name: string) => ({ xt: { type, name } });
  expect(rest(["INPUT", match, { drop: null }])).toBe("accept");
  expect(rest(["INPUT", xt("match", "conntrack"), { accept: null }], ["INPUT", { counter: {} }, xt("target", "REJECT")])).toBe("drop");
  expect(rest(["INPUT", { log: null }, { reject: { type: "icmpx" } }])).toBe("drop");
  expect(rest(["INPUT", { accept: null }], ["INPUT", { drop: null }])).toBe("accept");
  expect(rest(["INPUT", { jump: { target: "most" } }], ["most", match, { drop: null }], ["most", xt("match", "comment"), { counter: {} }, xt("target", "LOG")], ["most", xt("match", "comment"), { counter: {} }, xt("target", "REJECT")])).toBe("drop");
  expect(rest(["INPUT", { jump: { target: "users" } }], ["users", { return: null }], ["users", { drop: null }])).toBe("accept");
  expect(rest(["INPUT", { goto: { target: "users" } }], ["INPUT", { drop: null }])).toBe("accept");
});

test("a table that nobody else may write keeps no other from letting through what is the cluster's, and firewalld's is left alone", async () => {
  const applied: string[] = [];
  const chain = (table: string): FilterChain => ({ family: "inet", table, tableHandle: 1, name: "input", hook: "input", rest: "drop", handedTo: [], commented: [] });
  const nft = {
    async apply(script: string) {
      if (script.includes("inet owned ")) throw new NftError("Operation not permitted");
      applied.push(...new Set(script.match(/inet \w+/g)));
    },
    filters: async () => ["owned", "firewalld", "mine"].map(chain),
  };
  await expect(allowThroughFirewall(nft, { clusterCidrs: ["10.42.0.0/16"], ingressPorts: [], tunnel: undefined }, [], new AbortController().signal)).rejects.toThrow("Operation not permitted");
  expect(applied).toEqual(["inet mine"]);
});

test("kernel settings are noted as they were and as they are, as coracle-uninstall reads them", () => {
  using dir = directory();
  mkdirSync(join(dir.path, "net/ipv4/conf/eth0.5"), { recursive: true });
  const path = (name: string): string => join(dir.path, name);
  for (const [name, value] of [["net/ipv4/ip_forward", "0"], ["net/max", "100"], ["net/ipv4/conf/eth0.5/rp_filter", "1"]] as const) writeFileSync(path(name), `${value}\n`);
  const sysctl = sysctlKeeper({ recordFile: path("record.json"), log: silentLog, root: dir.path });
  expect(sysctl.set("net.ipv4.ip_forward", "1")).toBe(true);
  expect(sysctl.set("net.ipv4.ip_forward", "2")).toBe(true); // the first value is the one to go back to
  expect(sysctl.set("net/ipv4/conf/eth0.5/rp_filter", "2")).toBe(true);
  expect(sysctl.set("net.absent", "1")).toBe(false);
  expect([sysctl.raise("net.max", 50), sysctl.raise("net.max", 200)]).toEqual([true, true]);
  expect(["net/ipv4/ip_forward", "net/max", "net/ipv4/conf/eth0.5/rp_filter"].map((name) => readFileSync(path(name), "utf8"))).toEqual(["2", "200", "2"]);
  expect(readFileSync(path("record.json"), "utf8")).toBe('{"net.ipv4.ip_forward":{"before":"0","after":"2"},"net/ipv4/conf/eth0.5/rp_filter":{"before":"1","after":"2"},"net.max":{"before":"100","after":"200"}}');
});
