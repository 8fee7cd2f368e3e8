import { afterAll, beforeAll, expect, test } from "vitest";
import { apiServer, type ApiServer, type Asked } from "../../../test/api-server.ts";
import type { AdmissionRequest } from "../../admission/plugin.ts";
import { rbacEscalation } from "../../admission/rbac-escalation.ts";
import { Reinvocation } from "../../admission/reinvocation.ts";
import { builtInResources } from "../../api/schema/resources.ts";
import { statusError } from "../../api/meta/status-error.ts";
import { systemRandom } from "../../lifecycle/random.ts";

let api: ApiServer;
beforeAll(async () => void (api = await apiServer()));
afterAll(() => api[Symbol.asyncDispose]());

const MAPS = "/api/v1/namespaces/a/configmaps";
const PODS = "/api/v1/namespaces/a/pods";

const pod = (name: string, extra: object = {}) => ({ metadata: { name, ...extra }, spec: { containers: [{ name: "c", image: "x" }] } });
const deployment = (name: string, spec: object = {}) => ({
  apiVersion: "apps/v1", kind: "Deployment", metadata: { name },
  spec: { selector: { matchLabels: { app: name } }, template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: "c", image: "x" }] } }, ...spec },
});
const failure = (code: number, reason: string, message: string, details: object = {}) => ({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message, reason, details, code });

test("a created object is answered whole: placed, named, dated, owned", async () => {
  const { code, body } = await api.ask("POST", MAPS, { body: { metadata: { name: "whole", uid: "mine", creationTimestamp: "2001-01-01T00:00:00Z", deletionTimestamp: "2001-01-01T00:00:00Z" }, data: { b: "2", a: "1" } } });
  expect(code).toBe(201);
  expect(body).toEqual({
    kind: "ConfigMap", apiVersion: "v1",
    metadata: {
      name: "whole", namespace: "a", uid: expect.stringMatching(/^[0-9a-f-]{36}$/), resourceVersion: expect.stringMatching(/^\d+$/), creationTimestamp: expect.stringMatching(/^20[2-9]/),
      managedFields: [{ manager: "test", operation: "Update", apiVersion: "v1", time: expect.any(String), fieldsType: "FieldsV1", fieldsV1: { "f:data": { ".": {}, "f:a": {}, "f:b": {} } } }],
    },
    data: { a: "1", b: "2" },
  });
});

test.each<[what: string, path: string, asked: Asked, code: number, reason: string, message: string]>([
  ["a name that is taken", MAPS, { body: { metadata: { name: "taken" } } }, 409, "AlreadyExists", 'configmaps "taken" already exists'],
  ["another namespace", MAPS, { body: { metadata: { name: "x", namespace: "b" } } }, 400, "BadRequest", "the namespace of the provided object does not match the namespace sent on the request"],
  ["a bad name", MAPS, { body: { metadata: { name: "Upper" } } }, 422, "Invalid",
    `ConfigMap "Upper" is invalid: metadata.name: Invalid value: "Upper": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`],
  ["another kind", MAPS, { body: { kind: "Secret", apiVersion: "v1", metadata: { name: "x" } } }, 400, "BadRequest", "Secret in version \"v1\" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion"],
  ["a field nobody knows, strictly", MAPS, { query: { fieldValidation: "Strict" }, body: { metadata: { name: "x" }, spec: {} } }, 400, "BadRequest", 'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "spec"'],
  ["a wrong dryRun", MAPS, { query: { dryRun: "Some" }, body: { metadata: { name: "x" } } }, 422, "Invalid", 'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"'],
  ["a wrong fieldValidation", MAPS, { query: { fieldValidation: "Maybe" }, body: { metadata: { name: "x" } } }, 422, "Invalid", 'CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Maybe": supported values: "", "Ignore", "Strict", "Warn"'],
  ["a manager that cannot be printed", MAPS, { query: { fieldManager: "a\u0007" }, body: { metadata: { name: "x" } } }, 422, "Invalid", 'CreateOptions.meta.k8s.io "" is invalid: fieldManager: Invalid value: "a\\a": invalid character U+0007 (at position 1)'],
  ["a resourceVersion", MAPS, { body: { metadata: { name: "x", resourceVersion: "7" } } }, 500, "", "resourceVersion should not be set on objects to be created"],
  ["an encoding nobody reads", MAPS, { headers: { "content-type": "text/plain" }, body: "x" }, 415, "UnsupportedMediaType",
    "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf"],
])("a create with %s is refused", async (_, path, asked, code, reason, message) => {
  await api.ask("POST", MAPS, { body: { metadata: { name: "taken" } } });
  const told = await api.ask("POST", path, asked);
  expect([told.code, told.body.reason ?? "", told.body.message]).toEqual([code, reason, message]);
});

test("a resourceVersion that is none does no harm to a create", async () => {
  const { code, body } = await api.ask("POST", MAPS, { body: { metadata: { name: "odd-version", resourceVersion: "new" } } });
  expect([code, body.metadata.resourceVersion]).toEqual([201, expect.stringMatching(/^\d+$/)]);
});

test("unknown fields of YAML are told in alphabetical order", async () => {
  const { warnings } = await api.ask("POST", MAPS, { headers: { "content-type": "application/yaml" }, body: "z: 1\nmetadata:\n  name: in-order\n  x: 1\n  b: 1\na: 1\n" });
  expect(warnings).toEqual(['unknown field "a"', 'unknown field "metadata.b"', 'unknown field "metadata.x"', 'unknown field "z"']);
});

test("a name is made up, and another if that is taken, eight times at most", async () => {
  const { body } = await api.ask("POST", MAPS, { body: { metadata: { generateName: "made-" } } });
  expect(body.metadata).toMatchObject({ generateName: "made-", name: expect.stringMatching(/^made-[bcdfghjklmnpqrstvwxz2456789]{5}$/) });

  const again = await api.ask("POST", MAPS, { body: { metadata: { name: body.metadata.name, generateName: "made-" } } });
  expect([again.code, again.body.details.retryAfterSeconds, again.body.message]).toEqual([409, 1, `configmaps "${body.metadata.name}" already exists, the server was not able to generate a unique name for the object`]);

  let drawn = 0, changesAfter = 10; // five letters a name
  await using dull = await apiServer({ random: { ...systemRandom, next: () => (drawn++ < changesAfter ? 0 : 0.5) } });
  await dull.ask("POST", "/api/v1/namespaces", { body: { metadata: { name: "a" } } });
  const name = async (): Promise<unknown> => {
    const told = await dull.ask("POST", MAPS, { body: { metadata: { generateName: "x-" } } });
    return told.body.metadata?.name ?? told.body.message;
  };
  expect([await name(), await name()]).toEqual(["x-bbbbb", "x-rrrrr"]);
  [drawn, changesAfter] = [0, 40];
  expect(await name()).toBe('configmaps "x-bbbbb" already exists, the server was not able to generate a unique name for the object');
});

test("what an object gets from its name it gets from the one it has in the end", async () => {
  let drawn = 0;
  await using dull = await apiServer({ random: { ...systemRandom, next: () => (drawn++ < 10 ? 0 : 0.5) } });
  const spec = { template: { spec: { restartPolicy: "Never", containers: [{ name: "c", image: "i" }] } } };
  const made = async () => (await dull.ask("POST", "/apis/batch/v1/namespaces/a/jobs", { body: { metadata: { generateName: "x-" }, spec } })).body;
  expect((await made()).metadata.name).toBe("x-bbbbb");
  const { metadata: { name, uid }, spec: { template, selector } } = await made();
  expect([name, template.metadata.labels["job-name"], selector.matchLabels]).toEqual(["x-rrrrr", "x-rrrrr", { "batch.kubernetes.io/controller-uid": uid }]);
});

test("unknown fields are warned of, once each", async () => {
  const { warnings, body } = await api.ask("POST", MAPS, { body: '{"metadata":{"name":"warned"},"data":{"a":"1","a":"2"},"nothing":1}' });
  expect(warnings).toEqual(['duplicate field "data.a"', 'unknown field "nothing"']);
  expect(body.data).toEqual({ a: "2" });
});

test.each(builtInResources.rows().filter(({ verbs }) => verbs.includes("create") && verbs.includes("get")))("what has no name is refused for that: $plural of $group/$version", async ({ group, version, namespaced, plural }) => {
  const { code, body } = await api.ask("POST", `${group === "" ? "/api" : `/apis/${group}`}/${version}${namespaced ? "/namespaces/a" : ""}/${plural}`, { body: { spec: {} } });
  expect([code >= 500 ? body.message : "", String(body.message ?? "").includes("undefined")]).toEqual(["", false]);
});

test.each([["policy/v1/namespaces/a/poddisruptionbudgets", 201], ["certificates.k8s.io/v1/certificatesigningrequests", 422]])("%s may have a name in capitals, but none that a path cannot have", async (path, code) => {
  const { body } = await api.ask("POST", `/apis/${path}`, { body: { metadata: { name: "Capitals" }, spec: {} } });
  expect([body.code ?? 201, String(body.message).includes("metadata.name")]).toEqual([code, false]);
  expect((await api.ask("POST", `/apis/${path}`, { body: { metadata: { name: "a%b" }, spec: {} } })).body.message).toContain("may not contain '%'");
});

test("what is refused is warned of too", async () => {
  const { code, warnings } = await api.ask("POST", MAPS, { body: { metadata: { name: "Not Valid" }, nothing: 1 } });
  expect([code, warnings]).toEqual([422, ['unknown field "nothing"']]);
});

test("an owner named twice is named once", async () => {
  const owner = { apiVersion: "v1", kind: "Node", name: "n", uid: "u" };
  const { warnings, body } = await api.ask("POST", MAPS, { body: { metadata: { name: "owned", ownerReferences: [owner, owner, { ...owner, name: "other" }] } } });
  expect(body.metadata.ownerReferences).toEqual([owner, { ...owner, name: "other" }]);
  expect(warnings).toEqual([expect.stringContaining("duplicate UID(s) observed: u")]);
});

test("a dry run of a delete shows what finalizers would make of it", async () => {
  await api.ask("POST", MAPS, { body: { metadata: { name: "held", finalizers: ["a.b/c"] } } });
  const { metadata } = (await api.ask("DELETE", `${MAPS}/held`, { query: { dryRun: "All", propagationPolicy: "Foreground" } })).body;
  expect([metadata.finalizers, metadata.deletionGracePeriodSeconds, typeof metadata.deletionTimestamp]).toEqual([["a.b/c", "foregroundDeletion"], 0, "string"]);
  expect((await api.ask("GET", `${MAPS}/held`)).body.metadata).not.toHaveProperty("deletionTimestamp");
  await api.ask("PATCH", `${MAPS}/held`, { headers: { "content-type": "application/merge-patch+json" }, body: { metadata: { finalizers: null } } });
  await api.ask("DELETE", `${MAPS}/held`);
});

test("a dry run does everything but the write", async () => {
  const made = await api.ask("POST", MAPS, { query: { dryRun: "All" }, body: { metadata: { name: "dry" } } });
  expect([made.code, made.body.metadata.name]).toEqual([201, "dry"]);
  expect(await api.ask("POST", MAPS, { query: { dryRun: "All" }, body: { metadata: { name: "dry", resourceVersion: "7" } } })).toMatchObject({ code: 201, body: { metadata: { resourceVersion: "7" } } }); // that it is new is for the storage to find out
  expect((await api.ask("GET", `${MAPS}/dry`)).body).toEqual(failure(404, "NotFound", 'configmaps "dry" not found', { name: "dry", kind: "configmaps" }));

  await api.ask("POST", MAPS, { body: { metadata: { name: "dry" }, data: { a: "1" } } });
  expect((await api.ask("PUT", `${MAPS}/dry`, { query: { dryRun: "All" }, body: { metadata: { name: "dry" }, data: { a: "2" } } })).body.data).toEqual({ a: "2" });
  expect((await api.ask("DELETE", `${MAPS}/dry`, { body: { apiVersion: "v1", kind: "DeleteOptions", dryRun: ["All"] } })).body.status).toBe("Success");
  expect((await api.ask("DELETE", `${MAPS}/dry`, { query: { dryRun: "All" } })).body.status).toBe("Success");
  expect((await api.ask("GET", `${MAPS}/dry`)).body.data).toEqual({ a: "1" });
});

test("when an object is to go, and how soon, is nobody's to write: leaving it out keeps it, saying otherwise is refused", async () => {
  await api.ask("POST", MAPS, { body: { metadata: { name: "going", finalizers: ["a.b/c"] } } });
  const put = async (metadata: object) => (await api.ask("PUT", `${MAPS}/going`, { body: { metadata: { name: "going", finalizers: ["a.b/c"], ...metadata } } })).body;
  expect((await put({ deletionTimestamp: "2026-01-01T00:00:00Z", deletionGracePeriodSeconds: 5 })).message)
    .toBe('ConfigMap "going" is invalid: [metadata.deletionTimestamp: Invalid value: "2026-01-01T00:00:00Z": field is immutable, metadata.deletionGracePeriodSeconds: Invalid value: 5: field is immutable]');
  await api.ask("DELETE", `${MAPS}/going`);
  const { deletionTimestamp } = (await put({})).metadata;
  expect(deletionTimestamp).toMatch(/Z$/);
  expect((await put({ deletionTimestamp, deletionGracePeriodSeconds: 0 })).metadata).toMatchObject({ deletionTimestamp, deletionGracePeriodSeconds: 0 });
  expect(await put({ finalizers: null })).toMatchObject({ kind: "ConfigMap" });
  expect((await api.ask("GET", `${MAPS}/going`)).code).toBe(404);
});

test("a replacement may create, whatever version it names; of an object that is gone it is refused", async () => {
  const put = (metadata: object) => api.ask("PUT", "/apis/coordination.k8s.io/v1/namespaces/a/leases/l", { body: { metadata: { name: "l", namespace: "a", ...metadata }, spec: { holderIdentity: "h" } } });
  const gone = await put({ uid: "u1", resourceVersion: "5" });
  expect([gone.code, gone.body.reason]).toEqual([409, "Conflict"]);
  expect(gone.body.message).toMatch(/^Operation cannot be fulfilled on leases\.coordination\.k8s\.io "l": StorageError: invalid object, Code: 4, Key: .*, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: u1, UID in object meta: $/);
  const made = await put({ resourceVersion: "5" });
  expect([made.code, made.body.metadata.uid]).toEqual([201, expect.stringMatching(/^[0-9a-f-]{36}$/)]);
  expect((await put({ uid: made.body.metadata.uid, resourceVersion: made.body.metadata.resourceVersion })).code).toBe(200);
});

test("who names a version replaces that one or none; who names none replaces what there is", async () => {
  const { body: first } = await api.ask("POST", MAPS, { body: { metadata: { name: "raced" } } });
  const put = (metadata: object) => api.ask("PUT", `${MAPS}/raced`, { body: { metadata: { name: "raced", ...metadata }, data: { n: String(Math.random()) } } });
  expect((await put({ resourceVersion: first.metadata.resourceVersion })).code).toBe(200);
  expect((await put({ resourceVersion: first.metadata.resourceVersion })).body).toEqual(
    failure(409, "Conflict", 'Operation cannot be fulfilled on configmaps "raced": the object has been modified; please apply your changes to the latest version and try again', { name: "raced", kind: "configmaps" }));
  expect((await put({})).code).toBe(200);
  expect((await put({ uid: "other" })).body.message).toMatch(/^Operation cannot be fulfilled on configmaps "raced": StorageError: invalid object, Code: 4, Key: .*, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: other, UID in object meta: /);
  expect((await put({ uid: "other" })).body.message).toContain(" Key: /registry/configmaps/"); // where upstream has it
  expect((await put({ name: "another" })).body.message).toBe("the name of the object (another) does not match the name on the URL (raced)");
  const same = await api.ask("GET", `${MAPS}/raced`);
  expect((await api.ask("PUT", `${MAPS}/raced`, { body: same.body })).body.metadata.resourceVersion).toBe(same.body.metadata.resourceVersion);
});

test("generation counts changes of the spec; the status has its own door", async () => {
  const path = "/apis/apps/v1/namespaces/a/deployments";
  const { body: made } = await api.ask("POST", path, { body: { ...deployment("counted"), status: { replicas: 9 } } });
  expect([made.metadata.generation, made.status, made.spec.replicas]).toEqual([1, {}, 1]);
  const { body: scaled } = await api.ask("PUT", `${path}/counted`, { body: { ...made, spec: { ...made.spec, replicas: 2 }, status: { replicas: 9 } } });
  expect([scaled.metadata.generation, scaled.status]).toEqual([2, {}]);
  const { body: told } = await api.ask("PUT", `${path}/counted/status`, { body: { ...scaled, metadata: { ...scaled.metadata, annotations: { a: "b" } }, spec: { ...scaled.spec, replicas: 5 }, status: { replicas: 2, observedGeneration: 2 } } });
  expect([told.metadata.generation, told.spec.replicas, told.status]).toEqual([2, 2, { replicas: 2, observedGeneration: 2 }]);
  expect(told.metadata.managedFields.map(({ manager, subresource, fieldsV1 }: { manager: string; subresource?: string; fieldsV1: object }) => [manager, subresource ?? "", Object.keys(fieldsV1)])).toEqual([
    ["test", "", ["f:spec"]], ["test", "status", ["f:metadata", "f:status"]],
  ]);
});

test("generations of a CSIDriver count from what it is created with", async () => {
  const path = "/apis/storage.k8s.io/v1/csidrivers";
  const generations: unknown[] = [];
  for (const [name, generation] of [["restored.a.b", 7], ["new.a.b", undefined]]) {
    const { body } = await api.ask("POST", path, { body: { metadata: { name, generation }, spec: {} } });
    const changed = await api.ask("PUT", `${path}/${name}`, { body: { ...body, spec: { ...body.spec, requiresRepublish: true } } });
    generations.push([body.metadata.generation, changed.body.metadata.generation]);
  }
  expect(generations).toEqual([[7, 8], [undefined, 1]]);
});

test("the count of a DaemonSet's templates is owned by who makes it, and by nobody who applies it", async () => {
  const path = "/apis/apps/v1/namespaces/a/daemonsets";
  const ownersOf = ({ managedFields }: { managedFields: { fieldsV1: Record<string, object> }[] }) => managedFields.map(({ fieldsV1 }) => fieldsV1["f:metadata"]);
  const { body: made } = await api.ask("POST", path, { body: { ...deployment("made"), kind: "DaemonSet" } });
  expect([made.metadata.annotations, ownersOf(made.metadata)]).toEqual([
    { "deprecated.daemonset.template.generation": "1" }, [{ "f:annotations": { ".": {}, "f:deprecated.daemonset.template.generation": {} } }],
  ]);
  const applied = await api.ask("PATCH", `${path}/applied`, { headers: { "content-type": "application/apply-patch+yaml" }, query: { fieldManager: "applier" }, body: { ...deployment("applied"), kind: "DaemonSet" } });
  expect([applied.body.metadata.annotations, ownersOf(applied.body.metadata)]).toEqual([made.metadata.annotations, [undefined]]);
});

test("whoever deletes jobs without a word of their pods is warned, and who says it is not", async () => {
  const ask = (path: string, query: Record<string, string>) => api.ask("DELETE", `/apis/batch/v1/namespaces/a/jobs${path}`, { query });
  const told = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning";
  expect([(await ask("/none", {})).warnings, (await ask("", {})).warnings, (await ask("/none", { propagationPolicy: "Orphan" })).warnings, (await ask("", { orphanDependents: "false" })).warnings]).toEqual([[told], [told], [], []]);
});

test("what a resource resets whatever is sent is nobody's: of requests for certificates all, of a Deployment's status its labels, of others' all metadata", async () => {
  const der = "MIHIMHACAQAwDjEMMAoGA1UEAwwDYW5uMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEoUvxuIdG3Z6qbik1GxvWgKg/0y27nubMHx6EiVCYDcExBjrZ34j5oPmGYCeOIFp6vFb+xRjSbHM7R4ldzEyAsaAAMAoGCCqGSM49BAMCA0gAMEUCIQDv3qcuEzI3LrHxXp9yHAEx9lMIFzgBfWLGPdoPUCY2uwIgGtCovcXdvX0w1pfBAv1FBsewY1CVeodIn8rH992ZtAs=";
  const request = Buffer.from(`-----BEGIN CERTIFICATE REQUEST-----\n${der}\n-----END CERTIFICATE REQUEST-----\n`).toString("base64");
  const made = await api.ask("POST", "/apis/certificates.k8s.io/v1/certificatesigningrequests", { body: { metadata: { name: "ann" }, spec: { request, signerName: "example.com/signer", usages: ["client auth"] } } });
  expect([made.code, made.body.metadata.managedFields]).toEqual([201, undefined]);
  const labelled = async (path: string) => {
    const { body } = await api.ask("PATCH", `${path}/status`, { headers: { "content-type": "application/merge-patch+json" }, query: { fieldManager: "labeller" }, body: { metadata: { labels: { a: "b" }, annotations: { c: "d" } } } });
    return (body.metadata.managedFields as { manager: string; fieldsV1: unknown }[]).find(({ manager }) => manager === "labeller")?.fieldsV1;
  };
  await api.ask("POST", "/apis/apps/v1/namespaces/a/deployments", { body: deployment("labelled", {}) });
  expect(await labelled("/apis/apps/v1/namespaces/a/deployments/labelled")).toEqual({ "f:metadata": { "f:annotations": { ".": {}, "f:c": {} } } });
  await api.ask("POST", "/apis/storage.k8s.io/v1/volumeattachments", { body: { metadata: { name: "labelled" }, spec: { attacher: "a.b", nodeName: "n", source: { persistentVolumeName: "v" } } } });
  expect(await labelled("/apis/storage.k8s.io/v1/volumeattachments/labelled")).toBeUndefined();
});

test("a view is of the object in the path", async () => {
  const path = "/apis/apps/v1/namespaces/a/deployments";
  await api.ask("POST", path, { body: deployment("viewed", {}) });
  const told = await api.ask("PATCH", `${path}/viewed/scale`, { headers: { "content-type": "application/merge-patch+json" }, body: { metadata: { name: "other" } } });
  expect([told.code, told.body.message]).toEqual([400, "the name of the object (other) does not match the name on the URL (viewed)"]);
});

test.each<[path: string, body: object, code: number, message: string]>([
  ["pods/a/binding", { target: { name: "n" } }, 400, "name in URL does not match name in Binding object"],
  ["pods/a/binding", { metadata: { name: "a" }, target: { kind: "Pod" } }, 500, '[target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>", target.name: Required value]'],
  ["bindings", {}, 500, "target.name: Required value"],
])("POST …/%s %j is refused", async (path, body, code, message) => {
  const told = await api.ask("POST", `/api/v1/namespaces/a/${path}`, { body });
  expect([told.code, told.body.message]).toEqual([code, message]);
});

test("through its scale, replicas change hands", async () => {
  const path = "/apis/apps/v1/namespaces/a/deployments";
  await api.ask("PATCH", `${path}/scaled`, { headers: { "content-type": "application/apply-patch+yaml" }, query: { fieldManager: "applier" }, body: deployment("scaled", { replicas: 3 }) });
  const scale = await api.ask("GET", `${path}/scaled/scale`);
  expect(scale.body).toMatchObject({ kind: "Scale", apiVersion: "autoscaling/v1", spec: { replicas: 3 }, status: { replicas: 0, selector: "app=scaled" } });
  const written = await api.ask("PUT", `${path}/scaled/scale`, { query: { fieldManager: "scaler" }, body: { ...scale.body, spec: { replicas: 4 } } });
  expect([written.code, written.body.spec]).toEqual([200, { replicas: 4 }]);
  const { body } = await api.ask("GET", `${path}/scaled`);
  const owners = body.metadata.managedFields as { manager: string; subresource?: string; fieldsV1: { "f:spec": object } }[];
  expect(owners.filter(({ fieldsV1 }) => "f:replicas" in fieldsV1["f:spec"]).map(({ manager, subresource }) => [manager, subresource])).toEqual([["scaler", "scale"]]);
  expect((await api.ask("PATCH", `${path}/scaled/scale`, { headers: { "content-type": "application/merge-patch+json" }, body: { spec: { replicas: -1 } } })).body.message)
    .toBe('Scale.autoscaling "scaled" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0');
  const merged = async (metadata: object) => (await api.ask("PATCH", `${path}/scaled/scale`, { headers: { "content-type": "application/merge-patch+json" }, body: { metadata } })).body;
  expect(await merged({ labels: { "a!": "b" } })).toMatchObject({ code: 422, details: { name: "scaled", group: "autoscaling", kind: "Scale", causes: [{ field: "metadata.labels" }] } });
  expect(await merged({ uid: "u" })).toMatchObject({ code: 409, message: `Operation cannot be fulfilled on deployments/scale.apps "scaled": Precondition failed: UID in precondition: u, UID in object meta: ${scale.body.metadata.uid}` });
});

test.each([[{ uid: "" }, "the UID in the precondition () does not match"], [{ resourceVersion: "" }, "the ResourceVersion in the precondition () does not match"]])("a delete of %j is of no object there is", async (preconditions, why) => {
  await api.ask("POST", MAPS, { body: { metadata: { name: "meant" } } });
  const { code, body } = await api.ask("DELETE", `${MAPS}/meant`, { body: { kind: "DeleteOptions", apiVersion: "v1", preconditions } });
  expect([code, body.message]).toEqual([409, expect.stringContaining(why)]);
  await api.ask("DELETE", `${MAPS}/meant`);
});

test.each([
  ["of a built-in kind", MAPS, [], 0], ["of a built-in kind", MAPS, [{}], 0],
  ["of a custom resource, whose empty lists are as if they had not been sent", "/apis/a.b/v1/namespaces/a/resets", [], 1], ["of a custom resource", "/apis/a.b/v1/namespaces/a/resets", [{}], 0],
])("managedFields %s at %s that are given as %j", async (_, path, managedFields, left) => {
  const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
  await api.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", { body: { metadata: { name: "resets.a.b" }, spec: { group: "a.b", scope: "Namespaced", names: { kind: "Reset", plural: "resets" }, versions: [{ name: "v1", served: true, storage: true, schema }] } } });
  await expect.poll(async () => (await api.ask("GET", "/apis/a.b/v1/resets")).code).toBe(200);
  const made = (await api.ask("POST", path, { body: { ...(path === MAPS ? {} : { apiVersion: "a.b/v1", kind: "Reset" }), metadata: { generateName: "reset-" }, data: { a: "b" } } })).body;
  expect(made.metadata.managedFields).toHaveLength(1);
  const { code, body } = await api.ask("PUT", `${path}/${made.metadata.name}`, { body: { ...made, metadata: { ...made.metadata, managedFields } } });
  expect([code, body.metadata.managedFields?.length ?? 0]).toEqual([200, left]);
});

test("a namespace that is being deleted has no grace period, unlike what is held by finalizers", async () => {
  await api.ask("POST", "/api/v1/namespaces", { body: { metadata: { name: "going" } } });
  const { body } = await api.ask("DELETE", "/api/v1/namespaces/going");
  expect([body.status.phase, typeof body.metadata.deletionTimestamp, body.metadata.deletionGracePeriodSeconds]).toEqual(["Terminating", "string", undefined]);
});

test("a definition that is being deleted is of the generation it was", async () => {
  const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  const schema = { openAPIV3Schema: { type: "object" } };
  await api.ask("POST", CRDS, { body: { metadata: { name: "goers.a.b" }, spec: { group: "a.b", scope: "Namespaced", names: { kind: "Goer", plural: "goers" }, versions: [{ name: "v1", served: true, storage: true, schema }] } } });
  expect((await api.ask("DELETE", `${CRDS}/goers.a.b`)).body.metadata).toMatchObject({ generation: 1, deletionTimestamp: expect.any(String) });
});

test("namespaces and definitions are marked by storages of their own, with words of their own, and a definition says nothing of dependents at first", async () => {
  const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  const schema = { openAPIV3Schema: { type: "object" } };
  await api.ask("POST", CRDS, { body: { metadata: { name: "leavers.a.b", finalizers: ["a.b/hold"] }, spec: { group: "a.b", scope: "Namespaced", names: { kind: "Leaver", plural: "leavers" }, versions: [{ name: "v1", served: true, storage: true, schema }] } } });
  const gone = async (body: object) => (await api.ask("DELETE", `${CRDS}/leavers.a.b`, { body: { kind: "DeleteOptions", apiVersion: "v1", ...body } })).body;
  expect(await gone({ preconditions: { resourceVersion: "1" } })).toMatchObject({ code: 409, details: { kind: "customresourcedefinitions" }, message: expect.stringMatching(/^Operation cannot be fulfilled on customresourcedefinitions.apiextensions.k8s.io "leavers.a.b": Precondition failed: ResourceVersion in precondition: 1, ResourceVersion in object meta: \d+$/) });
  const first = (await gone({ propagationPolicy: "Foreground" })).metadata;
  expect([first.finalizers, first.deletionGracePeriodSeconds]).toEqual([["a.b/hold", "customresourcecleanup.apiextensions.k8s.io"], undefined]);
  const second = (await gone({ propagationPolicy: "Foreground" })).metadata;
  expect([second.finalizers.at(-1), second.deletionGracePeriodSeconds]).toEqual(["foregroundDeletion", 0]);
  await api.ask("POST", "/api/v1/namespaces", { body: { metadata: { name: "meant" } } });
  expect((await api.ask("DELETE", "/api/v1/namespaces/meant", { body: { kind: "DeleteOptions", apiVersion: "v1", preconditions: { uid: "u" } } })).body.message)
    .toMatch(/^Operation cannot be fulfilled on namespaces "meant": Precondition failed: UID in precondition: u, UID in object meta: [0-9a-f-]{36}$/);
});

test("a finalizer holds what is deleted until it is taken away", async () => {
  await api.ask("POST", MAPS, { body: { metadata: { name: "held", finalizers: ["example.com/hold"] } } });
  const deleted = await api.ask("DELETE", `${MAPS}/held`);
  expect(deleted.body.metadata).toMatchObject({ name: "held", deletionTimestamp: expect.any(String), deletionGracePeriodSeconds: 0 });
  expect((await api.ask("POST", MAPS, { body: { metadata: { name: "held" } } })).body.message).toBe('object is being deleted: configmaps "held" already exists');
  const added = await api.ask("PATCH", `${MAPS}/held`, { headers: { "content-type": "application/merge-patch+json" }, body: { metadata: { finalizers: ["example.com/hold", "example.com/late"] } } });
  expect(added.body.message).toBe('ConfigMap "held" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"example.com/late"}');
  expect((await api.ask("PATCH", `${MAPS}/held`, { headers: { "content-type": "application/merge-patch+json" }, body: { metadata: { finalizers: null } } })).code).toBe(200);
  expect((await api.ask("GET", `${MAPS}/held`)).code).toBe(404);
});

test("a pod on a node is given its time, which can be cut short", async () => {
  await api.ask("POST", PODS, { body: { ...pod("graceful"), spec: { ...pod("").spec, nodeName: "n" } } });
  const first = await api.ask("DELETE", `${PODS}/graceful`);
  expect(first.body).toMatchObject({ kind: "Pod", metadata: { deletionGracePeriodSeconds: 30, generation: 2 } });
  expect((await api.ask("DELETE", `${PODS}/graceful`, { query: { gracePeriodSeconds: "60" } })).body.metadata.deletionGracePeriodSeconds).toBe(30);
  expect((await api.ask("DELETE", `${PODS}/graceful`, { body: { gracePeriodSeconds: 5 } })).body.metadata).toMatchObject({ deletionGracePeriodSeconds: 5, generation: 2 });
  expect((await api.ask("DELETE", `${PODS}/graceful`, { query: { gracePeriodSeconds: "0" } })).body).toMatchObject({ kind: "Pod", metadata: { deletionTimestamp: expect.any(String), deletionGracePeriodSeconds: 0, generation: 2 } });
  expect((await api.ask("GET", `${PODS}/graceful`)).code).toBe(404);
});

test.each([
  ["1000000000000", 3_875_820_019_684_212_736n], ["9223372036854775807", -1_000_000_000n], ["31536000000", -5_357_488_147_419_103_232n],
])("a pod with %s seconds of grace is marked by the nanoseconds that fit 64 bits, and may be given less", async (seconds, ns) => {
  const name = `endless-${seconds}`;
  const spec = JSON.stringify({ ...pod(name), spec: { ...pod("").spec, nodeName: "n", terminationGracePeriodSeconds: 0 } }).replace('"terminationGracePeriodSeconds":0', `"terminationGracePeriodSeconds":${seconds}`);
  await api.ask("POST", PODS, { body: spec });
  const { metadata } = (await api.ask("DELETE", `${PODS}/${name}`)).body;
  expect(metadata.deletionGracePeriodSeconds).toBe(Number(seconds));
  expect(Math.abs(Date.parse(metadata.deletionTimestamp) - Date.now() - Number(ns / 1_000_000n))).toBeLessThan(60_000);
  const less = (await api.ask("DELETE", `${PODS}/${name}`, { query: { gracePeriodSeconds: "7" } })).body.metadata;
  expect(less.deletionGracePeriodSeconds).toBe(7);
  expect(Math.abs(Date.parse(less.deletionTimestamp) - Date.now() - 7000)).toBeLessThan(60_000);
});

test.each([["9007199254740991", 2 ** 53], ["9223372036854775806", 2 ** 63], ["9223372036854775807", 2 ** 63]])("what has the generation %s can be changed and deleted", async (generation, next) => {
  const name = `much-changed-${generation}`, drivers = "/apis/storage.k8s.io/v1/csidrivers";
  const made = await api.ask("POST", drivers, { body: `{"metadata":{"name":"${name}","generation":${generation},"finalizers":["a.b/c"]},"spec":{}}` });
  expect(made.code).toBe(201);
  expect(await api.ask("PATCH", `${drivers}/${name}`, { body: { spec: { podInfoOnMount: true } }, headers: { "content-type": "application/merge-patch+json" } })).toMatchObject({ code: 200, body: { metadata: { generation: next } } });
  expect((await api.ask("DELETE", `${drivers}/${name}`)).code).toBe(200);
  expect((await api.ask("PATCH", `${drivers}/${name}`, { body: { metadata: { finalizers: null } }, headers: { "content-type": "application/merge-patch+json" } })).code).toBe(200);
  expect((await api.ask("GET", `${drivers}/${name}`)).code).toBe(404);
});

test("a pod that goes at once is shown as it went", async () => {
  await api.ask("POST", PODS, { body: pod("unplaced") });
  const gone = { kind: "Pod", metadata: { deletionTimestamp: expect.any(String), deletionGracePeriodSeconds: 0, generation: 2 } };
  expect((await api.ask("DELETE", `${PODS}/unplaced`, { query: { dryRun: "All" } })).body).toMatchObject(gone);
  expect((await api.ask("GET", `${PODS}/unplaced`)).body.metadata).not.toHaveProperty("deletionTimestamp");
  expect((await api.ask("DELETE", `${PODS}/unplaced`)).body).toMatchObject(gone);
});

test("what is being deleted has its fields in the API's order", async () => {
  const path = `${PODS}/in-order`;
  await api.ask("POST", PODS, { body: { ...pod("in-order"), spec: { ...pod("").spec, nodeName: "n" } } });
  expect(Object.keys((await api.ask("DELETE", path)).body.metadata).slice(4, 9)).toEqual(["generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields"]);
});

test("who watches is told of a pod that goes as its deletion has left it, and the answer is the same", async () => {
  const { body: created } = await api.ask("POST", PODS, { body: pod("ended") });
  const { body: answer } = await api.ask("DELETE", `${PODS}/ended`, { query: { gracePeriodSeconds: "0" } });
  const [, { type, object }] = await api.events(PODS, 2, { query: { resourceVersion: created.metadata.resourceVersion, fieldSelector: "metadata.name=ended" } });
  expect(type).toBe("DELETED");
  expect(object.metadata).toMatchObject({ deletionTimestamp: expect.any(String), deletionGracePeriodSeconds: 0, generation: 2 });
  expect(Number(object.metadata.resourceVersion)).toBeGreaterThan(Number(created.metadata.resourceVersion));
  expect(answer).toEqual(object);
});

test("a plug-in that spoils who owns what is told of, and undone", async () => {
  const admit = ({ object }: AdmissionRequest): void => { if (object) object.metadata.managedFields = [{ manager: "m", operation: "Update" }]; };
  await using own = await apiServer({ admit });
  const { body, warnings } = await own.ask("POST", MAPS, { body: { metadata: { name: "spoilt" }, data: { a: "1" } } });
  expect(warnings).toEqual([".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission controller; please fix your requests: apiVersion must not be empty"]);
  expect(body.metadata.managedFields).toMatchObject([{ operation: "Update", apiVersion: "v1", fieldsV1: { "f:data": { "f:a": {} } } }]);
});

test("plug-ins are shown objects as they would be stored: with the version a patch has found, whose fields are whose, and the grace a pod will have", async () => {
  const shown: string[] = [];
  const admit = ({ operation, subresource, object, options }: AdmissionRequest): void => {
    const { resourceVersion, managedFields, namespace } = object?.metadata ?? {};
    shown.push([operation, subresource, /^\d+$/.test(resourceVersion ?? "") ? "versioned" : `${resourceVersion}`, namespace ?? "-", managedFields?.map((entry) => entry.subresource ?? "itself").join("+") ?? "-", options?.["gracePeriodSeconds"] ?? "-"].join(" "));
  };
  await using own = await apiServer({ admit });
  const merge = { headers: { "content-type": "application/merge-patch+json" } };
  const apply = { headers: { "content-type": "application/apply-patch+yaml" }, query: { fieldManager: "m" } };
  const ask = async (method: string, path: string, asked: Asked = {}): Promise<string> => {
    const { code } = await own.ask(method, path, asked);
    return `${code} ${shown.splice(0).join()}`;
  };
  expect(await ask("PATCH", `${MAPS}/seen`, { ...apply, body: { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "seen" }, data: { b: "2" } } })).toBe("201 CREATE  undefined a itself -");
  expect(await ask("PATCH", `${MAPS}/seen`, { ...merge, body: { data: { a: "1" } } })).toBe("200 UPDATE  versioned a itself+itself -");
  const DEPLOYMENTS = "/apis/apps/v1/namespaces/a/deployments";
  await ask("POST", DEPLOYMENTS, { body: deployment("seen") });
  expect(await ask("PUT", `${DEPLOYMENTS}/seen/scale`, { body: { metadata: { name: "seen" }, spec: { replicas: 2 } } })).toBe("200 UPDATE scale undefined a scale -");
  expect(await ask("PATCH", `${DEPLOYMENTS}/seen/scale`, { ...merge, body: { spec: { replicas: 3 } } })).toBe("200 UPDATE scale versioned a scale -");
  await ask("POST", PODS, { body: pod("seen") });
  expect(await ask("POST", `${PODS}/seen/binding`, { body: { metadata: { name: "seen" }, target: { name: "n" } } })).toBe("201 CREATE binding undefined a binding -");
  expect(await ask("DELETE", `${PODS}/seen`)).toBe("200 DELETE  undefined - - 30");
  expect(await ask("DELETE", `${PODS}/seen`, { query: { gracePeriodSeconds: "5" } })).toBe("200 DELETE  undefined - - 5");
});

test("a pod that is bound is told so with the code of what is made", async () => {
  await api.ask("POST", PODS, { body: pod("bound") });
  expect(await api.ask("POST", `${PODS}/bound/binding`, { body: { metadata: { name: "bound" }, target: { name: "n" } } })).toMatchObject({ code: 201, body: { kind: "Status", status: "Success", code: 201 } });
});

test("a binding is of the pod it names: its version, and where it has a path of its own its uid", async () => {
  await api.ask("POST", PODS, { body: pod("meant") });
  const bind = async (path: string, metadata: object): Promise<unknown[]> => {
    const { code, body } = await api.ask("POST", path, { query: { dryRun: "All" }, body: { metadata: { name: "meant", ...metadata }, target: { name: "n" } } });
    return [code, body.message?.replace(/^.*AdditionalErrorMsg: /, "").replace(/ in object meta.*/, "")];
  };
  const [own, shared] = [`${PODS}/meant/binding`, PODS.replace(/pods$/, "bindings")];
  for (const path of [own, shared]) {
    expect(await bind(path, { resourceVersion: "1" })).toEqual([409, "Precondition failed: ResourceVersion in precondition: 1, ResourceVersion"]);
    expect(await bind(path, { namespace: "other", name: "x" })).toEqual([400, "the namespace of the provided object does not match the namespace sent on the request"]);
  }
  expect(await bind(own, { uid: "x" })).toEqual([409, "Precondition failed: UID in precondition: x, UID"]);
  expect(await bind(shared, { uid: "x" })).toEqual([201, undefined]);
});

test.each([["configmaps", "binaryData", false], ["configmaps", "data", true], ["secrets", "data", false], ["secrets", "stringData", true]])("of %s that are immutable, %s may be sent as a map of nothing: %s", async (kind, field, may) => {
  const path = `/api/v1/namespaces/a/${kind}`;
  await api.ask("POST", path, { body: { metadata: { name: "frozen" }, immutable: true } });
  for (const headers of [{ "content-type": "application/merge-patch+json" }, { "content-type": "application/strategic-merge-patch+json" }])
    expect((await api.ask("PATCH", `${path}/frozen`, { headers, query: { dryRun: "All" }, body: { [field]: {} } })).code).toBe(may ? 200 : 422);
  const { body } = await api.ask("PUT", `${path}/frozen`, { query: { dryRun: "All" }, body: { metadata: { name: "frozen" }, immutable: true, [field]: {} } });
  expect(body.message?.replace(/^.* is invalid: /, "")).toBe(may ? undefined : `${field}: Forbidden: field is immutable when \`immutable\` is set`);
});

test("a class of the system's is not deleted", async () => {
  const classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
  for (const name of ["system-node-critical", "system-cluster-critical"]) {
    const { code, body } = await api.ask("DELETE", `${classes}/${name}`);
    expect([code, body.message]).toEqual([403, `priorityclasses.scheduling.k8s.io "${name}" is forbidden: this is a system priority class and cannot be deleted`]);
  }
  expect((await api.ask("DELETE", `${classes}/system-other`)).code).toBe(404);
});

test("a delete of something else than was meant does nothing", async () => {
  const { body: made } = await api.ask("POST", MAPS, { body: { metadata: { name: "meant" } } });
  const { uid, resourceVersion } = made.metadata;
  const told = async (preconditions: object) => (await api.ask("DELETE", `${MAPS}/meant`, { body: { preconditions } })).body.message;
  expect(await told({ uid: "u" })).toBe(`Operation cannot be fulfilled on ConfigMap "meant": the UID in the precondition (u) does not match the UID in record (${uid}). The object might have been deleted and then recreated`);
  expect(await told({ resourceVersion: "1" })).toBe(`Operation cannot be fulfilled on ConfigMap "meant": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (${resourceVersion}). The object might have been modified`);
  expect((await api.ask("DELETE", `${MAPS}/meant`, { body: { preconditions: { uid, resourceVersion } } })).body).toEqual({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", details: { name: "meant", kind: "configmaps", uid } });
});

test("how dependents go is a finalizer", async () => {
  const propagated = async (query: Record<string, string>) => {
    await api.ask("POST", MAPS, { body: { metadata: { name: "parent", finalizers: ["example.com/hold"] } } });
    const { code, body } = await api.ask("DELETE", `${MAPS}/parent`, { query });
    await api.ask("PATCH", `${MAPS}/parent`, { headers: { "content-type": "application/merge-patch+json" }, body: { metadata: { finalizers: null } } });
    return code === 422 ? body.message : [code, body.metadata.finalizers];
  };
  expect(await propagated({ propagationPolicy: "Foreground" })).toEqual([200, ["example.com/hold", "foregroundDeletion"]]);
  expect(await propagated({ propagationPolicy: "Orphan" })).toEqual([200, ["example.com/hold", "orphan"]]);
  expect(await propagated({ orphanDependents: "false" })).toEqual([202, ["example.com/hold"]]);
  expect(await propagated({ propagationPolicy: "Sideways" })).toBe('DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Sideways": supported values: "Foreground", "Background", "Orphan", "nil"');
  expect(await propagated({ propagationPolicy: "Orphan", orphanDependents: "true" })).toBe('DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set');
});

test("a collection is deleted as far as its selectors reach, and shown as it was", async () => {
  for (const [name, labels] of [["c1", { of: "it" }], ["c2", { of: "it" }], ["c3", {}]] as const) await api.ask("POST", "/api/v1/namespaces/c/configmaps", { body: { metadata: { name, labels } } });
  const { body } = await api.ask("DELETE", "/api/v1/namespaces/c/configmaps", { query: { labelSelector: "of=it" } });
  expect([body.kind, body.items.map((item: { metadata: { name: string } }) => item.metadata.name)]).toEqual(["ConfigMapList", ["c1", "c2"]]);
  expect((await api.ask("GET", "/api/v1/namespaces/c/configmaps")).body.items.map((item: { metadata: { name: string } }) => item.metadata.name)).toEqual(["c3"]);
});

test.each<[method: string, path: string, code: number]>([
  ["DELETE", "/api/v1/configmaps", 405], ["PUT", "/api/v1/configmaps", 405], ["PATCH", "/api/v1/configmaps", 405], ["POST", "/api/v1/configmaps", 405], ["DELETE", "/api/v1/configmaps/c3", 404], ["POST", "/api/v1/bindings", 404], ["GET", "/api/v1/configmaps", 200],
])("in all namespaces at once nothing is written: %s %s is answered with %i", async (method, path, code) => {
  await api.ask("POST", "/api/v1/namespaces/c/configmaps", { body: { metadata: { name: "c4" } } });
  expect((await api.ask(method, path, { headers: { "content-type": method === "PATCH" ? "application/merge-patch+json" : "application/json" }, body: {} })).code).toBe(code);
  expect((await api.ask("GET", "/api/v1/namespaces/c/configmaps/c4")).code).toBe(200);
});

test("one name is listed in all namespaces, by its field", async () => {
  const { code, body } = await api.ask("GET", "/api/v1/configmaps", { query: { fieldSelector: "metadata.name=c4" } });
  expect([code, (body as { items: { metadata: { name: string } }[] }).items.map(({ metadata }) => metadata.name)]).toEqual([200, ["c4"]]);
});

test("a collection is deleted many at a time, and the first that is refused ends it", async () => {
  let now = 0, most = 0, refusing = true;
  const admit = async ({ operation, oldObject }: AdmissionRequest): Promise<void> => {
    if (operation !== "DELETE") return;
    most = Math.max(most, ++now);
    await Bun.sleep(1);
    now--;
    if (refusing && oldObject?.metadata.name === "m05") throw statusError({ code: 403, reason: "Forbidden", message: "not this one" });
  };
  await using own = await apiServer({ admit });
  for (let i = 0; i < 60; i++) await own.ask("POST", MAPS, { body: { metadata: { name: `m${String(i).padStart(2, "0")}` } } });
  const left = async (): Promise<string[]> => (await own.ask("GET", MAPS)).body.items.map(({ metadata }: { metadata: { name: string } }) => metadata.name);
  expect(await own.ask("DELETE", MAPS)).toMatchObject({ code: 403, body: { message: "not this one" } });
  expect(await left()).toEqual(expect.arrayContaining(["m05", "m40", "m59"]));
  refusing = false;
  expect(await own.ask("DELETE", MAPS)).toMatchObject({ code: 200 });
  expect(await left()).toEqual([]);
  expect([most > 1, now]).toEqual([true, 0]);
});

test("replacements that race without naming a version all happen, each as it was sent", async () => {
  await api.ask("POST", MAPS, { body: { metadata: { name: "racing" } } });
  const told = await Promise.all(Array.from({ length: 12 }, (_, i) => api.ask("PUT", `${MAPS}/racing`, { body: { metadata: { name: "racing", labels: { i: String(i) } }, data: { i: String(i), [`only-${i}`]: "x" } } })));
  expect(told.map(({ code, body }) => [code, body.metadata.labels, body.data])).toEqual(told.map((_, i) => [200, { i: String(i) }, { i: String(i), [`only-${i}`]: "x" }]));
  expect(new Set(told.map(({ body }) => body.metadata.resourceVersion)).size).toBe(told.length);
});

test("a Namespace that is made is told of in the namespace of its name, as one that is changed is", async () => {
  const namespaces: string[] = [];
  await using api = await apiServer({ admit: (request) => void (request.resource === "namespaces" && namespaces.push(`${request.operation} ${request.namespace}`)) });
  await api.ask("POST", "/api/v1/namespaces", { body: { metadata: { name: "made" } } });
  await api.ask("PUT", "/api/v1/namespaces/made", { body: { metadata: { name: "made", labels: { a: "b" } } } });
  expect(namespaces.filter((each) => each.endsWith("made"))).toEqual(["CREATE made", "UPDATE made"]);
});

test("admission is told of what a deletion is bound to, and of what definitions come with", async () => {
  const told: unknown[] = [];
  const note = ({ operation, resource, options, object }: AdmissionRequest): void => {
    if (["namespaces", "configmaps", "customresourcedefinitions"].includes(resource)) told.push(operation === "DELETE" ? [resource, options["preconditions"]] : [resource, (object as { status?: { storedVersions?: unknown } }).status?.storedVersions]);
  };
  await using own = await apiServer({ admit: note });
  const namespace = await own.ask("POST", "/api/v1/namespaces", { body: { metadata: { name: "n" } } });
  await own.ask("DELETE", "/api/v1/namespaces/n");
  await own.ask("POST", MAPS, { body: { metadata: { name: "m" } } });
  await own.ask("DELETE", `${MAPS}/m`);
  const schema = { openAPIV3Schema: { type: "object" } };
  await own.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", { body: { metadata: { name: "ws.example.com" }, spec: { group: "example.com", scope: "Cluster", names: { plural: "ws", kind: "W" }, versions: [{ name: "v1", served: true, storage: true, schema }] } } });
  expect(told).toEqual([["namespaces", undefined], ["namespaces", { uid: namespace.body.metadata.uid }], ["configmaps", undefined], ["configmaps", undefined], ["customresourcedefinitions", ["v1"]]]);
});

test("AppArmor annotations are told to be deprecated where they say more than the fields", async () => {
  const told = async (annotation: string, securityContext: object) => (await api.ask("POST", "/api/v1/namespaces/a/pods", { query: { dryRun: "All" }, body: { metadata: { name: "armed", annotations: { "container.apparmor.security.beta.kubernetes.io/c": annotation } }, spec: { securityContext, containers: [{ name: "c", image: "i" }] } } })).warnings;
  const warning = 'metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: deprecated since v1.30; use the "appArmorProfile" field instead';
  expect([await told("unconfined", {}), await told("unconfined", { appArmorProfile: { type: "Unconfined" } })]).toEqual([[warning], []]);
});

test("options are told in the order upstream has them in", async () => {
  const told: string[] = [];
  await using own = await apiServer({ admit: ({ resource, options }: AdmissionRequest) => void (resource === "configmaps" && told.push(Object.keys(options).join(" "))) });
  await own.ask("POST", MAPS, { body: { metadata: { name: "m" } }, query: { dryRun: "All", fieldManager: "f", fieldValidation: "Ignore" } });
  await own.ask("POST", MAPS, { body: { metadata: { name: "m" } } });
  await own.ask("DELETE", `${MAPS}/m`, { query: { dryRun: "All", propagationPolicy: "Background", gracePeriodSeconds: "0" } });
  expect(told).toEqual(["kind apiVersion dryRun fieldManager fieldValidation", "kind apiVersion", "kind apiVersion gracePeriodSeconds propagationPolicy dryRun"]);
});

test("what etcd would not take is refused in its words, what it takes only without managers goes without, and a trial is not measured", async () => {
  const large = (name: string, mib: number) => deployment(name, { template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: "c", image: "x", env: [{ name: "E", value: "x".repeat(mib * 1024 * 1024) }] }] } } });
  const DEPLOYMENTS = "/apis/apps/v1/namespaces/a/deployments";
  const asked = async (method: string, path: string, asked: Asked) => {
    const { code, body } = await api.ask(method, path, asked);
    return [code, body.reason, code < 400 ? body.metadata.managedFields !== undefined : body.message];
  };
  const refused = [500, undefined, "etcdserver: request is too large"];
  expect(await asked("POST", DEPLOYMENTS, { body: large("fits", 1.49) })).toEqual([201, undefined, true]);
  expect(await asked("POST", DEPLOYMENTS, { body: large("large", 1.5) })).toEqual(refused);
  expect(await asked("POST", DEPLOYMENTS, { query: { dryRun: "All" }, body: large("large", 1.5) })).toEqual([201, undefined, true]);
  expect(await asked("PUT", `${DEPLOYMENTS}/fits`, { body: large("fits", 1.6) })).toEqual(refused);
  expect(await asked("POST", DEPLOYMENTS, { body: large("larger", 2.5) })).toEqual([500, undefined, expect.stringMatching(/^rpc error: code = ResourceExhausted desc = trying to send message larger than max \(2621\d{3} vs\. 2097152\)$/)]);

  const data = Object.fromEntries(Array.from({ length: 8000 }, (_, i) => [`${"k".repeat(100)}${i}`, "x"]));
  expect(await asked("POST", MAPS, { body: { metadata: { name: "many-keys" }, data } })).toEqual([201, undefined, false]);
  expect(await asked("PUT", `${MAPS}/many-keys`, { body: { metadata: { name: "many-keys" }, data: { ...data, a: "1" } } })).toEqual([200, undefined, false]);
  expect(await asked("PATCH", `${MAPS}/many-keys`, { headers: { "content-type": "application/merge-patch+json" }, body: { data: { ...data, b: "1" } } })).toEqual([200, undefined, false]);
  expect(await asked("PATCH", `${MAPS}/applied-keys`, { query: { fieldManager: "m" }, headers: { "content-type": "application/apply-patch+yaml" }, body: { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "applied-keys" }, data } })).toEqual(refused);
});

test("of a ReplicationController that is changed the template is told of that was there before, as upstream has it", async () => {
  const template = (more: object) => ({ metadata: { labels: { a: "b" } }, spec: { containers: [{ name: "c", image: "i" }], ...more } });
  const body = (more: object) => ({ apiVersion: "v1", kind: "ReplicationController", metadata: { name: "rc" }, spec: { selector: { a: "b" }, template: template(more) } });
  const path = "/api/v1/namespaces/default/replicationcontrollers";
  const old = { nodeSelector: { "beta.kubernetes.io/os": "linux" } };
  await api.ask("POST", path, { body: body({}) });
  const warnings = [await api.ask("PUT", `${path}/rc`, { body: body(old) }), await api.ask("PUT", `${path}/rc`, { body: body({}) })].map((answer) => answer.warnings);
  expect(warnings).toEqual([[], ['spec.template.spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead']]);
});

test("integers that no double holds are compared and told with all their digits", async () => {
  const revision = (number: string) => `{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"name":"large"},"revision":1,"data":{"a":${number}}}`;
  const path = "/apis/apps/v1/namespaces/default/controllerrevisions";
  await api.ask("POST", path, { body: revision("9007199254740993") });
  expect((await api.ask("PUT", `${path}/large`, { body: revision("9007199254740993") })).code).toBe(200);
  expect((await api.ask("PUT", `${path}/large`, { body: revision("9007199254740995") })).body.message).toBe('ControllerRevision.apps "large" is invalid: data: Invalid value: {"a":9007199254740995}: field is immutable');
});

test("a permission to escalate the role of a name holds where the path has that name: not for a POST", async () => {
  const asked: (string | undefined)[] = [];
  const guard = rbacEscalation(async ({ name }) => void asked.push(name));
  await using other = await apiServer({ admit: (request) => void (guard.handles(request) && guard.admit!(request, new Reinvocation())) });
  const [roles, body] = ["/apis/rbac.authorization.k8s.io/v1/clusterroles", { metadata: { name: "r" }, rules: [] }];
  await other.ask("POST", roles, { body });
  await other.ask("PUT", `${roles}/r`, { body });
  await other.ask("PATCH", `${roles}/s`, { query: { fieldManager: "test" }, headers: { "content-type": "application/apply-patch+yaml" }, body: { apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", metadata: { name: "s" } } });
  expect(asked).toEqual(["", "r", "s"]);
});

test("a replacement of another object is refused before anybody is asked what they think of it", async () => {
  const asked: string[] = [];
  await using own = await apiServer({ admit: ({ operation, resource }) => { if (operation === "UPDATE" || resource === "leases") asked.push(`${operation} ${resource}`); } });
  await own.ask("POST", MAPS, { body: { metadata: { name: "another" } } });
  const other = await own.ask("PUT", `${MAPS}/another`, { body: { metadata: { name: "another", uid: "u" } } });
  const none = await own.ask("PUT", "/apis/coordination.k8s.io/v1/namespaces/a/leases/none", { body: { metadata: { name: "none", uid: "u" } } });
  await own.ask("POST", "/apis/apps/v1/namespaces/a/deployments", { body: deployment("another") });
  const scale = await own.ask("PUT", "/apis/apps/v1/namespaces/a/deployments/another/scale", { body: { metadata: { name: "another", namespace: "a", uid: "u" }, spec: { replicas: 2 } } });
  expect([other, none, scale].map(({ code, body }) => [code, body.message])).toEqual(Array.from({ length: 3 }, () => [409, expect.stringContaining("Precondition failed: UID in precondition: u, UID in object meta: ")]));
  expect(asked).toEqual([]);
});

test("a webhook that says of an applied object that there is one already is taken at its word", async () => {
  const admit = (): void => { throw statusError({ code: 409, reason: "AlreadyExists", message: "elsewhere" }); };
  await using own = await apiServer({ admit });
  const applied = await own.ask("PATCH", `${MAPS}/twin`, { query: { fieldManager: "m" }, headers: { "content-type": "application/apply-patch+yaml" }, body: { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "twin" } } });
  expect([applied.code, applied.body.message]).toEqual([409, "elsewhere"]);
});

test("what would be made by applying or replacing keeps the version it named, as what would be created does", async () => {
  const query = { fieldManager: "m", dryRun: "All" };
  const applied = await api.ask("PATCH", `${MAPS}/unborn`, { query, headers: { "content-type": "application/apply-patch+yaml" }, body: { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "unborn", resourceVersion: "3" } } });
  const replaced = await api.ask("PUT", "/apis/coordination.k8s.io/v1/namespaces/a/leases/unborn", { query, body: { metadata: { name: "unborn", resourceVersion: "3" } } });
  expect([applied, replaced].map(({ code, body }) => [code, body.metadata.resourceVersion])).toEqual([[201, "3"], [201, "3"]]);
});

test("in what a new object is written is looked at before what is asked for", async () => {
  const told = await api.ask("POST", MAPS, { query: { dryRun: "some" }, headers: { "content-type": "text/plain" }, body: "x" });
  expect([told.code, (await api.ask("PUT", `${MAPS}/x`, { query: { dryRun: "some" }, headers: { "content-type": "text/plain" }, body: "x" })).code]).toEqual([415, 422]);
});

test("a version of what is replaced that cannot be read is refused, also where nothing is to be replaced", async () => {
  const leases = "/apis/coordination.k8s.io/v1/namespaces/a/leases";
  for (const [path, wrong] of [[MAPS, "new"], [leases, "-1"]] as const) {
    if (path === MAPS) await api.ask("POST", MAPS, { body: { metadata: { name: "unread" } } });
    const { code, body } = await api.ask("PUT", `${path}/unread`, { body: { metadata: { name: "unread", resourceVersion: wrong } } });
    expect([code, body.message]).toEqual([500, `strconv.ParseUint: parsing "${wrong}": invalid syntax`]);
  }
});

test("a dry run says where an object is in the storage without where that begins, and keeps a selfLink", async () => {
  await api.ask("POST", MAPS, { body: { metadata: { name: "where" } } });
  const put = (metadata: object, query = {}) => api.ask("PUT", `${MAPS}/where`, { query, body: { metadata: { name: "where", ...metadata } } });
  const dry = { dryRun: "All" };
  expect([(await put({ uid: "x" })).body.message, (await put({ uid: "x" }, dry)).body.message]).toEqual([expect.stringContaining("Key: /registry/configmaps/a/where,"), expect.stringContaining("Key: /configmaps/a/where,")]);
  expect([(await put({ selfLink: "/x" }, dry)).body.metadata.selfLink, (await put({ selfLink: "/x" })).body.metadata.selfLink]).toEqual(["/x", undefined]);
});
