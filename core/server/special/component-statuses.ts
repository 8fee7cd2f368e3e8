/**
 * componentstatuses, deprecated long ago and still asked for: whether the parts of the control plane are well, found out when asked.
 *
 * Source: kubernetes v1.36 pkg/registry/core/componentstatus/{rest,validator}.go
 */
import type { ComponentStatus } from "../../api/gen/core.v1.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { notFound } from "../../api/meta/status-error.ts";
import { Cached } from "../../registry/generic/cached.ts";
import { checkAcceptable } from "../acceptable.ts";
import { type Answer, stored } from "../answer.ts";
import type { Scope } from "../scope.ts";
import { selectionOf } from "../verbs/options.ts";

export interface Component {
  readonly name: string;
  /** Why it is not well; undefined: it is. */
  check(): string | undefined | Promise<string | undefined>;
}

export async function getComponentStatus(scope: Scope, components: readonly Component[]): Promise<Answer> {
  checkAcceptable(scope, true);
  const component = components.find(({ name }) => name === scope.info.name);
  if (!component) throw notFound({ group: "", resource: "componentstatus" }, scope.info.name);
  return stored(200, scope.served, await entryOf(component));
}

export async function listComponentStatuses(scope: Scope, components: readonly Component[]): Promise<Answer> {
  checkAcceptable(scope, true);
  const { name, matches } = selectionOf(scope);
  const entries = await Promise.all(components.filter((one) => name === undefined || one.name === name).map(entryOf));
  return { type: "list", served: scope.served, entries: entries.filter(({ object }) => matches?.(object) ?? true), metadata: {} };
}

async function entryOf({ name, check }: Component): Promise<Cached> {
  const problem = await check();
  const condition = problem === undefined ? { type: "Healthy", status: "True", message: "ok" } : { type: "Healthy", status: "False", message: problem };
  const object: ComponentStatus = { kind: "ComponentStatus", apiVersion: "v1", metadata: { name } as ComponentStatus["metadata"], conditions: [condition] };
  return new Cached(`/registry/componentstatuses/${name}`, Object.freeze(object) as unknown as ApiObject, 0);
}
