/** What a client that speaks CBOR is told, where the server does: requests, answers, watches, apply, refusals. Source: kubernetes v1.36 test/integration/{apiserver/cbor_test.go,client/client_test.go,client/dynamic_client_test.go} */
import { expect, test } from "vitest";
import { type ApiServer, apiServer, type Asked } from "../../test/api-server.ts";
import { readCbor } from "../api/codec/cbor/items.ts";
import { cborValue } from "../api/codec/cbor/values.ts";
import { CborWriter } from "../api/codec/cbor/writer.ts";
import { ANONYMOUS } from "../api/request/user.ts";
import { builtInResources, type ResourceRow } from "../api/schema/resources.ts";
import type { Registry } from "../registry/registry.ts";
import type { RawAnswer } from "./answer.ts";
import { discoveryPaths } from "./discovery.ts";
import type { ServerRequest } from "./request.ts";

const CBOR = "application/cbor", MAPS = "/api/v1/namespaces/default/configmaps", SECRETS = "/api/v1/namespaces/default/secrets";
const cbor = (value: unknown): Uint8Array => new CborWriter().write(value);
const TABLE = "application/cbor;as=Table;g=meta.k8s.io;v=v1", METADATA = "application/cbor;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/** Sends and reads CBOR. */
async function ask(api: ApiServer, method: string, path: string, body?: unknown, { accept = CBOR, type = CBOR, ...asked }: Asked & { accept?: string; type?: string } = {}): Promise<{ code: number; type: string; warnings: readonly string[]; body: unknown }> {
  const { code, contentType, warnings, body: told } = await api.ask(method, path, { ...asked, headers: { accept, "content-type": type }, ...(body !== undefined && { body: body instanceof Uint8Array ? body : cbor(body) }) });
  return { code, type: contentType, warnings, body: contentType.startsWith(CBOR) ? cborValue(readCbor(told)) : told };
}

const map = (name: string, data: object = { a: "1" }): object => ({ kind: "ConfigMap", apiVersion: "v1", metadata: { name }, data });

test("objects go in and come out, one and many, whole and in other forms", async () => {
  await using api = await apiServer({ cbor: true });
  expect(await ask(api, "POST", MAPS, map("a"))).toMatchObject({ code: 201, type: CBOR, body: { kind: "ConfigMap", apiVersion: "v1", metadata: { name: "a", namespace: "default" }, data: { a: "1" } } });
  expect(await ask(api, "PUT", `${MAPS}/a`, map("a", { b: "2" }))).toMatchObject({ code: 200, type: CBOR, body: { data: { b: "2" } } });
  expect(await ask(api, "GET", MAPS)).toMatchObject({ type: CBOR, body: { kind: "ConfigMapList", apiVersion: "v1", items: [{ metadata: { name: "a" }, data: { b: "2" } }] } });
  expect((await ask(api, "GET", MAPS)).body).not.toHaveProperty("items.0.kind");
  expect(await ask(api, "GET", `${MAPS}/a`, undefined, { accept: TABLE })).toMatchObject({ type: CBOR, body: { kind: "Table", rows: [{ cells: ["a", 1, expect.any(String)], object: { kind: "PartialObjectMetadata" } }] } });
  expect(await ask(api, "GET", MAPS, undefined, { accept: METADATA.replace("Metadata", "MetadataList") })).toMatchObject({ type: CBOR, body: { kind: "PartialObjectMetadataList", items: [{ kind: "PartialObjectMetadata", metadata: { name: "a" } }] } });
  expect((await ask(api, "GET", `${MAPS}/a`, undefined, { accept: METADATA })).body).not.toHaveProperty("data");
  expect(await ask(api, "GET", `${MAPS}/none`)).toMatchObject({ code: 404, type: CBOR, body: { kind: "Status", reason: "NotFound" } });
  expect(await ask(api, "DELETE", `${MAPS}/a`, { kind: "DeleteOptions", apiVersion: "v1", preconditions: { uid: "x" } })).toMatchObject({ code: 409, type: CBOR });
  expect(await ask(api, "DELETE", `${MAPS}/a`, { kind: "DeleteOptions", apiVersion: "v1" })).toMatchObject({ code: 200, body: { kind: "Status", status: "Success" } });
});

test("bytes are bytes", async () => {
  await using api = await apiServer({ cbor: true });
  const body = Buffer.concat([Buffer.from("a4446b696e64465365637265744a61706956657273696f6e427631486d65746164617461a1446e616d65416144646174 61a1416bd644ff020304".replace(" ", ""), "hex")]);
  expect(await ask(api, "POST", SECRETS, body)).toMatchObject({ code: 201, body: { data: { k: "/wIDBA==" } } });
  const told = await api.ask("GET", `${SECRETS}/a`, { headers: { accept: CBOR } });
  expect(Buffer.from(told.body as Buffer).toString("hex")).toContain("d644ff020304");
  expect((await api.ask("GET", `${SECRETS}/a`)).body.data).toEqual({ k: "/wIDBA==" });
});

test("in which order fields come changes from answer to answer", async () => {
  await using api = await apiServer({ cbor: true });
  await ask(api, "POST", MAPS, map("a"));
  const told = new Set<string>();
  for (let i = 0; i < 40; i++) told.add(Buffer.from((await api.ask("GET", `${MAPS}/a`, { headers: { accept: CBOR } })).body as Buffer).toString("hex"));
  expect(told.size).toBeGreaterThan(1);
});

test("watches are sequences of items, whatever form was asked for", async () => {
  await using api = await apiServer({ cbor: true });
  await ask(api, "POST", MAPS, map("a"));
  for (const accept of [CBOR, `${CBOR};stream=watch`]) expect(await api.events(MAPS, 1, { headers: { accept } })).toMatchObject([{ type: "ADDED", object: { kind: "ConfigMap", apiVersion: "v1", metadata: { name: "a" }, data: { a: "1" } } }]);
  expect(await api.events(MAPS, 1, { headers: { accept: TABLE } })).toMatchObject([{ type: "ADDED", object: { kind: "Table", columnDefinitions: [{ name: "Name" }, {}, {}], rows: [{ cells: ["a", 1, expect.any(String)] }] } }]);
  const [event] = (await api.events(MAPS, 1, { headers: { accept: METADATA } })) as [{ object: object }];
  expect(event.object).toMatchObject({ kind: "PartialObjectMetadata", metadata: { name: "a" } });
  expect(event.object).not.toHaveProperty("data");
  expect(await ask(api, "GET", MAPS, undefined, { accept: "application/cbor-seq" })).toMatchObject({ code: 406, body: { message: "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf, application/cbor" } });
  expect(Buffer.from((await api.ask("GET", MAPS, { query: { watch: "1" }, headers: { accept: "application/yaml;q=0.9" } })).body as Buffer).toString().replace(/\n +/g, " ")).toContain("only the following media types are accepted: application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch, application/cbor-seq");
});

test("apply", async () => {
  await using api = await apiServer({ cbor: true });
  const apply = (body: unknown, query = {}): ReturnType<typeof ask> => ask(api, "PATCH", `${MAPS}/a`, body, { type: "application/apply-patch+cbor", query: { fieldManager: "m", ...query } });
  expect(await apply(map("a"))).toMatchObject({ code: 201, type: CBOR, body: { metadata: { managedFields: [{ manager: "m", operation: "Apply", fieldsV1: { "f:data": { "f:a": {} } } }] } } });
  expect(await apply(map("a", { a: "2" }))).toMatchObject({ code: 200, body: { data: { a: "2" } } });
  expect(await apply(Buffer.from("a2416101416102", "hex"))).toMatchObject({ code: 400, body: { message: 'error decoding YAML: cbor: found duplicate map key "a" at map element index 1' } });
  expect(await apply(Buffer.from("80", "hex"))).toMatchObject({ code: 400, body: { message: "error decoding YAML: cbor: cannot unmarshal array into Go value of type map[string]interface {}" } });
});

test("custom resources, which are as they were sent", async () => {
  await using api = await apiServer({ cbor: true });
  const crd = {
    kind: "CustomResourceDefinition", apiVersion: "apiextensions.k8s.io/v1", metadata: { name: "foos.x.io" },
    spec: { group: "x.io", scope: "Namespaced", names: { plural: "foos", singular: "foo", kind: "Foo", listKind: "FooList" }, versions: [{ name: "v1", served: true, storage: true, subresources: { status: {} }, schema: { openAPIV3Schema: { type: "object", properties: { spec: { type: "object", properties: { n: { type: "integer", maximum: 5 }, f: { type: "number" } } } } } } }] },
  };
  expect(await ask(api, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)).toMatchObject({ code: 201, body: { spec: { versions: [{ schema: { openAPIV3Schema: { properties: { spec: { properties: { n: { maximum: 5 } } } } } } }] } } });
  const path = "/apis/x.io/v1/namespaces/default/foos", foo = (spec: object): object => ({ apiVersion: "x.io/v1", kind: "Foo", metadata: { name: "a" }, spec });
  await expect.poll(async () => (await ask(api, "GET", path)).code).toBe(200);
  expect(await ask(api, "POST", path, foo({ n: 3, f: 0.5 }))).toMatchObject({ code: 201, type: CBOR, body: { spec: { n: 3, f: 0.5 } } });
  expect(await ask(api, "GET", path)).toMatchObject({ code: 200, type: CBOR, body: { kind: "FooList", apiVersion: "x.io/v1", items: [{ kind: "Foo", spec: { n: 3 } }] } });
  expect(await api.events(path, 1, { headers: { accept: CBOR } })).toMatchObject([{ type: "ADDED", object: { kind: "Foo", spec: { n: 3, f: 0.5 } } }]);
  expect(await ask(api, "PATCH", `${path}/a`, foo({ n: 4 }), { type: "application/apply-patch+cbor", query: { fieldManager: "m", force: "true" } })).toMatchObject({ code: 200, body: { spec: { n: 4, f: 0.5 } } });
  const refused = async (body: unknown, query = {}): Promise<unknown> => { const { code, body: status } = await ask(api, "POST", path, body, { query }); return `${code} ${(status as { message: string }).message}`; };
  expect(await refused(foo({ x: 1 }), { fieldValidation: "Strict" })).toBe('400 Foo in version "v1" cannot be handled as a Foo: strict decoding error: unknown field "spec.x"');
  expect(await refused(Buffer.from("a14a61706956657273696f6e47782e696f2f7631", "hex"))).toBe("400 the object provided is unrecognized (must be of type Foo): Object 'Kind' is missing in '{'apiVersion': 'x.io/v1'}' (a14a61706956657273696f6e47782e696f2f7631)");
  expect(await refused(Buffer.from("a1446b696e6443466f6f", "hex"))).toBe("400 Foo in version \"\" cannot be handled as a Foo: Object 'apiVersion' is missing in '{'kind': 'Foo'}'");
  expect(await refused(Buffer.from("a2446b696e6443466f6f4161f7", "hex"))).toBe('400 Foo in version "v1" cannot be handled as a Foo: cbor: data item of cbor type primitives is not accepted by protocol: simple value 23 is not recognized');
  expect(await refused(Buffer.from("80", "hex"))).toBe("400 the object provided is unrecognized (must be of type Foo): unable to determine group/version/kind: cbor: cannot unmarshal array into Go value of type v1.TypeMeta (cannot decode CBOR array to struct without toarray option) (80)");
});

test("what cannot be read is refused, what is not known as it is asked for", async () => {
  await using api = await apiServer({ cbor: true });
  const told = async (body: unknown, fieldValidation = ""): Promise<string> => {
    const { code, warnings, body: object } = await ask(api, "POST", MAPS, body, { query: fieldValidation === "" ? {} : { fieldValidation } });
    return [code, ...warnings, ...(code >= 400 ? [(object as { message: string }).message] : [])].join(" ");
  };
  const odd = (name: string): object => ({ ...map(name), x: 1 });
  expect(await told(odd("a"))).toMatch(/^201 cbor: found unknown field at map element index \d$/);
  expect(await told(odd("b"), "Ignore")).toBe("201");
  expect(await told(odd("c"), "Strict")).toMatch(/^400 ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: cbor: found unknown field at map element index \d$/);
  expect(await told(map("d", { a: 1 }))).toBe('400 ConfigMap in version "v1" cannot be handled as a ConfigMap: cbor: cannot unmarshal positive integer into Go struct field v1.ConfigMap.data of type string');
  expect(await told(Buffer.from(""))).toBe("400 the object provided is unrecognized (must be of type ConfigMap): unable to determine group/version/kind: EOF (<empty>)");
  expect(await told(Buffer.from("a2", "hex"))).toBe("400 the object provided is unrecognized (must be of type ConfigMap): unable to determine group/version/kind: unexpected EOF (a2)");
  expect(await told(Buffer.from("a2416101416102", "hex"), "Ignore")).toContain('unable to determine group/version/kind: cbor: found duplicate map key "a" at map element index 1');
  expect(await told({ ...map("e"), kind: "Pod" })).toBe('400 Pod in version "v1" cannot be handled as a ConfigMap: converting (v1.Pod) to (core.ConfigMap): unknown conversion');
  expect(await told({ metadata: { name: "f" } })).toBe("201"); // what it is, its place tells
});

test("which is liked best is given; without the gate there is none, and it is said so", async () => {
  await using api = await apiServer({ cbor: true });
  await using without = await apiServer();
  const typeOf = async (accept: string): Promise<string> => (await ask(api, "GET", MAPS, undefined, { accept })).type;
  expect(await typeOf("application/vnd.kubernetes.protobuf;q=1,application/cbor;q=0.9,application/json;q=0.8")).toBe("application/vnd.kubernetes.protobuf");
  expect(await typeOf("application/cbor;q=1,application/json;q=0.9")).toBe(CBOR);
  expect(await typeOf("application/cbor;q=0.9,application/json;q=1")).toBe("application/json");
  expect(await typeOf("application/cbor;q=0.9,example/foo;q=0.8")).toBe(CBOR);
  expect(await typeOf("application/cbor, */*")).toBe(CBOR);
  expect(await typeOf("*/*")).toBe("application/json");
  expect(await ask(api, "POST", MAPS, map("a"), { type: "application/xml", accept: "application/json" })).toMatchObject({ code: 415, body: { message: "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf, application/cbor" } });
  expect(await ask(without, "POST", MAPS, map("a"), { accept: "application/json" })).toMatchObject({ code: 415, body: { message: "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf" } });
  expect(await ask(without, "GET", MAPS)).toMatchObject({ code: 406, type: "application/json" });
  expect((await ask(without, "GET", MAPS, undefined, { accept: "application/cbor, application/json" })).type).toBe("application/json");
  expect((await ask(without, "PATCH", `${MAPS}/a`, map("a"), { type: "application/apply-patch+cbor", accept: "application/json", query: { fieldManager: "m" } })).code).toBe(415);
});

test.each<[string, number | undefined]>([["/api/v1", 200], ["/apis/apps/v1", 200], ["/api", undefined], ["/apis", undefined], ["/apis/apps", undefined]])("what there is, at %s", async (path, code) => {
  const paths = discoveryPaths({ rows: () => builtInResources.rows(), rowsOf: ({ group, version }: ResourceRow) => builtInResources.rows().filter((row) => row.group === group && row.version === version), changes: 0 } as unknown as Registry, "127.0.0.1:6443");
  const asked = async (): Promise<RawAnswer> => (await paths({ method: "GET", path, query: new URLSearchParams(), cbor: true, header: (name: string) => (name === "accept" ? CBOR : undefined) } as unknown as ServerRequest, ANONYMOUS)) as RawAnswer;
  if (code === undefined) return expect(asked()).rejects.toThrow(/application\/json, application\/yaml, application\/vnd.kubernetes.protobuf$/);
  const { status, headers, body } = await asked();
  expect([status, headers["content-type"]]).toEqual([code, CBOR]);
  expect(cborValue(readCbor(body as Uint8Array))).toMatchObject({ kind: "APIResourceList" });
});
