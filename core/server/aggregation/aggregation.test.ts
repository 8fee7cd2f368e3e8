import { Readable } from "node:stream";
import { expect, test } from "vitest";
import type { Swagger } from "../../api/openapi/v2.ts";
import type { APIService } from "../../registry/apiregistration/api-service.ts";
import { silentLog } from "../../observe/log.ts";
import { refuseRedirect, withPart } from "./aggregator.ts";
import { resourcesIn, resourcesOfList } from "./discovered.ts";
import { identityHeaders } from "./identity.ts";
import { MANAGED_LABEL, planLocal, type Wanted } from "./local-plan.ts";
import { mergeOpenApi } from "./merge-openapi.ts";

test("whom we speak for goes into headers, keys escaped where a header's name must not hold them", () => {
  expect(identityHeaders({ name: "jane", uid: "7", groups: ["a", "b"], extra: { "example.com/team%": ["x", "y"] } })).toEqual([
    ["X-Remote-User", "jane"], ["X-Remote-Uid", "7"], ["X-Remote-Group", "a"], ["X-Remote-Group", "b"], ["X-Remote-Extra-example.com%2Fteam%25", "x"], ["X-Remote-Extra-example.com%2Fteam%25", "y"],
  ]);
});

test("names are UTF-8 in headers, a character for each byte, and no letter of them ends a line", () => {
  const bytes = (text: string): string => Buffer.from(text).toString("latin1");
  expect(identityHeaders({ name: "Dvořáček", uid: "ü", groups: ["\u010d\u010aX-Remote-Group: system:masters"], extra: { a: ["日"] } })).toEqual([
    ["X-Remote-User", bytes("Dvořáček")], ["X-Remote-Uid", bytes("ü")], ["X-Remote-Group", bytes("\u010d\u010aX-Remote-Group: system:masters")], ["X-Remote-Extra-a", bytes("日")],
  ]);
});

const wanted = (group: string, managed: Wanted["managed"], versionPriority = 100): Wanted => ({ group, version: "v1", groupPriority: 1000, versionPriority, managed });
const existing = (group: string, managed: string | undefined, spec: object = {}): [string, APIService] =>
  [`v1.${group}`, { metadata: { name: `v1.${group}`, labels: managed ? { [MANAGED_LABEL]: managed } : {} }, spec: { group, version: "v1", groupPriorityMinimum: 1000, versionPriority: 100, ...spec } } as unknown as APIService];

test.each<[string, Wanted[], [string, APIService][], string[]]>([
  ["are made for what is served", [wanted("", "onstart"), wanted("crd.example.com", "true")], [], ["create v1.", "create v1.crd.example.com"]],
  ["need none for themselves", [wanted("apiregistration.k8s.io", "onstart")], [], []],
  ["of custom resources follow them", [wanted("crd.example.com", "true", 7)], [existing("crd.example.com", "true")], ["update v1.crd.example.com"]],
  ["of custom resources end with them", [], [existing("crd.example.com", "true"), existing("apps", "onstart")], ["delete v1.crd.example.com"]],
  ["of the built-in API may be given to another server", [wanted("metrics.k8s.io", "onstart")], [existing("metrics.k8s.io", "onstart", { service: { name: "m", namespace: "kube-system" } })], []],
  ["of the built-in API stay away when they were deleted", [wanted("gone", "onstart"), wanted("gone-too", "true")], [], ["create v1.gone-too"]],
  ["that somebody else made are his", [wanted("crd.example.com", "true", 7)], [existing("crd.example.com", undefined)], []],
])("local APIServices %s", (_, all, found, actions) => {
  expect(planLocal(all, new Map(found), new Set(["v1.gone", "v1.gone-too", "v1.apps"])).map((one) => `${one.type} ${one.type === "delete" ? one.name : one.apiService.metadata.name}`)).toEqual(actions);
});

test("local APIServices of what is served no more go at the start; another server's stay", () => {
  const found = new Map([existing("gone", "onstart"), existing("metrics.k8s.io", "onstart", { service: { name: "m", namespace: "kube-system" } })]);
  expect(planLocal([], found, new Set())).toEqual([{ type: "delete", name: "v1.gone" }]);
  expect(planLocal([], found, new Set(["v1.apps"]))).toEqual([]);
});

test("local APIServices of the built-in API are put right at the start; what somebody gave to another server stays his", () => {
  const found = new Map([existing("apps", "onstart", { groupPriorityMinimum: 17 }), existing("metrics.k8s.io", "onstart", { service: { name: "m", namespace: "kube-system" } }), existing("batch", undefined, { groupPriorityMinimum: 17 })]);
  const all = ["apps", "metrics.k8s.io", "batch"].map((group) => wanted(group, "onstart"));
  expect(planLocal(all, found, new Set())).toMatchObject([{ type: "update", apiService: { metadata: { name: "v1.apps" }, spec: { groupPriorityMinimum: 1000 } } }]);
  expect(planLocal(all, found, new Set(["v1.apps"]))).toEqual([]);
});

test("older discovery becomes aggregated discovery", () => {
  const list = { resources: [
    { name: "flunders", singularName: "flunder", namespaced: true, kind: "Flunder", verbs: ["get"], shortNames: ["fl"] },
    { name: "flunders/status", singularName: "", namespaced: true, kind: "Flunder", verbs: ["get"] },
    { name: "lonely/scale", singularName: "", namespaced: false, group: "autoscaling", version: "v1", kind: "Scale", verbs: ["get"] },
  ] };
  const resources = resourcesOfList(list as never);
  expect(resources).toEqual([
    { resource: "flunders", responseKind: { group: "", version: "", kind: "Flunder" }, scope: "Namespaced", singularResource: "flunder", verbs: ["get"], shortNames: ["fl"], subresources: [{ subresource: "status", responseKind: { group: "", version: "", kind: "Flunder" }, verbs: ["get"] }] },
    { resource: "lonely", responseKind: { group: "", version: "", kind: "" }, scope: "Cluster", singularResource: "", verbs: [], subresources: [{ subresource: "scale", responseKind: { group: "autoscaling", version: "v1", kind: "Scale" }, verbs: ["get"] }] },
  ]);
  expect(resourcesIn({ items: [{ metadata: { name: "g" }, versions: [{ version: "v1", resources }] }] }, "g", "v1")).toEqual(resources);
  expect(resourcesIn({ items: [] }, "g", "v1")).toBeUndefined();
  const NO_KIND = { group: "", version: "", kind: "" };
  const bare = [{ resource: "bare", scope: "Cluster", singularResource: "bare", verbs: [], subresources: [{ subresource: "x", verbs: [] }] }];
  expect(resourcesIn({ items: [{ metadata: { name: "g" }, versions: [{ version: "v1", resources: bare as never }] }] }, "g", "v1")).toMatchObject([{ responseKind: NO_KIND, subresources: [{ subresource: "x", responseKind: NO_KIND }] }]);
});

test("another server's OpenAPI is merged in: its group's paths alone, with what they use, renamed where the name is taken by something else", () => {
  const own = { swagger: "2.0", info: { title: "Kubernetes", version: "v1" }, paths: { "/api/": {} }, definitions: { Meta: { type: "object" }, Taken: { type: "string" } }, securityDefinitions: {}, security: [] } as unknown as Swagger;
  const part = {
    paths: { "/apis/g/v1/things": { get: { parameters: [{ $ref: "#/parameters/p" }], schema: { $ref: "#/definitions/Thing" } } }, "/apis/other/v1/": {}, "/apis/g/v11": {} },
    parameters: { p: { name: "watch", in: "query" } },
    definitions: { Thing: { properties: { a: { $ref: "#/definitions/Taken" }, m: { $ref: "#/definitions/Meta" } } }, Taken: { type: "integer" }, Meta: { type: "object", "x-kubernetes-group-version-kind": [{ kind: "Thing" }] }, Unused: {} },
  };
  const merged = mergeOpenApi(own, part, "/apis/g/v1");
  expect(merged.paths).toEqual({ "/api/": {}, "/apis/g/v1/things": { get: { parameters: [{ name: "watch", in: "query" }], schema: { $ref: "#/definitions/Thing" } } } });
  expect(merged.definitions).toEqual({ Meta: { type: "object" }, Taken: { type: "string" }, Thing: { properties: { a: { $ref: "#/definitions/Taken_v2" }, m: { $ref: "#/definitions/Meta" } } }, Taken_v2: { type: "integer" } });
  expect(own.paths).toEqual({ "/api/": {} });
});

test("another server's OpenAPI that has no end, or is none, costs its part alone", () => {
  const own = { swagger: "2.0", info: { title: "Kubernetes", version: "v1" }, paths: { "/api/": {} }, definitions: {}, securityDefinitions: {}, security: [] } as never;
  const parameters: Record<string, object> = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`p${i}`, { a: { $ref: `#/parameters/p${i + 1}` }, b: { $ref: `#/parameters/p${i + 1}` } }]));
  const path = { "/apis/g/v1/things": { $ref: "#/parameters/p0" } };
  expect(withPart(own, { paths: path, parameters: { p0: { $ref: "#/parameters/p0" } } }, "/apis/g/v1", silentLog).paths).toHaveProperty(["/apis/g/v1/things"]);
  expect(withPart(own, { paths: path, parameters }, "/apis/g/v1", silentLog).paths).toHaveProperty(["/apis/g/v1/things"]);
  let deep: object = {};
  for (let i = 0; i < 200_000; i++) deep = { deep };
  expect(withPart(own, { paths: { "/apis/g/v1/things": deep } }, "/apis/g/v1", silentLog)).toBe(own);
});

test("a server behind this one sends nobody elsewhere", () => {
  const body = Readable.from(["gone"]);
  const answer = (status: number, headers: Record<string, string> = {}) => ({ type: "raw", status, headers, body }) as const;
  for (const kept of [answer(200, { location: "/created" }), answer(304), answer(404)]) expect(refuseRedirect(kept)).toBe(kept);
  expect(refuseRedirect(answer(302, { location: "https://elsewhere" }))).toMatchObject({ status: 502, body: "the backend attempted to redirect this request, which is not permitted" });
  expect(body.destroyed).toBe(true);
});
