/**
 * The printer of a custom resource: its additionalPrinterColumns, or its age if it declares none.
 *
 * Source: kubernetes v1.36 apiextensions-apiserver/pkg/registry/customresource/tableconvertor/tableconvertor.go
 */
import type { CustomResourceColumnDefinition } from "../../gen/apiextensions.v1.ts";
import type { ApiObject } from "../../meta/object-meta.ts";
import { AGE, type Column, NAME } from "./columns.ts";
import { since } from "./human-duration.ts";
import { type Cell, type Printer, printer } from "./printer.ts";

/** What a definition without columns shows. It has the text of the API's field, where a column of the definition's own tells its path. */
export const AGE_COLUMN: CustomResourceColumnDefinition = { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" };

const INT64_MIN = -(2n ** 63n);

/** Values a JSONPath finds in an object, in order; none if nothing is there. `text` is the first as kubectl would print it. */
export type FindValues = (jsonPath: string, object: Readonly<ApiObject>) => { readonly values: readonly unknown[]; readonly text: string };

export function customPrinter(columns: readonly CustomResourceColumnDefinition[] | undefined, find: FindValues): Printer<ApiObject> {
  const shown = columns?.length ? columns : [AGE_COLUMN];
  return printer<ApiObject>({
    columns: [NAME, ...shown.map(headerOf)],
    cells: (object, nowMs) => [object.metadata.name, ...shown.map(({ type, jsonPath }) => {
      const { values, text } = find(jsonPath, object);
      if (values.length === 0) return null;
      return type === "string" ? text : cellOf(type, values[0], nowMs);
    })],
  });
}

function headerOf(column: CustomResourceColumnDefinition): Column {
  if (column === AGE_COLUMN) return { ...AGE, type: "date" };
  const { name, type, format = "", description, priority = 0, jsonPath } = column;
  return {
    name, type: type as Column["type"], format, priority, doc: undefined,
    description: description || `Custom resource definition column (in JSONPath format): ${jsonPath}`,
  };
}

/** A value that does not fit the column's type shows nothing. */
function cellOf(type: string, value: unknown, nowMs: number): Cell {
  switch (type) {
    case "integer": return typeof value === "bigint" ? value : typeof value === "number" ? whole(value) : null;
    case "number": return typeof value === "number" || typeof value === "bigint" ? Number(value) : null;
    case "boolean": return typeof value === "boolean" ? value : null;
    case "date": return typeof value === "string" ? dateCell(value, nowMs) : null;
    default: return null;
  }
}

/** What no 64 bits hold is the smallest integer, as Go converts it. */
function whole(value: number): number | bigint { return Math.abs(value) < 2 ** 63 ? Math.trunc(value) : INT64_MIN; }

function dateCell(value: string, nowMs: number): Cell {
  const age = since(value, nowMs);
  return age === "<unknown>" && value !== "" && value !== "null" ? "<invalid>" : age;
}
