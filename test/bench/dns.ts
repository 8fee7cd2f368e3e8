/**
 * How many questions a node's DNS answers, and how long each waits: names of the cluster, over UDP, asked by another process.
 *
 *   bun test/bench/dns.ts [seconds for each=5] [services=1000]
 *
 * Printed are questions per second, p50 and p99 with one question under way and with 64: an address, a name of the search path that does not exist, a
 * headless Service with 100 endpoints; and the processor time of the server for each.
 */
import { createSocket } from "node:dgram";
import { informerFactory } from "../../core/client/informer-factory.ts";
import { ENDPOINT_SLICES, NAMESPACES, SERVICES } from "../../core/client/resources.ts";
import { dnsServer } from "../../core/dns/dns.ts";
import { nameBytes, TYPE, writeQuery } from "../../core/dns/wire.ts";
import { systemClock as clock } from "../../core/lifecycle/clock.ts";
import { systemRandom as random } from "../../core/lifecycle/random.ts";
import { silentLog as log } from "../../core/observe/log.ts";
import { metricsRegistry } from "../../core/observe/metrics.ts";
import { fakeApi } from "../fake-api.ts";

const PORT = 31_053;
const NAMES = { address: "s7.default.svc.cluster.local", missing: "www.example.com.default.svc.cluster.local", headless: "many.default.svc.cluster.local" } as const;
const ask = (id: number, name: string): Uint8Array => writeQuery(id, { question: { name, nameBytes: nameBytes(name), type: TYPE.A, class: 1 }, checkingDisabled: false, edns: { udpBytes: 4096, version: 0, dnssecOk: false } });

/** The asking process: prints one line of JSON. */
async function client(name: string, together: number, forMs: number): Promise<void> {
  const socket = createSocket("udp4");
  const began = new Map<number, number>();
  const waits: number[] = [];
  let id = 0, ended = false;
  const next = (): void => {
    id = (id + 1) & 0xffff;
    began.set(id, performance.now());
    socket.send(ask(id, name), PORT, "127.0.0.1");
  };
  socket.on("message", (message) => {
    const key = (message[0]! << 8) | message[1]!;
    waits.push(performance.now() - began.get(key)!);
    began.delete(key);
    if (!ended) next();
  });
  for (let i = 0; i < together; i++) next();
  await clock.sleep(forMs, new AbortController().signal);
  ended = true;
  socket.close();
  waits.sort((a, b) => a - b);
  console.log(JSON.stringify({ perSecond: waits.length / (forMs / 1000), p50: waits[Math.floor(waits.length * 0.5)], p99: waits[Math.floor(waits.length * 0.99)], lost: began.size - together }));
}

async function server(seconds: number, services: number): Promise<void> {
  const api = fakeApi(), stop = new AbortController(), call = { signal: stop.signal };
  const informers = informerFactory({ client: api.client, clock, random, log });
  const put = (ref: typeof SERVICES, object: unknown): Promise<unknown> => api.client.resource(ref).create(object as never, call);
  await api.client.resource(NAMESPACES).create({ apiVersion: "v1", kind: "Namespace", metadata: { name: "default" } } as never, call);
  for (let i = 0; i < services; i++) await put(SERVICES, { apiVersion: "v1", kind: "Service", metadata: { name: `s${i}`, namespace: "default" }, spec: { clusterIP: `10.43.${i >> 8}.${i & 255}`, clusterIPs: [`10.43.${i >> 8}.${i & 255}`], ports: [{ port: 80, name: "http", protocol: "TCP" }] } });
  await put(SERVICES, { apiVersion: "v1", kind: "Service", metadata: { name: "many", namespace: "default" }, spec: { clusterIP: "None", clusterIPs: ["None"], ports: [] } });
  await api.client.resource(ENDPOINT_SLICES).create({ apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", metadata: { name: "many-1", namespace: "default", labels: { "kubernetes.io/service-name": "many" } }, addressType: "IPv4", ports: [], endpoints: Array.from({ length: 100 }, (_, i) => ({ addresses: [`10.42.0.${i + 2}`], conditions: { ready: true } })) } as never, call);
  const dns = dnsServer({ informers, clusterDomain: "cluster.local", cidrs: ["10.42.0.0/16", "10.43.0.0/16"], clients: () => [], listen: () => [{ address: "127.0.0.1", port: PORT }], upstreams: () => [], clock, random, log, metrics: metricsRegistry() });
  const lives = [informers, dns].map((one) => one.run(stop.signal, () => {}));
  await clock.sleep(1000, stop.signal);
  for (const [what, name] of Object.entries(NAMES))
    for (const together of [1, 64]) {
      const before = process.cpuUsage();
      const child = Bun.spawn([process.execPath, import.meta.path, "client", name, String(together), String(seconds * 1000)], { stdout: "pipe" });
      const { perSecond, p50, p99, lost } = JSON.parse(await new Response(child.stdout).text()) as { perSecond: number; p50: number; p99: number; lost: number };
      const cpu = process.cpuUsage(before);
      console.log(`${what.padEnd(9)} ${String(together).padStart(3)} at once: ${perSecond.toFixed(0).padStart(6)}/s, p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms, ${((cpu.user + cpu.system) / (perSecond * seconds)).toFixed(0)} µs of processor each, ${Math.max(0, lost)} lost`);
    }
  stop.abort();
  await Promise.all(lives);
}

if (process.argv[2] === "client") await client(process.argv[3]!, Number(process.argv[4]), Number(process.argv[5]));
else await server(Number(process.argv[2] ?? 5), Number(process.argv[3] ?? 1000));
process.exit(0);
