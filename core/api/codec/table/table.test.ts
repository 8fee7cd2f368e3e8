import { expect, test } from "vitest";
import { growth } from "../../../../test/reads.ts";
import { customPrinter } from "./custom.ts";
import { humanDuration } from "./human-duration.ts";
import { renderTable } from "./table.ts";

const NOW_MS = Date.parse("2026-05-01T12:00:00Z");
const metadata = { name: "a", namespace: "default", uid: "u", resourceVersion: "7", creationTimestamp: "2026-05-01T11:55:00Z" };

// biome-ignore lint/suspicious/noExplicitAny: rows are written as a client would
function cells(kind: string, object: any, group = ""): unknown[] {
  const objects = [{ apiVersion: "v1", kind, ...object, metadata: { ...metadata, ...object.metadata } }];
  return [...renderTable({ kind: { group, kind }, objects, nowMs: NOW_MS }).rows![0]!.cells];
}

test.each([
  [-2, "<invalid>"], [-1, "0s"], [0, "0s"], [119, "119s"], [120, "2m"], [125, "2m5s"], [599, "9m59s"], [600, "10m"], [10799, "179m"], [10800, "3h"],
  [11100, "3h5m"], [28800, "8h"], [172799, "47h"], [172800, "2d"], [176400, "2d1h"], [691200, "8d"], [63072000, "2y"], [63158400, "2y1d"], [252288000, "8y"], [2 ** 34, "292y"],
])("%i seconds are %s", (seconds, text) => expect(humanDuration(seconds * 1000)).toBe(text));

const running = { ready: true, restartCount: 0, state: { running: {} } };
const spec = { containers: [{ name: "c" }], nodeName: "n1" };
const twice = { ...spec, containers: [{ name: "c" }, { name: "d" }] };
const init = { ...spec, initContainers: [{ name: "i" }, { name: "j" }] };

test.each([
  ["pending", { spec: { containers: [{ name: "c" }] }, status: { phase: "Pending" } }, ["0/1", "Pending", "0"]],
  ["gated", { spec, status: { phase: "Pending", conditions: [{ type: "PodScheduled", status: "False", reason: "SchedulingGated" }] } }, ["0/1", "SchedulingGated", "0"]],
  ["running", { spec, status: { phase: "Running", containerStatuses: [{ name: "c", ...running }] } }, ["1/1", "Running", "0"]],
  ["crashing", { spec, status: { phase: "Running", containerStatuses: [{
    name: "c", ready: false, restartCount: 4, state: { waiting: { reason: "CrashLoopBackOff" } }, lastState: { terminated: { exitCode: 1, finishedAt: "2026-05-01T11:54:50Z" } },
  }] } }, ["0/1", "CrashLoopBackOff", "4 (5m10s ago)"]],
  ["first of two init containers", { spec: init, status: { phase: "Pending", initContainerStatuses: [{ name: "i", restartCount: 0, state: { running: {} } }, { name: "j", restartCount: 0, state: { waiting: { reason: "PodInitializing" } } }] } }, ["0/1", "Init:0/2", "0"]],
  ["second of two init containers", { spec: init, status: { phase: "Pending", initContainerStatuses: [{ name: "i", restartCount: 0, state: { terminated: { exitCode: 0 } } }, { name: "j", restartCount: 2, state: { terminated: { exitCode: 3 } } }] } }, ["0/1", "Init:ExitCode:3", "2"]],
  ["init container crashing", { spec: init, status: { phase: "Pending", initContainerStatuses: [{ name: "i", restartCount: 1, state: { waiting: { reason: "CrashLoopBackOff" } } }] } }, ["0/1", "Init:CrashLoopBackOff", "1"]],
  ["init container killed", { spec: init, status: { phase: "Pending", initContainerStatuses: [{ name: "i", restartCount: 0, state: { terminated: { exitCode: 137, signal: 9 } } }] } }, ["0/1", "Init:Signal:9", "0"]],
  ["sidecar", {
    spec: { ...spec, initContainers: [{ name: "s", restartPolicy: "Always" }] },
    status: { phase: "Running", initContainerStatuses: [{ name: "s", started: true, ...running, restartCount: 1 }], containerStatuses: [{ name: "c", ...running }] },
  }, ["2/2", "Running", "1"]],
  ["completed", { spec, status: { phase: "Succeeded", containerStatuses: [{ name: "c", ready: false, restartCount: 0, state: { terminated: { exitCode: 0, reason: "Completed" } } }] } }, ["0/1", "Completed", "0"]],
  ["error", { spec, status: { phase: "Failed", containerStatuses: [{ name: "c", ready: false, restartCount: 0, state: { terminated: { exitCode: 1, reason: "Error" } } }] } }, ["0/1", "Error", "0"]],
  ["exit code", { spec, status: { phase: "Failed", containerStatuses: [{ name: "c", ready: false, restartCount: 0, state: { terminated: { exitCode: 2 } } }] } }, ["0/1", "ExitCode:2", "0"]],
  ["one done, one running", {
    spec: twice,
    status: {
      phase: "Running", conditions: [{ type: "Ready", status: "True" }],
      containerStatuses: [{ name: "c", ready: false, restartCount: 0, state: { terminated: { exitCode: 0, reason: "Completed" } } }, { name: "d", ...running }],
    },
  }, ["1/2", "Running", "0"]],
  ["one done, one running, not ready", {
    spec: twice, status: { phase: "Running", containerStatuses: [{ name: "c", ready: false, restartCount: 0, state: { terminated: { exitCode: 0, reason: "Completed" } } }, { name: "d", ...running }] },
  }, ["1/2", "NotReady", "0"]],
  ["terminating", { metadata: { deletionTimestamp: "2026-05-01T12:00:00Z" }, spec, status: { phase: "Running", containerStatuses: [{ name: "c", ...running }] } }, ["1/1", "Terminating", "0"]],
  ["terminating after its end", { metadata: { deletionTimestamp: "2026-05-01T12:00:00Z" }, spec, status: { phase: "Succeeded", reason: "Completed" } }, ["0/1", "Completed", "0"]],
  ["on a lost node", { metadata: { deletionTimestamp: "2026-05-01T12:00:00Z" }, spec, status: { phase: "Running", reason: "NodeLost" } }, ["0/1", "Unknown", "0"]],
  ["evicted", { spec, status: { phase: "Failed", reason: "Evicted" } }, ["0/1", "Evicted", "0"]],
])("pod: %s", (_, pod, [ready, status, restarts]) => {
  expect(cells("Pod", pod).slice(0, 5)).toEqual(["a", ready, status, restarts, "5m"]);
});

test("pod: wide cells", () => {
  const gates = { readinessGates: [{ conditionType: "x" }, { conditionType: "y" }] };
  expect(cells("Pod", { spec: { containers: [] } }).slice(5)).toEqual(["<none>", "<none>", "<none>", "<none>"]);
  expect(cells("Pod", { spec: { ...spec, ...gates }, status: { podIPs: [{ ip: "10.0.0.1" }], nominatedNodeName: "n2", conditions: [{ type: "x", status: "True" }] } }).slice(5))
    .toEqual(["10.0.0.1", "n1", "n2", "1/2"]);
});

test("pod: of very many gates each is looked for by its type", () => {
  const types = (n: number) => Array.from({ length: n }, (_, i) => `t${i}`);
  expect(growth((n, reads) => {
    const pod = { spec: { ...spec, readinessGates: types(n).map((conditionType) => ({ conditionType })) }, status: { conditions: reads.of(types(n).map((type) => ({ type, status: "True" }))) } };
    expect(cells("Pod", pod).at(-1)).toBe(`${n}/${n}`);
  })).toBeLessThan(3);
});

test.each([
  ["Node", "", { metadata: { labels: { "node-role.kubernetes.io/control-plane": "", "kubernetes.io/role": "edge" } }, spec: { unschedulable: true }, status: {
    conditions: [{ type: "Ready", status: "True" }], addresses: [{ type: "InternalIP", address: "192.168.0.2" }],
    nodeInfo: { kubeletVersion: "v1.36.0", osImage: "Debian", kernelVersion: "6.1", architecture: "amd64", containerRuntimeVersion: "containerd://2.1" },
  } }, ["a", "Ready,SchedulingDisabled", "control-plane,edge", "5m", "v1.36.0", "192.168.0.2", "<none>", "Debian", "6.1 (amd64)", "containerd://2.1"]],
  ["Node", "", { status: { nodeInfo: {} } }, ["a", "Unknown", "<none>", "5m", "", "<none>", "<none>", "<unknown>", "<unknown>", "<unknown>"]],
  ["Service", "", { spec: { type: "ClusterIP", clusterIPs: ["10.43.0.1"], ports: [{ port: 80, protocol: "TCP" }], selector: { b: "2", a: "1" } } }, ["a", "ClusterIP", "10.43.0.1", "<none>", "80/TCP", "5m", "a=1,b=2"]],
  ["Service", "", { spec: { type: "LoadBalancer", clusterIPs: ["10.43.0.1"], ports: [{ port: 80, nodePort: 30080, protocol: "TCP" }, { port: 53, nodePort: 30053, protocol: "UDP" }] } }, ["a", "LoadBalancer", "10.43.0.1", "<pending>", "80:30080/TCP,53:30053/UDP", "5m", "<none>"]],
  ["Service", "", { spec: { type: "LoadBalancer", externalIPs: ["1.2.3.4"] }, status: { loadBalancer: { ingress: [{ ip: "9.9.9.9" }, { hostname: "lb" }] } } }, ["a", "LoadBalancer", "<none>", "9.9.9.9,lb,1.2.3.4", "<none>", "5m", "<none>"]],
  ["Service", "", { spec: { type: "ExternalName", externalName: "example.com" } }, ["a", "ExternalName", "<none>", "example.com", "<none>", "5m", "<none>"]],
  ["Deployment", "apps", { spec: { replicas: 3, selector: { matchLabels: { a: "1" } }, template: { spec: { containers: [{ name: "x", image: "i:1" }, { name: "y", image: "j" }] } } }, status: { readyReplicas: 2, updatedReplicas: 3, availableReplicas: 2 } }, ["a", "2/3", 3, 2, "5m", "x,y", "i:1,j", "a=1"]],
  ["ReplicaSet", "apps", { spec: { replicas: 3, selector: { matchExpressions: [{ key: "t", operator: "In", values: ["b", "a"] }] } }, status: { replicas: 3, readyReplicas: 1 } }, ["a", 3, 3, 1, "5m", "", "", "t in (a,b)"]],
  ["StatefulSet", "apps", { spec: { replicas: 2 }, status: { readyReplicas: 1 } }, ["a", "1/2", "5m", "", ""]],
  ["DaemonSet", "apps", { spec: { selector: {}, template: { spec: { nodeSelector: { os: "linux" } } } }, status: { desiredNumberScheduled: 2 } }, ["a", 2, 0, 0, 0, 0, "os=linux", "5m", "", "", "<none>"]],
  ["Job", "batch", { spec: { completions: 3, selector: {} }, status: { succeeded: 3, startTime: "2026-05-01T11:55:00Z", completionTime: "2026-05-01T11:55:30Z", conditions: [{ type: "Complete", status: "True" }] } }, ["a", "Complete", "3/3", "30s", "5m", "", "", "<none>"]],
  ["Job", "batch", { spec: { parallelism: 4, selector: {} }, status: { conditions: [{ type: "Suspended", status: "True" }] } }, ["a", "Suspended", "0/1 of 4", "", "5m", "", "", "<none>"]],
  ["CronJob", "batch", { spec: { schedule: "* * * * *", suspend: false, jobTemplate: {} }, status: { active: [{}], lastScheduleTime: "2026-05-01T11:59:30Z" } }, ["a", "* * * * *", "<none>", "False", 1, "30s", "5m", "", "", "<none>"]],
  ["Event", "", { involvedObject: { kind: "Pod", name: "p", fieldPath: "spec.containers{c}" }, type: "Normal", reason: "Pulled", message: " done\n", source: { component: "kubelet", host: "n1" }, firstTimestamp: "2026-05-01T11:50:00Z", lastTimestamp: "2026-05-01T11:59:00Z", count: 3 }, ["60s", "Normal", "Pulled", "pod/p", "spec.containers{c}", "kubelet, n1", "done", "10m", 3, "a"]],
  ["Event", "", { involvedObject: { kind: "Node" }, eventTime: "2026-05-01T11:58:00.000000Z", series: { count: 9, lastObservedTime: "2026-05-01T11:59:59.000000Z" }, reportingComponent: "s" }, ["1s", "", "", "node", "", "s", "", "2m", 9, "a"]],
  ["Secret", "", { type: "Opaque", data: { a: "", b: "" } }, ["a", "Opaque", 2, "5m"]],
  ["ConfigMap", "", { data: { a: "" }, binaryData: { b: "" } }, ["a", 2, "5m"]],
  ["Endpoints", "", { subsets: [{ addresses: [{ ip: "1.1.1.1" }, { ip: "fd00::1" }], ports: [{ port: 80 }, { port: 81 }] }] }, ["a", "1.1.1.1:80,[fd00::1]:80,1.1.1.1:81 + 1 more...", "5m"]],
  ["EndpointSlice", "discovery.k8s.io", { addressType: "IPv4", ports: [], endpoints: [] }, ["a", "IPv4", "<unset>", "<unset>", "5m"]],
  ["Ingress", "networking.k8s.io", { spec: { ingressClassName: "nginx", tls: [{}], rules: [{ host: "a" }, { host: "b" }, { host: "c" }, { host: "d" }] }, status: {} }, ["a", "nginx", "a,b,c + 1 more...", "", "80, 443", "5m"]],
  ["PersistentVolume", "", { spec: { capacity: { storage: "5Gi" }, accessModes: ["ReadWriteMany", "ReadWriteOnce"], persistentVolumeReclaimPolicy: "Delete", claimRef: { namespace: "n", name: "c" }, storageClassName: "local", volumeMode: "Filesystem" }, status: { phase: "Bound" } }, ["a", "5Gi", "RWO,RWX", "Delete", "Bound", "n/c", "local", "<unset>", "", "5m", "Filesystem"]],
  ["PersistentVolumeClaim", "", { spec: { resources: { requests: { storage: "1Gi" } } }, status: { phase: "Pending" } }, ["a", "Pending", "", "", "", "", "<unset>", "5m", "<unset>"]],
  ["HorizontalPodAutoscaler", "autoscaling", { spec: { scaleTargetRef: { kind: "Deployment", name: "d" }, maxReplicas: 5, metrics: [{ type: "External", external: { metric: { name: "m" }, target: { type: "Value", value: "7" } } }, { type: "Resource", resource: { name: "cpu", target: { type: "AverageValue", averageValue: "1" } } }] }, status: { currentMetrics: [{ type: "External", external: { metric: { name: "m" }, current: { averageValue: "5" } } }, { type: "Resource", resource: { name: "cpu", current: { averageUtilization: 3 } } }] } }, ["a", "Deployment/d", "<nil>/7, cpu: <nil>/1", "<unset>", 5, 0, "5m"]],
  ["HorizontalPodAutoscaler", "autoscaling", { spec: { scaleTargetRef: { kind: "Deployment", name: "d" }, minReplicas: 1, maxReplicas: 5, metrics: [{ type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 80 } } }] }, status: { currentReplicas: 2, currentMetrics: [{ type: "Resource", resource: { name: "cpu", current: { averageUtilization: 40 } } }] } }, ["a", "Deployment/d", "cpu: 40%/80%", "1", 5, 2, "5m"]],
  ["ResourceQuota", "", { status: { hard: { "limits.cpu": "2", pods: "10", cpu: "1" }, used: { pods: "3" } } }, ["a", "cpu: 0/1, pods: 3/10", "limits.cpu: 0/2", "5m"]],
  ["ControllerRevision", "apps", { revision: 2, metadata: { ownerReferences: [{ apiVersion: "apps/v1", kind: "DaemonSet", name: "d", uid: "x", controller: true }] } }, ["a", "daemonset.apps/d", 2, "5m"]],
  ["StorageClass", "storage.k8s.io", { provisioner: "p", metadata: { annotations: { "storageclass.kubernetes.io/is-default-class": "true" } } }, ["a (default)", "p", "Delete", "Immediate", false, "5m"]],
  ["RoleBinding", "rbac.authorization.k8s.io", { roleRef: { kind: "Role", name: "r" }, subjects: [{ kind: "User", name: "u" }, { kind: "ServiceAccount", namespace: "n", name: "s" }] }, ["a", "Role/r", "5m", "u", "", "n/s"]],
  ["CertificateSigningRequest", "certificates.k8s.io", { spec: { signerName: "s", username: "u", expirationSeconds: 86400 }, status: { conditions: [{ type: "Approved" }], certificate: "x" } }, ["a", "5m", "s", "u", "24h", "Approved,Issued"]],
  ["Role", "rbac.authorization.k8s.io", {}, ["a", "2026-05-01T11:55:00Z"]],
])("%s of %s", (kind, group, object, expected) => expect(cells(kind, object, group)).toEqual(expected));

test("parameters that a policy's binding selects are shown as Go prints the selector", () => {
  const selector = { matchLabels: { b: "2", a: "1" }, matchExpressions: [{ key: "c", operator: "In", values: ["x", "y"] }] };
  expect(cells("ValidatingAdmissionPolicyBinding", { spec: { policyName: "p", paramRef: { selector } } }, "admissionregistration.k8s.io")[2])
    .toBe("&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},MatchExpressions:[]LabelSelectorRequirement{LabelSelectorRequirement{Key:c,Operator:In,Values:[x y],},},}");
});

test("columns carry name, type, format, priority and the description that was looked up", () => {
  const table = renderTable({ kind: { group: "", kind: "Pod" }, objects: [], listMeta: { resourceVersion: "9" }, nowMs: NOW_MS, describe: (field) => `doc of ${field}` });
  expect(table.metadata).toEqual({ resourceVersion: "9" });
  expect(table.columnDefinitions!.slice(0, 2)).toEqual([
    { name: "Name", type: "string", format: "name", priority: 0, description: "doc of apimachinery.pkg.apis.meta.v1.ObjectMeta.name" },
    { name: "Ready", type: "string", format: "", priority: 0, description: "The aggregate readiness state of this pod for accepting traffic." },
  ]);
  expect(table.columnDefinitions!.map(({ name, priority }) => `${name}${priority > 0 ? "+" : ""}`).join(", "))
    .toBe("Name, Ready, Status, Restarts, Age, IP+, Node+, Nominated Node+, Readiness Gates+");
});

test("what a row's object is, is the client's choice", () => {
  const object = { apiVersion: "v1", kind: "Pod", metadata, spec: { containers: [] }, status: { phase: "Failed" } };
  const row = (includeObject: string) => renderTable({ kind: { group: "", kind: "Pod" }, objects: [object], nowMs: NOW_MS, includeObject, noHeaders: true }).rows![0]!;
  expect(row("").object).toEqual({ kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata });
  expect(row("Object").object).toBe(object);
  expect(row("None").object).toBeNull();
  expect(row("").conditions).toEqual([{ type: "Completed", status: "True", reason: "Failed", message: "The pod failed." }]);
  expect(() => row("all")).toThrow(`Unable to convert to Table as requested: includeObject: Invalid value: "all": must be 'Metadata', 'Object', 'None', or empty`);
});

test("a custom column of whole numbers has all digits of one, and the smallest integer for what no 64 bits hold", () => {
  const find = (jsonPath: string): { readonly values: readonly unknown[]; readonly text: string } => ({ values: [jsonPath === ".big" ? 9007199254740993n : 1e21], text: "" });
  const columns = [[".big", "integer"], [".far", "integer"], [".big", "number"]].map(([jsonPath, type], i) => ({ name: `C${i}`, type: type!, jsonPath: jsonPath! }));
  const object = { kind: "Widget", apiVersion: "e.com/v1", metadata: { name: "a", uid: "u", resourceVersion: "1", creationTimestamp: "2020-01-01T00:00:00Z" } };
  expect(customPrinter(columns, find).cells(object as never, 0)).toEqual(["a", 9007199254740993n, -(2n ** 63n), 9007199254740992]);
});

test("custom resources show their columns, or their age", () => {
  const find = (path: string, object: object) => {
    const value = path.split(".").slice(1).reduce<unknown>((at, name) => (at as Record<string, unknown> | undefined)?.[name], object);
    return { values: value === undefined ? [] : [value], text: String(value) };
  };
  const object = { apiVersion: "x/v1", kind: "Shirt", metadata, spec: { color: "blue", size: 3.5 } };
  const kind = { group: "x", kind: "Shirt" };
  const declared = customPrinter([{ name: "Color", type: "string", jsonPath: ".spec.color" }, { name: "Size", type: "integer", jsonPath: ".spec.size" }, { name: "No", type: "string", jsonPath: ".spec.no" }], find);
  expect(renderTable({ kind, objects: [object], nowMs: NOW_MS, printer: declared }).rows![0]!.cells).toEqual(["a", "blue", 3, null]);
  expect(renderTable({ kind, objects: [object], nowMs: NOW_MS, printer: customPrinter(undefined, find) }).rows![0]!.cells).toEqual(["a", "5m"]);
});
