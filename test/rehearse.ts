/**
 * What a create or an update would make of an object, without a server or a store.
 *
 *   created(deployments, { metadata, spec })          → { object, errors, warnings }
 *   updated(deployments, object, { spec })            → the same, after the given parts have replaced the old ones
 */
import { formatFieldError } from "../core/api/meta/field-error.ts";
import { formatApiVersion } from "../core/api/meta/gvk.ts";
import type { ApiObject } from "../core/api/meta/object-meta.ts";
import { canonical } from "../core/api/schema/canonical.ts";
import { declaredDefaults } from "../core/api/schema/declared-defaults.ts";
import { builtInFacts } from "../core/api/schema/facts.ts";
import { deepFreeze } from "../core/registry/generic/cached.ts";
import { keepForUpdate } from "../core/registry/generic/object-meta.ts";
import type { Resource, WriteContext } from "../core/registry/generic/resource.ts";

export interface Rehearsal<T> {
  readonly object: T;
  readonly errors: readonly string[];
  readonly warnings: readonly string[];
}

/** Parts of an object; what is missing is what a client left out. */
export type Given = Readonly<Record<string, unknown>>;

const CONTEXT: WriteContext = { user: { name: "ann", groups: ["people"] }, nowMs: 0, dryRun: false, uuid: () => "00000000-0000-0000-0000-000000000000" };

export function created<T extends ApiObject>(definition: Resource<T>, given: Given, context: WriteContext = CONTEXT): Rehearsal<T> {
  const object = sent(definition, { metadata: {}, ...given });
  const { metadata } = object;
  object.metadata = { ...metadata, name: metadata.name || "a", namespace: metadata.namespace ?? "default", uid: "u1", creationTimestamp: "1970-01-01T00:00:00Z" };
  if (!definition.keepsStatusOnCreate) delete (object as unknown as Record<string, unknown>)["status"];
  definition.prepareForCreate?.(object, context);
  const { object: prepared, ...rest } = outcome(definition, object, undefined, definition.validate?.(object) ?? []);
  return { object: definition.onceStored?.(prepared) ?? prepared, ...rest };
}

export function updated<T extends ApiObject>(definition: Resource<T>, old: T, given: Given, { subresource, context = CONTEXT }: { readonly subresource?: string; readonly context?: WriteContext } = {}): Rehearsal<T> {
  const before = deepFreeze(structuredClone(old));
  const next = sent(definition, { ...structuredClone(old), ...given });
  keepForUpdate(next, before);
  const part = subresource === undefined ? undefined : definition.subresources?.[subresource];
  if (part?.type === "part") part.prepare(next, before, context);
  else definition.prepareForUpdate?.(next, before, context);
  if (part?.type === "part") return { ...outcome(definition, next, before, part.validate?.(next, before, context) ?? []), warnings: [...(part.warnings?.(next) ?? [])] };
  const own = [definition.validate?.(next, before) ?? [], definition.validateUpdate?.(next, before) ?? []].map((errors) => [...errors]);
  return outcome(definition, next, before, (definition.updateOrder === "change first" ? own.reverse() : own).flat());
}

/** As a server takes it in: canonical, with what the API defaults. */
function sent<T extends ApiObject>(definition: Resource<T>, given: Given): T {
  const type = builtInFacts.typeOf(definition);
  if (!type) throw new Error(`no type ${definition.kind}`);
  const { object } = canonical(type, { ...given, apiVersion: formatApiVersion(definition), kind: definition.kind });
  declaredDefaults.apply(type, object);
  definition.defaults?.(object as unknown as T);
  return object as unknown as T;
}

function outcome<T extends ApiObject>(definition: Resource<T>, object: T, old: T | undefined, errors: Iterable<Parameters<typeof formatFieldError>[0]>): Rehearsal<T> {
  return { object, errors: [...new Set([...errors].map(formatFieldError))], warnings: [...(definition.warnings?.(object, old) ?? [])] };
}
