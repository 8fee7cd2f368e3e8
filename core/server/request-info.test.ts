import { expect, test } from "vitest";
import { attributesOf } from "./access.ts";
import type { ServerRequest } from "./request.ts";
import { hasEmptyPart, requestInfo } from "./request-info.ts";

test.each([
  ["GET", "/api/v1/pods", "list  pods   "],
  ["GET", "/api/v1/namespaces/a/pods?watch=true", "watch  pods  a "],
  ["GET", "/api/v1/namespaces/a/pods/b", "get  pods  a b"],
  ["POST", "/api/v1/namespaces/a/pods/b/binding", "create  pods binding a b"],
  ["GET", "/api/v1/namespaces/a", "get  namespaces  a a"],
  ["GET", "/api/v1/namespaces/a/pods/b%2Fc", "get  pods c a b"],
  ["PUT", "/api/v1/namespaces/a/finalize", "update  namespaces finalize a a"],
  ["DELETE", "/apis/apps/v1/namespaces/a/deployments", "deletecollection apps deployments  a "],
  ["PATCH", "/apis/apps/v1/namespaces/a/deployments/d/status", "patch apps deployments status a d"],
  ["GET", "/api/v1/namespaces/a/secrets?fieldSelector=metadata.name%3Dx", "list  secrets  a x"],
  ["GET", "/api/v1/secrets?watch=1&fieldSelector=metadata.namespace%3Da,metadata.name%3D%3Dx", "watch  secrets   x"],
  ["GET", "/api/v1/namespaces/a/secrets?fieldSelector=metadata.name%3D..", "list  secrets  a "], ["GET", "/api/v1/namespaces/a/secrets?fieldSelector=metadata.name%3Dx%5C", "list  secrets  a "], ["GET", "/api/v1/namespaces/a/secrets?fieldSelector=metadata.name!%3Dx", "list  secrets  a "],
  ["GET", "/api/v1/proxy/namespaces/a/pods/b/c", "proxy  pods  a b"],
  ["GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode", "get rbac.authorization.k8s.io clusterroles   system:node"],
])("%s %s", (method, url, expected) => {
  const { pathname, searchParams } = new URL(url, "https://x");
  const info = requestInfo(method, pathname, searchParams);
  expect(info.isResource && `${info.verb} ${info.group} ${info.resource} ${info.subresource} ${info.namespace} ${info.name}`).toBe(expected);
});

test.each(["", "/", "/a%20b//c/", "/a%2Fb/c%2fd", "//proxy/proxy%2F", "/%2F/%252F//"])("what follows proxy is kept as it is: %s", (rest) => {
  for (const [path, facts] of [
    ["/api/v1/namespaces/a/services/https:web:443", { resource: "services", name: "https:web:443" }], ["/api/v1/namespaces/a/pods/b", { resource: "pods", name: "b" }],
    ["/api/v1/nodes/shed:10250", { resource: "nodes", name: "shed:10250" }], ["/api/v1/namespaces/a%2Fpods/b", { resource: "pods", name: "b" }],
  ] as const) expect(requestInfo("GET", `${path}/proxy${rest}`, new URLSearchParams())).toMatchObject({ ...facts, subresource: "proxy", rest });
});

test.each([["/api/v1/pods/", false], ["/api/v1//pods", true], ["/api/v1/pods/%2Fstatus", true], ["/api/v1/namespaces/a%2F/pods", true], ["/api/v1/pods%2F", false]])("%s has an empty part: %s", (path, expected) => {
  expect(hasEmptyPart(path)).toBe(expected);
});

test.each(["/api/v1/watch", "/apis/apps/v1/watch/", "/api/v1/proxy"])("%s does not say what it is about", (path) => {
  expect(requestInfo("GET", path, new URLSearchParams())).toMatchObject({ isResource: false, isIncomplete: true });
});

test.each([
  ["GET", "/api/v1/pods", true], ["GET", "/api/v1/pods?watch=1", true], ["DELETE", "/api/v1/namespaces/a/pods", true],
  ["GET", "/api/v1/pods/b", false], ["POST", "/api/v1/namespaces/a/pods", false], ["GET", "/api/v1/watch/namespaces/a/pods", false],
])("%s %s: authorizers are told what is selected: %s", (method, url, isTold) => {
  const { pathname, searchParams } = new URL(url, "https://x");
  searchParams.set("fieldSelector", "spec.nodeName=n");
  const attributes = attributesOf(requestInfo(method, pathname, searchParams), { query: searchParams } as ServerRequest, { name: "jane", groups: [] });
  expect(attributes.isResource && attributes.fieldSelector).toBe(isTold ? "spec.nodeName=n" : undefined);
});

test.each(["/healthz", "/api", "/apis", "/apis/apps", "/apis/apps/v1", "/api/v1", "/openapi/v3/apis/apps/v1", "/version"])("%s is a path", (path) => {
  expect(requestInfo("GET", path, new URLSearchParams())).toEqual({ isResource: false, verb: "get", path });
});
