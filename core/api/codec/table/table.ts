/**
 * The Table form of objects: what `kubectl get` shows.
 *
 *   objects (as they are stored) → printer of their kind → rows of cells; columns once, with their descriptions
 *
 * The server always renders all columns; clients leave out those of priority 1 unless asked for wide output.
 *
 * Source: kubernetes v1.36 pkg/printers/tablegenerator.go, apiserver/pkg/endpoints/handlers/response.go asTable
 */
import type { GroupKind } from "../../meta/gvk.ts";
import type { ApiObject, ListMeta } from "../../meta/object-meta.ts";
import { badRequest } from "../../meta/status-error.ts";
import { metadataAlone } from "../../schema/canonical-custom.ts";
import type { Column } from "./columns.ts";
import type { Cell, Printer, RowCondition } from "./printer.ts";
import { printerOf } from "./printers.ts";

export type IncludeObject = "Metadata" | "Object" | "None";

export interface TableColumn { readonly name: string; readonly type: string; readonly format: string; readonly description: string; readonly priority: number }
export interface TableRow { readonly cells: readonly Cell[]; readonly conditions?: readonly RowCondition[]; readonly object: unknown }
export interface Table {
  readonly kind: "Table";
  readonly apiVersion: string;
  readonly metadata: ListMeta;
  /** null when asked for no headers: not the first event of a watch. */
  readonly columnDefinitions: readonly TableColumn[] | null;
  readonly rows: readonly TableRow[] | null;
}

export interface TableRequest {
  readonly kind: GroupKind;
  /** In the version they are stored in; printers know no other. */
  readonly objects: readonly Readonly<ApiObject>[];
  /** resourceVersion, continue and remainingItemCount of the list; of the one object if it is none. */
  readonly listMeta?: Readonly<ListMeta> | undefined;
  readonly nowMs: number;
  /** From the query's includeObject; "" is "Metadata". Anything else is refused. */
  readonly includeObject?: IncludeObject | "" | (string & {}) | undefined;
  readonly noHeaders?: boolean | undefined;
  /** The version of meta.k8s.io the client asked for. */
  readonly version?: "v1" | "v1beta1" | undefined;
  /** Of a kind that brings its own, such as a custom resource. Default: the one of the built-in kind. */
  readonly printer?: Printer | undefined;
  /** An object as the client shall see it: in the version it asked for. Default: as it is. */
  readonly present?: ((object: Readonly<ApiObject>) => unknown) | undefined;
  /** The documentation of an API field, `api.core.v1.PodStatus.podIP`, if it is at hand. */
  readonly describe?: ((field: string) => string | undefined) | undefined;
}

export function renderTable(request: TableRequest): Table {
  const { kind, nowMs, noHeaders = false, version = "v1", describe } = request;
  const printer = request.printer ?? printerOf(kind);
  const include = checkInclude(request.includeObject ?? "");
  const objects = printer.compare ? request.objects.toSorted(printer.compare) : request.objects;
  return {
    kind: "Table",
    apiVersion: `meta.k8s.io/${version}`,
    metadata: { ...(request.listMeta ?? { resourceVersion: objects[0]?.metadata.resourceVersion }) },
    columnDefinitions: noHeaders ? null : printer.columns.map((column) => tableColumn(column, describe)),
    rows: objects.length === 0 && printer.nullRows ? null : objects.map((object) => {
      const conditions = printer.conditions?.(object);
      const cells = printer.cells(object, nowMs);
      const shown = included(object, include, version, request.present);
      return conditions && conditions.length > 0 ? { cells, conditions, object: shown } : { cells, object: shown };
    }),
  };
}

/** Throws 400. */
export function checkInclude(include: string): IncludeObject {
  if (include === "" || include === "Metadata") return "Metadata";
  if (include === "Object" || include === "None") return include;
  throw badRequest(`Unable to convert to Table as requested: includeObject: Invalid value: ${JSON.stringify(include)}: must be 'Metadata', 'Object', 'None', or empty`);
}

function included(object: Readonly<ApiObject>, include: IncludeObject, version: string, present: TableRequest["present"]): unknown {
  switch (include) {
    case "None": return null;
    case "Object": return present ? present(object) : object;
    case "Metadata": return { kind: "PartialObjectMetadata", apiVersion: `meta.k8s.io/${version}`, metadata: metadataAlone(object) };
  }
}

function tableColumn({ name, type, format, description, priority, doc }: Column, describe: TableRequest["describe"]): TableColumn {
  return { name, type, format, description: doc === undefined ? description : describe?.(doc) ?? "", priority };
}
