import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { availableParallelism, cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { PodCertificateRequest } from "../../core/api/gen/certificates.v1beta1.ts";
import type { Container, Node, NodeStatus, Pod, PodStatus, Service } from "../../core/api/gen/core.v1.ts";
import { type EventRecorder, silentEvents } from "../../core/client/events.ts";
import { parseQuantity } from "../../core/api/meta/quantity.ts";
import { CONFIG_MAPS, LEASES, NODES, PODS, POD_CERTIFICATE_REQUESTS, SERVICES } from "../../core/client/resources.ts";
import { watchedInformer } from "../../core/client/watched-informer.ts";
import { aborted } from "../../core/lifecycle/aborted.ts";
import { type Clock, systemClock } from "../../core/lifecycle/clock.ts";
import { systemRandom } from "../../core/lifecycle/random.ts";
import { silentLog } from "../../core/observe/log.ts";
import { metricsRegistry } from "../../core/observe/metrics.ts";
import { eventually, fakeApi } from "../../test/fake-api.ts";
import { staticInformer, stored } from "../../test/static-informer.ts";
import { CriError } from "../cri/client.ts";
import { serviceMethods } from "../cri/facts.ts";
import { rpcClient } from "../cri/rpc-client.ts";
import type { ContainerConfig, ContainerStatusResponse, PodSandboxStatusResponse } from "../cri/gen/runtime.v1.ts";
import { memoryRuntime } from "../cri/memory-runtime.ts";
import type { Cgroups } from "../os/cgroup.ts";
import type { Mounts } from "../os/mount.ts";
import type { MachineInfo } from "../os/machine.ts";
import { kubelet } from "./kubelet.ts";
import type { KubeletDeps } from "./kubelet-deps.ts";
import { nodeAgent } from "./node/node-agent.ts";
import { NO_PLACEMENT } from "./placement/settings.ts";
import type { Methods as PodResourcesMethods } from "./plugins/gen/pod-resources.v1.ts";
import podResourcesText from "./plugins/pod-resources-facts.txt" with { type: "text" };
import { kubeletConfiguration } from "./server/configz.ts";
import { KUBELET_DEFAULTS, type KubeletSettings } from "./settings.ts";
import { writeStateFile } from "../os/state-file.ts";

/** Time that runs fifty times as fast: a back-off of ten seconds is a fifth of one. */
const SPEED = 50;
/** Seconds of a grace period of 30: a busy machine needs some of them, at that speed. */
const LEFT_OF_30 = "(30|[12]?\\d)";
const startMs = Date.now();
const fastClock: Clock = {
  nowMs: () => startMs + (Date.now() - startMs) * SPEED,
  uptimeMs: () => performance.now() * SPEED,
  sleep: (ms, signal) => systemClock.sleep(ms / SPEED, signal),
  every: (ms, signal) => systemClock.every(ms / SPEED, signal),
  after: (ms, work) => systemClock.after(ms / SPEED, work),
};

const noMounts: Mounts = { mount: () => undefined, bind: () => undefined, unmount: () => undefined, unmountAll: () => [], list: () => [], isMountPoint: () => false };

function memoryCgroups(): Cgroups & { readonly paths: Set<string> } {
  const paths = new Set<string>();
  return {
    version: 2, countsSwap: false, paths, ensure: (path) => void paths.add(path), exists: (path) => paths.has(path), usage: () => undefined, pids: () => 0, kill: () => undefined, children: () => [], text: () => undefined,
    remove(path) { paths.delete(path); return true; },
  };
}

let dataDir = "";
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "kubelet-"));
  mkdirSync(join(dataDir, "manifests"));
});
afterEach(() => rmSync(dataDir, { recursive: true, force: true })); // what ends removes as well

/** A node: its kubelet may be stopped and started, its runtime and its API server live on. */
async function startNode(more: Partial<KubeletSettings> = {}, others: Partial<KubeletDeps> = {}) {
  const api = fakeApi({ clock: fastClock });
  const cri = memoryRuntime({ nowMs: fastClock.nowMs });
  const cgroups = memoryCgroups();
  const told: string[] = [];
  let metrics = metricsRegistry();
  const recorder: EventRecorder = { event: (about, _, reason, message) => void told.push(`${"metadata" in about ? about.metadata?.name : about.name} ${reason}: ${message}`) };
  const signal = new AbortController().signal;
  const log = { ...silentLog };
  cri.images.add("busybox:1");

  function startKubelet() {
    const stop = new AbortController();
    metrics = metricsRegistry();
    const deps = { clock: fastClock, random: systemRandom, log };
    const pods = watchedInformer(api.client.resource(PODS), { ...deps, query: { fieldSelector: "spec.nodeName=n1" } });
    const services = watchedInformer<Service>(api.client.resource(SERVICES), deps);
    const certificateRequests = () => watchedInformer<PodCertificateRequest>(api.client.resource(POD_CERTIFICATE_REQUESTS), deps);
    const settings = { ...KUBELET_DEFAULTS, nodeName: "n1", nodeIps: ["172.16.0.1"], hostname: "n1", version: "v1.36.0", dataDir, podLogsDir: join(dataDir, "logs"), containerLogsDir: join(dataDir, "links"), resolvConf: "", staticPodDir: join(dataDir, "manifests"), eviction: { ...KUBELET_DEFAULTS.eviction, thresholds: KUBELET_DEFAULTS.eviction.thresholds.filter(({ signal: of }) => of === "memory.available") }, ...more }; // how full this machine is does not matter
    const machine = { os: "linux" as const, cpus: 2, memoryBytes: 4 * 1024 ** 3, swapBytes: 0, hugepages: [], machineId: "", systemUuid: "", bootId: "b", kernelVersion: "", osImage: "", architecture: "amd64" };
    const node = kubelet({ ...deps, settings, client: api.client, pods, services, certificateRequests, cri, cgroups, mounts: noMounts, exec: async () => ({ exitCode: 0, stdout: "", stderr: "" }), machine, events: { ...silentEvents, from: () => recorder }, metrics, ...others });
    const done = Promise.all([pods, services, node].map((part) => part.run(stop.signal, () => undefined)));
    return { api: node.api, stop: async () => { stop.abort(); await done; } };
  }

  let running = startKubelet();
  const pods = api.client.resource(PODS);
  return {
    api, cri, cgroups, told, log,
    get kubelet() { return running.api; },
    counted: (series: string): number => Number(metrics.render().split("\n").find((line) => line.startsWith(`${series} `))?.split(" ")[1] ?? Number.NaN),
    status: (name: string): PodStatus | undefined => api.all<Pod>(PODS).find(({ metadata }) => metadata.name === name)?.status,
    async create(name: string, spec: Partial<Pod["spec"]>, containers: Partial<Container>[] = [{}]): Promise<void> {
      const all = containers.map((container, i) => ({ name: `c${i}`, image: "busybox:1", ...container }));
      await pods.create({ apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "d" }, spec: { nodeName: "n1", restartPolicy: "Always", terminationGracePeriodSeconds: 30, ...spec, containers: all } }, { signal });
    },
    delete: (name: string, gracePeriodSeconds?: number) => pods.delete({ metadata: { name, namespace: "d" } }, { gracePeriodSeconds }, { signal }),
    /** Waits until the API server says so of the pod. */
    until: (name: string, holds: (status: PodStatus | undefined) => boolean) => eventually(() => api.all<Pod>(PODS).find(({ metadata }) => metadata.name === name)?.status, holds),
    async stopKubelet() { await running.stop(); },
    startKubelet() { running = startKubelet(); },
    [Symbol.asyncDispose]: () => running.stop(),
  };
}

const isReady = (status: PodStatus | undefined): boolean => status?.conditions?.some(({ type, status: value }) => type === "Ready" && value === "True") ?? false;
const first = (status: PodStatus | undefined) => status?.containerStatuses?.[0];

test("the directories that drivers' manifests mount as ones that are there are made at the start", async () => {
  await using _node = await startNode();
  await eventually(() => ["plugins", "plugins_registry"].every((name) => existsSync(join(dataDir, name))), (made) => made);
});

test("what the kernel refuses of all burstable pods together keeps none of them from starting, nor from its end", async () => {
  const cgroups = memoryCgroups(), told: string[] = [];
  let refuses = false;
  await using node = await startNode({}, { log: { ...silentLog, warn: (message: string) => void told.push(message) }, cgroups: { ...cgroups, ensure(path, limits) {
    if (refuses && path === "/kubepods/burstable") throw new Error("EIO");
    cgroups.ensure(path, limits);
  } } });
  await eventually(() => cgroups.paths.has("/kubepods/burstable"), Boolean);
  refuses = true;
  await node.create("web", {});
  await node.until("web", isReady);
  await node.delete("web");
  await node.until("web", (gone) => gone === undefined);
  expect(told).toContain("what burstable pods may expect together is not set, next try with the next pod");
});

test("an answer of the runtime that was long on its way does not take the place of one that was asked for later: how a container ended is told", async () => {
  await using node = await startNode();
  const ask = node.cri.call.bind(node.cri);
  const stopping = Promise.withResolvers<void>(), stop = Promise.withResolvers<void>(), looked = Promise.withResolvers<void>(), old = Promise.withResolvers<void>();
  let isOld = false;
  node.cri.call = async (method, request, options) => {
    if (method === "RuntimeService/StopContainer") {
      stopping.resolve();
      await stop.promise;
    }
    const answer = await ask(method, request, options);
    if (method !== "RuntimeService/ContainerStatus" || !isOld) return answer;
    isOld = false;
    looked.resolve();
    await old.promise;
    return answer;
  };
  await node.create("job", { restartPolicy: "Never", activeDeadlineSeconds: 60 });
  await stopping.promise;
  isOld = true;
  node.cri.tellAgain("job");
  await looked.promise;
  stop.resolve();
  const ended = await node.until("job", (status) => status?.phase === "Failed" && first(status)?.state?.terminated !== undefined);
  old.resolve();
  await systemClock.sleep(100, new AbortController().signal); // would it be told, it would be by now
  expect([first(ended)?.state?.terminated?.exitCode, first(node.status("job"))?.state]).toEqual([143, first(ended)?.state]);
});

test("a pod runs, is reported, and leaves nothing behind", async () => {
  await using node = await startNode();
  await node.create("web", { initContainers: [{ name: "i", image: "busybox:1" }], volumes: [{ name: "e", emptyDir: {} }] }, [{ volumeMounts: [{ name: "e", mountPath: "/e" }] }, {}]);
  await node.until("web", (status) => status?.initContainerStatuses?.[0]?.state?.running !== undefined);
  expect(node.cri.running()).toEqual(["i"]);
  node.cri.exit("i", 0);
  const status = await node.until("web", isReady);
  expect(status).toMatchObject({ phase: "Running", podIP: expect.stringMatching(/^10\.0\.0\./), hostIP: "172.16.0.1", qosClass: "BestEffort" });
  expect([...node.cgroups.paths].filter((path) => path.includes("/pod")).length).toBe(1);
  expect(readdirSync(join(dataDir, "pods")).length).toBe(1);

  expect(["kubelet_node_name{node=\"n1\"}", "kubelet_pod_start_duration_seconds_count", "kubelet_pod_worker_duration_seconds_count{operation_type=\"create\"}", "kubelet_pleg_relist_duration_seconds_count"].map(node.counted)).toEqual([1, 1, 1, 1]);
  expect(node.counted("kubelet_pod_worker_duration_seconds_count{operation_type=\"sync\"}")).toBeGreaterThan(0);

  await node.delete("web");
  await node.until("web", (gone) => gone === undefined);
  await eventually(() => node.counted("kubelet_pod_worker_duration_seconds_count{operation_type=\"kill\"}"), (count) => count > 0);
  await eventually(() => [...node.cgroups.paths].filter((path) => path.includes("/pod")).length + readdirSync(join(dataDir, "pods")).length + readdirSync(join(dataDir, "logs")).length, (left) => left === 0);
  expect(node.cri.calls.filter((call) => /^StopContainer c/.test(call)).toSorted()).toEqual(["c0", "c1"].map((name) => expect.stringMatching(new RegExp(`^StopContainer ${name} ${LEFT_OF_30}s$`))));
  expect(node.told).toContain("web Killing: Stopping container c1");
});

test("a pod's end is told at once and as a whole, as upstream tells it, and its address stays", async () => {
  const runtime = memoryRuntime({ nowMs: fastClock.nowMs });
  runtime.images.add("busybox:1");
  const slow: typeof runtime.call = async (method, ...rest) => {
    if (method === "RuntimeService/StopPodSandbox") await Bun.sleep(50); // by then it has been heard that the containers have ended
    return await runtime.call(method, ...rest);
  };
  await using node = await startNode({}, { cri: { ...runtime, call: slow } });
  await node.create("web", {}, [{}, {}]);
  const { podIP } = (await node.until("web", isReady))!;
  const quit = new AbortController(), told = new Set<string>();
  const pods = node.api.client.resource(PODS);
  const { metadata: { resourceVersion } } = await pods.list({}, { signal: quit.signal });
  const watching = (async () => {
    for await (const { type, object: { status } } of pods.watch({ resourceVersion }, { signal: quit.signal })) {
      told.add([status?.phase, status?.podIP, ...status!.containerStatuses!.map(({ state }) => Object.keys(state!)[0])].join(" "));
      if (type === "DELETED") return;
    }
  })();
  await node.delete("web");
  await watching;
  expect([...told]).toEqual([`Running ${podIP} running running`, `Failed ${podIP} terminated terminated`]);
});

test("the node is registered, reported and keeps its lease", async () => {
  await using node = await startNode();
  const found = await eventually(() => node.api.all(NODES)[0], (one) => one?.status?.conditions?.at(-1)?.reason === "KubeletReady");
  expect(found?.metadata.labels).toMatchObject({ "kubernetes.io/hostname": "n1", "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux" });
  expect(found?.status).toMatchObject({ capacity: { cpu: "2", memory: "4Gi", pods: "110" }, allocatable: { memory: "3996Mi" }, addresses: [{ type: "InternalIP", address: "172.16.0.1" }, { type: "Hostname", address: "n1" }] });
  expect(node.counted("kubelet_node_startup_duration_seconds")).toBeGreaterThan(0);
  const lease = await eventually(() => node.api.all(LEASES)[0], (one) => one !== undefined);
  expect(lease?.spec).toMatchObject({ holderIdentity: "n1", leaseDurationSeconds: 40 });
  await eventually(() => node.api.all(LEASES)[0]?.spec?.renewTime, (renewed) => renewed !== lease?.spec?.renewTime);
  for (const told of ["n1 Starting: Starting kubelet.", "n1 NodeAllocatableEnforced: Updated Node Allocatable limit across pods"]) await eventually(() => node.told, (all) => all.includes(told));
});

test("a node that somebody else has made is told to have its volumes attached for it", async () => {
  await using node = await startNode();
  await node.stopKubelet();
  await node.api.client.resource(NODES).delete({ metadata: { name: "n1" } }, {}, { signal: new AbortController().signal }).catch(() => undefined);
  await node.api.client.resource(NODES).create({ apiVersion: "v1", kind: "Node", metadata: { name: "n1" }, spec: {} }, { signal: new AbortController().signal });
  node.startKubelet();
  await eventually(() => node.api.all(NODES)[0]?.metadata.annotations, (annotations) => annotations?.["volumes.kubernetes.io/controller-managed-attach-detach"] === "true");
});

test("a node that begins without a network is told to be ready once it is, and not that it was not", async () => {
  const runtime = memoryRuntime({ nowMs: fastClock.nowMs });
  let hasNetwork = false;
  const call: typeof runtime.call = async (method, ...rest) => {
    const conditions = [{ type: "RuntimeReady", status: true }, { type: "NetworkReady", status: hasNetwork }];
    return method === "RuntimeService/Status" ? { status: { conditions } } as never : await runtime.call(method, ...rest);
  };
  await using node = await startNode({}, { cri: { ...runtime, call } });
  await eventually(() => node.api.all(NODES)[0]?.status?.conditions?.at(-1)?.reason, (reason) => reason === "KubeletNotReady");
  hasNetwork = true;
  await eventually(() => node.told, (lines) => lines.includes("n1 NodeReady: Node n1 status is now: NodeReady"));
  expect(node.told.filter((line) => line.includes("NodeNotReady"))).toEqual([]);
});

test("a node tells when nothing is to be scheduled on it, and when it is again", async () => {
  await using node = await startNode();
  await eventually(() => node.api.all(NODES)[0], (one) => one?.status?.conditions?.at(-1)?.reason === "KubeletReady");
  const told = (): string[] => node.told.flatMap((line) => /Node(Not)?Schedulable$/.exec(line)?.[0] ?? []);
  const cordon = (unschedulable: boolean) => node.api.client.resource(NODES).patch({ metadata: { name: "n1" } }, "application/merge-patch+json", { spec: { unschedulable } }, { signal: new AbortController().signal });
  await cordon(true);
  await eventually(told, (names) => names.length === 1);
  await cordon(false);
  expect(await eventually(told, (names) => names.length === 2)).toEqual(["NodeNotSchedulable", "NodeSchedulable"]);
});

test("a node puts its system and processor right while it runs", async () => {
  await using node = await startNode();
  await eventually(() => node.api.all(NODES)[0], (one) => one?.status?.conditions?.at(-1)?.reason === "KubeletReady");
  const labels = (): Record<string, string> => node.api.all(NODES)[0]?.metadata.labels ?? {};
  const { "kubernetes.io/os": os, "kubernetes.io/arch": architecture } = labels();
  await node.api.client.resource(NODES).patch({ metadata: { name: "n1" } }, "application/merge-patch+json", { metadata: { labels: { "kubernetes.io/os": "beos", "kubernetes.io/arch": null, shed: "7" } } }, { signal: new AbortController().signal });
  const right = await eventually(labels, (now) => now["kubernetes.io/os"] === os);
  expect([right["kubernetes.io/arch"], right["shed"]]).toEqual([architecture, "7"]);
});

test("a node that does not register itself waits until somebody has made it, and leaves its labels alone but for its system and processor", async () => {
  await using node = await startNode({ registers: false, labels: { mine: "1" } });
  await node.create("web", {});
  await eventually(() => node.cri.running(), (names) => names.includes("c0"));
  expect(node.api.all(NODES)).toEqual([]);
  await node.api.client.resource(NODES).create({ apiVersion: "v1", kind: "Node", metadata: { name: "n1", labels: { theirs: "2" } }, spec: {} }, { signal: new AbortController().signal });
  const found = await eventually(() => node.api.all(NODES)[0], (one) => one?.status?.conditions?.at(-1)?.reason === "KubeletReady");
  expect(found?.metadata.labels).toEqual({ theirs: "2", "kubernetes.io/os": expect.any(String), "kubernetes.io/arch": expect.any(String) });
});

test("a container that keeps failing waits longer and longer", async () => {
  await using node = await startNode();
  await node.create("crash", {});
  for (const [restarts, delay] of [[1, "10s"], [2, "20s"], [3, "40s"]] as const) {
    await eventually(() => node.cri.running(), (names) => names.includes("c0"));
    node.cri.exit("c0", 1);
    if (restarts === 1) { // the first restart comes at once
      await node.until("crash", (status) => first(status)?.restartCount === 1 && first(status)?.state?.running !== undefined);
      node.cri.exit("c0", 1);
    }
    const status = await node.until("crash", (now) => first(now)?.state?.waiting?.message?.includes(delay) ?? false);
    expect(first(status)).toMatchObject({ restartCount: restarts, state: { waiting: { reason: "CrashLoopBackOff" } }, lastState: { terminated: { exitCode: 1, reason: "Error" } } });
    expect(status?.phase).toBe("Running");
  }
});

test("a container that is given other resources does not wait for what it did with those it had", async () => {
  await using node = await startNode();
  await node.create("crash", {}, [{ resources: { requests: { cpu: "100m" } } }]);
  const crash = async (restarts: number): Promise<void> => {
    await node.until("crash", (status) => first(status)?.restartCount === restarts && first(status)?.state?.running !== undefined);
    node.cri.exit("c0", 1);
  };
  for (const restarts of [0, 1, 2]) await crash(restarts);
  await node.until("crash", (now) => first(now)?.state?.waiting?.message?.includes("20s") ?? false);
  await node.api.client.resource(PODS).patch({ metadata: { name: "crash", namespace: "d" } }, "application/merge-patch+json", { spec: { containers: [{ name: "c0", image: "busybox:1", resources: { requests: { cpu: "200m" } } }] } }, { signal: new AbortController().signal });
  await crash(3);
  await node.until("crash", (now) => first(now)?.restartCount === 3 && (first(now)?.state?.waiting?.message?.includes("10s") ?? false));
});

test("a pod that has done its work", async () => {
  await using node = await startNode();
  await node.create("job", { restartPolicy: "Never", initContainers: [{ name: "side", image: "busybox:1", restartPolicy: "Always" }] });
  await eventually(() => node.cri.running(), (names) => names.length === 2);
  node.cri.exit("c0", 0);
  const status = await node.until("job", (now) => now?.phase === "Succeeded" && now.initContainerStatuses?.[0]?.state?.terminated !== undefined);
  expect(first(status)?.state?.terminated).toMatchObject({ exitCode: 0, reason: "Completed" });
  expect(node.cri.running()).toEqual([]);
  await eventually(() => existsSync(join(dataDir, "pods")) && readdirSync(join(dataDir, "pods")).length, (left) => left === 0);
});

test.each([
  ["a claim that is not there", { persistentVolumeClaim: { claimName: "gone" } }, `Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], failed to process volumes=[v]: error processing PVC d/gone: failed to fetch PVC from API server: persistentvolumeclaims "gone" not found`],
  ["a kind that no node knows", { flexVolume: { driver: "a/b" } }, `Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], failed to process volumes=[v]: failed to get Plugin from volumeSpec for volume "v" err=no volume plugin matched`],
  ["gitRepo", { gitRepo: { repository: "r" } }, 'MountVolume.SetUp failed for volume "v" : git-repo volume plugin has been disabled; if necessary, it may be re-enabled by enabling the feature-gate `GitRepoVolumeDriver`'],
  ["a file in no directory", { hostPath: { path: "/none/of/it", type: "FileOrCreate" } }, 'MountVolume.SetUp failed for volume "v" : open /none/of/it: no such file or directory'],
  ["huge pages that nobody asked for", { emptyDir: { medium: "HugePages" } }, 'MountVolume.SetUp failed for volume "v" : medium HugePages: hugePages storage requested, but there is no resource request for huge pages'],
] as const)("why a volume is not there: %s", async (_, source, message) => {
  await using node = await startNode();
  await node.create("web", { volumes: [{ name: "v", ...source }] }, [{ volumeMounts: [{ name: "v", mountPath: "/v" }] }]);
  await eventually(() => node.told.find((line) => line.startsWith("web FailedMount")), (line) => line !== undefined);
  expect(node.told.filter((line) => line.startsWith("web FailedMount"))[0]).toBe(`web FailedMount: ${message}`);
});

test("the image of a volume is the pod's, and the container says that it is not there", async () => {
  await using node = await startNode();
  await node.create("web", { volumes: [{ name: "v", image: { reference: "none:1" } }] }, [{ volumeMounts: [{ name: "v", mountPath: "/v" }] }]);
  const status = await node.until("web", (now) => first(now)?.state?.waiting?.reason === "ImagePullBackOff");
  expect(first(status)?.state?.waiting?.message).toContain('Back-off pulling image "none:1": ErrImagePull: ');
  expect(node.told.filter((line) => /Pulling|Error/.test(line)).slice(0, 2)).toEqual(['web Pulling: Pulling image "none:1"', "web Failed: Error: ErrImagePull"]);
});

test("the id of a container says whose it is", async () => {
  const runtime = memoryRuntime({ nowMs: fastClock.nowMs });
  runtime.images.add("busybox:1");
  let isSilent = false;
  const call: typeof runtime.call = async (method, ...rest) => {
    if (method === "RuntimeService/Version" && isSilent) throw new CriError({ method, code: "Unavailable", detail: "soon" });
    return method === "RuntimeService/Version" ? { runtime_name: "cri-o", runtime_version: "1.36.0" } as never : await runtime.call(method, ...rest);
  };
  await using node = await startNode({}, { cri: { ...runtime, call } });
  await node.create("web", {}, [{ readinessProbe: { exec: { command: ["true"] }, periodSeconds: 1 } }]);
  await node.until("web", isReady);
  await node.stopKubelet();
  isSilent = true; // to a kubelet that begins anew, for a while
  const done = runtime.calls.length, told: string[] = [];
  node.api.fail = ({ method, path, body }) => void (method === "PATCH" && path.includes("/pods/") && told.push(JSON.stringify(body)));
  node.startKubelet();
  await eventually(() => runtime.calls.length, (calls) => calls > done);
  expect(told).toEqual([]);
  isSilent = false;
  runtime.exit("c0", 1);
  const status = first(await node.until("web", (now) => first(now)?.restartCount === 1 && isReady(now)));
  expect([status?.containerID, status?.lastState?.terminated?.containerID]).toEqual([expect.stringMatching(/^cri-o:\/\/./), expect.stringMatching(/^cri-o:\/\/./)]);
});

test("a container is told its pod's addresses in the order in which everybody else is", async () => {
  const runtime = memoryRuntime({ nowMs: fastClock.nowMs });
  runtime.images.add("busybox:1");
  let told: string | undefined;
  const call: typeof runtime.call = async (method, request, options) => {
    if (method === "RuntimeService/CreateContainer") told = (request as { config: ContainerConfig }).config.envs?.filter(({ key }) => key?.startsWith("IP")).map(({ value }) => String(value)).join(" ");
    const answer = await runtime.call(method, request, options);
    if (method === "RuntimeService/PodSandboxStatus") Object.assign((answer as PodSandboxStatusResponse).status!.network!, { ip: "fd00::5", additional_ips: [{ ip: "10.0.0.5" }] });
    return answer;
  };
  await using node = await startNode({}, { cri: { ...runtime, call } });
  const env = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { fieldPath } } });
  await node.create("web", {}, [{ env: [env("IP", "status.podIP"), env("IPS", "status.podIPs")] }]);
  expect(await node.until("web", isReady)).toMatchObject({ podIP: "10.0.0.5", podIPs: [{ ip: "10.0.0.5" }, { ip: "fd00::5" }] });
  expect(told).toBe("10.0.0.5 10.0.0.5,fd00::5");
});

test("a container that cannot be started is named in the event, not by the id that only this one of it has", async () => {
  const runtime = memoryRuntime({ nowMs: fastClock.nowMs });
  runtime.images.add("busybox:1");
  const call: typeof runtime.call = async (method, request, options) => {
    if (method === "RuntimeService/StartContainer") throw new CriError({ method, code: "Unknown", detail: `task ${(request as { container_id: string }).container_id}: no such file` });
    return await runtime.call(method, request, options);
  };
  await using node = await startNode({}, { cri: { ...runtime, call } });
  await node.create("web", {});
  const status = await node.until("web", (now) => first(now)?.state?.waiting?.reason === "RunContainerError");
  expect(first(status)?.state?.waiting?.message).toMatch(/^task (?!c0:).+: no such file$/);
  expect(node.told).toContain("web Failed: Error: task c0: no such file");
});

test("an ephemeral container that could not be started is not tried again, and goes on telling why", async () => {
  const runtime = memoryRuntime({ nowMs: fastClock.nowMs });
  runtime.images.add("busybox:1");
  let [looks, debugId] = [0, ""];
  const call: typeof runtime.call = async (method, request, options) => {
    if (method === "RuntimeService/PodSandboxStatus") looks++;
    const answer = await runtime.call(method, request, options);
    if (method === "RuntimeService/CreateContainer" && (request as { config: ContainerConfig }).config.metadata?.name === "debug") debugId = (answer as { container_id: string }).container_id;
    if (method !== "RuntimeService/StartContainer" || (request as { container_id: string }).container_id !== debugId) return answer;
    runtime.exit("debug", 128, "StartError"); // as a runtime has it that could not start it
    throw new CriError({ method, code: "Unknown", detail: "no such file" });
  };
  await using node = await startNode({}, { cri: { ...runtime, call } });
  await node.create("web", { ephemeralContainers: [{ name: "debug", image: "busybox:1", terminationMessagePath: "/dev/termination-log", terminationMessagePolicy: "File", imagePullPolicy: "IfNotPresent" }] });
  const told = await node.until("web", (now) => now?.ephemeralContainerStatuses?.[0]?.state?.waiting?.reason === "RunContainerError");
  const seen = looks;
  await eventually(() => looks, (count) => count > seen + 2);
  expect([told, node.status("web")].map((status) => status?.ephemeralContainerStatuses?.[0]?.state)).toEqual([{ waiting: { reason: "RunContainerError", message: "no such file" } }, { waiting: { reason: "RunContainerError", message: "no such file" } }]);
});

test("mounts are read-only all the way down where the runtime can do that, and a container that insists on it does not start where it cannot", async () => {
  const runtime = memoryRuntime({ nowMs: fastClock.nowMs });
  runtime.images.add("busybox:1");
  const asked: unknown[] = [];
  let can = false;
  const call: typeof runtime.call = async (method, request, ...rest) => {
    if (method === "RuntimeService/Status") return { status: { conditions: [{ type: "RuntimeReady", status: true }, { type: "NetworkReady", status: true }] }, runtime_handlers: [{ name: "", features: { recursive_read_only_mounts: can } }] } as never;
    if (method === "RuntimeService/CreateContainer") asked.push(...((request as { config: ContainerConfig }).config.mounts ?? []).filter(({ container_path }) => container_path === "/e").map(({ recursive_read_only }) => recursive_read_only));
    return await runtime.call(method, request, ...rest);
  };
  await using node = await startNode({}, { cri: { ...runtime, call } });
  const mounting = (recursiveReadOnly: "IfPossible" | "Enabled") => [{ volumeMounts: [{ name: "e", mountPath: "/e", readOnly: true, recursiveReadOnly }] }];
  const spec = { volumes: [{ name: "e", emptyDir: {} }] };
  await node.create("may", spec, mounting("IfPossible"));
  await node.until("may", isReady);
  await node.create("must", spec, mounting("Enabled"));
  const refused = await node.until("must", (status) => first(status)?.state?.waiting?.reason === "CreateContainerConfigError");
  expect(first(refused)?.state?.waiting?.message).toBe('failed to resolve recursive read-only mode: volume "e" requested recursive read-only mode, but it is not supported by the runtime');
  can = true;
  await node.until("must", isReady);
  expect(asked).toEqual([false, true]);
});

test("a pod for which there can be no control group says so", async () => {
  const cgroups = memoryCgroups();
  const ensure: Cgroups["ensure"] = (path) => {
    if (path.includes("/pod")) throw new Error("no space left on device");
    cgroups.paths.add(path);
  };
  await using node = await startNode({}, { cgroups: { ...cgroups, ensure } });
  await node.create("web", {});
  await eventually(() => node.told, (lines) => lines.includes("web FailedCreatePodContainer: unable to ensure pod container exists: no space left on device"));
});

test("a pod whose name is too long for its machine says so", async () => {
  await using node = await startNode();
  await node.create("web", { hostname: "h".repeat(60), subdomain: "s", setHostnameAsFQDN: true });
  await eventually(() => node.told, (lines) => lines.includes(`web FailedCreatePodSandBox: Failed to create pod sandbox: failed to construct FQDN from pod hostname and cluster domain, FQDN ${"h".repeat(60)}.s.d.svc.cluster.local is too long (64 characters is the max, 82 characters requested)`));
});

test("what cannot start says why", async () => {
  await using node = await startNode();
  await node.create("image", {}, [{ image: "none:1" }]);
  await node.create("config", { hostUsers: false }, [{ env: [{ name: "A", valueFrom: { configMapKeyRef: { name: "cfg", key: "a" } } }] }]);
  await node.create("volume", { volumes: [{ name: "v", secret: { secretName: "none" } }] }, [{ volumeMounts: [{ name: "v", mountPath: "/v" }] }]);
  await node.create("big", {}, [{ resources: { requests: { cpu: "3" } } }]);
  await node.until("image", (status) => first(status)?.state?.waiting?.reason === "ImagePullBackOff");
  const wrong = await node.until("config", (status) => first(status)?.state?.waiting?.reason === "CreateContainerConfigError");
  expect(first(wrong)?.state?.waiting?.message).toBe(`configmap "cfg" not found`);
  const config = { namespace: "d", name: "config" }, streams = { stdout: true }, { signal } = new AbortController();
  await expect(node.kubelet.exec(config, "", ["true"], streams, signal)).rejects.toThrow('container not found ("c0")');
  await expect(node.kubelet.attach(config, "", streams, signal)).rejects.toThrow("container c0 not found in pod config_d");
  expect(["", "_errors"].map((kind) => node.counted(`kubelet_started_user_namespaced_pods${kind}_total`))).toEqual([1, 1]);
  await eventually(() => node.told, (lines) => lines.includes(`volume FailedMount: MountVolume.SetUp failed for volume "v" : secret "none" not found`));
  expect(await node.until("big", (status) => status?.phase === "Failed")).toMatchObject({ reason: "OutOfcpu", message: "Pod was rejected: Node didn't have enough resource: cpu, requested: 3000, used: 0, capacity: 2000" });

  await node.api.client.resource(CONFIG_MAPS).create({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "cfg", namespace: "d" }, data: { a: "1" } }, { signal: new AbortController().signal });
  await node.until("config", isReady);
});

test("what a pod took is free as soon as its object is gone, even while its containers are being stopped; not before", async () => {
  await using node = await startNode();
  const wants: Partial<Container> = { ports: [{ containerPort: 80, hostPort: 80 }], resources: { requests: { cpu: "2" } } };
  const { promise: stopped, resolve: stop } = Promise.withResolvers<void>();
  const { call } = node.cri;
  Object.assign(node.cri, { call: async (...[method, ...rest]: Parameters<typeof call>) => {
    if (method === "RuntimeService/StopContainer") await stopped;
    return await call(method, ...rest);
  } });
  await node.create("old", {}, [wants]);
  await node.until("old", isReady);
  await node.delete("old");
  await node.create("early", {}, [wants]);
  expect(await node.until("early", (status) => status?.phase === "Failed")).toMatchObject({ reason: "OutOfcpu" });
  await node.delete("early", 0);
  await node.delete("old", 0);
  await node.create("new", {}, [wants]);
  await node.until("new", isReady);
  stop();
});

/** Fails calls of the runtime, or delays them, until `end` is called. */
function disturb(node: Awaited<ReturnType<typeof startNode>>, disturbed: (method: string, request: object) => boolean, how: "fails" | "waits" = "fails"): { tries: number; end(): void } {
  const { call } = node.cri;
  const over = Promise.withResolvers<void>();
  const disturbance = { tries: 0, end: () => { Object.assign(node.cri, { call }); over.resolve(); } };
  Object.assign(node.cri, { call: async (...[method, request, ...rest]: Parameters<typeof call>) => {
    if (disturbed(method, request)) {
      disturbance.tries++;
      if (how === "fails") throw new Error("the runtime cannot");
      await over.promise;
    }
    return await call(method, request, ...rest);
  } });
  return disturbance;
}
const stopsSandbox = (method: string): boolean => method === "RuntimeService/StopPodSandbox";
const hasExited = (status: PodStatus | undefined): boolean => first(status)?.state?.terminated !== undefined;

/** What a pod took is taken until its sandbox is stopped, which is when its end is told, and another's from then on, though its volumes cannot be taken away yet. */
async function isFreeOnceToldAndNotBefore(node: Awaited<ReturnType<typeof startNode>>, wants: Partial<Container>): Promise<void> {
  const held = disturb(node, stopsSandbox, "waits");
  await node.create("done", { restartPolicy: "Never" }, [{ name: "d", ...wants }]);
  await node.until("done", isReady);
  node.cri.exit("d", 0);
  expect(await node.until("done", hasExited)).toMatchObject({ phase: "Running" });
  await node.create("early", {}, [wants]);
  expect(await node.until("early", (status) => isReady(status) || status?.phase === "Failed")).toMatchObject({ phase: "Failed" });
  expect(node.status("done")?.phase).toBe("Running");
  held.end();
  await node.until("done", (status) => status?.phase === "Succeeded");
  await node.create("next", {}, [{ name: "n", ...wants }]);
  await node.until("next", isReady);
}

const busyMounts: Mounts = { ...noMounts, unmountAll: () => { throw new Error("busy"); } };

test("a container that is being started is waited for when the kubelet ends, but not for good", async () => {
  await using node = await startNode();
  const held = disturb(node, (method) => method === "RuntimeService/StartContainer", "waits");
  await node.create("slow", {});
  await eventually(() => held.tries, (tries) => tries === 1);
  let ended = false;
  const end = node.stopKubelet().then(() => { ended = true; });
  await fastClock.sleep(10_000, new AbortController().signal);
  expect(ended).toBe(false);
  await end;
  held.end();
});

test("a pod's end is told once its sandbox is stopped: what it took is taken until then, and no longer", async () => {
  await using node = await startNode({}, { mounts: busyMounts });
  await isFreeOnceToldAndNotBefore(node, { ports: [{ containerPort: 80, hostPort: 80 }], resources: { requests: { cpu: "2" } } });
});

test.skipIf(process.platform !== "linux" || availableParallelism() < 2)("a processor that a pod had for itself is another's as soon as its end is told, and not before", async () => {
  await using node = await startNode({ reserved: { cpu: "1" }, placement: { ...NO_PLACEMENT, cpuPolicy: "static", reservedCpus: `0-${cpus().length - 2}` } }, { mounts: busyMounts });
  await isFreeOnceToldAndNotBefore(node, { resources: { requests: { cpu: "1", memory: "1Mi" }, limits: { cpu: "1", memory: "1Mi" } } });
});

test.skipIf(process.platform !== "linux" || availableParallelism() < 2)("processors are given before the node is looked at: none left is an unexpected error that ends nobody, and who is refused for something else holds none", async () => {
  await using node = await startNode({ reserved: { cpu: "1" }, placement: { ...NO_PLACEMENT, cpuPolicy: "static", reservedCpus: `0-${cpus().length - 2}` } });
  const whole = (cpu: string): Partial<Container>[] => [{ resources: { requests: { cpu, memory: "1Mi" }, limits: { cpu, memory: "1Mi" } } }];
  await node.create("plain", { priority: 0 }, whole("1"));
  await node.until("plain", isReady);
  await node.create("critical", { priority: 2_000_000_000 }, whole("1"));
  expect(await node.until("critical", (status) => status?.phase === "Failed")).toMatchObject({ reason: "UnexpectedAdmissionError", message: "Pod was rejected: Allocate failed due to not enough cpus available to satisfy request: requested=1, available=0, which is unexpected" });
  expect(node.status("plain")?.phase).toBe("Running");
  await node.delete("plain", 0);
  await node.create("elsewhere", { nodeSelector: { disk: "ssd" } }, whole("1"));
  expect(await node.until("elsewhere", (status) => status?.phase === "Failed")).toMatchObject({ reason: "NodeAffinity" });
  await node.create("here", {}, whole("1"));
  expect(await node.until("here", (status) => isReady(status) || status?.phase === "Failed")).toMatchObject({ phase: "Running" });
});

test("the end of a pod whose sandbox cannot be stopped is told when it could be, by the next kubelet too, and its address stays", async () => {
  await using node = await startNode();
  await node.create("done", { restartPolicy: "Never", initContainers: [{ name: "side", image: "busybox:1", restartPolicy: "Always" }] });
  const { podIP } = (await node.until("done", isReady))!;
  const held = disturb(node, stopsSandbox);
  node.cri.exit("c0", 3);
  await eventually(() => node.told, (lines) => lines.some((line) => line.startsWith("done FailedKillPod: ")));
  expect(await node.until("done", hasExited)).toMatchObject({ phase: "Running", podIP });
  await node.stopKubelet();
  node.startKubelet();
  const { tries } = held;
  await eventually(() => held.tries, (count) => count > tries + 1);
  expect(node.status("done")).toMatchObject({ phase: "Running", podIP });
  held.end();
  expect(await node.until("done", (status) => status?.phase !== "Running")).toMatchObject({ phase: "Failed", podIP, containerStatuses: [{ restartCount: 0, state: { terminated: { exitCode: 3 } } }] });
  expect(node.cri.calls.filter((call) => call === "StartContainer c0")).toHaveLength(1);
});

test("a container that has ended for good, and that was probed, keeps nobody busy", async () => {
  await using node = await startNode();
  const livenessProbe = { exec: { command: ["x"] }, periodSeconds: 1 };
  await node.create("half", { restartPolicy: "Never" }, [{ livenessProbe }, {}]);
  await node.until("half", isReady);
  node.cri.exit("c0", 0);
  await node.until("half", hasExited);
  await Bun.sleep(100);
  const syncs = () => node.counted('kubelet_pod_worker_duration_seconds_count{operation_type="sync"}');
  const before = syncs();
  await Bun.sleep(300);
  expect(syncs() - before).toBeLessThan(5);
});

test("a dead container that cannot be removed keeps its pod from nothing", async () => {
  await using node = await startNode();
  const problems: string[] = [];
  Object.assign(node.log, { warn: (message: string) => void problems.push(message) });
  await node.create("again", {});
  await node.until("again", isReady);
  const held = disturb(node, (method) => method === "RuntimeService/RemoveContainer");
  for (const count of [1, 2]) {
    node.cri.exit("c0", 1);
    await node.until("again", (status) => first(status)?.restartCount === count && isReady(status));
  }
  await eventually(() => held.tries, (tries) => tries > 0);
  expect(problems).toContain("dead containers not removed, next try at the next look");
  expect(problems).not.toContain("pod not synced, next try soon");
  held.end();
});

test("a machine that starts again with a clock that is far behind: what runs since is what counts, not what is younger by the clock", async () => {
  let behindMs = 0;
  const runtime = memoryRuntime({ nowMs: () => fastClock.nowMs() - behindMs });
  runtime.images.add("busybox:1");
  await using node = await startNode({}, { cri: runtime, clock: { ...fastClock, nowMs: () => fastClock.nowMs() - behindMs } });
  await node.create("web", {}, [{ name: "app" }]);
  await node.until("web", isReady);
  await node.stopKubelet();
  const { items = [] } = await runtime.call("RuntimeService/ListPodSandbox", {});
  for (const { id } of items) await runtime.call("RuntimeService/StopPodSandbox", { pod_sandbox_id: id });
  behindMs = 366 * 86_400_000;
  node.startKubelet();
  await node.until("web", (status) => first(status)?.restartCount === 1 && isReady(status));
  runtime.exit("app", 1);
  await node.until("web", (status) => first(status)?.restartCount === 2 && isReady(status));
  runtime.exit("app", 1);
  await node.until("web", (status) => first(status)?.state?.waiting?.reason === "CrashLoopBackOff");
  expect(runtime.calls.filter((call) => call.startsWith("RunPodSandbox"))).toHaveLength(2);
});

test("a sandbox that was stopped when the kubelet was: the pod's end is told by the next one, and it is not run again", async () => {
  await using node = await startNode();
  await node.create("done", { restartPolicy: "Never" });
  const { podIP } = (await node.until("done", isReady))!;
  const held = disturb(node, stopsSandbox);
  node.cri.exit("c0", 0);
  await node.until("done", hasExited);
  await node.stopKubelet();
  held.end();
  const { items = [] } = await node.cri.call("RuntimeService/ListPodSandbox", {});
  for (const { id } of items) await node.cri.call("RuntimeService/StopPodSandbox", { pod_sandbox_id: id });
  node.startKubelet();
  expect(await node.until("done", (status) => status?.phase !== "Running")).toMatchObject({ phase: "Succeeded", podIP });
  expect(node.cri.calls.filter((call) => call === "StartContainer c0")).toHaveLength(1);
});

test("what a container says at its end lies in its pod's directory until the pod is deleted, for a kubelet that starts anew", async () => {
  await using node = await startNode();
  await node.create("done", { restartPolicy: "Never" }, [{ terminationMessagePath: "/dev/termination-log" }]);
  await node.until("done", isReady);
  const [pod] = node.api.all<Pod>(PODS);
  const said = join(dataDir, "pods", pod!.metadata.uid, "containers/c0");
  for (const file of readdirSync(said)) writeFileSync(join(said, file), "last words");
  node.cri.exit("c0", 0);
  await node.until("done", (status) => status?.phase === "Succeeded");
  await eventually(() => readdirSync(join(dataDir, "pods", pod!.metadata.uid)), (names) => names.join() === "containers");
  await node.stopKubelet();
  const ended = node.api.all<Pod>(PODS)[0]!;
  await node.api.client.resource(PODS).updateStatus({ ...ended, status: pod!.status } as never, { signal: new AbortController().signal }); // as if nobody had been told
  node.startKubelet();
  expect(first(await node.until("done", hasExited))?.state?.terminated).toMatchObject({ message: "last words" });
  await node.delete("done");
  await eventually(() => readdirSync(join(dataDir, "pods")), (left) => left.length === 0);
});

test("the end of a pod that has claims is told once they are given back", async () => {
  await using node = await startNode();
  await node.create("done", { restartPolicy: "Never" });
  await node.until("done", isReady);
  await node.stopKubelet();
  const { uid } = node.api.all<Pod>(PODS)[0]!.metadata;
  const state = join(dataDir, "dra_manager_state");
  await writeStateFile(state, { claims: [{ namespace: "d", name: "gpu", uid: "c", drivers: ["is.away"], pods: [uid], devices: [] }] });
  const warnings: string[] = [];
  Object.assign(node.log, { warn: (_: string, facts: { error?: Error }) => void warnings.push(facts.error?.message ?? "") });
  node.startKubelet();
  node.cri.exit("c0", 0);
  await eventually(() => warnings, (lines) => lines.includes("DRA driver is.away is not registered"));
  expect(await node.until("done", hasExited)).toMatchObject({ phase: "Running" });
  expect(node.cri.calls).toContain("StopPodSandbox done");
  await node.stopKubelet();
  rmSync(state);
  node.startKubelet();
  expect(await node.until("done", (status) => status?.phase !== "Running")).toMatchObject({ phase: "Succeeded" });
});

test("a pod that nobody has scheduled, and whose claim is not made yet, says what it waits for, and can be deleted", async () => {
  await using node = await startNode();
  await node.create("early", { resourceClaims: [{ name: "gpu", resourceClaimTemplateName: "t" }] }, [{ resources: { claims: [{ name: "gpu" }] } }]);
  await eventually(() => node.told.filter((line) => line.startsWith("early FailedPrepareDynamicResources")), ({ length }) => length >= 2); // again and again
  expect(node.told).toContain("early FailedPrepareDynamicResources: Failed to prepare dynamic resources: prepare dynamic resources: pod claim gpu: ResourceClaim not created yet");
  expect(node.status("early")).toMatchObject({ phase: "Pending", containerStatuses: [{ name: "c0", state: { waiting: { reason: "ContainerCreating" } } }] });
  await node.delete("early");
  await node.until("early", (gone) => gone === undefined);
});

test("a pod that is deleted while its sandbox is being stopped goes with the end it had", async () => {
  await using node = await startNode();
  await node.create("done", { restartPolicy: "Never" });
  await node.until("done", isReady);
  const held = disturb(node, stopsSandbox);
  node.cri.exit("c0", 0);
  await node.until("done", hasExited);
  const quit = new AbortController(), phases = new Set<string | undefined>();
  const pods = node.api.client.resource(PODS);
  const { metadata: { resourceVersion } } = await pods.list({}, { signal: quit.signal });
  const watching = (async () => {
    for await (const { type, object: { status } } of pods.watch({ resourceVersion }, { signal: quit.signal })) {
      phases.add(status?.phase);
      if (type === "DELETED") return;
    }
  })();
  await node.delete("done");
  const { tries } = held;
  await eventually(() => held.tries, (count) => count > tries + 1);
  held.end();
  await watching;
  expect([...phases]).toEqual(["Running", "Succeeded"]);
});

test("a pod of which somebody else says that it has failed is ended, and stays so", async () => {
  await using node = await startNode();
  await node.create("web", {});
  await node.until("web", isReady);
  await node.api.client.resource(PODS).patch({ metadata: { name: "web", namespace: "d" } }, "application/merge-patch+json", { status: { phase: "Failed", reason: "NodeLost" } }, { subresource: "status", signal: new AbortController().signal });
  await eventually(() => node.cri.running(), (names) => names.length === 0);
  expect(await node.until("web", hasExited)).toMatchObject({ phase: "Failed" });
});

test("nothing is told of a pod before the runtime has said what it has of it", async () => {
  await using node = await startNode();
  await node.create("web", { restartPolicy: "Never" });
  const before = await node.until("web", isReady);
  await node.stopKubelet();
  const silent = disturb(node, (method, request) => method === "RuntimeService/ListContainers" && "filter" in request);
  node.startKubelet();
  await eventually(() => silent.tries, (count) => count > 0);
  await Bun.sleep(50);
  expect(node.status("web")).toEqual(before);
  silent.end();
  await node.create("next", {}, [{ name: "n" }]);
  await node.until("next", isReady);
  expect(node.status("web")).toEqual(before);
});

test("a pod that is refused takes nothing from the one that comes with it", async () => {
  await using node = await startNode();
  await node.stopKubelet();
  const asks = (cpu: string) => [{ resources: { requests: { cpu } } }];
  await node.create("big", {}, asks("3"));
  await node.create("fits", {}, [{ name: "f", ...asks("2")[0] }]);
  node.startKubelet();
  expect(await node.until("big", (status) => status?.phase === "Failed")).toMatchObject({ reason: "OutOfcpu" });
  expect(await node.until("fits", (status) => isReady(status) || status?.phase === "Failed")).toMatchObject({ phase: "Running" });
});

test("a critical pod drives out one that is not, where the node is too full for both", async () => {
  await using node = await startNode();
  const asks = (cpu: string) => [{ resources: { requests: { cpu } } }];
  await node.create("plain", { priority: 0 }, asks("1500m"));
  await node.create("small", { priority: 0 }, asks("100m"));
  await node.until("plain", isReady);
  await node.create("critical", { priority: 2_000_001_000 }, [{ name: "x", ...asks("1")[0] }]);
  await node.until("critical", isReady);
  const gone = await node.until("plain", (status) => status?.phase === "Failed");
  expect(gone).toMatchObject({ reason: "Preempting", message: "Preempted in order to admit critical pod", conditions: expect.arrayContaining([expect.objectContaining({ type: "DisruptionTarget", reason: "TerminationByKubelet", observedGeneration: 1 })]) });
  expect(isReady(node.status("small"))).toBe(true);
  expect(node.told).toContain("plain Preempting: Preempted in order to admit critical pod");
});

test("a critical pod that is to have more drives out others for it, and waits where that would not do", async () => {
  await using node = await startNode();
  const asks = (cpu: string) => ({ requests: { cpu } });
  const resize = (cpu: string) => node.api.client.resource(PODS).patch({ metadata: { name: "critical", namespace: "d" } }, "application/merge-patch+json", { spec: { containers: [{ name: "x", image: "busybox:1", resources: asks(cpu) }] } }, { signal: new AbortController().signal });
  await node.create("plain", { priority: 0 }, [{ resources: asks("900m") }]);
  await node.create("small", { priority: 0 }, [{ resources: asks("100m") }]);
  await node.create("critical", { priority: 2_000_001_000 }, [{ name: "x", resources: asks("1") }]);
  for (const name of ["plain", "small", "critical"]) await node.until(name, isReady);
  await resize("3"); // which the API server would have refused
  const waiting = await node.until("critical", (status) => status?.conditions?.some(({ type }) => type === "PodResizePending") ?? false);
  expect(waiting?.conditions?.find(({ type }) => type === "PodResizePending")).toMatchObject({ reason: "Deferred", message: "Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: [(res: cpu, q: 1000), ]" });
  expect(isReady(node.status("plain"))).toBe(true);
  await resize("1500m");
  expect(await node.until("plain", (status) => status?.phase === "Failed")).toMatchObject({ reason: "Preempting" });
  await node.until("critical", (status) => first(status)?.allocatedResources?.["cpu"] === "1500m");
  expect([isReady(node.status("small")), node.counted('kubelet_preemptions{preemption_signal="cpu"}')]).toEqual([true, 1]);
});

test("pods come a few at a time: with two processors four of them, and whoever has a sandbox has its containers before others have theirs", async () => {
  await using node = await startNode({}, { clock: { ...fastClock, after: systemClock.after } }); // a turn is not over before its time, also where the machine is busy
  const call = node.cri.call.bind(node.cri) as (...of: readonly unknown[]) => Promise<object>;
  const slow = new Set(["RuntimeService/RunPodSandbox", "RuntimeService/StartContainer"]);
  let under = 0, most = 0;
  const order: string[] = [], looked = Promise.withResolvers<void>();
  Object.assign(node.cri, {
    async call(method: string, ...more: readonly unknown[]) {
      if (method === "ImageService/ImageStatus") return await call(method, ...more).finally(looked.resolve);
      if (!slow.has(method)) return await call(method, ...more);
      order.push(method.slice(method.indexOf("/") + 1));
      most = Math.max(most, ++under);
      if (order.length > 4) await looked.promise; // so the first has its sandbox, and its container is next
      await Bun.sleep(200);
      return await call(method, ...more).finally(() => under--);
    },
  });
  const names = Array.from({ length: 12 }, (_, i) => `p${i}`);
  for (const name of names) await node.create(name, {}, [{ name }]);
  for (const name of names) await node.until(name, isReady);
  expect(most).toBe(4);
  expect(order.indexOf("StartContainer")).toBeLessThan(order.lastIndexOf("RunPodSandbox"));
});

test("a node short of disk clears away what nobody needs, then ends pods with all they have, the least important first", async () => {
  const settings: Partial<KubeletSettings> = {};
  await using node = await startNode(settings);
  await node.create("done", { restartPolicy: "Never" }, [{ name: "d" }]);
  await node.create("low", { priority: 1 }, [{ name: "l" }]);
  await node.create("high", { priority: 2 }, [{ name: "h" }]);
  await node.create("critical", { priority: 2_000_000_000 }, [{ name: "c" }]);
  for (const name of ["done", "low", "high", "critical"]) await node.until(name, isReady);
  node.cri.exit("d", 0);
  await node.until("done", (status) => status?.phase === "Succeeded");
  node.cri.images.add("unused:1");
  await node.stopKubelet();
  Object.assign(settings, { eviction: { ...KUBELET_DEFAULTS.eviction, thresholds: [{ signal: "nodefs.available", value: { bytes: 1e18 } }] } } satisfies Partial<KubeletSettings>);
  node.startKubelet();
  const gone = await node.until("low", (status) => status?.phase === "Failed");
  expect(gone).toMatchObject({ reason: "Evicted", message: expect.stringMatching(/^The node was low on resource: ephemeral-storage. Threshold quantity: \d+Ki, available: \d+[KM]i. $/), conditions: expect.arrayContaining([expect.objectContaining({ type: "DisruptionTarget", reason: "TerminationByKubelet" })]) });
  await node.until("high", (status) => status?.phase === "Failed");
  expect(first(node.status("done"))?.state?.terminated?.reason).toBe("Completed");
  expect(node.told.filter((line) => / Evicted: /.test(line)).map((line) => line.split(" ")[0])).toEqual(["low", "high"]);
  expect(node.cri.images.has("unused:1")).toBe(false);
  await eventually(() => node.cri.calls.filter((call) => call.startsWith("RemoveContainer")).toSorted(), (calls) => calls.join() === "RemoveContainer d,RemoveContainer h,RemoveContainer l");
  await eventually(() => readdirSync(join(dataDir, "logs")).map((name) => name.split("_")[1]).toSorted(), (names) => names.join() === "critical,done");
  expect(first(await node.until("low", (status) => first(status)?.state?.terminated !== undefined))?.state?.terminated).toMatchObject({ exitCode: expect.any(Number) });
  expect(node.counted("kubelet_evictions{eviction_signal=\"nodefs.available\"}")).toBe(2);
  expect(node.counted("kubelet_eviction_stats_age_seconds_count{eviction_signal=\"nodefs.available\"}")).toBe(2);
  await node.create("late", {});
  expect(await node.until("late", (status) => status?.phase === "Failed")).toMatchObject({ reason: "Evicted", message: "Pod was rejected: The node had condition: [DiskPressure]. " });
  expect(isReady(node.status("critical"))).toBe(true);
});

test("an evicted pod that ends well has not failed, and its containers go like others'", async () => {
  const settings: Partial<KubeletSettings> = {};
  const runtime = memoryRuntime({ nowMs: fastClock.nowMs });
  runtime.images.add("busybox:1");
  const obedient: typeof runtime.call = async (method, ...rest) => {
    if (method === "RuntimeService/StopContainer") runtime.exit("quiet", 0);
    return await runtime.call(method, ...rest);
  };
  await using node = await startNode(settings, { cri: { ...runtime, call: obedient } });
  await node.create("quiet", {}, [{ name: "quiet" }]);
  await node.until("quiet", isReady);
  await node.stopKubelet();
  Object.assign(settings, { eviction: { ...KUBELET_DEFAULTS.eviction, thresholds: [{ signal: "nodefs.available", value: { bytes: 1e18 } }] } } satisfies Partial<KubeletSettings>);
  node.startKubelet();
  const ended = await node.until("quiet", (status) => status?.phase === "Failed" || status?.phase === "Succeeded");
  expect(ended).toMatchObject({ phase: "Succeeded", conditions: expect.arrayContaining([expect.objectContaining({ type: "DisruptionTarget", reason: "TerminationByKubelet" })]) });
  expect([ended?.reason, first(ended)?.state?.terminated?.exitCode]).toEqual([undefined, 0]);
  await eventually(() => runtime.calls.includes("RemoveContainer quiet"), Boolean);
});

test("a pod that waits for more memory is evicted by what it was granted", async () => {
  const settings: Partial<KubeletSettings> = {};
  const runtime = memoryRuntime({ nowMs: fastClock.nowMs });
  runtime.images.add("busybox:1");
  const call: typeof runtime.call = async (method, ...rest) => {
    const answer = await runtime.call(method, ...rest);
    if (method !== "RuntimeService/ListPodSandboxStats") return answer;
    const { items = [] } = await runtime.call("RuntimeService/ListPodSandbox", {});
    return { stats: items.map(({ id, labels }) => ({ attributes: { id, labels }, linux: { memory: { working_set_bytes: { value: 64 * 1024 ** 2 } } } })) } as never;
  };
  await using node = await startNode(settings, { cri: { ...runtime, call } });
  const asks = (memory: string) => ({ requests: { memory } });
  for (const [name, priority] of [["waiting", 0], ["other", 1]] as const) await node.create(name, { priority }, [{ name, resources: asks("16Mi") }]);
  for (const name of ["waiting", "other"]) await node.until(name, isReady);
  await node.api.client.resource(PODS).patch({ metadata: { name: "waiting", namespace: "d" } }, "application/merge-patch+json", { spec: { containers: [{ name: "waiting", image: "busybox:1", resources: asks("8Gi") }] } }, { signal: new AbortController().signal });
  await node.until("waiting", (status) => status?.conditions?.some(({ type }) => type === "PodResizePending") ?? false);
  await node.stopKubelet();
  Object.assign(settings, { eviction: { ...KUBELET_DEFAULTS.eviction, thresholds: [{ signal: "memory.available", value: { bytes: 1e18 } }] } } satisfies Partial<KubeletSettings>);
  node.startKubelet();
  await eventually(() => node.told.filter((line) => / Evicted: /.test(line)), (lines) => lines.length > 0);
  expect(node.told.find((line) => / Evicted: /.test(line))).toMatch(/^waiting Evicted: The node was low on resource: memory\./);
});

test("a machine that goes down: the node is not Ready, its pods end and say why, and none comes any more", async () => {
  const { promise: goingDown, resolve: goDown } = Promise.withResolvers<void>();
  await using node = await startNode({ shutdown: { graceMs: 30_000, criticalMs: 10_000 } }, { shutdownNotices: { run: async (on, _, signal) => { await goingDown; await on(true); await aborted(signal); } } });
  await node.create("web", { volumes: [{ name: "e", emptyDir: {} }] });
  await node.create("critical", { priority: 2_000_000_000, terminationGracePeriodSeconds: 5 });
  for (const name of ["web", "critical"]) await node.until(name, isReady);
  goDown();
  for (const name of ["web", "critical"]) {
    expect(await node.until(name, (status) => status?.phase === "Failed")).toMatchObject({ reason: "Terminated", message: "Pod was terminated in response to imminent node shutdown.", conditions: expect.arrayContaining([expect.objectContaining({ type: "DisruptionTarget", reason: "TerminationByKubelet" })]) });
  }
  expect(node.cri.calls.filter((call) => call.startsWith("StopContainer")).length).toBe(2);
  const ready = await eventually(() => node.api.all(NODES)[0]?.status?.conditions?.find(({ type }) => type === "Ready"), (condition) => condition?.status === "False");
  expect(ready).toMatchObject({ reason: "KubeletNotReady", message: expect.stringContaining("node is shutting down") });
  await node.create("late", { tolerations: [{ operator: "Exists" }] });
  expect(await node.until("late", (status) => status?.phase === "Failed")).toMatchObject({ reason: "NodeShutdown", message: "Pod was rejected: Pod was rejected as the node is shutting down." });
  expect(node.counted("kubelet_graceful_shutdown_start_time_seconds")).toBeGreaterThan(0);
  await eventually(() => node.counted("kubelet_graceful_shutdown_end_time_seconds"), (seconds) => seconds >= node.counted("kubelet_graceful_shutdown_start_time_seconds"));
});

/** A runtime whose containers take their time where `isSlow` says so, until somebody is in a hurry. `asked`: in how many seconds they were to stop. */
function slowToStop(isSlow: (seconds: number) => boolean) {
  const runtime = memoryRuntime({ nowMs: fastClock.nowMs }), asked: number[] = [];
  runtime.images.add("busybox:1");
  const call: typeof runtime.call = async (method, request, options) => {
    if (method === "RuntimeService/StopContainer") {
      const { timeout } = request as { timeout: number };
      asked.push(timeout);
      if (isSlow(timeout)) return await new Promise((_, reject) => options?.signal?.addEventListener("abort", () => reject(new Error("aborted"))));
    }
    return await runtime.call(method, request, options);
  };
  return { cri: { ...runtime, call }, asked, runtime };
}

test("a pod that ends for the machine and is deleted has the shorter of the two times", async () => {
  const { promise: goingDown, resolve: goDown } = Promise.withResolvers<void>();
  const { cri, asked } = slowToStop(() => asked.length === 1);
  await using node = await startNode({ shutdown: { graceMs: 30_000_000, criticalMs: 0 } }, { cri, shutdownNotices: { run: async (on, _, signal) => { await goingDown; await on(true); await aborted(signal); } } });
  await node.create("web", { terminationGracePeriodSeconds: 20_000 });
  await node.until("web", isReady);
  goDown();
  await eventually(() => asked, (seconds) => seconds.length === 1);
  await node.delete("web", 6_000);
  await node.until("web", (gone) => gone === undefined);
  expect(asked).toEqual([expect.toSatisfy((seconds: number) => seconds <= 20_000 && seconds > 19_000), expect.toSatisfy((seconds: number) => seconds <= 6_000 && seconds > 2)]);
});

test("a machine that goes down waits for pods that are being ended already, and no longer than for others", async () => {
  const { promise: goingDown, resolve: goDown } = Promise.withResolvers<void>();
  const { cri, asked, runtime } = slowToStop((seconds) => seconds > 10_000);
  const left: string[][] = [];
  await using node = await startNode({ shutdown: { graceMs: 9_000_000, criticalMs: 0 } }, { cri, shutdownNotices: { run: async (on, _, signal) => { await goingDown; await on(true); left.push(runtime.running()); await aborted(signal); } } });
  await node.create("goes", { terminationGracePeriodSeconds: 20_000 });
  await node.create("late", { terminationGracePeriodSeconds: 30_000 }, [{ name: "work" }]);
  for (const name of ["goes", "late"]) await node.until(name, isReady);
  await node.delete("goes");
  await node.api.client.resource(PODS).patch({ metadata: { name: "late", namespace: "d" } }, "application/merge-patch+json", { spec: { activeDeadlineSeconds: 1 } }, { signal: new AbortController().signal });
  await eventually(() => asked.length, (times) => times === 2);
  node.api.fail = ({ method }) => (method === "PATCH" ? new Error("the API server is away") : undefined); // it was the first to go down
  goDown();
  expect(await eventually(() => left, (times) => times.length > 0)).toEqual([[]]);
  node.api.fail = undefined;
  expect(await node.until("late", (status) => status?.phase === "Failed")).toMatchObject({ reason: "DeadlineExceeded" }); // for which it was ended first
  await node.until("goes", (gone) => gone === undefined);
  expect(asked.slice(2)).toEqual(Array.from({ length: 2 }, () => expect.toSatisfy((seconds: number) => seconds <= 9_000 && seconds > 2)));
});

test("where nobody tells that the machine goes down, a grace period for that is told to have no effect, and the node starts", async () => {
  const errors: string[] = [];
  const log = { ...silentLog, error: (message: string) => void errors.push(message) };
  await using node = await startNode({ shutdown: { graceMs: 30_000, criticalMs: 10_000 } }, { log });
  await eventually(() => node.api.all(NODES)[0], (one) => one?.status?.conditions?.at(-1)?.reason === "KubeletReady");
  expect(errors).toEqual([expect.stringContaining("whatever shutdownGracePeriod says")]);
});

test("probes decide", async () => {
  await using node = await startNode();
  const failing = new Set<string>();
  node.cri.exec = (_, [command = ""]) => (failing.has(command) ? 1 : 0);
  const probe = (command: string) => ({ exec: { command: [command] }, periodSeconds: 1, failureThreshold: 2, terminationGracePeriodSeconds: 7 });
  await node.create("probed", {}, [{ readinessProbe: { ...probe("ready"), terminationGracePeriodSeconds: undefined }, livenessProbe: probe("alive"), startupProbe: probe("started") }]);
  failing.add("ready");
  await node.until("probed", (status) => first(status)?.started === true);
  expect(isReady(node.status("probed"))).toBe(false);
  failing.delete("ready");
  await node.until("probed", isReady);
  failing.add("ready");
  await node.until("probed", (status) => !isReady(status));
  expect(node.told).toContain("probed Unhealthy: Readiness probe failed: ");
  failing.delete("ready");
  failing.add("alive");
  await node.until("probed", (status) => (first(status)?.restartCount ?? 0) > 0);
  failing.delete("alive");
  await node.until("probed", isReady);
  expect(node.told).toContain("probed Killing: Container c0 failed liveness probe, will be restarted");
  expect(node.cri.calls).toContain("StopContainer c0 7s");
});

test("probes are counted and timed as long as there is something to probe", async () => {
  await using node = await startNode();
  await node.create("probed", {}, [{ livenessProbe: { exec: { command: ["alive"] }, periodSeconds: 1 } }]);
  const { uid } = (await eventually(() => node.api.all<Pod>(PODS)[0], (pod) => pod !== undefined))!.metadata;
  const probes = () => node.counted(`prober_probe_total{container="c0",namespace="d",pod="probed",pod_uid="${uid}",probe_type="Liveness",result="successful"}`);
  const took = () => node.counted(`prober_probe_duration_seconds_count{container="c0",namespace="d",pod="probed",probe_type="Liveness"}`);
  await eventually(() => probes(), (count) => count > 1);
  expect(took()).toBeGreaterThan(1);
  await node.delete("probed");
  await node.until("probed", (gone) => gone === undefined);
  await eventually(() => [probes(), took()], (counts) => counts.every(Number.isNaN));
});

test("a restarted kubelet takes over what runs, and ends what was deleted meanwhile", async () => {
  await using node = await startNode();
  await node.create("stays", {}, [{ readinessProbe: { exec: { command: ["true"] }, periodSeconds: 30 } }]);
  await node.create("goes", {}, [{ name: "other" }]);
  await node.until("stays", isReady);
  await node.until("goes", isReady);
  await node.stopKubelet();
  mkdirSync(join(dataDir, "logs/d_foreign_uid"), { recursive: true }); // another kubelet's, perhaps
  const logs = readdirSync(join(dataDir, "logs")).filter((name) => name.includes("_goes_"));
  expect(logs).toHaveLength(1);
  await node.delete("goes", 0);
  const [before, done] = [node.status("stays"), node.cri.calls.length];
  node.startKubelet();
  await eventually(() => node.cri.running(), (names) => !names.includes("other"));
  await Bun.sleep(100);
  expect(node.cri.running()).toEqual(["c0"]);
  expect(node.cri.calls.slice(done).filter((call) => call.endsWith("c0") && !call.startsWith("ExecSync"))).toEqual([]);
  expect(node.status("stays")).toEqual(before);
  await eventually(() => readdirSync(join(dataDir, "logs")).map((name) => name.split("_")[1]).toSorted().join(), (names) => names === "foreign,stays");
});

test("a pod that was not ready is not told to be when the kubelet begins anew, while its probes have not said so", async () => {
  await using node = await startNode();
  node.cri.exec = (_, [command = ""]) => (command === "no" ? 1 : 0);
  const probe = { exec: { command: ["no"] }, periodSeconds: 1, failureThreshold: 1_000_000 };
  await node.create("unready", {}, [{ readinessProbe: probe }]);
  await node.create("unstarted", {}, [{ name: "slow", startupProbe: probe }]);
  await node.until("unready", (status) => first(status)?.started === true);
  await node.until("unstarted", (status) => first(status)?.state?.running !== undefined);
  await node.stopKubelet();
  const done = node.cri.calls.length, told: string[] = [];
  node.api.fail = ({ method, path, body }) => void (method === "PATCH" && path.includes("/pods/") && told.push(JSON.stringify(body)));
  node.startKubelet();
  for (const name of ["c0", "slow"]) await eventually(() => node.cri.calls.slice(done).filter((call) => call === `ExecSync ${name} no`), (calls) => calls.length > 2);
  expect(told.filter((text) => /"(ready|started)":true/.test(text))).toEqual([]);
  expect(["unready", "unstarted"].map((name) => [first(node.status(name))?.started, isReady(node.status(name))])).toEqual([[true, false], [false, false]]);
});

test("a node that starts without an API server, and is remembered as one, does not wait for its report to fail before its pods start; they have the volumes and devices they had", async () => {
  const told: unknown[] = [];
  const parts = nodeAgent({
    settings: { ...KUBELET_DEFAULTS, nodeName: "n1", dataDir } as KubeletSettings, machine: { os: "linux", cpus: 2, memoryBytes: 2 ** 32, hugepages: [] } as unknown as MachineInfo, client: { resource: () => ({ create: () => new Promise(() => {}) }) } as never,
    cri: memoryRuntime({ nowMs: fastClock.nowMs }), clock: fastClock, random: systemRandom, log: silentLog, events: { event: () => undefined }, nodes: staticInformer({ ...stored<Node>("v1", "Node", "n1"), status: { volumesInUse: ["v"] } }), onReported: ({ volumesInUse }: NodeStatus) => void told.push(volumesInUse), diskBytes: async () => 2 ** 40, pressures: () => [], runtimeSilentMs: () => 0, runtimeSilentMsMax: 1,
    devices: () => new Map([["example.com/dongle", { capacity: 0, allocatable: 0, given: 2 }]]),
  } as unknown as Parameters<typeof nodeAgent>[0]);
  const ready = Promise.withResolvers<void>(), stop = new AbortController();
  void parts.parts.find(({ name }) => name === "node-status")!.run(stop.signal, ready.resolve);
  await ready.promise;
  expect(told).toEqual([["v"]]);
  expect(Number(parseQuantity(parts.allocatable()["ephemeral-storage"]!).number())).toBeGreaterThan(2 ** 39); // what its pods may have is known by then
  expect(parts.allocatable()["example.com/dongle"]).toBe("2"); // its plugin is a pod that starts no sooner
  stop.abort();
});

test("what is in use is known to be so once the API server has it", async () => {
  const api = fakeApi({ clock: fastClock });
  let volumesInUse = ["a"];
  const reported: string[] = [];
  const agent = nodeAgent({
    settings: { ...KUBELET_DEFAULTS, nodeName: "n1", nodeIps: [], hostname: "n1", version: "v1.36.0", dataDir } as KubeletSettings, machine: { os: "linux", cpus: 2, memoryBytes: 2 ** 32, hugepages: [] } as unknown as MachineInfo, client: api.client, cri: memoryRuntime({ nowMs: fastClock.nowMs }), clock: fastClock, random: systemRandom, log: silentLog,
    events: { event: () => undefined }, diskBytes: async () => 2 ** 40, pressures: () => new Set(), runtimeSilentMs: () => 0, runtimeSilentMsMax: 1, volumesInUse: async () => volumesInUse, onReported: ({ volumesInUse: keys }: { volumesInUse?: string[] }) => void reported.push(`${keys?.join()} of ${api.all<Node>(NODES)[0]?.status?.volumesInUse?.join()}`),
  } as unknown as Parameters<typeof nodeAgent>[0]);
  const stop = new AbortController();
  const running = agent.parts.find(({ name }) => name === "node-status")!.run(stop.signal, () => undefined);
  await eventually(() => reported.at(-1), (last) => last === "a of a");
  volumesInUse = ["b"];
  agent.refresh();
  await eventually(() => reported.at(-1), (last) => last === "b of b");
  stop.abort();
  await running;
});

test("why there is no network is told with what the runtime says of it", async () => {
  const stop = new AbortController();
  let why: string | undefined = "this kernel has no nf_tables";
  const cri = { call: async () => ({ status: { conditions: [{ type: "RuntimeReady", status: true }, { type: "NetworkReady", status: false, reason: "NetworkPluginNotReady", message: "cni plugin not initialized" }] } }) };
  const agent = nodeAgent({
    settings: { ...KUBELET_DEFAULTS, nodeName: "n1", dataDir } as KubeletSettings, machine: { os: "linux", cpus: 2, memoryBytes: 2 ** 32, hugepages: [] } as unknown as MachineInfo, client: { resource: () => ({}) }, cri, clock: fastClock, random: systemRandom, log: silentLog,
    events: { event: () => undefined }, networkProblem: () => why, runtimeSilentMs: () => 0, runtimeSilentMsMax: 1, pressures: () => new Set(),
  } as unknown as Parameters<typeof nodeAgent>[0]);
  const ready = Promise.withResolvers<void>();
  const running = agent.parts.find(({ name }) => name === "runtime-check")!.run(stop.signal, ready.resolve);
  await ready.promise;
  const told = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:cni plugin not initialized";
  expect(agent.networkProblem()).toBe(`${told}: this kernel has no nf_tables`);
  why = undefined;
  expect(agent.networkProblem()).toBe(told);
  stop.abort();
  await running;
});

test("without an API server pods go on, restarts too; it hears of it later", async () => {
  await using node = await startNode();
  await node.create("web", {});
  await node.until("web", isReady);
  node.api.fail = () => new Error("no route to host");
  node.cri.exit("c0", 1);
  await eventually(() => node.kubelet.pod({ namespace: "d", name: "web" })?.status, (status) => first(status)?.restartCount === 1 && isReady(status));
  expect(await node.kubelet.runningPods(new AbortController().signal)).toMatchObject([{ metadata: { name: "web", namespace: "d", creationTimestamp: null }, spec: { containers: [{ name: "c0" }] } }]); // clients read "" as a time, and fail
  expect(first(node.status("web"))?.restartCount).toBe(0);
  node.api.fail = undefined;
  await node.until("web", (status) => first(status)?.restartCount === 1 && isReady(status));
});

test("preStop comes first, a deadline ends, deleting again hurries", async () => {
  await using node = await startNode();
  await node.create("late", { activeDeadlineSeconds: 20 }, [{ lifecycle: { preStop: { exec: { command: ["bye"] } } } }]);
  expect(await node.until("late", (status) => status?.phase === "Failed" && first(status)?.state?.terminated !== undefined)).toMatchObject({ reason: "DeadlineExceeded" });
  expect(node.cri.calls.filter((call) => /bye|StopContainer/.test(call))).toEqual(["ExecSync c0 bye", expect.stringMatching(new RegExp(`^StopContainer c0 ${LEFT_OF_30}s$`))]); // what the hook has left
  await node.delete("late");
  await node.until("late", (status) => status === undefined);
  await eventually(() => node.kubelet.pods(), (left) => left.length === 0);
});

test("a deadline counts the time that a pod is active: a clock that is set ahead ends none, one that is set back lets none run on", async () => {
  let aheadMs = 0;
  await using node = await startNode({}, { clock: { ...fastClock, nowMs: () => fastClock.nowMs() + aheadMs } });
  await node.create("day", { activeDeadlineSeconds: 86_400 });
  await node.create("minutes", { activeDeadlineSeconds: 200 });
  for (const name of ["day", "minutes"]) await node.until(name, isReady);
  aheadMs = 366 * 86_400_000;
  node.cri.exit("c0", 1);
  await node.until("day", (status) => first(status)?.restartCount === 1 && isReady(status));
  aheadMs = -aheadMs;
  expect(await node.until("minutes", (status) => status?.phase === "Failed")).toMatchObject({ reason: "DeadlineExceeded" });
  expect(node.status("day")?.phase).toBe("Running");
});

test("pods are looked at when the clock is set: what they have may hold no longer", async () => {
  let aheadMs = 0;
  await using node = await startNode({ syncMs: 86_400_000 }, { clock: { ...fastClock, nowMs: () => fastClock.nowMs() + aheadMs } });
  await node.create("p", {});
  await node.until("p", isReady);
  const looks = () => node.counted(`kubelet_pod_worker_duration_seconds_count{operation_type="sync"}`) || 0;
  let before = -1;
  while (before !== (before = looks())) await Bun.sleep(200); // 10 s of that clock
  aheadMs = 366 * 86_400_000;
  await eventually(looks, (now) => now > before);
});

test("a node short of memory keeps the pods of its manifests, and takes new ones; others go, whatever their priority", async () => {
  let workingSetBytes = 0;
  const usage = (path: string) => (path === "/" ? { cpuNs: 0, memoryBytes: workingSetBytes, workingSetBytes, rssBytes: 0, pageFaults: 0, majorPageFaults: 0 } : undefined);
  await using node = await startNode({ eviction: { ...KUBELET_DEFAULTS.eviction, thresholds: [{ signal: "memory.available", value: { bytes: 100 * 1024 ** 2 } }] } }, { cgroups: { ...memoryCgroups(), usage } });
  const manifest = (name: string) => writeFileSync(join(dataDir, `manifests/${name}.yaml`), `apiVersion: v1\nkind: Pod\nmetadata: {name: ${name}, namespace: d}\nspec: {containers: [{name: ${name}, image: 'busybox:1'}]}\n`);
  manifest("kept");
  await node.create("high", { priority: 1_000_000 });
  for (const name of ["kept-n1", "high"]) await node.until(name, isReady);
  workingSetBytes = 4 * 1024 ** 3;
  expect(await node.until("high", (status) => status?.phase === "Failed")).toMatchObject({ reason: "Evicted" });
  manifest("late");
  await node.until("late-n1", isReady);
  await node.create("refused", { priority: 1_000_000 });
  expect(await node.until("refused", (status) => status?.phase === "Failed")).toMatchObject({ reason: "Evicted", message: "Pod was rejected: The node had condition: [MemoryPressure]. " });
  expect(node.cri.running().toSorted()).toEqual(["kept", "late"]);
});

test("a pod that the runtime takes too long to end is told of once", async () => {
  const runtime = memoryRuntime({ nowMs: fastClock.nowMs });
  runtime.images.add("busybox:1");
  const stopping = Promise.withResolvers<void>();
  const call: typeof runtime.call = async (method, ...rest) => {
    if (method === "RuntimeService/StopContainer") await stopping.promise;
    return await runtime.call(method, ...rest);
  };
  let workingSetBytes = 0;
  const usage = (path: string) => (path === "/" ? { cpuNs: 0, memoryBytes: workingSetBytes, workingSetBytes, rssBytes: 0, pageFaults: 0, majorPageFaults: 0 } : undefined);
  await using node = await startNode({ eviction: { ...KUBELET_DEFAULTS.eviction, thresholds: [{ signal: "memory.available", value: { bytes: 100 * 1024 ** 2 } }] } }, { cri: { ...runtime, call }, cgroups: { ...memoryCgroups(), usage } });
  await node.create("p", {});
  await node.until("p", isReady);
  workingSetBytes = 4 * 1024 ** 3;
  const late = () => node.told.filter((line) => line === "p ExceededGracePeriod: Container runtime did not kill the pod within specified grace period.");
  await eventually(late, (lines) => lines.length === 1);
  stopping.resolve();
  await node.until("p", (status) => status?.phase === "Failed");
  expect(late()).toHaveLength(1);
});

test("a pod whose grace no double holds ends, when it is deleted, or is too old to run on", async () => {
  await using node = await startNode();
  const terminationGracePeriodSeconds = (2n ** 63n - 1n) as unknown as number;
  await node.create("deleted", { terminationGracePeriodSeconds });
  await node.create("old", { terminationGracePeriodSeconds, activeDeadlineSeconds: 1 });
  await node.until("deleted", isReady);
  await node.delete("deleted");
  await node.until("deleted", (status) => status === undefined);
  await node.until("old", (status) => status?.phase === "Failed");
  expect(node.told.filter((line) => line.includes("FailedKillPod"))).toEqual([]);
});

test("a sandbox whose status cannot be had is told of, as are search paths of a host that cannot be read", async () => {
  const runtime = memoryRuntime({ nowMs: fastClock.nowMs });
  runtime.images.add("busybox:1");
  let asked = 0;
  const call: typeof runtime.call = async (method, ...rest) => {
    if (method === "RuntimeService/PodSandboxStatus" && asked++ === 0) throw new CriError({ method, code: "Unknown", detail: "no" });
    return await runtime.call(method, ...rest);
  };
  await using node = await startNode({ resolvConf: join(dataDir, "nothing") }, { cri: { ...runtime, call } });
  await node.create("p", {});
  await node.until("p", isReady);
  expect(node.told).toContain("p FailedPodSandBoxStatus: Unable to get pod sandbox status: rpc error: code = Unknown desc = no");
  expect(node.told).toContain(`n1 CheckLimitsForResolvConf: open ${join(dataDir, "nothing")}: no such file or directory`);
  expect(node.told).toContain('n1 MissingClusterDNS: kubelet does not have ClusterDNS IP configured and cannot create Pod using "ClusterFirst" policy. Falling back to "Default" policy.');
});

test("a directory where the host's resolver should be written ends no node", async () => {
  await using node = await startNode({ resolvConf: dataDir });
  await eventually(() => node.told, (told) => told.some((line) => line.startsWith("n1 CheckLimitsForResolvConf: EISDIR")));
  await node.create("p", {});
  await eventually(() => node.told, (told) => told.some((line) => line.startsWith("p ") && line.includes("EISDIR")));
});

test("a runtime that tells nonsense of a pod keeps it from being told, and is asked again", async () => {
  const runtime = memoryRuntime({ nowMs: fastClock.nowMs });
  runtime.images.add("busybox:1");
  let asked = 0;
  const call: typeof runtime.call = async (method, ...rest) => {
    const answer = await runtime.call(method, ...rest);
    return method === "RuntimeService/ContainerStatus" && asked++ < 4 ? { ...answer, status: { ...(answer as ContainerStatusResponse).status, state: "CONTAINER_RUNNING", started_at: 1e30 } } : answer;
  };
  await using node = await startNode({}, { cri: { ...runtime, call } });
  await node.create("p", {});
  await node.until("p", isReady);
  expect(asked).toBeGreaterThan(4);
});

test("what somebody else takes from the runtime is made anew: a container, a sandbox, an image", async () => {
  await using node = await startNode();
  await node.create("web", {}, [{ imagePullPolicy: "Never" }, { name: "other" }]);
  await node.until("web", isReady);
  node.cri.take("c0");
  await eventually(() => node.cri.calls.filter((call) => call === "StartContainer c0").length, (count) => count === 2);
  expect(node.cri.calls.filter((call) => call === "StartContainer other").length).toBe(1);
  node.cri.take("web");
  await eventually(() => node.cri.calls.filter((call) => /^RunPodSandbox web|^StartContainer c0/.test(call)).length, (count) => count === 2 + 3);
  await node.until("web", isReady);
  node.cri.images.delete("busybox:1");
  node.cri.take("c0");
  await node.until("web", (status) => status?.containerStatuses?.some(({ state }) => state?.waiting?.reason === "ErrImageNeverPull") ?? false);
  node.cri.images.add("busybox:1");
  await node.until("web", isReady);
});

test("where a pod is from and since when it is known is told to its runtime and to its containers, whatever it says itself: one of the API server's is no static one", async () => {
  await using node = await startNode();
  const [metadata, signal] = [{ name: "forged", namespace: "d", annotations: { "kubernetes.io/config.source": "file", "kubernetes.io/config.seen": "never" } }, new AbortController().signal];
  const { api: { client } } = node;
  const seen = () => node.kubelet.pods().map((pod) => pod.metadata.annotations);
  await client.resource(PODS).create({ apiVersion: "v1", kind: "Pod", metadata, spec: { nodeName: "n1", containers: [{ name: "c0", image: "busybox:1" }] } }, { signal });
  await node.until("forged", isReady);
  const [first] = seen();
  expect(first).toEqual({ "kubernetes.io/config.source": "api", "kubernetes.io/config.seen": expect.stringMatching(/^\d{4}-.*Z$/) });
  const { items = [] } = await node.cri.call("RuntimeService/ListPodSandbox", {});
  expect(items.map(({ annotations }) => annotations)).toEqual([first]);
  await Bun.sleep(5);
  await client.resource(PODS).patch({ metadata: { name: "forged", namespace: "d" } }, "application/merge-patch+json", { metadata: { annotations: { more: "1" } } }, { signal });
  await eventually(seen, ([now]) => now?.["more"] === "1");
  expect(seen()).toEqual([{ ...first, more: "1" }]);
  await node.delete("forged", 0);
  await eventually(seen, (left) => left.length === 0);
});

test.each([[{}, "runs"], [{ KubeletPodResourcesListUseActivePods: false }, "done,runs"]])("who asks for pods' resources is told of those that have not ended; with the gates %j of %s", async (gates, wanted) => {
  await using node = await startNode({ placement: { ...NO_PLACEMENT, gates } });
  for (const name of ["done", "runs"]) await node.create(name, { restartPolicy: "Never" }, [{ name }]);
  for (const name of ["done", "runs"]) await node.until(name, isReady);
  node.cri.exit("done", 0);
  await node.until("done", (status) => status?.phase === "Succeeded");
  const asked = rpcClient<PodResourcesMethods>({ socket: join(dataDir, "pod-resources", "kubelet.sock"), methods: serviceMethods(podResourcesText, "v1"), nowMs: Date.now });
  const { pod_resources = [] } = await asked.call("PodResourcesLister/List", {});
  expect(pod_resources.map(({ name }) => name).toSorted().join()).toBe(wanted);
  expect(await asked.call("PodResourcesLister/Get", { pod_name: "done", pod_namespace: "d" })).toMatchObject({ pod_resources: { name: "done", containers: [{ name: "done" }] } }); // it is asked for by its name
  asked.close();
});

test("a manifest in a directory runs without an API server, and is mirrored when there is one", async () => {
  const manifest = (image: string) => `apiVersion: v1\nkind: Pod\nmetadata: {name: proxy, namespace: kube-system}\nspec:\n  terminationGracePeriodSeconds: 5\n  containers: [{name: main, image: "${image}"}]\n`;
  await using node = await startNode();
  node.cri.images.add("busybox:2");
  await eventually(() => node.api.all(NODES).length, (count) => count === 1);
  node.api.fail = () => new Error("no route to host");
  writeFileSync(join(dataDir, "manifests/broken.yaml"), "kind: Nonsense");
  writeFileSync(join(dataDir, "manifests/proxy.yaml"), manifest("busybox:1"));
  await eventually(() => node.cri.running(), (names) => names.includes("main"));
  expect(node.api.all(PODS)).toEqual([]);
  node.api.fail = undefined;
  const mirror = () => node.api.all<Pod>(PODS)[0];
  const first = await eventually(mirror, (pod) => isReady(pod?.status));
  expect(first).toMatchObject({ metadata: { name: "proxy-n1", namespace: "kube-system", ownerReferences: [{ kind: "Node", name: "n1", controller: true }], annotations: { "kubernetes.io/config.source": "file" } }, status: { phase: "Running" } });

  await node.api.client.resource(PODS).delete(first!, { gracePeriodSeconds: 0 }, { signal: new AbortController().signal });
  const again = await eventually(mirror, (pod) => pod?.metadata.uid !== first?.metadata.uid && isReady(pod?.status));
  expect(node.cri.calls.filter((call) => call === "StartContainer main").length).toBe(1);

  writeFileSync(join(dataDir, "manifests/proxy.yaml"), manifest("busybox:2"));
  await eventually(mirror, (pod) => pod?.metadata.uid !== again?.metadata.uid && pod?.spec.containers[0]?.image === "busybox:2" && isReady(pod.status));
  rmSync(join(dataDir, "manifests/proxy.yaml"));
  await eventually(mirror, (pod) => pod === undefined);
  await eventually(() => node.cri.running(), (names) => names.length === 0);
});

test("where manifests cannot be read as the kubelet begins anew, their pods run on, and so do their mirrors, until it is known that there are none", async () => {
  const [manifests, aside] = [join(dataDir, "manifests"), join(dataDir, "aside")];
  writeFileSync(join(manifests, "proxy.yaml"), `apiVersion: v1\nkind: Pod\nmetadata: {name: proxy, namespace: d}\nspec:\n  containers: [{name: main, image: "busybox:1"}]\n`);
  await using node = await startNode();
  const uid = (await node.until("proxy-n1", isReady)) && node.api.all<Pod>(PODS)[0]?.metadata.uid;
  await node.stopKubelet();
  renameSync(manifests, aside);
  symlinkSync(manifests, manifests); // which the kernel does not follow for ever
  const done = node.cri.calls.length;
  node.startKubelet();
  await node.create("web", {});
  await node.until("web", isReady);
  await Bun.sleep(100);
  rmSync(manifests);
  renameSync(aside, manifests);
  await eventually(() => node.kubelet.pods().map(({ metadata }) => metadata.name).toSorted(), (names) => names.join() === "proxy-n1,web");
  await node.create("web2", {}, [{ name: "c2" }]);
  await node.until("web2", isReady);
  expect(node.cri.calls.slice(done).filter((call) => call.startsWith("Stop") || call.endsWith(" main"))).toEqual([]);
  expect(node.api.all<Pod>(PODS).find(({ metadata }) => metadata.name === "proxy-n1")?.metadata.uid).toBe(uid);
  await node.stopKubelet();
  rmSync(join(manifests, "proxy.yaml"));
  node.startKubelet();
  await eventually(() => node.cri.running().toSorted(), (names) => names.join() === "c0,c2");
});

test("where manifests cannot be read as the kubelet begins anew, what a pod has that was deleted meanwhile is given back once that is ended", async () => {
  const [manifests, aside] = [join(dataDir, "manifests"), join(dataDir, "aside")], asked: boolean[] = []; // while its container ran
  await using node = await startNode();
  await node.create("old", {});
  await node.until("old", isReady);
  const { uid } = node.api.all<Pod>(PODS)[0]!.metadata;
  await node.stopKubelet();
  await node.delete("old", 0);
  await writeStateFile(join(dataDir, "dra_manager_state"), { claims: [{ namespace: "d", name: "gpu", uid: "c", drivers: ["is.away"], pods: [uid], devices: [] }] });
  const note = (_: string, { error }: { error?: Error } = {}): void => { if (error?.message.includes("is.away")) asked.push(node.cri.running().includes("c0")); };
  Object.assign(node.log, { info: note, warn: note });
  renameSync(manifests, aside);
  symlinkSync(manifests, manifests); // which the kernel does not follow for ever
  node.startKubelet();
  await node.create("web", {}, [{ name: "c1" }]);
  await node.until("web", isReady);
  await Bun.sleep(100);
  rmSync(manifests);
  renameSync(aside, manifests);
  await eventually(() => asked, ({ length }) => length > 0);
  expect(asked).not.toContain(true);
});

test("a manifest that says who its pod is changes that pod; the mirror of one that ends is there until it has", async () => {
  const runtime = memoryRuntime({ nowMs: fastClock.nowMs });
  for (const image of ["busybox:1", "busybox:2"]) runtime.images.add(image);
  const stopping = Promise.withResolvers<void>();
  let holds = false;
  const call: typeof runtime.call = async (method, ...rest) => {
    if (method === "RuntimeService/StopContainer" && holds) await stopping.promise;
    return await runtime.call(method, ...rest);
  };
  await using node = await startNode({}, { cri: { ...runtime, call } });
  const manifest = (image: string) => writeFileSync(join(dataDir, "manifests/web.yaml"), `apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: d, uid: me}\nspec: {containers: [{name: main, image: "${image}"}]}\n`);
  const mirror = () => node.api.all<Pod>(PODS)[0];
  manifest("busybox:1");
  const before = await eventually(mirror, (pod) => isReady(pod?.status));
  manifest("busybox:2");
  await eventually(() => runtime.calls, (calls) => calls.filter((line) => line === "StartContainer main").length === 2);
  expect(runtime.calls.filter((line) => line.startsWith("RunPodSandbox"))).toHaveLength(1);
  expect(mirror()?.metadata.uid).toBe(before?.metadata.uid);
  holds = true;
  rmSync(join(dataDir, "manifests/web.yaml"));
  await eventually(() => node.told, (told) => told.includes("web-n1 Killing: Stopping container main"));
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(mirror()?.metadata.name).toBe("web-n1");
  stopping.resolve();
  await eventually(mirror, (pod) => pod === undefined);
});

test("what a pod has left that cannot be removed does not keep what others have, and both are told of", async () => {
  for (const left of ["a-stuck", "b-loose"]) mkdirSync(join(dataDir, "pods", left, "volumes"), { recursive: true });
  await using node = await startNode({}, { mounts: { ...noMounts, list: () => [{ target: join(dataDir, "pods/a-stuck/volumes"), source: "", type: "", options: "" }] as never } });
  await eventually(() => readdirSync(join(dataDir, "pods")), (left) => left.join() === "a-stuck");
  await eventually(() => node.counted("kubelet_orphan_pod_cleaned_volumes_errors"), (failed) => failed === 1);
});

test("the ids of users that a pod has left are another's", async () => {
  const idsPerPod = 2 ** 31, all = [{ hostId: idsPerPod, containerId: 0, length: idsPerPod }]; // there are enough for one
  mkdirSync(join(dataDir, "pods/gone"), { recursive: true });
  writeFileSync(join(dataDir, "pods/gone/userns"), JSON.stringify({ uidMappings: all, gidMappings: all }));
  await using node = await startNode({ maxPods: 1, userNamespaceIds: idsPerPod });
  await node.create("web", { hostUsers: false });
  await node.until("web", isReady);
});

test("a pod that nobody knows any more, and that the runtime cannot be asked about, keeps no other from being ended, and what it has until it can", async () => {
  const runtime = memoryRuntime({ nowMs: fastClock.nowMs });
  runtime.images.add("busybox:1");
  let broken = "";
  const call: typeof runtime.call = async (method, request, ...rest) => {
    const answer = await runtime.call(method, request, ...rest);
    if (method === "RuntimeService/PodSandboxStatus" && (answer as PodSandboxStatusResponse).status?.metadata?.name === broken) throw new CriError({ method, code: "Unknown", detail: "no" });
    return answer;
  };
  await using node = await startNode({}, { cri: { ...runtime, call } });
  for (const name of ["a", "b"]) {
    await node.create(name, {});
    await node.until(name, isReady);
  }
  const uid = node.api.all<Pod>(PODS).find(({ metadata }) => metadata.name === "a")!.metadata.uid;
  await node.stopKubelet();
  for (const name of ["a", "b"]) await node.delete(name, 0);
  broken = "a";
  node.startKubelet();
  await eventually(() => runtime.calls, (calls) => calls.includes("StopPodSandbox b"));
  await eventually(() => readdirSync(join(dataDir, "pods")), (left) => left.join() === uid);
  expect(runtime.calls).not.toContain("StopPodSandbox a");
  broken = "";
  await node.stopKubelet();
  node.startKubelet(); // it looks at once
  await eventually(() => readdirSync(join(dataDir, "pods")), ({ length }) => length === 0);
  expect(runtime.calls).toContain("StopPodSandbox a");
});

test("a pod that is there again under its uid, while it is ended, begins again once it has", async () => {
  const runtime = memoryRuntime({ nowMs: fastClock.nowMs });
  runtime.images.add("busybox:1");
  const web = stored<Pod>("v1", "Pod", "d/web", { metadata: { uid: "u" }, spec: { nodeName: "n1", restartPolicy: "Always", terminationGracePeriodSeconds: 30, containers: [{ name: "main", image: "busybox:1" }] } });
  const pods = staticInformer(web);
  let stopping = Promise.withResolvers<void>();
  const call: typeof runtime.call = async (method, ...rest) => {
    if (method === "RuntimeService/StopContainer") await stopping.promise;
    return await runtime.call(method, ...rest);
  };
  await using node = await startNode({}, { cri: { ...runtime, call }, pods: { ...pods, run: async (quit: AbortSignal, ready: () => void) => { ready(); await aborted(quit); } } as never });
  const starts = (count: number) => eventually(() => runtime.calls.filter((line) => line === "StartContainer main").length, (found) => found === count);
  const asked = (count: number) => eventually(() => node.told.filter((line) => line.endsWith("Killing: Stopping container main")).length, (found) => found === count);
  await starts(1);
  pods.remove(web);
  await asked(1);
  pods.put(web); // the API server was restored from an older state
  stopping.resolve();
  await starts(2);
  expect([node.counted('kubelet_restarted_pods_total{static=""}'), node.counted('kubelet_restarted_pods_total{static="true"}')]).toEqual([1, 0]);

  const manifest = join(dataDir, "manifests/fixed.yaml");
  const write = (): void => writeFileSync(manifest, `apiVersion: v1\nkind: Pod\nmetadata: {name: fixed, namespace: d, uid: me}\nspec: {containers: [{name: main, image: "busybox:1"}]}\n`);
  write();
  await starts(3);
  stopping = Promise.withResolvers();
  rmSync(manifest);
  await asked(2);
  write();
  await Bun.sleep(3_000); // until it is read, which nothing tells while the pod is ended
  stopping.resolve();
  await starts(4);
  expect(node.counted('kubelet_restarted_pods_total{static="true"}')).toBe(1);
  await eventually(() => node.api.all<Pod>(PODS).find(({ metadata }) => metadata.name === "fixed-n1")?.status?.containerStatuses?.[0]?.restartCount, (count) => count === 1);
});

test("resources change while the pod runs, when the node can afford it", async () => {
  await using node = await startNode();
  const of = (cpu: string) => ({ requests: { cpu, memory: "64Mi" }, limits: { cpu, memory: "64Mi" } });
  const resize = (cpu: string) => node.api.client.resource(PODS).patch({ metadata: { name: "big", namespace: "d" } }, "application/merge-patch+json", { spec: { containers: [{ name: "c0", image: "busybox:1", resources: of(cpu) }] } }, { signal: new AbortController().signal });
  const condition = (status: PodStatus | undefined, type: string) => status?.conditions?.find((one) => one.type === type);
  await node.create("big", {}, [{ resources: of("1") }]);
  await node.create("other", {}, [{ name: "x", resources: of("500m") }]);
  await node.until("big", isReady);
  await node.until("other", isReady);

  const seen: (PodStatus | undefined)[] = [];
  const stop = new AbortController();
  const watching = (async () => {
    for await (const { object } of node.api.client.resource(PODS).watch({ fieldSelector: "metadata.name=big", resourceVersion: "0" }, { signal: stop.signal })) seen.push((object as Pod).status);
  })().catch((error: unknown) => error);
  await resize("1200m");
  await node.until("big", (status) => first(status)?.resources?.limits?.["cpu"] === "1200m" && !condition(status, "PodResizeInProgress"));
  expect(node.cri.resources("c0")).toMatchObject({ cpu_quota: 120_000, cpu_shares: 1228 });
  stop.abort();
  await watching;
  const ofNew = seen.filter((status) => status?.observedGeneration === 2);
  expect(ofNew.length).toBeGreaterThan(0);
  expect(ofNew.filter((status) => first(status)?.resources?.limits?.["cpu"] !== "1200m" && !condition(status, "PodResizeInProgress"))).toEqual([]);
  await resize("1800m");
  const waiting = await node.until("big", (status) => condition(status, "PodResizePending") !== undefined);
  expect(condition(waiting, "PodResizePending")).toMatchObject({ reason: "Deferred", message: "Node didn't have enough resource: cpu, requested: 1800, used: 500, capacity: 2000" });
  expect(node.told.filter((line) => line.startsWith("big ResizeDeferred: Pod resize OutOfcpu: {"))).toHaveLength(1);
  expect(first(waiting)).toMatchObject({ restartCount: 0, allocatedResources: { cpu: "1200m" } });
  await node.delete("other", 1);
  await node.until("big", (status) => first(status)?.resources?.limits?.["cpu"] === "1800m" && !condition(status, "PodResizePending"));
  expect(node.cri.resources("c0")).toMatchObject({ cpu_quota: 180_000 });
  await resize("3"); // which the API server would have refused
  expect(condition(await node.until("big", (status) => condition(status, "PodResizePending") !== undefined), "PodResizePending")).toMatchObject({ reason: "Deferred", message: "Node didn't have enough resource: cpu, requested: 3000, used: 0, capacity: 2000" });
  for (const [unschedulable, told] of [[true, "NodeNotSchedulable"], [false, "NodeSchedulable"]] as const) { // the second is told when the first is known
    await node.api.client.resource(NODES).patch({ metadata: { name: "n1" } }, "application/merge-patch+json", { spec: { unschedulable, taints: [{ key: "off", effect: "NoExecute" }] } }, { signal: new AbortController().signal });
    await eventually(() => node.told, (lines) => lines.some((line) => line.startsWith(`n1 ${told}`)));
  }
  await resize("1");
  await node.until("big", (status) => condition(status, "PodResizePending")?.message === "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate");
  expect(node.told.filter((line) => line.startsWith("big ResizeDeferred: Pod resize TaintToleration: {"))).toHaveLength(1);
  expect(node.cri.calls.filter((call) => call.startsWith("CreateContainer c0")).length).toBe(1);
});

test("a pod that waits to have more is still taken in after the machine was down, also when it asked for that meanwhile", async () => {
  await using node = await startNode();
  const asks = (cpu: string) => ({ requests: { cpu } });
  const resize = (name: string, cpu: string) => node.api.client.resource(PODS).patch({ metadata: { name, namespace: "d" } }, "application/merge-patch+json", { spec: { containers: [{ name, image: "busybox:1", resources: asks(cpu) }] } }, { signal: new AbortController().signal });
  const isPending = (status: PodStatus | undefined) => status?.conditions?.some(({ type, reason }) => type === "PodResizePending" && reason === "Deferred") ?? false;
  for (const name of ["before", "meanwhile"]) await node.create(name, {}, [{ name, resources: asks("500m") }]);
  for (const name of ["before", "meanwhile"]) await node.until(name, isReady);
  await resize("before", "3");
  await node.until("before", isPending);
  await node.stopKubelet();
  await resize("meanwhile", "3");
  for (const { id = "" } of (await node.cri.call("RuntimeService/ListPodSandbox", {})).items ?? []) await node.cri.call("RuntimeService/StopPodSandbox", { pod_sandbox_id: id });
  node.startKubelet();
  for (const name of ["before", "meanwhile"]) {
    const status = await node.until(name, (now) => now?.phase === "Failed" || (isPending(now) && isReady(now) && (first(now)?.restartCount ?? 0) > 0));
    expect([status?.phase, first(status)?.allocatedResources]).toEqual(["Running", { cpu: "500m" }]);
  }
});

test("what the runtime refuses to give a running container is told, and given once it does not refuse", async () => {
  const runtime = memoryRuntime({ nowMs: fastClock.nowMs });
  runtime.images.add("busybox:1");
  let refuses = true;
  const call: typeof runtime.call = async (method, ...rest) => {
    if (method === "RuntimeService/UpdateContainerResources" && refuses) throw new CriError({ method, code: "Unknown", detail: "no" });
    return await runtime.call(method, ...rest);
  };
  await using node = await startNode({}, { cri: { ...runtime, call } });
  const of = (cpu: string) => ({ name: "c0", image: "busybox:1", resources: { requests: { cpu }, limits: { cpu } } });
  const inProgress = (status: PodStatus | undefined) => status?.conditions?.find(({ type }) => type === "PodResizeInProgress");
  await node.create("p", {}, [of("500m")]);
  await node.until("p", isReady);
  await node.api.client.resource(PODS).patch({ metadata: { name: "p", namespace: "d" } }, "application/merge-patch+json", { spec: { containers: [of("1")] } }, { signal: new AbortController().signal });
  expect(inProgress(await node.until("p", (status) => inProgress(status)?.reason !== undefined))).toMatchObject({ reason: "Error", message: expect.stringMatching(/no$/) });
  expect(node.told.filter((line) => line.startsWith("p ResizeError: Pod resize error: {"))).toHaveLength(1);
  refuses = false;
  await node.until("p", (status) => first(status)?.resources?.limits?.["cpu"] === "1" && !inProgress(status));
  expect(node.told.filter((line) => line.startsWith("p ResizeCompleted: "))).toHaveLength(1);
});

test("a runtime is told what a pod may use as a whole before it may, and may refuse", async () => {
  const runtime = memoryRuntime({ nowMs: fastClock.nowMs });
  runtime.images.add("busybox:1");
  let refuses = true;
  const quotas: (number | undefined)[] = [];
  const call: typeof runtime.call = async (method, request, ...rest) => {
    if (method !== "RuntimeService/UpdatePodSandboxResources") return await runtime.call(method, request, ...rest);
    if (refuses) throw new CriError({ method, code: "Unknown", detail: "no" });
    quotas.push((request as { resources: { cpu_quota?: number } }).resources.cpu_quota);
    return {} as never;
  };
  await using node = await startNode({}, { cri: { ...runtime, call } });
  const of = (cpu: string) => ({ name: "c0", image: "busybox:1", resources: { requests: { cpu }, limits: { cpu } } });
  const resize = (cpu: string) => node.api.client.resource(PODS).patch({ metadata: { name: "p", namespace: "d" } }, "application/merge-patch+json", { spec: { containers: [of(cpu)] } }, { signal: new AbortController().signal });
  const inProgress = (status: PodStatus | undefined) => status?.conditions?.find(({ type }) => type === "PodResizeInProgress");
  await node.create("p", {}, [of("500m")]);
  await node.until("p", isReady);
  await resize("1");
  expect(inProgress(await node.until("p", (status) => inProgress(status)?.reason !== undefined))?.message).toMatch(/^failed to notify runtime for UpdatePodSandboxResources \(resource=cpu\); resize rejected: /);
  expect(runtime.calls).not.toContain("UpdateContainerResources c0");
  refuses = false;
  await node.until("p", (status) => first(status)?.resources?.limits?.["cpu"] === "1" && !inProgress(status));
  await resize("700m");
  await node.until("p", (status) => first(status)?.resources?.limits?.["cpu"] === "700m" && !inProgress(status));
  expect([quotas[0], quotas.at(-1)]).toEqual([100_000, 70_000]);
});

test("a container whose postStart hook fails is told to have failed by that, though it cannot be stopped either", async () => {
  const runtime = memoryRuntime({ nowMs: fastClock.nowMs });
  runtime.images.add("busybox:1");
  runtime.exec = () => 1;
  let refused = 0;
  const call: typeof runtime.call = async (method, ...rest) => {
    if (method === "RuntimeService/StopContainer" && refused++ === 0) throw new CriError({ method, code: "Unknown", detail: "no" });
    return await runtime.call(method, ...rest);
  };
  await using node = await startNode({}, { cri: { ...runtime, call } });
  await node.create("p", {}, [{ lifecycle: { postStart: { exec: { command: ["hello"] } } } }, {}]);
  await node.until("p", (status) => status?.containerStatuses?.[1]?.state?.running !== undefined);
  expect(node.counted('kubelet_started_containers_errors_total{code="PostStartHookError",container_type="container"}')).toBe(1);
});

test("a container that would rather restart than have other memory restarts for its request too", async () => {
  await using node = await startNode();
  const of = (memory: string) => ({ requests: { cpu: "100m", memory }, limits: { cpu: "1", memory: "128Mi" } });
  const resizePolicy = [{ resourceName: "memory", restartPolicy: "RestartContainer" }, { resourceName: "cpu", restartPolicy: "NotRequired" }];
  await node.create("p", {}, [{ resources: of("32Mi"), resizePolicy }]);
  await node.until("p", isReady);
  await node.api.client.resource(PODS).patch({ metadata: { name: "p", namespace: "d" } }, "application/merge-patch+json", { spec: { containers: [{ name: "c0", image: "busybox:1", resources: of("64Mi"), resizePolicy }] } }, { signal: new AbortController().signal });
  const status = await node.until("p", (now) => first(now)?.restartCount === 1 && isReady(now));
  expect(first(status)).toMatchObject({ resources: { requests: { memory: "64Mi" } }, allocatedResources: { memory: "64Mi" } });
  expect(node.told).toContain("p Killing: Container c0 resize requires restart");
});

test("on a machine that swaps the kubelet starts unless it was told not to", () => {
  const machine = { os: "linux" as const, cpus: 1, memoryBytes: 1024 ** 3, swapBytes: 1024 ** 2, hugepages: [] } as unknown as MachineInfo;
  const settings = { ...KUBELET_DEFAULTS, nodeName: "n", nodeIps: [], hostname: "n", version: "v1.36.0", failSwapOn: true };
  expect(() => kubelet({ settings, machine } as unknown as KubeletDeps)).toThrow("running with swap on is not supported, please disable swap or set --fail-swap-on flag to false");
  expect([settings, KUBELET_DEFAULTS].map((some) => kubeletConfiguration({ ...settings, ...some })["failSwapOn"])).toEqual([true, false]);
});

test("with the first cgroups a kubelet does not start where it may not, and where single processes are to be ended for want of memory", () => {
  const machine = { os: "linux" as const, cpus: 1, memoryBytes: 1024 ** 3, swapBytes: 0, hugepages: [] } as unknown as MachineInfo;
  const settings = { ...KUBELET_DEFAULTS, nodeName: "n", nodeIps: [], hostname: "n", version: "v1.36.0" };
  const start = (some: object) => () => kubelet({ settings: { ...settings, ...some }, machine, cgroups: { version: 1 } } as unknown as KubeletDeps);
  expect(start({ failCgroupV1: true })).toThrow("kubelet is configured to not run on a host using cgroup v1. cgroup v1 support is unsupported and will be removed in a future release");
  expect(start({ configuration: { singleProcessOOMKill: false } })).toThrow("invalid configuration: singleProcessOOMKill must not be explicitly set to false when using cgroup v1");
});

test("a node cannot allow kernel parameters that are the whole machine's", () => {
  const machine = { os: "linux" as const, cpus: 1, memoryBytes: 1024 ** 3, swapBytes: 0, hugepages: [] } as unknown as MachineInfo;
  const settings = { ...KUBELET_DEFAULTS, nodeName: "n", nodeIps: [], hostname: "n", version: "v1.36.0", allowedUnsafeSysctls: ["net.*", "vm.swappiness"] };
  expect(() => kubelet({ settings, machine } as unknown as KubeletDeps)).toThrow('the sysctls "vm.swappiness" are not known to be namespaced');
});
