/** The status subresource of a resource that says nothing else about it: only status is written. */
import type { ApiObject } from "../../api/meta/object-meta.ts";
import type { Subresource } from "./resource.ts";

export const STATUS_PART: Extract<Subresource, { type: "part" }> = {
  type: "part",
  generation: false,
  prepare(next, old) {
    const fields = next as unknown as Record<string, unknown>;
    for (const name of Object.keys(fields)) if (name !== "status" && name !== "metadata" && !Object.hasOwn(old, name)) delete fields[name];
    for (const [name, value] of Object.entries(old)) if (name !== "status" && name !== "metadata") fields[name] = value;
    keepAllMetadata(next, old);
  },
};

/** All that was sent but who manages what; a version that was named has been looked at. Mutates `next`. */
export function keepAllMetadata(next: ApiObject, old: Readonly<ApiObject>): void {
  const { managedFields, resourceVersion } = next.metadata;
  const { managedFields: _, ...kept } = old.metadata;
  next.metadata = { ...kept, resourceVersion, ...(managedFields && { managedFields }) };
}
