/** One version of a custom resource: what the server asks of it where, for a built-in kind, it would ask the facts. */
import type { CustomResourceDefinitionVersion } from "../../../api/gen/apiextensions.v1.ts";
import { AGE_COLUMN, customPrinter, type FindValues } from "../../../api/codec/table/custom.ts";
import { jsonText } from "../../../api/codec/json.ts";
import type { Printer } from "../../../api/codec/table/printer.ts";
import { compareVersions } from "../../../api/discovery/version-order.ts";
import { isConditionTrue } from "../../../api/meta/conditions.ts";
import { goNumber } from "../../../api/meta/go-float.ts";
import { formatApiVersion } from "../../../api/meta/gvk.ts";
import type { ApiObject } from "../../../api/meta/object-meta.ts";
import type { ReplicasPaths } from "../../../api/patch/apply/scale.ts";
import { ConversionError, type Versions } from "../../../api/patch/apply/ownership.ts";
import type { JsonMap, JsonMap as PatchMap } from "../../../api/patch/json-value.ts";
import type { ObjectSchema } from "../../../api/patch/schema.ts";
import { Conversions } from "./conversions.ts";
import type { CustomKind } from "./custom-kind.ts";
import type { CoerceOptions } from "./embedded.ts";
import { compileJsonPath, type JsonPath, JsonPathError } from "./json-path.ts";
import { isNumber } from "./numbers.ts";
import type { Schema } from "./structure.ts";

export class CustomVersion {
  readonly kind: CustomKind;
  readonly apiVersion: string;
  readonly version: CustomResourceDefinitionVersion;
  readonly openApi: Schema | undefined;
  readonly printer: Printer<ApiObject>;
  readonly scalePrinter: Printer<ApiObject>;
  /** For every request to this version. */
  readonly warnings: readonly string[];
  /** Aborts when this is no longer how the version is served. */
  readonly retired: AbortSignal;
  /** Since when objects cannot be shown in it, in the clock's uptime. */
  failingSinceMs: number | undefined;

  constructor(kind: CustomKind, version: CustomResourceDefinitionVersion, retired: AbortSignal) {
    this.kind = kind;
    this.version = version;
    this.retired = retired;
    this.apiVersion = formatApiVersion({ group: kind.group, version: version.name });
    this.openApi = version.schema?.openAPIV3Schema;
    this.printer = printerOf(version.additionalPrinterColumns);
    this.scalePrinter = printerOf(SCALE_COLUMNS);
    this.warnings = version.deprecated ? [version.deprecationWarning ?? deprecation(kind, version)] : [];
  }

  /** For patches and for who owns which field. */
  get schema(): ObjectSchema { return this.kind.schema(this.version.name); }

  /** No longer accepts new objects: the definition is being deleted. */
  get terminating(): boolean { return isTerminating(this.kind.crd); }

  /** Whether the definition has the version that an object is stored in. */
  knows(stored: Readonly<ApiObject>): boolean { return this.kind.knows(stored); }

  decode(value: JsonMap, options: CoerceOptions): ApiObject { return this.kind.decode(value, options); }

  /** Where each version keeps its replicas. */
  get replicasPaths(): ReplicasPaths {
    return new Map(this.kind.versions().map(({ name, subresources }) => [formatApiVersion({ group: this.kind.group, version: name }), subresources?.scale?.specReplicasPath]));
  }

  /**
   * Does what may need objects in other versions, for managers who wrote in them. Where a webhook converts them, `work` is done again with each that it
   * turns out to need: it must not change anything. Where somebody wrote in a version that there is no longer, it fails as a conversion does.
   */
  withVersions<T>(work: (versions: Versions | undefined) => T, signal: AbortSignal): T | Promise<T> {
    const { kind } = this;
    if (!kind.remote) return work(this.#versions((object, apiVersion) => ({ ...object, apiVersion })));
    const conversions = new Conversions(kind, signal);
    const versions = this.#versions((object, apiVersion) => conversions.converted(object, apiVersion));
    return conversions.settle(() => work(versions));
  }

  #versions(convert: (object: PatchMap, apiVersion: string) => PatchMap): Versions {
    const { kind, apiVersion } = this;
    return (other) => {
      const version = kind.versions().find(({ name }) => formatApiVersion({ group: kind.group, version: name }) === other);
      if (!version) throw new ConversionError(`request to convert CR to an invalid group/version: ${other}`);
      return { schema: kind.schema(version.name), to: (object) => convert(object, other), from: (object) => convert(object, apiVersion) };
    };
  }
}

export function isTerminating(crd: { readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] } | undefined }): boolean {
  return isConditionTrue(crd.status?.conditions, "Terminating");
}

function deprecation({ crd: { spec } }: CustomKind, { name }: CustomResourceDefinitionVersion): string {
  const text = `${spec.group}/${name} ${spec.names.kind} is deprecated`;
  const [newest] = spec.versions.filter(({ served, deprecated, name: other }) => served && !deprecated && compareVersions(name, other) < 0)
    .sort((a, b) => compareVersions(b.name, a.name));
  return newest ? `${text}; use ${spec.group}/${newest.name} ${spec.names.kind}` : text;
}

type Columns = CustomResourceDefinitionVersion["additionalPrinterColumns"];

const SCALE_COLUMNS: NonNullable<Columns> = [
  { name: "Desired", type: "integer", description: "Number of desired replicas", jsonPath: ".spec.replicas" },
  { name: "Available", type: "integer", description: "Number of actual replicas", jsonPath: ".status.replicas" },
  AGE_COLUMN,
];

/** Columns up to the first whose path cannot be read. */
function printerOf(columns: Columns): Printer<ApiObject> {
  const paths = new Map<string, JsonPath>();
  const shown: NonNullable<Columns> = [];
  for (const column of columns ?? []) {
    const path = pathOf(column.jsonPath);
    if (!path) break;
    paths.set(column.jsonPath, path);
    shown.push(column);
  }
  const find: FindValues = (jsonPath, object) => {
    const values = found(paths.get(jsonPath) ?? compileJsonPath(jsonPath), object);
    return { values, text: values.length > 0 ? textOf(values[0]) : "" };
  };
  return customPrinter(shown, find);
}

function pathOf(text: string): JsonPath | undefined {
  try {
    return compileJsonPath(text);
  } catch (error) {
    if (!(error instanceof JsonPathError)) throw error;
    return undefined;
  }
}

function found(path: JsonPath, object: unknown): readonly unknown[] {
  try {
    return path.find(object);
  } catch (error) {
    if (!(error instanceof JsonPathError)) throw error;
    return []; // an index out of bounds shows nothing
  }
}

function textOf(value: unknown): string {
  if (value === null || value === undefined) return "<no value>";
  if (isNumber(value)) return goNumber(value);
  return typeof value === "object" ? jsonText(value) : String(value);
}
