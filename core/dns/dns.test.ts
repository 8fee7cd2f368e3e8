import { createSocket } from "node:dgram";
import { connect, createServer } from "node:net";
import { expect, test } from "vitest";
import { informerFactory } from "../client/informer-factory.ts";
import { ENDPOINT_SLICES, NAMESPACES, NODES, SERVICES } from "../client/resources.ts";
import { type Clock, systemClock } from "../lifecycle/clock.ts";
import { systemRandom } from "../lifecycle/random.ts";
import { silentLog } from "../observe/log.ts";
import { metricsRegistry } from "../observe/metrics.ts";
import { eventually, fakeApi } from "../../test/fake-api.ts";
import { dnsServer } from "./dns.ts";
import { dnsAddresses, dnsEndpoints } from "./dns-endpoints.ts";
import { addressRecords, nameBytes, TYPE, writeQuery } from "./wire.ts";

const { signal } = new AbortController();
const question = (name: string) => writeQuery(9, { question: { name, nameBytes: nameBytes(name), type: TYPE.A, class: 1 }, checkingDisabled: false, edns: undefined });

function overUdp(port: number, message: Uint8Array): Promise<Uint8Array> {
  return new Promise((resolve) => {
    const socket = createSocket("udp4");
    const again = setInterval(() => socket.send(message, port, "127.0.0.1"), 200); // the server may still be opening its port
    socket.on("message", (answer) => { clearInterval(again); socket.close(); resolve(Uint8Array.from(answer)); });
    socket.send(message, port, "127.0.0.1");
  });
}

function overTcp(port: number, ...messages: Uint8Array[]): Promise<Uint8Array[]> {
  return new Promise((resolve) => {
    let received = Buffer.alloc(0);
    const socket = connect(port, "127.0.0.1", () => socket.write(Buffer.concat(messages.flatMap((one) => [Uint8Array.of(one.length >> 8, one.length & 0xff), one]))));
    socket.on("data", (chunk) => {
      received = Buffer.concat([received, chunk as Buffer]);
      const answers: Uint8Array[] = [];
      for (let at = 0; at + 2 <= received.length && at + 2 + received.readUInt16BE(at) <= received.length; at += 2 + received.readUInt16BE(at)) answers.push(Uint8Array.from(received.subarray(at + 2, at + 2 + received.readUInt16BE(at))));
      if (answers.length === messages.length) { socket.destroy(); resolve(answers); }
    });
  });
}

/** A port that was free a moment ago, of UDP and of TCP: other tests have connections from any. */
async function freePort(): Promise<number> {
  for (;;) {
    const socket = createSocket("udp4"), server = createServer();
    await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
    const { port } = socket.address();
    const isFree = await new Promise<boolean>((resolve) => server.once("error", () => resolve(false)).listen(port, "127.0.0.1", () => resolve(true)));
    socket.close();
    if (!isFree) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
}

test("the server answers over UDP and TCP, follows aliases, and says so when nobody knows", async () => {
  const api = fakeApi();
  const stop = new AbortController();
  const informers = informerFactory({ client: api.client, clock: systemClock, random: systemRandom, log: silentLog });
  const port = await freePort();
  const metrics = metricsRegistry();
  const dns = dnsServer({
    informers, clusterDomain: "cluster.local", cidrs: ["10.42.0.0/16"], clients: () => [], listen: () => [{ address: "127.0.0.1", port }, { address: "192.0.2.1", port }], upstreams: () => [],
    clock: systemClock, random: systemRandom, log: silentLog, metrics,
  });
  const ended = dns.run(stop.signal, () => {});

  const rcode = (bytes: Uint8Array): number => bytes[3]! & 0xf;
  const early = await overUdp(port, question("web.default.svc.cluster.local"));
  expect(rcode(early)).toBe(2); // not "no such name" before the services are known

  const running = informers.run(stop.signal, () => {});
  await api.client.resource(NAMESPACES).create({ apiVersion: "v1", kind: "Namespace", metadata: { name: "default" } } as never, { signal });
  await api.client.resource(SERVICES).create({ apiVersion: "v1", kind: "Service", metadata: { name: "web", namespace: "default" }, spec: { clusterIP: "10.43.0.5", clusterIPs: ["10.43.0.5"] } } as never, { signal });
  await api.client.resource(SERVICES).create({ apiVersion: "v1", kind: "Service", metadata: { name: "alias", namespace: "default" }, spec: { type: "ExternalName", externalName: "web.default.svc.cluster.local" } } as never, { signal });
  await api.client.resource(SERVICES).create({ apiVersion: "v1", kind: "Service", metadata: { name: "self", namespace: "default" }, spec: { type: "ExternalName", externalName: "self.default.svc.cluster.local" } } as never, { signal });
  await informers.of(SERVICES).whenSynced(signal);
  await eventually(() => [...informers.of(SERVICES).list()].length, (count) => count === 3);

  expect(addressRecords(await overUdp(port, question("web.default.svc.cluster.local"))).map((record) => record.type)).toEqual(["A"]);
  const [alias, unknown] = await overTcp(port, question("alias.default.svc.cluster.local"), question("example.test"));
  expect(addressRecords(alias!).map((record) => record.type)).toEqual(["CNAME", "A"]);
  expect(addressRecords(await overUdp(port, question("self.default.svc.cluster.local"))).map((record) => record.type)).toEqual(["CNAME"]);
  expect(rcode(unknown!)).toBe(2);
  expect(rcode(await overUdp(port, Uint8Array.of(0, 9, 1, 0, 0, 7, 0, 0, 0, 0, 0, 0)))).toBe(1);
  const shown = metrics.render();
  for (const line of ['coredns_dns_responses_total{rcode="SERVFAIL",server="dns://:53",zone="."} 1', 'coredns_dns_requests_total{proto="tcp",server="dns://:53",type="A",zone="cluster.local."} 1', 'coredns_dns_response_size_bytes_count{proto="udp",server="dns://:53",zone="cluster.local."}', 'coredns_cache_misses_total{server="dns://:53",zones="."} 1', 'coredns_cache_entries{server="dns://:53",type="denial",zones="."} 0'])
    expect(shown.split("\n").map((one) => one.replace(/\{(.*)\}/, (_, labels: string) => `{${labels.split(",").toSorted().join()}}`)).join("\n")).toContain(line);
  stop.abort();
  await Promise.all([ended, running]);
});

test("an alias whose other server sends what cannot be read is a failure, and is answered", async () => {
  const api = fakeApi(), stop = new AbortController(), port = await freePort(), other = createSocket("udp4");
  await new Promise<void>((resolve) => other.bind(0, "127.0.0.1", resolve));
  other.on("message", (message, from) => { // an alias for a name that is cut off
    const asked = message.subarray(0, message.length - (message[11]! > 0 ? 11 : 0)), reply = Buffer.concat([asked, Buffer.of(0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 9, 0, 2, 63, 97)]);
    reply[2] = 0x81;
    reply[7] = 1;
    reply[11] = 0;
    other.send(reply, from.port, from.address);
  });
  const informers = informerFactory({ client: api.client, clock: systemClock, random: systemRandom, log: silentLog });
  const dns = dnsServer({
    informers, clusterDomain: "cluster.local", cidrs: [], clients: () => [], listen: () => [{ address: "127.0.0.1", port }], upstreams: () => [`127.0.0.1:${other.address().port}`],
    clock: systemClock, random: systemRandom, log: silentLog, metrics: metricsRegistry(),
  });
  await api.client.resource(NAMESPACES).create({ apiVersion: "v1", kind: "Namespace", metadata: { name: "default" } } as never, { signal });
  await api.client.resource(SERVICES).create({ apiVersion: "v1", kind: "Service", metadata: { name: "alias", namespace: "default" }, spec: { type: "ExternalName", externalName: "x.test" } } as never, { signal });
  const ended = [dns.run(stop.signal, () => {}), informers.run(stop.signal, () => {})];
  await Promise.all([informers.of(SERVICES).whenSynced(signal), informers.of(NAMESPACES).whenSynced(signal), informers.of(ENDPOINT_SLICES).whenSynced(signal)]);
  const answer = await overUdp(port, question("alias.default.svc.cluster.local"));
  expect([answer[3]! & 0xf, addressRecords(answer).map(({ type }) => type)]).toEqual([2, ["CNAME"]]);
  stop.abort();
  other.close();
  await Promise.all(ended);
});

test("every node with a pod CIDR has an endpoint, which follows the node and comes back", async () => {
  const api = fakeApi();
  const stop = new AbortController();
  const informers = informerFactory({ client: api.client, clock: systemClock, random: systemRandom, log: silentLog });
  const ended = Promise.all([informers.run(stop.signal, () => {}), dnsEndpoints({ client: api.client, informers, ownNetwork: true, clock: systemClock, log: silentLog }).run(stop.signal, () => {})]);
  const found = () => api.all(ENDPOINT_SLICES).map(({ metadata, endpoints }) => `${metadata.name} ${endpoints![0]!.addresses.join()} ${endpoints![0]!.nodeName}`);

  const node = await api.client.resource(NODES).create({ apiVersion: "v1", kind: "Node", metadata: { name: "n1" }, spec: {} } as never, { signal });
  await api.client.resource(NODES).update({ ...node, spec: { podCIDR: "10.42.3.0/24", podCIDRs: ["10.42.3.0/24", "fd42:0:0:3::/64"] } } as never, { signal });
  await eventually(found, (all) => all.length === 2);
  expect(found()).toEqual(["kube-dns-n1 10.42.3.1 n1", "kube-dns-n1-ipv6 fd42:0:0:3::1 n1"]);
  expect(api.all(ENDPOINT_SLICES)[0]!.metadata).toMatchObject({ namespace: "kube-system", labels: { "kubernetes.io/service-name": "kube-dns" }, ownerReferences: [{ kind: "Node", name: "n1", uid: node.metadata.uid }] });

  await api.client.resource(ENDPOINT_SLICES).delete({ metadata: { name: "kube-dns-n1", namespace: "kube-system" } }, {}, { signal });
  await eventually(found, (all) => all.length === 2);
  stop.abort();
  await ended;
});

test("an endpoint goes with the node's address of its family", async () => {
  const api = fakeApi();
  const stop = new AbortController();
  const informers = informerFactory({ client: api.client, clock: systemClock, random: systemRandom, log: silentLog });
  const ended = Promise.all([informers.run(stop.signal, () => {}), dnsEndpoints({ client: api.client, informers, ownNetwork: false, clock: systemClock, log: silentLog }).run(stop.signal, () => {})]);
  const found = () => api.all(ENDPOINT_SLICES).map(({ metadata, endpoints }) => `${metadata.name} ${endpoints![0]!.addresses.join()}`);
  const at = (...addresses: string[]) => ({ addresses: addresses.map((address) => ({ type: "InternalIP", address })) });
  const node = await api.client.resource(NODES).create({ apiVersion: "v1", kind: "Node", metadata: { name: "n1" }, spec: {}, status: at("172.16.0.1", "fd00::1") } as never, { signal });
  await eventually(found, (all) => all.length === 2);
  await api.client.resource(NODES).updateStatus({ ...node, status: at("fd00::2") } as never, { signal });
  await eventually(found, (all) => all.join() === "kube-dns-n1-ipv6 fd00::2");
  stop.abort();
  await ended;
});

test("a node of another kubelet, which has no DNS, gets that of ready nodes that have: servers first, and no more than three", async () => {
  const api = fakeApi();
  const stop = new AbortController();
  const informers = informerFactory({ client: api.client, clock: systemClock, random: systemRandom, log: silentLog });
  const ended = Promise.all([informers.run(stop.signal, () => {}), dnsEndpoints({ client: api.client, informers, ownNetwork: true, clock: systemClock, log: silentLog }).run(stop.signal, () => {})]);
  const found = () => api.all(ENDPOINT_SLICES).filter(({ metadata }) => metadata.name === "kube-dns-k").flatMap(({ endpoints }) => endpoints!.map(({ addresses, nodeName }) => `${addresses.join()} ${nodeName}`)).join(", ");
  const nodes = api.client.resource(NODES);
  const node = (name: string, third: number, { kubeletVersion = "v1.36.0+coracle0.1.0", ready = "True", labels = {} } = {}) =>
    nodes.create({ apiVersion: "v1", kind: "Node", metadata: { name, labels }, spec: { podCIDR: `10.42.${third}.0/24` }, status: { conditions: [{ type: "Ready", status: ready }], nodeInfo: { kubeletVersion } } } as never, { signal });
  await node("k", 0, { kubeletVersion: "v1.36.0" });
  await node("l", 9, { kubeletVersion: "v1.32.10-kubeedge-v1.23.0" });
  await node("a", 1);
  await node("b", 2, { ready: "False" });
  const c = await node("c", 3);
  await eventually(found, (all) => all === "10.42.1.1 k, 10.42.3.1 k");
  for (const [i, name] of ["d", "s"].entries()) await node(name, 4 + i, { labels: name === "s" ? { "node-role.kubernetes.io/control-plane": "" } : {} });
  await eventually(found, (all) => all === "10.42.5.1 k, 10.42.1.1 k, 10.42.3.1 k");
  await nodes.updateStatus({ ...c, status: { ...c.status, conditions: [{ type: "Ready", status: "Unknown" }] } } as never, { signal });
  await eventually(found, (all) => all === "10.42.5.1 k, 10.42.1.1 k, 10.42.4.1 k");
  stop.abort();
  await ended;
});

test("where the pod network is somebody else's, or Windows', DNS is at the node's own addresses", () => {
  const node = (os: string) => ({ metadata: { labels: { "kubernetes.io/os": os } }, spec: { podCIDR: "10.42.3.0/24" }, status: { addresses: [{ type: "InternalIP", address: "172.16.0.1" }, { type: "InternalIP", address: "fd00::1" }, { type: "Hostname", address: "n1" }] } });
  expect(dnsAddresses(node("linux"), { ownNetwork: true })).toEqual(["10.42.3.1"]);
  expect(dnsAddresses(node("linux"), { ownNetwork: false })).toEqual(["172.16.0.1", "fd00::1"]);
  for (const ownNetwork of [true, false]) expect(dnsAddresses(node("windows"), { ownNetwork })).toEqual(["172.16.0.1"]);
});

test("an address that is not there yet is tried again soon, and less and less often", async () => {
  const api = fakeApi(), stop = new AbortController(), delays: number[] = [];
  const informers = informerFactory({ client: api.client, clock: systemClock, random: systemRandom, log: silentLog });
  const clock: Clock = { ...systemClock, async sleep(ms) { if (delays.push(ms) === 7) stop.abort(); } };
  await dnsServer({ informers, clusterDomain: "cluster.local", cidrs: [], clients: () => [], listen: () => [{ address: "192.0.2.1", port: 1 }], upstreams: () => [], clock, random: systemRandom, log: silentLog, metrics: metricsRegistry() }).run(stop.signal, () => {});
  expect(delays).toEqual([100, 200, 400, 800, 1600, 2000, 2000]);
});

test("an address that has come is served before whoever tells of it goes on, and the next look is not waited for", async () => {
  const stop = new AbortController(), asleep = Promise.withResolvers<void>(), port = await freePort();
  const informers = informerFactory({ client: fakeApi().client, clock: systemClock, random: systemRandom, log: silentLog });
  const clock: Clock = { ...systemClock, async sleep(_ms, ended) { asleep.resolve(); await new Promise<void>((resolve) => ended.addEventListener("abort", () => resolve())); } };
  let addresses: string[] = [], tell: () => void = () => {}, told = true;
  const dns = dnsServer({
    informers, clusterDomain: "cluster.local", cidrs: [], clients: () => [], listen: () => addresses.map((address) => ({ address, port })), upstreams: () => [],
    onListenChange: (look) => { tell = look; return () => { told = false; }; }, clock, random: systemRandom, log: silentLog, metrics: metricsRegistry(),
  });
  await dns.look(); // nobody serves yet, and nobody is held up
  const ended = dns.run(stop.signal, () => {});
  await asleep.promise;
  addresses = ["127.0.0.1"];
  await dns.look();
  expect(await overUdpOnce(port)).toBe(true);
  addresses = [];
  tell();
  await dns.look();
  expect(await overUdpOnce(port)).toBe(false);
  stop.abort();
  await ended;
  expect(told).toBe(false);
});

/** Whether one question has an answer: the port of nobody refuses it. */
function overUdpOnce(port: number): Promise<boolean> {
  const socket = createSocket("udp4");
  return new Promise<boolean>((resolve) => {
    socket.on("message", () => resolve(true));
    socket.on("error", () => resolve(false));
    socket.connect(port, "127.0.0.1", () => socket.send(question("web.default.svc.cluster.local")));
  }).finally(() => socket.close());
}
