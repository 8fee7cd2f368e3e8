import { expect, test } from "vitest";
import { eventually } from "../../../test/fake-api.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import { internalError, invalid } from "../../api/meta/status-error.ts";
import type { StorageVersionMigration } from "../../api/gen/storagemigration.v1beta1.ts";
import { CONFIG_MAPS, STORAGE_VERSION_MIGRATIONS } from "../../client/resources.ts";
import { systemClock } from "../../lifecycle/clock.ts";
import { definitionMigrated, ended, told, turnsOf } from "./plan.ts";
import { storageVersionMigrationControllers } from "./storageversionmigration.ts";

const NOW = "2026-01-01T00:00:00Z";
const condition = (type: string, status = "True") => ({ type, status, reason: "Was", message: "was", lastTransitionTime: "2020-01-01T00:00:00Z" });
const migration = (name: string, created: string, ...conditions: ReturnType<typeof condition>[]): StorageVersionMigration =>
  ({ apiVersion: "storagemigration.k8s.io/v1beta1", kind: "StorageVersionMigration", metadata: { name, creationTimestamp: created }, spec: { resource: { group: "", resource: "configmaps" } }, ...(conditions.length > 0 ? { status: { conditions } } : {}) }) as StorageVersionMigration;

test.each([
  ["the oldest is next, then by name", [migration("b", "2026-01-02"), migration("c", "2026-01-01"), migration("a", "2026-01-02")], [], "c"],
  ["none beside one that runs", [migration("a", "1"), migration("b", "2", condition("Running"))], [], undefined],
  ["what is over makes room", [migration("a", "2"), migration("b", "1", condition("Running"), condition("Failed"))], ["b"], "a"],
  ["what is over is not begun again", [migration("a", "1", condition("Running", "False"), condition("Succeeded"))], [], undefined],
] as const)("%s", (_, migrations, over, next) => {
  const turns = turnsOf(migrations);
  expect([turns.over.map(({ metadata }) => metadata.name), turns.next?.metadata.name]).toEqual([over, next]);
});

test("what was told of a migration once is not told again; its run ends", () => {
  const running = told(migration("a", "1"), { type: "Running", reason: "R", message: "m" }, NOW);
  expect(running.status?.conditions).toEqual([{ type: "Running", status: "True", reason: "R", message: "m", lastTransitionTime: NOW }]);
  const over = ended(running, "2026-01-02T00:00:00Z");
  expect(over.status?.conditions).toEqual([{ type: "Running", status: "False", reason: "MigrationCompleted", message: "Migration completed", lastTransitionTime: "2026-01-02T00:00:00Z" }]);
  expect(told(over, { type: "Running", reason: "R", message: "m" }, NOW).status).toEqual(over.status);
});

test.each([
  [true, 3, "MigrationSucceeded", "The migration has succeeded and the stored versions have been updated", ["v2"]],
  [true, 2, "MigrationSucceeded", "The migration has succeeded but the stored versions have not been updated due to a generation mismatch", undefined],
  [false, 3, "MigrationFailed", "The migration has failed", ["v2"]],
])("a definition after a migration (succeeded: %s, begun at generation %s)", (succeeded, observedGeneration, reason, message, storedVersions) => {
  const versions = [{ name: "v1", served: true, storage: false }, { name: "v2", served: true, storage: true }];
  const definition = { metadata: { generation: 3 }, spec: { versions }, status: { storedVersions: ["v1", "v2"], conditions: [{ type: "StorageMigrating", status: "True", observedGeneration }] } } as never;
  expect(definitionMigrated(definition, succeeded, NOW)).toEqual({ conditions: [{ type: "StorageMigrating", status: "False", lastTransitionTime: NOW, reason, message, observedGeneration: 3 }], ...(storedVersions ? { storedVersions } : {}) });
});

const map = (name: string) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace: "ns" } });
const asked = (resource: string) => ({ apiVersion: "storagemigration.k8s.io/v1beta1", kind: "StorageVersionMigration", metadata: { name: resource }, spec: { resource: { group: "", resource } } });
const conditionsOf = ({ status }: Pick<StorageVersionMigration, "status">): string => (status?.conditions ?? []).map(({ type, status, message }) => `${type}=${status} ${message}`).join("; ");

test("each object that was there is applied once, with its uid and version; one that fails ends it, what is only busy is tried again", () =>
  withControllers(storageVersionMigrationControllers, async (api, call) => {
    const [maps, migrations] = [api.client.resource(CONFIG_MAPS), api.client.resource(STORAGE_VERSION_MIGRATIONS)];
    const there = [await maps.create(map("a"), call), await maps.create(map("b"), call)];
    const applied: unknown[] = [];
    let failures = 1;
    api.fail = ({ method, path, body }) => {
      if (method !== "PATCH" || !path.includes("/configmaps/")) return undefined;
      if (failures-- > 0) return internalError("busy");
      applied.push(body);
      return undefined;
    };
    await migrations.create(asked("configmaps"), call);
    await eventually(() => conditionsOf(api.all(STORAGE_VERSION_MIGRATIONS)[0]!), (seen) => seen === "Running=False Migration completed; Succeeded=True ");
    expect(applied).toEqual(there.map(({ metadata: { name, namespace, uid, resourceVersion } }) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace, uid, resourceVersion } })));
    api.fail = ({ method, path }) => (method === "PATCH" && path.includes("/configmaps/") ? invalid({ group: "", kind: "ConfigMap" }, "a", []) : undefined);
    await migrations.create({ ...asked("configmaps"), metadata: { name: "again" } }, call);
    await eventually(() => conditionsOf(api.all(STORAGE_VERSION_MIGRATIONS).find(({ metadata }) => metadata.name === "again")!), (seen) => seen === 'Running=False Migration completed; Failed=True migration encountered unhandled error: ConfigMap "a" is invalid');
  }));

test("a resource that nobody knows is waited for a minute", () => {
  let aheadMs = 0;
  const clock = { ...systemClock, uptimeMs: () => systemClock.uptimeMs() + aheadMs };
  return withControllers(storageVersionMigrationControllers, async (api, call) => {
    await api.client.resource(STORAGE_VERSION_MIGRATIONS).create(asked("nothings"), call);
    const seen = () => conditionsOf(api.all(STORAGE_VERSION_MIGRATIONS)[0]!);
    await eventually(seen, (text) => text === "Running=True The migration is running");
    await Bun.sleep(50);
    expect(seen()).toBe("Running=True The migration is running");
    aheadMs = 60_000;
    await eventually(seen, (text) => text === "Running=False Migration completed; Failed=True resource does not exist in discovery");
  }, { clock });
});
