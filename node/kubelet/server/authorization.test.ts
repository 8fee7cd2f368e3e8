import { expect, test } from "vitest";
import type { Client } from "../../../core/client/client.ts";
import { statusError } from "../../../core/api/meta/status-error.ts";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import { metricsRegistry } from "../../../core/observe/metrics.ts";
import { systemRandom } from "../../../core/lifecycle/random.ts";
import { authority, generateKey, keyPem, selfSign } from "../../../core/pki/authority.ts";
import { readCertificatePems } from "../../../core/pki/pem.ts";
import { spkiOf } from "../../../core/pki/signature.ts";
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

test("what follows the first blank is a token; that the API server has an error to tell of one is not remembered", async () => {
  const asked: unknown[] = [];
  const status: { authenticated: boolean; error?: string; user?: object } = { authenticated: false, error: "[invalid bearer token, not yet known]" };
  const client = { request: async ({ body }: { body: { spec: { token: string } } }) => (asked.push(body.spec.token), { status: { ...status } }) } as unknown as Client;
  const authenticate = authentication({ client, roots: () => [], clock: systemClock, access: KUBELET_DEFAULTS.access });
  const caller = async (authorization: string) => (await authenticate({ peerCertificate: undefined, authorization }, new AbortController().signal))?.name;
  expect([await caller("Bearer new"), await caller("Bearer new")]).toEqual([undefined, undefined]);
  Object.assign(status, { authenticated: true, error: "", user: { username: "u" } });
  expect([await caller("Bearer new"), await caller(" bearer new and more "), await caller("Bearer  new"), await caller("Basic new"), await caller("Bearer")]).toEqual(["u", "u", undefined, undefined, undefined]);
  Object.assign(status, { authenticated: false });
  expect([await caller("Bearer unknown"), await caller("Bearer unknown"), asked]).toEqual([undefined, undefined, ["new", "new", "new", "unknown"]]);
});

test("a connection that lasts is believed as long as the authority of its certificate is", async () => {
  const key = await generateKey(), period = { notBeforeMs: 0, notAfterMs: Date.now() + 3_600_000 };
  const ca = authority(selfSign("ca", { key, random: systemRandom, ...period }), keyPem(key), systemRandom);
  const raw = readCertificatePems(ca.issue({ subject: { commonName: "jane", organizations: ["dev"] }, spki: spkiOf(await generateKey()), usages: ["client auth"], ...period }))[0]!;
  let roots = ca.bundle;
  const authenticate = authentication({ client: {} as Client, roots: () => roots, clock: systemClock, access: KUBELET_DEFAULTS.access });
  const peerCertificate = { subject: {}, raw, issuers: [], authorized: true };
  const caller = async () => (await authenticate({ peerCertificate, authorization: undefined }, new AbortController().signal))?.name;
  expect([await caller(), await caller()]).toEqual(["jane", "jane"]);
  roots = [];
  expect(await caller()).toBeUndefined();
});

test("what the API server is asked is counted, by the code of its answer", async () => {
  const metrics = metricsRegistry();
  const answers: (Error | object)[] = [{ status: { authenticated: true, user: { username: "u" } } }, statusError({ code: 503, reason: "ServiceUnavailable", message: "busy" }), new Error("connection refused")];
  const client = { request: async () => { const answer = answers.shift()!; if (answer instanceof Error) throw answer; return answer; } } as unknown as Client;
  const access = KUBELET_DEFAULTS.access, { signal } = new AbortController();
  await authentication({ client, roots: () => [], clock: systemClock, access, metrics })({ peerCertificate: undefined, authorization: "Bearer t" }, signal);
  const authorize = authorization({ client, nodeName: "n1", clock: systemClock, access, metrics });
  for (const told of ["busy", "connection refused"]) await expect(authorize({ name: "u", groups: [] }, { verb: "get", subresource: "proxy" }, signal)).rejects.toThrow(told);
  const lines = metrics.render().split("\n").filter((line) => /^apiserver_delegated_auth[nz]_request_(total|duration_seconds_count)/.test(line)).map((line) => line.replace("apiserver_delegated_", "")).sort();
  expect(lines).toEqual(['authn_request_duration_seconds_count{code="201"} 1', 'authn_request_total{code="201"} 1', 'authz_request_duration_seconds_count{code="503"} 1', 'authz_request_duration_seconds_count{code="<error>"} 1', 'authz_request_total{code="503"} 1', 'authz_request_total{code="<error>"} 1']);
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
