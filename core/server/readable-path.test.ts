import { expect, test } from "vitest";
import { readablePath } from "./readable-path.ts";

test.each([
  ["/version", "/version"],
  ["/%76ersion", "/version"],
  ["/livez%2fpoststarthook%2Frbac", "/livez/poststarthook/rbac"],
  ["/%61pi/%76%31", "/api/v1"],
  ["/apis%2Fapps", "/apis/apps"],
  ["/apis%2Fapps%2Fv1", "/apis/apps/v1"],
  ["/apis/%61pps/v1/deployments/a%2Fb", "/apis/apps/v1/deployments/a%2Fb"],
  ["/apis/apps%2Fv1/deployments", "/apis/apps/v1/deployments"],
  ["/apis/apps%2Fv1%2Fdeployments/%61", "/apis/apps/v1/deployments/%61"],
  ["/%61pi/v1/nodes/n/proxy/a%20b//c%2F", "/api/v1/nodes/n/proxy/a%20b//c%2F"],
  ["/api/v1/namespaces//pods/%61", "/api/v1/namespaces//pods/%61"],
  ["/api/v1//pods/%61", "/api/v1//pods/%61"],
  ["//%61pi/v1/pods", "//api/v1/pods"],
  ["/%ff", "/%ff"],
  ["/a%3Fb", "/a?b"],
])("%s is looked at as %s", (raw, path) => expect(readablePath(raw)).toBe(path));
