import { expect, test } from "vitest";
import { trial } from "../../../test/definition-trial.ts";
import { controllerRevisions } from "./controller-revision.ts";
import { daemonSets } from "./daemon-set.ts";
import { deployments } from "./deployment.ts";
import { replicaSets } from "./replica-set.ts";
import { statefulSets } from "./stateful-set.ts";

const labels = { app: "web" };
const template = { metadata: { labels }, spec: { containers: [{ name: "c", image: "nginx:1" }] } };
const base = { selector: { matchLabels: labels }, template };
const TEMPLATE_DEFAULTS = {
  metadata: { labels },
  spec: {
    containers: [{ name: "c", image: "nginx:1", resources: {}, imagePullPolicy: "IfNotPresent", terminationMessagePath: "/dev/termination-log", terminationMessagePolicy: "File" }],
    restartPolicy: "Always", terminationGracePeriodSeconds: 30, dnsPolicy: "ClusterFirst", securityContext: {}, schedulerName: "default-scheduler",
  },
};

test("defaults", () => {
  expect(trial(deployments).create({ spec: base }).object.spec).toEqual({
    ...base, template: TEMPLATE_DEFAULTS, replicas: 1, revisionHistoryLimit: 10, progressDeadlineSeconds: 600, strategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: "25%", maxSurge: "25%" } },
  });
  expect(trial(deployments).create({ spec: { ...base, strategy: { type: "Recreate" } } }).object.spec.strategy).toEqual({ type: "Recreate" });
  expect(trial(replicaSets).create({ spec: base }).object).toMatchObject({ spec: { replicas: 1, template: TEMPLATE_DEFAULTS }, status: { replicas: 0 }, metadata: { generation: 1 } });
  expect(trial(daemonSets).create({ spec: base }).object).toMatchObject({
    metadata: { annotations: { "deprecated.daemonset.template.generation": "1" } },
    spec: { revisionHistoryLimit: 10, updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } } },
    status: { currentNumberScheduled: 0, numberMisscheduled: 0, desiredNumberScheduled: 0, numberReady: 0 },
  });
  const claim = { metadata: { name: "data" }, spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } } };
  const set = trial(statefulSets).create({ spec: { ...base, serviceName: "s", volumeClaimTemplates: [claim] } });
  expect(set.errors).toEqual([]);
  expect(set.object.spec).toMatchObject({
    replicas: 1, podManagementPolicy: "OrderedReady", revisionHistoryLimit: 10, updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 0 } },
    persistentVolumeClaimRetentionPolicy: { whenDeleted: "Retain", whenScaled: "Retain" },
    volumeClaimTemplates: [{ apiVersion: "v1", kind: "PersistentVolumeClaim", spec: { volumeMode: "Filesystem" }, status: { phase: "Pending" } }],
  });
});

test.each<[what: string, spec: object, errors: string[]]>([
  ["no selector", { selector: undefined }, ["spec.selector: Required value"]],
  ["an empty selector", { selector: {} }, ["spec.selector: Invalid value: {}: empty selector is invalid for deployment"]],
  ["labels that do not match", { selector: { matchLabels: { app: "x" } } }, ['spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`']],
  ["pods that end", { template: { ...template, spec: { ...template.spec, restartPolicy: "Never", activeDeadlineSeconds: 5 } } }, [
    'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
    "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is not Supported",
  ]],
  ["nothing may change at all", { strategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: "0%" } } }, ["spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \"0%\": may not be 0 when `maxSurge` is 0"]],
  ["too many percent", { strategy: { rollingUpdate: { maxUnavailable: "101%" } } }, ['spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater than 100%']],
  ["no percentage", { strategy: { rollingUpdate: { maxSurge: "x" } } },
    ["spec.strategy.rollingUpdate.maxSurge: Invalid value: \"x\": a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"]],
  ["Recreate that rolls", { strategy: { type: "Recreate", rollingUpdate: {} } }, ["spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"]],
  ["a strange strategy", { strategy: { type: "Odd" } }, ['spec.strategy: Unsupported value: {"Type":"Odd","RollingUpdate":null}: supported values: "Recreate", "RollingUpdate"']],
  ["a deadline that comes too early", { progressDeadlineSeconds: 10, minReadySeconds: 10 }, ["spec.progressDeadlineSeconds: Invalid value: 10: must be greater than minReadySeconds"]],
  ["negative numbers", { replicas: -1 }, ["spec.replicas: Invalid value: -1: must be greater than or equal to 0"]],
])("a deployment is refused for %s", (_, spec, errors) => expect(trial(deployments).create({ spec: { ...base, ...spec } }).errors).toEqual(errors));

test("a deployment's generation counts changes of spec and annotations; its selector and status are not the client's to change", () => {
  const { create, update, part } = trial(deployments);
  const { object, warnings } = create({ metadata: { name: "a.b" }, spec: base, status: { replicas: 9 } });
  expect(warnings[0]).toMatch(/^metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended: \[must not contain dots\]$/);
  expect(object.status).toEqual({});
  const annotated = update(object, (next) => { next.metadata.annotations = { a: "b" }; next.status = { replicas: 1 }; });
  expect(annotated).toMatchObject({ errors: [], object: { metadata: { generation: 2 }, status: {} } });
  expect(update(annotated.object, (next) => { next.metadata.labels = { a: "b" }; }).object.metadata.generation).toBe(2);
  const other = { matchLabels: { ...labels, tier: "x" } };
  expect(update(object, (next) => { next.spec.selector = other; next.spec.template.metadata.labels.tier = "x"; }).errors)
    .toEqual(['spec.selector: Invalid value: {"matchLabels":{"app":"web","tier":"x"}}: field is immutable']);
  const status = part("status", object, (next) => { next.status = { replicas: 1, readyReplicas: 2, collisionCount: 1 }; next.spec.replicas = 7; next.metadata.labels = { a: "b" }; });
  expect(status.object).toMatchObject({ spec: { replicas: 1 }, metadata: { generation: 1 } });
  expect(status.object.metadata.labels).toBeUndefined();
  expect(status.errors).toEqual(["status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas"]);
  expect(part("status", status.object, (next) => { next.status = {}; }).errors).toEqual(["status.collisionCount: Invalid value: 0: cannot be decremented"]);
});

test("scale is a view of replicas", () => {
  const { scale } = deployments.subresources!;
  const { object } = trial(deployments).create({ spec: { ...base, replicas: 3 } });
  if (scale?.type !== "view") throw new Error("not a view");
  expect(scale.read(object)).toMatchObject({ apiVersion: "autoscaling/v1", kind: "Scale", spec: { replicas: 3 }, status: { replicas: 0, selector: "app=web" } });
  const copy = { ...object };
  scale.write(copy, { ...scale.read(object), spec: { replicas: 5 } } as never);
  expect([copy.spec.replicas, object.spec.replicas]).toEqual([5, 3]);
});

test("a daemon set counts the changes of its template", () => {
  const { create, update, part } = trial(daemonSets);
  const { object } = create({ spec: base });
  const changed = update(object, (next) => { next.spec.template.spec.containers[0].image = "nginx:2"; next.metadata.annotations = {}; });
  expect(changed).toMatchObject({ errors: [], object: { metadata: { generation: 2, annotations: { "deprecated.daemonset.template.generation": "2" } } } });
  expect(part("status", changed.object, (next) => { next.metadata.annotations = {}; next.status.numberReady = -1; })).toMatchObject({
    errors: ["status.numberReady: Invalid value: -1: must be greater than or equal to 0"], object: { metadata: { generation: 2, annotations: { "deprecated.daemonset.template.generation": "2" } } },
  });
});

test.each<[what: string, spec: object, errors: string[]]>([
  ["no selector", { selector: undefined }, ['spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`']],
  ["both kinds of slack", { updateStrategy: { rollingUpdate: { maxSurge: 1 } } }, ["spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero"]],
  ["none", { updateStrategy: { rollingUpdate: { maxUnavailable: 0 } } }, ["spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0"]],
])("a daemon set is refused for %s", (_, spec, errors) => expect(trial(daemonSets).create({ spec: { ...base, ...spec } }).errors).toEqual(errors));

test("of a stateful set only some things change", () => {
  const { create, update } = trial(statefulSets);
  const { object } = create({ spec: { ...base, serviceName: "s" } });
  expect(update(object, (next) => { next.spec.replicas = 3; next.spec.template.spec.containers[0].image = "nginx:2"; next.spec.minReadySeconds = 3; }).errors).toEqual([]);
  expect(update(object, (next) => { next.spec.serviceName = "t"; }).errors).toEqual([
    "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
  ]);
  expect(create({ spec: { ...base, podManagementPolicy: "Both", updateStrategy: { type: "OnDelete", rollingUpdate: {} } } }).errors).toEqual([
    "spec.podManagementPolicy: Invalid value: \"Both\": must be 'OrderedReady' or 'Parallel'",
    "spec.updateStrategy.rollingUpdate: Invalid value: {\"Partition\":0,\"MaxUnavailable\":null}: only allowed for updateStrategy 'RollingUpdate'",
  ]);
});

test("a claim template of a stateful set is a volume of its pods", () => {
  const claims = { volumeClaimTemplates: [{ metadata: { name: "data" }, spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } } }] };
  const mounting = (name: string) => ({ ...template, spec: { containers: [{ name: "c", image: "nginx:1", volumeMounts: [{ name, mountPath: "/d" }] }] } });
  const { create } = trial(statefulSets);
  expect(create({ spec: { ...base, ...claims, template: mounting("data") } }).errors).toEqual([]);
  expect(create({ spec: { ...base, ...claims, template: mounting("date") } }).errors).toEqual(['spec.template.spec.containers[0].volumeMounts[0].name: Not found: "date"']);
});

test("a controller revision's data is there from the start and stays", () => {
  const { create, update } = trial(controllerRevisions);
  expect(create({ revision: -1 }).errors).toEqual(["revision: Invalid value: -1: must be greater than or equal to 0", "data: Required value: data is mandatory"]);
  expect(update(create({ data: { a: 1 } }).object, (next) => { next.data = { a: 2 }; }).errors).toEqual(['data: Invalid value: {"a":2}: field is immutable']);
});
