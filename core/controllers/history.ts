/**
 * ControllerRevisions: the pod templates a DaemonSet or StatefulSet has had, so that `kubectl rollout undo` can bring one back.
 *
 * Each holds a strategic merge patch that puts its template in place of another. Equal templates share a revision: a template that comes
 * back makes its old revision the newest. A template that has gained nothing but defaults of a newer server keeps its revision.
 *
 * Source: kubernetes v1.36 pkg/controller/history/controller_history.go, pkg/controller/daemon/update.go, pkg/controller/statefulset/stateful_set_control.go setMatchesLatestExistingRevision
 */
import type { ControllerRevision } from "../api/gen/apps.v1.ts";
import type { PodTemplateSpec } from "../api/gen/core.v1.ts";
import { integerAfter } from "../api/meta/go-integer.ts";
import { ifFound } from "../api/meta/if-found.ts";
import { annotationsOf, type ApiObject, controllerRef, type NewObject, namespaceOf } from "../api/meta/object-meta.ts";
import { isAlreadyExists } from "../api/meta/status-error.ts";
import type { ResourceClient } from "../client/client.ts";
import type { Informer } from "../client/informer.ts";
import type { CompleteTemplate } from "./deps.ts";
import { canonical } from "./template-hash.ts";

export interface HistoryOptions {
  readonly owner: Readonly<ApiObject>;
  readonly template: Readonly<PodTemplateSpec>;
  /** Those the owner controls. */
  readonly revisions: readonly Readonly<ControllerRevision>[];
  /** Of the template, or the patch that puts it in place. */
  readonly hash: (patch: unknown) => string;
  /** The label a revision carries its hash in. */
  readonly hashLabel: string;
  readonly client: ResourceClient<ControllerRevision>;
  readonly informer: Informer<ControllerRevision>;
  readonly complete: CompleteTemplate | undefined;
  readonly signal: AbortSignal;
}

export interface History {
  /** Of the template as it is now. */
  readonly current: Readonly<ControllerRevision>;
  /** All others, lowest revision first. */
  readonly old: readonly Readonly<ControllerRevision>[];
  /** Those of `old` that hold the same template as `current`. */
  readonly twins: readonly Readonly<ControllerRevision>[];
}

/** The name of the revision is taken by another template: raise the owner's collisionCount and try again. */
export class HashCollisionError extends Error {
  override readonly name = "HashCollisionError";
}

const NAME_LENGTH_MAX = 253;

/** Clients compare its bytes with what they would write: members come in the order in which Go writes a map. */
export function templatePatch(template: Readonly<PodTemplateSpec>): unknown { return inOrder({ spec: { template: { ...template, $patch: "replace" } } }); }

function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined).sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, member]) => [key, inOrder(member)]));
}

/** Lowest revision first; of one number the older, of one second by name. */
export function byAge(a: Readonly<ControllerRevision>, b: Readonly<ControllerRevision>): number {
  const order = ({ metadata }: Readonly<ControllerRevision>): string => `${metadata.creationTimestamp} ${metadata.name}`;
  return a.revision === b.revision ? (order(a) < order(b) ? -1 : 1) : a.revision < b.revision ? -1 : 1;
}

/** Equal patches, equal templates. */
function samePatch(revision: Readonly<ControllerRevision>, patch: unknown): boolean { return canonical(revision.data) === canonical(patch); }

/** The template a revision holds. */
export function templateOf({ data }: Readonly<ControllerRevision>): PodTemplateSpec {
  const { $patch: _, ...template } = (data as { spec: { template: PodTemplateSpec & { $patch?: string } } }).spec.template;
  return template;
}

/** Finds the revision of the present template, or makes it the newest one, or creates it. Throws HashCollisionError. */
export async function syncHistory(options: HistoryOptions): Promise<History> {
  const { template, client, informer, signal } = options;
  const revisions = options.revisions.toSorted(byAge);
  const patch = templatePatch(template);
  const equal = revisions.filter((revision) => samePatch(revision, patch));
  const newest = equal.at(-1) ?? alike(revisions.at(-1), options);
  const old = revisions.filter((revision) => revision !== newest);
  const twins = equal.filter((revision) => revision !== newest);
  const next = after(old.filter((revision) => !equal.includes(revision)));
  if (newest === undefined) return { current: await create(options, patch, next), old, twins };
  if (newest.revision >= next) return { current: newest, old, twins };
  const current = await client.update({ ...newest, revision: next }, { signal });
  await informer.caughtUp([current], signal);
  return { current, old, twins };
}

/** The number that follows theirs. */
function after(revisions: readonly Readonly<ControllerRevision>[]): number {
  return integerAfter(revisions.reduce((most, { revision }) => (revision > most ? revision : most), 0));
}

/** `latest`, if its template differs from the present one by defaults alone. */
function alike(latest: Readonly<ControllerRevision> | undefined, { template, complete }: HistoryOptions): Readonly<ControllerRevision> | undefined {
  return latest && complete && canonical(complete(templateOf(latest))) === canonical(complete(template)) ? latest : undefined;
}

async function create({ owner, template, hash: hashOf, hashLabel, client, informer, signal }: HistoryOptions, patch: unknown, revision: number): Promise<Readonly<ControllerRevision>> {
  const hash = hashOf(patch);
  const name = `${owner.metadata.name.slice(0, NAME_LENGTH_MAX - 1 - hash.length)}-${hash}`;
  const draft: NewObject<ControllerRevision> = {
    apiVersion: "apps/v1", kind: "ControllerRevision",
    metadata: { name, namespace: namespaceOf(owner), labels: { ...template.metadata?.labels, [hashLabel]: hash }, annotations: { ...annotationsOf(owner) }, ownerReferences: [controllerRef(owner)] },
    data: patch, revision,
  };
  let made: Readonly<ControllerRevision>;
  try {
    made = await client.create(draft, { signal });
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    made = await client.get({ metadata: { name, namespace: namespaceOf(owner) } }, { signal }); // a predecessor's of the same name will do until it is collected
    if (!samePatch(made, patch)) throw new HashCollisionError(`revision ${name} is another template's`, { cause: error });
  }
  await informer.caughtUp([made], signal);
  return made;
}

/** Deletes the oldest of `old` beyond `limit`, but none that is in use. A negative limit is none. */
export async function trimHistory(old: readonly Readonly<ControllerRevision>[], { limit, inUse, client, signal }: {
  readonly limit: number; readonly inUse: (revision: Readonly<ControllerRevision>) => boolean; readonly client: ResourceClient<ControllerRevision>; readonly signal: AbortSignal;
}): Promise<void> {
  let excess = limit < 0 ? 0 : old.length - limit;
  for (const revision of old) {
    if (excess <= 0) return;
    if (inUse(revision)) continue;
    await ifFound(client.delete(revision, {}, { signal }));
    excess--;
  }
}
