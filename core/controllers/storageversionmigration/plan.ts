/**
 * Which migrations of a resource are done with, and which is next: one at a time, the oldest first; and what is told of them.
 *
 * Source: kubernetes v1.36 pkg/controller/storageversionmigrator/{migrationrunner,util}.go
 */
import type { CustomResourceDefinition, CustomResourceDefinitionCondition } from "../../api/gen/apiextensions.v1.ts";
import type { Condition } from "../../api/gen/meta.v1.ts";
import type { StorageVersionMigration } from "../../api/gen/storagemigration.v1beta1.ts";
import { findCondition, isConditionTrue } from "../../api/meta/conditions.ts";
import { withoutCondition } from "../conditions.ts";

type Migration = Readonly<StorageVersionMigration>;
type ConditionType = "Running" | "Succeeded" | "Failed";

export function isTrue({ status }: Migration, type: ConditionType): boolean { return isConditionTrue(status?.conditions, type); }

/** It has succeeded or failed: neither is taken back. */
export function isOver(migration: Migration): boolean { return isTrue(migration, "Succeeded") || isTrue(migration, "Failed"); }

export interface Turns {
  /** Over, and still said to run. */
  readonly over: readonly Migration[];
  readonly next: Migration | undefined;
}

/** Of the migrations of one resource. */
export function turnsOf(migrations: readonly Migration[]): Turns {
  const running = migrations.filter((one) => isTrue(one, "Running"));
  const over = running.filter(isOver);
  if (over.length < running.length) return { over, next: undefined };
  const waiting = migrations.filter((one) => !isTrue(one, "Running") && !isOver(one));
  return { over, next: waiting.toSorted(byAge)[0] };
}

function byAge(a: Migration, b: Migration): number { return (a.metadata.creationTimestamp ?? "").localeCompare(b.metadata.creationTimestamp ?? "") || (a.metadata.name < b.metadata.name ? -1 : 1); }

/** The migration with a condition that is true from now on; as it was where it has spoken of that already. */
export function told(migration: Migration, { type, reason, message }: { readonly type: ConditionType; readonly reason: string; readonly message: string }, now: string): StorageVersionMigration {
  const { conditions = [] } = migration.status ?? {};
  if (["True", "False"].includes(findCondition(conditions, type)?.status ?? "")) return { ...migration };
  return { ...migration, status: { ...migration.status, conditions: [...withoutCondition(conditions, type), { type, status: "True", lastTransitionTime: now, reason, message }] } };
}

/** It runs no more. */
export function ended(migration: Migration, now: string): StorageVersionMigration {
  const condition: Condition = { type: "Running", status: "False", lastTransitionTime: now, reason: "MigrationCompleted", message: "Migration completed" };
  return { ...migration, status: { ...migration.status, conditions: migration.status?.conditions?.map((one) => (one.type === condition.type ? condition : one)) } };
}

type Definition = Readonly<CustomResourceDefinition>;
const MIGRATING = "StorageMigrating";

export function definitionMigrating({ metadata }: Definition, migration: string, now: string): CustomResourceDefinitionCondition {
  return { type: MIGRATING, status: "True", lastTransitionTime: now, reason: "MigrationRunning", message: `Migration ${migration} is running`, observedGeneration: metadata.generation };
}

/** What a definition's status says once a migration is over. If it has not changed meanwhile nothing is stored in another version than the one that is. */
export function definitionMigrated({ metadata, spec, status }: Definition, hasSucceeded: boolean, now: string): { conditions: CustomResourceDefinitionCondition[]; storedVersions?: string[] } {
  const migrating = findCondition(status?.conditions, MIGRATING), isSame = migrating !== undefined && migrating.observedGeneration === metadata.generation;
  const message = !hasSucceeded ? "The migration has failed" : `The migration has succeeded ${isSame ? "and the stored versions have been updated" : "but the stored versions have not been updated due to a generation mismatch"}`;
  const condition = { type: MIGRATING, status: "False", lastTransitionTime: now, reason: hasSucceeded ? "MigrationSucceeded" : "MigrationFailed", message, observedGeneration: metadata.generation };
  const stored = spec.versions.filter(({ storage }) => storage).map(({ name }) => name);
  return { conditions: [condition], ...(isSame ? { storedVersions: stored } : {}) };
}
