/**
 * How a printer describes its columns. Descriptions are either short texts of the printer's own or the documentation of an API field,
 * named `<OpenAPI type without io.k8s.>.<field>`, which the caller may look up.
 */
export interface Column {
  readonly name: string;
  readonly type: "string" | "integer" | "number" | "boolean" | "date";
  readonly format: "" | "name" | string;
  /** 1: only shown by `kubectl get -o wide`. */
  readonly priority: number;
  readonly description: string;
  /** Where the description is documented, if it is a field of the API. */
  readonly doc: string | undefined;
}

type Options = Partial<Pick<Column, "type" | "format" | "priority">>;

/** A column with a description of its own. */
export function column(name: string, description: string, { type = "string", format = "", priority = 0 }: Options = {}): Column {
  return { name, type, format, priority, description, doc: undefined };
}

/** A column that shows one field of the API. */
export function fieldColumn(name: string, doc: string, { type = "string", format = "", priority = 0 }: Options = {}): Column {
  return { name, type, format, priority, description: "", doc };
}

const META = "apimachinery.pkg.apis.meta.v1";
export const NAME = fieldColumn("Name", `${META}.ObjectMeta.name`, { format: "name" });
export const AGE = fieldColumn("Age", `${META}.ObjectMeta.creationTimestamp`);
export const CREATED_AT = fieldColumn("Created At", `${META}.ObjectMeta.creationTimestamp`, { type: "date" });

/** The names of API packages, for `fieldColumn`. */
export const CORE = "api.core.v1";
export const APPS = "api.apps.v1";
export const BATCH = "api.batch.v1";

export const WIDE = { priority: 1 } as const;
export const INTEGER = { type: "integer" } as const;
export const BOOLEAN = { type: "boolean" } as const;

export const CONTAINERS = column("Containers", "Names of each container in the template.", WIDE);
export const IMAGES = column("Images", "Images referenced by each container in the template.", WIDE);
export function selectorColumn(doc: string): Column { return fieldColumn("Selector", doc, WIDE); }
