import { expect, test } from "vitest";
import { nodeAttributes } from "./authorization.ts";

/** Source: kubernetes v1.36 pkg/kubelet/server/auth_test.go */
test.each([
  ["GET", "/pods", "get pods,proxy"],
  ["GET", "/pods/", "get pods,proxy"],
  ["GET", "/podsecret", "get proxy"],
  ["GET", "/runningpods/", "get pods,proxy"],
  ["GET", "/healthz/syncloop", "get healthz,proxy"],
  ["GET", "/configz", "get configz,proxy"],
  ["GET", "/stats/summary", "get stats"],
  ["GET", "/metrics/cadvisor", "get metrics"],
  ["GET", "/logs/messages", "get log"],
  ["POST", "/checkpoint/a/b/c", "create checkpoint"],
  ["GET", "/statusz", "get statusz"],
  ["GET", "/flagz", "get configz"],
  ["POST", "/exec/a/b/c", "create proxy"],
  ["GET", "/containerLogs/a/b/c", "get proxy"],
  ["PUT", "/", "update proxy"],
  ["OPTIONS", "/", " proxy"],
])("%s %s needs %s", (method, path, expected) => {
  const { verb, subresources } = nodeAttributes(method, path);
  expect(`${verb} ${subresources.join(",")}`).toBe(expected);
});
