import { expect, onTestFinished, test } from "vitest";
import type { Pod, PodSpec } from "../../../api/gen/core.v1.ts";
import { formatFieldError } from "../../../api/meta/field-error.ts";
import type { WriteContext } from "../../generic/resource.ts";
import { bindPod, validateBinding } from "./binding.ts";
import { keepFieldsOf } from "../../generic/switched-on.ts";
import { pods } from "./pod.ts";
import { computeQos } from "./qos.ts";

const context: WriteContext = { user: { name: "u", groups: [] }, nowMs: Date.parse("2026-05-01T12:00:00Z"), dryRun: false, uuid: () => "u" };

// biome-ignore lint/suspicious/noExplicitAny: specs are written as a client would
function pod(spec: any = {}, rest: any = {}): Pod {
  const made = {
    apiVersion: "v1", kind: "Pod",
    spec: { containers: [{ name: "c", image: "nginx:1" }], ...spec }, ...rest,
    metadata: { name: "p", namespace: "default", uid: "u", resourceVersion: "1", creationTimestamp: "2026-05-01T12:00:00Z", ...rest.metadata },
  } as Pod;
  pods.defaults!(made);
  return structuredClone(made);
}

function errors(object: Pod, old?: Pod): string[] {
  return [...pods.validate!(object, old), ...(old ? pods.validateUpdate!(object, old) : [])].map(formatFieldError);
}

test("a negative grace period is one second, of a pod", () => {
  expect(pod({ containers: [{ name: "c", image: "nginx" }], terminationGracePeriodSeconds: -1 }).spec.terminationGracePeriodSeconds).toBe(1);
});

test("defaults of a pod", () => {
  const { spec } = pod({
    hostNetwork: true, serviceAccountName: "sa",
    containers: [{
      name: "c", image: "nginx", ports: [{ containerPort: 80 }], resources: { limits: { cpu: "1", memory: "1Gi" }, requests: { cpu: "500m" } },
      readinessProbe: { httpGet: { port: 80 } }, env: [{ name: "N", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } }],
    }],
    volumes: [{ name: "e" }, { name: "s", secret: { secretName: "x" } }, { name: "h", hostPath: { path: "/x" } }, { name: "p", projected: { sources: [{ serviceAccountToken: { path: "t" } }] } }],
  });
  expect(spec).toEqual({
    hostNetwork: true, serviceAccountName: "sa", serviceAccount: "sa", dnsPolicy: "ClusterFirst", restartPolicy: "Always", securityContext: {}, terminationGracePeriodSeconds: 30,
    schedulerName: "default-scheduler", enableServiceLinks: true,
    containers: [{
      name: "c", image: "nginx", imagePullPolicy: "Always", terminationMessagePath: "/dev/termination-log", terminationMessagePolicy: "File",
      ports: [{ containerPort: 80, hostPort: 80, protocol: "TCP" }], resources: { limits: { cpu: "1", memory: "1Gi" }, requests: { cpu: "500m", memory: "1Gi" } },
      readinessProbe: { httpGet: { port: 80, path: "/", scheme: "HTTP" }, timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3 },
      env: [{ name: "N", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.name" } } }],
    }],
    volumes: [
      { name: "e", emptyDir: {} }, { name: "s", secret: { secretName: "x", defaultMode: 420 } }, { name: "h", hostPath: { path: "/x", type: "" } },
      { name: "p", projected: { defaultMode: 420, sources: [{ serviceAccountToken: { path: "t", expirationSeconds: 3600 } }] } },
    ],
  });
});

test.each([
  ["a".repeat(63), "Always"], ["a".repeat(64), "IfNotPresent"], ["b".repeat(247), "Always"], ["b".repeat(248), "IfNotPresent"], [`x/${"b".repeat(253)}`, "Always"], [`h.io/${"b".repeat(256)}`, "IfNotPresent"],
  ["nginx", "Always"], ["nginx:latest", "Always"], ["nginx:1.25", "IfNotPresent"], ["localhost:5000/a/b", "Always"], ["localhost:5000/a/b:v1", "IfNotPresent"],
  ["nginx:latest@sha256:0000", "IfNotPresent"], [`nginx:latest@sha256:${"a".repeat(64)}`, "Always"], ["a_b.io/nginx", "IfNotPresent"], ["[::1]:5000/nginx", "Always"], ["-a.io/nginx", "IfNotPresent"],
  ["nginx@sha256:0000", "IfNotPresent"], ["Nginx", "IfNotPresent"], ["", "IfNotPresent"],
])("image %j is pulled %s", (image, policy) => expect(pod({ containers: [{ name: "c", image }] }).spec.containers[0]!.imagePullPolicy).toBe(policy));

test.each([
  ["BestEffort", [{}]],
  ["Burstable", [{ requests: { cpu: "1" } }]],
  ["Burstable", [{ limits: { cpu: "1", memory: "1Gi" }, requests: { cpu: "1", memory: "1Gi" } }, {}]],
  ["Guaranteed", [{ limits: { cpu: "1", memory: "1Gi" }, requests: { cpu: "1000m", memory: "1024Mi" } }]],
  ["Burstable", [{ limits: { cpu: "2", memory: "1Gi" }, requests: { cpu: "1", memory: "1Gi" } }]],
])("quality of service: %s", (qos, all) =>
  expect(computeQos({ ...pod(), spec: { containers: all.map((resources, i) => ({ name: `c${i}`, resources })) } as unknown as PodSpec })).toBe(qos));

test("a pod starts out Pending, with its class, gated if it has gates, its label keys merged", () => {
  const made = pod({
    schedulingGates: [{ name: "a/b" }],
    topologySpreadConstraints: [{ maxSkew: 1, topologyKey: "z", whenUnsatisfiable: "DoNotSchedule", labelSelector: {}, matchLabelKeys: ["app", "constructor"] }],
  }, { metadata: { labels: { app: "x" } }, status: { phase: "Running" } });
  pods.prepareForCreate!(made, context);
  expect(made.status).toEqual({
    phase: "Pending", qosClass: "BestEffort",
    conditions: [{
      type: "PodScheduled", status: "False", reason: "SchedulingGated", message: "Scheduling is blocked due to non-empty scheduling gates", lastTransitionTime: "2026-05-01T12:00:00Z",
    }],
  });
  expect(made.spec.topologySpreadConstraints![0]!.labelSelector).toEqual({ matchExpressions: [{ key: "app", operator: "In", values: ["x"] }] });
});

test("a stop signal is dropped, and the hooks with it where there are no others", () => {
  const preStop = { sleep: { seconds: 1 } };
  const made = pod({ containers: [{ name: "c", image: "i", lifecycle: { stopSignal: "SIGUSR1" } }, { name: "d", image: "i", lifecycle: { stopSignal: "SIGUSR1", preStop } }] });
  pods.prepareForCreate!(made, context);
  expect(made.spec.containers.map(({ lifecycle }) => lifecycle)).toEqual([undefined, { preStop }]);
});

test("where stop signals are switched on they stay, and are checked", () => {
  onTestFinished(() => keepFieldsOf(new Set()));
  keepFieldsOf(new Set(["ContainerStopSignals"]));
  const made = pod({ os: { name: "linux" }, containers: [{ name: "c", image: "i", lifecycle: { stopSignal: "SIGUSR1" } }] });
  pods.prepareForCreate!(made, context);
  expect(made.spec.containers[0]!.lifecycle).toEqual({ stopSignal: "SIGUSR1" });
});

const c = { name: "c", image: "i" };
test.each<[unknown, string[]]>([
  [{}, []],
  [{ containers: [] }, ["spec.containers: Required value"]],
  [{ containers: [{ name: "C_", image: "" }] }, [
    `spec.containers[0].name: Invalid value: "C_": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`,
    "spec.containers[0].image: Required value",
  ]],
  [{ containers: [c, c] }, [`spec.containers[1].name: Duplicate value: "c"`]],
  [{ containers: [{ ...c, image: " i" }] }, [`spec.containers[0].image: Invalid value: " i": must not have leading or trailing whitespace`]],
  [{ restartPolicy: "Sometimes" }, [`spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"`]],
  [{ dnsPolicy: "None" }, ["spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"]],
  [{ containers: [{ ...c, ports: [{ containerPort: 70000 }] }] }, ["spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive"]],
  [{ containers: [{ ...c, ports: [{ containerPort: 80, hostPort: 80 }, { containerPort: 81, hostPort: 80 }] }] }, [`spec.containers[0].ports[1].hostPort: Duplicate value: "TCP//80"`]],
  [{ containers: [{ ...c, env: [{ name: "a=b" }] }] }, [`spec.containers[0].env[0].name: Invalid value: "a=b": a valid environment variable name must consist only of printable ASCII characters other than '='`]],
  [{ containers: [{ ...c, env: [{ name: "A", valueFrom: { fieldRef: { fieldPath: "spec.x" } } }] }] }, [`spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value: "spec.x": error converting fieldPath: field label not supported: spec.x`]],
  [{ containers: [{ ...c, env: [{ name: "A", valueFrom: { fieldRef: { fieldPath: "metadata.labels" } } }] }] }, [`spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Unsupported value: "metadata.labels": supported values: "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"`]],
  [{ containers: [{ ...c, env: [{ name: "A", valueFrom: { fieldRef: { fieldPath: "['x']" } } }] }] }, [`spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value: "['x']": error converting fieldPath: field label not supported: ['x']`]],
  [{ containers: [{ ...c, env: [{ name: "A", valueFrom: { resourceFieldRef: { resource: "limits.x.cpu", divisor: "3" } } }] }] }, [
    'spec.containers[0].env[0].valueFrom.resourceFieldRef.resource: Unsupported value: "limits.x.cpu": supported values: "limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage", "requests.memory"',
  ]],
  [{ containers: [{ ...c, volumeMounts: [{ name: "x", mountPath: "/x" }] }] }, [`spec.containers[0].volumeMounts[0].name: Not found: "x"`]],
  [{ containers: [{ ...c, resources: { requests: { cpu: "2" }, limits: { cpu: "1" } } }] }, [`spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1`]],
  [{ containers: [{ ...c, resources: { requests: { "example.com/gpu": "1" } } }] }, ["spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources"]],
  [{ containers: [{ ...c, livenessProbe: { httpGet: { port: 80 }, successThreshold: 2 } }] }, ["spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1"]],
  [{ containers: [{ ...c, readinessProbe: {} }] }, ["spec.containers[0].readinessProbe: Required value: must specify a handler type"]],
  [{ containers: [{ ...c, readinessProbe: { exec: { command: ["a"] }, tcpSocket: { port: "http" } } }] }, ["spec.containers[0].readinessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type"]],
  [{ initContainers: [{ name: "i", image: "i", readinessProbe: { exec: { command: ["a"] } } }] }, ["spec.initContainers[0].readinessProbe: Forbidden: may not be set for init containers without restartPolicy=Always"]],
  [{ initContainers: [{ name: "i", image: "i", restartPolicyRules: [{ action: "X" }] }] }, ["spec.initContainers[0].restartPolicy: Required value: must specify restartPolicy when restart rules are used"]],
  [{ containers: [{ ...c, restartPolicyRules: [{ action: "Restart" }] }] }, [
    "spec.containers[0].restartPolicy: Required value: must specify restartPolicy when restart rules are used", "spec.containers[0].restartPolicyRules[0].exitCodes: Required value: must be specified",
  ]],
  [{ volumes: [{ name: "v", persistentVolumeClaim: { claimName: "a" } }, { name: "w" }], containers: [{ ...c, volumeDevices: [{ name: "v", devicePath: "/a" }, { name: "v", devicePath: "/b" }], volumeMounts: [{ name: "w", mountPath: "/a" }] }] }, [
    'spec.containers[0].volumeDevices[0].devicePath: Invalid value: "/a": must not already exist as a path in volumeMounts', 'spec.containers[0].volumeDevices[1].name: Invalid value: "v": must be unique',
  ]],
  [{ initContainers: [{ name: "c", image: "i" }] }, [`spec.initContainers[0].name: Duplicate value: "c"`]],
  [{ volumes: [{ name: "v", emptyDir: {}, hostPath: { path: "/x" } }] }, ["spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type"]],
  [{ volumes: [{ name: "v", configMap: { name: "m", items: [{ key: "k", path: "../x" }] } }] }, [`spec.volumes[0].configMap.items[0].path: Invalid value: "../x": must not contain '..'`]],
  [{ volumes: [{ name: "v" }, { name: "v" }] }, [`spec.volumes[1].name: Duplicate value: "v"`]],
  [{ volumes: [{ name: "v", projected: { sources: [{ serviceAccountToken: { path: "t", expirationSeconds: 60 } }] } }] }, [
    "spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 60: may not specify a duration less than 10 minutes",
    "spec.volumes[0].projected.sources[0].serviceAccountToken: Forbidden: must not be specified when serviceAccountName is not set",
  ]],
  [{
    volumes: [{ name: "v", projected: { sources: [
      { secret: { name: "s", items: [{ key: "k", path: "a" }, { key: "l", path: "b" }] } }, { configMap: { name: "m", items: [{ key: "k", path: "b" }, { key: "l", path: "c" }] } },
      { downwardAPI: { items: [{ path: "c", fieldRef: { fieldPath: "metadata.name" } }] } }, { secret: { name: "t", items: [{ key: "k", path: "a" }] } },
      { podCertificate: { signerName: "example.com/s", keyType: "ED25519", credentialBundlePath: "a" } }, { clusterTrustBundle: { name: "b", path: "c" } },
    ] } }],
  }, ["m", "c", "t", "a", "c"].map((shown) => `spec.volumes[0].projected: Invalid value: "${shown}": conflicting duplicate paths`)],
  [{ tolerations: [{ key: "k", operator: "Exists", value: "v" }] }, ["spec.tolerations[0].operator: Invalid value: \"v\": value must be empty when `operator` is 'Exists'"]],
  [{ tolerations: [{ operator: "Equal" }] }, ["spec.tolerations[0].operator: Invalid value: \"Equal\": operator must be Exists when `key` is empty, which means \"match all values and all keys\""]],
  [{ affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{}] } } }, [
    "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Required value: can not be empty",
    `spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Invalid value: "": name part must be non-empty`,
    `spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
  ]],
  [{ affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } } } }, ["spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required value: must have at least one node selector term"]],
  [{ topologySpreadConstraints: [{ maxSkew: 0, topologyKey: "", whenUnsatisfiable: "X" }] }, [
    "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero", "spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty",
    `spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "X": supported values: "DoNotSchedule", "ScheduleAnyway"`,
  ]],
  [{ securityContext: { sysctls: [{ name: "kernel.shmmax", value: "1" }, { name: "kernel.msg_next_id", value: "1" }, { name: "fs/mqueue/msg_max", value: "1" }] }, hostIPC: true }, [0, 2].map((i) =>
    `spec.securityContext.sysctls[${i}].name: Invalid value: "${["kernel.shmmax", "", "fs/mqueue/msg_max"][i]}": may not be specified when 'hostIPC' is true`)],
  [{ securityContext: { sysctls: [{ name: "a".repeat(254), value: "1" }, { name: "Net", value: "1" }, { name: "", value: "1" }, { name: "net.ipv4.x", value: "1" }, { name: "net.ipv4.x", value: "2" }] } }, [
    ...["a".repeat(254), "Net"].map((name, i) => `spec.securityContext.sysctls[${i}].name: Invalid value: "${name}": must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$`),
    "spec.securityContext.sysctls[2].name: Required value", 'spec.securityContext.sysctls[4].name: Duplicate value: "net.ipv4.x"',
  ]],
  [{ hostNetwork: true, containers: [{ ...c, ports: [{ containerPort: 80 }, { containerPort: 81, hostPort: 81 }] }] }, []],
  [{ hostNetwork: true, containers: [{ ...c, ports: [{ containerPort: 80, hostPort: 81 }] }] }, ["spec.containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` when `hostNetwork` is true"]],
  [{ securityContext: { sysctls: [{ name: "net.ipv4.x", value: "1" }] }, hostNetwork: true }, [`spec.securityContext.sysctls[0].name: Invalid value: "net.ipv4.x": may not be specified when 'hostNetwork' is true`]],
  [{ securityContext: { seccompProfile: { type: "RuntimeDefault", localhostProfile: "x" } } }, ['spec.securityContext.seccompProfile.localhostProfile: Invalid value: {"Type":"RuntimeDefault","LocalhostProfile":"x"}: can only be set when seccomp type is Localhost']],
  [{ securityContext: { seccompProfile: { type: "Localhost" } } }, ["spec.securityContext.seccompProfile.localhostProfile: Required value: must be set when seccomp type is Localhost"]],
  [{ containers: [{ ...c, securityContext: { privileged: true, allowPrivilegeEscalation: false } }] }, [
    'spec.containers[0].securityContext: Invalid value: {"Capabilities":null,"Privileged":true,"SELinuxOptions":null,"WindowsOptions":null,"RunAsUser":null,"RunAsGroup":null,"RunAsNonRoot":null,"ReadOnlyRootFilesystem":null,"AllowPrivilegeEscalation":false,"ProcMount":null,"SeccompProfile":null,"AppArmorProfile":null}: cannot set `allowPrivilegeEscalation` to false and `privileged` to true',
  ]],
  [{ resourceClaims: [{ name: "a" }, { name: "b", resourceClaimName: "x", resourceClaimTemplateName: "y" }] }, [
    'spec.resourceClaims[0]: Invalid value: {"Name":"a","ResourceClaimName":null,"ResourceClaimTemplateName":null}: must specify one of: `resourceClaimName`, `resourceClaimTemplateName`',
    'spec.resourceClaims[1]: Invalid value: {"Name":"b","ResourceClaimName":"x","ResourceClaimTemplateName":"y"}: at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified',
  ]],
  [{ containers: [{ ...c, securityContext: { runAsUser: -1 } }] }, ["spec.containers[0].securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive"]],
  [{ os: { name: "windows" }, shareProcessNamespace: true, hostUsers: true, securityContext: { runAsUser: 1, fsGroup: 1, seLinuxOptions: {}, sysctls: [] } },
    ["securityContext.seLinuxOptions", "hostUsers", "securityContext.fsGroup", "shareProcessNamespace", "securityContext.runAsUser"].map((field) => `spec.${field}: Forbidden: cannot be set for a windows pod`)],
  [{ os: { name: "windows" }, hostPID: true, securityContext: { runAsUser: 1 } }, ["spec.hostPID: Forbidden: cannot be set for a windows pod", "spec.securityContext.runAsUser: Forbidden: cannot be set for a windows pod"]],
  [{ hostAliases: [{ ip: "x" }] }, [`spec.hostAliases[0].ip: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`]],
  [{ activeDeadlineSeconds: 0 }, ["spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"]],
  [{ nodeName: "n", schedulingGates: [{ name: "g" }] }, ["spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"]],
  [{ ephemeralContainers: [{ name: "e", image: "i" }] }, ["spec.ephemeralContainers: Forbidden: cannot be set on create"]],
])("validation of %j", (spec, expected) => expect(errors(pod(spec))).toEqual(expected));

test("an update may change images and add tolerations, and nothing else", () => {
  const old = pod({ tolerations: [{ key: "a", operator: "Exists" }] });
  expect(errors(pod({ containers: [{ name: "c", image: "nginx:2" }], tolerations: [{ key: "a", operator: "Exists" }, { key: "b", operator: "Exists" }] }), old)).toEqual([]);
  expect(errors(pod({ containers: [{ name: "c", image: "nginx:1" }, c], tolerations: old.spec.tolerations }), old)).toContain("spec.containers: Forbidden: pod updates may not add or remove containers");
  expect(errors(pod({}), old)).toEqual(["spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"]);
  const [text, ...more] = errors(pod({ nodeName: "n", tolerations: old.spec.tolerations }), old);
  expect(more).toEqual([]);
  expect(text!.split("\n")[0]).toBe(
    "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`," +
    "`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
  );
  expect(text).toContain(`\n- "NodeName": "",\n+ "NodeName": "n",\n`);
});

test("a toleration that is added wrongly, and an annotation, are told of twice among the causes", () => {
  const spec = { tolerations: [{ key: "a", operator: "Sometimes" }] }, metadata = { annotations: { "controller.kubernetes.io/pod-deletion-cost": "x" } };
  const fields = [...pods.validate!(pod(spec, { metadata }), pod()), ...pods.validateUpdate!(pod(spec, { metadata }), pod())].map(({ field }) => field);
  expect(fields.sort()).toEqual([...Array<string>(2).fill("metadata.annotations[controller.kubernetes.io/pod-deletion-cost]"), ...Array<string>(2).fill("spec.tolerations[0].operator")]);
});

test("the node may be asked for by the name its field had once", () => expect(pods.fields!(pod({ nodeName: "n" }))).toMatchObject({ "spec.host": "n", "spec.nodeName": "n" }));

test("annotations that were init containers once are dropped", () => {
  const old = "pod.beta.kubernetes.io/init-containers";
  expect(pod({}, { metadata: { annotations: { [old]: "[]", a: "b" } } }).metadata.annotations).toEqual({ a: "b" });
  expect(pod({}, { metadata: { annotations: { [old]: "[]" } } }).metadata.annotations).toBeUndefined();
});

test("a gated pod may be narrowed down, and lose gates", () => {
  const old = pod({ schedulingGates: [{ name: "g" }], nodeSelector: { a: "1" } });
  expect(errors(pod({ nodeSelector: { a: "1", b: "2" } }), old)).toEqual([]);
  expect(errors(pod({ schedulingGates: [{ name: "g" }, { name: "h" }], nodeSelector: { a: "1" } }), old))
    .toEqual(["spec.schedulingGates[1].name: Forbidden: only deletion is allowed, but found new scheduling gate 'h'"]);
  expect(errors(pod({ schedulingGates: [{ name: "g" }], nodeSelector: { a: "2" } }), old))
    .toEqual([`spec.nodeSelector: Invalid value: {"a":"2"}: only additions to spec.nodeSelector are allowed (no mutations or deletions)`]);
});

test("what a gated pod's affinity becomes is told as the server holds it; an affinity that is empty is none", () => {
  const affinity = (...keys: string[]) => ({ nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: keys.map((key) => ({ matchExpressions: [{ key, operator: "Exists" }] })) } } });
  const gated = (spec: object) => pod({ schedulingGates: [{ name: "g" }], ...spec });
  const at = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
  const shown = (key: string) => `{"MatchExpressions":[{"Key":"${key}","Operator":"Exists","Values":null}],"MatchFields":null}`;
  const old = gated({ affinity: affinity("a") });
  expect(errors(gated({ affinity: affinity("b") }), old)).toEqual([`${at}[0]: Invalid value: ${shown("b")}: only additions are allowed (no mutations or deletions)`]);
  expect(errors(gated({ affinity: affinity("a", "b") }), old)).toEqual([`${at}: Invalid value: [${shown("a")},${shown("b")}]: no additions/deletions to non-empty NodeSelectorTerms list are allowed`]);
  expect(errors(gated({}), old)).toEqual([`${at}: Invalid value: null: no additions/deletions to non-empty NodeSelectorTerms list are allowed`]);
  expect(errors(gated({ affinity: affinity("a") }), gated({}))).toEqual([]);
  expect(errors(gated({ affinity: {} }), gated({}))[0]).toMatch(/^spec: Forbidden: pod updates may not change/);
});

test.each([
  ["null", ""], ["[]", ""], [`[{"Key":"a","operator":"Exists","value":null}]`, ""], [`[{"key":"a","operator":"Exists","effect":"NoExecute","tolerationSeconds":5}]`, ""],
  ["nope", "invalid character 'o' in literal null (expecting 'u')"], [" ", "unexpected end of JSON input"], ["{}", "json: cannot unmarshal object into Go value of type []core.Toleration"],
  ["[1]", "json: cannot unmarshal number into Go value of type core.Toleration"], [`[{"key":1}]`, "json: cannot unmarshal number into Go struct field Toleration.Key of type string"],
  [`[{"effect":[]}]`, "json: cannot unmarshal array into Go struct field Toleration.Effect of type core.TaintEffect"],
  [`[{"tolerationSeconds":1.5}]`, "json: cannot unmarshal number 1.5 into Go struct field Toleration.TolerationSeconds of type int64"],
  [`[{"tolerationSeconds":100000000000000000000}]`, "json: cannot unmarshal number 100000000000000000000 into Go struct field Toleration.TolerationSeconds of type int64"],
])("tolerations in an annotation: %s", (text, wrong) => {
  const annotated = pod({}, { metadata: { annotations: { "scheduler.alpha.kubernetes.io/tolerations": text } } });
  expect(errors(annotated)).toEqual(wrong === "" ? [] : [`metadata.annotations: Invalid value: "scheduler.alpha.kubernetes.io/tolerations": ${wrong}`]);
});

test("an annotated toleration that is null has no key, and says nothing of all of them", () => {
  const annotated = pod({}, { metadata: { annotations: { "scheduler.alpha.kubernetes.io/tolerations": "[null]" } } });
  expect(errors(annotated)).toEqual([`metadata.annotations.scheduler.alpha.kubernetes.io/tolerations[0].operator: Invalid value: "": operator must be Exists when \`key\` is empty, which means "match all values and all keys"`]);
});

test("where its gate is switched on, a pod has ids of its own on the host's network", () => {
  const made = pod({ hostNetwork: true, hostUsers: false, hostPID: true });
  expect(errors(made)).toEqual(["spec.hostNetwork: Forbidden: when `hostUsers` is false", "spec.HostPID: Forbidden: when `hostUsers` is false"]);
  onTestFinished(() => keepFieldsOf(new Set()));
  keepFieldsOf(new Set(["UserNamespacesHostNetworkSupport"]));
  expect(errors(made)).toEqual(["spec.HostPID: Forbidden: when `hostUsers` is false"]);
});

test("where images of volumes are switched on they stay in a status, and are checked after all else of the containers", () => {
  onTestFinished(() => keepFieldsOf(new Set()));
  keepFieldsOf(new Set(["ImageVolumeWithDigest"]));
  const part = pods.subresources!["status"]! as Extract<NonNullable<typeof pods.subresources>[string], { type: "part" }>;
  const image = (imageRef: string) => ({ name: "c", user: { linux: { uid: -1, gid: 0 } }, volumeMounts: [{ name: "v", mountPath: "/v", volumeStatus: { image: { imageRef } } }, { name: "w", mountPath: "/w", volumeStatus: {} }] });
  const old = pod({}, { status: { qosClass: "BestEffort" } });
  const sent = pod({}, { status: { qosClass: "BestEffort", containerStatuses: [image("sha256:1")] } });
  part.prepare(sent, old, context);
  expect(sent.status!.containerStatuses![0]!.volumeMounts![0]!.volumeStatus).toEqual({ image: { imageRef: "sha256:1" } });
  const wrong = pod({}, { status: { qosClass: "BestEffort", containerStatuses: [image("")], initContainerStatuses: [image("x".repeat(257))] } });
  expect([...part.validate!(wrong, old)].map(formatFieldError)).toEqual([
    "status.containerStatuses[0].user.linux.uid: Invalid value: -1: must be between 0 and 2147483647, inclusive", "status.initContainerStatuses[0].user.linux.uid: Invalid value: -1: must be between 0 and 2147483647, inclusive",
    "status.containerStatuses[0].volumeMounts[0].volumeStatus.imageVolumeStatus.imageRef: Required value: imageRef must not be empty",
    "status.initContainerStatuses[0].volumeMounts[0].volumeStatus.imageVolumeStatus.imageRef: Too long: may not be more than 256 bytes",
  ]);
});

test("what init containers are told to hold is looked at where the pod has none, too: only ephemeral containers hold nothing", () => {
  const part = pods.subresources!["status"]! as Extract<NonNullable<typeof pods.subresources>[string], { type: "part" }>;
  const held = [{ name: "c", allocatedResourcesStatus: [{ name: "example.com/gpu", resources: [{ resourceID: "0", health: "Fine" }] }] }];
  const told = pod({}, { status: { qosClass: "BestEffort", initContainerStatuses: held, ephemeralContainerStatuses: held } });
  expect([...part.validate!(told, pod({}, { status: { qosClass: "BestEffort" } }))].map(formatFieldError)).toEqual([
    'status.initContainerStatuses[0].allocatedResourcesStatus[0].resources[0].health: Unsupported value: "Fine": supported values: "Healthy", "Unhealthy", "Unknown"',
    "status.ephemeralContainerStatuses[0].allocatedResourcesStatus: Forbidden: must not be specified in container status",
  ]);
});

test("of a status what gates are off for is dropped, addresses are warned of, and amounts are rounded", () => {
  const part = pods.subresources!["status"]! as Extract<NonNullable<typeof pods.subresources>[string], { type: "part" }>;
  const volumeMounts = [{ name: "v", mountPath: "/v", volumeStatus: { image: { imageRef: "i" } } }];
  const status = { qosClass: "BestEffort", containerStatuses: [{ name: "c", volumeMounts }], nodeAllocatableResourceClaimStatuses: [{ resourceClaimName: "a" }], allocatedResources: { cpu: "0.0001" }, resources: { limits: { cpu: "0.0001" } } };
  const sent = pod({}, { status });
  expect([sent.status!.allocatedResources, sent.status!.resources]).toEqual([{ cpu: "1m" }, { limits: { cpu: "1m" } }]);
  part.prepare(sent, pod({}, { status: { qosClass: "BestEffort" } }), context);
  expect(sent.status!.containerStatuses![0]!.volumeMounts).toEqual([{ name: "v", mountPath: "/v" }]);
  expect(sent.status!.nodeAllocatableResourceClaimStatuses).toBeUndefined();
  const [kept, old] = [pod({}, { status }), pod({}, { status })];
  part.prepare(kept, old, context);
  expect(kept.status).toEqual(old.status);
  expect([...part.warnings!(pod({}, { status: { podIP: "FD00::1", podIPs: [{ ip: "FD00::1" }], hostIPs: [{ ip: "10.0.0.1" }, { ip: "::ffff:1.2.3.4" }] } }))]).toEqual([
    'status.podIPs[0].ip: IPv6 address "FD00::1" should be in RFC 5952 canonical format ("fd00::1")', 'status.hostIPs[1].ip: non-standard IP address "::ffff:1.2.3.4" is invalid: use "1.2.3.4"',
  ]);
  const two = { qosClass: "BestEffort", podIP: "x", podIPs: [{ ip: "x" }, { ip: "10.0.0.1" }] };
  expect([...part.validate!(pod({}, { status: two }), pod({}, { status: { qosClass: "BestEffort" } }))].map(formatFieldError)).toContain("status.podIPs: Internal error: failed to check for dual stack with error:invalid IP[0]: x");
});

test.each([
  [{}, {}, undefined, 0], [{ nodeName: "n" }, {}, undefined, 30], [{ nodeName: "n" }, {}, 5, 5], [{ nodeName: "n" }, { phase: "Failed" }, 5, 0],
  [{ nodeName: "n", terminationGracePeriodSeconds: -1 }, {}, undefined, 1], [{}, {}, 5, 0],
])("grace of %j with status %j asked for %s is %i", (spec, status, asked, grace) => expect(pods.gracePeriodSeconds!(pod(spec, { status }), asked)).toBe(grace));

test("a container that ended for good stays ended", () => {
  const part = pods.subresources!["status"]! as { validate(next: Pod, old: Pod): Iterable<Parameters<typeof formatFieldError>[0]> };
  const old = pod({ restartPolicy: "Never" }, { status: { qosClass: "BestEffort", containerStatuses: [{ name: "c", state: { terminated: { exitCode: 1 } } }] } });
  const next = pod({ restartPolicy: "Never" }, { status: { qosClass: "BestEffort", containerStatuses: [{ name: "c", state: { running: {} } }], podIPs: [{ ip: "10.0.0.1" }, { ip: "10.0.0.2" }] } });
  expect([...part.validate(next, old)].map(formatFieldError)).toEqual([
    "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state",
    `status.podIPs: Invalid value: [{"IP":"10.0.0.1"},{"IP":"10.0.0.2"}]: may specify no more than one IP for each IP family`,
  ]);
});

test("debugging containers are added; resources are resized; the rest of the spec stays", () => {
  const old = pod();
  const debug = pods.subresources!["ephemeralcontainers"]! as Extract<NonNullable<typeof pods.subresources>[string], { type: "part" }>;
  const next = pod({ nodeName: "elsewhere", ephemeralContainers: [{ name: "debug", image: "busybox", targetContainerName: "c" }] });
  debug.prepare(next, old, context);
  expect(next.spec.nodeName).toBeUndefined();
  expect([...debug.validate!(next, old)]).toEqual([]);
  expect([...debug.validate!(old, next)].map(formatFieldError)).toEqual([`spec.ephemeralContainers: Forbidden: existing ephemeral containers "debug" may not be removed\n`]);

  const resize = pods.subresources!["resize"]! as typeof debug;
  const small = pod({ containers: [{ ...c, resources: { requests: { cpu: "1" } } }] });
  const large = pod({ containers: [{ ...c, image: "other", resources: { requests: { cpu: "2" } } }] });
  resize.prepare(large, small, context);
  expect(large.spec.containers[0]!.image).toBe("i");
  expect([...resize.validate!(large, small)]).toEqual([]);
  expect([...resize.validate!(pod(), pod({ containers: [{ name: "c", image: "nginx:1", resources: { requests: { cpu: "1" } } }] }))].map(formatFieldError))
    .toEqual([`spec: Invalid value: "": Pod QOS Class may not change as a result of resizing`, "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed"]);
});

test("what mirrors a file, or is Windows', is refused for no field in particular", () => {
  const mirror = pod({}, { metadata: { annotations: { "kubernetes.io/config.mirror": "x" } } });
  const told = (name: string, old: Pod) => {
    const part = pods.subresources![name]! as Extract<NonNullable<typeof pods.subresources>[string], { type: "part" }>;
    return [...part.validate!(old, old)].map(formatFieldError);
  };
  expect([told("ephemeralcontainers", mirror), told("resize", mirror), told("resize", pod({ os: { name: "windows" } }))])
    .toEqual([["[]: Forbidden: static pods do not support ephemeral containers"], ["[]: Forbidden: static pods cannot be resized"], ["[]: Forbidden: windows pods cannot be resized"]]);
});

test("binding", () => {
  const binding = { apiVersion: "v1", kind: "Binding", metadata: { ...pod().metadata, annotations: { a: "b" } }, target: { kind: "Node", name: "n" } };
  const bound = bindPod(pod(), binding, context.nowMs);
  expect(bound.spec.nodeName).toBe("n");
  expect(bound.metadata.annotations).toEqual({ a: "b" });
  expect(bound.status!.conditions).toEqual([{ type: "PodScheduled", status: "True", lastTransitionTime: "2026-05-01T12:00:00Z" }]);
  expect(() => bindPod(bound, binding, 0)).toThrow(`pod p is already assigned to node "n"`);
  expect([...validateBinding({ ...binding, target: { kind: "Pod" } })].map(formatFieldError))
    .toEqual([`target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"`, "target.name: Required value"]);
});

test("warnings", () => {
  const texts = [...pods.warnings!(pod({
    nodeSelector: { "beta.kubernetes.io/os": "linux", constructor: "a" }, terminationGracePeriodSeconds: -1,
    containers: [{ ...c, env: [{ name: "A", value: "1" }, { name: "A", value: "2" }], ports: [{ containerPort: 80 }, { containerPort: 80 }], resources: { limits: { memory: "100m" } } }],
  }, { metadata: { name: "a.b" } }), undefined)];
  expect(texts).toEqual([
    "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]",
    `spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead`,
    `spec.containers[0].resources.limits[memory]: fractional byte value "100m" is invalid, must be an integer`,
    `spec.containers[0].resources.requests[memory]: fractional byte value "100m" is invalid, must be an integer`,
    `spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply`,
    "spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]",
  ]); // a negative grace period is 1 by then
  const halves = { memory: "500m", "ephemeral-storage": "500m" };
  const annotations = Object.fromEntries(["c", "d"].map((name) => [`container.seccomp.security.alpha.kubernetes.io/${name}`, "unconfined"]));
  expect([...pods.warnings!(pod({ containers: [{ ...c, resources: { limits: halves } }, { ...c, name: "d" }] }, { metadata: { annotations } }), undefined)].map((text) => text.split(": ")[0])).toEqual([
    "metadata.annotations[container.seccomp.security.alpha.kubernetes.io/c]", ...["limits[memory]", "requests[memory]", "limits[ephemeral-storage]", "requests[ephemeral-storage]"].map((of) => `spec.containers[0].resources.${of}`),
    "metadata.annotations[container.seccomp.security.alpha.kubernetes.io/d]",
  ]);
  expect([...pods.warnings!(pod({ containers: [{ ...c, resources: { limits: { memory: "1E", "ephemeral-storage": "5e18" } } }] }), undefined)]).toEqual([]); // more than could be told in thousandths
});

test.each<[NonNullable<Pod["status"]>, NonNullable<Pod["status"]>]>([
  [{ podIP: "10.0.0.1" }, { podIP: "10.0.0.1", podIPs: [{ ip: "10.0.0.1" }] }],
  [{ podIPs: [{ ip: "10.0.0.2" }, { ip: "fd00::1" }] }, { podIP: "10.0.0.2", podIPs: [{ ip: "10.0.0.2" }, { ip: "fd00::1" }] }],
  [{ podIP: "10.0.0.1", podIPs: [{ ip: "10.0.0.2" }, { ip: "fd00::1" }] }, { podIP: "10.0.0.1", podIPs: [{ ip: "10.0.0.1" }] }],
  [{ podIP: "10.0.0.1", podIPs: [{ ip: "10.0.0.1" }, { ip: "fd00::1" }] }, { podIP: "10.0.0.1", podIPs: [{ ip: "10.0.0.1" }, { ip: "fd00::1" }] }],
  [{}, {}],
])("the older of the two fields for a pod's addresses counts: %j", (given, settled) => {
  const one = pod({}, { status: given });
  pods.statusDefaults!(one);
  expect(one.status).toEqual(settled);
});
