/**
 * What the service proxy costs with many Services: all of them at once, and then one endpoint that changes. The rules go into the kernel of a network namespace
 * of their own, which is gone at the end.
 *
 *   unshare --net bun test/bench/proxy.ts [services=10000] [endpoints of each=10] [nft=nft]
 *
 * Printed are the time of the first sync and nft's part of it, the time from one changed EndpointSlice to the kernel's acknowledgement (p50, p99, each with the moment changes are
 * gathered taken off), beside what nft alone takes for the same transaction, and the memory of this process.
 */
import type { Service } from "../../core/api/gen/core.v1.ts";
import type { EndpointSlice } from "../../core/api/gen/discovery.v1.ts";
import { type ApiObject, keyOf, type ObjectKey } from "../../core/api/meta/object-meta.ts";
import type { Index, Informer, InformerHandler } from "../../core/client/informer.ts";
import type { Informers } from "../../core/client/informer-factory.ts";
import { systemClock as clock } from "../../core/lifecycle/clock.ts";
import { silentLog as log } from "../../core/observe/log.ts";
import { metricsRegistry } from "../../core/observe/metrics.ts";
import { type Nft, nftProgram } from "../../node/os/exec-nft.ts";
import { netlinkSocket } from "../../node/os/netlink-socket.ts";
import { NETLINK_NETFILTER } from "../../node/os/nft-batch.ts";
import { serviceProxy } from "../../node/proxy/proxy.ts";

const [services = 10_000, endpoints = 10] = process.argv.slice(2, 4).map(Number);
const path = process.argv[4] ?? "nft";
const ROUNDS = 100;

/** A copy of the world that the bench changes by hand. */
class World<T extends ApiObject> {
  readonly #objects = new Map<ObjectKey, T>();
  readonly #handlers = new Set<InformerHandler<T>>();
  readonly #indexes = new Map<string, Map<string, Map<ObjectKey, T>>>();
  readonly synced = true;
  async whenSynced(): Promise<void> {}
  get(key: ObjectKey): T | undefined { return this.#objects.get(key); }
  list(): Iterable<T> { return this.#objects.values(); }
  by(index: Index<T>, value: string): readonly T[] {
    let found = this.#indexes.get(index.name);
    if (!found) {
      this.#indexes.set(index.name, (found = new Map()));
      for (const object of this.#objects.values()) for (const one of index.valuesOf(object)) (found.get(one) ?? found.set(one, new Map()).get(one)!).set(keyOf(object), object);
    }
    return [...(found.get(value)?.values() ?? [])];
  }
  onChange(handler: InformerHandler<T>): () => void {
    this.#handlers.add(handler);
    for (const object of this.#objects.values()) handler({ object, deleted: false });
    return () => void this.#handlers.delete(handler);
  }
  put(object: T): void {
    const old = this.#objects.get(keyOf(object));
    this.#objects.set(keyOf(object), object);
    for (const index of this.#indexes.values()) for (const found of index.values()) if (found.has(keyOf(object))) found.set(keyOf(object), object);
    for (const handler of this.#handlers) handler({ object, old, deleted: false });
  }
}

const worlds = new Map<string, World<ApiObject>>();
const worldOf = (plural: string): World<ApiObject> => worlds.get(plural) ?? worlds.set(plural, new World()).get(plural)!;
const informers = { of: ({ plural }: { readonly plural: string }) => worldOf(plural) as unknown as Informer<ApiObject>, stop() {} } as unknown as Informers;
const podIp = (n: number): string => `10.${128 + (n >> 16)}.${(n >> 8) & 255}.${n & 255}`;

function slice(i: number, shift = 0): EndpointSlice {
  return {
    apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", metadata: { name: `s${i}-x`, namespace: "bench", uid: `u${i}`, labels: { "kubernetes.io/service-name": `s${i}` } }, addressType: "IPv4",
    endpoints: Array.from({ length: endpoints }, (_, j) => ({ addresses: [podIp(i * endpoints + ((j === 0 ? shift : j) % endpoints) + (j === 0 && shift > 0 ? services * endpoints : 0))], conditions: { ready: true }, nodeName: `n${j % 5}` })),
    ports: [{ name: "http", port: 8080, protocol: "TCP" }],
  } as unknown as EndpointSlice;
}

for (let i = 0; i < services; i++) {
  const ip = `10.43.${i >> 8}.${i & 255}`;
  worldOf("services").put({ apiVersion: "v1", kind: "Service", metadata: { name: `s${i}`, namespace: "bench" }, spec: { type: "ClusterIP", clusterIP: ip, clusterIPs: [ip], ports: [{ name: "http", port: 80, protocol: "TCP" }] } } as unknown as Service);
  worldOf("endpointslices").put(slice(i));
}

const real = nftProgram({ path, netlink: () => netlinkSocket(NETLINK_NETFILTER) });
let firstInNft = 0;
let onApplied = (ms: number): void => void (firstInNft += ms);
const nft: Nft = { ...real, async apply(script, call) {
  const beganMs = performance.now();
  await real.apply(script, call);
  onApplied(performance.now() - beganMs);
}, elements(batch) {
  const beganMs = performance.now();
  real.elements!(batch);
  onApplied(performance.now() - beganMs);
} };
const stop = new AbortController();
const proxy = serviceProxy({ informers, nodeName: "n0", nodeIps: ["192.0.2.1"], clusterCidrs: ["10.128.0.0/9"], serviceCidrs: ["10.43.0.0/16"], nft, clock, log, metrics: metricsRegistry() });
const beganMs = performance.now();
const life = proxy.run(stop.signal, () => {});
await proxy.whenSynced(stop.signal);
console.log(`${services} Services with ${endpoints} endpoints each: first sync ${(performance.now() - beganMs).toFixed(0)} ms, of which nft ${firstInNft.toFixed(0)} ms`);
await clock.sleep(3_000, stop.signal);

const whole: number[] = [], inNft: number[] = [];
for (let round = 0; round < ROUNDS; round++) {
  const i = (round * 7919) % services;
  const changedMs = performance.now();
  const done = new Promise<number>((resolve) => { onApplied = resolve; });
  worldOf("endpointslices").put(slice(i, 1 + (round % 2)));
  inNft.push(await done);
  whole.push(performance.now() - changedMs);
  await clock.sleep(120, stop.signal);
}
const at = (values: number[], part: number): string => values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) * part)]!.toFixed(1);
console.log(`one endpoint changes: ${at(whole, 0.5)} ms p50, ${at(whole, 0.99)} ms p99; of which nft ${at(inNft, 0.5)} and ${at(inNft, 0.99)} ms; ${(process.memoryUsage().rss / 2 ** 20).toFixed(0)} MB`);
stop.abort();
await life;
