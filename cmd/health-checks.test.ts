import { expect, test } from "vitest";
import { endpointsOf } from "../core/server/health.ts";
import { healthChecks, type StartSteps } from "./health-checks.ts";

test("each endpoint is asked what upstream's is, in its order", () => {
  const done = () => true;
  const steps: StartSteps = { store: done, informers: done, webhooks: done, fairness: done, customResources: done, bootstrap: done, aggregation: done, registration: done };
  const checks = healthChecks({ steps, storeTrouble: () => undefined, isStopping: () => false });
  const namesAt = (endpoint: "healthz" | "livez" | "readyz"): string[] => checks.filter((check) => endpointsOf(check).includes(endpoint)).map(({ name }) => name).filter((name) => !name.startsWith("poststarthook/"));
  const live = ["ping", "log", "loopback-serving-certificate", "etcd", "autoregister-completion"];
  expect([namesAt("healthz"), namesAt("livez"), namesAt("readyz")]).toEqual([live, live, ["ping", "log", "etcd", "informer-sync", "autoregister-completion", "shutdown"]]);
});
