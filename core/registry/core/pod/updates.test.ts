import { expect, test } from "vitest";
import { created, type Given, updated } from "../../../../test/rehearse.ts";
import { keepForUpdate } from "../../generic/object-meta.ts";
import { pods } from "./pod.ts";

const c = { name: "c", image: "i", imagePullPolicy: "Always" };
const pod = (spec: Given) => created(pods, { spec: { containers: [c], ...spec } }).object;
const change = (before: Given, after: Given) => updated(pods, pod(before), { spec: pod(after).spec }).errors.map((text) => text.split("\n")[0]);
const FORBIDDEN = "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
const path = "spec.activeDeadlineSeconds: Invalid value:";

test.each<[string, Given, Given, string[]]>([
  ["a deadline is set", {}, { activeDeadlineSeconds: 5 }, []],
  ["a deadline is brought forward", { activeDeadlineSeconds: 5 }, { activeDeadlineSeconds: 3 }, []],
  ["a deadline is put off", { activeDeadlineSeconds: 5 }, { activeDeadlineSeconds: 6 }, [`${path} 6: must be less than or equal to previous value`]],
  ["a deadline is taken back", { activeDeadlineSeconds: 5 }, {}, [`${path} null: must not update from a positive integer to nil value`]],
  ["an init container's image", { initContainers: [{ name: "i", image: "a" }] }, { initContainers: [{ name: "i", image: "b" }] }, []],
  ["an init container's command", { initContainers: [{ name: "i", image: "a" }] }, { initContainers: [{ name: "i", image: "a", command: ["x"] }] }, [FORBIDDEN]],
  ["a container's environment", {}, { containers: [{ ...c, env: [{ name: "A", value: "b" }] }] }, [FORBIDDEN]],
  ["a container's resources, other than by the subresource", {}, { containers: [{ ...c, resources: { requests: { cpu: "1" } } }] }, [FORBIDDEN]],
  ["the grace period", { terminationGracePeriodSeconds: 30 }, { terminationGracePeriodSeconds: 1 }, [FORBIDDEN]],
  ["a negative grace period becomes 1", { terminationGracePeriodSeconds: -1 }, { terminationGracePeriodSeconds: 1 }, []],
  ["a toleration is longer", { tolerations: [{ key: "a", operator: "Exists", effect: "NoExecute", tolerationSeconds: 3 }] }, { tolerations: [{ key: "a", operator: "Exists", effect: "NoExecute", tolerationSeconds: 9 }] }, []],
  ["a gate that is there twice", {}, { schedulingGates: [{ name: "g" }, { name: "g" }] }, ["spec.schedulingGates[1]: Duplicate value: \"g\"", "spec.schedulingGates[1].name: Forbidden: only deletion is allowed, but found new scheduling gate 'g'"]],
  ["the restart policy", {}, { restartPolicy: "Never" }, [FORBIDDEN]],
  ["the priority", {}, { priority: 3 }, [FORBIDDEN]],
  ["a volume", {}, { volumes: [{ name: "v", emptyDir: {} }] }, [FORBIDDEN]],
  ["a new image that is no image", {}, { containers: [{ ...c, image: " " }] }, ["spec.containers[0].image: Invalid value: \" \": must not have leading or trailing whitespace"]],
])("%s", (_, before, after, errors) => expect(change(before, after)).toEqual(errors));

test("claims of a pod as a whole", () => {
  const claims = [{ name: "z" }];
  const texts = (spec: Given) => created(pods, { spec: { containers: [c], resources: { claims, limits: { cpu: "1" } }, ...spec } }).errors;
  expect(texts({ resourceClaims: [{ name: "" }] })).toContain('spec.resources.claims[0]: Not found: "z": must be one of the names in pod.spec.resourceClaims which is empty');
  const old = pod({ containers: [{ ...c, resources: { limits: { cpu: "2", memory: "1Gi" } } }] });
  expect(updated(pods, old, { spec: { ...old.spec, resources: { claims, limits: { cpu: "2", memory: "1Gi" } } } }, { subresource: "resize" }).errors).toContain("spec: Forbidden: only cpu and memory resources are mutable at pod-level");
});

test("a report on a pod deletes nothing, and takes no deletion back", () => {
  const part = pods.subresources!["status"]! as Extract<NonNullable<typeof pods.subresources>[string], { type: "part" }>;
  const deletedAt = (before: string | undefined, reported: string | undefined) => {
    const old = pod({}), next = structuredClone(old);
    if (before) old.metadata.deletionTimestamp = before;
    if (reported) next.metadata.deletionTimestamp = reported;
    keepForUpdate(next, old);
    part.prepare(next, old, {} as never);
    return next.metadata.deletionTimestamp;
  };
  expect(deletedAt(undefined, "2020-01-01T00:00:00Z")).toBeUndefined();
  expect(deletedAt("2020-01-01T00:00:00Z", undefined)).toBe("2020-01-01T00:00:00Z");
  expect(deletedAt("2020-01-01T00:00:00Z", "2030-01-01T00:00:00Z")).toBe("2020-01-01T00:00:00Z");
});

test("debugging containers may have nothing that needs guarantees, and nobody else's volumes", () => {
  const debug = pods.subresources!["ephemeralcontainers"]! as Extract<NonNullable<typeof pods.subresources>[string], { type: "part" }>;
  const at = "spec.ephemeralContainers[0]";
  const errorsOf = (more: Given) => {
    const before = pod({ volumes: [{ name: "v", emptyDir: {} }] });
    const next = structuredClone(before);
    next.spec.ephemeralContainers = [{ name: "e", image: "i", imagePullPolicy: "Always", terminationMessagePolicy: "File", ...more }];
    debug.prepare(next, before, {} as never);
    return [...debug.validate!(next, before)].map(({ field, type, detail }) => `${field} ${type} ${detail}`);
  };
  const no = "FieldValueForbidden cannot be set for an Ephemeral Container";
  const exec = { exec: { command: ["a"] } };
  for (const field of ["livenessProbe", "readinessProbe", "startupProbe"]) expect(errorsOf({ [field]: { ...exec, timeoutSeconds: 1, periodSeconds: 1, successThreshold: 1, failureThreshold: 1 } })).toContain(`${at}.${field} ${no}`);
  expect(errorsOf({ ports: [{ containerPort: 1, protocol: "TCP" }] })).toEqual([`${at}.ports ${no}`]);
  expect(errorsOf({ resources: { requests: { cpu: "1" } } })).toEqual([`${at}.resources ${no}`]);
  expect(errorsOf({ lifecycle: { preStop: exec }, resources: { requests: { cpu: "1" } }, ports: [{ containerPort: 1, protocol: "TCP" }] })).toEqual([`${at}.ports ${no}`, `${at}.resources ${no}`, `${at}.lifecycle ${no}`]);
  for (const lifecycle of [{ preStop: exec }, {}]) expect(errorsOf({ lifecycle })).toEqual([`${at}.lifecycle ${no}`]);
  expect(errorsOf({ volumeMounts: [{ name: "v", mountPath: "/v", subPath: "x" }] })).toEqual([`${at}.volumeMounts[0].subPath ${no}`]);
  expect(errorsOf({ targetContainerName: "nobody" })).toEqual([`${at}.targetContainerName FieldValueNotFound `]);
  expect(errorsOf({ targetContainerName: "c", volumeMounts: [{ name: "v", mountPath: "/v" }], securityContext: { capabilities: { add: ["SYS_PTRACE"] } } })).toEqual([]);
});

test("quantities are rounded up and written in one way", () => {
  const spelled = (limits: Given) => pod({ containers: [{ ...c, resources: { limits } }] }).spec.containers[0]!.resources;
  expect(spelled({ cpu: "0.1", memory: "128974848" })).toEqual({ limits: { cpu: "100m", memory: "128974848" }, requests: { cpu: "100m", memory: "128974848" } });
  expect(spelled({ cpu: ".5" })?.limits).toEqual({ cpu: "500m" });
  expect(spelled({ cpu: "0.0001" })?.limits).toEqual({ cpu: "1m" });
  expect(spelled({ memory: "129e6", "ephemeral-storage": "123Mi" })?.limits).toEqual({ memory: "129e6", "ephemeral-storage": "123Mi" });
  expect(spelled({ "example.com/foo": "3Ki" })?.limits).toEqual({ "example.com/foo": "3Ki" });
});

test.each<[Given, string[]]>([
  [{ limits: { "example.com/foo": "3000m" } }, []],
  [{ requests: { cpu: "2", "example.com/foo": "1" }, limits: { "example.com/foo": "1" } }, []],
  [{ limits: { "example.com/foo": "1500m" } }, [`limits[example.com/foo]: Invalid value: "1500m": must be an integer`, `requests[example.com/foo]: Invalid value: "1500m": must be an integer`]],
  [{ requests: { "example.com/foo": "1" }, limits: { "example.com/foo": "2" } }, ["requests: Invalid value: \"1\": must be equal to example.com/foo limit of 2"]],
  [{ requests: { "hugepages-2Mi": "2Mi", cpu: "1" }, limits: { "hugepages-2Mi": "4Mi" } }, ["requests: Invalid value: \"2Mi\": must be equal to hugepages-2Mi limit of 4Mi"]],
  [{ limits: { "hugepages-2Mi": "2Mi" } }, ["Forbidden: HugePages require cpu or memory"]],
  [{ limits: { gpu: "1" } }, [`limits[gpu]: Invalid value: "gpu": must be a standard resource type or fully qualified`]],
  [{ limits: { memory: "-1" } }, ["limits[memory]: Invalid value: \"-1\": must be greater than or equal to 0"]],
])("resources %j", (resources, expected) => {
  const { errors } = created(pods, { spec: { containers: [{ ...c, resources }] } });
  for (const text of expected) expect(errors.join("\n")).toContain(text);
  expect(errors.length === 0).toBe(expected.length === 0);
});

test("a claim that a resize gives a container is no change of it, but there must be one", () => {
  const { errors } = updated(pods, pod({ containers: [c] }), { spec: { ...pod({ containers: [c] }).spec, containers: [{ ...pod({ containers: [c] }).spec.containers[0]!, resources: { claims: [{ name: "z" }] } }] } }, { subresource: "resize" });
  expect(errors).toEqual(['spec.containers[0].resources.claims[0]: Not found: "z": must be one of the names in pod.spec.resourceClaims which is empty']);
});

test("what is long takes as long to look at, and no longer: nobody else is served meanwhile", () => {
  const many = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));
  const keyed = structuredClone(pod({ topologySpreadConstraints: [{ maxSkew: 1, topologyKey: "z", whenUnsatisfiable: "DoNotSchedule", labelSelector: {} }] }));
  keyed.metadata.labels = { app: "x" };
  keyed.spec.topologySpreadConstraints![0]!.matchLabelKeys = many(300_000, () => "app");
  pods.prepareForCreate!(keyed, {} as never);
  expect(keyed.spec.topologySpreadConstraints![0]!.labelSelector!.matchExpressions).toHaveLength(300_000);
  const tolerations = many(12_000, (i) => ({ key: `k${i}`, operator: "Exists" }));
  expect(change({ tolerations }, { tolerations: tolerations.toReversed() })).toEqual([]);
});
