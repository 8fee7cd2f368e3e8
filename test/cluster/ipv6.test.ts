/**
 * A cluster that knows IPv6 only, on a machine without a default route for it. And the rules of the service proxy in a real kernel, by the bundled nft: whatever a Service becomes is written as what differs, and a proxy that starts anew takes over the
 * table it finds. Where the machine has an nft of its own, that one can list what has come of it.
 */
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { nftProgram } from "../../node/os/exec-nft.ts";
import type { PortPlan } from "../../node/proxy/desired.ts";
import { LiveRuleset } from "../../node/proxy/nftables/live-ruleset.ts";
import { NftTable } from "../../node/proxy/nftables/nftables.ts";
import { renderPort } from "../../node/proxy/nftables/render.ts";
import { eventually, Host, switchDown } from "./host.ts";

const ADDRESS = "fd30::41";
let wall: Host;
let nftPath: string;
beforeAll(async () => {
  wall = await Host.up("wall", "172.30.0.41");
  await wall.ok(["ip", "-6", "addr", "add", `${ADDRESS}/64`, "dev", "eth0", "nodad"]);
  await wall.start("--cluster-cidr", "fd42::/56", "--service-cidr", "fd43::/112", "--cluster-dns", "fd43::a", "--node-ip", ADDRESS);
  nftPath = join(wall.dataDir, "agent/current/bin/nft");
  await eventually("the bundled tools are unpacked", async () => (await wall.run([nftPath, "--version"])).code === 0);
});
afterAll(async () => {
  await wall?.[Symbol.asyncDispose]();
  await switchDown();
});

const { signal } = new AbortController();
const CIDRS = { 4: ["10.42.0.0/16"], 6: ["fd42::/56"] } as const;
/** Everything a Service may become, and back. */
function lives(family: 4 | 6): PortPlan[] {
  const ip = (v4: string, v6: string): string => (family === 4 ? v4 : v6);
  const backend = (n: number, local = false) => ({ ip: ip(`10.42.0.${n}`, `fd42::${n}`), port: 8080, local });
  const base: PortPlan = {
    family, namespace: "default", service: "web", portName: "http", protocol: "tcp", clusterIp: ip("10.43.0.5", "fd43::5"), port: 80, nodePort: 0, externalIps: [], loadBalancerIps: [], sourceRanges: [], nodeInSourceRanges: false,
    affinitySeconds: 0, internalLocal: false, externalLocal: false, preservesDestination: false, clusterBackends: [], localBackends: [], servingBackends: [], anyBackend: true,
  };
  const outside = { nodePort: 30080, externalIps: [ip("192.0.2.1", "2001:db8::1")], loadBalancerIps: [ip("192.0.2.2", "2001:db8::2")], sourceRanges: [ip("10.0.0.0/8", "fd00::/8")], nodeInSourceRanges: true };
  const kinds: Partial<PortPlan>[] = [{}, { ...outside, externalLocal: true }, { affinitySeconds: 60 }, { ...outside, affinitySeconds: 90 }, { protocol: "udp" }, { ...outside, protocol: "udp" }, { ...outside, protocol: "sctp" }];
  const crews = [[backend(1, true), backend(2)], [backend(1, true), backend(2), backend(3)], []];
  return kinds.flatMap((kind) => crews.map((crew): PortPlan => ({ ...base, ...kind, clusterBackends: crew, localBackends: crew.filter(({ local }) => local), anyBackend: crew.length > 0 })));
}

test.each([4, 6] as const)("IPv%i: each change is written as what differs; a new start takes over", async (family) => {
  const nft = nftProgram({
    path: nftPath, run: async (command, args, { stdin = "" } = {}) => {
      const { code, ...output } = await wall.run([command, ...args], { input: String(stdin) });
      return { exitCode: code, ...output };
    },
  });
  const trouble: string[] = [];
  const say = (message: string): void => void trouble.push(message);
  const log = { debug: say, info: say, warn: say, error: say, with: () => log };
  const open = (): NftTable => new NftTable({ nft, frame: { table: "rehearsal", family, clusterCidrs: CIDRS[family], serviceCidrs: [] }, log });
  const live = new LiveRuleset();
  let table = open();
  const plans = lives(family), outcomes: string[] = [];
  for (const [i, plan] of plans.entries()) {
    live.set("default/web", [renderPort(plan, CIDRS[family])]);
    if (i % 10 === 9) table = open();
    outcomes.push(await table.sync(live, signal, live.delta()));
    live.commit();
    if (i % 10 === 4 && Bun.which("nft") !== null) expect(await wall.ok(["nft", "list", "ruleset"])).toContain("rehearsal");
  }
  expect(outcomes).toEqual(plans.map((_, i) => (i === 0 || i % 10 === 9 ? "full" : "partial")));
  live.set("default/web", undefined);
  await table.sync(live, signal, live.delta());
  const left = await nft.names(family === 4 ? "ip" : "ip6", "rehearsal", {});
  expect([...left!.chains, ...left!.sets, ...left!.maps].filter((name) => name.includes("/"))).toEqual([]);
  expect(trouble).toEqual([]);
});

test("an IPv6 cluster: pods, Services by address and by name, node ports, load balancers, host ports", async () => {
  await wall.importImage("busybox");
  await wall.apply(`
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: httpd
    image: busybox:1
    imagePullPolicy: IfNotPresent
    command: [sh, -c, "mkdir -p /www; echo six > /www/index.html; exec httpd -f -p 8080 -h /www"]
    ports: [{name: http, containerPort: 8080, hostPort: 18080}]
    readinessProbe: {httpGet: {path: /, port: http}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 8081, targetPort: http, nodePort: 30081}]}
`);
  await wall.kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=300s");
  const ip = await wall.kubectl("get", "service", "web", "-o", "jsonpath={.spec.clusterIP}");
  expect(ip).toMatch(/^fd43::/);
  for (const at of [`${ip}]:8081`, `${ADDRESS}]:30081`, `${ADDRESS}]:8081`, `${ADDRESS}]:18080`]) await eventually(`[${at} answers`, async () => (await wall.run(["curl", "-gsS", "-m", "3", `http://[${at}/`])).stdout === "six\n");
  expect(await wall.kubectl("exec", "web", "--", "wget", "-T", "5", "-qO-", "http://web.default.svc.cluster.local:8081/")).toBe("six\n");
});

test("endpoints that change are in the kernel as nft reads them", async () => {
  const endpoints = (address: string): string => `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: far, labels: {kubernetes.io/service-name: far}}, addressType: IPv6, ports: [{name: "", port: 9376}], endpoints: [{addresses: ["${address}"]}]}`;
  await wall.apply(`{apiVersion: v1, kind: Service, metadata: {name: far}, spec: {clusterIP: "fd43::99", ports: [{port: 80}]}}\n---\n${endpoints("2001:db8::7")}`);
  const held = (address: string) => async () => (await wall.ok([nftPath, "list", "map", "ip6", "coracle", "tcp-endpoints"])).includes(`fd43::99 . 80 . 0 : ${address} . 9376`);
  await eventually("the endpoint is there", held("2001:db8::7"));
  await wall.apply(endpoints("2001:db8::8"));
  await eventually("the other is in its place", held("2001:db8::8"));
  await wall.kubectl("delete", "endpointslice", "far");
  await eventually("there is none", async () => (await wall.ok([nftPath, "list", "map", "ip6", "coracle", "no-endpoint-services"])).includes('fd43::99 . tcp . 80 comment "default/far" : goto reject-chain'));
});
