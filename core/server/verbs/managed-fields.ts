/** metadata.managedFields of every write that is not a server-side apply. */
import { updateManagedFields } from "../../api/patch/apply/managed-fields.ts";
import { builtInSchemas } from "../../api/patch/facts-schema.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import type { ServedResource } from "../../registry/registry.ts";

interface Writer {
  readonly manager: string;
  readonly subresource: string;
  readonly nowMs: number;
}
