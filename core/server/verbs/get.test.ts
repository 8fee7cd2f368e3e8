import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { serviceUnavailable } from "../../api/meta/status-error.ts";
import { apiServer, type ApiServer } from "../../../test/api-server.ts";

let api: ApiServer;
const MAPS = "/api/v1/namespaces/a/configmaps";

beforeAll(async () => {
  api = await apiServer();
  await api.ask("POST", MAPS, { body: { metadata: { name: "m0" } } });
});
afterAll(() => api[Symbol.asyncDispose]());

test("a version from the future is waited for, then refused", async () => {
  const { code, body } = await api.ask("GET", `${MAPS}/m0`, { query: { resourceVersion: "1000000" } });
  expect([code, body.reason, body.details.causes]).toEqual([504, "Timeout", [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }]]);
});

test("a client that will not wait is told so in time", async () => {
  const told = async (timeout: string) => {
    const { code, body, contentType } = await api.ask("GET", `${MAPS}/m0`, { query: { resourceVersion: "1000000", timeout } });
    return [code, code === 504 ? `${contentType}: ${body}` : body.message];
  };
  expect(await told("20ms")).toEqual([504, 'text/plain; charset=utf-8: {"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout","reason":"Timeout","details":{},"code":504}\n']);
  expect(await told("soon")).toEqual([400, 'invalid timeout specified in the request URL - time: invalid duration "soon"']);
});

test("who takes an object as it is known gets it, also when the store cannot be asked", async () => {
  await using own = await apiServer();
  const { body } = await own.ask("POST", MAPS, { body: { metadata: { name: "known" } } });
  vi.spyOn(own.cache, "fresh").mockRejectedValue(serviceUnavailable("the store is not available"));
  const codes = ["0", body.metadata.resourceVersion, ""].map(async (resourceVersion) => (await own.ask("GET", `${MAPS}/known`, { query: { resourceVersion } })).code);
  expect(await Promise.all(codes)).toEqual([200, 200, 503]);
});
