/**
 * Pods and pod templates. STATUS is a story told in one word: what keeps the pod from running, or how it ended.
 *
 * Source: kubernetes v1.36 pkg/printers/internalversion/printers.go printPod
 */
import type { Container, ContainerStatus, Pod, PodCondition, PodTemplate } from "../../gen/core.v1.ts";
import { parseTime } from "../../meta/time.ts";
import { AGE, column, CORE, fieldColumn, NAME, WIDE } from "./columns.ts";
import { humanDuration, since } from "./human-duration.ts";
import { containerCells, formatLabels, printer } from "./printer.ts";

/** status.reason of a pod whose node stopped answering. */
const NODE_LOST = "NodeLost";

export const pods = printer<Pod>({
  columns: [
    NAME,
    column("Ready", "The aggregate readiness state of this pod for accepting traffic."),
    column("Status", "The aggregate status of the containers in this pod."),
    column("Restarts", "The number of times the containers in this pod have been restarted and when the last container in this pod has restarted."),
    AGE,
    fieldColumn("IP", `${CORE}.PodStatus.podIP`, WIDE),
    fieldColumn("Node", `${CORE}.PodSpec.nodeName`, WIDE),
    fieldColumn("Nominated Node", `${CORE}.PodStatus.nominatedNodeName`, WIDE),
    fieldColumn("Readiness Gates", `${CORE}.PodSpec.readinessGates`, WIDE),
  ],
  cells(pod, nowMs) {
    const { ready, total, reason, restarts, lastRestartMs } = summarize(pod);
    return [
      pod.metadata.name,
      `${ready}/${total}`,
      reason,
      restarts !== 0 && lastRestartMs !== undefined ? `${restarts} (${humanDuration(nowMs - lastRestartMs)} ago)` : String(restarts),
      since(pod.metadata.creationTimestamp, nowMs),
      pod.status?.podIPs?.[0]?.ip || "<none>",
      pod.spec?.nodeName || "<none>",
      pod.status?.nominatedNodeName || "<none>",
      readinessGates(pod),
    ];
  },
  agesOnly: ({ status }) => [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])].every(({ restartCount }) => !restartCount), // nor tells when that was
  conditions({ status }) {
    if (status?.phase === "Succeeded") return [{ type: "Completed", status: "True", reason: "Succeeded", message: "The pod has completed successfully." }];
    if (status?.phase === "Failed") return [{ type: "Completed", status: "True", reason: "Failed", message: "The pod failed." }];
    return [];
  },
});

interface Restarts { count: number; lastMs: number | undefined }
interface Summary { readonly ready: number; readonly total: number; readonly reason: string; readonly restarts: number; readonly lastRestartMs: number | undefined }

function summarize(pod: Readonly<Pod>): Summary {
  const conditions = pod.status?.conditions ?? [];
  const phase = pod.status?.phase ?? "";
  let reason: string = pod.status?.reason || phase;
  if (conditions.some(({ type, reason: why }) => type === "PodScheduled" && why === "SchedulingGated")) reason = "SchedulingGated";

  const init = summarizeInit(pod);
  let ready = init.ready;
  let restarts = init.restarts;
  if (init.reason === undefined || isTrue(conditions, "Initialized")) {
    const main = summarizeContainers(pod, init.reason ?? reason);
    ready += main.ready;
    reason = main.reason;
    restarts = merged(init.sidecarRestarts, main.restarts); // what the init containers did no longer matters
  } else reason = init.reason;

  if (pod.metadata.deletionTimestamp) {
    if (pod.status?.reason === NODE_LOST) reason = "Unknown";
    else if (phase !== "Failed" && phase !== "Succeeded") reason = "Terminating";
  }
  const sidecars = pod.spec?.initContainers?.filter(isSidecar).length ?? 0;
  return { ready, total: (pod.spec?.containers ?? []).length + sidecars, reason, restarts: restarts.count, lastRestartMs: restarts.lastMs };
}

interface InitSummary {
  readonly ready: number;
  readonly restarts: Restarts;
  readonly sidecarRestarts: Restarts;
  /** What the pod is waiting for while it is initializing. */
  readonly reason: string | undefined;
}

const NOTHING_TO_INITIALIZE: InitSummary = { ready: 0, restarts: { count: 0, lastMs: undefined }, sidecarRestarts: { count: 0, lastMs: undefined }, reason: undefined };

function summarizeInit(pod: Readonly<Pod>): InitSummary {
  if (!pod.status?.initContainerStatuses) return NOTHING_TO_INITIALIZE;
  const declared = new Map((pod.spec?.initContainers ?? []).map((container) => [container.name, container]));
  const restarts: Restarts = { count: 0, lastMs: undefined };
  const sidecarRestarts: Restarts = { count: 0, lastMs: undefined };
  let ready = 0;
  for (const [i, status] of (pod.status?.initContainerStatuses ?? []).entries()) {
    const sidecar = isSidecar(declared.get(status.name));
    countRestarts(restarts, status);
    if (sidecar) countRestarts(sidecarRestarts, status);
    const { terminated, waiting } = status.state ?? {};
    if (terminated && terminated.exitCode === 0) continue;
    if (sidecar && status.started) {
      if (status.ready) ready++;
      continue;
    }
    let reason = `Init:${i}/${declared.size}`;
    if (terminated) reason = `Init:${endReason(terminated)}`;
    else if (waiting?.reason && waiting.reason !== "PodInitializing") reason = `Init:${waiting.reason}`;
    return { ready, restarts, sidecarRestarts, reason };
  }
  return { ready, restarts, sidecarRestarts, reason: undefined };
}

function summarizeContainers(pod: Readonly<Pod>, before: string): { readonly ready: number; readonly reason: string; readonly restarts: Restarts } {
  const restarts: Restarts = { count: 0, lastMs: undefined };
  let ready = 0;
  let reason = before;
  let errorReason = "";
  const statuses = pod.status?.containerStatuses ?? [];
  for (let i = statuses.length - 1; i >= 0; i--) {
    const status = statuses[i]!;
    countRestarts(restarts, status);
    const { waiting, terminated, running } = status.state ?? {};
    if (waiting?.reason) reason = waiting.reason;
    else if (terminated) {
      reason = endReason(terminated);
      if (terminated.exitCode !== 0) errorReason = reason;
    } else if (status.ready && running) ready++;
  }
  // A pod some of whose containers are done is still running if the others are.
  if (reason === "Completed") {
    if (ready > 0 && isTrue(pod.status?.conditions ?? [], "Ready")) reason = "Running";
    else if (errorReason !== "") reason = errorReason;
    else if (ready > 0) reason = "NotReady";
  }
  return { ready, reason, restarts };
}

function endReason({ reason, signal, exitCode }: { readonly reason?: string | undefined; readonly signal?: number | undefined; readonly exitCode: number }): string {
  return reason || (signal ? `Signal:${signal}` : `ExitCode:${exitCode ?? 0}`);
}

function countRestarts(into: Restarts, { restartCount, lastState }: ContainerStatus): void {
  into.count += restartCount ?? 0;
  const finished = lastState?.terminated?.finishedAt;
  const finishedMs = finished ? parseTime(finished) : undefined;
  if (finishedMs !== undefined && (into.lastMs === undefined || finishedMs > into.lastMs)) into.lastMs = finishedMs;
}

function merged(a: Restarts, b: Restarts): Restarts {
  return { count: a.count + b.count, lastMs: a.lastMs === undefined || b.lastMs === undefined ? a.lastMs ?? b.lastMs : Math.max(a.lastMs, b.lastMs) };
}

function isSidecar(container: Readonly<Container> | undefined): boolean { return container?.restartPolicy === "Always"; }

function isTrue(conditions: readonly PodCondition[], type: string): boolean {
  return conditions.find((condition) => condition.type === type && condition.status === "True") !== undefined;
}

function readinessGates({ spec, status }: Readonly<Pod>): string {
  const gates = spec?.readinessGates ?? [];
  if (gates.length === 0) return "<none>";
  const statuses = new Map((status?.conditions ?? []).toReversed().map(({ type, status: is }) => [type, is])); // the first of a type counts
  const met = gates.filter(({ conditionType }) => statuses.get(conditionType) === "True").length;
  return `${met}/${gates.length}`;
}

export const podTemplates = printer<PodTemplate>({
  columns: [
    NAME,
    column("Containers", "Names of each container in the template."),
    column("Images", "Images referenced by each container in the template."),
    column("Pod Labels", "The labels for the pod template."),
  ],
  cells: ({ metadata, template }) => [metadata.name, ...containerCells(template), formatLabels(template?.metadata?.labels)],
});
