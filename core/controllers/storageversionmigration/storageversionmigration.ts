/**
 * Writes all objects of a resource once more, for who asks for it with a StorageVersionMigration: what an older version of a definition has stored is then stored in the one of now. An empty apply
 * of each object that was there when it began does that; where others have written it since, they have.
 *
 *   runner      whose turn it is, for each resource           one migration of it runs at a time
 *   migrator    what is there at which version, then each object
 *
 * API:    https://kubernetes.io/docs/tasks/manage-kubernetes-objects/storage-version-migration/
 * Source: kubernetes v1.36 pkg/controller/storageversionmigrator
 */
import type { CustomResourceDefinition, CustomResourceDefinitionStatus } from "../../api/gen/apiextensions.v1.ts";
import type { StorageVersionMigration } from "../../api/gen/storagemigration.v1beta1.ts";
import { formatApiVersion } from "../../api/meta/gvk.ts";
import { ifFound } from "../../api/meta/if-found.ts";
import { type NewObject, objectKey, type ObjectKey, splitKey } from "../../api/meta/object-meta.ts";
import { isConflict, reasonOf } from "../../api/meta/status-error.ts";
import { discover, type ServedResource } from "../../client/discovery.ts";
import { CUSTOM_RESOURCE_DEFINITIONS, STORAGE_VERSION_MIGRATIONS } from "../../client/resources.ts";
import { timestamp } from "../../lifecycle/clock.ts";
import { Elapsed } from "../../lifecycle/elapsed.ts";
import { type Controller, itself, mapped } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { definitionMigrated, definitionMigrating, ended, isOver, isTrue, told, turnsOf } from "./plan.ts";

type Deps = Pick<ControllerDeps, "client" | "informers" | "clock">;
type Migration = Readonly<StorageVersionMigration>;

const MANAGER = "storage-version-migrator-controller", RUNNER = "migration-runner-controller";
const VERBS = ["update", "patch", "list"];
const PAGE = 500;
/** How long a resource may be unknown: definitions that came with the migration are served in a moment. */
const PATIENCE_MS = 60_000;
const RETRIED: ReadonlySet<string> = new Set(["ServerTimeout", "TooManyRequests", "ServiceUnavailable", "InternalError", "Timeout"]);
const UNKNOWN = "resource does not exist in discovery";

export function storageVersionMigrationControllers(deps: Deps): Controller[] { return [runner(deps), migrator(deps)]; }

function runner({ client, informers, clock }: Deps): Controller {
  const migrations = informers.of(STORAGE_VERSION_MIGRATIONS);
  const migrationClient = client.resource(STORAGE_VERSION_MIGRATIONS), definitions = client.resource(CUSTOM_RESOURCE_DEFINITIONS);

  /** Of the resource that is named so, if it is one of a definition. The version is named: what has changed meanwhile is looked at again. */
  async function tellDefinition(name: string, statusOf: (definition: Readonly<CustomResourceDefinition>) => Partial<CustomResourceDefinitionStatus>, signal: AbortSignal): Promise<void> {
    const definition = await ifFound(definitions.get({ metadata: { name } }, { signal }));
    if (definition === undefined) return;
    const draft = { apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition", metadata: { name, resourceVersion: definition.metadata.resourceVersion }, status: statusOf(definition) } as unknown as NewObject<CustomResourceDefinition>;
    await definitions.apply(draft, { fieldManager: RUNNER, force: true, subresource: "status", signal });
  }

  return {
    name: RUNNER,
    workers: 1,
    watches: [mapped(migrations, ({ object: { spec } }) => [resourceKey(spec.resource)])],
    async reconcile(key, { signal }) {
      const { namespace: group, name: resource } = splitKey(key);
      const { over, next } = turnsOf([...migrations.list()].filter(({ spec }) => resourceKey(spec.resource) === key));
      const now = timestamp(clock.nowMs()), written: Migration[] = [];
      for (const one of over) {
        await tellDefinition(`${resource}.${group}`, (definition) => definitionMigrated(definition, isTrue(one, "Succeeded"), now), signal);
        written.push(await migrationClient.updateStatus(ended(one, now), { signal }));
      }
      if (next) {
        await tellDefinition(`${resource}.${group}`, (definition) => ({ conditions: [definitionMigrating(definition, next.metadata.name, now)] }), signal);
        written.push(await migrationClient.updateStatus(told(next, { type: "Running", reason: "MigrationRunning", message: "The migration is running" }, now), { signal }));
      }
      await migrations.caughtUp(written, signal);
    },
  };
}

function resourceKey({ group = "", resource }: StorageVersionMigration["spec"]["resource"]): ObjectKey { return objectKey(group, resource); }

function migrator({ client, informers, clock }: Deps): Controller {
  const migrations = informers.of(STORAGE_VERSION_MIGRATIONS);
  const migrationClient = client.resource(STORAGE_VERSION_MIGRATIONS);
  const ages = new Map<ObjectKey, Elapsed>();

  async function found({ spec: { resource } }: Migration, signal: AbortSignal): Promise<ServedResource | undefined> {
    const { resources } = await discover(client, signal);
    return resources.find((one) => one.plural === resource.resource && one.group === (resource.group ?? ""));
  }

  /** What is newer than the answer needs no migration. */
  async function newestVersion(resource: ServedResource, signal: AbortSignal): Promise<string> {
    const { metadata } = await client.resource(resource).list({ limit: 1 }, { signal });
    return metadata.resourceVersion;
  }

  /** Resolves once all are written; else with what went wrong. */
  async function rewrite(resource: ServedResource, since: string, signal: AbortSignal): Promise<unknown> {
    const objects = client.resource(resource);
    for (let page: string | undefined = ""; page !== undefined;) {
      const { items, metadata } = await objects.list({ limit: PAGE, continue: page }, { signal });
      for (const { metadata: { name, namespace, uid, resourceVersion } } of items) {
        if (BigInt(resourceVersion) > BigInt(since)) continue;
        try {
          await objects.apply({ apiVersion: formatApiVersion(resource), kind: resource.kind, metadata: { name, namespace, uid, resourceVersion } }, { fieldManager: MANAGER, signal });
        } catch (error) {
          if (signal.aborted || RETRIED.has(reasonOf(error))) throw error;
          if (!isConflict(error)) return error; // a conflict: it was written since, or is gone
        }
      }
      page = metadata.continue || undefined;
    }
    return undefined;
  }

  return {
    name: MANAGER,
    workers: 5,
    watches: [itself(migrations)],
    async reconcile(key, { signal }) {
      const migration = migrations.get(key);
      if (!migration || isOver(migration)) { ages.delete(key); return; }
      if (!isTrue(migration, "Running")) return;
      const write = async (next: StorageVersionMigration): Promise<void> => await migrations.caughtUp([await migrationClient.updateStatus(next, { signal })], signal);
      const fail = async (message: string): Promise<void> => await write(told(migration, { type: "Failed", reason: "StorageVersionMigrationFailed", message }, timestamp(clock.nowMs())));
      const resource = await found(migration, signal);
      const since = migration.status?.resourceVersion ?? "";
      if (!resource) {
        const age = ages.get(key) ?? new Elapsed(clock);
        ages.set(key, age);
        if (age.sinceMs(migration.metadata.creationTimestamp ?? "") < PATIENCE_MS) throw new Error(UNKNOWN);
        return await fail(UNKNOWN);
      }
      if (!VERBS.every((verb) => resource.verbs.includes(verb)))
        return await fail(`resource "${formatApiVersion(resource)}, Resource=${resource.plural}" does not support discovery operations: [${VERBS.join(" ")}]`);
      if (since === "") return await write({ ...migration, status: { ...migration.status, resourceVersion: await newestVersion(resource, signal) } });
      const error = await rewrite(resource, since, signal);
      if (error !== undefined) return await fail(`migration encountered unhandled error: ${(error as Error).message}`);
      await write(told(migration, { type: "Succeeded", reason: "StorageVersionMigrationSucceeded", message: "" }, timestamp(clock.nowMs())));
    },
  };
}
