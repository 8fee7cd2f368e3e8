import { expect, test } from "vitest";
import { requestInfo } from "./request-info.ts";

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
  ["GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode", "get rbac.authorization.k8s.io clusterroles   system:node"],
])("%s %s", (method, url, expected) => {
  const { pathname, searchParams } = new URL(url, "https://x");
  const info = requestInfo(method, pathname, searchParams);
  expect(info.isResource && `${info.verb} ${info.group} ${info.resource} ${info.subresource} ${info.namespace} ${info.name}`).toBe(expected);
});

test("what follows proxy is kept as it is", () => {
  const info = requestInfo("GET", "/api/v1/namespaces/a/services/https:web:443/proxy/a%20b//c/", new URLSearchParams());
  expect(info).toMatchObject({ resource: "services", name: "https:web:443", subresource: "proxy", rest: "/a%20b//c/" });
});

test.each(["/healthz", "/api", "/apis", "/apis/apps", "/apis/apps/v1", "/api/v1", "/openapi/v3/apis/apps/v1", "/version"])("%s is a path", (path) => {
  expect(requestInfo("GET", path, new URLSearchParams())).toEqual({ isResource: false, verb: "get", path });
});
