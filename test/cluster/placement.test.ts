/**
 * Processors and memory of one's own, on the compiled binary: what the kernel says a container may run on, as others come and go. The machine is on no network, and does what
 * others do.
 */
import { cpus } from "node:os";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Pod } from "../../core/api/gen/core.v1.ts";
import { eventually, Host, switchDown } from "./host.ts";

const BUSYBOX = "busybox:1";
const MANAGERS = ["cpu-manager-policy=static", "cpu-manager-reconcile-period=1s", "reserved-cpus=0", "system-reserved=memory=412Mi", "memory-manager-policy=Static", "reserved-memory=0:memory=512Mi", "topology-manager-policy=restricted"];
const FLAGS = MANAGERS.flatMap((one) => ["--kubelet-arg", one]);
const ALL = cpus().length;
let host: Host;

beforeAll(async () => {
  host = await Host.up("place", "");
  await host.start(...FLAGS);
  await host.nodeReady();
  await host.importImage("busybox");
  await eventually("the default account is there", async () => host.kubectl("get", "serviceaccount", "default"));
});
afterAll(async () => {
  await host?.[Symbol.asyncDispose]();
  await switchDown();
});

const pod = async (name: string): Promise<Pod> => JSON.parse(await host.kubectl("get", "pod", name, "-o", "json")) as Pod;
const allowed = async (name: string): Promise<string> => (await host.kubectl("exec", name, "-c", "c", "--", "grep", "_allowed_list", "/proc/1/status")).replaceAll(/\s+/g, " ").trim();
const ready = (name: string): Promise<string> => host.kubectl("wait", "--for=condition=Ready", `pod/${name}`, "--timeout=300s");
const rest = ALL === 2 ? "0" : `0,2${ALL > 3 ? `-${ALL - 1}` : ""}`;
const everything = `0-${ALL - 1}`;

function sleeper(name: string, resources: string, more = ""): string {
  return `apiVersion: v1
kind: Pod
metadata: {name: ${name}}
spec:
  terminationGracePeriodSeconds: 0
${more}  containers: [{name: c, image: "${BUSYBOX}", command: [sleep, "9999"]${resources}}]
---
`;
}

test("without a network pods reach the API server, by its name, and their node by its address", async () => {
  await host.apply(sleeper("alone", "").replace(`[sleep, "9999"]`, `[sh, -c, "nslookup kubernetes.default.svc.cluster.local && sleep 9999"]`));
  await ready("alone");
  const { hostIP } = (await pod("alone")).status!;
  expect(hostIP).toBe("192.0.2.1");
  expect((await pod("alone")).status?.containerStatuses?.[0]?.restartCount).toBe(0); // the first question of the node's first pod has an answer
  await host.kubectl("exec", "alone", "--", "nc", "-w", "20", "kubernetes.default", "443", "-e", "true");
  await host.kubectl("exec", "alone", "--", "nc", "-w", "20", hostIP!, "10250", "-e", "true");
});

test.skipIf(ALL < 2)("a Guaranteed container has a processor and memory of its own, all others move away, and back when it goes", async () => {
  await host.apply(sleeper("shared", ""));
  await ready("shared");
  expect(await allowed("shared")).toContain(`Cpus_allowed_list: ${everything} `);
  await host.apply(sleeper("own", `, resources: {limits: {cpu: "1", memory: 64Mi}}`, `  initContainers: [{name: i, image: "${BUSYBOX}", command: [sh, -c, "grep Cpus_allowed_list /proc/self/status"], resources: {limits: {cpu: "1", memory: 32Mi}}}]\n`));
  await ready("own");
  const [, mine] = /Cpus_allowed_list: (\d+) Mems_allowed_list: 0/.exec(await allowed("own")) ?? [];
  expect([mine, (await host.kubectl("logs", "own", "-c", "i")).trim()]).toEqual(["1", "Cpus_allowed_list:\t1"]);
  await eventually("the other has moved", async () => (await allowed("shared")).includes(`Cpus_allowed_list: ${rest} `));
  await host.kill("TERM");
  await host.start(...FLAGS);
  await eventually("the node answers again", async () => (await allowed("own")).includes("Cpus_allowed_list: 1 "));
  await host.kubectl("patch", "pod", "own", "--subresource", "resize", "-p", `{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"900m"},"limits":{"cpu":"900m"}}}]}}`);
  await eventually("it may not be resized", async () => (await pod("own")).status?.conditions?.find(({ type }) => type === "PodResizePending")?.message === 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"');
  await host.kubectl("delete", "pod", "own");
  await eventually("the processor is everybody's", async () => (await allowed("shared")).includes(`Cpus_allowed_list: ${everything} `));
});

test("a container's end makes all begin anew, from the first init container on, in the same pod", async () => {
  await host.apply(`apiVersion: v1
kind: Pod
metadata: {name: anew}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  hostnameOverride: a.name.of.its.own
  volumes: [{name: e, emptyDir: {}}]
  initContainers: [{name: i, image: "${BUSYBOX}", command: [sh, -c, "echo i >> /e/log; echo \\"RUN='$(wc -l < /e/log | tr -d ' ')'\\" > /e/env"], volumeMounts: [{name: e, mountPath: /e}]}]
  containers:
  - name: c
    image: "${BUSYBOX}"
    command: [sh, -c, "echo c$RUN $(hostname) >> /e/log; [ $RUN = 1 ] && sleep 1 && exit 42; sleep 9999"]
    env: [{name: RUN, valueFrom: {fileKeyRef: {volumeName: e, path: env, key: RUN}}}]
    volumeMounts: [{name: e, mountPath: /e}]
    restartPolicy: Never
    restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [42]}}]
  - {name: d, image: "${BUSYBOX}", command: [sleep, "9999"]}
`);
  await eventually("all have run again", async () => (await pod("anew")).status?.containerStatuses?.every(({ restartCount, ready: isReady }) => restartCount === 1 && isReady));
  expect((await host.kubectl("exec", "anew", "-c", "c", "--", "cat", "/e/log")).trim().split("\n")).toEqual(["i", "c1 a.name.of.its.own", "i", "c3 a.name.of.its.own"]);
  const { status } = await pod("anew");
  expect(status?.conditions?.find(({ type }) => type === "AllContainersRestarting")?.status).toBe("False");
  expect(status?.containerStatuses?.[0]?.lastState?.terminated?.reason).toBe("RestartingAllContainers");
});

test("who asks for half as much gets half as much of a processor that both want", async () => {
  const busy = (name: string, cpu: string): string => sleeper(name, `, resources: {requests: {cpu: ${cpu}}}`).replace(`[sleep, "9999"]`, `[taskset, "1", sh, -c, "while :; do :; done"]`);
  await host.apply(busy("half", "100m") + busy("whole", "200m"));
  for (const name of ["half", "whole"]) await ready(name);
  const used = async (name: string): Promise<number> => {
    const [, user = "0", system = "0"] = /\) (?:\S+ ){11}(\d+) (\d+) /.exec(await host.kubectl("exec", name, "--", "cat", "/proc/1/stat")) ?? [];
    return Number(user) + Number(system); // hundredths of a second
  };
  const [half, whole] = [await used("half"), await used("whole")];
  let gained = [0, 0];
  await eventually("both have worked", async () => {
    gained = [(await used("half")) - half, (await used("whole")) - whole];
    return gained[0]! > 40;
  });
  expect(gained[1]! / gained[0]!).toBeGreaterThan(1.5);
  expect(gained[1]! / gained[0]!).toBeLessThan(2.7);
  await host.kubectl("delete", "pod", "half", "whole", "--now");
});
