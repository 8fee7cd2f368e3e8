import { describe, expect, test } from "vitest";
import { fakeApi } from "../../test/fake-api.ts";
import { oldNftDiesOf } from "../../test/old-nft.ts";
import type { Pod } from "../../core/api/gen/core.v1.ts";
import type { NetworkPolicy, NetworkPolicySpec } from "../../core/api/gen/networking.v1.ts";
import type { NewObject } from "../../core/api/meta/object-meta.ts";
import { informerFactory } from "../../core/client/informer-factory.ts";
import { NAMESPACES, NETWORK_POLICIES, PODS } from "../../core/client/resources.ts";
import { atOnce, type Pausing } from "../../core/lifecycle/breather.ts";
import { systemClock as clock } from "../../core/lifecycle/clock.ts";
import { systemRandom as random } from "../../core/lifecycle/random.ts";
import { silentLog as log } from "../../core/observe/log.ts";
import { metricsRegistry } from "../../core/observe/metrics.ts";
import type { Nft } from "../os/exec-nft.ts";
import { planPolicies, type PolicyPod, policyPlanner, type PolicyWorld } from "./plan.ts";
import { networkPolicies, noNetworkPolicies } from "./policy.ts";
import { differenceText, type PolicyRuleset, wholeText } from "./ruleset.ts";

const pod = (ip: string, labels: Record<string, string>, rest: Partial<PolicyPod> = {}): PolicyPod => ({ namespace: "a", labels, ips: [ip], ports: [], local: true, ...rest });
const policy = (spec: NetworkPolicySpec, name = "p"): NetworkPolicy => ({ apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy", metadata: { name, namespace: "a" } as NetworkPolicy["metadata"], spec: { podSelector: {}, ...spec } });
const WORLD: Omit<PolicyWorld, "policies"> = {
  namespaces: new Map([["a", { "kubernetes.io/metadata.name": "a" }], ["b", { team: "b" }]]),
  pods: [
    pod("10.0.0.1", { app: "web" }, { ports: [{ name: "http", protocol: "TCP", port: 8080 }] }), pod("10.0.0.2", { app: "db" }, { ips: ["10.0.0.2", "fd00::2"] }),
    pod("10.0.1.1", { app: "web" }, { namespace: "b", local: false, ports: [{ name: "http", protocol: "TCP", port: 9090 }] }), pod("10.0.1.2", { app: "web" }, { local: false }),
  ],
};
const wholeTextOf = (ruleset: PolicyRuleset): string => atOnce(wholeText(ruleset));
const differenceOf = (before: PolicyRuleset, after: PolicyRuleset) => atOnce(differenceText(before, after));
const plan = (...policies: NetworkPolicy[]) => planPolicies({ ...WORLD, policies });
const rules = (spec: NetworkPolicySpec, direction = "ingress"): readonly string[] | undefined => plan(policy(spec)).chains.get(`${direction}/policy/a/p`)?.map((rule) => rule.replace(/\/[0-9a-f]{16}/g, "/#"));
const web = { podSelector: { matchLabels: { app: "web" } } };

test("pods of this node that a policy selects are isolated in the directions it is about", () => {
  const isolated = (spec: NetworkPolicySpec): string[][] => {
    const { sets } = plan(policy(spec));
    return ["ingress4", "ingress6", "egress4"].map((name) => [...sets.get(name)!.elements.keys()]);
  };
  expect(isolated({})).toEqual([["10.0.0.1", "10.0.0.2"], ["fd00::2"], []]);
  expect(isolated({ ...web, egress: [{}] })).toEqual([["10.0.0.1"], [], ["10.0.0.1"]]);
  expect(isolated({ ...web, policyTypes: ["Egress"] })).toEqual([[], [], ["10.0.0.1"]]);
  const { chains, sets } = plan(policy(web, "one"), policy({}, "two"));
  expect(chains.get(sets.get("ingress4")!.elements.get("10.0.0.1")!.slice("goto ".length))).toEqual(["jump ingress/policy/a/one", "jump ingress/policy/a/two", "drop"]);
  expect(chains.get(sets.get("ingress4")!.elements.get("10.0.0.2")!.slice("goto ".length))).toEqual(["jump ingress/policy/a/two", "drop"]);
});

describe("rules", () => {
  test.each<[string, NetworkPolicySpec, string, string[]]>([
    ["nothing is allowed", { ingress: [] }, "ingress", []],
    ["everything is", { ingress: [{}] }, "ingress", ["accept"]],
    ["who may send goes on to whether it may be received", { egress: [{}], policyTypes: ["Egress"] }, "egress", ["goto check-ingress"]],
    ["ports and ranges, TCP unless said", { ingress: [{ ports: [{ port: 80 }, { port: 81, endPort: 90 }, { port: 85, endPort: 95 }, { port: 53, protocol: "UDP" }, { protocol: "SCTP" }] }] }, "ingress", ["meta l4proto sctp accept", "meta l4proto tcp th dport { 80-95 } accept", "meta l4proto udp th dport { 53 } accept"]],
    ["a block without some of it", { ingress: [{ from: [{ ipBlock: { cidr: "10.0.0.0/8", except: ["10.1.0.0/16", "10.1.2.0/24"] } }], ports: [{ port: 80 }] }] }, "ingress", ["ip saddr 10.0.0.0/8 ip saddr != { 10.1.0.0/16 } meta l4proto tcp th dport { 80 } accept"]],
    ["a block that is stored with leading zeros, and what is left out of it", { ingress: [{ from: [{ ipBlock: { cidr: "010.0.0.0/8", except: ["010.1.0.0/16"] } }] }] }, "ingress", ["ip saddr 10.0.0.0/8 ip saddr != { 10.1.0.0/16 } accept"]],
    ["peers of both families", { egress: [{ to: [{ podSelector: {} }] }] }, "egress", ["ip daddr @pods4/# goto check-ingress", "ip6 daddr @pods6/# goto check-ingress"]],
    ["a named port, as the receiving pods of this node have it", { ingress: [{ ports: [{ port: "http" }] }] }, "ingress", ["ip daddr . meta l4proto . th dport @ports4/# accept"]],
    ["a named port nobody has", { ingress: [{ ports: [{ port: "nope" }] }] }, "ingress", []],
  ])("%s", (_, spec, direction, expected) => expect(rules(spec, direction)).toEqual(expected));
});

test("peers: pods by their own labels and those of their namespaces; named ports as each peer has them", () => {
  const elements = (spec: NetworkPolicySpec, kind: string): string[] => [...plan(policy(spec)).sets].filter(([name]) => name.startsWith(kind)).flatMap(([, set]) => [...set.elements.keys()]);
  const from = (peer: object): NetworkPolicySpec => ({ ingress: [{ from: [peer] }] });
  expect(elements(from(web), "pods4")).toEqual(["10.0.0.1", "10.0.1.2"]);
  expect(elements(from({ namespaceSelector: {} }), "pods4")).toEqual(["10.0.0.1", "10.0.0.2", "10.0.1.2", "10.0.1.1"]);
  expect(elements(from({ namespaceSelector: { matchLabels: { team: "b" } }, ...web }), "pods4")).toEqual(["10.0.1.1"]);
  expect(elements(from({ namespaceSelector: { matchLabels: { team: "none" } } }), "pods4")).toEqual([]);
  expect(elements({ policyTypes: ["Egress"], egress: [{ to: [{ namespaceSelector: {}, ...web }], ports: [{ port: "http" }] }] }, "ports4")).toEqual(["10.0.0.1 . tcp . 8080", "10.0.1.1 . tcp . 9090"]);
  const toBlock: NetworkPolicySpec = { policyTypes: ["Egress"], egress: [{ to: [{ ipBlock: { cidr: "10.0.1.0/24" } }, { podSelector: { matchLabels: { app: "none" } } }], ports: [{ port: "http" }] }] };
  expect(elements(toBlock, "ports4")).toEqual(["10.0.0.1 . tcp . 8080", "10.0.1.1 . tcp . 9090"]); // pods of the range; the range itself is in the rule
  expect(rules(toBlock, "egress")![0]).toBe("ip daddr 10.0.1.0/24 ip daddr . meta l4proto . th dport @ports4/# goto check-ingress");
});

test("a change is what differs, in an order the kernel takes", () => {
  const one = plan(policy({ ...web, ingress: [{ from: [web] }] }));
  const two = planPolicies({ ...WORLD, pods: [...WORLD.pods, pod("10.0.1.3", { app: "web" }, { local: false })], policies: [policy({ ...web, ingress: [{ from: [web] }] })] });
  expect(differenceOf(one, one)).toEqual({ text: "", cleanup: "" });
  expect(differenceOf(one, two).text.replace(/\/[0-9a-f]{16}/g, "/#")).toBe("add element inet coracle-policy pods4/# { 10.0.1.3 }\n");
  const { text, cleanup } = differenceOf(one, plan(policy({ ...web, egress: [{}], policyTypes: ["Egress"] })));
  const order = text.split("\n").map((line) => line.split(" ").slice(0, 2).join(" ") + (/ingress\/|egress\//.exec(line)?.[0] ?? ""));
  expect(order).toEqual(["add chainegress/", "add chainegress/", "delete element", "add ruleegress/", "add ruleegress/", "add ruleegress/", "add elementegress/", "flush chainingress/", "flush chainingress/", ""]);
  expect(cleanup.split("\n").map((line) => line.split(" ").slice(0, 2).join(" "))).toEqual(["delete chain", "delete chain", "delete set", "delete set", ""]);
  expect(wholeTextOf(one).startsWith("add table inet coracle-policy\ndelete table inet coracle-policy\nadd table inet coracle-policy\n")).toBe(true);
});

test("what has no address that a policy could name does not pass between pods of a bridge: their link's own, and what is for all of them; they find each other nonetheless", () => {
  const rulesOf = (chain: string): string[] => wholeTextOf(plan(policy({}))).split("\n").filter((line) => line.startsWith(`add rule inet coracle-policy ${chain} `)).map((line) => line.replace(`add rule inet coracle-policy ${chain} `, ""));
  expect(rulesOf("within-bridge")).toEqual(["ip6 saddr fe80::/10 drop", "ip6 daddr fe80::/10 drop", "fib daddr type { broadcast, multicast } drop"]);
  const forward = rulesOf("forward"), at = forward.indexOf('iifname "cni0" oifname "cni0" jump within-bridge'); // of other bridges of the machine nothing is said
  expect(forward[at - 1]).toBe("icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept");
  expect(forward.slice(at)).toContain("goto check-ingress");
});

test("what is written can be listed by the nft of Debian 12", () => {
  const ports = [{ port: 80 }, { port: 81, endPort: 90 }, { port: "http" }, { protocol: "SCTP" as const }];
  const text = wholeTextOf(plan(policy({ policyTypes: ["Ingress", "Egress"], ingress: [{ ports, from: [web, { ipBlock: { cidr: "10.0.0.0/8", except: ["10.1.0.0/16"] } }] }], egress: [{ ports, to: [web] }] })));
  for (const kind of ["pods4/", "ports4/", "dport {"]) expect(text).toContain(kind);
  expect(oldNftDiesOf(text)).toEqual([]);
});

test("without policies there is no table; a pod is let go on only when its policies are in force", async () => {
  const api = fakeApi();
  const stop = new AbortController(), call = { signal: stop.signal };
  const scripts: string[] = [];
  const nft: Nft = { apply: async (script) => { await clock.sleep(30, call.signal); scripts.push(script); }, names: async () => undefined, chain: async () => "check-ingress" };
  const informers = informerFactory({ client: api.client, clock, random, log });
  const part = networkPolicies({ informers, nodeName: "n1", nft, clock, log, metrics: metricsRegistry() });
  const lives = [informers, part].map((one) => one.run(stop.signal, () => {}));
  await api.client.resource(NAMESPACES).create({ apiVersion: "v1", kind: "Namespace", metadata: { name: "a" } } as never, call);
  await api.client.resource(PODS).create({ apiVersion: "v1", kind: "Pod", metadata: { name: "peer", namespace: "a", labels: { app: "web" } }, spec: { nodeName: "n2", containers: [] }, status: { phase: "Running", podIPs: [{ ip: "10.0.1.2" }] } } as unknown as NewObject<Pod>, call);
  const admit = (uid: string, ip: string) => part.admit({ uid, namespace: "a", labels: { app: "db" }, ips: [ip] }, stop.signal);
  await admit("u0", "10.0.0.9");
  expect(scripts).toEqual(["add table inet coracle-policy\ndelete table inet coracle-policy\n"]);
  await api.client.resource(NETWORK_POLICIES).create({ ...policy({ podSelector: { matchLabels: { app: "db" } }, ingress: [{ from: [web] }] }), metadata: { name: "p", namespace: "a" } }, call);
  await clock.sleep(30, call.signal); // until the node has heard of it
  await admit("u1", "10.0.0.2");
  const text = scripts.join("");
  expect(text).toMatch(/add element inet coracle-policy ingress4 \{ .*10\.0\.0\.2 : goto ingress\/pods\/a\/[0-9a-f]{16} \}/);
  expect(text).toMatch(/add element inet coracle-policy pods4\/[0-9a-f]{16} \{ 10\.0\.1\.2 \}/);
  scripts.length = 0;
  await noNetworkPolicies({ nft, log }).run(stop.signal, () => stop.abort());
  expect(scripts).toEqual(["add table inet coracle-policy\ndelete table inet coracle-policy\n"]); // where they are switched off
  await Promise.all(lives);
});

test("policies that somebody has emptied are in force again as soon as tables are others", async () => {
  const api = fakeApi();
  const stop = new AbortController(), call = { signal: stop.signal };
  const scripts: string[] = [];
  let tellTables: () => void = () => undefined, isFlushed = false;
  const nft: Nft = { async apply(script) { scripts.push(script); isFlushed = false; }, names: async () => undefined, chain: async () => (isFlushed ? undefined : "check-ingress") };
  const informers = informerFactory({ client: api.client, clock, random, log });
  const part = networkPolicies({ informers, nodeName: "n1", nft, onTables: (look) => { tellTables = look; return () => undefined; }, clock, log, metrics: metricsRegistry() });
  await api.client.resource(NETWORK_POLICIES).create({ ...policy({}), metadata: { name: "p", namespace: "a" } }, call);
  const lives = [informers, part].map((one) => one.run(stop.signal, () => {}));
  const whole = (): number => scripts.filter((text) => text.includes("add chain inet coracle-policy check-ingress")).length;
  await expect.poll(whole).toBe(1);
  isFlushed = true;
  tellTables();
  await expect.poll(whole).toBe(2);
  stop.abort();
  await Promise.all(lives);
});

test("long lists of ports and of what is left out of a block are sets that rules name, however many peers there are", () => {
  const ports = Array.from({ length: 300 }, (_, i) => ({ port: 1 + 2 * i })), except = Array.from({ length: 300 }, (_, i) => `10.${i % 100}.${Math.floor(i / 100)}.0/24`);
  const from = Array.from({ length: 40 }, (_, i) => ({ ipBlock: { cidr: `10.0.0.0/${8 + (i % 8)}`, except } }));
  const { sets, chains } = plan(policy({ ingress: [{ from, ports }] }));
  const own = chains.get("ingress/policy/a/p")!;
  expect(own.map((rule) => rule.replace(/\/[0-9a-f]{16}/g, "/#"))[0]).toBe("ip saddr 10.0.0.0/8 ip saddr != @except4/# meta l4proto tcp th dport @ports/# accept");
  expect(own.join().length).toBeLessThan(own.length * 200);
  const shown = [...sets].filter(([name]) => /^(except4|ports)\//.test(name)).map(([name, { definition, elements }]) => [name.split("/")[0], definition, elements.size]);
  expect(shown).toEqual([["except4", "typeof ip saddr; flags interval;", 300], ["ports", "typeof th dport; flags interval;", 300]]);
  expect(oldNftDiesOf(wholeTextOf(plan(policy({ ingress: [{ from, ports }] }))))).toEqual([]);
});

test("a policy of thousands of peers and rules is gone through in pieces, so that others have their turn between them", () => {
  const pieces = <T>(work: Pausing<T>): { readonly count: number; readonly value: T } => {
    for (let count = 1; ; count++) {
      const { done, value } = work.next();
      if (done) return { count, value };
    }
  };
  const from = Array.from({ length: 2000 }, (_, i) => ({ podSelector: { matchLabels: { [`a${i}`]: "b" } }, namespaceSelector: {} }));
  const peers = pieces(policyPlanner()({ ...WORLD, policies: [policy({ ingress: [{ from }], egress: [{ to: from, ports: [{ port: "http" }] }] })] }));
  expect(peers.count).toBeGreaterThan(6000);
  expect(pieces(wholeText(peers.value)).count).toBeGreaterThan(4000);
  expect(pieces(differenceText(plan(), peers.value)).count).toBeGreaterThan(4000);
  expect(pieces(policyPlanner()({ ...WORLD, policies: [policy({ ingress: Array.from({ length: 2000 }, () => ({ ports: [{ port: 1 }] })) })] })).count).toBeGreaterThan(2000);
});
