import { expect, test } from "vitest";
import { endpointsOf, healthPaths } from "../core/server/health.ts";
import { healthChecks, type StartSteps } from "./health-checks.ts";

test("each endpoint is asked what upstream's is, in its order", () => {
  const done = () => true;
  const steps: StartSteps = { store: done, informers: done, webhooks: done, fairness: done, customResources: done, bootstrap: done, aggregation: done, registration: done };
  const checks = healthChecks({ steps, storeTrouble: () => undefined, isStopping: () => false });
  const namesAt = (endpoint: "healthz" | "livez" | "readyz"): string[] => checks.filter((check) => endpointsOf(check).includes(endpoint)).map(({ name }) => name).filter((name) => !name.startsWith("poststarthook/"));
  const live = ["ping", "log", "loopback-serving-certificate", "etcd", "autoregister-completion"];
  expect([namesAt("healthz"), namesAt("livez"), namesAt("readyz")]).toEqual([live, live, ["ping", "log", "etcd", "informer-sync", "autoregister-completion", "shutdown"]]);
});

test("a server that has a while to start is alive before it has started, and neither healthy nor ready", async () => {
  const [not, done] = [() => false, () => true];
  const steps: StartSteps = { store: done, informers: not, webhooks: not, fairness: not, customResources: not, bootstrap: not, aggregation: not, registration: not };
  let inGrace = true;
  const paths = healthPaths(healthChecks({ steps, storeTrouble: () => undefined, isStopping: not, inGrace: () => inGrace }));
  const codes = () => Promise.all(["/livez", "/livez/poststarthook/rbac/bootstrap-roles", "/livez/autoregister-completion", "/healthz", "/readyz"].map(async (path) => ((await paths({ path, query: new URLSearchParams() } as never, undefined as never)) as { status: number }).status));
  expect(await codes()).toEqual([200, 200, 200, 500, 500]);
  inGrace = false;
  expect(await codes()).toEqual([500, 500, 500, 500, 500]);
});
