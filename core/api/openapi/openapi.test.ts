import { gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { builtInResources, type ResourceRow } from "../schema/resources.ts";
import { OpenApiDocuments } from "./documents.ts";
import { encodeOpenApiV2 } from "./v2-protobuf.ts";
import { encodeOpenApiV3 } from "./v3-protobuf.ts";
import { SharedParameters } from "./shared-parameters.ts";
import { openApiV2, writeOpenApiV2 } from "./v2.ts";
import { openApiV3 } from "./v3.ts";

const SERVER = { version: "1.36" };
const APPS = { group: "apps", version: "v1" };
const CRONTABS: ResourceRow = {
  group: "stable.example.com", version: "v1", plural: "crontabs", singular: "crontab", kind: "CronTab", shortNames: [], categories: [], namespaced: true,
  verbs: ["create", "get", "list", "patch", "watch"], subresources: [], storageVersionHash: undefined, returnsDeleted: true, custom: true,
};
const CRONTAB_VERSION = { group: CRONTABS.group, version: "v1", groupPriority: 1000, versionPriority: 100 };
const CRONTAB_SCHEMA = { type: "object", properties: { spec: { type: "object", properties: { every: { "x-kubernetes-int-or-string": true, anyOf: [{ type: "integer" }, { type: "string" }] } } } } };

interface Document {
  readonly paths: Record<string, Record<string, { operationId: string; parameters?: { name: string }[]; "x-kubernetes-action": string; requestBody?: { content: object } }>>;
  readonly components: { readonly schemas: Record<string, Record<string, unknown>> };
}

function appsDocument(): Document {
  return openApiV3({ groupVersion: APPS, rows: builtInResources.rows().filter(({ group }) => group === "apps"), descriptions: { "io.k8s.api.apps.v1.Deployment": { "": "A deployment.", spec: "Its spec." } } }, SERVER) as Document;
}

test("a patch takes fieldValidation, which is how kubectl knows that the server validates", () => {
  const { patch } = appsDocument().paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]!;
  expect(patch).toMatchObject({ operationId: "patchAppsV1NamespacedDeployment", "x-kubernetes-action": "patch", "x-kubernetes-group-version-kind": { ...APPS, kind: "Deployment" } });
  expect(patch!.parameters!.map(({ name }) => name)).toEqual(["dryRun", "fieldManager", "fieldValidation", "force"]);
  expect(Object.keys(patch!.requestBody!.content)).toContain("application/apply-patch+yaml");
});

test("where the server speaks CBOR, it is told of what is built in, and of that alone", () => {
  const contents = (document: object, path: string): string[][] => {
    const { get, patch } = (document as { paths: Record<string, Record<string, { responses: Record<string, { content: object }>; requestBody?: { content: object } }>> }).paths[path]!;
    return [Object.keys((get ?? patch)!.responses["200"]!.content), ...(patch ? [Object.keys(patch.requestBody!.content)] : [])];
  };
  const apps = openApiV3({ groupVersion: APPS, rows: builtInResources.rows().filter(({ group }) => group === "apps") }, { ...SERVER, cbor: true });
  expect(contents(apps, "/apis/apps/v1/namespaces/{namespace}/deployments").at(0)).toEqual(["application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "application/cbor", "application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch", "application/cbor-seq"]);
  expect(contents(apps, "/apis/apps/v1/namespaces/{namespace}/deployments/{name}").at(-1)).toContain("application/apply-patch+cbor");
  expect(JSON.stringify(openApiV3({ groupVersion: CRONTAB_VERSION, rows: [CRONTABS] }, { ...SERVER, cbor: true }))).not.toContain("cbor");
  expect(JSON.stringify(appsDocument())).not.toContain("cbor");
});

test.each([
  ["networking.k8s.io", "io.k8s.api.networking.v1.HTTPIngressPath", "pathType", ["Exact", "ImplementationSpecific", "Prefix"]],
  ["discovery.k8s.io", "io.k8s.api.discovery.v1.EndpointSlice", "addressType", ["FQDN", "IPv4", "IPv6"]],
  ["resource.k8s.io", "io.k8s.api.resource.v1.ExactDeviceRequest", "allocationMode", ["All", "ExactCount"]],
])("of %s, %s.%s is one of %j", (group, type, field, values) => {
  const { components: { schemas } } = openApiV3({ groupVersion: { group, version: "v1" }, rows: builtInResources.rows().filter((row) => row.group === group && row.version === "v1"), descriptions: {} }, SERVER) as Document;
  expect(schemas[type]).toMatchObject({ properties: { [field]: { enum: values } } });
});

test("operations are named as generated clients know them", () => {
  const { paths } = appsDocument();
  const ids = Object.values(paths).flatMap((path) => Object.values(path)).flatMap(({ operationId }) => operationId ?? []);
  for (const id of ["getAppsV1APIResources", "listAppsV1DeploymentForAllNamespaces", "deleteAppsV1CollectionNamespacedDeployment", "readAppsV1NamespacedDeploymentScale", "watchAppsV1NamespacedDeploymentList"])
    expect(ids).toContain(id);
  expect(new Set(ids).size).toBe(ids.length);
});

test("a schema has texts, defaults, enums and markers, and refers to nothing that is missing", () => {
  const { components: { schemas } } = appsDocument();
  expect(schemas["io.k8s.api.apps.v1.Deployment"]).toMatchObject({
    description: "A deployment.", type: "object", "x-kubernetes-group-version-kind": [{ group: "apps", kind: "Deployment", version: "v1" }],
    properties: { spec: { description: "Its spec.", default: {}, allOf: [{ $ref: "#/components/schemas/io.k8s.api.apps.v1.DeploymentSpec" }] } },
  });
  expect(schemas["io.k8s.api.core.v1.ContainerPort"]).toMatchObject({ required: ["containerPort"], properties: { containerPort: { default: 0, format: "int32", type: "integer" }, protocol: { default: "TCP", enum: ["SCTP", "TCP", "UDP"] } } });
  expect(schemas["io.k8s.api.core.v1.PodSpec"]).toMatchObject({ properties: { containers: { "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "x-kubernetes-patch-merge-key": "name", "x-kubernetes-patch-strategy": "merge" } } });
  const missing = [...JSON.stringify(appsDocument()).matchAll(/"#\/components\/schemas\/([^"]+)"/g)].filter(([, name]) => !(name! in schemas));
  expect(missing).toEqual([]);
});

test("what upstream tells beyond fields: unions, and the meta types as the group version registers them, or in v2 as every one does, served or not", async () => {
  const { components: { schemas } } = appsDocument();
  expect(schemas["io.k8s.api.core.v1.SeccompProfile"]).toMatchObject({ "x-kubernetes-unions": [{ discriminator: "type", "fields-to-discriminateBy": { localhostProfile: "LocalhostProfile" } }] });
  const name = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
  expect(schemas[name]!["x-kubernetes-group-version-kind"]).toEqual([{ group: "", kind: "DeleteOptions", version: "v1" }, { group: "apps", kind: "DeleteOptions", version: "v1" }]);
  const { definitions } = await openApiV2({ versions: builtInResources.groupVersions().filter(({ group }) => group === "apps"), rows: builtInResources.rows().filter(({ group }) => group === "apps") }, SERVER, () => undefined);
  const kinds = definitions[name]!["x-kubernetes-group-version-kind"] as readonly { group: string; version: string }[];
  expect(kinds).toHaveLength(60);
  expect(kinds).toContainEqual({ group: "extensions", kind: "DeleteOptions", version: "v1beta1" });
});

test("custom resources: their schema with metadata, their list, and no strategic merge", () => {
  const { paths, components: { schemas } } = openApiV3({ groupVersion: CRONTAB_VERSION, rows: [CRONTABS], custom: new Map([["CronTab", CRONTAB_SCHEMA]]) }, SERVER) as Document;
  expect(schemas["com.example.stable.v1.CronTab"]).toMatchObject({ properties: { metadata: { allOf: [{ $ref: "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta" }] }, spec: CRONTAB_SCHEMA.properties.spec } });
  expect(schemas["com.example.stable.v1.CronTabList"]).toMatchObject({ required: ["items"] });
  expect(Object.keys(paths["/apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}"]!["patch"]!.requestBody!.content)).toEqual(["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"]);
});

/** One schema as the two forms of OpenAPI tell it, each by kube-apiserver v1.36's answers. */
test.each<[string, object, object, object]>([
  ["what may be null", { type: "object", nullable: true, properties: { a: { type: "string" } } }, { type: "object", nullable: true, properties: { a: { type: "string" } } }, {}],
  ["what keeps all", { type: "object", "x-kubernetes-preserve-unknown-fields": true, properties: { b: { type: "string" } } }, { type: "object", "x-kubernetes-preserve-unknown-fields": true, properties: { b: { type: "string" } } }, { "x-kubernetes-preserve-unknown-fields": true }],
  ["a number or a text", { "x-kubernetes-int-or-string": true, pattern: "^x" }, { "x-kubernetes-int-or-string": true, pattern: "^x", anyOf: [{ type: "integer" }, { type: "string" }] }, { "x-kubernetes-int-or-string": true, pattern: "^x" }],
  ["a number or a text, said in both ways", { "x-kubernetes-int-or-string": true, anyOf: [{ type: "integer" }, { type: "string" }] }, { "x-kubernetes-int-or-string": true, anyOf: [{ type: "integer" }, { type: "string" }] }, { "x-kubernetes-int-or-string": true }],
  ["a number or a text that is a text", { "x-kubernetes-int-or-string": true, type: "string" }, { "x-kubernetes-int-or-string": true, type: "string", anyOf: [{ type: "integer" }, { type: "string" }] }, { "x-kubernetes-int-or-string": true, type: "string" }],
  ["conditions", { type: "object", properties: { x: { type: "string" } }, allOf: [{ required: ["x"] }], not: { required: ["y"] } }, { type: "object", properties: { x: { type: "string" } }, allOf: [{ required: ["x"] }], not: { required: ["y"] } }, { type: "object", properties: { x: { type: "string" } } }],
  ["conditions that say what else there may be", { type: "object", properties: { x: { type: "object", additionalProperties: false } }, anyOf: [{ properties: { x: { additionalProperties: false, not: { additionalProperties: false, required: ["y"] } } } }] }, { type: "object", properties: { x: { type: "object", additionalProperties: false } }, anyOf: [{ properties: { x: { not: { required: ["y"] } } } }] }, { type: "object", properties: { x: { type: "object", additionalProperties: false } } }],
  ["null asked for", { type: "object", required: ["a", "b"], properties: { a: { type: "string", nullable: true }, b: { type: "string" } } }, { type: "object", required: ["a", "b"], properties: { a: { type: "string", nullable: true }, b: { type: "string" } } }, { type: "object", required: ["b"], properties: { a: {}, b: { type: "string" } } }],
  ["null asked for where all is kept", { type: "object", "x-kubernetes-preserve-unknown-fields": true, required: ["a"], properties: { a: { type: "string", nullable: true } } }, expect.anything(), { "x-kubernetes-preserve-unknown-fields": true, required: ["a"] }],
  ["an object within, of which all is kept", { type: "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true },
    { type: "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true, required: ["kind", "apiVersion"], properties: expect.objectContaining({ metadata: { description: expect.any(String), allOf: [{ $ref: "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta" }] } }) },
    { "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true }],
  ["an object within", { type: "object", "x-kubernetes-embedded-resource": true, required: ["spec"], properties: { spec: { type: "object" } } },
    { type: "object", "x-kubernetes-embedded-resource": true, required: ["spec", "kind", "apiVersion"], properties: expect.objectContaining({ spec: { type: "object" }, kind: { description: expect.stringMatching(/^kind is/), type: "string" } }) },
    { type: "object", "x-kubernetes-embedded-resource": true, required: ["spec", "kind", "apiVersion"], properties: expect.objectContaining({ metadata: { description: expect.any(String), $ref: "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta" } }) }],
])("of a custom resource: %s", async (_, spec, v3, v2) => {
  const schema = { type: "object", properties: { spec }, "x-kubernetes-selectable-fields": [{ fieldPath: "spec.color" }] };
  const name = "com.example.stable.v1.CronTab";
  const { components: { schemas } } = openApiV3({ groupVersion: CRONTAB_VERSION, rows: [CRONTABS], custom: new Map([["CronTab", schema]]) }, SERVER) as Document;
  const { definitions } = await openApiV2({ versions: [CRONTAB_VERSION], rows: [CRONTABS], custom: new Map([["stable.example.com/v1/CronTab", schema]]) }, SERVER, () => undefined);
  for (const [documented, told] of [[schemas, v3], [definitions, v2]] as const) {
    const { properties, ...rest } = documented[name] as { properties: { spec: object } };
    expect(properties.spec).toEqual(told);
    expect(rest).toMatchObject({ "x-kubernetes-selectable-fields": [{ fieldPath: "spec.color" }] });
    expect(documented[`${name}List`]).toMatchObject({ "x-kubernetes-selectable-fields": [{ fieldPath: "spec.color" }] });
  }
});

test("a custom resource that is said to be a resource is told as one within", () => {
  const { components: { schemas } } = openApiV3({ groupVersion: CRONTAB_VERSION, rows: [CRONTABS], custom: new Map([["CronTab", { type: "object", "x-kubernetes-embedded-resource": true, properties: { spec: { type: "object" } } }]]) }, SERVER) as Document;
  expect(schemas["com.example.stable.v1.CronTab"]).toMatchObject({ required: ["kind", "apiVersion"], properties: { kind: { description: expect.stringMatching(/^kind is/) }, apiVersion: { description: expect.stringMatching(/^apiVersion defines/) } } });
});

test("a group that consists of custom resources is told as the server behind it tells it", () => {
  const document = openApiV3({ groupVersion: CRONTAB_VERSION, rows: [{ ...CRONTABS, verbs: [...CRONTABS.verbs, "delete", "deletecollection"] }] }, SERVER) as Document & { info: object };
  const path = "/apis/stable.example.com/v1/namespaces/{namespace}/crontabs";
  expect(document.info).toEqual({ title: "Kubernetes CRD Swagger", version: "v0.1.0" });
  expect(document.paths).not.toHaveProperty(["/apis/stable.example.com/v1/"]);
  expect(Object.keys(document.paths[path]!["post"]!.requestBody!.content)).toEqual(["application/json", "application/yaml"]);
  expect(document.paths[path]!["delete"]).not.toHaveProperty("requestBody");
  expect(document.paths[`${path}/{name}`]!["get"]!.parameters!.map(({ name }) => name)).toContain("resourceVersion");
  expect(document.components).not.toHaveProperty("securitySchemes");
  const kinds = (document.components.schemas["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"] as { "x-kubernetes-group-version-kind": { group: string }[] })["x-kubernetes-group-version-kind"];
  expect(kinds).toContainEqual({ group: "apps", kind: "DeleteOptions", version: "v1" });
  expect(kinds.filter(({ group }) => ["admission.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "imagepolicy.k8s.io"].includes(group))).toEqual([]);
});

test("the scale of a custom resource is told as its own, and a version to be read as that of a list", () => {
  const scale = { name: "scale", kind: { group: "autoscaling", version: "v1", kind: "Scale" }, verbs: ["get", "patch", "update"], connects: [] } as never;
  const descriptions = { "io.k8s.apimachinery.pkg.apis.meta.v1.ListOptions": { resourceVersion: "of a list" }, "io.k8s.apimachinery.pkg.apis.meta.v1.GetOptions": { resourceVersion: "of something else" } };
  const document = openApiV3({ groupVersion: CRONTAB_VERSION, rows: [{ ...CRONTABS, subresources: [scale] }], descriptions }, SERVER) as Document;
  const get = document.paths["/apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}/scale"]!["get"]!;
  expect(get).toMatchObject({ "x-kubernetes-group-version-kind": { group: "stable.example.com", version: "v1", kind: "CronTab" } });
  expect(JSON.stringify(get)).toContain("io.k8s.api.autoscaling.v1.Scale");
  expect(JSON.stringify(document.paths)).toContain('"name of the CronTab"');
  expect(JSON.stringify(document.paths)).toContain("of a list");
  expect(JSON.stringify(document.paths)).not.toContain("of something else");
});

test("a custom resource whose name is that of a built-in type is told beside it, not in its place", async () => {
  const group = "apps.api.k8s.io", row = { ...CRONTABS, group, plural: "deployments", singular: "deployment", kind: "Deployment" }, version = { ...CRONTAB_VERSION, group };
  const { definitions, paths } = await openApiV2({ versions: [...builtInResources.groupVersions(), version], rows: [...builtInResources.rows(), row], custom: new Map([[`${group}/v1/Deployment`, CRONTAB_SCHEMA]]) }, SERVER, () => undefined);
  expect(definitions["io.k8s.api.apps.v1.Deployment"]).toMatchObject({ properties: { spec: { $ref: "#/definitions/io.k8s.api.apps.v1.DeploymentSpec" } } });
  expect(definitions["io.k8s.api.apps.v1.Deployment_v2"]).toMatchObject({ properties: { spec: { properties: { every: {} } } } });
  expect(definitions["io.k8s.api.apps.v1.DeploymentList_v2"]).toMatchObject({ properties: { items: { items: { $ref: "#/definitions/io.k8s.api.apps.v1.Deployment_v2" } } } });
  expect(JSON.stringify(paths[`/apis/${group}/v1/namespaces/{namespace}/deployments`])).toContain("#/definitions/io.k8s.api.apps.v1.Deployment_v2");
  expect(JSON.stringify(paths["/apis/apps/v1/namespaces/{namespace}/deployments"])).not.toContain("_v2");
});

test("v2 says the same with less, also as protobuf", async () => {
  const document = await openApiV2({ versions: [...builtInResources.groupVersions(), CRONTAB_VERSION], rows: [...builtInResources.rows(), CRONTABS], custom: new Map([["stable.example.com/v1/CronTab", CRONTAB_SCHEMA]]) }, SERVER, () => undefined);
  expect(document.definitions["com.example.stable.v1.CronTab"]).toMatchObject({ properties: { spec: { properties: { every: { "x-kubernetes-int-or-string": true } } } } });
  expect(JSON.stringify(document.definitions["com.example.stable.v1.CronTab"])).not.toContain("anyOf");
  expect(document.paths["/api/v1/namespaces/{namespace}/pods"]).toMatchObject({ post: { parameters: [{ name: "body", in: "body", required: true, schema: { $ref: "#/definitions/io.k8s.api.core.v1.Pod" } }, { name: "dryRun" }, { $ref: "#/parameters/fieldManager-mnBkVplq" }, { name: "fieldValidation" }] } });
  const small = await encodeOpenApiV2({ swagger: "2.0", info: { title: "K", version: "v" }, paths: {}, definitions: { A: { type: "object", required: ["b"], "x-y": [1] } }, parameters: {}, securityDefinitions: {}, security: [] }, () => undefined);
  expect(Buffer.from(small).toString("hex")).toBe("0a03322e30" + "1206" + "0a014b" + "120176" + "4200" + "4a25".slice(0, 2) + lengthAndDefinitions());
  expect((await encodeOpenApiV2(document, () => undefined)).length).toBeGreaterThan(500_000);
});

test("parameters of v2 are told once, by upstream's names, but those that speak of a kind and those that old clients look for", () => {
  const shared = new SharedParameters();
  const limit = { uniqueItems: true, type: "integer", name: "limit", in: "query" };
  const pretty = { uniqueItems: true, type: "string", description: "If 'true', then the output is pretty printed. Defaults to 'false' unless the user-agent indicates a browser or command-line HTTP tool (curl and wget).", name: "pretty", in: "query" };
  const own = [{ name: "name", in: "path" }, { name: "dryRun", in: "query" }, { name: "fieldValidation", in: "query" }, { name: "body", in: "body", schema: { $ref: "#/definitions/io.k8s.api.core.v1.Pod" } }];
  expect(own.map((parameter) => shared.inPlaceOf(parameter))).toEqual(own);
  expect([pretty, pretty].map((parameter) => shared.inPlaceOf(parameter))).toEqual([{ $ref: "#/parameters/pretty-tJGM1-ng" }, { $ref: "#/parameters/pretty-tJGM1-ng" }]);
  const [other] = [limit, { name: "body", in: "body", schema: { $ref: "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions" } }].map((parameter) => shared.inPlaceOf(parameter)) as { $ref: string }[];
  expect(Object.keys(shared.all()).map((name) => name.split("-")[0])).toEqual(["body", "limit", "pretty"]);
  expect(shared.all()[other!.$ref.slice("#/parameters/".length)]).toBe(limit);
});

test("v2 is written in parts as it would be written at once, and every reference leads somewhere", async () => {
  let turns = 0;
  const breathe = () => { turns++; return Promise.resolve(); };
  const document = await openApiV2({ versions: builtInResources.groupVersions(), rows: builtInResources.rows() }, SERVER, breathe);
  expect(Buffer.from(await writeOpenApiV2(document, breathe)).toString()).toBe(JSON.stringify(document));
  expect(turns).toBeGreaterThan(1000);
  const refs = new Set([...JSON.stringify(document.paths).matchAll(/"#\/parameters\/([^"]+)"/g)].map(([, name]) => name!));
  expect([...refs].sort()).toEqual(Object.keys(document.parameters).sort());
});

/** definitions { additional_properties { name "A" value { required "b", type { "object" }, vendor_extension { name "x-y" value { yaml "- 1\n" } } } } }, parameters {}, security_definitions {} */
function lengthAndDefinitions(): string {
  const extension = "fa010d" + "0a03782d79" + "1206" + "1204" + "2d20310a";
  const schema = "9a010162" + "b20108" + "0a066f626a656374" + extension;
  const value = "0a0141" + "12" + (schema.length / 2).toString(16).padStart(2, "0") + schema;
  const named = "0a" + (value.length / 2).toString(16).padStart(2, "0") + value;
  return (named.length / 2).toString(16).padStart(2, "0") + named + "5200" + "6a00";
}

test("v3 as protobuf: what refers, what is one of several, and defaults that are no scalars", () => {
  const { paths, components } = openApiV3({ groupVersion: CRONTAB_VERSION, rows: [CRONTABS], custom: new Map([["CronTab", CRONTAB_SCHEMA]]) }, SERVER) as Document;
  expect(encodeOpenApiV3({ openapi: "3.0.0", info: {}, paths, components }).length).toBeGreaterThan(10_000);
  const schemas = { A: { type: "object", properties: { b: { $ref: "#/b" }, c: { default: {}, nullable: true }, d: { default: 2, items: { type: "string" } } }, additionalProperties: true, "x-y": [1] } };
  const hex = (number: number, content: string): string => Buffer.from([...(number > 15 ? [((number & 15) << 3) | 0x82, number >> 4] : [(number << 3) | 2]), content.length / 2]).toString("hex") + content;
  const text = (number: number, value: string): string => hex(number, Buffer.from(value).toString("hex"));
  const named = (name: string, value: string): string => text(1, name) + hex(2, value);
  const properties = hex(1, named("b", hex(2, text(1, "#/b")))) + hex(1, named("c", hex(1, `0801${hex(33, "")}`))) + hex(1, named("d", hex(1, hex(30, hex(1, hex(1, text(25, "string")))) + hex(33, "090000000000000040"))));
  const schema = text(25, "object") + hex(31, properties) + hex(32, "1001") + hex(36, named("x-y", text(2, "- 1\n")));
  expect(Buffer.from(encodeOpenApiV3({ openapi: "3", info: {}, paths: {}, components: { schemas } })).toString("hex")).toBe(text(1, "3") + hex(2, "") + hex(4, "") + hex(5, hex(1, hex(1, named("A", hex(1, schema))))));
});

test("a value that YAML has no characters for is told in protobuf as JSON", () => {
  const told = (value: unknown): string => Buffer.from(encodeOpenApiV3({ openapi: "3", info: {}, paths: {}, components: { schemas: { A: { type: "object", "x-y": value } } } })).toString();
  expect([told([{ fieldPath: "spec.color" }]).includes("- fieldPath: spec.color\n"), told(["a\u007fb"]).includes('["a\u007fb"]')]).toEqual([true, true]);
});

test("numbers that no double holds are told with all their digits", async () => {
  const big = 9007199254740993n;
  const schema = { type: "object", properties: { spec: { type: "integer", default: big, enum: [big, 1n], minimum: -5, "x-y": big } } };
  const documents = new OpenApiDocuments({ versions: [CRONTAB_VERSION], rows: [CRONTABS], custom: new Map([["stable.example.com/v1/CronTab", schema], ["CronTab", schema]]) } as never, { version: "v1.36.4", descriptions: () => Promise.resolve({}) });
  const path = Object.keys((documents.index() as { paths: object }).paths).find((at) => at.endsWith("stable.example.com/v1"))!;
  for (const made of [documents.v3(path, "json"), documents.v2("json")]) expect(gunzipSync((await made)!.gzip).toString()).toContain("9007199254740993");
  for (const made of [documents.v3(path, "protobuf"), documents.v2("protobuf")]) expect(gunzipSync((await made)!.gzip).length).toBeGreaterThan(1000);
});

test("schemas are told apart once, and others have their turn between two: what is served now has its documents at once then", async () => {
  let turns = 0, read = 0;
  const documents = new OpenApiDocuments({ versions: [], rows: [], custom: new Map() }, { version: "v1.36.4", descriptions: () => Promise.resolve({}), breather: () => () => void turns++ });
  const schema = () => ({ type: "object", get description() { read++; return "A schema."; } });
  const api = { versions: [CRONTAB_VERSION], rows: [CRONTABS], custom: new Map(Array.from({ length: 50 }, (_, i) => [i === 0 ? "stable.example.com/v1/CronTab" : `stable.example.com/v1/Other${i}`, schema()] as const)) };
  await documents.hashSchemas(api);
  expect([turns, read]).toEqual([50, 50]);
  await documents.hashSchemas(api);
  documents.update(api);
  expect([turns, read]).toEqual([50, 50]);
  expect(Object.keys((documents.index() as { paths: object }).paths)).toContain("apis/stable.example.com/v1");
});

test("a document says what its hash says, though something else is served by the time that its descriptions are there", async () => {
  const { promise, resolve } = Promise.withResolvers<object>();
  const apps = <T extends { readonly group: string }>(all: Iterable<T>): T[] => [...all].filter(({ group }) => group === "apps");
  const documents = new OpenApiDocuments({ versions: [...apps(builtInResources.groupVersions()), CRONTAB_VERSION], rows: [...apps(builtInResources.rows()), CRONTABS], custom: new Map() }, { version: "v1.36.4", descriptions: () => promise as never });
  const places = ["apis/stable.example.com/v1", "apis/apps"], made = places.map((place) => documents.v3(place, "json")!);
  documents.update({ versions: [], rows: [], custom: new Map() });
  expect(places.map((place) => documents.v3(place, "json"))).toEqual([undefined, undefined]);
  resolve({});
  const paths = await Promise.all(made.map(async (one) => Object.keys((JSON.parse(gunzipSync((await one).gzip).toString()) as { paths: object }).paths)));
  expect(paths[0]).toContain("/apis/stable.example.com/v1/namespaces/{namespace}/crontabs");
  expect(paths[1]).toEqual(["/apis/apps/"]);
});

test("documents are made once, and again only when what they say has changed", async () => {
  let loads = 0;
  const api = { versions: [...builtInResources.groupVersions()], rows: [...builtInResources.rows()], custom: new Map() };
  const documents = new OpenApiDocuments(api, { version: "v1.36.4", descriptions: () => { loads++; return Promise.resolve({}); } });
  const index = documents.index() as { paths: Record<string, { serverRelativeURL: string }> };
  expect(Object.keys(index.paths)).toContain("apis/apps");
  expect(index.paths["apis/apps/v1"]!.serverRelativeURL).toMatch(/^\/openapi\/v3\/apis\/apps\/v1\?hash=[0-9A-F]{128}$/);
  const first = await documents.v3("apis/apps/v1", "json")!;
  expect(JSON.parse(gunzipSync(first.gzip).toString())).toMatchObject({ openapi: "3.0.0", info: { version: "1.36" } });
  expect(JSON.parse(gunzipSync((await documents.v3("apis", "json")!).gzip).toString())).toMatchObject({ paths: { "/apis/": {} } });
  const v2 = await documents.v2("json");
  documents.update({ versions: [...api.versions, CRONTAB_VERSION], rows: [...api.rows, CRONTABS], custom: new Map() });
  expect(await documents.v3("apis/apps/v1", "json")).toBe(first);
  expect(await documents.v2("json")).not.toBe(v2);
  expect(loads).toBe(4);
  expect(documents.v3("apis/nothing/v1", "json")).toBeUndefined();
});
