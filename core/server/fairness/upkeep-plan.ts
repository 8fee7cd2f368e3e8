/**
 * What is to be done so that the objects a server needs, and those it suggests, are there.
 *
 * Mandatory ones are as they must be. Suggested ones are made when they are missing, and kept up while the annotation, or the lack of one on an object
 * nobody has changed, says that they are ours. What is marked as ours and is neither is taken away.
 *
 * Source: kubernetes v1.36 apiserver/pkg/registry/flowcontrol/ensurer/strategy.go
 */
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { semanticEqual } from "../../registry/core/checks/equal.ts";
import { AUTO_UPDATE } from "./bootstrap-objects.ts";

interface WithSpec extends ApiObject { spec?: object | undefined }

export type UpkeepAction<T> = { readonly type: "create" | "update"; readonly object: T } | { readonly type: "delete"; readonly name: string };

export function planUpkeep<T extends WithSpec>(existing: readonly Readonly<T>[], mandatory: readonly T[], suggested: readonly T[]): UpkeepAction<T>[] {
  const actions: UpkeepAction<T>[] = [];
  const found = new Map(existing.map((one) => [one.metadata.name, one]));
  const wanted = new Set<string>();
  for (const [list, isMandatory] of [[mandatory, true], [suggested, false]] as const) {
    for (const object of list) {
      const { name } = object.metadata;
      wanted.add(name);
      const current = found.get(name);
      if (!current) actions.push({ type: "create", object });
      else {
        const ours = isMandatory || isOurs(current);
        const spec = ours ? keepingExempt(object, current) : current.spec;
        if (current.metadata.annotations?.[AUTO_UPDATE] === String(ours) && semanticEqual(spec, current.spec)) continue;
        actions.push({ type: "update", object: { ...(current as T), metadata: { ...current.metadata, annotations: { ...current.metadata.annotations, [AUTO_UPDATE]: String(ours) } }, spec } });
      }
    }
  }
  for (const { metadata } of existing) if (!wanted.has(metadata.name) && metadata.annotations?.[AUTO_UPDATE] === "true") actions.push({ type: "delete", name: metadata.name });
  return actions;
}

function isOurs({ metadata: { annotations, generation } }: Readonly<WithSpec>): boolean {
  const mark = annotations?.[AUTO_UPDATE];
  return mark === undefined ? generation === 1 : mark === "true";
}

/** How much the exempt level takes and lends is for users to say. */
function keepingExempt({ metadata: { name }, kind, spec }: Readonly<WithSpec>, current: Readonly<WithSpec>): object | undefined {
  const exempt = (current.spec as { exempt?: object } | undefined)?.exempt;
  return kind === "PriorityLevelConfiguration" && name === "exempt" && exempt ? { ...spec, exempt } : spec;
}
