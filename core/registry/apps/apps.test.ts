import { expect, test } from "vitest";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import type { StatefulSet } from "../../api/gen/apps.v1.ts";
import type { Scale } from "../../api/gen/autoscaling.v1.ts";
import { created, type Given, updated } from "../../../test/rehearse.ts";
import type { Resource } from "../generic/resource.ts";
import { controllerRevisions } from "./controller-revision.ts";
import { daemonSets } from "./daemon-set.ts";
import { deployments } from "./deployment.ts";
import { replicaSets } from "./replica-set.ts";
import { statefulSetDefinition } from "./stateful-set.ts";

const statefulSets = statefulSetDefinition({ maxUnavailable: false });

const selector = { matchLabels: { app: "web" } };
const template = { metadata: { labels: { app: "web" } }, spec: { containers: [{ name: "c", image: "i" }] } };
const spec = (more: Given = {}): Given => ({ spec: { selector, template, ...more } });

test.each<[object, string[]]>([
  [{ containerPort: 80 }, []], [{ containerPort: 80, hostPort: 80 }, []], [{ containerPort: 80, hostPort: 81 }, ["spec.template.spec.containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` when `hostNetwork` is true"]],
])("on the host's network a template's port is the host's: %j", (port, errors) => {
  expect(created(deployments, spec({ template: { ...template, spec: { hostNetwork: true, containers: [{ name: "c", image: "i", ports: [port] }] } } })).errors).toEqual(errors);
});

test("what the API fills in", () => {
  expect(created(deployments, spec()).object.spec).toMatchObject({
    replicas: 1, strategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: "25%", maxSurge: "25%" } }, revisionHistoryLimit: 10, progressDeadlineSeconds: 600,
    template: { spec: { restartPolicy: "Always", containers: [{ imagePullPolicy: "Always" }] } },
  });
  expect(created(deployments, spec({ strategy: { type: "Recreate" } })).object.spec.strategy).toEqual({ type: "Recreate" });
  expect(created(replicaSets, spec()).object.spec.replicas).toBe(1);
  expect(created(statefulSets, spec({ volumeClaimTemplates: [{ metadata: { name: "data" }, spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } } }] })).object.spec).toMatchObject({
    replicas: 1, podManagementPolicy: "OrderedReady", updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 0 } }, revisionHistoryLimit: 10,
    persistentVolumeClaimRetentionPolicy: { whenDeleted: "Retain", whenScaled: "Retain" },
    volumeClaimTemplates: [{ apiVersion: "v1", kind: "PersistentVolumeClaim", spec: { volumeMode: "Filesystem" }, status: { phase: "Pending" } }],
  });
  expect(created(daemonSets, spec()).object).toMatchObject({
    metadata: { annotations: { "deprecated.daemonset.template.generation": "1" } },
    spec: { updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } }, revisionHistoryLimit: 10 },
  });
});

const RESTART = 'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"';
const never = { ...template, spec: { ...template.spec, restartPolicy: "Never" } };
test.each<[kind: Resource<never>, given: Given, errors: string[]]>([
  [deployments as never, spec(), []],
  [deployments as never, spec({ replicas: -1 }), ["spec.replicas: Invalid value: -1: must be greater than or equal to 0"]],
  [deployments as never, { spec: { template } }, ["spec.selector: Required value", 'spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`']],
  [deployments as never, spec({ selector: {} }), ["spec.selector: Invalid value: {}: empty selector is invalid for deployment"]],
  [deployments as never, spec({ selector: { matchLabels: { app: "x" } } }), ['spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`']],
  [deployments as never, spec({ template: never }), [RESTART]],
  [deployments as never, spec({ strategy: { rollingUpdate: { maxUnavailable: 0, maxSurge: "0%" } } }), ["spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0"]],
  [deployments as never, spec({ strategy: { rollingUpdate: { maxUnavailable: "101%" } } }), ['spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater than 100%']],
  [deployments as never, spec({ strategy: { type: "Recreate", rollingUpdate: {} } }), ["spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"]],
  [deployments as never, spec({ minReadySeconds: 700 }), ["spec.progressDeadlineSeconds: Invalid value: 600: must be greater than minReadySeconds"]],
  [deployments as never, spec({ strategy: { type: "Sometimes", rollingUpdate: { maxSurge: 1 } } }), ['spec.strategy: Unsupported value: {"Type":"Sometimes","RollingUpdate":{"MaxUnavailable":0,"MaxSurge":1}}: supported values: "Recreate", "RollingUpdate"']],
  [daemonSets as never, spec({ updateStrategy: { type: "Sometimes", rollingUpdate: { maxSurge: 1 } } }), ['spec.updateStrategy: Unsupported value: {"Type":"Sometimes","RollingUpdate":{"MaxUnavailable":0,"MaxSurge":1}}: supported values: "RollingUpdate", "OnDelete"']],
  [statefulSets as never, spec({ updateStrategy: { type: "Sometimes", rollingUpdate: {} } }), [`spec.updateStrategy: Invalid value: {"Type":"Sometimes","RollingUpdate":{"Partition":0,"MaxUnavailable":null}}: must be 'RollingUpdate' or 'OnDelete'`]],
  [replicaSets as never, spec({ template: never }), [RESTART]],
  [statefulSets as never, spec({ serviceName: "A", updateStrategy: { type: "Sometimes" } }), [
    `spec.updateStrategy: Invalid value: {"Type":"Sometimes","RollingUpdate":null}: must be 'RollingUpdate' or 'OnDelete'`,
    "spec.serviceName: Invalid value: \"A\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
  ]],
  [daemonSets as never, spec({ updateStrategy: { rollingUpdate: { maxSurge: 1 } } }), ["spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero"]],
  [daemonSets as never, { spec: { selector: {}, template } }, ["spec.selector: Invalid value: {}: empty selector is invalid for daemonset"]],
  [controllerRevisions as never, { revision: -1 }, ["revision: Invalid value: -1: must be greater than or equal to 0", "data: Required value: data is mandatory"]],
])("create %#", (kind, given, errors) => expect(created(kind, given).errors).toEqual(errors));

test("updates", () => {
  const set = created(statefulSets, spec()).object;
  expect(updated(statefulSets, set, { spec: { ...set.spec, replicas: 3, serviceName: "other" } }).errors).toEqual([
    "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
  ]);
  expect(updated(statefulSets, set, { spec: { ...set.spec, replicas: 3 } }).errors).toEqual([]);
  // What was let pass before does not let anything else of the template pass.
  const tolerant = { ...template, spec: { ...template.spec, tolerations: [{ key: "k", operator: "Lt", value: "1", effect: "NoSchedule" }] } };
  const old = created(statefulSets, spec({ template: tolerant })).object;
  expect(updated(statefulSets, old, { spec: { ...old.spec, replicas: 3 } }).errors).toEqual([]);
  expect(updated(statefulSets, old, { spec: { ...old.spec, template: { ...tolerant, spec: { ...tolerant.spec, containers: [{ image: "i" }] } } } }).errors).toContain("spec.template.spec.containers[0].name: Required value");
  const daemon = created(daemonSets, spec()).object;
  const changed = { ...template, metadata: { labels: { app: "web", v: "2" } } };
  expect(updated(daemonSets, daemon, { spec: { ...daemon.spec, template: changed } }).object.metadata.annotations).toEqual({ "deprecated.daemonset.template.generation": "2" });
  expect(updated(daemonSets, daemon, { spec: { ...daemon.spec, selector: {} } }).errors).toEqual(["spec.selector: Invalid value: {}: field is immutable", "spec.selector: Invalid value: {}: empty selector is invalid for daemonset"]);
  const deployment = created(deployments, spec()).object;
  const other = { matchLabels: { app: "db" } };
  expect(updated(deployments, deployment, { spec: { ...deployment.spec, selector: other, template: { ...template, metadata: { labels: { app: "db" } } } } }).errors)
    .toEqual(['spec.selector: Invalid value: {"matchLabels":{"app":"db"}}: field is immutable']);
  expect(deployments.generation && deployments.generation({ ...deployment, metadata: { ...deployment.metadata, annotations: { a: "b" } } }, deployment)).toBe(true);
  expect(updated(deployments, deployment, { status: { replicas: 1, readyReplicas: 2 } }, { subresource: "status" }).errors).toEqual(["status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas"]);
});

const ROLLBACK = "deprecated.deployment.rollback.to";
const rolled = (text: string): Given => ({ ...spec(), metadata: { annotations: { [ROLLBACK]: text } } });
test("the revision a deployment is to return to is a number, and no status's business", () => {
  const written = (text: string): unknown => created(deployments, rolled(text)).object.metadata.annotations;
  expect(written("07")).toEqual({ [ROLLBACK]: "7" });
  expect(written("")).toBeUndefined();
  expect(() => written("x")).toThrow(`Deployment in version "v1" cannot be handled as a Deployment: failed to parse annotation[${ROLLBACK}]=x as int64: strconv.ParseInt: parsing "x": invalid syntax`);
  expect(created(deployments, rolled("-1")).errors).toEqual(["spec.rollback.version: Invalid value: -1: must be greater than or equal to 0"]);
  const old = created(deployments, rolled("7")).object;
  expect(updated(deployments, old, { metadata: { ...old.metadata, annotations: { a: "b" } } }, { subresource: "status" }).object.metadata.annotations).toEqual({ a: "b", [ROLLBACK]: "7" });
});

test("how often a daemon set's template has changed is a number of 64 bits", () => {
  const generation = (text: string): unknown => created(daemonSets, { ...spec(), metadata: { annotations: { "deprecated.daemonset.template.generation": text } } }).object.metadata.annotations;
  expect(generation("9223372036854775807")).toEqual({ "deprecated.daemonset.template.generation": "9223372036854775807" });
  expect(generation("-7")).toEqual({ "deprecated.daemonset.template.generation": "1" });
  expect(() => generation("99999999999999999999")).toThrow('DaemonSet in version "v1" cannot be handled as a DaemonSet: strconv.ParseInt: parsing "99999999999999999999": value out of range');
});

test("a daemon set that is updated by deleting shows numbers where something is said of rolling", () => {
  expect(created(daemonSets, spec({ updateStrategy: { type: "OnDelete", rollingUpdate: {} } })).object.spec.updateStrategy).toEqual({ type: "OnDelete", rollingUpdate: { maxUnavailable: 0, maxSurge: 0 } });
});

test("scale: the replicas, and the selector as a query", () => {
  const { scale } = deployments.subresources!;
  if (scale?.type !== "view") throw new Error("no view");
  const { object } = created(deployments, spec({ replicas: 2, selector: { matchLabels: { b: "1", a: "2" } } }));
  const view = scale.read({ ...object, status: { replicas: 1 } }) as Scale;
  expect([view.apiVersion, view.spec, view.status]).toEqual(["autoscaling/v1", { replicas: 2 }, { replicas: 1, selector: "a=2,b=1" }]);
  scale.write(object, { ...view, spec: { replicas: 5 } } as ApiObject);
  expect(object.spec.replicas).toBe(5);
});

test("how many pods of a set may be missing at once is kept where its gate is on, or where it was before", () => {
  const rolling = (rollingUpdate: Given): Given => spec({ updateStrategy: { type: "RollingUpdate", rollingUpdate } });
  const wide = statefulSetDefinition({ maxUnavailable: true });
  const kept = ({ object: { spec: { updateStrategy } } }: { readonly object: StatefulSet }) => updateStrategy?.rollingUpdate?.maxUnavailable;
  expect([created(statefulSets, rolling({ maxUnavailable: 3 })), created(wide, rolling({ maxUnavailable: 3 })), created(statefulSets, rolling({})), created(wide, rolling({})), created(wide, spec()), created(wide, spec({ updateStrategy: { type: "OnDelete" } }))].map(kept))
    .toEqual([undefined, 3, undefined, 1, 1, undefined]);
  const [with3, without] = [created(wide, rolling({ maxUnavailable: 3 })).object, created(statefulSets, rolling({})).object];
  expect([updated(statefulSets, with3, rolling({ maxUnavailable: 2 })), updated(statefulSets, without, rolling({ maxUnavailable: 2 })), updated(wide, without, rolling({ maxUnavailable: 2 }))].map(kept)).toEqual([2, undefined, 2]);
  const at = "spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value:";
  expect([0, "0%", -1, "101%", "30"].map((maxUnavailable) => created(wide, rolling({ maxUnavailable })).errors)).toEqual([
    [`${at} 0: cannot be 0`], [`${at} "0%": cannot be 0`], [`${at} -1: must be greater than or equal to 0`], [`${at} "101%": must not be greater than 100%`],
    [`${at} "30": a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')`],
  ]);
});
