import { expect, test } from "vitest";
import { endpointsOf, healthPaths } from "../core/server/health.ts";
import { healthChecks, type StartSteps } from "./health-checks.ts";

test("each endpoint is asked what upstream's is, in its order", () => {
  const done = () => true;
  const steps: StartSteps = { store: done, informers: done, webhooks: done, fairness: done, customResources: done, bootstrap: done, aggregation: done, registration: done };
  const checks = healthChecks({ steps, storeTrouble: () => undefined, isStopping: () => false });
  const namesAt = (endpoint: "healthz" | "livez" | "readyz"): string[] => checks.filter((check) => endpointsOf(check).includes(endpoint)).map(({ name }) => name).filter((name) => !name.startsWith("poststarthook/"));
  const live = ["ping", "log", "loopback-serving-certificate", "etcd", "autoregister-completion"];
  expect([namesAt("healthz"), namesAt("livez"), namesAt("readyz")]).toEqual([live, live, ["ping", "log", "etcd", "etcd-readiness", "informer-sync", "autoregister-completion", "shutdown"]]);
  const sealed = healthChecks({ steps, storeTrouble: () => undefined, keysTrouble: () => "the key service hangs", isStopping: () => false });
  const asked = (endpoint: "healthz" | "livez" | "readyz"): boolean => sealed.some((check) => check.name === "kms-providers" && endpointsOf(check).includes(endpoint));
  expect([asked("healthz"), asked("livez"), asked("readyz"), sealed.map(({ name }) => name).slice(3, 7)]).toEqual([true, false, true, ["etcd", "etcd-readiness", "kms-providers", "informer-sync"]]); // a server without keys is no dead one
  expect(checks.map(({ name }) => name).filter((name) => /^poststarthook|^autoregister/.test(name)).map((name) => name.replace("poststarthook/", ""))).toEqual([
    "start-apiserver-admission-initializer", "generic-apiserver-start-informers", "priority-and-fairness-config-consumer", "priority-and-fairness-filter", "storage-object-count-tracker-hook",
    "start-apiextensions-informers", "start-apiextensions-controllers", "crd-informer-synced", "start-system-namespaces-controller", "peer-endpoint-reconciler-controller", "start-cluster-authentication-info-controller",
    "start-kube-apiserver-identity-lease-controller", "start-kube-apiserver-identity-lease-garbage-collector", "storage-readiness", "start-legacy-token-tracking-controller", "start-service-ip-repair-controllers",
    "rbac/bootstrap-roles", "scheduling/bootstrap-system-priority-classes", "priority-and-fairness-config-producer", "bootstrap-controller", "start-kubernetes-service-cidr-controller", "aggregator-reload-proxy-client-cert",
    "start-kube-aggregator-informers", "apiservice-status-local-available-controller", "apiservice-status-remote-available-controller", "apiservice-registration-controller", "apiservice-discovery-controller",
    "kube-apiserver-autoregistration", "autoregister-completion", "apiservice-openapi-controller", "apiservice-openapiv3-controller",
  ]);
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
