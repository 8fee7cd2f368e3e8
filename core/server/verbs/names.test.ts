/** What objects may be called, what may be written on them, and who they are: by what the API answers. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { apiServer, type ApiServer } from "../../../test/api-server.ts";

let api: ApiServer;
beforeAll(async () => {
  api = await apiServer();
});
afterAll(() => api[Symbol.asyncDispose]());

const MAPS = "/api/v1/namespaces/a/configmaps";
const ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const SUBDOMAIN = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const NAME_PART = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

const create = async (path: string, metadata: object, rest: object = {}) => {
  const { code, body } = await api.ask("POST", path, { body: { metadata, ...rest } });
  return { code, metadata: body.metadata, message: body.message as string | undefined };
};
const invalid = (subject: string, message: string) => ({ code: 422, message: `${subject} is invalid: ${message}` });

test.each<[path: string, name: string]>([
  [MAPS, "a"], [MAPS, "0.a-b.c"], [MAPS, "a".repeat(253)], [ROLES, "system:x"], [ROLES, "A_b"],
])("%s may be called %s", async (path, name) => {
  expect(await create(path, { name })).toMatchObject({ code: 201, metadata: { name } });
});

test("a disruption budget's metadata is looked at once nothing else is wrong with it", async () => {
  const path = "/apis/policy/v1/namespaces/a/poddisruptionbudgets";
  expect(await create(path, {}, { spec: { minAvailable: -1 } })).toMatchObject(invalid('PodDisruptionBudget.policy ""', "spec.minAvailable: Invalid value: -1: must be greater than or equal to 0"));
  expect(await create(path, {}, { spec: { minAvailable: 1 } })).toMatchObject(invalid('PodDisruptionBudget.policy ""', "metadata.name: Required value: name or generateName is required"));
  expect(await create(path, { name: "A_%", finalizers: ["any"] }, { spec: { minAvailable: 1 } })).toMatchObject(invalid('PodDisruptionBudget.policy "A_%"', `metadata.name: Invalid value: "A_%": may not contain '%'`));
});

test.each<[path: string, name: string | undefined, subject: string, message: string]>([
  [MAPS, "A", 'ConfigMap "A"', `metadata.name: Invalid value: "A": ${SUBDOMAIN}`],
  [MAPS, "a_b", 'ConfigMap "a_b"', `metadata.name: Invalid value: "a_b": ${SUBDOMAIN}`],
  [MAPS, "-a", 'ConfigMap "-a"', `metadata.name: Invalid value: "-a": ${SUBDOMAIN}`],
  [MAPS, "a".repeat(254), `ConfigMap "${"a".repeat(254)}"`, `metadata.name: Invalid value: "${"a".repeat(254)}": must be no more than 253 characters`],
  ["/apis/resource.k8s.io/v1/deviceclasses", "a".repeat(254), `DeviceClass.resource.k8s.io "${"a".repeat(254)}"`, `metadata.name: Invalid value: "${"a".repeat(254)}": must be no more than 253 bytes`],
  [MAPS, undefined, 'ConfigMap ""', "metadata.name: Required value: name or generateName is required"],
  ["/api/v1/namespaces", "a.b", 'Namespace "a.b"', 'metadata.name: Invalid value: "a.b": must not contain dots'],
  ["/api/v1/namespaces", "A", 'Namespace "A"', `metadata.name: Invalid value: "A": ${LABEL}`],
  [ROLES, ".", 'ClusterRole.rbac.authorization.k8s.io "."', `metadata.name: Invalid value: ".": may not be '.'`],
  [ROLES, "..", 'ClusterRole.rbac.authorization.k8s.io ".."', `metadata.name: Invalid value: "..": may not be '..'`],
  [ROLES, "a/b", 'ClusterRole.rbac.authorization.k8s.io "a/b"', `metadata.name: Invalid value: "a/b": may not contain '/'`],
  [ROLES, "a%b", 'ClusterRole.rbac.authorization.k8s.io "a%b"', `metadata.name: Invalid value: "a%b": may not contain '%'`],
])("%s must not be called %s", async (path, name, subject, message) => {
  expect(await create(path, { name })).toMatchObject(invalid(subject, message));
});

test.each<[what: string, metadata: object, message: string | undefined]>([
  ["a value may be empty, a prefix is a domain, a name has letters of both cases", { labels: { a: "", "example.com/Some_Name.1": "Value_1.x" } }, undefined],
  ["63 characters of a name and of a value", { labels: { [`example.com/${"a".repeat(63)}`]: "v".repeat(63) } }, undefined],
  ["annotations hold anything", { annotations: { "Example.COM/Url": "https://example.com/?a=b c&d\n{}", empty: "" } }, undefined],
  ["256 KiB of annotations", { annotations: { a: "x".repeat(262_143) } }, undefined],
  ["a key that begins wrongly", { labels: { "-a": "b" } }, `metadata.labels: Invalid value: "-a": ${NAME_PART}`],
  ["a name of 64 characters", { labels: { ["a".repeat(64)]: "" } }, `metadata.labels: Invalid value: "${"a".repeat(64)}": name part must be no more than 63 bytes`],
  ["a prefix that is no domain", { labels: { "Upper/x": "" } }, `metadata.labels: Invalid value: "Upper/x": prefix part ${SUBDOMAIN}`],
  ["a prefix of nothing", { labels: { "/x": "" } }, 'metadata.labels: Invalid value: "/x": prefix part must be non-empty'],
  ["a value with a space", { labels: { a: "b c" } }, `metadata.labels: Invalid value: "b c": ${VALUE}`],
  ["a value of 64 characters", { labels: { a: "v".repeat(64) } }, `metadata.labels: Invalid value: "${"v".repeat(64)}": must be no more than 63 bytes`],
  ["an annotation's key is a label's", { annotations: { "a b": "" } }, `metadata.annotations: Invalid value: "a b": ${NAME_PART}`],
  ["more than 256 KiB of annotations", { annotations: { a: "x".repeat(262_144) } }, "metadata.annotations: Too long: may not be more than 262144 bytes"],
  ["a finalizer without a domain", { finalizers: ["nodomain"] }, 'metadata.finalizers[0]: Invalid value: "nodomain": name is neither a standard finalizer name nor is it fully qualified'],
  ["a generation that its kind does not count", { generation: 5 }, undefined],
  ["a generation before the first", { generation: -1 }, "metadata.generation: Invalid value: -1: must be greater than or equal to 0"],
  ["both of the garbage collector's finalizers", { finalizers: ["orphan", "foregroundDeletion"] }, 'metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and foregroundDeletion cannot be both set'],
  ["an owner without a name", { ownerReferences: [{ apiVersion: "v1", kind: "Pod", name: "", uid: "1" }] }, 'metadata.ownerReferences.name: Invalid value: "": must not be empty'],
  ["an owner of a version that cannot be one", { ownerReferences: [{ apiVersion: "a/b/c", kind: "Pod", name: "a", uid: "1" }] }, 'metadata.ownerReferences.apiVersion: Invalid value: "a/b/c": version must not be empty'],
  ["an owner that cannot be one", { ownerReferences: [{ apiVersion: "v1", kind: "Event", name: "a", uid: "1" }] }, 'metadata.ownerReferences: Invalid value: {"apiVersion":"v1","kind":"Event","name":"a","uid":"1"}: /v1, Kind=Event is disallowed from being an owner'],
  ["two that control", { ownerReferences: ["a", "b"].map((name) => ({ apiVersion: "v1", kind: "Pod", name, uid: name, controller: true })) },
    'metadata.ownerReferences: Invalid value: [{"apiVersion":"v1","kind":"Pod","name":"a","uid":"a","controller":true},{"apiVersion":"v1","kind":"Pod","name":"b","uid":"b","controller":true}]: Only one reference can have Controller set to true. Found "true" in references for Pod/a and Pod/b'],
])("written on an object: %s", async (_, metadata, message) => {
  const name = "labelled";
  const told = await create(MAPS, { name, ...metadata });
  expect(told).toMatchObject(message === undefined ? { code: 201, metadata: { name, ...metadata } } : invalid('ConfigMap "labelled"', message));
  if (message === undefined) await api.ask("DELETE", `${MAPS}/${name}`);
});

test.each<[path: string, body: object, message: string | undefined]>([
  ["/apis/policy/v1/namespaces/a/poddisruptionbudgets", { metadata: { name: "a", finalizers: ["nodomain"] } }, undefined],
  ["/apis/coordination.k8s.io/v1/namespaces/a/leases", { metadata: { name: "a", finalizers: ["nodomain"] } }, undefined],
  ["/apis/resource.k8s.io/v1/deviceclasses", { metadata: { generateName: "A/", name: "a" } }, `metadata.generateName: Invalid value: "A/": may not contain '/'`],
  [MAPS, { metadata: { generateName: "-", name: "a" } }, `metadata.generateName: Invalid value: "-": ${SUBDOMAIN}`],
  [MAPS, { metadata: { generateName: "a_-", name: "masked" } }, undefined],
  ["/apis/apiregistration.k8s.io/v1/apiservices", { metadata: { name: "other" }, spec: { group: "x.io", version: "v1", service: { namespace: "a", name: "s" }, groupPriorityMinimum: 1, versionPriority: 1, insecureSkipTLSVerify: true } }, 'metadata.name: Invalid value: "other": must be `spec.version+"."+spec.group`: "v1.x.io"'],
  ["/apis/apiregistration.k8s.io/v1/apiservices", { metadata: { name: "a/b" }, spec: { group: "x.io", version: "v1", service: { namespace: "a", name: "s" }, groupPriorityMinimum: 1, versionPriority: 1, insecureSkipTLSVerify: true } }, `metadata.name: Invalid value: "a/b": may not contain '/'`],
])("not every kind asks the same of its metadata: %s %j", async (path, body, message) => {
  const told = (await api.ask("POST", path, { query: { dryRun: "All" }, body })).body as { message?: string };
  expect(told.message?.replace(/^.*? is invalid: /, "")).toBe(message);
});

test("an address is its object's name, however it is given", async () => {
  const told = await create("/apis/networking.k8s.io/v1/ipaddresses", { generateName: "10.9.8.7" }, { spec: { parentRef: { resource: "services", name: "a" } } });
  expect(told).toMatchObject({ code: 201, metadata: { name: "10.9.8.7" } });
});

test("what has no name is not called undefined", async () => {
  const containers = [{ name: "c", image: "i" }];
  const job = await create("/apis/batch/v1/namespaces/a/jobs", {}, { spec: { completionMode: "Indexed", completions: 3, template: { spec: { restartPolicy: "Never", containers } } } });
  expect(job.message).toContain(`metadata.name: Invalid value: "": will not able to create pod with invalid DNS label: -2`);
  const definition = await create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {}, { spec: { group: "a.b", scope: "Namespaced", names: { kind: "A", plural: "as" }, versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: { type: "object" } } }] } });
  expect(definition.message).toBe('CustomResourceDefinition.apiextensions.k8s.io "" is invalid: metadata.name: Required value: name or generateName is required');
  expect(await create("/api/v1/namespaces/a/bindings", {}, { target: { kind: "Node", name: "n" } })).toMatchObject({ code: 400, message: "Name parameter required." });
});

test("a name is one object's of its kind and namespace, again and again, and each has a UID of its own, whatever it asks for", async () => {
  const made = [
    await create(MAPS, { name: "same", uid: "mine" }),
    await create(MAPS.replace("/a/", "/b/"), { name: "same" }),
    await create("/api/v1/namespaces/a/secrets", { name: "same" }),
  ];
  expect(made.map(({ code }) => code)).toEqual([201, 201, 201]);
  expect(await create(MAPS, { name: "same" })).toMatchObject({ code: 409, message: 'configmaps "same" already exists' });
  await api.ask("DELETE", `${MAPS}/same`);
  const uids = [...made, await create(MAPS, { name: "same" })].map(({ metadata }) => metadata.uid as string);
  expect(new Set(uids).size).toBe(4);
  for (const uid of uids) expect(uid).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
});
