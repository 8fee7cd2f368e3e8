/**
 * The kubelet: runs the pods that are bound to this node, and says how they are.
 *
 *   pods (informer) ──▶ PodManager (admission) ──▶ one PodWorker each ──▶ runtime (CRI), volumes, cgroups
 *        ▲                                             │    ▲
 *        └────────── status (StatusWriter) ◀───────────┘    └── runtime events, probes, ConfigMaps and Secrets
 *
 * Nothing is decided before the pods of this node have been read once, and nothing is killed because the API server cannot be reached. After a
 * restart everything that runs is taken over as it is; what runs without a pod in the API is stopped.
 *
 * Source: kubernetes v1.36 pkg/kubelet/kubelet.go (behaviour)
 */
import { existsSync, readFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join, posix } from "node:path";
import type { Pod } from "../../core/api/gen/core.v1.ts";
import { isConflict, isNotFound } from "../../core/api/meta/status-error.ts";
import type { Client } from "../../core/client/client.ts";
import { PODS } from "../../core/client/resources.ts";
import { aborted } from "../../core/lifecycle/aborted.ts";
import { clockJumps } from "../../core/lifecycle/clock-jumps.ts";
import { type Runnable, runAll } from "../../core/lifecycle/run-all.ts";
import { machineTopology } from "../os/cpu-topology.ts";
import { machineUptimeSeconds } from "../os/machine.ts";
import { kubeletApi } from "./api.ts";
import { DEVICE_PLUGINS } from "./devices/device-plugins.ts";
import type { Observation } from "./eviction/plan.ts";
import { housekeeping } from "./housekeeping.ts";
import { pullRecordMetrics } from "./images/pull-record-metrics.ts";
import { PULL_RECORDS, pullRecords } from "./images/pull-records.ts";
import type { KubeletApi } from "./kubelet-api.ts";
import { kubeletContext } from "./kubelet-context.ts";
import type { KubeletDeps } from "./kubelet-deps.ts";
import { registerRunning } from "./kubelet-metrics.ts";
import { type PodsShare, reservationProblem } from "./node/capacity.ts";
import { nodeReference } from "./node/node-reference.ts";
import { nodeAgent } from "./node/node-agent.ts";
import { startupLatency } from "./node/startup-latency.ts";
import { podObjects } from "./objects/pod-objects.ts";
import { nodePlugins } from "./plugins/node-plugins.ts";
import { type CpuMachine, cpuMachine } from "./placement/cpu-machine.ts";
import { PodManager } from "./pod-manager.ts";
import { isStaticPod } from "./pod-spec.ts";
import { probeManager } from "./probes/probe-manager.ts";
import { runtimeWatch } from "./runtime-watch.ts";
import { limitReserved } from "./resources/reserved-groups.ts";
import { systemOom } from "./resources/system-oom.ts";
import { subordinateIds } from "./sandbox/user-namespaces.ts";
import { containerMetrics } from "./server/pod-metrics.ts";
import { majorMinor } from "./start-container.ts";
import { tellResolverProblem } from "./start-sandbox.ts";
import { MirrorPods } from "./static-pods/mirrors.ts";
import { staticPods } from "./static-pods/static-pods.ts";
import { cadvisorMetrics } from "./stats/cadvisor.ts";
import { cgroupRows, withProcesses } from "./stats/cgroup-rows.ts";
import { statusWriter } from "./status/status-writer.ts";
import { allowedSysctlProblem } from "./sysctls.ts";
import { podCertificates } from "./volumes/pod-certificates.ts";
import { tokenSource } from "./volumes/service-account-token.ts";
import { knownPath, wellKnownDirectory } from "./well-known-directory.ts";

export interface Kubelet extends Runnable {
  readonly api: KubeletApi;
}

/** A runtime that has not answered for this long makes the node not ready. */
const RUNTIME_SILENT_MS_MAX = 15 * 60_000;
const LIMIT_RETRY_MS = 60_000;

export function kubelet(deps: KubeletDeps): Kubelet {
  const { settings, client, cri, clock, random, log, machine, metrics } = deps;
  checkMachine(deps);
  const life = new AbortController(); // ends with run
  const signal = life.signal;
  const kubeletStartedMs = clock.nowMs();
  const events = deps.events.from({ component: "kubelet", host: settings.nodeName });
  const isLinux = machine.os === "linux";
  let ownName = settings.dataDir; // our directory's name to plugins
  const known = (path: string): string => knownPath(path, settings.dataDir, ownName);

  // What pods are made of. Parts that need one another ask when it is time: nothing here is called before `run`.
  const objects = podObjects({ client, clock, log, signal, readsAnew: settings.readsObjectsAnew, onChange: (uid) => manager.worker(uid)?.wake() });
  const tokens = tokenSource({ client, clock, serverMs: deps.serverMs, random, log, signal });
  const certificates = podCertificates({
    client, requests: deps.certificateRequests, nodeName: settings.nodeName, node: () => node.current(), clock, serverMs: deps.serverMs, random, events, log, metrics, signal,
    onChange(uid) {
      context.volumes.retryNow(uid);
      manager.worker(uid)?.wake();
    },
  });
  const plugins = nodePlugins({
    ...deps, tokens, events, signal, known, workers: () => manager.workers(), onClaimDriver: wakeAll, onNode: () => node.refresh(), onHealth: tellHealth,
    onDriver() {
      context.volumes.retryNow();
      wakeAll();
    },
  });
  const node = nodeAgent({
    ...deps, events, isNewMachine: isLinux && !existsSync(join(settings.dataDir, DEVICE_PLUGINS)),
    startup: startupLatency({ metrics, clock, machineSeconds: machineUptimeSeconds() }), shuttingDown: () => house.isShuttingDown(),
    devices: () => plugins.devices?.counts() ?? new Map(), volumesInUse: () => context.volumes.inUse(),
    onReported: ({ volumesInUse = [] }) => plugins.csi?.told(volumesInUse), pressures: () => house.pressures(),
    runtimeSilentMs: () => clock.uptimeMs() - watch.lastListMs(), runtimeSilentMsMax: RUNTIME_SILENT_MS_MAX,
  });
  const pulls = join(settings.dataDir, PULL_RECORDS);
  const onChecked = pullRecordMetrics(metrics, pulls);
  const records = settings.pullVerification.policy === "NeverVerify" ? undefined : pullRecords({ root: pulls, nowMs: clock.nowMs, verification: settings.pullVerification, onChecked });
  const context = kubeletContext(deps, { events, objects, tokens, certificates, plugins, node, records, life: signal });

  // The pods, and what tells of them.
  const mirrors = new MirrorPods({ client, log, signal, node: node.current });
  const statuses = statusWriter({ client, clock, log, signal, objectOf: (pod) => (isStaticPod(pod) ? mirrors.of(pod) : pod), onWritten: (ms) => context.metrics.statusWritten(ms / 1000) });
  const probes = probeManager({
    cri, clock, random, log, events, version: majorMinor(settings.version), startedMs: clock.uptimeMs(), signal, metrics,
    find: (uid) => {
      const worker = manager.worker(uid);
      return worker && { pod: worker.pod, status: worker.status };
    },
    onResult: (uid, kind, result) => {
      const worker = manager.worker(uid);
      worker?.publish();
      if (kind !== "readiness" && (result === "failure" || kind === "startup")) worker?.wake();
    },
  });
  const manager: PodManager = new PodManager({
    shuttingDown: () => house.isShuttingDown(), pods: deps.pods, mirrors, hasManifests: settings.staticPodDir !== "", cri, clock, log, signal, node: node.current, allocatable: node.allocatable, pressures: () => [...house.pressures()], strictGroups: node.strictGroups, declares: node.declares,
    worker: {
      context, statuses, probes, kubeletStartedMs, deleteObject: (pod, quit) => deletePod(client, pod, quit), comesAgain: (uid) => manager.isStatic(uid),
      onStage: (trigger) => manager.retryResizes(trigger), judgeResize: (wish) => manager.judgeResize(wish),
    },
  });
  registerRunning(metrics, () => manager.workers());
  metrics.gaugeFrom("kubelet_pleg_last_seen_seconds", "[ALPHA] Timestamp in seconds when PLEG was last seen active.", () => [[{}, Math.floor((clock.nowMs() - (clock.uptimeMs() - watch.activeMs())) / 1000)]]);
  if (isLinux) metrics.gauge("kubelet_cgroup_version", "[ALPHA] cgroup version on the hosts.").set(deps.cgroups.version);
  const watch = runtimeWatch({ cri, clock, log, onChange: (uid) => manager.onRuntimeChange(uid), onList: (list) => manager.onRuntimeList(list), metrics: context.metrics });
  const manifests = settings.staticPodDir === "" ? [] : [staticPods({
    directory: settings.staticPodDir, nodeName: settings.nodeName, complete: deps.completePod ?? (() => undefined), scanMs: settings.fileCheckMs, clock, log, events,
    onChange: (list) => manager.setStatic(list),
  })];
  const jumps = clockJumps(clock);
  jumps.subscribe(wakeAll); // tokens that were issued before may hold no longer
  const house = housekeeping({
    ...deps, counted: context.metrics, podCgroups: context.cgroups, manager, plugins, records, shutdownNotices: deps.shutdownNotices, known,
    podsMemory: () => podsMemory(deps, node.podsShare), onNode: node.refresh, events,
  });

  function wakeAll(): void {
    for (const worker of manager.workers()) worker.wake();
  }

  /** To those whose status tells how their devices are. */
  function tellHealth(): void {
    for (const worker of manager.workers()) if (worker.status.containerStatuses?.some(({ allocatedResourcesStatus }) => allocatedResourcesStatus)) worker.publish();
  }

  let processors: CpuMachine | undefined;

  /** Without control groups: from what the runtime says. */
  async function containerFigures(quit: AbortSignal): Promise<string> {
    if (!isLinux) return containerMetrics(await house.stats.summary(quit));
    const rows = await Promise.all(cgroupRows({ cgroups: deps.cgroups, podCgroups: context.cgroups, pods: () => manager.workers() }).map((row) => withProcesses(deps.cgroups, row)));
    const { cores, sockets } = (processors ??= cpuMachine(machineTopology(machine).cpus));
    return cadvisorMetrics({ cgroups: deps.cgroups, rows, machine, cores: cores || undefined, sockets: sockets || undefined, nowMs: clock.nowMs() });
  }

  const podLife: Runnable = {
    name: "pods",
    async run(quit, ready) {
      const limited = limitAll(quit);
      if (isLinux) context.userNamespaces.setUp(await subordinateIds({ exec: deps.exec, passwd: existsSync("/etc/passwd") ? readFileSync("/etc/passwd", "utf8") : "", signal: quit }), await context.volumes.leftBehind());
      tellResolverProblem(context);
      ready();
      await Promise.all([manager.run(quit), limited]);
    },
  };

  /** The kernel refuses a limit below what is used: tried again, the node works without. */
  async function limit(act: () => void, done: string | undefined, quit: AbortSignal): Promise<void> {
    while (!quit.aborted) {
      try {
        act();
        if (isLinux && done !== undefined) events.event(nodeReference(settings.nodeName), "Normal", "NodeAllocatableEnforced", done);
        return;
      } catch (error) {
        log.warn("a control group is not limited, next try in a minute", { error });
        events.event(nodeReference(settings.nodeName), "Warning", "FailedNodeAllocatableEnforcement", (error as Error).message);
        await clock.sleep(LIMIT_RETRY_MS, quit);
      }
    }
  }

  async function limitAll(quit: AbortSignal): Promise<void> {
    const pods = (): void => {
      try {
        context.cgroups.setUp(node.podsShare());
      } catch (cause) {
        throw new Error(`Failed to update Node Allocatable Limits ["kubepods"]: ${(cause as Error).message}`, { cause });
      }
    };
    await Promise.all([
      limit(pods, settings.enforcesAllocatable ? "Updated Node Allocatable limit across pods" : undefined, quit),
      ...(isLinux ? settings.reservedGroups : []).map((one) => limit(() => limitReserved(deps.cgroups, one), `Updated limits on ${one.whose.toLowerCase()} reserved cgroup ${one.path}`, quit)),
    ]);
  }

  return {
    name: "kubelet",
    api: kubeletApi({ context, manager, statsSummary: house.stats.summary, cadvisorMetrics: containerFigures, unhealthyReason: () => node.runtimeProblem(), logDir: "/var/log" }),
    async run(quit, ready) {
      quit.addEventListener("abort", () => life.abort(), { once: true }); // workers and probes end first; the parts wait for them
      try {
        await mkdir(join(settings.dataDir, "plugins"), { recursive: true, mode: 0o750 }); // manifests of drivers mount it, as a directory that is there
        if (isLinux) ownName = await wellKnownDirectory(settings.dataDir, { path: settings.wellKnownDir, log });
        await runAll([...node.parts, ...plugins.parts, ...manifests, watch, jumps.watch, podLife, ...house.parts, ...(isLinux ? [systemOom({ events, node: nodeReference(settings.nodeName), clock, log })] : []), readiness(ready)], quit);
      } finally {
        life.abort();
        objects.close();
      }
    },
  };
}

/** Throws if the settings say that the kubelet must not run on such a machine. */
function checkMachine({ settings, machine, cgroups }: KubeletDeps): void {
  const problem = reservationProblem({ machine, reserved: settings.reserved, thresholds: settings.eviction.thresholds });
  if (problem !== undefined) throw new Error(problem);
  const sysctl = allowedSysctlProblem(settings.allowedUnsafeSysctls);
  if (sysctl !== undefined) throw new Error(sysctl);
  if (settings.failSwapOn && machine.swapBytes > 0) throw new Error("running with swap on is not supported, please disable swap or set --fail-swap-on flag to false");
  if (settings.failCgroupV1 && cgroups.version === 1) throw new Error("kubelet is configured to not run on a host using cgroup v1. cgroup v1 support is unsupported and will be removed in a future release");
  if (settings.configuration["singleProcessOOMKill"] === false && cgroups.version === 1)
    throw new Error("failed to validate kubelet configuration, error: invalid configuration: singleProcessOOMKill must not be explicitly set to false when using cgroup v1");
}

async function deletePod(client: Client, pod: Pod, signal: AbortSignal): Promise<void> {
  try {
    await client.resource(PODS).delete(pod, { gracePeriodSeconds: 0, preconditions: { uid: pod.metadata.uid } }, { signal });
  } catch (error) {
    if (!isNotFound(error) && !isConflict(error)) throw error; // gone, or another pod has its name
  }
}

/** What all pods together use of what they may; undefined: that is not limited. */
function podsMemory({ settings, cgroups }: KubeletDeps, podsShare: () => PodsShare): Observation | undefined {
  if (!settings.enforcesAllocatable) return undefined;
  const usage = cgroups.usage(posix.join("/", settings.cgroupRoot, "kubepods"));
  const { memoryBytes } = podsShare();
  return usage ? { capacity: memoryBytes, available: memoryBytes - usage.workingSetBytes } : undefined;
}

/** The last part: it is ready when all before it are. */
function readiness(ready: () => void): Runnable {
  return {
    name: "kubelet-ready",
    async run(signal, up) {
      up();
      ready();
      await aborted(signal);
    },
  };
}
