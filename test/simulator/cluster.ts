/**
 * A whole cluster in one thread: the real API over a store on a disk in memory, two control planes that contend for leadership, hollow nodes; everything on a clock
 * that a seed owns. What can be done to it: servers crash, nodes lose their power or their way, control planes die, disks fail, the weather turns bad.
 */
import { admissionChain } from "../../core/admission/chain.ts";
import type { AdmissionPlugin } from "../../core/admission/plugin.ts";
import { resourceQuotaAdmission } from "../../core/admission/resource-quota.ts";
import { builtInResources } from "../../core/api/schema/resources.ts";
import type { Client } from "../../core/client/client.ts";
import { eventWriter, silentEvents } from "../../core/client/events.ts";
import { type Informers, informerFactory } from "../../core/client/informer-factory.ts";
import { clientOver } from "../../core/client/resource-client.ts";
import { IP_ADDRESSES, NODES, PODS, RESOURCE_QUOTAS } from "../../core/client/resources.ts";
import type { Informer } from "../../core/client/informer.ts";
import type { ApiRequest, Transport } from "../../core/client/transport.ts";
import { allControllers } from "../../core/controllers/all.ts";
import type { Pod } from "../../core/api/gen/core.v1.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import { runAll } from "../../core/lifecycle/run-all.ts";
import { silentLog } from "../../core/observe/log.ts";
import { metricsRegistry } from "../../core/observe/metrics.ts";
import { convert } from "../../core/registry/conversions.ts";
import { registryDefinitions } from "../../core/registry/definitions.ts";
import type { CacheEvent } from "../../core/registry/generic/audience.ts";
import { WatchCache } from "../../core/registry/generic/watch-cache.ts";
import { Registry } from "../../core/registry/registry.ts";
import { scheduler } from "../../core/scheduler/scheduler.ts";
import { discoveryPaths } from "../../core/server/discovery.ts";
import type { Handler } from "../../core/server/scope.ts";
import { apiHandler } from "../../core/server/handler.ts";
import { inProcessTransport } from "../../core/server/in-process.ts";
import { specialHandlers } from "../../core/server/special/special.ts";
import { VERBS } from "../../core/server/verbs/all.ts";
import { leading } from "../../cmd/leading.ts";
import { memoryRuntime } from "../../node/cri/memory-runtime.ts";
import { hollowNode } from "../../node/hollow/hollow-node.ts";
import { storeError } from "../../storage/disk.ts";
import { MemoryDisk, memoryStore } from "../../storage/memory.ts";
import { FAIR, faultyTransport, Line, type Weather } from "./faults.ts";
import { type SeededRandom, SimulatedClock, seededRandom } from "./seeded.ts";

interface Life { readonly line: Line; end(): Promise<void> }
interface NodeLife extends Life { readonly pods: Informer<Pod> }

export class SimulatedCluster {
  readonly clock = new SimulatedClock();
  readonly random: SeededRandom;
  /** Of the scenario, on a line of its own that never fails. */
  readonly client: Client;
  weather: Weather = FAIR;
  /** Writes whose clients do not know that they were carried out: when, and what. */
  readonly lost: { readonly atMs: number; readonly request: ApiRequest }[] = [];
  readonly #disk = new MemoryDisk();
  readonly #wallMs = new Map<string, number>(); // by machine: how far its wall clock is off
  #agreedMs = 0; // when the last one was set right
  readonly #nodes = new Map<string, NodeLife | undefined>();
  readonly #planes = new Map<string, Life | undefined>();
  readonly #plugins: (deps: { readonly client: Client; readonly informers: Pick<Informers, "of"> }) => readonly AdmissionPlugin[];
  readonly #onEvent: (prefix: string, event: CacheEvent) => void;
  readonly #ending: Promise<void>[] = [];
  #server: { readonly handler: Handler; readonly cache: WatchCache; readonly stop: AbortController } | undefined;
  readonly failures: unknown[] = [];

  /** `plugins`: admission besides that of quotas. */
  constructor(seed: number, onEvent: (prefix: string, event: CacheEvent) => void, plugins: (deps: { readonly client: Client; readonly informers: Pick<Informers, "of"> }) => readonly AdmissionPlugin[] = () => []) {
    this.#plugins = plugins;
    this.random = seededRandom(seed);
    this.#onEvent = onEvent;
    this.client = clientOver(this.#transport("scenario", undefined));
  }

  get nodeNames(): readonly string[] { return [...this.#nodes.keys()]; }
  get planeNames(): readonly string[] { return [...this.#planes.keys()]; }
  isNodeUp(name: string): boolean { return this.#nodes.get(name) !== undefined; }
  isPlaneUp(name: string): boolean { return this.#planes.get(name) !== undefined; }
  lineOf(node: string): Line | undefined { return this.#nodes.get(node)?.line; }
  lineOfPlane(name: string): Line | undefined { return this.#planes.get(name)?.line; }
  /** What runs on a node, as far as the node itself knows: it is not reached by what happens while its line is cut. */
  podsOn(node: string): readonly Readonly<Pod>[] { return [...(this.#nodes.get(node)?.pods.list() ?? [])]; }

  /** The machine's wall clock is set: that much later than it is. */
  setClock(machine: string, offMs: number): void {
    this.#wallMs.set(machine, offMs);
    this.#agreedMs = this.clock.uptimeMs();
  }
  /** All are right. */
  setClocks(): void { for (const machine of this.#wallMs.keys()) this.setClock(machine, 0); }
  /** For how long all clocks have been right. */
  get agreedForMs(): number { return [...this.#wallMs.values()].some((offMs) => offMs !== 0) ? 0 : this.clock.uptimeMs() - this.#agreedMs; }

  #clockOf(machine: string): Clock {
    const { clock } = this;
    return {
      nowMs: () => clock.nowMs() + (this.#wallMs.get(machine) ?? 0),
      uptimeMs: () => clock.uptimeMs(), after: (ms, work) => clock.after(ms, work), sleep: (ms, signal) => clock.sleep(ms, signal), every: (periodMs, signal) => clock.every(periodMs, signal),
    };
  }

  /** The API server, over what is on the disk. */
  async startServer(): Promise<void> {
    const clock = this.#clockOf("server");
    const random = this.random.fork();
    const stop = new AbortController(), { signal } = stop;
    const store = await memoryStore({ disk: this.#disk, clock });
    const cache = new WatchCache(store, clock);
    await new Promise<void>((ready) => { this.#live(cache.run(signal, ready, silentLog)); });
    const own = clientOver(inProcessTransport((request) => handler(request), { user: { name: "system:apiserver", groups: ["system:masters"] }, userAgent: "kube-apiserver" }));
    const registry: Registry = new Registry(builtInResources.rows(), registryDefinitions({
      serviceCidrs: ["10.96.0.0/16"], nodePortRange: "30000-32767", storeOf: (group, plural) => registry.storeOf(group, plural), random, ipAddresses: own.resource(IP_ADDRESSES),
    }), { store, cache, clock, random, convert });
    const informers = informerFactory({ client: own, clock, random, log: silentLog });
    const admission = admissionChain([...this.#plugins({ client: own, informers }), resourceQuotaAdmission({ quotas: informers.of(RESOURCE_QUOTAS), client: own.resource(RESOURCE_QUOTAS), clock })]);
    const handler: Handler = apiHandler({
      registry, cache, clock, random, log: silentLog, metrics: metricsRegistry(), paths: [discoveryPaths(registry, "10.0.0.1:6443")],
      authenticator: { authenticate: () => Promise.resolve(undefined) },
      authorizer: { authorize: () => ({ decision: "allow", reason: "" }), rulesFor: () => Promise.resolve({ resourceRules: [], pathRules: [], incomplete: false }) },
      impersonate: ({ user }) => Promise.resolve({ user, constraint: "" }), admission,
      special: specialHandlers({ tokens: undefined as never, tokenReviews: undefined as never, review: () => Promise.reject(new Error("no reviews here")), connections: () => undefined }),
    }, VERBS);
    this.#live(informers.run(signal, () => {}));
    for (const prefix of OBSERVED) cache.resource(prefix).listen((event) => this.#onEvent(prefix, event));
    this.#server = { handler, cache, stop };
  }

  /** The server's process dies, and what was not on disk with it. */
  crashServer(): void {
    this.#server?.stop.abort(new Error("crashed"));
    this.#server = undefined;
    this.#disk.crash();
  }

  get isServerUp(): boolean { return this.#server !== undefined; }

  /** Batches fail for a while, some of them although they have reached the disk. */
  failDisk(ms: number): void {
    const random = this.random.fork();
    this.#disk.fault = () => (random.chance(0.3) ? { error: storeError("unavailable", { reason: "bad weather" }), landed: random.chance(0.5) } : undefined);
    this.clock.after(ms, () => { this.#disk.fault = undefined; });
  }

  /** Controllers and scheduler of one machine. */
  startPlane(name: string): void {
    const clock = this.#clockOf(name);
    const random = this.random.fork();
    const line = new Line();
    const client = clientOver(this.#transport(name, line));
    const informers = informerFactory({ client, clock, random, log: silentLog });
    const events = eventWriter({ client, clock, random, log: silentLog });
    const options = { isShared: true, nodeName: name, client, informers, events, clock, random, log: silentLog, metrics: metricsRegistry() };
    const parts = [
      events,
      ...leading(options, "kube-controller-manager", (deps) => allControllers({ ...options, informers: deps.informers, metrics: deps.metrics, rootCa: () => "", localStorage: false, nodeIpam: { clusterCidrs: ["10.42.0.0/16"], serviceCidrs: ["10.96.0.0/16"] } })),
      ...leading(options, "kube-scheduler", (deps) => [scheduler({ ...options, ...deps })]),
    ];
    const stop = new AbortController();
    const life = runAll(parts, stop.signal);
    this.#live(life);
    this.#planes.set(name, { line, end: () => this.#end(stop, life) });
  }

  /** Without a farewell: its Lease runs out. */
  killPlane(name: string): void {
    const plane = this.#planes.get(name);
    this.#planes.set(name, undefined);
    plane?.line.cut();
    void plane?.end();
  }

  startNode(name: string): void {
    const clock = this.#clockOf(name);
    const random = this.random.fork();
    const line = new Line();
    const client = clientOver(this.#transport(name, line));
    const informers = informerFactory({ client, clock, random, log: silentLog });
    const pods = informers.of(PODS, { fieldSelector: `spec.nodeName=${name}` });
    const parts = hollowNode({
      name, index: Number(name.slice(name.lastIndexOf("-") + 1)), version: "v1.36.0", labels: {}, annotations: {}, taints: [], client, pods, nodes: informers.of(NODES, { fieldSelector: `metadata.name=${name}` }),
      cri: memoryRuntime({ nowMs: () => clock.nowMs() }), events: silentEvents, clock, log: silentLog,
    });
    const stop = new AbortController();
    const life = runAll([informers, ...parts], stop.signal);
    this.#live(life);
    this.#nodes.set(name, { line, pods, end: () => this.#end(stop, life) });
  }

  /** It loses its power: nothing runs on it any more. */
  killNode(name: string): void {
    const node = this.#nodes.get(name);
    this.#nodes.set(name, undefined);
    node?.line.cut();
    void node?.end();
  }

  async end(): Promise<void> {
    for (const life of [...this.#planes.values(), ...this.#nodes.values()]) void life?.end();
    this.#server?.stop.abort();
    await this.clock.run(60_000);
    await Promise.all(this.#ending);
  }

  #transport(name: string, line: Line | undefined): Transport {
    const current: Handler = (request) => {
      if (!this.#server) return Promise.reject(new Error("the server is down"));
      const { handler, stop } = this.#server;
      if (!request.query.has("watch")) return handler(request);
      return handler({ ...request, signal: AbortSignal.any([request.signal, stop.signal]) }); // connections die with their server
    };
    const inner = inProcessTransport(current, { user: { name, groups: ["system:masters"] }, userAgent: name });
    if (!line) return inner;
    return faultyTransport(inner, { line, weather: () => this.weather, random: this.random.fork(), clock: this.clock, onLost: (request) => void this.lost.push({ atMs: this.clock.uptimeMs(), request }) });
  }

  async #end(stop: AbortController, life: Promise<void>): Promise<void> {
    stop.abort();
    await life.catch(() => undefined); // has been kept as a failure, if it is one
  }

  /** Nobody may end by an error: what goes wrong around a part is no reason. */
  #live(life: Promise<void>): void {
    this.#ending.push(life.catch((error: unknown) => { if (!String(error).includes("crashed")) this.failures.push(error); }));
  }
}

/** Whose events are looked at. */
const OBSERVED = ["/registry/core/pods/", "/registry/apps/deployments/", "/registry/apps/replicasets/", "/registry/apps/statefulsets/", "/registry/apps/daemonsets/", "/registry/batch/jobs/", "/registry/core/resourcequotas/"] as const;
