/**
 * Every kind that has a definition, in one list.
 *
 * A kind that is missing here is served all the same, with nothing but what core/api/schema knows of it.
 */
import type { Service } from "../api/gen/core.v1.ts";
import type { ApiObject } from "../api/meta/object-meta.ts";
import type { Random } from "../lifecycle/random.ts";
import { pods } from "./core/pod/pod.ts";
import { parsePortRange } from "./core/service/allocator/port-range.ts";
import { serviceDefinition } from "./core/service/service.ts";
import type { Resource } from "./generic/resource.ts";
import type { ResourceStore } from "./generic/store.ts";
import { INTERIM } from "./interim.ts";
import { clusterRoleBindings, roleBindings } from "./rbac/bindings.ts";
import { clusterRoles, roles } from "./rbac/roles.ts";

interface Options {
  /** One range, or one of each family; the first is the family services get when they do not ask. */
  readonly serviceCidrs: readonly string[];
  /** "30000-32767", as the flag is written. */
  readonly nodePortRange: string;
  /** Of services. Asked only when something is written, because it does not exist before the definitions do. */
  readonly store: () => ResourceStore;
  readonly random: Random;
}

export function registryDefinitions({ serviceCidrs, nodePortRange, store, random }: Options): readonly Resource[] {
  const services = serviceDefinition({
    serviceCidrs, random, nodePortRange: parsePortRange(nodePortRange),
    existing: () => objectsOf<Service>(store()),
  });
  const own = [
    any(pods), any(services),
    any(roles), any(clusterRoles), any(roleBindings), any(clusterRoleBindings),
  ];
  const known = new Set(own.map(nameOf));
  return [...own, ...INTERIM.filter((definition) => !known.has(nameOf(definition)))];
}

function* objectsOf<T extends ApiObject>(store: ResourceStore): Iterable<Readonly<T>> {
  for (const { object } of store.select({ namespace: "" })) yield object as T;
}

/** A definition among others: nobody gives it objects but of its own kind. */
function any<T extends ApiObject>(definition: Resource<T>): Resource {
  return definition as unknown as Resource;
}

function nameOf({ group, plural }: Resource): string { return `${group}/${plural}`; }
