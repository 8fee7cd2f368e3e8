import { expect, test } from "vitest";
import { created, type Given, updated } from "../../../test/rehearse.ts";
import type { Resource } from "../generic/resource.ts";
import { keepFieldsOf } from "../generic/switched-on.ts";
import { configMaps } from "./config-map.ts";
import { endpoints } from "./endpoints.ts";
import { events } from "./event.ts";
import { limitRanges } from "./limit-range.ts";
import { namespaces } from "./namespace.ts";
import { nodes } from "./node.ts";
import { persistentVolumeClaims } from "./persistent-volume-claim/persistent-volume-claim.ts";
import { persistentVolumes } from "./persistent-volume/persistent-volume.ts";
import { podTemplates } from "./pod-template.ts";
import { replicationControllers } from "./replication-controller.ts";
import { resourceQuotas } from "./resource-quota.ts";
import { secrets } from "./secret.ts";
import { serviceAccounts } from "./service-account.ts";

const template = { metadata: { labels: { app: "web" } }, spec: { containers: [{ name: "c", image: "nginx:1" }] } };
const claim = { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } };
const volume = { accessModes: ["ReadWriteOnce"], capacity: { storage: "1Gi" }, hostPath: { path: "/data" } };
const pair = (data: Given): string => Buffer.from(JSON.stringify(data)).toString("base64");

test("what the API fills in", () => {
  expect(created(namespaces, { metadata: { name: "a" }, spec: { finalizers: ["x.io/y"] } }).object).toMatchObject({
    metadata: { labels: { "kubernetes.io/metadata.name": "a" } }, spec: { finalizers: ["x.io/y", "kubernetes"] }, status: { phase: "Active" },
  });
  expect(created(nodes, { spec: { podCIDR: "10.1.0.0/24", podCIDRs: ["10.2.0.0/24"] } }).object.spec).toEqual({ podCIDR: "10.1.0.0/24", podCIDRs: ["10.1.0.0/24"] });
  expect(created(nodes, { spec: { podCIDRs: ["10.2.0.0/24"] } }).object.spec).toEqual({ podCIDR: "10.2.0.0/24", podCIDRs: ["10.2.0.0/24"] });
  expect(created(nodes, { spec: { podCIDR: "10.42.0.0/24" }, status: { capacity: { cpu: "2" } } }).object)
    .toMatchObject({ spec: { podCIDRs: ["10.42.0.0/24"] }, status: { capacity: { cpu: "2" }, allocatable: { cpu: "2" } } });
  expect(created(secrets, { stringData: { a: "é" } }).object).toMatchObject({ type: "Opaque", data: { a: "w6k=" } });
  expect(created(secrets, { stringData: { a: "b" } }).object.stringData).toBeUndefined();
  expect(created(endpoints, { subsets: [{ addresses: [{ ip: "10.0.0.1" }], ports: [{ port: 80 }] }] }).object.subsets![0]!.ports![0]!.protocol).toBe("TCP");
  expect(created(replicationControllers, { spec: { template } }).object).toMatchObject({ metadata: { labels: { app: "web" } }, spec: { replicas: 1, selector: { app: "web" } }, status: { replicas: 0 } });
  expect(created(podTemplates, { template }).object.template!.spec!.restartPolicy).toBe("Always");
  expect(created(persistentVolumeClaims, { spec: claim }).object).toMatchObject({ spec: { volumeMode: "Filesystem" }, status: { phase: "Pending" } });
  expect(created(persistentVolumes, { spec: volume }).object).toMatchObject({
    spec: { persistentVolumeReclaimPolicy: "Retain", volumeMode: "Filesystem", hostPath: { type: "" } }, status: { phase: "Pending", lastPhaseTransitionTime: "1970-01-01T00:00:00Z" },
  });
  expect(created(limitRanges, { spec: { limits: [{ type: "Container", max: { cpu: "1" }, min: { cpu: "100m" } }] } }).object.spec.limits[0])
    .toEqual({ type: "Container", max: { cpu: "1" }, min: { cpu: "100m" }, default: { cpu: "1" }, defaultRequest: { cpu: "1" } });
});

test.each<[Resource<never>, Given, string[]]>([
  [namespaces as never, { spec: { finalizers: ["odd"] } }, ['spec.finalizers: Invalid value: "odd": name is neither a standard finalizer name nor is it fully qualified']],
  [nodes as never, { spec: { taints: [{ key: "a", effect: "NoSchedule" }, { key: "a", effect: "NoSchedule" }, { key: "b", effect: "Go" }] } }, [
    'metadata.taints[1]: Duplicate value: {"Key":"a","Value":"","Effect":"NoSchedule","TimeAdded":null}: taints must be unique by key and effect pair',
    'metadata.taints[2].effect: Unsupported value: "Go": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
  ]],
  [nodes as never, { spec: { podCIDRs: ["10.0.0.0/24", "10.0.1.0/24"] } }, ['spec.podCIDRs: Invalid value: ["10.0.0.0/24","10.0.1.0/24"]: may specify no more than one CIDR for each IP family']],
  [configMaps as never, { data: { "a b": "", c: "" }, binaryData: { c: "" } }, [
    "data[a b]: Invalid value: \"a b\": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
    'data[c]: Invalid value: "c": duplicate of key present in binaryData',
  ]],
  [configMaps as never, { data: { a: "x".repeat(1024 * 1024 + 1) } }, ["[]: Too long: may not be more than 1048576 bytes"]],
  [secrets as never, { type: "kubernetes.io/service-account-token" }, ["metadata.annotations[kubernetes.io/service-account.name]: Required value"]],
  [secrets as never, { type: "kubernetes.io/tls", data: { "tls.crt": "" } }, ["data[tls.key]: Required value"]],
  [secrets as never, { type: "kubernetes.io/basic-auth" }, ["data[username]: Required value", "data[password]: Required value"]],
  [secrets as never, { type: "kubernetes.io/dockerconfigjson", data: { ".dockerconfigjson": "e30=" } }, []],
  [secrets as never, { type: "kubernetes.io/dockerconfigjson", data: {} }, ["data[.dockerconfigjson]: Required value"]],
  [secrets as never, { type: "kubernetes.io/dockerconfigjson", data: { ".dockerconfigjson": pair({ auths: {} }) } }, []],
  [serviceAccounts as never, {}, []],
  [endpoints as never, { subsets: [{ ports: [{ port: 0 }] }] }, [
    "subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`", "subsets[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
  ]],
  [events as never, { involvedObject: { kind: "Pod", namespace: "other", name: "p" } }, ['involvedObject.namespace: Invalid value: "other": does not match event.namespace']],
  [replicationControllers as never, { spec: { selector: { a: "b" }, template } }, ['spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`']],
  [resourceQuotas as never, { spec: { hard: { pods: "1.5", widgets: "1" } } }, [
    'spec.hard[pods]: Invalid value: "1500m": must be an integer', 'spec.hard[widgets]: Invalid value: "widgets": must be a standard resource type or fully qualified',
    'spec.hard[widgets]: Invalid value: "widgets": must be a standard resource for quota',
  ]],
  [resourceQuotas as never, { spec: { hard: { cpu: "1" }, scopeSelector: { matchExpressions: [{ scopeName: "BestEffort", operator: "Exists" }] } } }, [
    'spec.scopeSelector.matchExpressions: Invalid value: {"MatchExpressions":[{"ScopeName":"BestEffort","Operator":"Exists","Values":null}]}: unsupported scope applied to resource',
  ]],
  [persistentVolumes as never, { spec: { ...volume, capacity: undefined } }, ["spec.capacity: Required value", 'spec.capacity: Unsupported value: null: supported values: "storage"']],
  [resourceQuotas as never, { spec: { scopes: ["BestEffort", "NotBestEffort"] } }, ['spec.scopes: Invalid value: ["BestEffort","NotBestEffort"]: conflicting scopes']],
  [limitRanges as never, { spec: { limits: [{ type: "PersistentVolumeClaim", maxLimitRequestRatio: { foo: "2" } }] } }, [
    "spec.limits[0].limits: Required value: either minimum or maximum storage value is required, but neither was provided",
    'spec.limits[0].maxLimitRequestRatio[foo]: Invalid value: "foo": must be a standard resource type or fully qualified',
  ]],
  [limitRanges as never, { spec: { limits: [{ type: "Container", max: { cpu: "600m" }, min: { cpu: "200m" }, maxLimitRequestRatio: { cpu: "3" } }] } }, []], // 0.6 by 0.2 is 2.9999999999999996
  [limitRanges as never, { spec: { limits: [{ type: "Container", max: { cpu: "600m" }, min: { cpu: "200m" }, maxLimitRequestRatio: { cpu: "3001m" } }] } }, [
    'spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "3001m": ratio 3001m is greater than max/min = 3.000000',
  ]],
  [limitRanges as never, { spec: { limits: [{ type: "Pod", max: { cpu: "1" }, min: { cpu: "2" }, default: { cpu: "1" } }] } }, [
    "spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'", 'spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1',
  ]],
  [persistentVolumeClaims as never, { spec: { accessModes: ["ReadWriteOncePod", "ReadWriteMany"], resources: { requests: { storage: "0" } } } }, [
    "spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes", 'spec.resources[storage]: Invalid value: "0": must be greater than zero',
  ]],
  [persistentVolumeClaims as never, { spec: { ...claim, dataSource: { kind: "PersistentVolumeClaim", name: "a" }, dataSourceRef: { kind: "PersistentVolumeClaim", name: "b" } } }, ["spec: Invalid value: {}: must match dataSourceRef"]],
  [persistentVolumes as never, { spec: { ...volume, hostPath: undefined, csi: { driver: "d.e", volumeHandle: "h" }, iscsi: {}, flexVolume: { driver: "a/b" } } }, [
    "spec.iscsi.targetPortal: Required value", "spec.iscsi.iqn: Required value", "spec.csi: Forbidden: may not specify more than 1 volume type",
  ]],
  [persistentVolumes as never, { spec: { ...volume, hostPath: undefined } }, ["spec: Required value: must specify a volume type"]],
  [persistentVolumes as never, { spec: { ...volume, hostPath: undefined, local: { path: "/x" } } }, ["spec.nodeAffinity: Required value: Local volume requires node affinity"]],
  [persistentVolumes as never, { spec: { ...volume, local: { path: "/x" } } }, ["spec.local: Forbidden: may not specify more than 1 volume type"]],
])("create %#", (kind, given, errors) => expect(created(kind, given).errors).toEqual(errors));

test("what does not change once it is there", () => {
  const frozen = created(configMaps, { data: { a: "1" }, immutable: true }).object;
  expect(updated(configMaps, frozen, { data: { a: "2" }, immutable: false }).errors).toEqual([
    "immutable: Forbidden: field is immutable when `immutable` is set", "data: Forbidden: field is immutable when `immutable` is set",
  ]);
  expect(updated(secrets, created(secrets, {}).object, { type: "x" }).errors).toEqual(['type: Invalid value: "x": field is immutable']);
  expect(updated(nodes, created(nodes, { spec: { podCIDR: "10.0.0.0/24" } }).object, { spec: { podCIDR: "10.0.1.0/24", podCIDRs: ["10.0.1.0/24"] } }).errors)
    .toEqual([`spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid`]);
  expect(updated(resourceQuotas, created(resourceQuotas, { spec: {} }).object, { spec: { scopes: ["Terminating"] } }).errors).toEqual(['spec.scopes: Invalid value: ["Terminating"]: field is immutable']);
});

test("a claim grows once it is bound, and nothing else", () => {
  const pending = created(persistentVolumeClaims, { spec: claim }).object;
  const grown = { ...pending.spec, resources: { requests: { storage: "2Gi" } } };
  expect(updated(persistentVolumeClaims, pending, { spec: grown }).errors[0]).toMatch(/^spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n@@ -6,7 \+6,7 @@\n {2}"Resources": \{\n {3}"Limits": null,\n {3}"Requests": \{\n- {3}"storage": "1Gi"\n\+ {3}"storage": "2Gi"\n/);
  expect(updated(persistentVolumeClaims, pending, { spec: { ...grown, volumeName: "v" } }).errors[0]).toContain(`"storage": "2Gi"\n   }\n  },\n  "VolumeName": "v",\n`);
  const bound = { ...pending, status: { phase: "Bound" as const, capacity: { storage: "1Gi" } } };
  expect(updated(persistentVolumeClaims, bound, { spec: grown }).errors).toEqual([]);
  expect(updated(persistentVolumeClaims, bound, { spec: { ...pending.spec, resources: { requests: { storage: "512Mi" } } } }).errors)
    .toEqual(["spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"]);
});

test("a claim that was stored with one name of its source may have both", () => {
  const source = { apiGroup: "", kind: "PersistentVolumeClaim", name: "other" };
  for (const name of ["dataSource", "dataSourceRef"]) {
    const stored = { ...created(persistentVolumeClaims, { spec: claim }).object, spec: { ...claim, volumeMode: "Filesystem" as const, [name]: source } };
    const { object, errors } = updated(persistentVolumeClaims, stored as never, { spec: stored.spec });
    expect([errors, object.spec]).toEqual([[], { ...claim, volumeMode: "Filesystem", dataSource: source, dataSourceRef: source }]);
  }
});

test("a source of configuration that names nothing is shown as the server holds it", () => {
  const { object } = created(nodes, {});
  expect(updated(nodes, { ...object, spec: { configSource: {} } }, { spec: { configSource: {} } }).errors).toEqual(['spec.configSource: Invalid value: {"ConfigMap":null}: exactly one reference subfield must be non-nil']);
});

test("a controller whose labels are taken away with its status has those of its pods", () => {
  const { object } = created(replicationControllers, { spec: { template } });
  const { labels: _, ...metadata } = object.metadata;
  expect(updated(replicationControllers, object, { metadata, spec: {}, status: { replicas: 0 } }, { subresource: "status" }).object.metadata.labels).toEqual({ app: "web" });
});

test("only the finalize subresource lets a namespace go", () => {
  const { object } = created(namespaces, {});
  expect(updated(namespaces, object, { spec: {} }).object.spec).toEqual({ finalizers: ["kubernetes"] });
  expect(updated(namespaces, object, { spec: {} }, { subresource: "finalize" }).object.spec).toEqual({});
  expect(updated(namespaces, object, { status: { phase: "Terminating" } }, { subresource: "status" }).errors)
    .toEqual([`status.Phase: Invalid value: "Terminating": may only be 'Active' if \`deletionTimestamp\` is empty`]);
  expect(namespaces.isHeld!(object)).toBe(true);
});

const annotated = (name: string, text: string): Given => ({ metadata: { annotations: { [name]: text } } });
const TAINTS = "scheduler.alpha.kubernetes.io/taints", AVOIDED = "scheduler.alpha.kubernetes.io/preferAvoidPods";
test.each<[Given, string[]]>([
  [annotated(TAINTS, ""), []],
  [annotated(TAINTS, "[]"), []],
  [annotated(TAINTS, "x"), [`metadata.annotations: Invalid value: "${TAINTS}": invalid character 'x' looking for beginning of value`]],
  [annotated(TAINTS, "{}"), [`metadata.annotations: Invalid value: "${TAINTS}": json: cannot unmarshal object into Go value of type []core.Taint`]],
  [annotated(TAINTS, '[{"Key":"a"}]'), [`metadata.annotations.${TAINTS}[0].effect: Required value`]],
  [annotated(AVOIDED, "[]"), [`metadata.annotations.AvoidPods: Invalid value: "${AVOIDED}": json: cannot unmarshal array into Go value of type v1.AvoidPods`]],
  [annotated(AVOIDED, '{"preferAvoidPods":"x"}'), [`metadata.annotations.AvoidPods: Invalid value: "${AVOIDED}": json: cannot unmarshal string into Go struct field AvoidPods.preferAvoidPods of type []v1.PreferAvoidPodsEntry`]],
  [annotated(AVOIDED, '{"preferAvoidPods":[{}]}'), [`metadata.annotations.${AVOIDED}[0].PodSignature: Required value`]],
  [annotated(AVOIDED, '{"preferAvoidPods":[{"podSignature":{"podController":{"controller":false}}}]}'), [`metadata.annotations.${AVOIDED}[0].PodSignature.PodController.Controller: Invalid value: false: must point to a controller`]],
])("a node annotated %j", (given, errors) => {
  expect(created(nodes, given).errors).toEqual(errors);
  const stored = { ...created(nodes, {}).object, metadata: { ...created(nodes, given).object.metadata } };
  expect(updated(nodes, stored, {}).errors).toEqual([]);
});

test("ranges of a node's pods that are none", () => {
  expect(created(nodes, { spec: { podCIDRs: ["2000::/10", "10.0.0.1"] } }).errors).toContain('spec.podCIDRs: Invalid value: ["2000::/10","10.0.0.1"]: may specify no more than one CIDR for each IP family');
  expect(created(nodes, { spec: { podCIDRs: ["10.0.0.0/24", "y"] } }).errors).toContain("spec.podCIDRs: Internal error: invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[1]: <nil> (invalid CIDR address: y)");
});

const MOUNT_OPTIONS = "volume.beta.kubernetes.io/mount-options";
test("options of a mount are for volumes that are mounted by the node", () => {
  const given = { ...annotated(MOUNT_OPTIONS, "ro"), spec: volume };
  expect(created(persistentVolumes, given).errors).toEqual([`metadata.annotations.${MOUNT_OPTIONS}: Forbidden: may not specify mount options for this volume type`]);
  expect(created(persistentVolumes, { ...given, spec: { ...volume, hostPath: undefined, nfs: { server: "a", path: "/b" } } }).errors).toEqual([]);
  expect(updated(persistentVolumes, created(persistentVolumes, given).object, {}).errors).toEqual([]);
});

test.each(["/", "//.", "/./", "/a/..", ".", ""])("whether a host's %j is all of it", (path) => {
  const { errors } = created(persistentVolumes, { spec: { ...volume, hostPath: { path }, persistentVolumeReclaimPolicy: "Recycle" } });
  expect(errors.some((text) => text.includes("may not be 'recycle' for a hostPath mount of '/'"))).toBe(path.startsWith("/"));
});

test("a volume notes when its phase changed", () => {
  const { object } = created(persistentVolumes, { spec: volume });
  const context = { user: { name: "u", groups: [] }, nowMs: 86_400_000, dryRun: false, uuid: () => "u" };
  expect(updated(persistentVolumes, object, { status: { phase: "Available" } }, { subresource: "status", context }).object.status).toMatchObject({ phase: "Available", lastPhaseTransitionTime: "1970-01-02T00:00:00Z" });
});

test("a node's taints are looked at twice in an update, as upstream does", () => {
  const { object } = created(nodes, {});
  const next = { ...object, spec: { ...object.spec, taints: [{ key: "a", effect: "Go" as never }] } };
  expect([...nodes.validate!(next, object), ...nodes.validateUpdate!(next, object)].map(({ field }) => field)).toEqual(["metadata.taints[0].effect", "metadata.taints[0].effect"]);
});

test("where a volume can be used stays, but for labels that got a new name", () => {
  const at = (key: string): Given => ({ nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [{ key, operator: "In", values: ["a"] }] }] } } });
  const errors = (before: string, after: string): readonly string[] => updated(persistentVolumes, created(persistentVolumes, { spec: { ...volume, ...at(before) } }).object, { spec: { ...volume, ...at(after) } }).errors;
  expect(errors("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")).toEqual([]);
  expect(errors("k", "l")).toEqual([expect.stringContaining("field is immutable, except for updating from beta label to GA")]);
  expect(errors("k", "")).toEqual([expect.stringContaining("name part must be non-empty"), expect.stringContaining("name part must consist of")]);
});

function withGate(gate: string, body: () => void): void {
  keepFieldsOf(new Set([gate]));
  try {
    body();
  } finally {
    keepFieldsOf(new Set());
  }
}

test("a source of another namespace is kept where its gate is on, or where there was one before", () => {
  const source = { apiGroup: "snapshot.storage.k8s.io", kind: "VolumeSnapshot", name: "s", namespace: "other" };
  const given = { spec: { ...claim, dataSourceRef: source } };
  const kept = () => created(persistentVolumeClaims, given).object.spec.dataSourceRef;
  expect(kept()).toBeUndefined();
  withGate("CrossNamespaceVolumeDataSource", () => {
    expect(kept()).toEqual(source);
    expect(created(persistentVolumeClaims, given).object.spec.dataSource).toBeUndefined(); // which has no namespace
    expect(created(persistentVolumeClaims, { spec: { ...claim, dataSource: { apiGroup: source.apiGroup, kind: source.kind, name: "s" }, dataSourceRef: source } }).errors).toEqual(["spec: Invalid value: {}: may not be specified when dataSourceRef.namespace is specified"]);
    expect(created(persistentVolumeClaims, { spec: { ...claim, dataSourceRef: { ...source, namespace: "A" } } }).errors[0]).toMatch(/^spec\.dataSourceRef\.namespace: Invalid value: "A": a lowercase RFC 1123 label must/);
  });
});

test("where a volume can be reached changes where its gate is on", () => {
  const at = (key: string): Given => ({ nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [{ key, operator: "In", values: ["a"] }] }] } } });
  const { object } = created(persistentVolumes, { spec: { ...volume, ...at("zone") } });
  const errors = (next: Given) => updated(persistentVolumes, object, { spec: { ...object.spec, ...next } }).errors.map((error) => error.replace(/Invalid value: .*: field/s, "field"));
  expect([errors(at("other")), errors({ nodeAffinity: undefined })]).toEqual([["nodeAffinity: field is immutable, except for updating from beta label to GA"], ["nodeAffinity: field is immutable, except for updating from beta label to GA"]]);
  withGate("MutablePVNodeAffinity", () => expect([errors(at("other")), errors({ nodeAffinity: undefined }), errors({ nodeAffinity: {} })]).toEqual([[], [], ["spec.nodeAffinity.required: Required value: must specify required node constraints"]]));
});
