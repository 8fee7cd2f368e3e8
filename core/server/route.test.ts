import { afterAll, beforeAll, expect, test } from "vitest";
import { apiServer, type ApiServer } from "../../test/api-server.ts";

let api: ApiServer;
const MAPS = "/api/v1/namespaces/a/configmaps";

beforeAll(async () => {
  api = await apiServer();
  await api.ask("POST", MAPS, { body: { metadata: { name: "m0" } } });
});
afterAll(() => api[Symbol.asyncDispose]());

test("a watch of nothing is no request, whoever asks", async () => {
  const answer = await api.handler({ method: "GET", path: "/api/v1/watch", query: new URLSearchParams(), header: () => undefined, headers: () => [], wire: { rawQuery: "a=<" }, signal: api.signal } as never);
  expect(answer).toMatchObject({ type: "raw", status: 500, body: 'Internal Server Error: "/api/v1/watch?a=&lt;": failed to create RequestInfo: unable to determine kind and namespace from url, /api/v1/watch?a=&lt;\n' });
});

test("one resource under two groups: events", async () => {
  const made = await api.ask("POST", "/apis/events.k8s.io/v1/namespaces/a/events", {
    body: { metadata: { name: "e" }, eventTime: "2026-01-01T00:00:00.000000Z", action: "Do", reason: "Because", type: "Normal", reportingController: "example.com/c", reportingInstance: "c-1", regarding: { kind: "Pod", name: "p", namespace: "a" }, note: "text" },
  });
  expect([made.code, made.body.note, made.body.regarding.name]).toEqual([201, "text", "p"]);
  const core = await api.ask("GET", "/api/v1/namespaces/a/events/e");
  expect(core.body).toMatchObject({ kind: "Event", apiVersion: "v1", message: "text", involvedObject: { name: "p" }, reportingComponent: "example.com/c" });
  expect((await api.ask("GET", "/apis/events.k8s.io/v1/namespaces/a/events", { query: { fieldSelector: "regarding.name=p" } })).body.items).toMatchObject([{ metadata: { name: "e" } }]);
});

test.each([
  ["POST", `${MAPS}/m0`, 405, "the server does not allow this method on the requested resource"],
  ["PUT", MAPS, 405, "the server does not allow this method on the requested resource"],
  ["POST", "/api/v1/watch/configmaps", 405, "the server does not allow this method on the requested resource"],
  ["HEAD", `${MAPS}/m0`, 405, "the server does not allow this method on the requested resource"],
  ["OPTIONS", MAPS, 405, "the server does not allow this method on the requested resource"],
  ["POST", "/api/v1/configmaps", 405, "the server does not allow this method on the requested resource"],
  ["GET", "/api/v1/configmaps/m0", 404, "the server could not find the requested resource"],
  ["GET", "/api/v1/namespaces/a/nodes", 404, "the server could not find the requested resource"],
  ["GET", `${MAPS}/m0/nothing`, 404, "the server could not find the requested resource"],
  ["GET", "/api/v1/namespaces/a//configmaps", 404, "the server could not find the requested resource"],
  ["POST", "/api//v1/namespaces/a/configmaps", 404, "the server could not find the requested resource"],
  ["DELETE", `${MAPS}/m0%2Fm1`, 404, "the server could not find the requested resource"],
  ["GET", `${MAPS}/m0/nothing/more`, 404, "the server could not find the requested resource"],
  ["GET", "/api/v1/namespaces/a/status/more", 404, "the server could not find the requested resource"],
  ["POST", "/api/v1/namespaces/a/pods/p/binding/more", 404, "the server could not find the requested resource"],
  ["GET", "/api/v1/namespaces/a/bindings/b", 404, "the server could not find the requested resource"],
  ["POST", "/apis/authentication.k8s.io/v1/tokenreviews/t", 404, "the server could not find the requested resource"],
  ["POST", "/api/v1/namespaces/a/componentstatuses", 404, "the server could not find the requested resource"],
  ["GET", "/api/v1/namespaces/a/componentstatuses/c", 404, "the server could not find the requested resource"],
  ["POST", "/apis/authentication.k8s.io/v1/namespaces/a/tokenreviews", 404, "the server could not find the requested resource"],
  ["POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews/s/status", 404, "the server could not find the requested resource"],
  ["HEAD", `${MAPS}/m0/nothing`, 404, "the server could not find the requested resource"],
  ["GET", "/apis/authentication.k8s.io/v1/tokenreviews", 405, "the server does not allow this method on the requested resource"],
  ["GET", "/api/v1/componentstatuses/c", 404, 'componentstatus "c" not found'],
  ["GET", "/api/v1/nothings", 404, "the server could not find the requested resource"],
])("%s %s is %i", async (method, path, code, message) => {
  const told = await api.ask(method, path, { body: {} });
  expect([told.code, told.body.message]).toEqual([code, message]);
});

test("what can be listed alone is not watched", async () => {
  expect((await api.ask("GET", "/api/v1/componentstatuses", { query: { watch: "1" } })).body).toMatchObject({ code: 405, message: 'watch is not supported on resources of kind "componentstatuses"' });
});

test.each([
  "/nothing", "/apis/example.com", "/apis/extensions/v1beta1/ingresses", "/apis/storagemigration.k8s.io/v1beta1/storageversionmigrations", "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions", "//api/v1/pods", "//apis/apps/v1/deployments",
])("nobody serves %s: as Go's HTTP library says it", async (path) => {
  expect(await api.ask("GET", path)).toMatchObject({ code: 404, contentType: "text/plain; charset=utf-8", body: "404 page not found\n" });
});

test.each([["GET", ".", "may not be '.'"], ["DELETE", "%2e%2e", "may not be '..'"], ["GET", "a%25b", "may not contain '%'"]])("%s of a pod %s: no name is like that", async (method, name, problem) => {
  expect((await api.ask(method, `/api/v1/namespaces/a/pods/${name}`)).body).toMatchObject({ code: 400, reason: "BadRequest", message: `Name parameter invalid: "${decodeURIComponent(name)}": ${problem}` });
});

test.each(["/api/v2", "/api/v1/nothings", "/apis/apps/v2/deployments", "/apis/batch/v1beta1/cronjobs", "/apis/policy/v1beta1/podsecuritypolicies", "/openid/v1/jwks/x", "/.well-known/openid-configuration/x"])("%s is below what is built in: its router says that it is not there", async (path) => {
  expect((await api.ask("GET", path)).body).toEqual({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message: "the server could not find the requested resource", reason: "NotFound", details: {}, code: 404 });
});
