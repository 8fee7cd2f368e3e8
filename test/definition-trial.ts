/**
 * One definition of core/registry at a time: what creating and updating an object comes to, in the order of core/registry/generic/store.ts but without a store.
 *
 *   const { create, update, part } = trial(deployments);
 *   const { object, errors, warnings } = create({ spec: … });
 *   update(object, (next) => { next.spec.replicas = -1; }).errors        // ["spec.replicas: Invalid value: -1: …"]
 */
import { formatFieldError } from "../core/api/meta/field-error.ts";
import type { ApiObject } from "../core/api/meta/object-meta.ts";
import { canonicalOwn } from "../core/api/schema/canonical.ts";
import { declaredDefaults } from "../core/api/schema/declared-defaults.ts";
import { builtInFacts } from "../core/api/schema/facts.ts";
import { fillForCreate, keepForUpdate } from "../core/registry/generic/object-meta.ts";
import type { Resource, WriteContext } from "../core/registry/generic/resource.ts";

export interface Outcome<T extends ApiObject> { readonly object: T; readonly errors: string[]; readonly warnings: string[] }
export interface Trial<T extends ApiObject> {
  // biome-ignore lint/suspicious/noExplicitAny: objects are written as a client would
  create(object?: any): Outcome<T>;
  // biome-ignore lint/suspicious/noExplicitAny: as a client would change them
  update(old: T, change: (next: any) => void): Outcome<T>;
  // biome-ignore lint/suspicious/noExplicitAny: as a client would change them
  part(name: string, old: T, change: (next: any) => void): Outcome<T>;
}

export function trial<T extends ApiObject>(definition: Resource<T>, user: WriteContext["user"] = { name: "admin", groups: [] }): Trial<T> {
  const { group, version, kind } = definition;
  const type = builtInFacts.typeOf({ group, version, kind })!;
  const apiVersion = group === "" ? version : `${group}/${version}`;
  const context: WriteContext = { user, nowMs: Date.parse("2026-05-01T12:00:00Z"), dryRun: false, uuid: () => "0f61b6f6-0000-4000-8000-000000000000" };

  function decoded(object: object): T {
    const made = canonicalOwn(type, { ...object, apiVersion, kind }) as unknown as T;
    declaredDefaults.apply(type, made);
    definition.defaults?.(made);
    return made;
  }

  function bumped(next: T, old: T): boolean {
    if (typeof definition.generation === "function") return definition.generation(next, old);
    return definition.generation !== false && !Bun.deepEquals({ ...next, metadata: 0, status: 0 }, { ...old, metadata: 0, status: 0 });
  }

  function write(old: T, change: (next: T) => void, name: string | undefined): Outcome<T> {
    const draft = structuredClone(old);
    change(draft);
    const next = decoded(draft);
    deepFreeze(old);
    keepForUpdate(next, old);
    const part = name === undefined ? undefined : definition.subresources?.[name];
    if (part?.type === "part") part.prepare(next, old, context);
    else {
      if ("status" in old) (next as { status?: unknown }).status = old.status;
      definition.prepareForUpdate?.(next, old, context);
    }
    if (bumped(next, old)) next.metadata.generation = (old.metadata.generation ?? 0) + 1;
    const object = canonicalOwn(type, next);
    const errors = part?.type === "part" ? part.validate?.(object, old) : [...(definition.validate?.(object, old) ?? []), ...(definition.validateUpdate?.(object, old) ?? [])];
    return { object, errors: [...(errors ?? [])].map(formatFieldError), warnings: [...(definition.warnings?.(object, old) ?? [])] };
  }

  return {
    create(object = {}) {
      const next = decoded({ ...object, metadata: { name: "x", namespace: "d", ...object.metadata } });
      fillForCreate(next, context, definition.generation !== false);
      if ("status" in next && !definition.keepsStatusOnCreate) delete next.status;
      definition.prepareForCreate?.(next, context);
      const errors = [...(definition.validate?.(next) ?? [])].map(formatFieldError);
      const warnings = [...(definition.warnings?.(next, undefined) ?? [])];
      return { object: canonicalOwn(type, next), errors, warnings };
    },
    update: (old, change) => write(old, change, undefined),
    part: (name, old, change) => write(old, change, name),
  };
}

function deepFreeze(value: unknown): void {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return;
  Object.freeze(value);
  for (const inner of Object.values(value)) deepFreeze(inner);
}
