/**
 * One try to replace an object by a newer form of it: what may change is taken over, checked, and written if nobody else wrote in between.
 *
 * Source: kubernetes v1.36 apiserver/pkg/registry/generic/registry/store.go, apiserver/pkg/registry/rest/update.go
 */
import type { FieldError } from "../../api/meta/field-error.ts";
import { integerAfter } from "../../api/meta/go-integer.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { conflict } from "../../api/meta/status-error.ts";
import { keepTimesIfUnchanged } from "../../api/patch/apply/timestamps.ts";
import { StoreError } from "../../../storage/store.ts";
import { inPieces } from "../../lifecycle/breather.ts";
import { Cached, deepFreeze } from "./cached.ts";
import { finishedBy } from "./deletion.ts";
import { updateErrors } from "./meta-on-update.ts";
import { keepForUpdate } from "./object-meta.ts";
import { gathered, namesVersion, refuseInvalid, refuseOthers } from "./refusals.ts";
import type { Resource } from "./resource.ts";
import type { UpdateOptions } from "./stored-resource.ts";
import type { Target } from "./target.ts";

/** What came of it: the object as it is now, or that it lost to a `newer` one (undefined: there is none any more). */
export type Outcome = { readonly entry: Cached } | { readonly entry?: undefined; readonly newer: Cached | undefined };

/** `draft` becomes part of what is written. */
export async function updateOnce(target: Target, current: Cached, draft: ApiObject, options: UpdateOptions): Promise<Outcome> {
  const { resource, definition, commits } = target;
  const { context, signal, subresource } = options;
  const old = await commits.shown(current, signal);
  refuseOthers(target, current, { uid: options.isPatch ? undefined : draft.metadata.uid || undefined, ...options.preconditions }, context);
  const named = namesVersion(target, draft, old, options);
  keepForUpdate(draft, old);
  if (!context.dryRun) delete draft.metadata.selfLink; // it is forgotten by the storage, which a dry run does not come to
  const keepsStatus = resource.hasStatus && !subresource;
  if (keepsStatus) copyField(draft, old, "status");
  if (subresource) subresource.prepare(draft, old, context);
  else definition.prepareForUpdate?.(draft, old, context);
  if (subresource?.generation !== false && (bumpsGeneration(definition, draft, old) || (definition.tellsEmpty && options.emptied?.()))) draft.metadata.generation = integerAfter(old.metadata.generation ?? 0);
  const allocation = subresource ? undefined : await definition.allocate?.(draft, old, context);
  try {
    draft.metadata.resourceVersion = old.metadata.resourceVersion;
    let seen: ApiObject | undefined;
    const next = keepTimesIfUnchanged(old, resource.canonical(draft, old, () => { if (options.validate && resource.asSent) seen = keepTimesIfUnchanged(old, resource.asSent(draft)); }));
    const unpermitted = subresource?.authorize ? await subresource.authorize(next, old, context) : undefined; // nobody else waits
    if (definition.foresee && !subresource) await inPieces(definition.foresee(next, old, context), target.breathers());
    refuseInvalid(target, next, (checked) => (unpermitted ? [...unpermitted, ...ownErrors(target, checked, old, options)] : ownErrors(target, checked, old, options)), options.sent);
    if (options.warn) for (const text of (subresource ? subresource.warnings?.(next) : definition.warnings?.(next, old)) ?? []) options.warn(text);
    await options.validate?.(deepFreeze(seen ?? next), target.cache.read(old));
    if (finishedBy(next, definition)) {
      const outcome = context.dryRun ? undefined : await commits.remove(current, { named }, signal);
      await allocation?.rollback();
      if (outcome?.removed) await definition.afterDelete?.(old, context);
      if (outcome && !outcome.removed) return { newer: outcome.newer };
      return { entry: new Cached(current.key, deepFreeze(target.cache.read(next)), current.revision) };
    }
    const stored = await commits.stored(next, signal);
    if (Bun.deepEquals(stored, current.stored)) {
      await allocation?.rollback();
      return { entry: current };
    }
    const entry = context.dryRun ? commits.dryRun(current.key, stored, false) : await commits.put(current.key, stored, current, signal, { ahead: options.ahead, span: options.span });
    if (context.dryRun) await allocation?.rollback();
    else await allocation?.commit();
    return { entry };
  } catch (error) {
    await allocation?.rollback();
    if (error instanceof StoreError && error.code === "conflict") {
      if (named) throw conflict(target.groupResource, old.metadata.name);
      return { newer: error.current && target.cache.entryOf(error.current) };
    }
    throw error;
  }
}

/** What is wrong with an update, in upstream's order. */
function ownErrors(target: Target, next: ApiObject, old: Readonly<ApiObject>, options: UpdateOptions): readonly FieldError[] {
  const { definition } = target, { subresource, context } = options;
  const { common, change, whole } = updateErrors(target, next, old, options);
  if (subresource) return [...common, ...(definition.updateOrder === "change last" ? [...whole, ...change] : [...change, ...whole]), ...gathered(subresource.validate?.(next, old, context))];
  const found = gathered(definition.validate?.(next, old, context)), foundChange = gathered(definition.validateUpdate?.(next, old, options.emptied?.()));
  switch (definition.updateOrder) {
    case "change first": return [...common, ...change, ...foundChange, ...whole, ...found];
    case "change last": return [...common, ...whole, ...found, ...change, ...foundChange];
    default: return [...common, ...change, ...whole, ...found, ...foundChange];
  }
}

type Fields = Record<string, unknown>;

function bumpsGeneration({ generation, tellsEmpty }: Resource, next: ApiObject, old: Readonly<ApiObject>): boolean {
  if (generation === false) return false;
  if (generation) return generation(next, old);
  const names = new Set([...Object.keys(next), ...Object.keys(old)]);
  for (const name of ["metadata", "status", "apiVersion", "kind"]) names.delete(name);
  const differ = tellsEmpty ? (a: unknown, b: unknown): boolean => !Bun.deepEquals(a, b) : (a: unknown, b: unknown): boolean => !Bun.deepEquals(a, b) && !equalWithEmpty(a, b);
  return [...names].some((name) => differ((next as unknown as Fields)[name], (old as unknown as Fields)[name]));
}

/** An empty list is none: `draft` may have one that was sent. */
function equalWithEmpty(a: unknown, b: unknown): boolean {
  if (a === b || (isNothing(a) && isNothing(b))) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null || Array.isArray(a) !== Array.isArray(b)) return false;
  const names = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...names].every((name) => equalWithEmpty((a as Fields)[name], (b as Fields)[name]));
}

function isNothing(value: unknown): boolean { return value === undefined || value === null || (Array.isArray(value) && value.length === 0); }

function copyField(next: ApiObject, old: Readonly<ApiObject>, name: string): void {
  const value = (old as unknown as Fields)[name];
  if (value === undefined) delete (next as unknown as Fields)[name];
  else (next as unknown as Fields)[name] = value;
}
