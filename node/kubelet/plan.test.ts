import { expect, test } from "vitest";
import type { Container, Pod } from "../../core/api/gen/core.v1.ts";
import { containerHash } from "./containers/labels.ts";
import { planPod } from "./plan.ts";
import { NO_PROBES, type ProbeResults } from "./probes/probe-results.ts";
import type { RuntimeContainer, RuntimePod, RuntimeState } from "./runtime-pod.ts";

const container = (name: string, more: Partial<Container> = {}): Container => ({ name, image: "busybox:1", ...more });

function pod(spec: Partial<Pod["spec"]>): Pod {
  return { apiVersion: "v1", kind: "Pod", metadata: { name: "p", namespace: "default", uid: "u", resourceVersion: "1", creationTimestamp: "" }, spec: { containers: [container("app")], restartPolicy: "Always", ...spec } };
}

/** "app=running", "init=exited:1", newest first. */
function runtime(text: string, { ready = true, ips = ["10.0.0.1"], hash }: { ready?: boolean; ips?: string[]; hash?: string } = {}): RuntimePod {
  const containers = text.split(" ").filter((word) => word !== "").map((word): RuntimeContainer => {
    const [name = "", rest = ""] = word.split("=");
    const [state = "", code = "0"] = rest.split(":");
    return {
      id: `${name}-id`, name, sandboxId: "s", state: state as RuntimeState, createdAtMs: 1, startedAtMs: 1, finishedAtMs: 1, exitCode: Number(code), reason: "", message: "", image: "", imageRef: "",
      restartCount: 0, logPath: "", mounts: [], user: undefined, stopSignal: undefined,
      spec: { hash: hash ?? containerHash(container(name)), restartCount: 0, terminationMessagePath: "", terminationMessagePolicy: "", gracePeriodSeconds: undefined, preStop: undefined },
    };
  });
  return { uid: "u", name: "p", namespace: "default", sandboxes: text === "none" ? [] : [{ id: "s", attempt: 2, ready, createdAtMs: 0, ips, hostNetwork: false }], containers: text === "none" ? [] : containers };
}

function summary(spec: Partial<Pod["spec"]>, seen: RuntimePod, probes: Partial<ProbeResults> = {}): string {
  const plan = planPod({ pod: pod(spec), runtime: seen, probes: { ...NO_PROBES, ...probes } });
  return [
    ...(plan.killPod ? ["kill-pod"] : []), ...(plan.createSandbox ? [`sandbox#${plan.attempt}`] : []),
    ...plan.kill.map(({ container, reason }) => `kill ${container.name}${reason && ` (${reason})`}`), ...plan.reset.map(({ container, alive }) => `${alive ? "end" : "drop"} ${container.name}`), ...plan.start.map(({ container }) => `start ${container.name}`),
  ].join(", ");
}

const again = (operator: "In" | "NotIn"): Partial<Container> => ({ restartPolicy: "Never", restartPolicyRules: [{ action: "RestartAllContainers", exitCodes: { operator, values: operator === "In" ? [42] : [0] } }] });
const init = [container("i1"), container("i2")];
const sidecar = [container("side", { restartPolicy: "Always" }), container("i2")];

test.each<[string, Partial<Pod["spec"]>, RuntimePod, string]>([
  ["a new pod", {}, runtime("none"), "kill-pod, sandbox#0, start app"],
  ["a new pod with init containers", { initContainers: init }, runtime("none"), "kill-pod, sandbox#0, start i1"],
  ["all is well", {}, runtime("app=running"), ""],
  ["the sandbox died", {}, runtime("app=exited:137", { ready: false }), "kill-pod, sandbox#3, start app"],
  ["the sandbox died, and the pod runs once", { restartPolicy: "Never" }, runtime("app=exited:137", { ready: false }), "kill-pod"],
  ["the sandbox died after the work was done", { restartPolicy: "OnFailure" }, runtime("app=exited:0", { ready: false }), "kill-pod"],
  ["the sandbox has no address", {}, runtime("", { ips: [] }), "kill-pod, sandbox#3, start app"],
  ["first init container runs", { initContainers: init }, runtime("i1=running"), ""],
  ["first init container done", { initContainers: init }, runtime("i1=exited:0"), "start i2"],
  ["init container failed", { initContainers: init }, runtime("i1=exited:1"), "start i1"],
  ["init container failed for good", { initContainers: init, restartPolicy: "Never" }, runtime("i1=exited:1"), "kill-pod"],
  ["an init container that nobody knows the end of has no exit code for a rule", { initContainers: [container("i1", { restartPolicy: "Never", restartPolicyRules: [{ action: "Restart", exitCodes: { operator: "NotIn", values: [42] } }] })] }, runtime("i1=unknown"), "kill-pod"],
  ["… and one that has ended has", { initContainers: [container("i1", { restartPolicy: "Never", restartPolicyRules: [{ action: "Restart", exitCodes: { operator: "NotIn", values: [42] } }] })] }, runtime("i1=exited:1"), "start i1"],
  ["init done", { initContainers: init }, runtime("i2=exited:0 i1=exited:0"), "start app"],
  ["init records gone, app runs", { initContainers: init }, runtime("app=running"), ""],
  ["the sidecar has started", { initContainers: sidecar }, runtime("side=running"), "start i2"],
  ["the sidecar fell over before the next was through", { initContainers: sidecar }, runtime("i2=running side=exited:1"), "start side"],
  ["the sidecar fell over while the app runs", { initContainers: sidecar }, runtime("app=running i2=exited:0 side=exited:1"), "start side"],
  ["the app is done, the sidecar is not", { initContainers: sidecar, restartPolicy: "Never" }, runtime("app=exited:0 i2=exited:0 side=running"), "kill-pod"],
  ["an exit that all begin anew after", { initContainers: init, containers: [container("app", again("In")), container("b")], restartPolicy: "Never" }, runtime("app=exited:42 b=running i2=exited:0 i1=exited:0"), "end b, drop i1, drop i2, drop app"],
  ["an init container that makes all begin anew", { initContainers: [container("i1", again("NotIn"))], restartPolicy: "Never" }, runtime("i1=exited:1"), "drop i1"],
  ["an exit that all begin anew after, be it a reboot: the pod had no run of its own yet", { initContainers: init, containers: [container("app", again("NotIn"))], restartPolicy: "Never" }, runtime("app=exited:255 i2=exited:0 i1=exited:0", { ready: false }), "drop i1, drop i2, drop app"],
  ["… and then a sandbox", { initContainers: init, containers: [container("app", again("NotIn"))], restartPolicy: "Never" }, runtime("", { ready: false }), "kill-pod, sandbox#3, start i1"],
  ["all taken away: from the first", { initContainers: init, containers: [container("app", again("In"))], restartPolicy: "Never" }, runtime(""), "start i1"],
  ["an exit the rule does not mean", { containers: [container("app", again("In"))], restartPolicy: "Never" }, runtime("app=exited:1"), "kill-pod"],
  ["a rule to restart, against the policy", { containers: [container("app", { restartPolicy: "Never", restartPolicyRules: [{ action: "Restart", exitCodes: { operator: "In", values: [3] } }] })], restartPolicy: "Never" }, runtime("app=exited:3"), "start app"],
  ["a container's own policy", { containers: [container("app", { restartPolicy: "OnFailure" })], restartPolicy: "Never" }, runtime("app=exited:3"), "start app"],
  ["a container's own policy, the other way", { containers: [container("app", { restartPolicy: "Never" }), container("b")] }, runtime("app=exited:3 b=running"), ""],
  ["app ended, restart", {}, runtime("app=exited:0"), "start app"],
  ["app ended well, OnFailure", { restartPolicy: "OnFailure" }, runtime("app=exited:0"), "kill-pod"],
  ["app failed, OnFailure", { restartPolicy: "OnFailure" }, runtime("app=exited:1"), "start app"],
  ["app created but not started", {}, runtime("app=created"), "start app"],
  ["one of two ended for good", { restartPolicy: "Never", containers: [container("app"), container("b")] }, runtime("app=running b=exited:1"), ""],
  ["its own rule restarts it", { restartPolicy: "Never", containers: [container("app", { restartPolicy: "Never", restartPolicyRules: [{ action: "Restart", exitCodes: { operator: "In", values: [42] } }] })] }, runtime("app=exited:42"), "start app"],
  ["image changed", {}, runtime("app=running", { hash: "old" }), "kill app, start app"],
  ["ephemeral container added", { ephemeralContainers: [{ name: "dbg", image: "busybox:1" }] }, runtime("app=running"), "start dbg"],
  ["ephemeral container ended", { ephemeralContainers: [{ name: "dbg", image: "busybox:1" }] }, runtime("app=running dbg=exited:1"), ""],
])("%s", (_, spec, seen, expected) => {
  expect(summary(spec, seen)).toBe(expected);
});

test("a probe that gave up kills the container, and it is restarted if it may be", () => {
  const liveness = { liveness: () => "failure" as const };
  expect(summary({}, runtime("app=running"), liveness)).toBe("kill app (LivenessProbe), start app");
  expect(summary({ restartPolicy: "Never" }, runtime("app=running"), liveness)).toBe("kill-pod, kill app (LivenessProbe)");
  expect(summary({}, runtime("app=running"), { startup: () => "failure" })).toBe("kill app (StartupProbe), start app");
  const probed = [container("side", { restartPolicy: "Always", startupProbe: { exec: { command: ["true"] } } })];
  expect(summary({ initContainers: probed }, runtime("side=running"))).toBe("");
  expect(summary({ initContainers: probed }, runtime("side=running"), { startup: () => "success" })).toBe("start app");
});
