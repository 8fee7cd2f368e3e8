/**
 * What the runtime has of a pod: its sandboxes and containers, newest first, as plain facts. Read in one go, so that a plan is made from one
 * picture of the world.
 */
import { type Family, formatIp, parseIp } from "../../core/net/cidr.ts";
import type { Cri } from "../cri/client.ts";
import { isCriNotFound } from "../cri/client.ts";
import type { Container as CriContainer, ContainerStatus, LinuxContainerResources, LinuxContainerUser, Mount, PodSandbox, PodSandboxStatus } from "../cri/gen/runtime.v1.ts";
import { CONTAINER_NAME, POD_NAME, POD_NAMESPACE, POD_UID, readAnnotations, type RememberedSpec } from "./containers/labels.ts";

export type RuntimeState = "created" | "running" | "exited" | "unknown";

export interface RuntimeContainer {
  readonly id: string;
  readonly name: string;
  readonly sandboxId: string;
  readonly state: RuntimeState;
  readonly createdAtMs: number;
  /** 0: never. */
  readonly startedAtMs: number;
  readonly finishedAtMs: number;
  readonly exitCode: number;
  readonly reason: string;
  readonly message: string;
  /** The runtime's name for it. */
  readonly image: string;
  /** For the status: digest or id. */
  readonly imageRef: string;
  readonly restartCount: number;
  readonly spec: RememberedSpec;
  readonly logPath: string;
  readonly mounts: readonly Mount[];
  readonly user: LinuxContainerUser | undefined;
  readonly stopSignal: string | undefined;
  /** As the runtime reports them; not every runtime does. */
  readonly resources?: LinuxContainerResources | undefined;
}

export interface RuntimeSandbox {
  readonly id: string;
  readonly attempt: number;
  readonly ready: boolean;
  readonly createdAtMs: number;
  readonly ips: readonly string[];
  readonly hostNetwork: boolean;
}

export interface RuntimePod {
  readonly uid: string;
  readonly name: string;
  readonly namespace: string;
  readonly sandboxes: readonly RuntimeSandbox[];
  readonly containers: readonly RuntimeContainer[];
}

const STATES: Readonly<Record<string, RuntimeState>> = { CONTAINER_CREATED: "created", CONTAINER_RUNNING: "running", CONTAINER_EXITED: "exited", CONTAINER_UNKNOWN: "unknown" };

export function emptyRuntimePod(uid: string, name = "", namespace = ""): RuntimePod {
  return { uid, name, namespace, sandboxes: [], containers: [] };
}

/** By name, of lists that were asked of before: each of a pod's containers is looked for among all, many times. */
const byNames = new WeakMap<readonly RuntimeContainer[], ReadonlyMap<string, RuntimeContainer>>();

/** The newest container of that name. */
export function containerNamed({ containers }: RuntimePod, name: string): RuntimeContainer | undefined {
  let byName = byNames.get(containers);
  if (!byName) byNames.set(containers, byName = new Map(containers.toReversed().map((container) => [container.name, container])));
  return byName.get(name);
}

/** The IPs of the sandbox that is in use; none while there is no such sandbox. */
export function podIps(pod: RuntimePod): readonly string[] {
  const [sandbox] = pod.sandboxes;
  return sandbox?.ready ? sandbox.ips : [];
}

/** A pod's addresses as the API has them: the first of each family, however the runtime spells it; that of the node's first address comes first. Source: kubernetes v1.36 pkg/kubelet/kubelet_pods.go (sortPodIPs) */
export function inOrderOf(hostIps: readonly string[], ips: readonly string[]): readonly string[] {
  const known = ips.flatMap((ip) => parseIp(ip.includes(":") ? ip : ip.replace(/\b0+(?=\d)/g, "")) ?? []);
  const first = (wanted: Family): string[] => known.filter(({ family }) => family === wanted).slice(0, 1).map(formatIp);
  return hostIps[0]?.includes(":") ? [...first(6), ...first(4)] : [...first(4), ...first(6)];
}

export function isAnythingRunning(pod: RuntimePod): boolean {
  return pod.containers.some(({ state }) => state === "running" || state === "unknown") || pod.sandboxes.some(({ ready }) => ready);
}

/** Everything the runtime has of the pod with this uid. What vanishes while we look is left out. */
export async function readRuntimePod(cri: Cri, uid: string, signal: AbortSignal): Promise<RuntimePod> {
  const filter = { label_selector: { [POD_UID]: uid } };
  const [{ items = [] }, { containers = [] }] = await Promise.all([
    cri.call("RuntimeService/ListPodSandbox", { filter }, { signal }),
    cri.call("RuntimeService/ListContainers", { filter }, { signal }),
  ]);
  const [sandboxes, statuses] = await Promise.all([
    Promise.all(items.map((item) => unlessGone(cri.call("RuntimeService/PodSandboxStatus", { pod_sandbox_id: item.id }, { signal })))),
    Promise.all(containers.map((container) => unlessGone(cri.call("RuntimeService/ContainerStatus", { container_id: container.id }, { signal })))),
  ]);
  const labels = items[0]?.labels ?? containers[0]?.labels;
  return {
    uid, name: labels?.[POD_NAME] ?? "", namespace: labels?.[POD_NAMESPACE] ?? "",
    sandboxes: sandboxes.flatMap((answer) => (answer?.status ? [sandboxOf(answer.status)] : [])).toSorted((a, b) => b.attempt - a.attempt || newestFirst(a, b)),
    containers: inOrder(statuses.flatMap((answer, i) => (answer?.status ? [containerOf(answer.status, containers[i]!.pod_sandbox_id ?? "")] : []))),
  };
}

async function unlessGone<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (isCriNotFound(error)) return undefined;
    throw error;
  }
}

/**
 * The newest first; of those of one name the one that was started more often, whatever the clock says: one that was set back, as when a device without a battery starts again, would have what
 * was before it taken for what is now.
 */
function inOrder(containers: readonly RuntimeContainer[]): RuntimeContainer[] {
  const byTime = containers.toSorted(newestFirst);
  const byName = Map.groupBy(byTime, ({ name }) => name);
  for (const ofName of byName.values()) ofName.sort((a, b) => b.restartCount - a.restartCount);
  return byTime.map(({ name }) => byName.get(name)!.shift()!);
}

function newestFirst(a: { readonly createdAtMs: number }, b: { readonly createdAtMs: number }): number {
  return b.createdAtMs - a.createdAtMs;
}

function sandboxOf(status: PodSandboxStatus): RuntimeSandbox {
  const { ip, additional_ips = [] } = status.network ?? {};
  return {
    id: status.id ?? "", attempt: status.metadata?.attempt ?? 0, ready: (status.state ?? "SANDBOX_READY") === "SANDBOX_READY", createdAtMs: milliseconds(status.created_at),
    ips: ip ? [ip, ...additional_ips.flatMap((more) => (more.ip ? [more.ip] : []))] : [],
    hostNetwork: status.linux?.namespaces?.options?.network === "NODE",
  };
}

function containerOf(status: ContainerStatus, sandboxId: string): RuntimeContainer {
  const spec = readAnnotations(status.annotations);
  return {
    id: status.id ?? "", name: status.labels?.[CONTAINER_NAME] ?? status.metadata?.name ?? "", sandboxId, state: STATES[status.state ?? "CONTAINER_CREATED"] ?? "unknown",
    createdAtMs: milliseconds(status.created_at), startedAtMs: milliseconds(status.started_at), finishedAtMs: milliseconds(status.finished_at),
    exitCode: status.exit_code ?? 0, reason: status.reason ?? "", message: status.message ?? "",
    image: status.image?.image ?? "", imageRef: status.image_ref ?? "",
    restartCount: spec.restartCount, spec, logPath: status.log_path ?? "", mounts: status.mounts ?? [], user: status.user?.linux, stopSignal: stopSignal(status.stop_signal), resources: status.resources?.linux,
  };
}

function stopSignal(signal: string | undefined): string | undefined {
  return signal === undefined || signal === "RUNTIME_DEFAULT" ? undefined : signal;
}

/** The runtime's times are nanoseconds; what never happened is 0. */
function milliseconds(ns: number | undefined): number {
  return ns === undefined || ns <= 0 ? 0 : ns / 1e6;
}

/** One line per sandbox and container: what a relist compares to find out what happened unseen. */
export interface RuntimeSummary { readonly uid: string; readonly name: string; readonly namespace: string; readonly states: string; readonly running: boolean }

export async function summarizeRuntime(cri: Cri, signal: AbortSignal): Promise<Map<string, RuntimeSummary>> {
  const [{ items = [] }, { containers = [] }] = await Promise.all([
    cri.call("RuntimeService/ListPodSandbox", {}, { signal }),
    cri.call("RuntimeService/ListContainers", {}, { signal }),
  ]);
  const things = [
    ...items.map((item: PodSandbox) => ({ item, state: item.state ?? "SANDBOX_READY", running: (item.state ?? "SANDBOX_READY") === "SANDBOX_READY" })),
    ...containers.map((item: CriContainer) => ({ item, state: item.state ?? "CONTAINER_CREATED", running: item.state === "CONTAINER_RUNNING" })),
  ];
  const pods = new Map<string, RuntimeSummary>();
  for (const { item, state, running } of things) {
    const uid = item.labels?.[POD_UID];
    if (uid === undefined) continue; // not ours: someone else uses the runtime too
    const before = pods.get(uid);
    const states = [...(before?.states.split(" ") ?? []), `${item.id}=${state}`].toSorted().join(" ");
    pods.set(uid, { uid, name: item.labels?.[POD_NAME] ?? "", namespace: item.labels?.[POD_NAMESPACE] ?? "", states, running: running || (before?.running ?? false) });
  }
  return pods;
}
