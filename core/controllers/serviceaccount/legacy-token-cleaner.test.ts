import { expect, test } from "vitest";
import { eventually, fakeApi } from "../../../test/fake-api.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import type { Secret, ServiceAccount } from "../../api/gen/core.v1.ts";
import { CONFIG_MAPS, SECRETS, SERVICE_ACCOUNTS } from "../../client/resources.ts";
import { clientOver } from "../../client/resource-client.ts";
import { systemClock } from "../../lifecycle/clock.ts";
import { fateOf, legacyTokenCleanerController, trackedForLong } from "./legacy-token-cleaner.ts";

const NOW = Date.UTC(2026, 5, 15, 12);
const USED = "kubernetes.io/legacy-token-last-used", INVALID = "kubernetes.io/legacy-token-invalid-since";

function secret(metadata: object = {}, type = "kubernetes.io/service-account-token"): Secret {
  const annotations = { "kubernetes.io/service-account.name": "robot", "kubernetes.io/service-account.uid": "u" };
  return { apiVersion: "v1", kind: "Secret", type, metadata: { name: "robot-token", namespace: "a", uid: "s", resourceVersion: "1", creationTimestamp: "2020-01-01T00:00:00Z", annotations, ...metadata } };
}

const account = { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "robot", namespace: "a", uid: "u", resourceVersion: "1", creationTimestamp: "2020-01-01T00:00:00Z" }, secrets: [{ name: "robot-token" }] } as ServiceAccount;

test.each<[what: string, fate: string, secret: Secret, rest?: { readonly account?: ServiceAccount | undefined; readonly mounted?: boolean }]>([
  ["nobody has ever used it", "mark", secret()],
  ["last used more than a year ago", "mark", secret({ labels: { [USED]: "2025-06-14" } })],
  ["last used a year ago", "keep", secret({ labels: { [USED]: "2025-06-15" } })],
  ["a date that is none", "keep", secret({ labels: { [USED]: "yesterday" } })],
  ["younger than a year", "keep", secret({ creationTimestamp: "2025-06-15T12:00:01Z" })],
  ["being deleted", "keep", secret({ deletionTimestamp: "2026-01-01T00:00:00Z" })],
  ["no token", "keep", secret({}, "Opaque")],
  ["a pod mounts it", "keep", secret(), { mounted: true }],
  ["its ServiceAccount is gone", "keep", secret(), { account: undefined }],
  ["another ServiceAccount of that name", "keep", secret(), { account: { ...account, metadata: { ...account.metadata, uid: "other" } } }],
  ["somebody made it by hand", "keep", secret(), { account: { ...account, secrets: [] } }],
  ["marked for less than a year", "keep", secret({ labels: { [INVALID]: "2025-06-15" } })],
  ["marked for more than a year", "delete", secret({ labels: { [INVALID]: "2025-06-14" } })],
  ["marked with nonsense", "mark", secret({ labels: { [INVALID]: "x" } })],
])("%s: %s", (_, fate, one, rest = {}) => {
  expect(fateOf({ secret: one, account, mounted: false, ...rest }, NOW)).toBe(fate);
});

test("nothing is known until use has been noted for a year", () => {
  const since = (day: string) => trackedForLong({ apiVersion: "v1", kind: "ConfigMap", metadata: account.metadata, data: { since: day } }, NOW);
  expect([since("2025-06-14"), since("2025-06-15"), since("soon")]).toEqual([true, false, false]);
});

test("the time may be another one", () => {
  const used = secret({ labels: { [USED]: "2026-06-12" } }), week = 7 * 86_400_000, day = 86_400_000;
  expect([week, day].map((ms) => fateOf({ secret: used, account, mounted: false }, NOW, ms))).toEqual(["keep", "mark"]);
  expect([week, day].map((ms) => trackedForLong({ apiVersion: "v1", kind: "ConfigMap", metadata: account.metadata, data: { since: "2026-06-12" } }, NOW, ms))).toEqual([false, true]);
});

test("what is marked is marked in the cluster, what is over goes", async () => {
  await withControllers((deps) => [legacyTokenCleanerController(deps)], async (api) => {
    await eventually(() => api.all(SECRETS).map(({ metadata }) => [metadata.name, metadata.labels]), (all) => JSON.stringify(all) === JSON.stringify([["robot-token", { [INVALID]: "2026-06-15" }]]));
  }, { clock: { ...systemClock, nowMs: () => NOW }, api: await seeded() });
});

test("one that may not be marked keeps no other from going", async () => {
  const api = await seeded();
  const call = api.call.bind(api);
  api.call = async (req) => {
    if (req.path.endsWith("/secrets/robot-token")) throw new Error("refused");
    return await call(req);
  };
  await withControllers((deps) => [legacyTokenCleanerController(deps)], async () => {
    await eventually(() => api.all(SECRETS).map(({ metadata }) => metadata.name), (names) => names.join() === "robot-token");
  }, { clock: { ...systemClock, nowMs: () => NOW }, api: { ...api, client: clientOver(api) } });
});

async function seeded() {
  const call = { signal: AbortSignal.timeout(60_000) };
  const api = fakeApi({ clock: { ...systemClock, nowMs: () => Date.UTC(2020, 0, 1) } });
  await api.client.resource(CONFIG_MAPS).create({ apiVersion: "v1", kind: "ConfigMap", metadata: { namespace: "kube-system", name: "kube-apiserver-legacy-service-account-token-tracking" }, data: { since: "2020-01-01" } }, call);
  const robot = await api.client.resource(SERVICE_ACCOUNTS).create({ apiVersion: "v1", kind: "ServiceAccount", metadata: { namespace: "a", name: "robot" }, secrets: [{ name: "robot-token" }, { name: "robot-old" }] }, call);
  for (const [name, labels] of [["robot-token", {}], ["robot-old", { [INVALID]: "2024-01-01" }]] as const) {
    const annotations = { "kubernetes.io/service-account.name": "robot", "kubernetes.io/service-account.uid": robot.metadata.uid };
    await api.client.resource(SECRETS).create({ apiVersion: "v1", kind: "Secret", type: "kubernetes.io/service-account-token", metadata: { namespace: "a", name, labels, annotations } }, call);
  }
  return api;
}
