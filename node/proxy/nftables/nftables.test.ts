import { expect, test, vi } from "vitest";
import { silentLog } from "../../../core/observe/log.ts";
import type { Nft, NftNames } from "../../os/exec-nft.ts";
import type { ElementBatch } from "../../os/nft-batch.ts";
import type { PortPlan } from "../desired.ts";
import { oldNftDiesOf } from "../../../test/old-nft.ts";
import { elementBytes } from "./elements.ts";
import { frameText } from "./frame.ts";
import { LiveRuleset } from "./live-ruleset.ts";
import { NftTable } from "./nftables.ts";
import { renderPort } from "./render.ts";
import { CONTAINERS, difference, EMPTY_RULESET, merge, type Piece, type Ruleset } from "./ruleset.ts";

const CLUSTER = ["10.42.0.0/16"];
const backend = (n: number, local = false) => ({ ip: `10.42.0.${n}`, port: 8080, local });
const base: PortPlan = {
  family: 4, namespace: "default", service: "web", portName: "http", protocol: "tcp", clusterIp: "10.43.0.5", port: 80, nodePort: 0, externalIps: [], loadBalancerIps: [], sourceRanges: [],
  nodeInSourceRanges: false, affinitySeconds: 0, internalLocal: false, externalLocal: false, preservesDestination: false, clusterBackends: [backend(1, true), backend(2)], localBackends: [], servingBackends: [], anyBackend: true,
};
const ruleset = (...plans: Partial<PortPlan>[]): Ruleset => merge(plans.map((plan) => renderPort({ ...base, ...plan }, CLUSTER)));
const script = (plan: Partial<PortPlan>): string[] => difference("t", 4, EMPTY_RULESET, ruleset(plan)).text.trim().split("\n").filter((line) => !/^(add|flush) chain/.test(line));

test("where pods' addresses are not known nothing is compared with none: nft takes no empty set", () => {
  const outsiders = { nodePort: 30080, externalLocal: true, localBackends: [backend(1, true)] };
  for (const clusterCidrs of [[], CLUSTER]) {
    const lines = (frameText({ table: "t", family: 4, clusterCidrs, serviceCidrs: [] }) + difference("t", 4, EMPTY_RULESET, merge([renderPort({ ...base, ...outsiders }, clusterCidrs)])).text).split("\n");
    expect(lines.filter((line) => line.includes("{  }"))).toEqual([]);
    expect(lines.filter((line) => /saddr (!= )?\{/.test(line)).length).toBe(clusterCidrs.length * 2);
  }
});

test("a cluster IP and its endpoints are elements; the rule is shared", () => {
  expect(script({})).toEqual([
    "add rule ip t tcp-endpoints/2 dnat ip addr . port to ip daddr . tcp dport . numgen random mod 2 map @tcp-endpoints",
    "add element ip t cluster-ips { 10.43.0.5 }",
    'add element ip t service-ips { 10.43.0.5 . tcp . 80 comment "default/web:http" : goto tcp-endpoints/2 }',
    "add element ip t tcp-endpoints { 10.43.0.5 . 80 . 0 : 10.42.0.1 . 8080, 10.43.0.5 . 80 . 1 : 10.42.0.2 . 8080 }",
    "add element ip t hairpin-connections { 10.42.0.1 . 10.42.0.1 . tcp . 8080 }",
  ]);
});

test.each<[string, Partial<PortPlan>]>([["a cluster IP", {}], ["a node port", { nodePort: 30080 }], ["no endpoints", { clusterBackends: [], anyBackend: false, nodePort: 30080 }], ["affinity, from outside", { affinitySeconds: 60, externalIps: ["192.0.2.1"] }]])("SCTP is like TCP: %s", (_, plan) => {
  const like = (protocol: "tcp" | "sctp"): string[] => script({ ...plan, protocol });
  expect(like("sctp").length).toBeGreaterThan(0);
  expect(like("sctp")).toEqual(like("tcp").map((line) => line.replaceAll("tcp", "sctp")));
});

test.each([
  { name: "no endpoints anywhere: rejected", plan: { clusterBackends: [], anyBackend: false, nodePort: 30080 }, lines: ['add element ip t no-endpoint-services { 10.43.0.5 . tcp . 80 comment "default/web:http" : goto reject-chain }', 'add element ip t no-endpoint-nodeports { tcp . 30080 comment "default/web:http" : goto reject-chain }'] },
  { name: "none on this node: dropped", plan: { clusterBackends: [], internalLocal: true }, lines: ['add element ip t no-endpoint-services { 10.43.0.5 . tcp . 80 comment "default/web:http" : drop }'] },
  {
    name: "external policy Local, no endpoint on this node: outsiders are dropped, the cluster is served", plan: { externalIps: ["192.0.2.1"], nodePort: 30080, externalLocal: true },
    lines: [
      'add element ip t no-endpoint-services { 192.0.2.1 . tcp . 80 comment "default/web:http" : drop }', 'add element ip t no-endpoint-nodeports { tcp . 30080 comment "default/web:http" : drop }',
      "add rule ip t external/default/web/tcp/http ip saddr { 10.42.0.0/16 } goto cluster/default/web/tcp/http", "add rule ip t external/default/web/tcp/http fib saddr type local mark set mark or 0x4000",
      "add rule ip t external/default/web/tcp/http fib saddr type local goto cluster/default/web/tcp/http",
      "add element ip t service-ips { 10.43.0.5 . tcp . 80 : goto cluster/default/web/tcp/http, 192.0.2.1 . tcp . 80 : goto external/default/web/tcp/http }",
    ],
  },
  { name: "internal policy Local: the endpoints of this node", plan: { internalLocal: true, localBackends: [backend(1, true)] }, lines: ["add element ip t tcp-endpoints { 10.43.0.5 . 80 . 0 : 10.42.0.1 . 8080 }"] },
  {
    name: "a Service reached from outside has its endpoints in a map of its own", plan: { externalIps: ["192.0.2.1"] },
    lines: [
      "add map ip t cluster-endpoints/default/web/tcp/http { typeof numgen random mod 65536 : ip daddr . tcp dport; }", "flush map ip t cluster-endpoints/default/web/tcp/http",
      "add rule ip t cluster/default/web/tcp/http meta l4proto tcp dnat ip addr . port to numgen random mod 2 map @cluster-endpoints/default/web/tcp/http",
      "add element ip t cluster-endpoints/default/web/tcp/http { 0 : 10.42.0.1 . 8080, 1 : 10.42.0.2 . 8080 }", "add element ip t service-ips { 10.43.0.5 . tcp . 80 : goto cluster/default/web/tcp/http, 192.0.2.1 . tcp . 80 : goto external/default/web/tcp/http }",
    ],
  },
  { name: "a node port masquerades", plan: { nodePort: 30080 }, lines: ["add rule ip t external/default/web/tcp/http mark set mark or 0x4000", "add rule ip t external/default/web/tcp/http goto cluster/default/web/tcp/http", "add element ip t service-nodeports { tcp . 30080 : goto external/default/web/tcp/http }"] },
  {
    name: "policy Local holds for outsiders only", plan: { nodePort: 30080, externalLocal: true, localBackends: [backend(1, true)] },
    lines: [
      "add rule ip t external/default/web/tcp/http ip saddr { 10.42.0.0/16 } goto cluster/default/web/tcp/http", "add rule ip t external/default/web/tcp/http fib saddr type local mark set mark or 0x4000",
      "add rule ip t external/default/web/tcp/http fib saddr type local goto cluster/default/web/tcp/http", "add rule ip t external/default/web/tcp/http goto local/default/web/tcp/http",
    ],
  },
  { name: "source ranges, and the node itself if it is in them", plan: { loadBalancerIps: ["192.0.2.1"], sourceRanges: ["10.0.0.0/8"], nodeInSourceRanges: true }, lines: ["add rule ip t firewall/default/web/tcp/http ip saddr != { 10.0.0.0/8, 192.0.2.1 } drop", "add element ip t firewall-ips { 192.0.2.1 . tcp . 80 : goto firewall/default/web/tcp/http }"] },
  {
    name: "affinity remembers clients in a set for each endpoint", plan: { affinitySeconds: 60, clusterBackends: [backend(1)] },
    lines: [
      "add set ip t affinity/default/web/tcp/http/10.42.0.1/8080/60 { typeof ip saddr; flags dynamic,timeout; timeout 60s; }",
      "add rule ip t endpoint/default/web/tcp/http/10.42.0.1/8080 update @affinity/default/web/tcp/http/10.42.0.1/8080/60 { ip saddr }", "add rule ip t endpoint/default/web/tcp/http/10.42.0.1/8080 meta l4proto tcp dnat to 10.42.0.1:8080",
      "add rule ip t cluster/default/web/tcp/http ip saddr @affinity/default/web/tcp/http/10.42.0.1/8080/60 goto endpoint/default/web/tcp/http/10.42.0.1/8080",
      "add rule ip t cluster/default/web/tcp/http numgen random mod 1 vmap @cluster-affinity/default/web/tcp/http", "add element ip t cluster-affinity/default/web/tcp/http { 0 : goto endpoint/default/web/tcp/http/10.42.0.1/8080 }",
    ],
  },
])("$name", ({ plan, lines }) => {
  expect(script(plan)).toEqual(expect.arrayContaining(lines));
});

test("node ports answer at all addresses but loopback, or at those that are wanted", () => {
  const at = (nodePortCidrs?: string[]): string[] => frameText({ table: "t", family: 4, clusterCidrs: [], serviceCidrs: [], nodePortCidrs }).split("\n").filter((line) => line.includes("nodeports") && line.startsWith("add rule"));
  const rules = (condition: string): string[] => [`add rule ip t services fib daddr type local ${condition} meta l4proto . th dport vmap @service-nodeports`, `add rule ip t nodeport-endpoints-check ${condition} meta l4proto . th dport vmap @no-endpoint-nodeports`];
  expect(at()).toEqual(rules("ip daddr != 127.0.0.0/8"));
  expect(at(["192.0.2.1/32"])).toEqual(rules("ip daddr != 127.0.0.0/8 ip daddr 192.0.2.1/32"));
  expect(at([])).toEqual([]);
});

test("only what differs is written; what is gone is emptied first and deleted later", () => {
  const before = ruleset({ nodePort: 30080 }, { service: "db", clusterIp: "10.43.0.6" }, { service: "shop", clusterIp: "10.43.0.8", clusterBackends: [backend(4), backend(5)] });
  const { text, garbage } = difference("t", 4, before, ruleset({ nodePort: 30081, clusterBackends: [backend(2)] }, { service: "shop", clusterIp: "10.43.0.8", clusterBackends: [backend(4), backend(6)] }));
  expect(text.trim().split("\n").toSorted()).toEqual([
    "delete element ip t cluster-endpoints/default/web/tcp/http { 0, 1 }", "delete element ip t cluster-ips { 10.43.0.6 }",
    "delete element ip t tcp-endpoints { 10.43.0.6 . 80 . 0, 10.43.0.6 . 80 . 1, 10.43.0.8 . 80 . 1 }", "delete element ip t hairpin-connections { 10.42.0.1 . 10.42.0.1 . tcp . 8080 }",
    "delete element ip t service-ips { 10.43.0.6 . tcp . 80 }", "delete element ip t service-nodeports { tcp . 30080 }",
    "add chain ip t cluster/default/web/tcp/http", "flush chain ip t cluster/default/web/tcp/http",
    "add rule ip t cluster/default/web/tcp/http meta l4proto tcp dnat ip addr . port to numgen random mod 1 map @cluster-endpoints/default/web/tcp/http",
    "add element ip t cluster-endpoints/default/web/tcp/http { 0 : 10.42.0.2 . 8080 }", "add element ip t tcp-endpoints { 10.43.0.8 . 80 . 1 : 10.42.0.6 . 8080 }",
    "add element ip t service-nodeports { tcp . 30081 : goto external/default/web/tcp/http }",
  ].toSorted());
  expect(garbage).toEqual({ chains: [], sets: new Map() });
  expect(difference("t", 4, before, before).text).toBe("");

  const gone = difference("t", 4, before, EMPTY_RULESET);
  expect(gone.text).toContain("delete element ip t cluster-endpoints/default/web/tcp/http { 0, 1 }\n");
  expect(gone.text).toContain("flush chain ip t cluster/default/web/tcp/http\n");
  expect(gone.garbage).toEqual({ chains: ["external/default/web/tcp/http", "cluster/default/web/tcp/http", "tcp-endpoints/2"], sets: new Map([["cluster-endpoints/default/web/tcp/http", "map"]]) });
});

test("what differs in elements alone is also told as elements, as the kernel has them", () => {
  const before = ruleset({}), { elements } = difference("t", 4, before, ruleset({ clusterBackends: [backend(1, true), backend(3)] }));
  expect(elements).toEqual({ remove: [{ container: "tcp-endpoints", key: "10.43.0.5 . 80 . 1", value: "" }], add: [{ container: "tcp-endpoints", key: "10.43.0.5 . 80 . 1", value: ": 10.42.0.3 . 8080" }] });
  expect(difference("t", 4, before, ruleset({ clusterBackends: [backend(1, true)] })).elements).toBeUndefined(); // another chain
  expect(difference("t", 4, ruleset({ nodePort: 30080 }), ruleset({})).elements).toBeUndefined();

  const hex = (bytes: unknown): string => Buffer.from(bytes as Uint8Array).toString("hex");
  const said = (container: string, key: string, value = ""): unknown => {
    const { set: _, key: bytes, ...rest } = elementBytes({ container, key, value }) ?? { set: "", key: new Uint8Array() };
    return [hex(bytes), rest.value instanceof Uint8Array ? hex(rest.value) : rest.value, rest.comment];
  };
  expect(said("tcp-endpoints", "10.43.0.5 . 80 . 258", ": 10.42.0.3 . 8080")).toEqual(["0a2b00050050000002010000", "0a2a00031f900000", undefined]);
  expect(said("udp-endpoints", "fd43::5 . 53 . 0", ": fd42::3 . 5353")).toEqual(["fd430000000000000000000000000005" + "00350000" + "00000000", "fd420000000000000000000000000003" + "14e90000", undefined]);
  expect(said("service-ips", "10.43.0.5 . sctp . 80", 'comment "default/web:http" : goto sctp-endpoints/2')).toEqual(["0a2b00058400000000500000", { verdict: "goto", chain: "sctp-endpoints/2" }, "default/web:http"]);
  expect(said("no-endpoint-nodeports", "udp . 30080", 'comment "a" : drop')).toEqual(["1100000075800000", { verdict: "drop", chain: undefined }, "a"]);
  expect(said("hairpin-connections", "10.42.0.1 . 10.42.0.1 . tcp . 8080")).toEqual(["0a2a00010a2a0001060000001f900000", undefined, undefined]);
  expect([elementBytes({ container: "cluster-endpoints/a/b/tcp", key: "0", value: ": 10.0.0.1 . 80" }), elementBytes({ container: "cluster-ips", key: "nonsense", value: "" })]).toEqual([undefined, undefined]);
});

test("an address two services want stays with the first", () => {
  const shared = ruleset({ externalIps: ["192.0.2.1"] }, { service: "late", clusterIp: "10.43.0.7", externalIps: ["192.0.2.1"] });
  expect(shared.containers.get("service-ips")!.get("192.0.2.1 . tcp . 80")).toBe(": goto external/default/web/tcp/http");
});

test("a cluster IP is its Service's, whoever was there before with an external address like it", () => {
  const pieces = (plan: Partial<PortPlan>) => [renderPort({ ...base, ...plan }, CLUSTER)];
  const thief = { namespace: "a", service: "thief", clusterIp: "10.43.0.7", externalIps: ["10.43.0.5"] }, other = { ...thief, service: "other", clusterIp: "10.43.0.8" };
  const at = ({ containers }: Ruleset) => containers.get("service-ips")!.get("10.43.0.5 . tcp . 80");
  const its = at(ruleset({}));
  expect(at(ruleset(thief, {}))).toBe(its);
  const live = new LiveRuleset();
  live.set("a/thief", pieces(thief));
  live.set("a/other", pieces(other));
  live.set("default/web", pieces({}));
  expect(at(live)).toBe(its);
  live.set("a/thief", pieces(thief));
  expect(at(live)).toBe(its);
  live.set("default/web", undefined);
  expect(at(live)).toBe(": goto external/a/other/tcp/http");
  live.set("a/thief", undefined);
  live.set("default/web", pieces({}));
  live.set("a/other", undefined);
  expect(at(live)).toBe(its);
});

test("an address that a load balancer has given is that Service's, whoever was there before with an external address like it; so is it, and a cluster IP, without endpoints", () => {
  const pieces = (plan: Partial<PortPlan>) => [renderPort({ ...base, ...plan }, CLUSTER)];
  const thief = { namespace: "a", service: "thief", clusterIp: "10.43.0.7", externalIps: ["172.30.0.2", "10.43.0.5"] }, other = { ...thief, service: "other", clusterIp: "10.43.0.8" };
  const balanced = { loadBalancerIps: ["172.30.0.2"] }, without = { ...balanced, clusterBackends: [], anyBackend: false };
  const at = ({ containers }: Ruleset, address: string) => containers.get("service-ips")?.get(`${address} . tcp . 80`);
  const both = (one: Ruleset) => [at(one, "172.30.0.2"), at(one, "10.43.0.5")];
  const its = both(ruleset(balanced)), stolen = Array(2).fill(": goto external/a/other/tcp/http");
  expect([both(ruleset(thief, balanced)), both(ruleset(thief, without))]).toEqual([its, [undefined, undefined]]);
  const live = new LiveRuleset();
  live.set("a/thief", pieces(thief));
  live.set("a/other", pieces(other));
  live.set("default/web", pieces(balanced));
  expect(both(live)).toEqual(its);
  live.set("default/web", pieces(without));
  live.set("a/thief", pieces(thief));
  expect(both(live)).toEqual([undefined, undefined]);
  expect(live.containers.get("no-endpoint-services")!.size).toBe(2);
  live.set("default/web", pieces(balanced));
  expect(both(live)).toEqual(its);
  live.set("a/thief", undefined);
  live.set("default/web", undefined);
  expect(both(live)).toEqual(stolen);
});

test("a cluster IP that two Services had at once, as one is made while the other goes, is whose it is in the end", () => {
  const pieces = (plan: Partial<PortPlan>) => [renderPort({ ...base, ...plan }, CLUSTER)];
  const before = { service: "before" }, after = { ...before, clusterIp: "10.43.0.9", externalIps: ["10.43.0.5"] };
  const live = new LiveRuleset();
  live.set("default/before", pieces(before));
  live.set("default/web", pieces({}));
  live.set("default/before", pieces(after));
  expect(live.containers.get("service-ips")!.get("10.43.0.5 . tcp . 80")).toBe(ruleset({}).containers.get("service-ips")!.get("10.43.0.5 . tcp . 80"));
  live.set("default/web", undefined);
  expect(live.containers.get("service-ips")!.get("10.43.0.5 . tcp . 80")).toBe(ruleset(after).containers.get("service-ips")!.get("10.43.0.5 . tcp . 80"));
});

test("of what many Services share each is found and taken away without a look at all others", () => {
  const piece = (service: number): Piece => ({ elements: [{ container: "hairpin-connections", key: "10.42.0.1 . 10.42.0.1", value: `: v${service}` }], chains: new Map(), sets: new Map() });
  const value = (live: LiveRuleset): string | undefined => live.containers.get("hairpin-connections")?.get("10.42.0.1 . 10.42.0.1");
  const live = new LiveRuleset(), count = 500;
  let looked = 0;
  const spies = (["filter", "toSorted", "slice"] as const).map((name) => {
    const real = Array.prototype[name] as (this: unknown[], ...args: unknown[]) => unknown[];
    return vi.spyOn(Array.prototype, name).mockImplementation(function (this: unknown[], ...args: unknown[]) { looked += this.length; return real.apply(this, args); } as never);
  });
  for (let i = 0; i < count; i++) live.set(`default/s${i}`, [piece(i)]);
  for (let i = count - 1; i > 250; i--) live.set(`default/s${i}`, undefined);
  const first = value(live);
  for (let i = 0; i < 250; i++) live.set(`default/s${i}`, undefined);
  const last = value(live);
  live.set("default/s250", undefined);
  for (const spy of spies) spy.mockRestore();
  expect([first, last, value(live)]).toEqual([": v0", ": v250", undefined]);
  expect(looked).toBeLessThan(10 * count);
});

test("one service at a time comes to the same as all at once, and the delta is what differs", () => {
  const pieces = (...plans: Partial<PortPlan>[]) => plans.map((plan) => renderPort({ ...base, ...plan }, CLUSTER));
  const plain = ({ containers, chains, sets }: Ruleset) => [[...containers].map(([name, elements]) => [name, [...elements].toSorted()]).toSorted(), [...chains].toSorted(), [...sets].toSorted()];
  const live = new LiveRuleset();
  const late = { service: "late", clusterIp: "10.43.0.7", externalIps: ["192.0.2.1"] }, db = { service: "db", clusterIp: "10.43.0.6", affinitySeconds: 60 };
  live.set("default/web", pieces({ externalIps: ["192.0.2.1"] }));
  live.set("default/late", pieces(late));
  live.set("default/db", pieces(db));
  expect(plain(live)).toEqual(plain(ruleset({ externalIps: ["192.0.2.1"] }, late, db)));
  live.commit();
  expect(difference("t", 4, live.delta().before, live.delta().after)).toMatchObject({ text: "", garbage: { chains: [], sets: new Map() } });

  const before = merge([...pieces({ externalIps: ["192.0.2.1"] }), ...pieces(late), ...pieces(db)]);
  live.set("default/web", undefined);
  live.set("default/db", pieces({ ...db, clusterBackends: [backend(3)] }));
  live.set("default/late", pieces({ ...late, nodePort: 30080 }));
  live.set("default/late", pieces(late)); // and back
  const after = ruleset(late, { ...db, clusterBackends: [backend(3)] });
  expect(plain(live)).toEqual(plain(after));
  const lines = (text: string): string[] => text.trim().split("\n").map((line) => line.replace(/\{ (.*) \}/, (_, list: string) => list.split(", ").toSorted().join(", "))).toSorted();
  const { text, garbage } = difference("t", 4, live.delta().before, live.delta().after), whole = difference("t", 4, before, after);
  expect(lines(text)).toEqual(lines(whole.text));
  expect(garbage.chains.toSorted()).toEqual(whole.garbage.chains.toSorted());
  expect(live.containers.get("service-ips")!.get("192.0.2.1 . tcp . 80")).toBe(": goto external/default/late/tcp/http");
});

test("names longer than the kernel takes are cut and stay different", () => {
  const long = (service: string): string => [...renderPort({ ...base, service, portName: "p".repeat(63), namespace: "n".repeat(150), nodePort: 30080 }, CLUSTER).chains.keys()][0]!;
  expect(long("a").length).toBeLessThanOrEqual(255);
  expect(long("a")).not.toBe(long("b"));
});

test("the table: full at first, then differences; everything again after a failure, and after somebody flushed it", async () => {
  const { signal } = new AbortController();
  const applied: string[] = [];
  let refuse = 0;
  const frame = { sets: CONTAINERS.slice(0, 2), maps: CONTAINERS.slice(2) };
  let found: NftNames | undefined = { chains: ["services", "cluster/default/old/tcp/http"], sets: [...frame.sets, "affinity/default/old/tcp/http/1/1/60"], maps: [...frame.maps, "cluster-affinity/default/old/tcp/http"] };
  let chain: string | undefined = "jump services";
  const nft: Nft = {
    async apply(text) { if (refuse-- > 0) throw new Error("busy"); applied.push(text); },
    names: async () => found,
    chain: async () => chain,
  };
  const table = new NftTable({ nft, frame: { table: "t", family: 4, clusterCidrs: CLUSTER, serviceCidrs: ["10.43.0.0/16"] }, log: silentLog });

  expect(await table.sync(ruleset({}), signal)).toBe("full");
  expect(applied[0]).toContain("add table ip t\n");
  expect(applied[0]).toContain("flush chain ip t cluster/default/old/tcp/http\n");
  expect(applied[0]).toContain("flush map ip t cluster-affinity/default/old/tcp/http\n");
  expect(applied[1]).toBe("delete chain ip t cluster/default/old/tcp/http\ndelete set ip t affinity/default/old/tcp/http/1/1/60\ndelete map ip t cluster-affinity/default/old/tcp/http\n");
  expect(await table.sync(ruleset({}), signal)).toBe("unchanged");
  expect(await table.sync(ruleset({ nodePort: 30080 }), signal)).toBe("partial");
  expect(applied.at(-1)).not.toContain("add table");

  found = undefined;
  refuse = 1;
  await expect(table.sync(ruleset({}), signal)).rejects.toThrow("busy");
  expect(await table.sync(ruleset({}), signal)).toBe("full");
  refuse = 1; // not even the frame fits what is there: replaced as a whole
  chain = undefined;
  expect(await table.verify(signal)).toBe(false);
  expect(await table.sync(ruleset({}), signal)).toBe("full");
  expect(applied.at(-1)).toMatch(/^add table ip t\ndelete table ip t\n/);
  found = { chains: ["services"], sets: ["cluster-ips"], maps: ["service-ips"] }; // of another version
  await table.verify(signal);
  expect(await table.sync(ruleset({}), signal)).toBe("full");
  expect(applied.at(-1)).toMatch(/^add table ip t\ndelete table ip t\n/);
});

test("what is written can be listed by the nft of Debian 12", () => {
  const rich = { nodePort: 30080, externalIps: ["192.0.2.1"], loadBalancerIps: ["192.0.2.2"], sourceRanges: ["10.0.0.0/8"], nodeInSourceRanges: true, externalLocal: true, localBackends: [backend(1, true)] };
  const all = ruleset({}, { service: "rich", clusterIp: "10.43.0.6", ...rich }, { service: "faithful", clusterIp: "10.43.0.7", ...rich, affinitySeconds: 60 }, { service: "empty", clusterIp: "10.43.0.8", clusterBackends: [], anyBackend: false });
  const text = frameText({ table: "t", family: 4, clusterCidrs: CLUSTER, serviceCidrs: ["10.43.0.0/16"] }) + difference("t", 4, EMPTY_RULESET, all).text;
  expect(text).toContain("affinity");
  expect(oldNftDiesOf(text)).toEqual([]);
});

test("elements go to the kernel directly where that is possible; what it refuses is nft's", async () => {
  const { signal } = new AbortController();
  const scripts: string[] = [], batches: ElementBatch[] = [];
  let refuse = false;
  const nft: Nft = {
    apply: async (text) => void scripts.push(text), names: async () => undefined, chain: async () => undefined,
    elements(batch) { if (refuse) throw new Error("no such file or directory"); batches.push(batch); },
  };
  const table = new NftTable({ nft, frame: { table: "t", family: 4, clusterCidrs: CLUSTER, serviceCidrs: [] }, log: silentLog });
  await table.sync(ruleset({}), signal);
  const written = scripts.length;
  expect(await table.sync(ruleset({ clusterBackends: [backend(1, true), backend(3)] }), signal)).toBe("partial");
  expect([scripts.length, batches.map(({ table: name, remove, add }) => [name, remove.length, add.length])]).toEqual([written, [["t", 1, 1]]]);
  await table.sync(ruleset({ clusterBackends: [backend(3)] }), signal); // another chain
  expect(scripts.length).toBeGreaterThan(written);
  refuse = true;
  await table.sync(ruleset({ clusterBackends: [backend(4)] }), signal);
  expect(scripts.at(-1)).toContain("add element ip t tcp-endpoints { 10.43.0.5 . 80 . 0 : 10.42.0.4 . 8080 }");
  expect(batches).toHaveLength(1);
});
