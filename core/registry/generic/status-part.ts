/** The status subresource of a resource that says nothing else about it: only status is written. */
import type { Subresource } from "./resource.ts";

export const STATUS_PART: Extract<Subresource, { type: "part" }> = {
  type: "part",
  generation: false,
  prepare(next, old) {
    const { managedFields, resourceVersion } = next.metadata;
    const fields = next as unknown as Record<string, unknown>;
    for (const name of Object.keys(fields)) if (name !== "status" && !Object.hasOwn(old, name)) delete fields[name];
    for (const [name, value] of Object.entries(old)) if (name !== "status") fields[name] = value;
    const { managedFields: _, ...kept } = old.metadata;
    next.metadata = { ...kept, resourceVersion, ...(managedFields && { managedFields }) };
  },
};
