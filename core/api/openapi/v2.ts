/**
 * OpenAPI v2 ("swagger"): everything the server serves in one document of several megabytes. Old clients and Argo CD ask for it, as protobuf
 * (v2-protobuf.ts) or as JSON. Make it, write it, keep the compressed bytes, drop it. With a thousand custom resources that takes seconds, in which others have their turns.
 */
import type { Breathe } from "../../lifecycle/breather.ts";
import { stringify } from "../codec/json.ts";
import { formatApiVersion, type GroupVersionKind } from "../meta/gvk.ts";
import { builtInFacts, type Facts } from "../schema/facts.ts";
import type { ResourceRow, ServedGroupVersion } from "../schema/resources.ts";
import { customSchemas, customTypeName, type CustomSchema } from "./custom.ts";
import { kindIndex } from "./kinds.ts";
import { operationsOf, type Operation, type Parameter } from "./operations.ts";
import { groupsTold, rootOperations } from "./root-operations.ts";
import { refPrefix, schemasOf, type Descriptions, type Schema } from "./schema.ts";
import { type ParameterV2, SharedParameters } from "./shared-parameters.ts";
import { pathsOf, refsIn, type ServerInfo } from "./v3.ts";

export interface OpenApiV2Request {
  readonly versions: readonly ServedGroupVersion[];
  readonly rows: readonly ResourceRow[];
  readonly descriptions?: Descriptions;
  /** Structural schemas of custom rows, by "group/version/Kind". */
  readonly custom?: ReadonlyMap<string, CustomSchema>;
  readonly facts?: Facts;
}

export interface Swagger {
  readonly swagger: "2.0";
  readonly info: { readonly title: string; readonly version: string };
  readonly paths: Record<string, object>;
  readonly definitions: Record<string, Schema>;
  /** What operations refer to. */
  readonly parameters: Readonly<Record<string, object>>;
  readonly securityDefinitions: Record<string, object>;
  readonly security: readonly Record<string, readonly string[]>[];
}

export async function openApiV2({ versions, rows, descriptions = {}, custom = new Map(), facts = builtInFacts }: OpenApiV2Request, { version, cbor }: ServerInfo, breathe: Breathe): Promise<Swagger> {
  const nameOf = (kind: GroupVersionKind): string => freeName(customTypeName(kind), facts);
  const refOf = (kind: GroupVersionKind): string => facts.typeOf(kind)?.name ?? nameOf(kind);
  const shared = new SharedParameters();
  const paths: (readonly [string, object])[] = [];
  const own: Record<string, Schema> = {};
  const refs = new Set<string>();
  const tell = (operations: readonly Operation[]): void => {
    for (const { body, responses } of operations) for (const ref of [body?.ref, ...responses.map((response) => response.ref)]) if (ref !== undefined) refs.add(ref);
    paths.push(...Object.entries(pathsOf(operations, (parameter) => shared.inPlaceOf(parameterV2(parameter)), (operation, parameters) => operationV2(operation, parameters, shared))));
  };
  tell(rootOperations(groupsTold(versions, rows)));
  const served = Map.groupBy(rows, (row) => formatApiVersion(row));
  for (const groupVersion of versions) {
    const its = served.get(formatApiVersion(groupVersion)) ?? [];
    tell(operationsOf(groupVersion, its, { facts, descriptions, refOf, cbor }));
    for (const row of its) {
      const schema = custom.get(`${row.group}/${row.version}/${row.kind}`);
      const found = customSchemas([row], new Map(schema && [[row.kind, schema]]), "v2", nameOf);
      for (const name of refsIn(found)) refs.add(name);
      Object.assign(own, found);
      await breathe();
    }
  }
  const definitions = { ...schemasOf(new Set([...refs].filter((name) => !Object.hasOwn(own, name))), { facts, dialect: "v2", descriptions, kindsOf: kindIndex(facts) }), ...own };
  return {
    swagger: "2.0", info: { title: "Kubernetes", version },
    paths: Object.fromEntries(paths.sort(byName)),
    definitions: Object.fromEntries(Object.entries(definitions).sort(byName)),
    parameters: shared.all(),
    securityDefinitions: { BearerToken: { description: "Bearer Token authentication", type: "apiKey", name: "authorization", in: "header" } },
    security: [{ BearerToken: [] }],
  };
}

/** A group can be so named that its kind would be told in place of a built-in one. Source: kubernetes v1.36 kube-openapi/pkg/aggregator/aggregator.go mergeSpecs */
function freeName(name: string, facts: Facts): string { return facts.typeNamed(name) ? `${name}_v2` : name; }

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number { return a < b ? -1 : 1; }

/** As JSON. */
export async function writeOpenApiV2(document: Swagger, breathe: Breathe): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  const write = (text: string): void => void parts.push(Buffer.from(text));
  write("{");
  for (const [i, [key, value]] of Object.entries(document).entries()) {
    write(`${i > 0 ? "," : ""}${JSON.stringify(key)}:`);
    if (key !== "paths" && key !== "definitions") { write(stringify(value)); continue; }
    for (const [j, [name, one]] of Object.entries(value as object).entries()) {
      write(`${j > 0 ? "," : "{"}${stringify(name)}:${stringify(one)}`);
      await breathe();
    }
    write(Object.keys(value as object).length > 0 ? "}" : "{}");
  }
  write("}");
  return Buffer.concat(parts);
}

function operationV2({ id, description, tag, action, kind, body, consumes, produces, responses }: Operation, own: readonly Parameter[], shared: SharedParameters): object {
  const bodies = body ? [{ name: "body", in: "body", ...(body.required ? { required: true } : {}), schema: { $ref: refPrefix("v2") + body.ref } }] : [];
  const parameters = [...bodies, ...own.map(parameterV2)].map((parameter) => shared.inPlaceOf(parameter));
  return {
    ...(description === undefined ? {} : { description }), ...(consumes.length > 0 ? { consumes } : {}), produces, schemes: ["https"], tags: [tag], operationId: id,
    ...(parameters.length > 0 ? { parameters } : {}),
    responses: Object.fromEntries([
      ...responses.map(({ code, description: text, ref }) => [code, { description: text, schema: ref === undefined ? { type: "string" } : { $ref: refPrefix("v2") + ref } }] as const),
      [401, { description: "Unauthorized" }],
    ]),
    ...(action === undefined ? {} : { "x-kubernetes-action": action }), ...(kind === undefined ? {} : { "x-kubernetes-group-version-kind": kind }),
  };
}

function parameterV2({ name, in: where, type, description }: Parameter): ParameterV2 {
  return { uniqueItems: true, type, ...(description === undefined ? {} : { description }), name, in: where, ...(where === "path" ? { required: true } : {}) };
}
