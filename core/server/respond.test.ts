import { afterAll, beforeAll, expect, test } from "vitest";
import { apiServer, type ApiServer } from "../../test/api-server.ts";
import { parseYaml } from "../api/codec/yaml.ts";
import type { ApiObject } from "../api/meta/object-meta.ts";
import { Cached } from "../registry/generic/cached.ts";
import type { ServedResource } from "../registry/registry.ts";
import type { ServerRequest } from "./request.ts";
import { encodeList, encodeListAtOnce } from "./respond.ts";

let api: ApiServer;
const MAPS = "/api/v1/namespaces/a/configmaps";

beforeAll(async () => {
  api = await apiServer();
  for (const name of ["m0", "m1", "m2", "m3", "m4"]) await api.ask("POST", MAPS, { body: { metadata: { name } } });
});
afterAll(() => api[Symbol.asyncDispose]());

test("an object is shown as a Table or as its metadata, if that is asked for", async () => {
  const table = await api.ask("GET", `${MAPS}/m0`, { headers: { accept: "application/json;as=Table;g=meta.k8s.io;v=v1,application/json" } });
  expect(table.body).toMatchObject({ kind: "Table", apiVersion: "meta.k8s.io/v1", columnDefinitions: [{ name: "Name" }, { name: "Data" }, { name: "Age" }], rows: [{ cells: ["m0", 0, expect.any(String)], object: { kind: "PartialObjectMetadata", metadata: { name: "m0" } } }] });
  const metadata = await api.ask("GET", MAPS, { headers: { accept: "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1" } });
  expect(metadata.body).toMatchObject({ kind: "PartialObjectMetadataList", apiVersion: "meta.k8s.io/v1", items: [{ kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata: { name: "m0" } }, {}, {}, {}, {}] });
  const [event] = await api.events(MAPS, 1, { query: { fieldSelector: "metadata.name=m0" }, headers: { accept: "application/json;as=Table;g=meta.k8s.io;v=v1" } });
  expect(event).toMatchObject({ type: "ADDED", object: { kind: "Table", columnDefinitions: [{ name: "Name" }, {}, {}], rows: [{ cells: ["m0", 0, expect.any(String)] }] } });
});

test("a Table of nothing has no rows, and of a kind without columns of its own not even an empty list of them", async () => {
  for (const accept of ["application/json;as=Table;g=meta.k8s.io;v=v1", "application/json;as=Table;g=meta.k8s.io;v=v1beta1"]) {
    const rowsOf = async (path: string, query = {}): Promise<unknown> => (await api.ask("GET", path, { headers: { accept }, query })).body.rows;
    expect([await rowsOf("/api/v1/limitranges"), await rowsOf("/api/v1/limitranges", { includeObject: "None" }), await rowsOf("/api/v1/podtemplates"), await rowsOf("/api/v1/podtemplates", { includeObject: "None" })]).toEqual([null, null, [], []]);
  }
});

test("a review has no Table; nobody speaks Klingon", async () => {
  const table = { accept: "application/json;as=Table;g=meta.k8s.io;v=v1" };
  const review = await api.ask("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", { headers: table, body: { spec: { nonResourceAttributes: { path: "/", verb: "get" } } } });
  expect([review.code, review.body.reason]).toEqual([406, "NotAcceptable"]);
  const crd = { metadata: { name: "tables.example.com" }, spec: { group: "example.com", scope: "Cluster", names: { plural: "tables", kind: "Table" }, versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: { type: "object" } } }] } };
  await api.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", { body: crd });
  const status = (accept: string) => api.ask("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/tables.example.com/status", { headers: { accept } });
  expect([(await status(table.accept)).code, (await status(`${table.accept},application/json`)).body.kind]).toEqual([406, "CustomResourceDefinition"]);
  const klingon = await api.ask("GET", `${MAPS}/m0`, { headers: { accept: "application/klingon" } });
  expect([klingon.code, klingon.body.message]).toEqual([406, "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf"]);
  expect((await api.ask("GET", MAPS, { headers: { accept: "text/html" } })).body.message).toBe("406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch");
  expect((await api.ask("GET", `${MAPS}/none`, { headers: { accept: "application/klingon" } })).code).toBe(406);
});

test("a watch in what nothing is written in is refused as any answer is, and in what has no stream with what has", async () => {
  const told = async (accept: string) => (await api.ask("GET", MAPS, { query: { watch: "1" }, headers: { accept } })).body as { readonly message?: string };
  expect((await told("application/json;as=Table;g=meta.k8s.io;v=v2")).message).toBe("only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf");
  expect(String(await told("application/yaml"))).toContain("application/json;stream=watch");
});

test("metadata of nothing is null, as Go writes a list that was never made", async () => {
  for (const headers of [{ accept: "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1" }, { accept: "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1;pretty=1" }])
    expect((await api.ask("GET", "/api/v1/namespaces/none/configmaps", { headers })).body.items).toBeNull();
});

test("metadata of a list is not asked for of one object, nor the other way round; what went wrong is told as JSON then", async () => {
  const as = (kind: string, type = "application/json") => ({ headers: { accept: `${type};as=${kind};g=meta.k8s.io;v=v1` } });
  const told = await Promise.all([api.ask("GET", `${MAPS}/m0`, as("PartialObjectMetadataList")), api.ask("GET", MAPS, as("PartialObjectMetadata"))]);
  expect(told.map(({ code, body }) => [code, body.message])).toEqual([
    [406, "you requested PartialObjectMetadataList, but the requested object is not a list (*core.ConfigMap)"], [406, "you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)"],
  ]);
  const missing = await api.ask("GET", `${MAPS}/none`, as("PartialObjectMetadata", "application/yaml"));
  expect([missing.code, missing.contentType, missing.body.reason]).toEqual([404, "application/json", "NotFound"]);
});

test("a list in YAML is that in JSON, of built-in and of custom resources, and of none", async () => {
  await api.ask("POST", MAPS, { body: { metadata: { name: "long", annotations: { a: "- b: [\n  c\n\n" } }, data: { x: "one\ntwo\n", y: "yes", z: "{}" } } });
  const crd = { metadata: { name: "chairs.example.com" }, spec: { group: "example.com", scope: "Cluster", names: { plural: "chairs", kind: "Chair" }, versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } } }] } };
  await api.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", { body: crd });
  const chairs = "/apis/example.com/v1/chairs";
  for (const name of ["a", "b"]) await api.ask("POST", chairs, { body: { apiVersion: "example.com/v1", kind: "Chair", metadata: { name }, legs: [{ of: ["oak"] }, 3] } });
  for (const path of [MAPS, chairs, "/api/v1/namespaces/none/secrets"]) {
    const told = async (accept: string) => (await api.ask("GET", path, { headers: { accept } })).body;
    expect(parseYaml(String(await told("application/yaml")))).toEqual(await told("application/json"));
  }
  await api.ask("DELETE", `${MAPS}/long`);
});

test.each(["Object", "None", "Metadata"])("a Table with %s says the same, whoever reads it; of what there is not it is refused", async (includeObject) => {
  const accept = "application/json;as=Table;g=meta.k8s.io;v=v1";
  for (const path of ["/api/v1/configmaps", "/api/v1/namespaces", "/apis/example.com/v1/chairs", "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas", "/api/v1/namespaces/none/secrets"]) {
    const told = async (query: Record<string, string>) => (await api.ask("GET", path, { headers: { accept }, query })).body;
    const table = await told({ includeObject }) as { readonly rows: readonly { readonly object: object | null }[] | null };
    expect(table).toEqual(await told({ includeObject, pretty: "true" }));
    expect(table.rows?.every(({ object }) => (object === null) === (includeObject === "None")) ?? true).toBe(true);
    expect((await api.ask("GET", path, { headers: { accept }, query: { includeObject: "x" } })).code).toBe(400);
  }
});

test.each<[string, string?]>([
  ["application/json"], ["application/json;pretty=1"], ["application/yaml"], ["application/vnd.kubernetes.protobuf"], ...["application/json;as=Table", "application/json;as=PartialObjectMetadataList", "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList"].map((form): [string] => [`${form};g=meta.k8s.io;v=v1`]),
  ...["Object", "None"].map((include): [string, string] => ["application/json;as=Table;g=meta.k8s.io;v=v1", `includeObject=${include}`]),
])("between objects of a list that are made into %s %s others have their turn", async (accept, query = "") => {
  const served = { row: { group: "", version: "v1", kind: "ConfigMap" }, apiVersion: "v1", custom: undefined, fromStorage: (object: object) => object } as unknown as ServedResource;
  const object = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "m" } } as ApiObject;
  const entries = Array.from({ length: 80 }, (_, i) => new Cached(`/registry/core/configmaps/default/m${i}`, object, i + 1));
  const request = { header: (name: string) => (name === "accept" ? accept : undefined), query: new URLSearchParams(query) } as unknown as ServerRequest;
  let turns = 0;
  await encodeList({ type: "list", served, entries, metadata: { resourceVersion: "1" } }, { request, nowMs: () => 0, describe: undefined }, () => { turns++; return undefined; });
  expect(turns).toBeGreaterThanOrEqual(80 / 16);
});

test.each([0, 1, 3])("a list of %d for people is written the same in pieces as at once", async (count) => {
  const text = ({ body }: { readonly body: unknown }): string => (body as readonly (string | Uint8Array)[]).map((piece) => Buffer.from(piece as string).toString()).join("");
  const request = { header: (name: string) => (name === "user-agent" ? "curl/8.0" : undefined), query: new URLSearchParams() } as unknown as ServerRequest;
  for (const row of [{ group: "", version: "v1", kind: "ConfigMap" }, { group: "example.com", version: "v1", kind: "Chair" }]) {
    const served = { row, apiVersion: "v1", custom: undefined, fromStorage: (object: object) => object } as unknown as ServedResource;
    const entries = Array.from({ length: count }, (_, i) => new Cached(`/m${i}`, { apiVersion: "v1", kind: row.kind, metadata: { name: `m${i}` }, data: { text: "a\n  \"items\": []<b>", none: {} } } as unknown as ApiObject, i + 1));
    const answer = { type: "list", served, entries, metadata: { resourceVersion: "1" } } as const, how = { request, nowMs: () => 0, describe: undefined };
    const pieces = text(await encodeList(answer, how, () => undefined));
    expect(pieces).toBe(text(encodeListAtOnce(answer, how)));
    expect((JSON.parse(pieces) as { readonly items: unknown[] }).items).toHaveLength(count);
  }
});
