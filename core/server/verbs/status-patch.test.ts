import { expect, test } from "vitest";
import type { AdmissionRequest } from "../../admission/plugin.ts";
import { apiServer } from "../../../test/api-server.ts";

const PODS = "/api/v1/namespaces/a/pods";
const pod = (name: string) => ({ apiVersion: "v1", kind: "Pod", metadata: { name }, spec: { containers: [{ name: "c", image: "x", env: [{ name: "A", value: "1" }] }] } });
const TYPES = ["application/strategic-merge-patch+json", "application/merge-patch+json"];
const status = (phase: string) => ({ phase, conditions: [{ type: "Ready", status: "True", lastTransitionTime: "2026-01-01T00:00:00Z" }] });

test("a patch of the status alone leaves the very spec that is stored: nothing of it is decoded, defaulted or held twice", async () => {
  const seen: AdmissionRequest[] = [];
  await using api = await apiServer({ admit: (request) => { if (request.subresource === "status") seen.push({ ...request, object: { ...request.object! } }); } });
  const { body: made } = await api.ask("POST", PODS, { body: pod("p") });
  for (const [i, type] of TYPES.entries()) {
    const { code, body } = await api.ask("PATCH", `${PODS}/p/status`, { headers: { "content-type": type }, body: { status: status(`Phase${i}`) } });
    expect([code, body.spec, body.status.phase]).toEqual([200, made.spec, `Phase${i}`]);
  }
  const specs = seen.flatMap(({ object, oldObject }) => [object, oldObject].map((one) => (one as unknown as { spec: object }).spec));
  expect(specs).toHaveLength(4);
  for (const spec of specs) expect(spec).toBe(specs[0]);
});

test("what such a patch says of the spec is checked, and does nothing; what admission makes of it does nothing either", async () => {
  await using api = await apiServer({ admit: ({ subresource, object }) => { if (subresource === "status") (object as unknown as { spec: object }).spec = { containers: [{ name: "c", image: "z" }] }; } });
  const { body: made } = await api.ask("POST", PODS, { body: pod("p") });
  const ask = (body: object, query: Record<string, string> = {}) => api.ask("PATCH", `${PODS}/p/status`, { headers: { "content-type": TYPES[0]! }, body, query });
  const warned = await ask({ spec: { containers: [{ name: "c", image: "y", nothing: 1 }] }, status: status("Running") });
  expect([warned.code, warned.warnings, warned.body.spec, warned.body.status.phase]).toEqual([200, ['unknown field "spec.containers[0].nothing"'], made.spec, "Running"]);
  expect((await ask({ spec: { containers: [{ name: "c", nothing: 1 }] } }, { fieldValidation: "Strict" })).code).toBe(422);
});

test("below status, defaults are filled in", async () => {
  await using api = await apiServer();
  await api.ask("POST", "/api/v1/nodes", { body: { metadata: { name: "n" } } });
  const { body } = await api.ask("PATCH", "/api/v1/nodes/n/status", { headers: { "content-type": TYPES[0]! }, body: { status: { capacity: { cpu: "1500u" } } } });
  expect(body.status).toMatchObject({ capacity: { cpu: "2m" }, allocatable: { cpu: "2m" } });
  await api.ask("POST", PODS, { body: pod("p") });
  const patched = await api.ask("PATCH", `${PODS}/p/status`, { headers: { "content-type": TYPES[0]! }, body: { status: { containerStatuses: [{ name: "c", image: "x", imageID: "", ready: true, restartCount: 0, allocatedResources: { cpu: "1500u" } }] } } });
  expect(patched.body.status.containerStatuses[0].allocatedResources).toEqual({ cpu: "2m" });
});

test("what a client may not change of a claim's status is told before what is wrong with it", async () => {
  await using api = await apiServer({ authorizer: { authorize: (asked) => ({ decision: asked.isResource && asked.subresource === "binding" ? "no-opinion" : "allow", reason: "" }), rulesFor: () => Promise.reject(new Error("nobody asks")) } });
  const claims = "/apis/resource.k8s.io/v1/namespaces/a/resourceclaims";
  await api.ask("POST", claims, { body: { metadata: { name: "c" }, spec: { devices: { requests: [{ name: "r", exactly: { deviceClassName: "x" } }] } } } });
  const { body } = await api.ask("PATCH", `${claims}/c/status`, { headers: { "content-type": "application/merge-patch+json" }, body: { status: { allocation: { devices: { results: [{ request: "other", driver: "d", pool: "p", device: "a" }] } } } } });
  expect(body.message).toMatch(/^ResourceClaim.resource.k8s.io "c" is invalid: \[status.allocation: Forbidden: changing status.allocation or status.reservedFor requires resource="resourceclaims\/binding", verb="patch" permission: .*, status.allocation.devices.results\[0\].request: Invalid value: /);
});
