import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import type { Service } from "../../../core/api/gen/core.v1.ts";
import type { EndpointSlice } from "../../../core/api/gen/discovery.v1.ts";
import type { Informers } from "../../../core/client/informer-factory.ts";
import { ENDPOINT_SLICES, NODES, SERVICES } from "../../../core/client/resources.ts";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import { silentLog } from "../../../core/observe/log.ts";
import { metricsRegistry } from "../../../core/observe/metrics.ts";
import { eventually as eventuallyAsked } from "../../../test/eventually.ts";
import { eventually } from "../../../test/fake-api.ts";
import { fakeHcn } from "../../../test/fake-hcn.ts";
import { staticInformer, stored } from "../../../test/static-informer.ts";
import { featuresOf } from "../../os/hcn.ts";
import { planService, type PortPlan } from "../desired.ts";
import { applyHns } from "./apply.ts";
import { hnsProxy } from "./hns-proxy.ts";
import { planHns } from "./plan.ts";
import { type HnsFacts, remoteMac, renderHns } from "./render.ts";

const OVERLAY: HnsFacts = {
  networkType: "Overlay", nodeIp: "192.168.1.10", sourceVip: "10.42.7.254", hostMac: "00-15-5D-00-00-01", directServerReturn: true, sessionAffinity: true,
  remoteSubnets: [{ prefix: "10.42.1.0/24", providerAddress: "192.168.1.11" }],
};
const NODE = { name: "win", ips: ["192.168.1.10"], zone: undefined };

/** "10.42.7.5 here", "10.42.1.9": endpoints, on this node or elsewhere. */
function ports(spec: object, endpoints: readonly string[], { port = 8080 }: { readonly port?: number } = {}): readonly PortPlan[] {
  const service = stored<Service>("v1", "Service", "default/web", { spec: { type: "ClusterIP", clusterIP: "10.43.0.80", clusterIPs: ["10.43.0.80"], ports: [{ port: 80, protocol: "TCP" }], ...spec } });
  const slice = stored<EndpointSlice>("discovery.k8s.io/v1", "EndpointSlice", "default/web-1", {
    addressType: "IPv4", ports: [{ name: "", port, protocol: "TCP" }], endpoints: endpoints.map((text) => { const [address, here] = text.split(" "); return { addresses: [address], conditions: { ready: true }, nodeName: here ? "win" : "other" }; }),
  });
  return planService(service, [slice], NODE).ports;
}

/** One line a load balancer: what it listens on, where it sends, and its flags. */
function lines(plans: readonly PortPlan[], facts: HnsFacts = OVERLAY): string[] {
  return renderHns(plans, facts).loadBalancers.map(({ vip, externalPort, internalPort, backends, sourceVip, distribution, mappingFlags, flags }) =>
    `${vip || "node"}:${externalPort} → ${backends.join(",")}:${internalPort} from ${sourceVip}${distribution ? ` by ${distribution}` : ""} mapping=${mappingFlags} flags=${flags}`);
}

test("a Service is a load balancer for each of its addresses", () => {
  const both = ["10.42.7.5 here", "10.42.1.9"];
  for (const [what, spec, endpoints, expected] of [
    ["cluster IP", {}, both, ["10.43.0.80:80 → 10.42.1.9,10.42.7.5:8080 from 10.42.7.254 mapping=0 flags=1"]],
    ["only here", { internalTrafficPolicy: "Local" }, both, ["10.43.0.80:80 → 10.42.7.5:8080 from 10.42.7.254 mapping=0 flags=1"]],
    ["affinity", { sessionAffinity: "ClientIP" }, both, ["10.43.0.80:80 → 10.42.1.9,10.42.7.5:8080 from 10.42.7.254 by 2 mapping=0 flags=1"]],
    ["nobody", {}, [], []],
    ["outside of the cluster", {}, ["203.0.113.7"], ["10.43.0.80:80 → 203.0.113.7:8080 from 192.168.1.10 mapping=0 flags=1"]],
    ["another node", {}, ["192.168.1.11"], ["10.43.0.80:80 → 192.168.1.11:8080 from 192.168.1.10 mapping=0 flags=1"]],
    ["node port", { type: "NodePort", ports: [{ port: 80, nodePort: 30080 }] }, both, [
      "10.43.0.80:80 → 10.42.1.9,10.42.7.5:8080 from 10.42.7.254 mapping=0 flags=1", "node:30080 → 10.42.1.9,10.42.7.5:8080 from 10.42.7.254 mapping=18 flags=0",
    ]],
    ["node port, only here", { type: "NodePort", externalTrafficPolicy: "Local", ports: [{ port: 80, nodePort: 30080 }] }, both, [
      "10.43.0.80:80 → 10.42.1.9,10.42.7.5:8080 from 10.42.7.254 mapping=0 flags=1", "node:30080 → 10.42.7.5:8080 from 10.42.7.254 mapping=18 flags=1",
    ]],
    ["external IP", { externalIPs: ["198.51.100.3"] }, ["10.42.7.5 here"], [
      "10.43.0.80:80 → 10.42.7.5:8080 from 10.42.7.254 mapping=0 flags=1", "198.51.100.3:80 → 10.42.7.5:8080 from 10.42.7.254 mapping=16 flags=0",
    ]],
  ] as const) expect([what, ...lines(ports(spec, endpoints))]).toEqual([what, ...expected]);
});

test("a load balancer that is to preserve the destination leads to this node's endpoints, where Windows can answer directly", () => {
  const [port] = ports({ type: "NodePort", externalIPs: ["198.51.100.3"], ports: [{ port: 80, nodePort: 30080 }] }, ["10.42.7.5 here", "10.42.1.9"]);
  const plan = { ...port!, loadBalancerIps: ["198.51.100.9"], preservesDestination: true };
  const both = "10.42.1.9,10.42.7.5:8080 from 10.42.7.254", here = "10.42.7.5:8080 from 10.42.7.254";
  expect(lines([plan])).toEqual([`10.43.0.80:80 → ${both} mapping=0 flags=1`, `node:30080 → ${here} mapping=18 flags=0`, `198.51.100.3:80 → ${both} mapping=16 flags=0`, `198.51.100.9:80 → ${here} mapping=28 flags=1`]);
  expect(lines([plan], { ...OVERLAY, directServerReturn: false }).at(-1)).toBe(`198.51.100.9:80 → ${both} mapping=16 flags=0`);
});

test("on a bridge nothing is wrapped, and an old Windows answers through the proxy", () => {
  const facts: HnsFacts = { ...OVERLAY, networkType: "L2Bridge", directServerReturn: false, sessionAffinity: false, remoteSubnets: [] };
  expect(lines(ports({ sessionAffinity: "ClientIP" }, ["10.42.1.9"]), facts)).toEqual(["10.43.0.80:80 → 10.42.1.9:8080 from 10.42.7.254 mapping=0 flags=0"]);
  const { endpoints, skipped } = renderHns(ports({ sessionAffinity: "ClientIP" }, ["10.42.1.9"]), facts);
  expect([...endpoints.values()]).toEqual([{ ip: "10.42.1.9", mac: "02-11-0a-2a-01-09", providerAddress: undefined }]);
  expect(skipped).toEqual(["default/web:80 session affinity is not supported by this Windows"]);
});

test("what is elsewhere needs an endpoint that knows the way, and so does the cluster IP", () => {
  const { endpoints } = renderHns(ports({}, ["10.42.7.5 here", "10.42.1.9", "203.0.113.7"]), OVERLAY);
  expect(Object.fromEntries(endpoints)).toEqual({
    "10.43.0.80": { ip: "10.43.0.80", mac: OVERLAY.hostMac, providerAddress: "192.168.1.10" },
    "10.42.1.9": { ip: "10.42.1.9", mac: "02-11-0a-2a-01-09", providerAddress: "192.168.1.11" },
    "203.0.113.7": { ip: "203.0.113.7", mac: "02-11-cb-00-71-07", providerAddress: "192.168.1.10" },
  });
  expect(remoteMac("fd00::a:b")).toBe("02-11-00-0a-00-0b");
});

test("what Windows cannot do is said", () => {
  const [tcp] = ports({}, ["10.42.1.9"]);
  const { skipped, loadBalancers } = renderHns([{ ...tcp!, protocol: "sctp" }, { ...tcp!, family: 6 }, { ...tcp!, clusterBackends: [...tcp!.clusterBackends, { ip: "10.42.1.7", port: 9, local: false }] }], OVERLAY);
  expect(skipped).toEqual(["default/web:80 SCTP is not supported", "default/web:80 IPv6 is not supported on an overlay", "default/web:80 1 backends with another target port than 9"]);
  expect(loadBalancers.map(({ backends }) => backends)).toEqual([["10.42.1.7"]]);
});

test("HNS is brought from anything to what is wanted, and then left alone", () => {
  const hcn = fakeHcn();
  const networkId = hcn.createNetwork({ Name: "coracle", Type: "Overlay" }).ID;
  const sync = (plans: readonly PortPlan[]) => {
    hcn.calls.length = 0;
    const plan = planHns(renderHns(plans, OVERLAY), { endpoints: hcn.endpoints(), loadBalancers: hcn.loadBalancers() });
    applyHns(plan, { hcn, networkId });
    return { calls: [...hcn.calls], awaited: plan.awaited };
  };
  const two = ports({}, ["10.42.7.5 here", "10.42.1.9"]);

  // the pod here has no endpoint yet
  expect(sync(two)).toEqual({ calls: ["createEndpoint 10.43.0.80", "createEndpoint 10.42.1.9", "createLoadBalancer 10.43.0.80:80/6 → 10.42.1.9"], awaited: ["10.42.7.5"] });
  hcn.addPod(networkId, "10.42.7.5");
  expect(sync(two)).toEqual({ calls: ["deleteLoadBalancer 10.43.0.80:80/6", "createLoadBalancer 10.43.0.80:80/6 → 10.42.1.9 10.42.7.5"], awaited: [] });
  expect(sync(two).calls).toEqual([]);

  // another target port, and the backend elsewhere is gone
  expect(sync(ports({}, ["10.42.7.5 here"], { port: 9090 })).calls).toEqual(["deleteLoadBalancer 10.43.0.80:80/6", "createLoadBalancer 10.43.0.80:80/6 → 10.42.7.5", "deleteEndpoint 10.42.1.9"]);
  // Windows has kept a remote endpoint with the address of a pod that is here now
  hcn.createEndpoint(networkId, { IpConfigurations: [{ IpAddress: "10.42.7.5" }], Flags: 1 });
  expect(sync(ports({}, ["10.42.7.5 here"], { port: 9090 })).calls).toEqual(["deleteEndpoint 10.42.7.5"]);
  // the service is gone
  expect(sync([]).calls).toEqual(["deleteLoadBalancer 10.43.0.80:80/6", "deleteEndpoint 10.43.0.80"]);
  expect(hcn.endpoints().map(({ IpConfigurations }) => IpConfigurations?.[0]?.IpAddress)).toEqual(["10.42.7.5"]); // the pod's own
});

test("one service that HNS refuses does not keep the others away", () => {
  const hcn = fakeHcn();
  const networkId = hcn.createNetwork({ Name: "coracle", Type: "Overlay" }).ID;
  const create = hcn.createLoadBalancer;
  hcn.createLoadBalancer = (settings) => { if (settings.FrontendVIPs[0] === "10.43.0.80") throw new Error("no"); return create(settings); };
  const wanted = renderHns([...ports({}, ["10.42.1.9"]), ...ports({ clusterIP: "10.43.0.81", clusterIPs: ["10.43.0.81"] }, ["10.42.1.9"])], OVERLAY);
  expect(() => applyHns(planHns(wanted, { endpoints: [], loadBalancers: [] }), { hcn, networkId })).toThrow("no");
  expect(hcn.loadBalancers().map(({ FrontendVIPs }) => FrontendVIPs)).toEqual([["10.43.0.81"]]);
});

test("the proxy follows services, pods and the network", async () => {
  const hcn = fakeHcn();
  const networkId = hcn.createNetwork({ Name: "coracle", Type: "Overlay" }).ID;
  const services = staticInformer<Service>(), slices = staticInformer<EndpointSlice>(), none = staticInformer();
  const informers = { of: (ref: unknown) => (ref === SERVICES ? services : ref === ENDPOINT_SLICES ? slices : none) } as unknown as Informers;
  const metrics = metricsRegistry();
  let network: { id: string; type: "Overlay"; sourceVip: string; hostMac: string; remoteSubnets: HnsFacts["remoteSubnets"] } | undefined;
  let tell = (): void => {};
  const stop = new AbortController();
  const proxy = hnsProxy({ informers, nodeName: "win", nodeIps: ["fd00::10", "192.168.1.10"], network: () => network, onNetworkChange: (handler) => { tell = handler; }, hcn: () => hcn, clock: systemClock, log: silentLog, metrics });
  const running = proxy.run(stop.signal, () => {});
  services.put(stored<Service>("v1", "Service", "default/web", { spec: { clusterIP: "10.43.0.80", clusterIPs: ["10.43.0.80"], ports: [{ port: 80 }] } }));
  slices.put(stored<EndpointSlice>("discovery.k8s.io/v1", "EndpointSlice", "default/web-1", { metadata: { labels: { "kubernetes.io/service-name": "web" } }, addressType: "IPv4", ports: [{ name: "", port: 8080 }], endpoints: [{ addresses: ["10.42.1.9"], conditions: { ready: true }, nodeName: "other" }] }));
  await Bun.sleep(20);
  expect(hcn.loadBalancers()).toEqual([]); // no network yet
  network = { id: networkId, type: "Overlay", sourceVip: "10.42.7.254", hostMac: "00-15-5D-00-00-01", remoteSubnets: OVERLAY.remoteSubnets };
  tell();
  await eventually(() => hcn.loadBalancers().length, (count) => count === 1);
  expect(hcn.endpoints().find(({ IpConfigurations }) => IpConfigurations?.[0]?.IpAddress === "10.43.0.80")?.Policies).toEqual([{ Type: "ProviderAddress", Settings: { ProviderAddress: "192.168.1.10" } }]); // an overlay is of IPv4
  services.remove(services.get("default/web" as never) as Service);
  await eventually(() => hcn.loadBalancers().length, (count) => count === 0);
  stop.abort();
  await running;
});

test("where an API server is reached is no Service's external address on Windows either", async () => {
  const hcn = fakeHcn(), none = staticInformer(), stop = new AbortController();
  const network = { id: hcn.createNetwork({ Name: "coracle", Type: "Overlay" }).ID, type: "Overlay" as const, sourceVip: "10.42.7.254", hostMac: "00-15-5D-00-00-01", remoteSubnets: OVERLAY.remoteSubnets };
  const slice = (service: string, address: string) => stored<EndpointSlice>("discovery.k8s.io/v1", "EndpointSlice", `default/${service}`, { metadata: { labels: { "kubernetes.io/service-name": service } }, addressType: "IPv4", ports: [{ name: "", port: 6443, protocol: "TCP" }], endpoints: [{ addresses: [address], conditions: { ready: true } }] });
  const services = staticInformer(stored<Service>("v1", "Service", "default/web", { spec: { clusterIPs: ["10.43.0.80"], externalIPs: ["192.168.1.9", "192.0.2.1"], ports: [{ port: 6443, protocol: "TCP" }] } })), slices = staticInformer(slice("kubernetes", "192.168.1.9"), slice("web", "10.42.1.9"));
  const informers = { of: (ref: unknown) => (ref === SERVICES ? services : ref === ENDPOINT_SLICES ? slices : none) } as unknown as Informers;
  const running = hnsProxy({ informers, nodeName: "win", nodeIps: ["192.168.1.10"], network: () => network, onNetworkChange: () => undefined, hcn: () => hcn, clock: systemClock, log: silentLog, metrics: metricsRegistry() }).run(stop.signal, () => {});
  expect((await eventually(() => hcn.loadBalancers().flatMap(({ FrontendVIPs = [] }) => FrontendVIPs), (all) => all.length > 1)).toSorted()).toEqual(["10.43.0.80", "192.0.2.1"]);
  stop.abort();
  await running;
});

test("a Windows node tells how its proxy is: late while it has no network, and by which means it works", async () => {
  const hcn = fakeHcn();
  const services = staticInformer<Service>(), nodes = staticInformer(), none = staticInformer<EndpointSlice>();
  nodes.put(stored("v1", "Node", "win"));
  const informers = { of: (ref: unknown) => (ref === SERVICES ? services : ref === NODES ? nodes : none) } as unknown as Informers;
  let ms = 0, network: { id: string; type: "L2Bridge"; sourceVip: string; hostMac: string; remoteSubnets: [] } | undefined;
  let tell = (): void => {};
  const at = async (): Promise<{ address: string; port: number }> => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    return { address: "127.0.0.1", port };
  };
  const healthz = await at(), status = await at(), told: string[] = [];
  const stop = new AbortController();
  const proxy = hnsProxy({
    informers, nodeName: "win", nodeIps: ["192.168.1.10"], network: () => network, onNetworkChange: (handler) => { tell = handler; }, hcn: () => hcn, healthz, status,
    pages: { configz: () => ({ of: "it" }) }, events: { report: ({ metadata: { name } }, { reason, action }) => void told.push(`${name} ${reason} ${action}`) }, clock: { ...systemClock, uptimeMs: () => ms }, log: silentLog, metrics: metricsRegistry(),
  });
  const running = proxy.run(stop.signal, () => {});
  const ask = async ({ port }: { port: number }, path: string): Promise<string> => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`);
    return `${response.status} ${await response.text()}`;
  };
  services.put(stored<Service>("v1", "Service", "default/web", { spec: { clusterIP: "10.43.0.80", clusterIPs: ["10.43.0.80"], ports: [{ port: 80 }] } }));
  expect(await eventuallyAsked("it answers", () => ask(healthz, "/healthz"))).toMatch(/^200 .*"nodeEligible":true,"healthy":true/);
  ms = 60_000;
  expect(await ask(healthz, "/livez")).toMatch(/^503 .*"healthy":false/);
  network = { id: hcn.createNetwork({ Name: "coracle", Type: "L2Bridge" }).ID, type: "L2Bridge", sourceVip: "", hostMac: "", remoteSubnets: [] };
  tell();
  await eventuallyAsked("it is well again", async () => (await ask(healthz, "/livez")).startsWith('200 ') || undefined);
  expect(told).toEqual(["win Starting StartKubeProxy"]);
  expect([await ask(status, "/proxyMode"), await ask(status, "/configz")]).toEqual(["200 kernelspace", '200 {"of":"it"}']);
  expect(await ask(status, "/metrics")).toMatch(/kubeproxy_sync_proxy_rules_duration_seconds_count\{ip_family="IPv4"\} \d/);
  stop.abort();
  await running;
});

test("what Windows can do follows from HNS' version", () => {
  const of = (Major: number, Minor: number): string => Object.entries(featuresOf({ Major, Minor })).filter(([, has]) => has).map(([name]) => name).join(" ");
  expect([of(9, 2), of(9, 5), of(10, 0), of(10, 2), of(15, 4)]).toEqual(["", "directServerReturn", "", "directServerReturn", "directServerReturn sessionAffinity"]);
});
