import { afterAll, beforeAll, expect, test } from "vitest";
import type { AdmissionRequest } from "../../admission/plugin.ts";
import { systemClock } from "../../lifecycle/clock.ts";
import { apiServer, type ApiServer } from "../../../test/api-server.ts";

let api: ApiServer;

beforeAll(async () => { api = await apiServer(); });
afterAll(() => api[Symbol.asyncDispose]());

test("custom resources: no version is none for an update, each decoder has its words, and their Scale is written as they are", async () => {
  const spec = { type: "object", properties: { replicas: { type: "integer" } } };
  const version = { name: "v1", served: true, storage: true, subresources: { scale: { specReplicasPath: ".spec.replicas", statusReplicasPath: ".status.replicas" } }, schema: { openAPIV3Schema: { type: "object", properties: { spec } } } };
  const cogs = "/apis/example.com/v1/cogs", cog = { apiVersion: "example.com/v1", kind: "Cog", metadata: { name: "c" }, spec: { replicas: 1 } };
  await api.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", { body: { metadata: { name: "cogs.example.com" }, spec: { group: "example.com", scope: "Cluster", names: { plural: "cogs", kind: "Cog" }, versions: [version] } } });
  while ((await api.ask("GET", cogs)).code !== 200) await systemClock.sleep(5, api.signal);
  await api.ask("POST", cogs, { body: cog });
  for (const resourceVersion of ["0", null])
    expect((await api.ask("PATCH", `${cogs}/c`, { headers: { "content-type": "application/merge-patch+json" }, body: { metadata: { resourceVersion } } })).body.message).toBe('cogs.example.com "c" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update');
  const said = async (fieldValidation: string, body: object): Promise<string> => (await api.ask("POST", cogs, { query: { fieldValidation }, body })).body.message;
  expect(await said("Strict", { ...cog, apiVersion: "example.com/v2" })).toBe('Cog in version "v2" cannot be handled as a Cog: strict decoding error: unknown field "spec"');
  expect([await said("Ignore", {}), await said("Warn", {})]).toEqual([`Cog in version "v1" cannot be handled as a Cog: Object 'Kind' is missing in '{}'`, "the object provided is unrecognized (must be of type Cog): Object 'Kind' is missing in '{}' ({})"]);
  expect((await api.ask("GET", `${cogs}/c/scale`, { headers: { accept: "application/vnd.kubernetes.protobuf,application/json" } })).contentType).toBe("application/json");
});

test("a Scale says nothing of replicas that are not set, but to who changes it", async () => {
  const seen: unknown[] = [];
  const tell = ({ object, oldObject, subresource }: AdmissionRequest): void => { if (subresource === "scale") seen.push([object, oldObject].map((one) => (one as { spec?: object } | undefined)?.spec)); };
  await using cluster = await apiServer({ admit: tell, validate: tell });
  const version = { name: "v1", served: true, storage: true, subresources: { scale: { specReplicasPath: ".spec.replicas", statusReplicasPath: ".status.replicas" } }, schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } } };
  const cogs = "/apis/example.com/v1/cogs", scale = `${cogs}/c/scale`, headers = { "content-type": "application/merge-patch+json" };
  await cluster.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", { body: { metadata: { name: "cogs.example.com" }, spec: { group: "example.com", scope: "Cluster", names: { plural: "cogs", kind: "Cog" }, versions: [version] } } });
  while ((await cluster.ask("GET", cogs)).code !== 200) await systemClock.sleep(5, cluster.signal);
  await cluster.ask("POST", cogs, { body: { apiVersion: "example.com/v1", kind: "Cog", metadata: { name: "c" } } });
  expect((await cluster.ask("PATCH", scale, { headers, body: { metadata: { labels: { a: "b" } } } })).body.message).toBe('the spec replicas field ".spec.replicas" cannot be empty');
  seen.length = 0;
  expect((await cluster.ask("PATCH", scale, { headers, body: { spec: { replicas: 3 } } })).body.spec).toEqual({ replicas: 3 });
  expect(seen).toEqual([[{ replicas: 3 }, { replicas: -2147483648 }], [{ replicas: 3 }, {}]]);
});

test("what has become of another type with its definition has nothing applied to it until it is mended", async () => {
  const schemaWith = (type: string) => ({ openAPIV3Schema: { type: "object", properties: { spec: { type: "object", properties: { size: { type }, name: { type: "string" } } } } } });
  const version = { name: "v1", served: true, storage: true, schema: schemaWith("integer") };
  const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", tubs = "/apis/example.com/v1/tubs", merge = { "content-type": "application/merge-patch+json" };
  await api.ask("POST", definitions, { body: { metadata: { name: "tubs.example.com" }, spec: { group: "example.com", scope: "Cluster", names: { plural: "tubs", kind: "Tub" }, versions: [version] } } });
  while ((await api.ask("GET", tubs)).code !== 200) await systemClock.sleep(5, api.signal);
  const tub = { apiVersion: "example.com/v1", kind: "Tub", metadata: { name: "followed" }, spec: { size: 5 } };
  await api.ask("POST", tubs, { body: tub });
  await api.ask("POST", tubs, { body: { ...tub, metadata: { name: "forgotten" } } });
  await api.ask("PATCH", `${tubs}/forgotten`, { headers: merge, body: { metadata: { managedFields: [{}] } } });
  await api.ask("PATCH", `${definitions}/tubs.example.com`, { headers: merge, body: { spec: { versions: [{ ...version, schema: schemaWith("string") }] } } });
  const applied = async (name: string): Promise<unknown> => {
    const { code, body } = await api.ask("PATCH", `${tubs}/${name}`, { headers: { "content-type": "application/apply-patch+yaml" }, query: { fieldManager: "m" }, body: { ...tub, metadata: { name }, spec: { name: "n" } } });
    return code === 200 ? body.spec : [code, body.message];
  };
  const what = "(/NAME; example.com/v1, Kind=Tub)", why = ".spec.size: expected string, got &value.valueUnstructured{Value:5}";
  expect(await applied("followed")).toEqual([500, `failed to create typed live object ${what.replace("NAME", "followed")}: ${why}`]);
  expect(await applied("forgotten")).toEqual([500, `failed to create manager for existing fields: failed to convert new object ${what.replace("NAME", "forgotten")} to smd typed: ${why}`]);
  await api.ask("PATCH", `${tubs}/followed`, { headers: merge, body: { spec: { size: null } } });
  expect(await applied("followed")).toEqual({ name: "n" });
});
