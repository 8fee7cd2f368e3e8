import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { zpages } from "../../core/api/codec/zpages.ts";
import { objectKey } from "../../core/api/meta/object-meta.ts";
import { informerFactory } from "../../core/client/informer-factory.ts";
import { ENDPOINT_SLICES, NODES, SERVICE_CIDRS, SERVICES } from "../../core/client/resources.ts";
import { type Clock, systemClock } from "../../core/lifecycle/clock.ts";
import { systemRandom } from "../../core/lifecycle/random.ts";
import { silentLog } from "../../core/observe/log.ts";
import { metricsRegistry } from "../../core/observe/metrics.ts";
import { eventually as becomesTrue } from "../../test/eventually.ts";
import { eventually, fakeApi } from "../../test/fake-api.ts";
import { proxyConfigz } from "./configz.ts";
import type { PortPlan } from "./desired.ts";
import { proxyStatusListener } from "./health.ts";
import { noServiceProxy, serviceProxy } from "./proxy.ts";
import { proxyMetrics } from "./metrics.ts";
import { Proxier } from "./proxier.ts";

const { signal } = new AbortController();

/** `keepsFlows`: so many times the kernel forgets none. */
function start({ clock = systemClock, keepsFlows = 0 }: { readonly clock?: Clock; readonly keepsFlows?: number } = {}) {
  const api = fakeApi();
  const stop = new AbortController();
  const informers = informerFactory({ client: api.client, clock: systemClock, random: systemRandom, log: silentLog });
  const scripts: string[] = [];
  const forgotten: PortPlan[][] = [];
  const metrics = metricsRegistry();
  const reported: string[] = [];
  let refuse = 0, keeps = keepsFlows, isFlushed = false, tellTables: () => void = () => undefined;
  let refuseDeletion = false;
  let held: PromiseWithResolvers<void> | undefined;
  const proxy = serviceProxy({
    informers, nodeName: "n1", nodeIps: ["172.30.0.1"], clusterCidrs: ["10.42.0.0/16"], serviceCidrs: ["10.43.0.0/16"],
    nft: { async apply(text) {
      if (refuse-- > 0 || (refuseDeletion && text.startsWith("delete chain"))) throw new Error("refused");
      scripts.push(text);
      isFlushed = false;
      await held?.promise;
    }, names: async () => undefined, chain: async () => (isFlushed ? undefined : "jump services") },
    onTables(look) { tellTables = look; return () => undefined; },
    conntrack: { async forgetStale(_family, plans) { if (keeps-- > 0) throw new Error("busy"); forgotten.push([...plans]); return 0; } },
    events: { report: ({ metadata: { name } }, { type, reason, action, note }) => void reported.push(`${name} ${type} ${reason} ${action} ${note}`) },
    clock, log: silentLog, metrics,
  });
  const ended = Promise.all([informers.run(stop.signal, () => {}), proxy.run(stop.signal, () => {})]);
  return { api, scripts, forgotten, metrics, proxy, reported, refuseNext: () => { refuse = 1; }, refuseNextDeletion: () => { refuseDeletion = true; }, flush: () => { isFlushed = true; }, tellTables: () => tellTables(), hold: () => { held = Promise.withResolvers(); }, release: () => held?.resolve(), async [Symbol.asyncDispose]() { stop.abort(); await ended; } };
}

const web = { apiVersion: "v1", kind: "Service", metadata: { name: "web", namespace: "default" }, spec: { type: "ClusterIP", clusterIP: "10.43.0.5", clusterIPs: ["10.43.0.5"], ports: [{ name: "dns", port: 53, protocol: "UDP" }] } } as const;
const slice = (...ips: string[]) => ({
  apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", metadata: { name: "web-1", namespace: "default", labels: { "kubernetes.io/service-name": "web" } },
  addressType: "IPv4", ports: [{ name: "dns", port: 5353, protocol: "UDP" as const }], endpoints: ips.map((ip) => ({ addresses: [ip], nodeName: "n2" })),
});

test("a service and its endpoints become rules, a change only its difference, and UDP flows to lost endpoints are forgotten", async () => {
  await using world = start();
  const { api, scripts, forgotten, proxy } = world;
  await proxy.whenSynced(signal);
  expect(scripts[0]).toContain("add table ip coracle\n");

  await api.client.resource(SERVICES).create(web as never, { signal });
  await eventually(() => scripts.join(), (all) => all.includes('no-endpoint-services { 10.43.0.5 . udp . 53 comment "default/web:dns" : goto reject-chain }'));
  const made = await api.client.resource(ENDPOINT_SLICES).create(slice("10.42.1.2", "10.42.1.3") as never, { signal });
  await eventually(() => scripts.join(), (all) => all.includes("udp-endpoints { 10.43.0.5 . 53 . 0 : 10.42.1.2 . 5353, 10.43.0.5 . 53 . 1 : 10.42.1.3 . 5353 }"));
  await eventually(() => forgotten.length, (count) => count === 1); // the first endpoints
  const before = scripts.length;

  await api.client.resource(ENDPOINT_SLICES).update({ ...made, endpoints: slice("10.42.1.3").endpoints } as never, { signal });
  await eventually(() => forgotten.length, (count) => count === 2);
  expect(scripts.slice(before).join("")).not.toContain("add table");
  const change = scripts.slice(before).join("");
  expect(change).toContain("numgen random mod 1 ");
  expect(change).toContain("udp-endpoints { 10.43.0.5 . 53 . 0 : 10.42.1.3 . 5353 }");
  expect(forgotten[1]![0]!.servingBackends.map(({ ip }) => ip)).toEqual(["10.42.1.3"]);

  await api.client.resource(SERVICE_CIDRS).create({ apiVersion: "networking.k8s.io/v1", kind: "ServiceCIDR", metadata: { name: "more" }, spec: { cidrs: ["10.44.0.0/24", "10.43.0.0/16"] } } as never, { signal });
  await eventually(() => scripts.at(-1) ?? "", (last) => last.includes("cluster-ips-check ip daddr { 10.43.0.0/16, 10.44.0.0/24 } drop") && last.includes("10.42.1.3 . 5353"));

  await api.client.resource(SERVICES).delete(web as never, {}, { signal });
  await eventually(() => scripts.join(), (all) => all.includes("delete chain ip coracle udp-endpoints/1\n"));
});

test("rules that somebody has emptied are written again at once, those of both families", async () => {
  const scripts: string[] = [];
  let isFlushed = false;
  const proxier = new Proxier({
    services: { get: () => undefined } as never, slices: { by: () => [] } as never, ranges: { list: () => [], of: () => [], onChange: () => () => undefined }, nodeName: "n1", nodeIps: ["172.30.0.1"],
    clusterCidrs: ["10.42.0.0/16", "fd00:42::/56"], table: "coracle", clock: systemClock, log: silentLog, metrics: proxyMetrics(metricsRegistry()),
    nft: { async apply(text) { scripts.push(text); }, names: async () => undefined, chain: async () => (isFlushed ? undefined : "jump services") },
  });
  const begun = (): (string | undefined)[] => scripts.splice(0).map((text) => /^add table (\w+)/.exec(text)?.[1]);
  await proxier.write(signal);
  expect([begun(), await proxier.isIntact(signal)]).toEqual([["ip", "ip6"], true]);
  isFlushed = true;
  expect(await proxier.isIntact(signal)).toBe(false);
  await proxier.write(signal);
  expect(begun()).toEqual(["ip", "ip6"]);
});

test("rules are looked after as soon as tables are others, and those that are there are left alone", async () => {
  await using world = start();
  const { scripts, proxy } = world;
  await proxy.whenSynced(signal);
  const count = scripts.length;
  world.tellTables();
  await systemClock.sleep(100, signal);
  expect(scripts).toHaveLength(count);
  world.flush();
  world.tellTables();
  await eventually(() => scripts.slice(count).join(""), (text) => text.includes("add table ip coracle\n"));
});

test("of the last Service of a family nothing is left in the kernel, though the family's range goes with it", async () => {
  const scripts: string[] = [], services = new Map<string, object>();
  const v6 = { metadata: { name: "web", namespace: "default" }, spec: { clusterIP: "fd00:43::5", clusterIPs: ["fd00:43::5"], ports: [{ port: 80 }] } };
  let ranges = ["fd00:43::/112"];
  const proxier = new Proxier({
    services: { get: (key: string) => services.get(key) } as never, slices: { by: () => [] } as never, ranges: { list: () => ranges, of: (family) => (family === 6 ? ranges : []), onChange: () => () => undefined },
    nodeName: "n1", nodeIps: ["172.30.0.1"], clusterCidrs: ["10.42.0.0/16"], table: "coracle", clock: systemClock, log: silentLog, metrics: proxyMetrics(metricsRegistry()),
    nft: { async apply(text) { scripts.push(text); }, names: async () => undefined, chain: async () => "jump services" },
  });
  const change = async (): Promise<string> => {
    proxier.plans.change(objectKey("default", "web"));
    await proxier.plan();
    await proxier.write(signal);
    return scripts.splice(0).filter((text) => text.includes("ip6 coracle")).join("");
  };
  services.set(objectKey("default", "web"), v6);
  expect(await change()).toContain("fd00:43::5");
  services.clear();
  ranges = [];
  proxier.changeRanges();
  const written = await change();
  expect([written.includes("flush map ip6 coracle no-endpoint-services"), written.includes("fd00:43::5")]).toEqual([true, false]);
});

test("a refused transaction is tried again as a whole, and counted; the zone of the node decides about hints", async () => {
  await using world = start();
  const { api, scripts, proxy, metrics } = world;
  await proxy.whenSynced(signal);
  world.refuseNext();
  await api.client.resource(SERVICES).create(web as never, { signal });
  await eventually(() => scripts.filter((text) => text.includes("add table")).length, (count) => count === 2);
  expect(scripts.at(-1)).toContain("10.43.0.5");
  expect(metrics.render()).toContain('kubeproxy_sync_proxy_rules_nftables_sync_failures_total{ip_family="IPv4"} 1');
  await eventually(() => metrics.render(), (text) => text.includes("kubeproxy_sync_proxy_rules_service_changes_pending 0\n"));

  const hinted = slice("10.42.1.2", "10.42.1.3");
  await api.client.resource(ENDPOINT_SLICES).create({ ...hinted, endpoints: hinted.endpoints.map((one, i) => ({ ...one, hints: { forZones: [{ name: `z${i}` }] } })) } as never, { signal });
  await eventually(() => scripts.join(), (all) => all.includes("goto udp-endpoints/2"));
  await api.client.resource(NODES).create({ apiVersion: "v1", kind: "Node", metadata: { name: "n1", labels: { "topology.kubernetes.io/zone": "z1" } } } as never, { signal });
  await eventually(() => scripts.join(), (all) => all.includes("add element ip coracle udp-endpoints { 10.43.0.5 . 53 . 0 : 10.42.1.3 . 5353 }"));
});

test("what changes while others are planned waits for nothing once it is written", async () => {
  let passed = 0, asked: (() => void) | undefined;
  const clock: Clock = { ...systemClock, uptimeMs: () => { asked?.(); return (passed += asked ? 20 : 0) + systemClock.uptimeMs(); } }; // once all are there each takes its slice
  await using world = start({ clock });
  const { api, scripts, metrics, proxy } = world, services = api.client.resource(SERVICES);
  const numbered = (i: number) => services.create({ ...web, metadata: { ...web.metadata, name: `s${i}` }, spec: { ...web.spec, ports: [{ name: "dns", port: i, protocol: "UDP" }] } } as never, { signal });
  await proxy.whenSynced(signal);
  world.hold();
  await numbered(1);
  await eventually(() => scripts.join(), (all) => all.includes("10.43.0.5 . udp . 1 "));
  for (let i = 2; i <= 100; i++) await numbered(i);
  let times = 0;
  asked = () => { if (++times === 20) void numbered(1000); };
  world.release();
  await eventually(() => scripts.join(), (all) => all.includes("10.43.0.5 . udp . 1000 "));
  await eventually(() => metrics.render(), (text) => text.includes("kubeproxy_sync_proxy_rules_service_changes_pending 0\n"));
});

test("an API server has its address back from a Service that was there before it was heard of", async () => {
  await using world = start();
  const { api, scripts, proxy } = world, front = "172.30.0.9 . tcp . 6443";
  await proxy.whenSynced(signal);
  await api.client.resource(SERVICES).create({ ...web, spec: { ...web.spec, externalIPs: ["172.30.0.9"], ports: [{ name: "a", port: 6443, protocol: "TCP" }] } } as never, { signal });
  await eventually(() => scripts.join(), (all) => all.includes(front));
  const before = scripts.length;
  await api.client.resource(ENDPOINT_SLICES).create({ ...slice("172.30.0.9"), metadata: { name: "kubernetes", namespace: "default", labels: { "kubernetes.io/service-name": "kubernetes" } }, ports: [{ name: "https", port: 6443, protocol: "TCP" }] } as never, { signal });
  await eventually(() => scripts.slice(before).join(), (all) => all.split("\n").some((line) => line.startsWith("delete element") && line.includes(front)));
});

test("the node is told that its proxy starts", async () => {
  await using world = start();
  await world.proxy.whenSynced(signal);
  expect(world.reported).toEqual(["n1 Normal Starting StartKubeProxy "]);
});

test("a health check node port that somebody else has is told of with its service", async () => {
  await using world = start();
  const other = createServer().listen(0);
  const { port } = other.address() as AddressInfo;
  try {
    await world.proxy.whenSynced(signal);
    await world.api.client.resource(SERVICES).create({ ...web, spec: { ...web.spec, type: "LoadBalancer", externalTrafficPolicy: "Local", healthCheckNodePort: port } } as never, { signal });
    await eventually(() => world.reported[1] ?? "", (text) => text.startsWith(`web Warning FailedToStartServiceHealthcheck Listen node n1 failed to start healthcheck "default/web" on port ${port}: `));
  } finally {
    other.close();
  }
});

test("UDP flows that cannot be forgotten are tried again, though nothing changes", async () => {
  await using world = start({ clock: { ...systemClock, sleep: (ms, ended) => systemClock.sleep(Math.min(ms, 50), ended), after: (ms, work) => systemClock.after(Math.min(ms, 50), work) }, keepsFlows: 2 });
  await world.proxy.whenSynced(signal);
  await world.api.client.resource(SERVICES).create(web as never, { signal });
  await world.api.client.resource(ENDPOINT_SLICES).create(slice("10.42.1.2") as never, { signal });
  await becomesTrue("the flows are forgotten", async () => world.forgotten.length > 0, 3000);
});

test("a health check node port is opened once who had it lets go of it, and told of once until then", async () => {
  await using world = start({ clock: { ...systemClock, sleep: (ms, ended) => systemClock.sleep(Math.min(ms, 50), ended), after: (ms, work) => systemClock.after(Math.min(ms, 50), work) } });
  const other = createServer().listen(0);
  const { port } = other.address() as AddressInfo;
  try {
    await world.proxy.whenSynced(signal);
    await world.api.client.resource(SERVICES).create({ ...web, spec: { ...web.spec, type: "LoadBalancer", externalTrafficPolicy: "Local", healthCheckNodePort: port } } as never, { signal });
    await eventually(() => world.reported.length, (count) => count === 2);
    await systemClock.sleep(300, signal);
  } finally {
    other.close();
  }
  const answer = await becomesTrue("the port answers", () => fetch(`http://127.0.0.1:${port}`), 3000);
  expect([answer.status, world.reported.length]).toEqual([503, 2]);
});

test("what the proxy tells this machine: its mode, its metrics, its settings and since when it runs", () => {
  const conntrack = { perCpu: 32_768, min: 131_072, establishedSeconds: 86_400, closeWaitSeconds: 3600 };
  const configz = () => proxyConfigz({ mode: "nftables", nodeName: "n1", clusterCidr: "10.42.0.0/16", nodePortAddresses: [], healthz: { address: "::", port: 10_256 }, status: undefined, conntrack });
  const pages = zpages({ component: "kube-proxy", flags: { "cluster-cidr": "10.42.0.0/16" }, version: { major: "1", minor: "36", gitVersion: "v1.36.0", goVersion: "go1.26" }, paths: ["/configz"], clock: systemClock });
  const ask = (url: string, accept?: string): string => {
    let answer = "";
    proxyStatusListener({ metrics: { render: () => "m 1\n" }, mode: "nftables", zpages: pages, configz })({ url, headers: { accept } } as never, { writeHead(code: number, head: Record<string, string> = {}) { answer = `${code} ${"warning" in head ? `(${head["warning"]}) ` : ""}`; return this; }, end(text: string) { answer += text; } } as never);
    return answer;
  };
  expect(["/proxyMode", "/metrics", "/healthz", "/"].map((url) => ask(url))).toEqual(["200 nftables", "200 m 1\n", "200 ok", "404 404 page not found\n"]);
  expect([ask("/flagz"), ask("/statusz"), ask("/flagz", "application/json")]).toEqual([expect.stringContaining("\nkube-proxy flagz\n"), expect.stringContaining("\nPaths: /configz\n"), expect.stringMatching(/^406 .*"NotAcceptable"/)]);
  expect(ask("/statusz", "application/json;v=v1alpha1;g=config.k8s.io;as=Statusz")).toMatch(/^200 \(299 - "This version of the statusz endpoint is deprecated/);
  expect(JSON.parse(ask("/configz").slice(4))).toEqual({ "kubeproxy.config.k8s.io": expect.objectContaining({
    kind: "KubeProxyConfiguration", mode: "nftables", healthzBindAddress: "[::]:10256", metricsBindAddress: "", clusterCIDR: "10.42.0.0/16", nodePortAddresses: null,
    conntrack: { maxPerCore: 32_768, min: 131_072, tcpEstablishedTimeout: "24h0m0s", tcpCloseWaitTimeout: "1h0m0s", tcpBeLiberal: false, udpTimeout: "0s", udpStreamTimeout: "0s" },
  }) });
  expect(ask("/metrics/slis")).toContain('kubernetes_healthcheck{name="ping",type="healthz"} 1');
});

test("chains that cannot be deleted yet are counted, and what has changed is told until rules show it", async () => {
  await using world = start();
  const { api, scripts, proxy, metrics } = world;
  await proxy.whenSynced(signal);
  world.hold();
  await api.client.resource(SERVICES).create(web as never, { signal });
  await api.client.resource(ENDPOINT_SLICES).create(slice("10.42.1.2") as never, { signal });
  await eventually(() => scripts.join(), (all) => all.includes("10.43.0.5"));
  await api.client.resource(SERVICES).update({ ...web, metadata: { ...web.metadata, annotations: { a: "b" } } } as never, { signal });
  await eventually(() => metrics.render(), (text) => text.includes("kubeproxy_sync_proxy_rules_service_changes_pending 1\n"));
  world.release();
  await eventually(() => scripts.join(), (all) => all.includes("goto udp-endpoints/1"));
  await eventually(() => metrics.render(), (text) => text.includes("kubeproxy_sync_proxy_rules_service_changes_pending 0\n") && text.includes("kubeproxy_sync_proxy_rules_endpoint_changes_pending 0\n"));
  world.refuseNextDeletion();
  await api.client.resource(SERVICES).delete(web as never, {}, { signal });
  await eventually(() => metrics.render(), (text) => text.includes('kubeproxy_sync_proxy_rules_nftables_cleanup_failures_total{ip_family="IPv4"} 1\n'));
});

test("when rules were last to be written is told of each family", () => {
  const metrics = metricsRegistry();
  proxyMetrics(metrics).queued(3_000);
  expect(metrics.render().split("\n").filter((line) => line.startsWith("kubeproxy_sync_proxy_rules_last_queued"))).toEqual(['kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds{ip_family="IPv4"} 3', 'kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds{ip_family="IPv6"} 3']);
});

test("how long endpoints took to be reached and flows to be forgotten is told of each family", () => {
  const metrics = metricsRegistry();
  const told = proxyMetrics(metrics);
  told.finished({ nowMs: 3_000, triggered: [{ family: 6, ms: 1_000 }], ports: [] });
  told.forgot(4, 3, 0.002);
  expect(metrics.render()).toContain('kubeproxy_network_programming_duration_seconds_sum{ip_family="IPv6"} 2\n');
  expect(metrics.render()).toContain('kubeproxy_conntrack_reconciler_deleted_entries_total{ip_family="IPv4"} 3\n');
  expect(metrics.render()).toContain('kubeproxy_conntrack_reconciler_sync_duration_seconds_count{ip_family="IPv4"} 1\n');
});

test("where Services are somebody else's to see to, rules of before are removed, and what cannot be removed does not hold up the node", async () => {
  const run = async ({ tables, refuses }: { readonly tables: readonly string[]; readonly refuses: boolean }) => {
    const stop = new AbortController(), scripts: string[] = [];
    const nft = {
      async apply(text: string) { if (refuses) throw new Error("refused"); scripts.push(text); },
      names: async (family: string, table: string) => (tables.includes(`${family} ${table}`) ? { chains: ["services"], sets: [], maps: [] } : undefined), chain: async () => undefined,
    };
    await noServiceProxy({ nft, log: silentLog }).run(stop.signal, () => stop.abort());
    return scripts;
  };
  expect(await run({ tables: ["ip coracle", "ip6 coracle", "ip kube-proxy"], refuses: false })).toEqual(["delete table ip coracle\n", "delete table ip6 coracle\n"]);
  expect(await run({ tables: ["ip coracle"], refuses: false })).toEqual(["delete table ip coracle\n"]);
  expect(await run({ tables: [], refuses: false })).toEqual([]);
  expect(await run({ tables: ["ip coracle"], refuses: true })).toEqual([]);
});
