import { expect, test, vi } from "vitest";
import type { Pod, PodSpec } from "../../core/api/gen/core.v1.ts";
import { type AdmissionFacts, refusalOf } from "./admission.ts";

const meta = (name: string, labels?: Record<string, string>) => ({ name, uid: name, resourceVersion: "", creationTimestamp: "", ...(labels ? { labels } : {}) });
const pod = (name: string, spec: Partial<PodSpec> = {}, labels?: Record<string, string>): Pod => ({ apiVersion: "v1", kind: "Pod", metadata: { ...meta(name, labels), namespace: "d" }, spec: { containers: [{ name: "c" }], ...spec } });

function refusal(pod: Pod, facts: Partial<AdmissionFacts> = {}): string | undefined {
  const found = refusalOf({ os: "linux", pod, others: [], node: { metadata: meta("n"), spec: {} }, allocatable: { pods: "9" }, pressures: [], allowedUnsafeSysctls: [], ...facts });
  return found && `${found.reason}: ${found.message}`;
}

test("groups are kept to where the runtime can, and a pod that insists on it does not run where it cannot", () => {
  const strict = pod("a", { securityContext: { supplementalGroupsPolicy: "Strict" } });
  expect([true, undefined].map((strictGroups) => refusal(strict, { strictGroups }))).toEqual([undefined, undefined]);
  expect(refusal(strict, { strictGroups: false })).toBe("SupplementalGroupsPolicyNotSupported: Pod was rejected: SupplementalGroupsPolicy=Strict is not supported in this node");
  expect(refusal(pod("b", { securityContext: { supplementalGroupsPolicy: "Merge" } }), { strictGroups: false })).toBeUndefined();
});

test("a pod that needs what the node does not declare is refused, once the runtime has said what it can", () => {
  const wanting = pod("a", { hostNetwork: true, hostUsers: false });
  const declared = [undefined, ["UserNamespacesHostNetworkSupport"], ["RestartAllContainersOnContainerExits"]].map((declares) => refusal(wanting, { declares }));
  expect(declared).toEqual([undefined, undefined, "PodFeatureUnsupported: Pod was rejected: Pod requires node features that are not available: UserNamespacesHostNetworkSupport"]);
  expect(refusal(pod("b"), { declares: [] })).toBeUndefined();
});

test("AppArmor: a new pod that asks for a profile does not run where there is none, and what runs goes on", () => {
  const confined = { type: "RuntimeDefault" } as const;
  const asked: Pod[] = [
    pod("whole", { securityContext: { appArmorProfile: confined } }), pod("one", { initContainers: [{ name: "i", securityContext: { appArmorProfile: confined } }] }),
    { ...pod("old"), metadata: { ...pod("old").metadata, annotations: { "container.apparmor.security.beta.kubernetes.io/c": "runtime/default" } } },
  ];
  expect(asked.map((one) => refusal(one, { appArmor: false }))).toEqual(asked.map(() => "AppArmor: Pod was rejected: Cannot enforce AppArmor: AppArmor is not enabled on the host"));
  const welcome = [asked[0]!, { ...asked[0]!, status: { phase: "Running" as const } }, pod("free", { securityContext: { appArmorProfile: { type: "Unconfined" } } }), pod("plain")];
  expect(welcome.map((one, i) => refusal(one, { appArmor: i === 0 }))).toEqual(welcome.map(() => undefined));
});

test("a taint that takes effect at once is tolerated by who tolerates its number", () => {
  const node = { metadata: meta("n"), spec: { taints: [{ key: "sla", value: "950", effect: "NoExecute" as const }] } };
  expect(["900", "950"].map((value) => refusal(pod("a", { tolerations: [{ key: "sla", operator: "Gt", value, effect: "NoExecute" }] }), { node }) === undefined)).toEqual([true, false]);
});

test("a label of another operating system is told before the field", () => {
  expect(refusal(pod("a", { os: { name: "windows" } }, { "kubernetes.io/os": "windows" }))).toMatch(/^PodOSSelectorNodeLabelDoesNotMatch/);
  expect(refusal(pod("a", { os: { name: "windows" } }))).toMatch(/^PodOSNotSupported/);
});

test("a taint that takes effect at once keeps a pod away, unless it is the node's own", () => {
  const node = { metadata: meta("n"), spec: { taints: [{ key: "k", effect: "NoExecute" as const }] } };
  expect(refusal(pod("a"), { node })).toBe("TaintToleration: Pod was rejected: Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate");
  const own = pod("own");
  expect(refusal({ ...own, metadata: { ...own.metadata, annotations: { "kubernetes.io/config.source": "file" } } }, { node })).toBeUndefined();
});

test.each([["Gt", "9007199254740992", true], ["Lt", "9007199254740992", false], ["Gt", "+1", true], ["Gt", "", false], ["Gt", "1e3", false], ["Lt", "9223372036854775808", false]] as const)("a label of 2^53+1 is %s %j: %j", (operator, value, fits) => {
  const affinity = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions: [{ key: "bytes", operator, values: [value] }] }] } } };
  expect(refusal(pod("a", { affinity }), { node: { metadata: meta("n", { bytes: "9007199254740993" }), spec: {} } }) === undefined).toBe(fits);
});

test("of several resources there is too little of, processors come first, whichever the pod names first", () => {
  const large = pod("a", { containers: [{ name: "c", resources: { requests: { memory: "2Gi", cpu: "2" } } }] });
  expect(refusal(large, { allocatable: { pods: "9", cpu: "1", memory: "1Gi" } })).toBe("OutOfcpu: Pod was rejected: Node didn't have enough resource: cpu, requested: 2000, used: 0, capacity: 1000");
});

test("what devices of a claim stand for is not asked of the node", () => {
  const asking = pod("a", { containers: [{ name: "c", resources: { requests: { "example.com/gpu": "1" } } }] });
  const allocatable = { pods: "9", "example.com/gpu": "0" }; // of a device plugin that is gone
  expect(refusal(asking, { allocatable })).toMatch(/^OutOfexample.com\/gpu/);
  const extendedResourceClaimStatus = { resourceClaimName: "a-x", requestMappings: [{ containerName: "c", resourceName: "example.com/gpu", requestName: "container-0-request-0" }] };
  expect(refusal({ ...asking, status: { extendedResourceClaimStatus } }, { allocatable })).toBeUndefined();
});

test("a pod is refused for a port of the node that another has, also one of a sidecar; those taken are not searched for each of thousands", () => {
  const ports = (hostIP: string, count = 1): PodSpec["containers"][number]["ports"] => Array.from({ length: count }, (_, i) => ({ containerPort: i + 1, hostPort: i + 1, hostIP }));
  const other = pod("other", { initContainers: [{ name: "s", restartPolicy: "Always", ports: ports("10.0.0.1") }, { name: "i", ports: ports("10.0.0.3") }] });
  const taken = "NodePorts: Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports";
  expect(["", "10.0.0.1", "10.0.0.2", "10.0.0.3"].map((hostIP) => refusal(pod("a", { containers: [{ name: "c", ports: ports(hostIP) }] }), { others: [other] }))).toEqual([taken, taken, undefined, undefined]);

  const [one, two] = ["10.0.0.1", "10.0.0.2"].map((hostIP) => pod(hostIP, { containers: [{ name: "c", ports: ports(hostIP, 3000) }] }));
  const searches = vi.spyOn(Array.prototype, "some");
  try {
    expect(refusal(one!, { others: [two!] })).toBeUndefined();
    expect(searches.mock.calls.length).toBeLessThan(100);
  } finally {
    searches.mockRestore();
  }
});
