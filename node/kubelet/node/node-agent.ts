/**
 * Speaks for the node: registers it, reports its status (when it changes, and every 5 minutes), keeps its lease, watches the runtime's own
 * condition.
 *
 * Source: kubernetes v1.36 pkg/kubelet/kubelet_node_status.go, pkg/kubelet/kubelet.go (updateRuntimeUp)
 */
import { statfs } from "node:fs/promises";
import type { Node, ObjectReference, ResourceList } from "../../../core/api/gen/core.v1.ts";
import { objectKey } from "../../../core/api/meta/object-meta.ts";
import { isAlreadyExists, notFound } from "../../../core/api/meta/status-error.ts";
import type { Client } from "../../../core/client/client.ts";
import type { EventRecorder } from "../../../core/client/events.ts";
import type { Informer } from "../../../core/client/informer.ts";
import { revisionOf } from "../../../core/client/object-cache.ts";
import { NODES } from "../../../core/client/resources.ts";
import { backoffMs } from "../../../core/lifecycle/backoff.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Runnable } from "../../../core/lifecycle/run-all.ts";
import type { Log } from "../../../core/observe/log.ts";
import type { Cri } from "../../cri/client.ts";
import type { Image, RuntimeHandlerFeatures, StatusResponse, VersionResponse } from "../../cri/gen/runtime.v1.ts";
import { type MachineInfo, processCount } from "../../os/machine.ts";
import { SHUTTING_DOWN } from "../shutdown/shutdown.ts";
import type { KubeletSettings } from "../settings.ts";
import { allocatableOf, type CapacityFacts, type PodsShare, podsShareOf } from "./capacity.ts";
import { nodeLease } from "./lease.ts";
import { isSameStatus, newNode, nodeLabels, nodeStatusOf, nodeStatusPatch, type Pressure } from "./node-status.ts";

interface Deps {
  readonly settings: KubeletSettings;
  readonly client: Client;
  /** All nodes, or this one. Absent: the node is read at each look. */
  readonly nodes?: Informer<Node> | undefined;
  readonly cri: Cri;
  readonly machine: MachineInfo;
  readonly clock: Clock;
  readonly log: Log;
  readonly events: EventRecorder;
  readonly runtimeSilentMs: () => number;
  readonly runtimeSilentMsMax: number;
  /** What is behind it that the runtime has no network. */
  readonly networkProblem?: (() => string | undefined) | undefined;
  readonly shuttingDown?: (() => boolean) | undefined;
  readonly pressures: () => ReadonlySet<Pressure>;
  readonly devices?: (() => ReadonlyMap<string, { readonly capacity: number; readonly allocatable: number }>) | undefined;
  readonly volumesInUse?: (() => Promise<readonly string[]>) | undefined;
  /** Of the file system with `path`; absent: the machine is asked. */
  readonly diskBytes?: ((path: string) => Promise<number>) | undefined;
}

export interface NodeAgent {
  readonly parts: readonly Runnable[];
  /** The node as the API server last had it; before that, as we would register it. */
  current(): Pick<Node, "metadata" | "spec">;
  allocatable(): ResourceList;
  /** What all pods together may use. */
  podsShare(): PodsShare;
  networkProblem(): string | undefined;
  runtimeProblem(): string | undefined;
  /** Look at the status now rather than at the next tick. */
  refresh(): void;
  /** What the runtime says its handler can do; undefined while it says nothing. */
  runtimeName(): { readonly name?: string | undefined; readonly version?: string | undefined };
  handlerFeatures(handler: string): RuntimeHandlerFeatures | undefined;
}

const RUNTIME_CHECK_MS = 5_000;
/** A node that starts becomes ready as soon as its network is there, not at the next regular look. */
const STARTING_CHECK_MS = 100;
const STARTING_MS = 60_000;
const IMAGES_MS = 60_000;
/** What was registered comes back by watch within this time. */
const WATCH_MS_MAX = 30_000;
const RETRY = { minMs: 100, maxMs: 7_000 };

export function nodeAgent(deps: Deps): NodeAgent {
  const { settings, client, cri, machine, clock, log, events } = deps;
  const nodes = client.resource(NODES);
  const name = { metadata: { name: settings.nodeName } };
  const key = objectKey("", settings.nodeName);
  const reference: ObjectReference = { apiVersion: "v1", kind: "Node", name: settings.nodeName, uid: settings.nodeName };
  let known: Readonly<Node> | undefined;
  let registeredMs = Number.NEGATIVE_INFINITY;
  let reportedMs = Number.NEGATIVE_INFINITY;
  let capacity: CapacityFacts = { machine, diskBytes: 0, maxPods: settings.podsPerCore > 0 ? Math.min(settings.maxPods, settings.podsPerCore * machine.cpus) : settings.maxPods, reserved: settings.reserved, thresholds: settings.eviction.thresholds };
  let runtimeVersion: VersionResponse | undefined;
  let runtimeStatus: StatusResponse | undefined;
  let runtimeError: string | undefined = "container runtime status check may not have completed yet";
  let images: readonly Image[] = [];
  let imagesMs = Number.NEGATIVE_INFINITY;
  let woken = new AbortController();

  async function checkRuntime(signal: AbortSignal): Promise<void> {
    const before = problems().join();
    try {
      runtimeVersion ??= await cri.call("RuntimeService/Version", {}, { signal, timeoutMs: RUNTIME_CHECK_MS });
      runtimeStatus = await cri.call("RuntimeService/Status", {}, { signal, timeoutMs: RUNTIME_CHECK_MS });
      const condition = runtimeStatus.status?.conditions?.find(({ type }) => type === "RuntimeReady");
      runtimeError = condition?.status ? undefined : `container runtime not ready: ${describe("RuntimeReady", condition)}`;
    } catch {
      runtimeVersion = undefined; // it may come back as another one
      runtimeStatus = undefined;
      runtimeError = "container runtime is down";
    }
    if (problems().join() !== before) woken.abort();
  }

  function networkProblem(): string | undefined {
    const condition = runtimeStatus?.status?.conditions?.find(({ type }) => type === "NetworkReady");
    const why = deps.networkProblem?.();
    return condition?.status ? undefined : `container runtime network not ready: ${describe("NetworkReady", condition)}${why === undefined ? "" : `: ${why}`}`;
  }

  function runtimeProblem(): string | undefined {
    if (runtimeError !== undefined) return runtimeError;
    const silentMs = deps.runtimeSilentMs();
    return silentMs > deps.runtimeSilentMsMax ? `PLEG is not healthy: pleg was last seen active ${Math.round(silentMs / 1000)}s ago; threshold is ${deps.runtimeSilentMsMax / 60_000}m0s` : undefined;
  }

  function problems(): string[] {
    return [runtimeProblem(), runtimeStatus ? networkProblem() : undefined, deps.shuttingDown?.() ? SHUTTING_DOWN : undefined].flatMap((problem) => (problem === undefined ? [] : [problem]));
  }

  const deviceNames = new Set<string>(); // also of those that are gone: they stay at 0

  function deviceCounts(): ReadonlyMap<string, { readonly capacity: number; readonly allocatable: number }> {
    const counts = deps.devices?.() ?? new Map<string, { readonly capacity: number; readonly allocatable: number }>();
    for (const name of counts.keys()) deviceNames.add(name);
    return new Map([...deviceNames].map((name) => [name, counts.get(name) ?? { capacity: 0, allocatable: 0 }]));
  }

  async function register(signal: AbortSignal): Promise<Readonly<Node>> {
    if (!settings.registers) return await nodes.get(name, { signal }); // as whoever makes it wants it
    const draft = newNode({ settings, machine });
    try {
      const created = await nodes.create({ ...draft, metadata: { ...draft.metadata } }, { signal });
      log.info("node registered", { node: settings.nodeName });
      return created;
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
    const found = await nodes.get(name, { signal });
    const facts = nodeLabels(settings, machine);
    const wrong = Object.entries({ ...facts, ...settings.labels }).filter(([key, value]) => found.metadata.labels?.[key] !== value);
    const missing = Object.entries(settings.annotations).filter(([key, value]) => found.metadata.annotations?.[key] !== value);
    if (found.status?.nodeInfo && found.status.nodeInfo.bootID !== machine.bootId) events.event(reference, "Warning", "Rebooted", `Node ${settings.nodeName} has been rebooted, boot id: ${machine.bootId}`);
    if (wrong.length === 0 && missing.length === 0) return found;
    return await nodes.patch(name, "application/strategic-merge-patch+json", { metadata: { labels: Object.fromEntries(wrong), annotations: Object.fromEntries(missing) } }, { signal });
  }

  /** What pods may have of it, which is needed without an API server too. */
  async function measure(): Promise<void> {
    capacity = { ...capacity, diskBytes: await (deps.diskBytes ?? diskBytes)(settings.dataDir) };
  }

  async function report(signal: AbortSignal): Promise<void> {
    if (known === undefined) {
      known = await register(signal);
      registeredMs = clock.uptimeMs();
    }
    await measure();
    if (clock.uptimeMs() - imagesMs >= IMAGES_MS && runtimeError === undefined) {
      images = (await cri.call("ImageService/ListImages", {}, { signal })).images ?? [];
      imagesMs = clock.uptimeMs();
    }
    const current = await latest(signal);
    const before = current.status;
    const after = nodeStatusOf({ settings, machine, capacity, before, problems: problems(), pressures: deps.pressures(), runtimeVersion, runtimeStatus, images, volumesInUse: await deps.volumesInUse?.(), devices: deviceCounts(), nowMs: clock.nowMs() });
    known = current;
    if (isSameStatus(before, after) && clock.uptimeMs() - reportedMs < settings.reportMs) return;
    known = await nodes.patch(name, "application/strategic-merge-patch+json", nodeStatusPatch(before, after), { subresource: "status", signal });
    reportedMs = clock.uptimeMs();
    tellTransitions(before?.conditions ?? [], after.conditions ?? []);
  }

  /** As the API server has it: by watch if there is one, which costs nothing while nothing changes. */
  async function latest(signal: AbortSignal): Promise<Readonly<Node>> {
    const watched = deps.nodes?.get(key);
    if (!deps.nodes?.synced || (watched === undefined && clock.uptimeMs() - registeredMs < WATCH_MS_MAX)) return await nodes.get(name, { signal });
    if (watched === undefined) throw notFound({ group: "", resource: "nodes" }, settings.nodeName);
    return newest(known, watched)!;
  }

  function tellTransitions(before: NonNullable<Node["status"]>["conditions"] & object, after: typeof before): void {
    for (const { type, status, reason = "" } of after) {
      if (before.find((condition) => condition.type === type)?.status === status) continue;
      const event = type === "Ready" ? (status === "True" ? "NodeReady" : "NodeNotReady") : reason.replace(/^Kubelet/, "Node");
      events.event(reference, "Normal", event, `Node ${settings.nodeName} status is now: ${event}`);
    }
  }

  const runtimeCheck: Runnable = {
    name: "runtime-check",
    async run(signal, ready) {
      const startMs = clock.uptimeMs();
      while (!signal.aborted) {
        await checkRuntime(signal);
        ready(); // the first answer, good or bad, is in
        const starting = problems().length > 0 && clock.uptimeMs() - startMs < STARTING_MS;
        await clock.sleep(starting ? STARTING_CHECK_MS : RUNTIME_CHECK_MS, signal);
      }
    },
  };

  const statusReport: Runnable = {
    name: "node-status",
    async run(signal, ready) {
      events.event(reference, "Normal", "Starting", "Starting kubelet.");
      await measure();
      void deps.nodes?.whenSynced(signal).then(() => { if (deps.nodes?.get(key)) ready(); }); // it is a node, as far as is remembered: its pods wait for nobody
      for (let failures = 0; !signal.aborted; ) {
        woken = new AbortController();
        try {
          await report(signal);
          failures = 0;
          ready();
        } catch (error) {
          if (signal.aborted) return;
          failures++;
          log.warn("node status not reported, next try soon", { node: settings.nodeName, error });
          if ((error as { code?: number }).code === 404) known = undefined; // someone deleted the node: register it again
        }
        if (failures > 0) ready(); // pods that run already must not wait for an API server that is away
        await clock.sleep(failures > 0 ? backoffMs(failures, RETRY) : settings.statusMs, AbortSignal.any([signal, woken.signal]));
      }
    },
  };

  return {
    parts: [runtimeCheck, statusReport, nodeLease({ client, clock, log, nodeName: settings.nodeName, durationSeconds: settings.leaseSeconds, nodeUid: () => known?.metadata.uid })],
    current: () => newest(known, deps.nodes?.get(key)) ?? asNode(newNode({ settings, machine })),
    allocatable: () => ({ ...allocatableOf(capacity), ...Object.fromEntries([...deviceCounts()].map(([resource, { allocatable }]) => [resource, String(allocatable)])) }),
    podsShare: () => podsShareOf({ machine, reserved: settings.enforcesAllocatable ? settings.reserved : {}, pidsMax: processCount().max }),
    networkProblem,
    runtimeProblem,
    runtimeName: () => ({ name: runtimeVersion?.runtime_name, version: runtimeVersion?.runtime_version }),
    handlerFeatures: (handler) => runtimeStatus?.runtime_handlers?.find(({ name = "" }) => name === handler)?.features,
    refresh: () => woken.abort(),
  };
}

function newest(a: Readonly<Node> | undefined, b: Readonly<Node> | undefined): Readonly<Node> | undefined {
  return a === undefined || (b !== undefined && revisionOf(b) > revisionOf(a)) ? b : a;
}

function asNode({ metadata, spec }: ReturnType<typeof newNode>): Pick<Node, "metadata" | "spec"> {
  return { metadata: { ...metadata, uid: "", resourceVersion: "", creationTimestamp: "" }, spec };
}

function describe(type: string, condition: { readonly status?: boolean | undefined; readonly reason?: string | undefined; readonly message?: string | undefined } | undefined): string {
  return `${type}=${condition?.status ?? false} reason:${condition?.reason ?? ""} message:${condition?.message ?? ""}`;
}

async function diskBytes(path: string): Promise<number> {
  try {
    const { blocks, bsize } = await statfs(path);
    return blocks * bsize;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return 0; // the data directory is made with the first pod
    throw error;
  }
}
