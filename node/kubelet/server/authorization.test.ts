import { expect, test } from "vitest";
import type { Client } from "../../../core/client/client.ts";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import { KUBELET_DEFAULTS } from "../settings.ts";
import { authentication } from "./authentication.ts";
import { authorization, nodeAttributes } from "./authorization.ts";

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

test("what the API server has said holds as long as the configuration says", async () => {
  let nowMs = 0;
  let asked = 0;
  const clock = { ...systemClock, uptimeMs: () => nowMs };
  const client = { request: async ({ path }: { path: string }) => (asked++, path.endsWith("tokenreviews") ? { status: { authenticated: true, user: { username: "u" } } } : { status: { allowed: true } }) } as unknown as Client;
  const access = { ...KUBELET_DEFAULTS.access, tokenTtlMs: 5_000, allowedTtlMs: 1_000 };
  const authorize = authorization({ client, nodeName: "n1", clock, access });
  const authenticate = authentication({ client, roots: () => [], clock, access });
  const at = async (ms: number): Promise<number> => {
    nowMs = ms;
    asked = 0;
    const { signal } = new AbortController();
    const user = await authenticate({ peerCertificate: undefined, authorization: "Bearer t" }, signal);
    await authorize(user!, { verb: "get", subresource: "proxy" }, signal);
    return asked;
  };
  expect([await at(0), await at(999), await at(1_000), await at(5_500)]).toEqual([2, 0, 1, 2]);
});
