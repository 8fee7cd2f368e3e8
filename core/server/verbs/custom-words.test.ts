import { afterAll, beforeAll, expect, test } from "vitest";
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
