/** Clients whose namespace is an empty text ask for …/namespaces//pods. */
import { expect, test } from "vitest";
import { apiServer } from "../../test/api-server.ts";

const MAPS = "/api/v1/namespaces//configmaps";

test("a list of no namespace is one of all, and authorized as such", async () => {
  await using api = await apiServer();
  for (const namespace of ["a", "b"]) await api.ask("POST", `/api/v1/namespaces/${namespace}/configmaps`, { body: { metadata: { name: "m" } } });
  for (const path of [MAPS, `${MAPS}/`]) {
    const { code, body } = await api.ask("GET", path);
    expect([code, body.items.map(({ metadata }: { metadata: { namespace: string } }) => metadata.namespace)]).toEqual([200, ["a", "b"]]);
  }
});

test.each([
  ["GET", `${MAPS}/m`, 400, "Namespace parameter required."],
  ["PUT", `${MAPS}/m`, 400, "Namespace parameter required."],
  ["DELETE", `${MAPS}/m`, 400, "Namespace parameter required."],
  ["DELETE", MAPS, 400, "Namespace parameter required."],
  ["GET", "/api/v1/namespaces//pods/m/log", 400, "Namespace parameter required."],
  ["POST", MAPS, 422, 'ConfigMap "m" is invalid: metadata.namespace: Required value'],
  ["PUT", MAPS, 405, "the server does not allow this method on the requested resource"],
  ["POST", `${MAPS}/m`, 405, "the server does not allow this method on the requested resource"],
  ["GET", "/api/v1/namespaces/a/pods//log", 400, "name must be provided"],
  ["PUT", "/api/v1/namespaces/a/pods//status", 400, "name must be provided"],
  ["GET", "/api/v1/nodes//proxy/a//b", 400, "name must be provided"],
  ["GET", "/apis/apps/v1/namespaces/a/deployments//scale", 400, "name must be provided"],
  ["GET", "/api/v1/namespaces//status", 400, "name must be provided"],
  ["GET", "/api/v1/namespaces/a/pods//nope", 404, "the server could not find the requested resource"],
  ["GET", "/api/v1/namespaces/a/pods///log", 404, "the server could not find the requested resource"],
  ["GET", "/api/v1/namespaces/a/pods//log//x", 404, "the server could not find the requested resource"],
  ["GET", "/api/v1/namespaces//nodes", 404, "the server could not find the requested resource"],
  ["GET", "/api/v1/namespaces/a/namespaces", 404, "the server could not find the requested resource"],
  ["GET", "/api/v1/namespaces/a/namespaces/b/status", 404, "the server could not find the requested resource"],
  ["GET", "/api/v1/namespaces///configmaps", 404, "the server could not find the requested resource"],
  ["GET", "/api/v1//namespaces/a/configmaps", 404, "the server could not find the requested resource"],
])("%s %s", async (method, path, code, message) => {
  await using api = await apiServer();
  const told = await api.ask(method, path, { body: { metadata: { name: "m" } } });
  expect([told.code, told.body.message]).toEqual([code, message]);
});
