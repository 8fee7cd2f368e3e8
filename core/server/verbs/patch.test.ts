import { afterAll, beforeEach, expect, test } from "vitest";
import { apiServer, type ApiServer } from "../../../test/api-server.ts";
import type { AdmissionRequest } from "../../admission/plugin.ts";
import { replaceIn } from "../../admission/rounds.ts";

let api: ApiServer | undefined;
const PATH = "/apis/apps/v1/namespaces/a/deployments/d";
const TYPES = { json: "application/json-patch+json", merge: "application/merge-patch+json", strategic: "application/strategic-merge-patch+json", apply: "application/apply-patch+yaml" };

const configuration = (spec: object = {}, container: object = {}) => ({
  apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "d" },
  spec: { selector: { matchLabels: { app: "d" } }, template: { metadata: { labels: { app: "d" } }, spec: { containers: [{ name: "c", image: "x", ...container }] } }, ...spec },
});
const patch = (type: keyof typeof TYPES, body: unknown, query: Record<string, string> = {}) => api!.ask("PATCH", PATH, { headers: { "content-type": TYPES[type] }, body, query });
const apply = (manager: string, body: unknown, query: Record<string, string> = {}) => patch("apply", body, { fieldManager: manager, ...query });

beforeEach(async () => {
  await api?.[Symbol.asyncDispose]();
  api = await apiServer();
  await api.ask("POST", PATH.slice(0, -2), { body: configuration({}, { env: [{ name: "A", value: "1" }, { name: "B", value: "2" }] }) });
});
afterAll(() => api?.[Symbol.asyncDispose]());

test("each kind of patch, on the same list", async () => {
  const env = (value: unknown) => ({ spec: { template: { spec: { containers: [{ name: "c", image: "x", env: value }] } } } });
  const now = async () => (await api!.ask("GET", PATH)).body.spec.template.spec.containers[0].env;
  await patch("strategic", env([{ name: "B", value: "3" }, { name: "A", $patch: "delete" }]));
  expect(await now()).toEqual([{ name: "B", value: "3" }]);
  await patch("json", [{ op: "test", path: "/spec/template/spec/containers/0/env/0/name", value: "B" }, { op: "add", path: "/spec/template/spec/containers/0/env/-", value: { name: "C", value: "4" } }]);
  expect(await now()).toEqual([{ name: "B", value: "3" }, { name: "C", value: "4" }]);
  await patch("merge", env([{ name: "D", value: "5" }]));
  expect(await now()).toEqual([{ name: "D", value: "5" }]);
  const { body } = await api!.ask("GET", PATH);
  expect([body.metadata.generation, body.spec.template.spec.containers[0].imagePullPolicy]).toEqual([4, "Always"]);
});

test("a patch that changes nothing writes nothing", async () => {
  const before = (await api!.ask("GET", PATH)).body.metadata.resourceVersion;
  expect((await patch("merge", { spec: { replicas: 1 } })).body.metadata.resourceVersion).toBe(before);
});

test("what is no YAML cannot be applied, in the words of two decoders", async () => {
  expect((await apply("a", "a: b: c")).body).toMatchObject({ code: 400, message: "error decoding YAML: error converting YAML to JSON: yaml: mapping values are not allowed in this context" });
});

test.each<[kind: string, body: object, why: string]>([
  ["Secret", { data: { a: "?" } }, "error decoding from json: illegal base64 data at input byte 0"],
  ["Secret", { metadata: { name: "a", creationTimestamp: "x" } }, 'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'],
  ["Pod", { spec: { containers: [{ name: "c", resources: { limits: { cpu: "1x" } } }] } }, "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"],
  ["Pod", { spec: { activeDeadlineSeconds: 1.5 } }, "cannot convert float64 to int64"],
  ["Service", { spec: { ports: [{ port: 80, targetPort: true }] } }, "json: cannot unmarshal bool into Go value of type int32"],
])("what fits the schema of a %s and is none all the same cannot be applied: %j", async (kind, more, why) => {
  const body = { apiVersion: "v1", kind, metadata: { name: "a" }, ...more };
  const told = await api!.ask("PATCH", `/api/v1/namespaces/default/${kind.toLowerCase()}s/a`, { headers: { "content-type": TYPES.apply }, query: { fieldManager: "m" }, body });
  expect([told.code, told.body.message]).toEqual([500, `failed to convert new object (/a; /v1, Kind=${kind}) to proper version: unable to convert unstructured object to /v1, Kind=${kind}: ${why}`]);
});

test("base64 that is none is told by where its decoder gives up, line breaks counted", async () => {
  for (const [text, at] of [["a\nb", 1], ["YQ==\n?", 5], ["YQ=\nx", 3], ["YWI=\nx", 5], ["YWJj\nYWJ", 5], ["YQ=\n", 4], ["====", 0]] as const)
    expect((await api!.ask("POST", "/api/v1/namespaces/default/secrets", { body: { metadata: { name: "b" }, data: { a: text } } })).body.message).toMatch(new RegExp(`illegal base64 data at input byte ${at}$`));
});

test("raw data is a struct without fields to a strategic merge: maps in it cannot be merged", async () => {
  const revision = { metadata: { name: "raw" }, revision: 1, data: { spec: { a: 1 } } };
  expect((await api!.ask("POST", "/apis/apps/v1/namespaces/default/controllerrevisions", { body: revision })).code).toBe(201);
  const told = await api!.ask("PATCH", "/apis/apps/v1/namespaces/default/controllerrevisions/raw", { headers: { "content-type": TYPES.strategic }, body: { data: { spec: { b: 1 } } } });
  expect([told.code, told.body.message]).toEqual([500, 'unable to find api field in struct RawExtension for the json field "spec"']);
});

test("a map under qualified names is told of as Go calls it", async () => {
  const body = { apiVersion: "resource.k8s.io/v1", kind: "ResourceSlice", metadata: { name: "s" }, spec: { driver: "d", pool: {}, devices: [{ name: "d", attributes: "x" }] } };
  expect((await api!.ask("POST", "/apis/resource.k8s.io/v1/resourceslices", { body })).body.message).toContain("Go struct field Device.spec.devices.attributes of type map[v1.QualifiedName]v1.DeviceAttribute");
});

test("of a key that is no scalar the message has what Go prints of it", async () => {
  const told = async (type: unknown) => (await api!.ask("PATCH", `${PATH}/status`, { headers: { "content-type": TYPES.apply }, query: { fieldManager: "m" }, body: { apiVersion: "apps/v1", kind: "Deployment", status: { conditions: [{ type }] } } })).body.message;
  expect([await told({}), await told([{}])]).toEqual([expect.stringContaining(".status.conditions[type=].type: expected string"), expect.stringContaining(".status.conditions[type=[]].type: expected string")]);
});

test("a quantity is a scalar to who applies it", async () => {
  const body = { apiVersion: "v1", kind: "Pod", metadata: { name: "a" }, spec: { containers: [{ name: "c", image: "i", resources: { limits: { cpu: ["x"] } } }] } };
  const told = await api!.ask("PATCH", "/api/v1/namespaces/default/pods/a", { headers: { "content-type": TYPES.apply }, query: { fieldManager: "m" }, body });
  expect([told.code, told.body.message]).toEqual([500, 'failed to create typed patch object (/a; /v1, Kind=Pod): .spec.containers[name="c"].resources.limits.cpu: expected any scalar, got &{[x]}']);
});

test.each<[what: string, type: keyof typeof TYPES, body: unknown, query: Record<string, string>, code: number, message: string]>([
  ["no patch", "json", "{}", {}, 400, "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"],
  ["no JSON", "merge", "{", {}, 400, "error decoding patch: unexpected end of JSON input"],
  ["no patch, unasked", "json", "{}", { fieldValidation: "Ignore" }, 400, "json: cannot unmarshal object into Go value of type jsonpatch.Patch"],
  ["no operation, unasked", "json", "[5]", { fieldValidation: "Ignore" }, 400, "json: cannot unmarshal number into Go value of type jsonpatch.Operation"],
  ["no JSON, unasked", "merge", "{", { fieldValidation: "Ignore" }, 400, "Invalid JSON Patch"],
  ["a number, unasked", "merge", "5", { fieldValidation: "Ignore" }, 400, "Invalid JSON Patch"],
  ["a list, unasked", "merge", "[]", { fieldValidation: "Ignore" }, 422, ` "" is invalid: patch: Invalid value: "[]": couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct {`],
  ["a list in the object's place", "json", [{ op: "replace", path: "", value: [] }], {}, 422, ` "" is invalid: patch: Invalid value: "[]": couldn't get version/kind; json parse error: json: cannot unmarshal array`],
  ["no version any more, strictly", "json", [{ op: "replace", path: "", value: { kind: "Deployment", spec: {}, metadata: {} } }], { fieldValidation: "Strict" }, 422,
    String.raw` "" is invalid: patch: Invalid value: "{\"kind\":\"Deployment\",\"spec\":{},\"metadata\":{}}": strict decoding error: unknown field "metadata", unknown field "spec"`],
  ["a failing test", "json", [{ op: "test", path: "/spec/replicas", value: 7 }], {}, 422, "the server rejected our request due to an error in our request"],
  ["a wrong type", "merge", { spec: { replicas: "two" } }, {}, 422, ' "" is invalid: patch: Invalid value: "{'],
  ["a strategic wrong type", "strategic", { spec: { replicas: "two" } }, {}, 422, ' "" is invalid: patch: Invalid value: "map[spec:map[replicas:two]]": unrecognized type: int32'],
  ["a strategic kind that is no text", "strategic", { kind: 1 }, {}, 422, ' "" is invalid: patch: Invalid value: "map[kind:1]": cannot convert int64 to string'],
  ["an operation of a number", "json", [{ op: 1, path: "/a" }], {}, 400, "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string"],
  ["an operation of a number, unasked", "json", [{ op: 1, path: "/a" }], { fieldValidation: "Ignore" }, 422, "the server rejected our request due to an error in our request"],
  ["an apply of a key twice, strictly", "apply", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, name: d}", { fieldManager: "m", fieldValidation: "Strict" }, 400,
    'error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  line 3: key "name" already set in map'],
  ["a strategic directive there is none of", "strategic", { spec: { $patch: "nope" } }, {}, 500, "unknown patch type: nope in map: map[$patch:nope]"],
  ["an unknown field, strictly", "merge", { spec: { nothing: 1 } }, { fieldValidation: "Strict" }, 422, ' "" is invalid: patch: Invalid value: "{'],
  ["an invalid object", "merge", { spec: { replicas: -1 } }, {}, 422, 'Deployment.apps "d" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0'],
  ["another name", "merge", { metadata: { name: "e" } }, {}, 400, "the name of the object (e) does not match the name on the URL (d)"],
  ["an old version", "merge", { metadata: { resourceVersion: "1" } }, {}, 409, 'Operation cannot be fulfilled on deployments.apps "d": the object has been modified; please apply your changes to the latest version and try again'],
  ["a version that is none", "merge", { metadata: { resourceVersion: "1x" } }, {}, 500, 'strconv.ParseUint: parsing "1x": invalid syntax'],
  ["no version any more", "json", [{ op: "remove", path: "/apiVersion" }], {}, 400, "the name of the object (d based on URL) was undeterminable: name must be provided"],
  ["a version that none can be", "merge", { metadata: { resourceVersion: "18446744073709551616" } }, {}, 500, 'strconv.ParseUint: parsing "18446744073709551616": value out of range'],
  ["a manager of a long name", "merge", { metadata: { managedFields: [{ manager: "x".repeat(129), operation: "Update", apiVersion: "apps/v1", fieldsType: "FieldsV1", fieldsV1: { "f:spec": {} } }] } }, {}, 422,
    'Deployment.apps "d" is invalid: metadata.managedFields[0].manager: Too long: may not be more than 128 bytes'],
  ["another uid", "merge", { metadata: { uid: "u" } }, {}, 422, 'Deployment.apps "d" is invalid: metadata.uid: Invalid value: "u": field is immutable'],
  ["force", "merge", {}, { force: "true" }, 422, 'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch'],
  ["an apply by nobody", "apply", configuration(), {}, 422, 'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch'],
  ["an apply of a text, as a client sent that encoded twice", "apply", '"{}"', { fieldManager: "m" }, 400,
    "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal string into Go value of type map[string]interface {}"],
  ["an apply of nothing", "apply", null, { fieldManager: "m" }, 400, "invalid object type: /, Kind="],
  ["an apply of another kind", "apply", { apiVersion: "v1", kind: "Pod", metadata: { name: "d" } }, { fieldManager: "m" }, 400, "invalid object type: /v1, Kind=Pod"],
])("a patch with %s is refused", async (_, type, body, query, code, message) => {
  const told = await patch(type, body, query);
  expect([told.code, told.body.message.slice(0, message.length)]).toEqual([code, message]);
});

test("what a strategic patch of nothing changes is nothing", async () => expect((await patch("strategic", "null")).code).toBe(200));

test.each([
  [{ kind: "Foo" }, 'no kind "Foo" is registered for version "apps/v1" in scheme "pkg/api/legacyscheme/scheme.go:30"'],
  [{ apiVersion: "v1", kind: "Pod" }, "converting (v1.Pod) to (apps.Deployment): unknown conversion"],
  [{ apiVersion: 5 }, "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .apiVersion of type string"],
])("a merge patch of %j makes another kind of it, and is refused; a strategic one does not", async (body, why) => {
  const told = await patch("merge", body);
  expect([told.code, told.body.message.slice(-why.length)]).toEqual([422, why]);
  if ("kind" in body) expect((await patch("strategic", body)).body.kind).toBe("Deployment");
});

test("what an apply cannot be made an object of is told by the name it was given", async () => {
  for (const [maxSurge, what] of [[true, "bool"], [[], "array"]] as const) {
    const told = await apply("m", configuration({ strategy: { rollingUpdate: { maxSurge } } }), { force: "true" });
    expect([told.code, told.body.message]).toEqual([500, `failed to convert new object (/d; apps/v1, Kind=Deployment) to proper version: unable to convert unstructured object to apps/v1, Kind=Deployment: json: cannot unmarshal ${what} into Go value of type int32`]);
  }
});

test("an object whose items cannot be told apart has nothing applied to it", async () => {
  const path = "/api/v1/namespaces/a/serviceaccounts";
  const account = { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "s" } };
  await api!.ask("POST", path, { body: { ...account, secrets: [{}] } });
  const told = await api!.ask("PATCH", `${path}/s`, { headers: { "content-type": TYPES.apply }, query: { fieldManager: "m" }, body: account });
  expect([told.code, told.body.message]).toEqual([500,
    'failed to create manager for existing fields: failed to convert new object (a/s; /v1, Kind=ServiceAccount) to smd typed: .secrets: element 0: associative list with keys has an element that omits all key fields ["name"] (and doesn\'t have default values for any key fields)']);
});

test("what is applied may name a version of what is not there", async () => {
  const body = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "made", resourceVersion: "1" } };
  const told = await api!.ask("PATCH", "/api/v1/namespaces/default/configmaps/made", { headers: { "content-type": TYPES.apply }, query: { fieldManager: "m" }, body });
  expect(told.code).toBe(201);
});

test("an unknown kind of patch is upstream's router's to refuse", async () => {
  const told = await api!.ask("PATCH", PATH, { headers: { "content-type": "application/json" }, body: {} });
  expect([told.code, told.body.reason, told.body.message, told.body.details]).toEqual([415, "UnsupportedMediaType", "415: Unsupported Media Type", {}]);
});

test("an autoscaler of which nothing is left but what others own is there in both versions", async () => {
  const path = (version: string) => `/apis/autoscaling/${version}/namespaces/a/horizontalpodautoscalers/all`;
  const spec = { scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "d" }, maxReplicas: 3 };
  const write = (version: string, manager: string) =>
    api!.ask("PATCH", path(version), { headers: { "content-type": TYPES.apply }, query: { fieldManager: manager, force: "true" }, body: { apiVersion: `autoscaling/${version}`, kind: "HorizontalPodAutoscaler", metadata: { name: "all" }, spec } });
  for (const version of ["v2", "v1"]) for (const manager of ["one", "two"]) expect((await write(version, manager)).code).toBeLessThan(300);
});

test("what somebody owns in a version that the kind is not served in is nobody's", async () => {
  const entry = (apiVersion: string) => ({ manager: "other", operation: "Update", apiVersion, fieldsType: "FieldsV1", fieldsV1: { "f:spec": { "f:replicas": {} } }, time: "2026-01-01T00:00:00Z" });
  const managers = async (apiVersion: string) => (await patch("merge", { metadata: { managedFields: [entry(apiVersion)] } })).body.metadata.managedFields?.map(({ manager }: { manager: string }) => manager);
  expect([await managers("apps/v1"), await managers("apps/v9"), await managers("v1")]).toEqual([["other"], undefined, undefined]);
  expect((await patch("merge", { metadata: { managedFields: [entry("apps/v1"), entry("x/y/z")] } })).body.metadata.managedFields).toBeUndefined();
});

test("of a network policy an empty list is another than none, each time it is sent, and none in what is stored", async () => {
  const policies = "/apis/networking.k8s.io/v1/namespaces/a/networkpolicies";
  const policy = { apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy", metadata: { name: "p" }, spec: { podSelector: {} } };
  const generation = async (method: string, body: object) => (await api!.ask(method, `${policies}/p`, { headers: { "content-type": method === "PUT" ? "application/json" : TYPES.merge }, body })).body.metadata.generation as number;
  await api!.ask("POST", policies, { body: policy });
  expect([await generation("PATCH", { spec: { ingress: [] } }), await generation("PATCH", { spec: { ingress: [] } }), await generation("PATCH", { spec: { ingress: null } })]).toEqual([2, 3, 3]);
  expect([await generation("PUT", { ...policy, spec: { podSelector: { matchLabels: {} } } }), await generation("PATCH", { spec: { policyTypes: [] } }), await generation("PATCH", { metadata: { labels: {} } })]).toEqual([4, 4, 4]);
  expect((await api!.ask("GET", `${policies}/p`)).body.spec).toEqual({ podSelector: {}, policyTypes: ["Ingress"] });
  expect((await patch("merge", { spec: { template: { spec: { volumes: [] } } } })).body.metadata.generation).toBe(1);
});

test.each<[what: string, path: string, kind: string, first: object, second: object, owned: object]>([
  ["an empty list", "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies", "networking.k8s.io/v1 NetworkPolicy", { ingress: [{}] }, { ingress: [{ from: [] }] }, { "f:ingress": {} }],
  ["an amount", "/apis/resource.k8s.io/v1/resourceslices", "resource.k8s.io/v1 ResourceSlice", slice({ capacity: { m: { value: "1Gi" } } }), slice({ capacity: { m: { value: "1024Mi" } } }), { "f:devices": {} }],
  ["a time", "/apis/resource.k8s.io/v1/resourceslices", "resource.k8s.io/v1 ResourceSlice", slice({ taints: [{ key: "k", effect: "NoExecute", timeAdded: "2026-01-01T00:00:00Z" }] }), slice({ taints: [{ key: "k", effect: "NoExecute", timeAdded: "2026-01-01T00:00:00.5Z" }] }), { "f:devices": {} }],
])("in a list that is owned as a whole, %s in another spelling makes it the writer's", async (_what, path, named, first, second, owned) => {
  const [apiVersion, kind] = named.split(" ");
  const write = (manager: string, spec: object) => api!.ask("PATCH", `${path}/a`, { headers: { "content-type": manager === "one" ? TYPES.apply : TYPES.merge }, query: { fieldManager: manager }, body: { apiVersion, kind, metadata: { name: "a" }, spec: { ...(kind === "NetworkPolicy" && { podSelector: {} }), ...spec } } });
  await write("one", first);
  expect(ownersOf(await write("two", first))).toEqual(["one"]);
  expect((await write("two", second)).body.metadata.managedFields.find((entry: { manager: string }) => entry.manager === "two").fieldsV1).toEqual({ "f:spec": owned });
});

function slice(device: object): object { return { driver: "a.b", nodeName: "n", pool: { name: "p", generation: 1, resourceSliceCount: 1 }, devices: [{ name: "d", ...device }] }; }
function ownersOf({ body }: { readonly body: { metadata: { managedFields: { manager: string }[] } } }): string[] { return body.metadata.managedFields.map(({ manager }) => manager); }

test("a version that is not served any more is none to be sent, but a patch that names it patches", async () => {
  expect((await api!.ask("PUT", PATH, { body: { ...configuration(), apiVersion: "apps/v1beta2" } })).body).toMatchObject({ code: 400, message: "the API version in the data (apps/v1beta2) does not match the expected API version (apps/v1)" });
  expect((await patch("merge", { apiVersion: "extensions/v1beta1", spec: { replicas: 4 } })).body).toMatchObject({ apiVersion: "apps/v1", spec: { replicas: 4 } });
  const scale = await api!.ask("PATCH", `${PATH}/scale`, { headers: { "content-type": TYPES.merge }, body: { apiVersion: "extensions/v1beta1" } });
  expect(scale.body.message).toMatch(/json: cannot unmarshal string into Go struct field ScaleStatus.status.selector of type map\[string\]string$/);
});

test("a list that is sent empty where the field is always written is no other spec", async () => {
  const volumes = (sources: unknown) => ({ spec: { template: { spec: { volumes: [{ name: "v", projected: { sources } }] } } } });
  const generations = [await patch("merge", volumes([])), await patch("merge", volumes([])), await patch("merge", volumes(null))].map(({ body }) => body.metadata.generation as number);
  expect(generations).toEqual([2, 2, 2]);
});

test("who takes the version from an object is told what is not known of it then", async () => {
  expect((await patch("merge", { apiVersion: null })).warnings).toEqual(["metadata", "spec", "status"].map((name) => `unknown field "${name}"`));
});

test("a custom resource has no strategic merge patch, nor its scale; who tries is told which there are", async () => {
  const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
  const version = { name: "v1", served: true, storage: true, schema, subresources: { scale: { specReplicasPath: ".spec.replicas", statusReplicasPath: ".status.replicas" } } };
  await api!.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", { body: { metadata: { name: "things.a.b" }, spec: { group: "a.b", scope: "Namespaced", names: { kind: "Thing", plural: "things" }, versions: [version] } } });
  await expect.poll(async () => (await api!.ask("GET", "/apis/a.b/v1/things")).code).toBe(200);
  for (const path of ["t", "t/scale"]) {
    const told = await api!.ask("PATCH", `/apis/a.b/v1/namespaces/a/things/${path}`, { headers: { "content-type": TYPES.strategic }, body: {} });
    expect([told.code, told.body.message]).toEqual([415, `the body of the request was in an unknown format - accepted media types include: ${TYPES.json}, ${TYPES.merge}, ${TYPES.apply}`]);
  }
  const things = "/apis/a.b/v1/namespaces/a/things";
  await api!.ask("POST", things, { body: { apiVersion: "a.b/v1", kind: "Thing", metadata: { name: "t" }, spec: { replicas: 0 } } });
  const merge = async (path: string, body: object) => (await api!.ask("PATCH", `${things}/${path}`, { headers: { "content-type": TYPES.merge }, body })).body;
  expect((await merge("t/scale", { apiVersion: null, spec: { replicas: 2 } })).spec).toEqual({ replicas: 2 });
  expect((await merge("t/scale", { kind: "Other" })).message).toContain('no kind "Other" is registered for version "autoscaling/v1" in scheme "k8s.io/client-go/scale/util.go:146"');
  expect((await merge("t", { apiVersion: "v9" })).message).toBe('Thing "t" is invalid: apiVersion: Invalid value: "v9": must be a.b/v1');
  expect((await api!.ask("PUT", `${things}/t/scale`, { body: { kind: "Scale", apiVersion: "autoscaling/v1", metadata: { name: "t" }, spec: { replicas: "2" } } })).body.message).toBe('no kind is registered for the type v1.Scale in scheme "pkg/apiserver/customresource_handler.go:781"');
});

test("who writes in one version owns fields of that version, whichever is stored", async () => {
  const path = (version: string) => `/apis/autoscaling/${version}/namespaces/a/horizontalpodautoscalers`;
  const spec = { scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "d" }, minReplicas: 1, maxReplicas: 3, targetCPUUtilizationPercentage: 70 };
  const owners = ({ body }: { body: { metadata: { managedFields: { manager: string; apiVersion: string; fieldsV1: Record<string, object> }[] } } }) => body.metadata.managedFields.map(({ manager, apiVersion, fieldsV1 }) => [manager, apiVersion, Object.keys(fieldsV1["f:spec"] ?? {}).sort()]);
  const made = await api!.ask("POST", path("v1"), { query: { fieldManager: "one" }, body: { metadata: { name: "h" }, spec } });
  expect(owners(made)).toEqual([["one", "autoscaling/v1", ["f:maxReplicas", "f:minReplicas", "f:scaleTargetRef", "f:targetCPUUtilizationPercentage"]]]);
  const applied = { apiVersion: "autoscaling/v1", kind: "HorizontalPodAutoscaler", metadata: { name: "h" }, spec: { ...spec, targetCPUUtilizationPercentage: 80 } };
  const refused = await api!.ask("PATCH", `${path("v1")}/h`, { headers: { "content-type": TYPES.apply }, query: { fieldManager: "two" }, body: applied });
  expect([refused.code, refused.body.message]).toEqual([409, 'Apply failed with 1 conflict: conflict with "one" using autoscaling/v1: .spec.targetCPUUtilizationPercentage']);
  const next = await api!.ask("PATCH", `${path("v2")}/h`, { headers: { "content-type": TYPES.merge }, query: { fieldManager: "three" }, body: { spec: { metrics: [{ type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 50 } } }] } } });
  expect(owners(next)).toEqual([["one", "autoscaling/v1", ["f:maxReplicas", "f:minReplicas", "f:scaleTargetRef"]], ["three", "autoscaling/v2", ["f:metrics"]]]);
});

test("annotations that one version has for what it has no fields for are not stored", async () => {
  const path = (version: string) => `/apis/autoscaling/${version}/namespaces/a/horizontalpodautoscalers`;
  const behavior = { scaleUp: { policies: [{ type: "Pods", value: 1, periodSeconds: 3 }] } };
  await api!.ask("POST", path("v2"), { body: { metadata: { name: "h" }, spec: { scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "d" }, maxReplicas: 3, behavior } } });
  const { body } = await api!.ask("PATCH", `${path("v1")}/h`, { headers: { "content-type": TYPES.merge }, body: { spec: { minReplicas: 2 } } });
  expect(Object.keys(body.metadata.annotations)).toEqual(["autoscaling.alpha.kubernetes.io/behavior"]);
  expect((await api!.ask("GET", `${path("v2")}/h`)).body.metadata.annotations).toBeUndefined();
});

test("strictness reaches into patches; lenience warns", async () => {
  const warned = await patch("merge", '{"spec":{"replicas":1,"replicas":2,"nothing":1}}');
  expect([warned.code, warned.body.spec.replicas, warned.warnings]).toEqual([200, 2, ['duplicate field "spec.replicas"', 'unknown field "spec.nothing"']]);
  const operation = await patch("json", [{ op: "add", path: "/spec/replicas", value: 2, from: "", note: "x" }]);
  expect([operation.code, operation.warnings]).toEqual([200, ['json patch unknown field "[0].note"']]);
  const strict = await patch("json", '[{"op":"add","op":"replace","path":"/spec/replicas","value":3}]', { fieldValidation: "Strict" });
  expect([strict.code, strict.body.message]).toEqual([422, expect.stringContaining('strict decoding error: json patch duplicate field "[0].op"')]);
});

test("what one applier wants, another cannot take without force", async () => {
  expect((await apply("one", configuration({ replicas: 3 }))).code).toBe(409); // the creator has a say in it too
  expect((await apply("one", configuration({ replicas: 3 }), { force: "true" })).code).toBe(200);
  const { code, body } = await apply("two", configuration({ replicas: 4 }));
  expect(code).toBe(409);
  expect(body).toMatchObject({ reason: "Conflict", message: 'Apply failed with 1 conflict: conflict with "one": .spec.replicas', details: { causes: [{ reason: "FieldManagerConflict", message: 'conflict with "one"', field: ".spec.replicas" }] } });
  expect((await apply("two", configuration({ replicas: 4 }), { force: "true" })).body.spec.replicas).toBe(4);
});

test("what an applier no longer mentions goes, if nobody else wants it", async () => {
  await api!.ask("DELETE", PATH);
  const made = await apply("one", configuration({ replicas: 3 }, { env: [{ name: "A", value: "1" }] }));
  expect(made.code).toBe(201);
  const { code, body } = await apply("one", configuration());
  expect([code, body.spec.replicas, body.spec.template.spec.containers[0].env]).toEqual([200, 1, undefined]);
  expect((await apply("one", configuration())).body.metadata.resourceVersion).toBe(body.metadata.resourceVersion);
});

test("an apply creates what is not there, but not with somebody else's uid", async () => {
  await api!.ask("DELETE", PATH);
  const told = await apply("one", { ...configuration(), metadata: { name: "d", uid: "u" } });
  expect([told.code, told.body.message]).toEqual([409, 'Operation cannot be fulfilled on deployments.apps "d": uid mismatch: the provided object specified uid u, and no existing object was found']);
  expect((await patch("merge", { spec: {} })).code).toBe(404);
});

test.each<[type: keyof typeof TYPES]>([["json"], ["merge"], ["strategic"]])("a %s patch of what is not there is not looked at", async (type) => {
  expect((await patch(type, "{")).code).toBe(400);
  await api!.ask("DELETE", PATH);
  expect((await patch(type, "{")).body).toMatchObject({ code: 404, message: 'deployments.apps "d" not found' });
});

test("an integer too large for its field is wrapped, as Go converts it, where a patch makes values", async () => {
  const applied = async (replicas: string) => (await patch("apply", JSON.stringify(configuration({ replicas: "N" })).replace('"N"', replicas), { fieldManager: "m", force: "true" })).body;
  expect((await applied("4294967299")).spec.replicas).toBe(3);
  expect((await applied("-2147483649")).spec.replicas).toBe(2147483647);
  expect((await applied("1e19")).spec.replicas).toBe(0);
  expect(await applied("2147483648")).toMatchObject({ code: 422, message: 'Deployment.apps "d" is invalid: spec.replicas: Invalid value: -2147483648: must be greater than or equal to 0' });
  expect((await patch("strategic", { spec: { template: { spec: { terminationGracePeriodSeconds: 2 ** 53, priority: 2 ** 32 + 7 } } } })).body.spec.template.spec).toMatchObject({ terminationGracePeriodSeconds: 2 ** 53, priority: 7 });
  expect((await patch("merge", { spec: { replicas: 4294967299 } })).code).toBe(422);
});

test("who creates by applying may say that it is being deleted", async () => {
  await api!.ask("DELETE", PATH);
  const dying = { ...configuration(), metadata: { name: "d", deletionTimestamp: "2020-01-01T00:00:00Z", deletionGracePeriodSeconds: 5, finalizers: ["a/b"] } };
  expect((await apply("m", dying)).body.metadata).toMatchObject(dying.metadata);
  await api!.ask("POST", PATH.slice(0, -2), { body: { ...dying, metadata: { ...dying.metadata, name: "e" } } });
  expect((await api!.ask("GET", `${PATH.slice(0, -1)}e`)).body.metadata).not.toHaveProperty("deletionTimestamp");
});

test("whole numbers that are not written so count in patches that make values, and not in those that make a text", async () => {
  const unfit = "json: cannot unmarshal number 2.0 into Go struct field DeploymentSpec.spec.replicas of type int32";
  expect((await patch("merge", `{"spec":{"replicas":2.0}}`)).body).toMatchObject({ code: 422, details: { causes: [{ field: "patch", message: expect.stringMatching(new RegExp(`${RegExp.escape(unfit)}$`)) }] } });
  expect((await patch("json", `[{"op":"replace","path":"/spec/replicas","value":2.0}]`)).body).toMatchObject({ code: 422, message: expect.stringMatching(new RegExp(`${RegExp.escape(unfit)}$`)) });
  expect((await patch("json", `[{"op":"add","path":"/spec/template/spec/containers/0/ports","value":[{"containerPort":8e1}]}]`)).body.message)
    .toMatch("json: cannot unmarshal number 8e1 into Go struct field ContainerPort.spec.template.spec.containers.ports.containerPort of type int32");
  expect((await patch("strategic", `{"spec":{"replicas":3.0}}`)).body.spec.replicas).toBe(3);
  expect((await apply("m", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"replicas":4e0}}`, { force: "true" })).body.spec.replicas).toBe(4);
  expect((await patch("json", `[{"op":"add","path":"/spec/replicas","value":1e400}]`)).body).toMatchObject({ code: 400, message: "error decoding patch: json: cannot unmarshal number 1e400 into Go struct field jsonPatchOp.value of type float64" });
  expect((await patch("strategic", `{"spec":{"replicas":1e400}}`)).body).toMatchObject({ code: 400, message: "json: cannot unmarshal number 1e400 into Go value of type float64" });
});

test("a custom resource is written as a map: all keys in order, in a list too; its metadata alone is as any object's", async () => {
  const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
  await api!.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", { body: { metadata: { name: "maps.a.b" }, spec: { group: "a.b", scope: "Namespaced", names: { kind: "Map", plural: "maps" }, versions: [{ name: "v1", served: true, storage: true, schema }] } } });
  const path = "/apis/a.b/v1/namespaces/a/maps";
  await expect.poll(async () => (await api!.ask("GET", path)).code).toBe(200);
  const keys = (object: { metadata: object }): string => `${Object.keys(object).join()} ${Object.keys(object.metadata).join()}`;
  const metadata = "creationTimestamp,finalizers,generation,labels,managedFields,name,namespace,resourceVersion,uid";
  const made = await api!.ask("POST", path, { body: { apiVersion: "a.b/v1", kind: "Map", metadata: { name: "m", labels: { a: "b" }, finalizers: ["a.b/c"] }, z: 1, a: 2 } });
  expect(keys(made.body)).toBe(`a,apiVersion,kind,metadata,z ${metadata}`);
  expect(keys((await api!.ask("GET", `${path}/m`)).body)).toBe(`a,apiVersion,kind,metadata,z ${metadata}`);
  const { body: list } = await api!.ask("GET", path);
  expect([keys(list), keys(list.items[0])]).toEqual(["apiVersion,items,kind,metadata continue,resourceVersion", `a,apiVersion,kind,metadata,z ${metadata}`]);
  expect((await api!.events(path, 1)).map(({ object }) => keys(object))).toEqual([`a,apiVersion,kind,metadata,z ${metadata}`]);
  const alone = await api!.ask("GET", `${path}/m`, { headers: { accept: "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io" } });
  expect(keys(alone.body)).toBe("kind,apiVersion,metadata name,namespace,uid,resourceVersion,generation,creationTimestamp,labels,finalizers,managedFields");
  expect(Object.keys((await api!.ask("DELETE", `${path}/m`)).body.metadata)).toEqual(metadata.replace("finalizers", "deletionGracePeriodSeconds,deletionTimestamp,finalizers").split(","));

  const patched = async (...operations: object[]) => (await api!.ask("PATCH", `${path}/m`, { headers: { "content-type": TYPES.json }, body: operations })).body;
  expect(await patched({ op: "replace", path: "/kind", value: 5 })).toMatchObject({ code: 422, message: expect.stringMatching(/: couldn't get version\/kind; json parse error: json: cannot unmarshal number into Go struct field .kind of type string$/) });
  expect(await patched({ op: "remove", path: "/kind" })).toMatchObject({ code: 422, message: expect.stringContaining("Object 'Kind' is missing in '{") });
  expect(await patched({ op: "replace", path: "/apiVersion", value: "a/b/c" })).toMatchObject({ code: 422, message: expect.stringContaining(": unexpected GroupVersion string: a/b/c") });
  expect(await patched({ op: "remove", path: "/apiVersion" })).toMatchObject({ code: 500, message: "Internal error occurred: Object 'apiVersion' is missing in 'object has no apiVersion field'" });
  expect((await api!.ask("GET", path, { query: { fieldSelector: "a=b" } })).body.message).toBe("field label not supported: a");
});

test("a strategic merge patch leaves arbitrary JSON in the order of its keys, and a state that never changes is another one then", async () => {
  const classes = "/apis/resource.k8s.io/v1/deviceclasses";
  const config = [{ opaque: { driver: "d.example.com", parameters: { z: 1, a: { y: 1, b: 2 } } } }];
  const parameters = ({ body }: { body: { spec: { config: { opaque: { parameters: object } }[] } } }): string => JSON.stringify(body.spec.config[0]!.opaque.parameters);
  expect(parameters(await api!.ask("POST", classes, { body: { metadata: { name: "c" }, spec: { config } } }))).toBe('{"z":1,"a":{"y":1,"b":2}}');
  expect(parameters(await api!.ask("PATCH", `${classes}/c`, { headers: { "content-type": TYPES.merge }, body: { metadata: { labels: { a: "b" } } } }))).toBe('{"z":1,"a":{"y":1,"b":2}}');
  expect(parameters(await api!.ask("PATCH", `${classes}/c`, { headers: { "content-type": TYPES.strategic }, body: { metadata: { labels: { a: "c" } } } }))).toBe('{"a":{"b":2,"y":1},"z":1}');

  const revisions = "/apis/apps/v1/namespaces/a/controllerrevisions";
  await api!.ask("POST", revisions, { body: { metadata: { name: "r" }, revision: 1, data: { z: 1, a: 2 } } });
  expect((await api!.ask("PATCH", `${revisions}/r`, { headers: { "content-type": TYPES.merge }, body: { metadata: { labels: { a: "b" } } } })).code).toBe(200);
  expect((await api!.ask("PATCH", `${revisions}/r`, { headers: { "content-type": TYPES.strategic }, body: { metadata: { labels: { a: "c" } } } })).body.message)
    .toBe('ControllerRevision.apps "r" is invalid: data: Invalid value: {"a":2,"z":1}: field is immutable');
});

test("a list that is sent empty is empty for plug-ins, and none once it is stored", async () => {
  const seen: unknown[] = [];
  const note = ({ object }: { object: unknown }): void => void seen.push((object as { endpoints: unknown }).endpoints);
  await using own = await apiServer({ admit: note, validate: note });
  const path = "/apis/discovery.k8s.io/v1/namespaces/a/endpointslices";
  const slice = { metadata: { name: "s" }, addressType: "IPv4", endpoints: [], ports: [] };
  const { body: made } = await own.ask("POST", path, { body: slice });
  const { body: again } = await own.ask("PUT", `${path}/s`, { body: slice });
  await own.ask("PATCH", `${path}/s`, { headers: { "content-type": TYPES.merge }, body: { metadata: { labels: { a: "b" } } } });
  expect([made, again].map(({ endpoints, ports }) => [endpoints, ports])).toEqual([[null, null], [null, null]]);
  expect(seen).toEqual([[], [], [], [], null, null]);
});

test("a value that an operation of a JSON patch has no use for is not looked at", async () => {
  expect((await patch("json", [{ op: "remove", path: "/spec/replicas", value: 1.5 }])).body).toMatchObject({ kind: "Deployment", spec: { replicas: 1 } });
});

test("patches that race all happen, also where a webhook makes the whole object anew", async () => {
  const admit = ({ operation, object }: AdmissionRequest): void => {
    if (operation === "UPDATE") replaceIn(object!, structuredClone({ ...object! }));
  };
  await using own = await apiServer({ admit });
  const maps = "/api/v1/namespaces/a/configmaps";
  await own.ask("POST", maps, { body: { metadata: { name: "m" } } });
  const told = await Promise.all(Array.from({ length: 12 }, (_, i) => own.ask("PATCH", `${maps}/m`, { headers: { "content-type": TYPES.merge }, body: { data: { [`k${i}`]: "x" } } })));
  expect(told.map(({ code }) => code)).toEqual(told.map(() => 200));
  expect(Object.keys((await own.ask("GET", `${maps}/m`)).body.data)).toHaveLength(12);
});

test("a JSON patch that replaces all metadata names the version that is in it", async () => {
  const named = (resourceVersion: string) => patch("json", [{ op: "add", path: "/metadata", value: { name: "d", resourceVersion } }]);
  expect([(await named("1")).code, (await named("x")).body.message]).toEqual([409, 'strconv.ParseUint: parsing "x": invalid syntax']);
});
