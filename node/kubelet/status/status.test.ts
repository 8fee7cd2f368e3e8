import { expect, test } from "vitest";
import type { Container, Pod, PodStatus } from "../../../core/api/gen/core.v1.ts";
import type { Client } from "../../../core/client/client.ts";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import { silentLog } from "../../../core/observe/log.ts";
import { containerHash } from "../containers/labels.ts";
import { NO_PROBES, type ProbeResults } from "../probes/probe-results.ts";
import type { RuntimeContainer, RuntimePod, RuntimeState } from "../runtime-pod.ts";
import type { WaitingReason } from "./container-status.ts";
import { podStatusOf, type PodStatusFacts } from "./pod-status.ts";
import { statusPatch } from "./status-patch.ts";
import { statusWriter } from "./status-writer.ts";
import { terminations } from "./terminations.ts";

const NOW = Date.UTC(2026, 0, 2, 3, 4, 5);

const container = (name: string, more: Partial<Container> = {}): Container => ({ name, image: "busybox:1", ...more });

function pod(spec: Partial<Pod["spec"]> = {}, metadata: Partial<Pod["metadata"]> = {}): Pod {
  return { apiVersion: "v1", kind: "Pod", metadata: { name: "p", namespace: "default", uid: "u", resourceVersion: "1", creationTimestamp: "", generation: 3, ...metadata }, spec: { containers: [container("app")], restartPolicy: "Always", ...spec } };
}

/** "app=running", "init=exited:1", newest first. */
function runtime(text: string): RuntimePod {
  const containers = text.split(" ").filter((word) => word !== "").map((word, i): RuntimeContainer => {
    const [name = "", rest = ""] = word.split("=");
    const [state = "", code = "0"] = rest.split(":");
    return {
      id: `${name}-${i}`, name, sandboxId: "s", state: state as RuntimeState, createdAtMs: NOW, startedAtMs: NOW, finishedAtMs: NOW, exitCode: Number(code), reason: code === "0" ? "Completed" : "Error", message: "", image: "i", imageRef: "sha",
      restartCount: 2, logPath: "", mounts: [], user: undefined, stopSignal: undefined,
      spec: { hash: containerHash(container(name)), restartCount: 2, terminationMessagePath: "", terminationMessagePolicy: "", gracePeriodSeconds: undefined, preStop: undefined },
    };
  });
  return { uid: "u", name: "p", namespace: "default", sandboxes: [{ id: "s", attempt: 0, ready: true, createdAtMs: 0, ips: ["fd00::5", "10.0.0.5"], hostNetwork: false }], containers };
}

interface More { tellsVolumeImages?: boolean; tellsStopSignals?: boolean; recursiveReadOnly?: boolean | undefined; resize?: NonNullable<PodStatusFacts["resize"]>; messages?: [string, string][]; before?: PodStatus; terminal?: boolean; failure?: PodStatusFacts["failure"]; probes?: Partial<ProbeResults>; waiting?: [string, WaitingReason][]; metadata?: Partial<Pod["metadata"]>; status?: PodStatus; cgroup?: PodStatusFacts["cgroup"] }

function statusOf(spec: Partial<Pod["spec"]>, seen: RuntimePod, { resize = [], messages = [], before = {}, terminal = false, failure, probes = {}, waiting = [], metadata = {}, status, cgroup, recursiveReadOnly, tellsStopSignals, tellsVolumeImages }: More = {}): PodStatus {
  return podStatusOf({
    resize, recursiveReadOnly, tellsStopSignals, tellsVolumeImages, pod: { ...pod(spec, metadata), ...(status ? { status } : {}) }, runtime: seen, probes: { ...NO_PROBES, ...probes }, waiting: new Map(waiting), terminationMessages: new Map(messages), kubeletStartedMs: 0, before, terminal, failure, hostIps: ["172.16.0.1"], cgroup, nowMs: NOW,
  });
}

/** Running Ready=True app:running … as kubectl would summarise it. */
function summary(status: PodStatus): string {
  const states = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])].map(({ name, state, ready }) => `${name}:${state?.waiting?.reason ?? Object.keys(state ?? {})[0]}${ready ? "+" : ""}`);
  const conditions = status.conditions?.filter(({ type }) => type === "Initialized" || type === "Ready").map(({ type, status: value, reason }) => `${type}=${value}${reason ? `(${reason})` : ""}`) ?? [];
  return [status.phase, ...states, ...conditions].join(" ");
}

const init = { initContainers: [container("i1"), container("i2")] };
const side = { initContainers: [container("side", { restartPolicy: "Always" })] };
const crash: [string, WaitingReason][] = [["app", { reason: "CrashLoopBackOff", message: "back-off" }]];

test.each<[string, Partial<Pod["spec"]>, string, More, string]>([
  ["new", {}, "", {}, "Pending app:ContainerCreating Initialized=True Ready=False(ContainersNotReady)"],
  ["running", {}, "app=running", {}, "Running app:running+ Initialized=True Ready=True"],
  ["initializing", init, "i1=running", {}, "Pending i1:running i2:PodInitializing app:PodInitializing Initialized=False(ContainersNotInitialized) Ready=False(ContainersNotReady)"],
  ["init containers that nobody remembers, before what runs", init, "app=running", {}, "Running i1:terminated+ i2:terminated+ app:running+ Initialized=True Ready=True"],
  ["a sidecar that nobody remembers", side, "app=running", {}, "Pending side:PodInitializing app:running+ Initialized=True Ready=False(ContainersNotReady)"],
  ["init failed for good", { ...init, restartPolicy: "Never" }, "i1=exited:1", {}, "Failed i1:terminated i2:PodInitializing app:PodInitializing Initialized=False(ContainersNotInitialized) Ready=False(PodFailed)"],
  ["sidecar not started", side, "side=created", {}, "Pending side:waiting app:PodInitializing Initialized=False(ContainersNotInitialized) Ready=False(ContainersNotReady)"],
  ["sidecar and app", side, "app=running side=running", {}, "Running side:running+ app:running+ Initialized=True Ready=True"],
  ["app in a crash loop, sidecar starting anew", side, "app=exited:1 side=running", { before: { conditions: [{ type: "Initialized", status: "True" }] }, waiting: crash, probes: { startup: (id) => (id.startsWith("side") ? "unknown" : undefined) } }, "Running side:running app:CrashLoopBackOff Initialized=True Ready=False(ContainersNotReady)"],
  ["a sidecar that has ended well, and waits to start again", side, "app=running side=exited:0", { waiting: [["side", { reason: "CrashLoopBackOff", message: "back-off" }]] }, "Running side:terminated app:running+ Initialized=True Ready=False(ContainersNotReady)"],
  ["a sidecar that has failed, and waits to start again", side, "app=running side=exited:1", { waiting: [["side", { reason: "CrashLoopBackOff", message: "back-off" }]] }, "Running side:CrashLoopBackOff app:running+ Initialized=True Ready=False(ContainersNotReady)"],
  ["app done, sidecar left", { ...side, restartPolicy: "Never" }, "app=exited:0 side=running", {}, "Running side:running+ app:terminated Initialized=True Ready=False(ContainersNotReady)"],
  ["app and sidecar done", { ...side, restartPolicy: "Never" }, "app=exited:0 side=exited:137", { terminal: true }, "Succeeded side:terminated app:terminated Initialized=True(PodCompleted) Ready=False(PodCompleted)"],
  ["between restarts", {}, "app=exited:1", {}, "Running app:terminated Initialized=True Ready=False(ContainersNotReady)"],
  ["crash loop", {}, "app=exited:1", { waiting: crash }, "Running app:CrashLoopBackOff Initialized=True Ready=False(ContainersNotReady)"],
  ["image missing", {}, "", { waiting: [["app", { reason: "ErrImagePull", message: "no" }]] }, "Pending app:ErrImagePull Initialized=True Ready=False(ContainersNotReady)"],
  ["done", { restartPolicy: "Never" }, "app=exited:0", {}, "Succeeded app:terminated Initialized=True(PodCompleted) Ready=False(PodCompleted)"],
  ["failed", { restartPolicy: "Never" }, "app=exited:1", {}, "Failed app:terminated Initialized=True Ready=False(PodFailed)"],
  ["killed, whatever the policy says", {}, "app=exited:137", { terminal: true }, "Failed app:terminated Initialized=True Ready=False(PodFailed)"],
  ["deleted before its image was there", {}, "", { terminal: true }, "Failed app:terminated Initialized=True Ready=False(ContainersNotReady)"],
  ["deleted before it was initialized", init, "", { terminal: true }, "Failed i1:terminated i2:PodInitializing app:PodInitializing Initialized=False(ContainersNotInitialized) Ready=False(ContainersNotReady)"],
  ["deleted while the second was not there", init, "i1=exited:0", { terminal: true }, "Failed i1:terminated+ i2:PodInitializing app:PodInitializing Initialized=False(ContainersNotInitialized) Ready=False(ContainersNotReady)"],
  ["deleted when it was initialized", init, "i1=exited:0 i2=exited:0", { terminal: true }, "Failed i1:terminated+ i2:terminated+ app:terminated Initialized=True Ready=False(ContainersNotReady)"],
  ["a static pod that is stopped", {}, "app=exited:143", { terminal: true, metadata: { annotations: { "kubernetes.io/config.source": "file" } } }, "Running app:terminated Initialized=True Ready=False(ContainersNotReady)"],
  ["a static pod, gone before it started", {}, "", { terminal: true, metadata: { annotations: { "kubernetes.io/config.source": "file" } } }, "Pending app:ContainerCreating Initialized=True Ready=False(ContainersNotReady)"],
  ["evicted, not stopped yet", {}, "app=running", { before: { phase: "Running" }, failure: { reason: "Evicted", message: "low" } }, "Failed app:running+ Initialized=True Ready=False(PodFailed)"],
  ["done before it was evicted", { restartPolicy: "Never" }, "app=exited:0", { before: { phase: "Succeeded" }, failure: { reason: "Evicted", message: "low" } }, "Succeeded app:terminated Initialized=True(PodCompleted) Ready=False(PodCompleted)"],
  ["evicted", {}, "app=exited:137", { before: { phase: "Running" }, failure: { reason: "Evicted", message: "low" }, terminal: true }, "Failed app:terminated Initialized=True Ready=False(PodFailed)"],
  ["once ended, always ended", { restartPolicy: "Never" }, "app=running", { before: { phase: "Succeeded" } }, "Succeeded app:running+ Initialized=True(PodCompleted) Ready=False(PodCompleted)"],
  ["not ready yet", {}, "app=running", { probes: { readiness: () => "failure" } }, "Running app:running Initialized=True Ready=False(ContainersNotReady)"],
  ["starting up", {}, "app=running", { probes: { startup: () => "unknown" } }, "Running app:running Initialized=True Ready=False(ContainersNotReady)"],
  ["a gate is closed", { readinessGates: [{ conditionType: "x/y" }] }, "app=running", {}, "Running app:running+ Initialized=True Ready=False(ReadinessGatesNotReady)"],
  ["a gate is open", { readinessGates: [{ conditionType: "x/y" }] }, "app=running", { status: { conditions: [{ type: "x/y", status: "True" }] } }, "Running app:running+ Initialized=True Ready=True"],
])("%s", (_, spec, seen, more, expected) => {
  expect(summary(statusOf(spec, runtime(seen), more))).toBe(expected);
});

test("addresses, times and history", () => {
  const first = statusOf({}, runtime("app=running app=exited:3"));
  expect(first).toMatchObject({ hostIP: "172.16.0.1", podIP: "10.0.0.5", podIPs: [{ ip: "10.0.0.5" }, { ip: "fd00::5" }], startTime: "2026-01-02T03:04:05Z", observedGeneration: 3, qosClass: "BestEffort" });
  expect(first.containerStatuses?.[0]).toMatchObject({ restartCount: 2, containerID: "containerd://app-0", lastState: { terminated: { exitCode: 3, reason: "Error", containerID: "containerd://app-1" } } });
  const never = { ...runtime("app=exited:128"), containers: runtime("app=exited:128").containers.map((seen) => ({ ...seen, startedAtMs: 0 })) };
  expect(statusOf({}, never).containerStatuses?.[0]?.state?.terminated).toMatchObject({ exitCode: 128, startedAt: "1970-01-01T00:00:00Z" }); // what could not be started
  const lost = statusOf({}, { ...runtime(""), sandboxes: [] }, { before: first });
  expect(lost.containerStatuses?.[0]).toMatchObject({ restartCount: 2, state: { waiting: { reason: "ContainerCreating" } }, lastState: { terminated: { exitCode: 3 } } });
  const unseen = statusOf({}, { ...runtime(""), sandboxes: [] }, { before: { ...first, containerStatuses: [{ ...first.containerStatuses![0]!, lastState: {} }] } });
  expect(unseen.containerStatuses?.[0]).toMatchObject({ restartCount: 3, lastState: { terminated: { exitCode: 137, reason: "ContainerStatusUnknown" } } });
});

test("of a container that never started its pod's end is told once, whatever it waited for", () => {
  const more: More = { terminal: true, failure: { reason: "DeadlineExceeded", message: "late", deadline: true }, waiting: [["i1", { reason: "ImagePullBackOff", message: "no" }], ["app", { reason: "ErrImagePull", message: "no" }]] };
  for (const spec of [{}, { initContainers: [container("i1")] }]) {
    const first = statusOf(spec, runtime(""), more);
    const ended = [...(first.initContainerStatuses ?? []), ...(first.containerStatuses ?? [])][0];
    expect(ended).toMatchObject({ lastState: {}, state: { terminated: { reason: "ContainerStatusUnknown" } } });
    expect(statusOf(spec, runtime(""), { ...more, before: first })).toEqual(first);
  }
});

test("a pod in the node's network has the address that the node has now, and keeps the one it ended with", () => {
  const before = { podIP: "172.16.0.9", podIPs: [{ ip: "172.16.0.9" }] };
  const ips = (seen: string, more: More = {}) => statusOf({ hostNetwork: true, restartPolicy: "Never" }, runtime(seen), { before, ...more }).podIPs;
  expect([ips("app=running"), ips("app=exited:0"), ips("app=exited:137", { terminal: true }), ips("app=exited:0", { before: {} })]).toEqual([[{ ip: "172.16.0.1" }], before.podIPs, before.podIPs, [{ ip: "172.16.0.1" }]]);
});

test.each<[string, Partial<Pod["spec"]>, Pick<PodStatus, "resources" | "allocatedResources">]>([
  ["nothing", {}, { resources: {} }],
  ["containers", { containers: [container("app", { resources: { requests: { cpu: "100m" }, limits: { memory: "64Mi" } } }), container("b", { resources: { requests: { cpu: "200m" } } })] },
    { resources: { requests: { cpu: "300m", memory: "64Mi" }, limits: { memory: "64Mi" } }, allocatedResources: { cpu: "300m", memory: "64Mi" } }],
  ["the pod itself", { resources: { requests: { cpu: "1" } }, containers: [container("app", { resources: { requests: { cpu: "200m" } } })] }, { resources: { requests: { cpu: "1" } }, allocatedResources: { cpu: "1" } }],
])("a pod's own resources, asked for by %s", (_, spec, wanted) => {
  const { resources, allocatedResources } = statusOf(spec, runtime("app=running"));
  expect({ resources, ...(allocatedResources && { allocatedResources }) }).toEqual(wanted);
});

test("while a pod runs, what it has as a whole is what binds it, not what it was granted", () => {
  const given = { requests: { cpu: "1", memory: "10Ki" }, limits: { cpu: "1", memory: "10Ki" } };
  const cgroup = { cpuShares: 512, cpuQuotaUs: 50_000, cpuPeriodUs: 100_000, memoryBytes: 30 << 20 };
  expect(statusOf({ resources: given }, runtime("app=running"), { cgroup })).toMatchObject({ resources: { requests: { cpu: "500m", memory: "10Ki" }, limits: { cpu: "500m", memory: "30Mi" } }, allocatedResources: given.requests });
  expect(statusOf({ resources: given }, runtime(""), { cgroup }).resources).toEqual(given);
  const containers = [container("app", { resources: { requests: { "ephemeral-storage": "1Gi" }, limits: { cpu: "1" } } }), container("b")];
  expect(statusOf({ containers }, runtime("app=running b=running"), { cgroup: { cpuShares: 1024 } })).toMatchObject({ resources: { requests: { cpu: "1" } }, allocatedResources: { cpu: "1", "ephemeral-storage": "1Gi" } });
});

test("a limit that does not bind the pod as a whole is told, too, and of others than processor and memory none while it runs; what is told no more is taken away", () => {
  const spec: Partial<Pod["spec"]> = { containers: [container("app", { resources: { limits: { memory: "64Mi", "ephemeral-storage": "4Mi" } } }), container("b")] };
  const before = statusOf(spec, runtime(""));
  const after = statusOf(spec, runtime("app=running b=running"), { before, cgroup: { cpuShares: 2 } });
  expect([before.resources, after.resources]).toEqual([
    { requests: { memory: "64Mi", "ephemeral-storage": "4Mi" }, limits: { memory: "64Mi", "ephemeral-storage": "4Mi" } }, { requests: { memory: "64Mi" }, limits: { memory: "64Mi" } },
  ]);
  expect(statusPatch("u", before, after)).toMatchObject({ status: { resources: { requests: { memory: "64Mi", "ephemeral-storage": null }, limits: { memory: "64Mi", "ephemeral-storage": null } } } });
  expect(statusPatch("u", before, { ...after, resources: {} })).toMatchObject({ status: { resources: { requests: null, limits: null } } });
});

test("what a pod as a whole had is told of it when it has ended, too", () => {
  const spec: Partial<Pod["spec"]> = { restartPolicy: "Never", containers: [container("app", { resources: { requests: { cpu: "1", "example.com/dongle": "1" }, limits: { "example.com/dongle": "1" } } })] };
  const running = statusOf(spec, runtime("app=running"), { cgroup: { cpuShares: 1024 } });
  expect(running.resources).toEqual({ requests: { cpu: "1" } });
  const { phase, resources, allocatedResources } = statusOf(spec, runtime("app=exited:0"), { before: running });
  expect({ phase, resources, allocatedResources }).toEqual({ phase: "Succeeded", resources: running.resources, allocatedResources: running.allocatedResources });
});

test("what was never taken in has no containers, not even after a restart: clients show its reason", () => {
  const scheduled = { conditions: [{ type: "PodScheduled", status: "True" }] };
  const refused = statusOf({}, { ...runtime(""), sandboxes: [] }, { failure: { reason: "NodeAffinity", message: "Pod was rejected: no", refused: true }, status: scheduled });
  expect(refused).toEqual({ observedGeneration: 3, phase: "Failed", reason: "NodeAffinity", message: "Pod was rejected: no", startTime: "2026-01-02T03:04:05Z", qosClass: "BestEffort", ...scheduled });
  expect(statusOf({}, { ...runtime(""), sandboxes: [] }, { before: refused, status: refused, terminal: true })).toEqual(refused);
  expect(statusOf({}, { ...runtime(""), sandboxes: [] }, { failure: { reason: "Evicted", message: "low" } }).containerStatuses).toHaveLength(1); // it was taken in
});

test("a pod that was ended for the node's sake, and all of it well, has not failed; one that may end by itself has, one whose time is over, and one that nobody may take back", () => {
  const condition = { type: "DisruptionTarget", status: "True" as const, reason: "TerminationByKubelet", lastTransitionTime: "2026-01-02T03:04:05Z" };
  const failure = { reason: "Preempting", message: "for a critical one", condition };
  const ended = (spec: Partial<Pod["spec"]>, seen: string, more: More = {}) => {
    const { phase, reason, conditions } = statusOf(spec, runtime(seen), { before: { phase: "Failed", reason: "Preempting" }, failure, terminal: true, ...more });
    return [phase, reason, conditions?.find(({ type }) => type === "DisruptionTarget")?.reason];
  };
  const failed = ["Failed", "Preempting", "TerminationByKubelet"];
  expect(ended({}, "app=exited:0")).toEqual(["Succeeded", undefined, "TerminationByKubelet"]);
  expect(ended({}, "app=exited:0", { before: { phase: "Succeeded" } })).toEqual(["Succeeded", undefined, "TerminationByKubelet"]); // told again
  expect(ended({}, "app=exited:143")).toEqual(failed);
  expect(ended({ restartPolicy: "OnFailure" }, "app=exited:0")).toEqual(failed);
  expect(ended({}, "app=exited:0", { metadata: { annotations: { "kubernetes.io/config.source": "file" } } })).toEqual(failed);
  expect(ended({}, "app=exited:0", { status: { phase: "Failed", reason: "Preempting" } })).toEqual(failed);
  expect(ended({}, "app=exited:0", { before: { phase: "Failed", reason: "DeadlineExceeded" }, failure: { reason: "DeadlineExceeded", message: "", deadline: true } })).toEqual(["Failed", "DeadlineExceeded", undefined]);
});

test("a pod that was to be disrupted for others' sake and is for the node's has been since it was to be", () => {
  const condition = { type: "DisruptionTarget", status: "True" as const, reason: "TerminationByKubelet", lastTransitionTime: "2026-01-02T03:04:05Z" };
  const told = (before: "True" | "False") => statusOf({}, runtime(""), { failure: { reason: "Evicted", message: "low", condition }, status: { conditions: [{ type: "DisruptionTarget", status: before, reason: "PreemptionByScheduler", lastTransitionTime: "2026-01-01T00:00:00Z" }] } }).conditions?.filter(({ type }) => type === "DisruptionTarget");
  expect([told("True"), told("False")]).toEqual([[{ ...condition, lastTransitionTime: "2026-01-01T00:00:00Z" }], [condition]]);
});

test("only what changed is written, and nobody else's conditions are touched", () => {
  const before = statusOf({}, runtime(""), { status: { conditions: [{ type: "x/y", status: "True" }] } });
  const after = statusOf({}, runtime("app=running"), { before, status: before });
  expect(statusPatch("u", before, before)).toBeUndefined();
  const patch = statusPatch("u", before, after) as { metadata: object; status: PodStatus };
  expect(patch.metadata).toEqual({ uid: "u" });
  expect(Object.keys(patch.status).toSorted()).toEqual(["conditions", "containerStatuses", "phase"]);
  expect(patch.status.conditions?.map(({ type, status, reason }) => [type, status, reason])).toEqual([["Ready", "True", null], ["ContainersReady", "True", null]]);
  const moved = { ...after, podIPs: [{ ip: "10.0.0.9" }] };
  expect(statusPatch("u", after, moved)).toEqual({ metadata: { uid: "u" }, status: { podIPs: [{ ip: "10.0.0.9" }, { $patch: "replace" }] } });
});

test("a pod that asks for nothing is told to have nothing: {}, which the API server keeps", () => {
  const told = statusOf({}, runtime("app=running"));
  expect(told.resources).toEqual({});
  const { resources, ...before } = told;
  expect(statusPatch("u", before, told)).toEqual({ metadata: { uid: "u" }, status: { resources } });
  expect(statusPatch("u", told, told)).toBeUndefined();
});

test("a server that does not keep what it takes is not asked for ever", async () => {
  let writes = 0;
  const owner = pod();
  const client = { resource: () => ({ patch: async () => { writes++; return owner; } }) } as unknown as Client;
  const writer = statusWriter({ client, clock: systemClock, log: silentLog, signal: new AbortController().signal, objectOf: (one) => one });
  writer.set(owner, { phase: "Running" });
  await writer.written("u");
  expect(writes).toBe(1);
  writer.set(owner, { phase: "Failed" });
  await writer.written("u");
  expect([writes, writer.get("u")?.phase]).toEqual([2, "Failed"]);
});

test("a pod whose containers all begin anew is told so, and goes on counting", () => {
  const rule: Partial<Container> = { restartPolicy: "Never", restartPolicyRules: [{ action: "RestartAllContainers", exitCodes: { operator: "In", values: [42] } }] };
  const spec: Partial<Pod["spec"]> = { restartPolicy: "Never", initContainers: [container("i")], containers: [container("app", rule), container("b")] };
  const restarting = (status: PodStatus): unknown => {
    const { status: value, reason } = status.conditions!.find(({ type }) => type === "AllContainersRestarting")!;
    return [value, reason];
  };
  const running = statusOf(spec, runtime("app=running b=running i=exited:0"));
  expect([running.phase, restarting(running)]).toEqual(["Running", ["False", undefined]]);
  const ended = statusOf(spec, runtime("app=exited:42 b=running i=exited:0"), { before: running });
  expect([ended.phase, restarting(ended)]).toEqual(["Running", ["True", "RestartAllContainersStarted"]]);
  const lost = statusOf(spec, runtime("app=exited:42 b=unknown i=exited:0"), { before: running });
  expect([lost.phase, lost.containerStatuses![1]!.state?.terminated?.reason]).toEqual(["Running", "RestartingAllContainers"]);
  const gone = statusOf(spec, runtime(""), { before: ended });
  expect([summary(gone), restarting(gone)]).toEqual(["Running i:RestartingAllContainers app:RestartingAllContainers b:RestartingAllContainers Initialized=True Ready=False(ContainersNotReady)", ["False", undefined]]);
  expect(gone.containerStatuses![0]).toMatchObject({ restartCount: 3, lastState: { terminated: { reason: "RestartingAllContainers", exitCode: 137, message: "The container is removed because RestartAllContainers in place" } } });
  const again = statusOf(spec, runtime("i=running"), { before: gone });
  expect([again.phase, again.initContainerStatuses![0]!.restartCount, again.initContainerStatuses![0]!.lastState?.terminated?.reason]).toEqual(["Pending", 3, "RestartingAllContainers"]);
  expect(statusOf(spec, runtime("app=exited:1 b=exited:0 i=exited:0")).phase).toBe("Failed");
  const { containerStatuses: [app, b] = [] } = gone;
  expect([app?.containerID, app?.imageID, b?.containerID, b?.imageID]).toEqual(["containerd://app-0", "sha", undefined, ""]); // one that had ended is told of, one that ran is nowhere
  expect(gone.conditions!.filter(({ observedGeneration }) => observedGeneration === undefined).map(({ type }) => type)).toEqual(["AllContainersRestarting"]);
});

test("a container that runs again counts on from what was told when the runtime remembers none before it", () => {
  const countOf = (name: string, before: Partial<NonNullable<PodStatus["containerStatuses"]>[0]>) => statusOf({}, runtime(name), { before: { containerStatuses: [{ name: "app", image: "i", imageID: "", ready: false, restartCount: 5, ...before }] } }).containerStatuses?.[0]?.restartCount;
  const ended = { terminated: { exitCode: 1 } };
  expect([countOf("app=running", { state: ended, containerID: "containerd://x" }), countOf("app=running", { state: ended, containerID: "containerd://app-0" }), countOf("app=running", { state: { waiting: {} } })]).toEqual([6, 5, 5]);
});

test("what waits to start again says nothing of the init containers before it, unless they were through once", () => {
  const before = (status: "True" | "False"): PodStatus => ({ conditions: [{ type: "Initialized", status }] });
  const told = (more: More) => statusOf(init, runtime("app=exited:1 i2=exited:1"), { waiting: crash, ...more }).conditions?.find(({ type }) => type === "Initialized")?.status;
  expect([told({}), told({ before: before("False") }), told({ before: before("True") })]).toEqual(["False", "False", "True"]);
});

test("a status tells how the devices of its containers are, by name, and no longer once there are none", () => {
  const facts = { pod: pod({ initContainers: [container("first")] }), runtime: runtime("app=running"), probes: NO_PROBES, waiting: new Map(), terminationMessages: new Map(), kubeletStartedMs: 0, before: {}, terminal: false, failure: undefined, hostIps: ["172.16.0.1"], nowMs: NOW };
  const health = () => [{ name: "z/z", resources: [] }, { name: "a/a", resources: [{ resourceID: "0", health: "Unhealthy" }] }];
  const told = podStatusOf({ ...facts, health });
  expect(told.containerStatuses?.map(({ allocatedResourcesStatus }) => allocatedResourcesStatus)).toEqual([[{ name: "a/a", resources: [{ resourceID: "0", health: "Unhealthy" }] }, { name: "z/z", resources: [] }]]);
  expect(told.initContainerStatuses?.[0]).not.toHaveProperty("allocatedResourcesStatus"); // init containers: as upstream, nothing
  expect(podStatusOf({ ...facts, before: told, health: () => [] }).containerStatuses?.[0]).not.toHaveProperty("allocatedResourcesStatus");
});

test("a container that started before the clock was set back is as ready as it was, until its probes speak", () => {
  const probes = { probes: () => true };
  const before: PodStatus = { containerStatuses: [{ name: "app", image: "i", imageID: "", ready: true, started: true, restartCount: 0, containerID: "containerd://app-0" }] };
  const seen = runtime("app=running");
  const later = { ...seen, containers: seen.containers.map((one) => ({ ...one, startedAtMs: NOW + 3_600_000 })) };
  expect(statusOf({}, later, { probes, before }).containerStatuses?.[0]).toMatchObject({ started: true, ready: true });
  expect(statusOf({}, seen, { probes, before }).containerStatuses?.[0]).toMatchObject({ started: false, ready: false });
});

test("a container that ran before the kubelet did is what was told of it, if that was told of this very one, although its probes are not at work yet", () => {
  const probe = { exec: { command: ["true"] } };
  const seen = runtime("app=running");
  const later = { ...seen, containers: seen.containers.map((one) => ({ ...one, startedAtMs: NOW + 3_600_000 })) };
  const shown = (probed: Partial<Container>, told?: { readonly started: boolean; readonly ready: boolean; readonly id?: string }): unknown[] => {
    const before: PodStatus = told ? { containerStatuses: [{ name: "app", image: "i", imageID: "", restartCount: 0, ...told, containerID: `containerd://${told.id ?? "app-0"}` }] } : {};
    const { started, ready } = statusOf({ containers: [container("app", probed)] }, later, { before }).containerStatuses![0]!;
    return [started, ready];
  };
  expect(shown({})).toEqual([true, true]);
  expect(shown({ readinessProbe: probe })).toEqual([true, false]);
  expect(shown({ readinessProbe: probe }, { started: true, ready: false })).toEqual([true, false]);
  expect(shown({ readinessProbe: probe }, { started: true, ready: true })).toEqual([true, true]);
  expect(shown({ readinessProbe: probe }, { started: true, ready: true, id: "another" })).toEqual([true, false]);
  expect(shown({ startupProbe: probe }, { started: false, ready: false })).toEqual([false, false]);
  expect(shown({ startupProbe: probe }, { started: true, ready: true })).toEqual([true, true]);
});

test("a container that ends is counted once, however often its pod's status is said", () => {
  const { containerStatuses, ...running } = statusOf({}, runtime("app=running"));
  const ended = statusOf({}, runtime("app=exited:139"), { before: { ...running, containerStatuses: containerStatuses! } });
  const both = { ...ended, initContainerStatuses: ended.containerStatuses! };
  expect(terminations({ ...running, containerStatuses: containerStatuses! }, ended)).toEqual([{ kind: "container", exitCode: 139, reason: "Error" }]);
  expect(terminations(ended, ended)).toEqual([]);
  expect(terminations({}, both).map(({ kind }) => kind)).toEqual(["init", "container"]);
});

test("what an ended container has said stays told when a kubelet that starts anew finds the pod's directory gone", () => {
  const seen = runtime("app=running app=exited:1 init=exited:0");
  const spec = { initContainers: [container("init")] };
  const before = statusOf(spec, seen, { messages: [["app-1", "last words"], ["init-2", "done"]] });
  const after = statusOf(spec, seen, { messages: [["app-1", ""], ["init-2", ""]], before });
  expect(after.containerStatuses?.[0]?.lastState?.terminated).toMatchObject({ containerID: "containerd://app-1", message: "last words" });
  expect(after.initContainerStatuses?.[0]?.state?.terminated).toMatchObject({ message: "done" });
  const ended = statusOf(spec, runtime("app=exited:0 app=exited:1"), { before }); // the one that ran has ended, too, and says nothing
  expect(ended.containerStatuses?.[0]?.state?.terminated).not.toHaveProperty("message");
  expect(ended.containerStatuses?.[0]?.lastState?.terminated).toMatchObject({ message: "last words" });
});

test("last words of the containers of a pod are no longer than 12 KiB together: each has the same share", () => {
  const words = (count: number): string | undefined => statusOf({ containers: Array.from({ length: count }, (_, i) => container(i === 0 ? "app" : `c${i}`)) }, runtime("app=exited:1"), { messages: [["app-0", "é".repeat(2048)]] }).containerStatuses?.find(({ name }) => name === "app")?.state?.terminated?.message;
  expect([3, 4, 12].map((count) => words(count)?.length)).toEqual([2048, 1536, 512]);
});

test("why a pod is not resized is so since it is for that reason, and of the generation it was said of", () => {
  const waits = (reason: string, observedGeneration: number) => ({ resize: [{ type: "PodResizePending", reason, observedGeneration }] });
  const before = { conditions: [{ type: "PodResizePending", status: "True" as const, reason: "Deferred", lastTransitionTime: "2026-01-01T00:00:00Z" }] };
  const told = (reason: string) => statusOf({}, runtime("app=running"), { ...waits(reason, 2), before }).conditions?.find(({ type }) => type === "PodResizePending");
  expect(told("Deferred")).toEqual({ type: "PodResizePending", status: "True", reason: "Deferred", observedGeneration: 2, lastTransitionTime: "2026-01-01T00:00:00Z" });
  expect(told("Infeasible")?.lastTransitionTime).toBe("2026-01-02T03:04:05Z");
});

test("a mount is told to be read-only all the way down when it is; of a container that is not there yet, when it can be", () => {
  const volumeMounts = [{ name: "a", mountPath: "/a", readOnly: true, recursiveReadOnly: "IfPossible" as const }, { name: "b", mountPath: "b", readOnly: true, recursiveReadOnly: "IfPossible" as const }, { name: "c", mountPath: "/c", readOnly: true }, { name: "d", mountPath: "/d" }];
  const spec = { containers: [container("app", { volumeMounts })] };
  const running = runtime("app=running");
  const seen = { ...running, containers: running.containers.map((one) => ({ ...one, mounts: [{ container_path: "/a" }, { container_path: "/b", recursive_read_only: true }] })) };
  const told = ({ containerStatuses }: PodStatus) => containerStatuses?.[0]?.volumeMounts?.map(({ recursiveReadOnly }) => recursiveReadOnly);
  expect(told(statusOf(spec, seen))).toEqual(["Disabled", "Enabled", "Disabled", undefined]);
  expect([true, undefined].map((recursiveReadOnly) => told(statusOf(spec, runtime(""), { recursiveReadOnly })))).toEqual([["Enabled", "Enabled", "Disabled", undefined], ["Disabled", "Disabled", "Disabled", undefined]]);
});

test("of a volume that is an image it is told which one it is, where the node is told to, as soon as the runtime has mounted it", () => {
  const spec = { containers: [container("app", { volumeMounts: [{ name: "image", mountPath: "/image" }, { name: "again", mountPath: "again" }, { name: "other", mountPath: "/other" }] })], volumes: [{ name: "image", image: { reference: "registry.local/data:1" } }] };
  const running = runtime("app=running");
  const image = (name: string) => ({ container_path: `/${name}`, image: { image: `sha256:${name}` } });
  const seen = { ...running, containers: running.containers.map((one) => ({ ...one, mounts: [image("image"), image("again"), { container_path: "/other", host_path: "/x" }] })) };
  const told = (pod: RuntimePod, tellsVolumeImages: boolean) => statusOf(spec, pod, { tellsVolumeImages }).containerStatuses![0]!.volumeMounts!.map(({ volumeStatus }) => volumeStatus?.image?.imageRef);
  expect([told(seen, true), told(seen, false), told(runtime(""), true)]).toEqual([["sha256:image", "sha256:again", undefined], [undefined, undefined, undefined], [undefined, undefined, undefined]]);
});

test("which signal stops a container is told of those that ask for one, and of all where the node is told to", () => {
  const seen = runtime("app=running other=running");
  const signals = (tellsStopSignals: boolean): unknown => statusOf({ os: { name: "linux" }, containers: [container("app", { lifecycle: { stopSignal: "SIGUSR1" } }), container("other")] }, { ...seen, containers: seen.containers.map((one) => ({ ...one, stopSignal: one.name === "app" ? "SIGUSR1" : "SIGTERM" })) }, { tellsStopSignals }).containerStatuses!.map(({ stopSignal }) => stopSignal);
  expect([signals(false), signals(true)]).toEqual([["SIGUSR1", undefined], ["SIGUSR1", "SIGTERM"]]);
});
