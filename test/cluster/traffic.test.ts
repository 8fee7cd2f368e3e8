/** What comes from outside, and what may pass inside: load balancers, the ingress and network policies on two machines, with and without their server. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Ingress } from "../../core/api/gen/networking.v1.ts";
import type { Node, Pod, Service } from "../../core/api/gen/core.v1.ts";
import { systemRandom } from "../../core/lifecycle/random.ts";
import { altNamesOf } from "../../core/pki/alt-names.ts";
import { authority, generateKey, keyPem, selfSign } from "../../core/pki/authority.ts";
import { spkiOf } from "../../core/pki/signature.ts";
import { VNI } from "../../node/network/vxlan.ts";
import { macFor } from "../../node/network/vxlan-plan.ts";
import { eventually, Host, switchDown } from "./host.ts";

let dock: Host;
let pier: Host;
let sea: Host; // no node: where clients come from

beforeAll(async () => {
  [dock, pier, sea] = await Promise.all([Host.up("dock", "172.30.0.31"), Host.up("pier", "172.30.0.32"), Host.up("sea", "172.30.0.33")]);
  await dock.start();
  await dock.nodeReady();
  await pier.startAgent("--server", "https://172.30.0.31:6443", "--token", (await dock.ok([dock.binary, "token", "create"])).trim());
  await dock.nodeReady("pier");
  await Promise.all([dock, pier].map((host) => host.importImage("busybox")));
});
afterAll(async () => {
  await Promise.all([dock, pier, sea].map((host) => host?.[Symbol.asyncDispose]()));
  await switchDown();
});

const json = async <T>(...args: string[]): Promise<T> => JSON.parse(await dock.kubectl("get", ...args, "-o", "json")) as T;
const page = async (...args: string[]): Promise<string> => (await sea.run(["curl", "-sS", "-m", "15", ...args])).stdout;
/** Paths of a certificate for web.test and its key; who signed it stands in ca.crt. */
async function certificate(): Promise<[string, string]> {
  const validity = { notBeforeMs: 0, notAfterMs: Date.now() + 86_400_000 };
  const caKey = await generateKey(), key = await generateKey();
  const ca = selfSign("somebody", { ...validity, key: caKey, random: systemRandom });
  const pem = authority(ca, keyPem(caKey), systemRandom).issue({ ...validity, subject: { commonName: "web.test", organizations: [] }, spki: spkiOf(key), usages: ["digital signature", "server auth"], altNames: altNamesOf(["web.test"]) });
  const at = (name: string): string => join(dock.directory, name);
  for (const [name, text] of [["ca.crt", ca], ["web.crt", pem], ["web.key", keyPem(key)]] as const) writeFileSync(at(name), text);
  return [at("web.crt"), at("web.key")];
}
const WORLD = `
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  nodeName: pier
  terminationGracePeriodSeconds: 0
  containers:
  - name: httpd
    image: busybox:1
    imagePullPolicy: IfNotPresent
    command: [sh, -c, 'mkdir -p /www/cgi-bin; echo "$WHO" > /www/cgi-bin/who; chmod +x /www/cgi-bin/who; echo web > /www/index.html; dd if=/dev/zero of=/www/big bs=1M count=3 2>/dev/null; exec httpd -f -p 8080 -h /www']
    env: [{name: WHO, value: "#!/bin/sh\\necho\\necho $REMOTE_ADDR $HTTP_X_FORWARDED_PROTO"}]
    ports: [{name: http, containerPort: 8080, hostPort: 18080}]
    readinessProbe: {httpGet: {path: /, port: http}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: http}]}
---
apiVersion: v1
kind: Service
metadata: {name: everywhere}
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 8081, targetPort: http}]}
---
apiVersion: v1
kind: Service
metadata: {name: there}
spec: {type: LoadBalancer, externalTrafficPolicy: Local, allocateLoadBalancerNodePorts: false, loadBalancerSourceRanges: [172.30.0.33/32], selector: {app: web}, ports: [{port: 8082, targetPort: http}]}
---
${["friend", "foe"].map((name) => `
apiVersion: v1
kind: Pod
metadata: {name: ${name}, labels: {is: ${name}}, annotations: {kubernetes.io/ingress-bandwidth: ${name === "friend" ? "8G" : "8M"}}}
spec: {nodeName: ${name === "friend" ? "dock" : "pier"}, terminationGracePeriodSeconds: 0, containers: [{name: c, image: "busybox:1", imagePullPolicy: IfNotPresent, command: [sleep, "3600"]}]}
---`).join("\n")}
`;
const ingress = (secret: string): string => `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec:
  tls: [{hosts: [web.test], secretName: ${secret}}]
  rules: [{host: web.test, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {name: http}}}}]}}]
`;

test("Services of type LoadBalancer are reached at the nodes, as their policies say", async () => {
  await dock.apply(WORLD);
  await dock.kubectl("wait", "--for=condition=Ready", "pod", "--all", "--timeout=300s");
  const ips = async (name: string): Promise<(string | undefined)[]> => ((await json<Service>("service", name)).status?.loadBalancer?.ingress ?? []).map(({ ip }) => ip);
  await eventually("both have their addresses", async () => (await ips("everywhere")).join() === "172.30.0.31,172.30.0.32" && (await ips("there")).join() === "172.30.0.32");
  for (const ip of ["172.30.0.31", "172.30.0.32"]) await eventually(`port 8081 of ${ip} answers`, async () => (await page(`http://${ip}:8081/`)) === "web\n");
  expect(await page("http://172.30.0.32:8082/cgi-bin/who")).toMatch(/172\.30\.0\.33/); // the client's own address
  expect((await dock.run(["curl", "-sS", "-m", "2", "http://172.30.0.32:8082/"])).stdout).toBe(""); // not in the source ranges
});

test("a pod has an address of its own: its clients see each other's, on every node, and it may have a port of its node", async () => {
  const ipOf = async (pod: string): Promise<string> => (await json<Pod>("pod", pod)).status?.podIP ?? "";
  const ips = await Promise.all(["web", "friend", "foe"].map(ipOf));
  expect(new Set(ips).size).toBe(3);
  for (const at of [`${ips[0]}:8080`, "web.default.svc.cluster.local"]) {
    const seen = await Promise.all(["friend", "foe"].map((pod) => dock.kubectl("exec", pod, "--", "wget", "-T", "5", "-qO-", `http://${at}/cgi-bin/who`)));
    expect(seen.map((text) => text.trim().split(" ")[0]?.replace("::ffff:", "").replace(/^\[|\]$/g, ""))).toEqual([ips[1], ips[2]]);
  }
  expect(await page("http://172.30.0.32:18080/")).toBe("web\n");
  expect((await sea.run(["curl", "-sS", "-m", "3", "http://172.30.0.31:18080/"])).stdout).toBe("");
});

test("a machine that is on no other network reaches Services all the same, also those of a range that was added since", async () => {
  const { spec } = await json<Service>("service", "web");
  await dock.apply("{apiVersion: networking.k8s.io/v1, kind: ServiceCIDR, metadata: {name: more}, spec: {cidrs: [10.44.7.0/24]}}");
  await dock.kubectl("wait", "--for=condition=Ready", "servicecidr", "more", "--timeout=300s");
  await dock.apply("{apiVersion: v1, kind: Service, metadata: {name: more}, spec: {clusterIP: 10.44.7.9, selector: {app: web}, ports: [{port: 80, targetPort: http}]}}");
  const [gone] = (await pier.ok(["ip", "route", "show", "default"])).trim().split("\n");
  await pier.ok(["ip", "route", "del", "default"]);
  expect((await pier.run(["curl", "-sS", "-m", "5", `http://${spec.clusterIP}/`])).stdout).toBe("web\n");
  await eventually("the new range is reached", async () => (await pier.run(["curl", "-sS", "-m", "2", "http://10.44.7.9/"])).stdout === "web\n");
  expect(await dock.kubectl("exec", "foe", "--", "wget", "-T", "5", "-qO-", "http://10.44.7.9/")).toBe("web\n");
  await pier.sh(`ip route add ${gone}`);
});

test("the bandwidth of a pod is what its annotations say, also towards its neighbours", async () => {
  const began = performance.now();
  expect(await dock.kubectl("exec", "foe", "--", "sh", "-c", "wget -T 20 -qO- http://web.default.svc.cluster.local/big | wc -c")).toBe("3145728\n");
  expect(performance.now() - began).toBeGreaterThan(2000); // a megabyte a second, and what may come at once
  expect(await pier.sh(`$(ls -d ${pier.dataDir}/agent/bin*/bin/nft | head -1) list table bridge coracle-bandwidth`)).toMatch(/ingress[\s\S]*limit rate over 1000000 bytes\/second .*default\/foe/);
});

test("an Ingress is served by every node, over HTTP and HTTPS, and its address is published", async () => {
  const [cert, key] = await certificate();
  await dock.kubectl("create", "secret", "tls", "web", `--cert=${cert}`, `--key=${key}`);
  await dock.apply(ingress("web"));
  await eventually("the address is published", async () => JSON.stringify((await json<Ingress>("ingress", "web")).status?.loadBalancer?.ingress) === '[{"ip":"172.30.0.31"},{"ip":"172.30.0.32"}]');
  for (const ip of ["172.30.0.31", "172.30.0.32"]) {
    await eventually(`${ip} serves the Ingress`, async () => (await page("-H", "Host: web.test", `http://${ip}/`)) === "web\n");
    expect(await page("--cacert", join(dock.directory, "ca.crt"), "--resolve", `web.test:443:${ip}`, "-w", "%{http_version}", "https://web.test/")).toBe("web\n2");
    expect(await page(`http://${ip}/`)).toBe("404 page not found\n");
  }
  expect(await page("-k", "--resolve", "web.test:443:172.30.0.32", "https://web.test/cgi-bin/who")).toMatch(/ https$/m);
});

/** A datagram as a node's tunnel takes it, from a pod that has not sent it. */
function wrapped({ from, to, port, mac, text }: { readonly from: string; readonly to: string; readonly port: number; readonly mac: string; readonly text: string }): Buffer {
  const words = (...values: number[]): Buffer => Buffer.from(values.flatMap((value) => [value >> 8, value & 0xff]));
  const address = (ip: string): Buffer => Buffer.from(ip.split(".").map(Number));
  const header = (sum: number): Buffer => Buffer.concat([words(0x4500, 28 + text.length, 1, 0, 0x4011, sum), address(from), address(to)]);
  const sum = header(0).reduce((all, byte, i) => all + (i % 2 === 0 ? byte << 8 : byte), 0);
  const checksum = ~((sum & 0xffff) + (sum >> 16)) & 0xffff;
  return Buffer.concat([words(0x0800, 0, VNI >> 8, (VNI & 0xff) << 8), Buffer.from(mac.replaceAll(":", ""), "hex"), Buffer.from("0a5800000001", "hex"), words(0x0800), header(checksum), words(1234, port, 8 + text.length, 0), Buffer.from(text)]);
}

test("who wraps packets for a node's tunnel itself is not heard: nobody is another pod by saying so", async () => {
  const [to, from] = await Promise.all(["foe", "friend"].map(async (name) => (await json<Pod>("pod", name)).status!.podIP!)) as [string, string];
  const mac = macFor((await json<Node>("node", "pier")).spec.podCIDR!);
  const frame = wrapped({ from, to, port: 5000, mac, text: "forged" }).toString("base64");
  const send = (host: Host, process: string, text: string, at: string) => host.sh(`nsenter -t $(pgrep -f "${process}" | head -1) -n bash -c 'echo ${text} | base64 -d > /dev/udp/${at}'`);
  const heard = async (): Promise<number> => { // nobody listens: the kernel counts
    const [names = "", values = ""] = (await dock.kubectl("exec", "foe", "--", "cat", "/proc/net/snmp")).split("\n").filter((line) => line.startsWith("Udp:"));
    return Number(values.split(" ")[names.split(" ").indexOf("NoPorts")]);
  };
  const before = await heard();
  await send(dock, "sleep 3600", frame, "172.30.0.32/4789"); // to another node's tunnel
  await send(pier, "httpd -f -p 8080", frame, "172.30.0.32/4789"); // to its own node's
  await eventually("what is sent as it should be arrives", async () => {
    await send(dock, "sleep 3600", btoa("honest"), `${to}/5000`);
    return (await heard()) > before;
  });
  expect(await heard()).toBe(before + 1);
});

test("a network policy lets its peers in, wherever they are, and nobody else; the node's own probes go on", async () => {
  const from = async (pod: string): Promise<string> => (await dock.run([dock.binary, "kubectl", "exec", pod, "--", "wget", "-T", "2", "-qO-", "http://web.default.svc.cluster.local/"])).stdout;
  expect([await from("friend"), await from("foe")]).toEqual(["web\n", "web\n"]);
  await dock.apply("{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: web}, spec: {podSelector: {matchLabels: {app: web}}, ingress: [{from: [{podSelector: {matchLabels: {is: friend}}}], ports: [{port: http}]}]}}");
  await eventually("the foe is kept out", async () => (await from("foe")) === "");
  expect(await from("friend")).toBe("web\n");
  await dock.kubectl("label", "pod", "foe", "is=friend", "--overwrite");
  await eventually("who becomes a friend is let in", async () => (await from("foe")) === "web\n");
  expect((await dock.kubectl("get", "pod", "web", "--no-headers")).split(/ +/)[1]).toBe("1/1");
});

test("after the kernel's packet filter was emptied, host ports, Services and policies come back", async () => {
  const nft = `$(ls -d ${pier.dataDir}/agent/bin*/bin/nft | head -1)`;
  const reaches = async (port: number): Promise<boolean> => (await page("-m", "2", `http://172.30.0.32:${port}/`)) === "web\n";
  await dock.apply("{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: sea}, spec: {podSelector: {matchLabels: {app: web}}, ingress: [{from: [{ipBlock: {cidr: 172.30.0.33/32}}]}]}}");
  await eventually("who comes from outside is let in", () => reaches(18080));
  expect(await pier.sh(`${nft} flush ruleset; ${nft} list tables`)).toBe("");
  await eventually("the host port answers", () => reaches(18080));
  await eventually("the load balancer answers", () => reaches(8081));
  await eventually("the policies are there", async () => (await pier.sh(`${nft} list ruleset`)).includes("ingress/policy/default/web"));
  await dock.kubectl("delete", "networkpolicy", "sea");
  await eventually("the policies hold", async () => !(await reaches(18080)));
  const { stdout } = await pier.run(["sh", "-c", `${nft} list chain ip cni_hostport hostports`]);
  expect(stdout.match(/dport 18080 /g)).toHaveLength(1);
});

test.skipIf(Bun.which("nft") === null)("the machine's own nft lists our tables and writes its own beside them", async () => {
  const nft = async (...args: string[]): Promise<string> => await pier.ok(["nft", ...args]);
  const listed = await nft("list", "ruleset");
  for (const chain of ["external/default/there/tcp", "firewall/default/there/tcp", "ingress/policy/default/web", "udp-endpoints/1"]) expect(listed).toContain(chain);
  expect(JSON.parse(await nft("-j", "list", "ruleset"))).toHaveProperty("nftables");
  await nft("add table inet mine; add chain inet mine in; add rule inet mine in tcp dport { 22, 80 } accept");
  await nft("insert", "rule", "inet", "mine", "in", "ct", "state", "established", "accept");
  expect(await nft("list", "table", "inet", "mine")).toContain("ct state established accept");
  await nft("delete", "table", "inet", "mine");
});

test("all of it goes on while the server is away, and when the agent starts anew meanwhile", async () => {
  await dock.kubectl("label", "pod", "foe", "is=foe", "--overwrite");
  await Bun.sleep(2500); // until it is on the agent's disk
  await dock.kill("KILL");
  const fine = async (): Promise<void> => {
    expect(await page("-H", "Host: web.test", "http://172.30.0.32/")).toBe("web\n");
    expect(await page("--cacert", join(dock.directory, "ca.crt"), "--resolve", "web.test:443:172.30.0.32", "https://web.test/")).toBe("web\n");
    expect(await page("-m", "3", "http://172.30.0.32:8082/")).toBe(""); // no friend: the policy
    expect(await pier.sh(`$(ls -d ${pier.dataDir}/agent/bin*/bin/nft | head -1) list table inet coracle-policy`)).toContain("ingress/policy/default/web");
  };
  await fine();
  await pier.kill("KILL");
  await pier.startAgent("--server", "https://172.30.0.31:6443");
  await eventually("the agent serves again", async () => (await page("-H", "Host: web.test", "http://172.30.0.32/")) === "web\n");
  await fine();
});
