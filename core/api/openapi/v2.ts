/**
 * OpenAPI v2 ("swagger"): everything the server serves in one document of several megabytes. Old clients and Argo CD ask for it, as protobuf
 * (v2-protobuf.ts) or as JSON. Make it, write it, keep the compressed bytes, drop it.
 */
import type { GroupVersionKind } from "../meta/gvk.ts";
import { builtInFacts, type Facts } from "../schema/facts.ts";
import type { ResourceRow, ServedGroupVersion } from "../schema/resources.ts";
import { customSchemas, customTypeName, type CustomSchema } from "./custom.ts";
import { kindIndex } from "./kinds.ts";
import { operationsOf, type Operation, type Parameter } from "./operations.ts";
import { groupsTold, rootOperations } from "./root-operations.ts";
import { refPrefix, schemasOf, type Descriptions, type Schema } from "./schema.ts";
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
  readonly securityDefinitions: Record<string, object>;
  readonly security: readonly Record<string, readonly string[]>[];
}

export function openApiV2({ versions, rows, descriptions = {}, custom = new Map(), facts = builtInFacts }: OpenApiV2Request, { version }: ServerInfo): Swagger {
  const refOf = (kind: GroupVersionKind): string => facts.typeOf(kind)?.name ?? customTypeName(kind);
  const operations: Operation[] = rootOperations(groupsTold(versions, rows));
  const own: Record<string, Schema> = {};
  for (const groupVersion of versions) {
    const served = rows.filter((row) => row.group === groupVersion.group && row.version === groupVersion.version);
    operations.push(...operationsOf(groupVersion, served, { facts, descriptions, refOf }));
    const schemas = new Map(served.flatMap(({ group, version: name, kind }) => { const schema = custom.get(`${group}/${name}/${kind}`); return schema ? [[kind, schema] as const] : []; }));
    Object.assign(own, customSchemas(served, schemas, "v2"));
  }
  const refs = new Set(operations.flatMap(({ body, responses }) => [...(body ? [body.ref] : []), ...responses.flatMap(({ ref }) => ref ?? [])]));
  for (const name of refsIn(own)) refs.add(name);
  const definitions = { ...schemasOf(refs, { facts, dialect: "v2", descriptions, kindsOf: kindIndex(facts) }), ...own };
  return {
    swagger: "2.0", info: { title: "Kubernetes", version },
    paths: pathsOf(operations, parameterV2, operationV2),
    definitions: Object.fromEntries(Object.entries(definitions).sort(([a], [b]) => a < b ? -1 : 1)),
    securityDefinitions: { BearerToken: { description: "Bearer Token authentication", type: "apiKey", name: "authorization", in: "header" } },
    security: [{ BearerToken: [] }],
  };
}

function operationV2({ id, description, tag, action, kind, body, consumes, produces, responses }: Operation, own: readonly Parameter[]): object {
  const bodies = body ? [{ name: "body", in: "body", ...(body.required ? { required: true } : {}), schema: { $ref: refPrefix("v2") + body.ref } }] : [];
  const parameters = [...bodies, ...own.map(parameterV2)];
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

function parameterV2({ name, in: where, type, description }: Parameter): object {
  return { uniqueItems: true, type, ...(description === undefined ? {} : { description }), name, in: where, ...(where === "path" ? { required: true } : {}) };
}
