/**
 * OpenAPI v3: the index, and one document for each group version and for the paths around them.
 *
 *   openApiV3({ groupVersion, rows, descriptions })      GET /openapi/v3/apis/apps/v1
 *   openApiV3Index([{ path: "apis/apps/v1", hash }])     GET /openapi/v3
 *
 * A document is a plain object, some hundred kilobytes of it: make it, write it, drop it. Parameters that all methods of a path take stand at the
 * path, as upstream's builder puts them.
 */
import { stringify } from "../codec/json.ts";
import type { GroupVersion, GroupVersionKind } from "../meta/gvk.ts";
import type { Facts } from "../schema/facts.ts";
import { builtInFacts } from "../schema/facts.ts";
import type { ResourceRow } from "../schema/resources.ts";
import { customSchemas, customTypeName, type CustomSchema } from "./custom.ts";
import { isCustom, operationsOf, type Operation, type Parameter, type Response } from "./operations.ts";
import { refPrefix, schemasOf, type Descriptions, type Schema } from "./schema.ts";
import { kindIndex } from "./kinds.ts";

export interface OpenApiRequest {
  readonly groupVersion: GroupVersion;
  readonly rows: readonly ResourceRow[];
  readonly descriptions?: Descriptions;
  /** Of custom rows, by kind: the structural schema of the version. A row without one is an object with anything in it. */
  readonly custom?: ReadonlyMap<string, CustomSchema>;
  readonly facts?: Facts;
}

/** info.version, as kube-apiserver says it: 1.36. */
export interface ServerInfo { readonly version: string; /** It speaks CBOR, too. */ readonly cbor?: boolean | undefined }

/** Upstream makes these documents elsewhere, and they say so. */
const CUSTOM_INFO = { title: "Kubernetes CRD Swagger", version: "v0.1.0" };

export function openApiV3({ groupVersion, rows, descriptions = {}, custom = new Map(), facts = builtInFacts }: OpenApiRequest, { version, cbor }: ServerInfo): object {
  const refOf = (kind: GroupVersionKind): string => facts.typeOf(kind)?.name ?? customTypeName(kind);
  const operations = operationsOf(groupVersion, rows, { facts, descriptions, refOf, cbor });
  const own = customSchemas(rows, custom, "v3");
  return isCustom(rows) ? { ...documentV3(operations, { version, descriptions, facts, own, isElsewhere: true }), info: CUSTOM_INFO } : documentV3(operations, { version, descriptions, facts, own, groupVersion });
}

/** The documents of /api, /apis, /apis/<group>, /version: a handful of operations that are no resource's. */
export function documentV3(operations: readonly Operation[], { version, descriptions, facts, own = {}, groupVersion, isElsewhere = false }: {
  readonly version: string; readonly descriptions: Descriptions; readonly facts: Facts; readonly own?: Readonly<Record<string, Schema>>;
  readonly groupVersion?: GroupVersion;
  /** Upstream makes it elsewhere: it says nothing of who may ask, and of meta types all the kinds they are registered as. */
  readonly isElsewhere?: boolean;
}): object {
  const refs = new Set(operations.flatMap(({ body, responses }) => [...(body ? [body.ref] : []), ...responses.flatMap(({ ref }) => ref ?? [])]));
  for (const name of refsIn(own)) refs.add(name);
  const builtIn = schemasOf(refs, { facts, dialect: "v3", descriptions, kindsOf: isElsewhere ? kindsOfClients(kindIndex(facts)) : kindsWithin(groupVersion, kindIndex(facts)) });
  const schemas = Object.fromEntries(Object.entries({ ...builtIn, ...own }).sort(([a], [b]) => a < b ? -1 : 1));
  return {
    openapi: "3.0.0", info: { title: "Kubernetes", version },
    paths: pathsOf(operations, parameterV3, operationV3),
    components: {
      ...(Object.keys(schemas).length > 0 ? { schemas } : {}),
      ...(isElsewhere ? {} : { securitySchemes: { BearerToken: { type: "apiKey", description: "Bearer Token authentication", name: "authorization", in: "header" } } }),
    },
  };
}

/** The groups that clients have no types of: upstream's server of custom resources tells the kinds of client-go's scheme. */
const NOT_OF_CLIENTS: ReadonlySet<string> = new Set(["admission.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "imagepolicy.k8s.io"]);

function kindsOfClients(kindsOf: (typeName: string) => readonly GroupVersionKind[]): typeof kindsOf {
  return (typeName) => kindsOf(typeName).filter(({ group }) => !NOT_OF_CLIENTS.has(group));
}

/** Of what every group version registers, one document tells its own and what the core group's v1 has. */
function kindsWithin(own: GroupVersion | undefined, kindsOf: (typeName: string) => readonly GroupVersionKind[]): typeof kindsOf {
  return (typeName) => {
    const kinds = kindsOf(typeName);
    return kinds.length <= 2 ? kinds : kinds.filter(({ group, version }) => (group === "" && version === "v1") || (group === own?.group && version === own.version));
  };
}

/** The names of types that schemas refer to but do not define. */
export function refsIn(schemas: Readonly<Record<string, Schema>>): string[] {
  const names = [...stringify(schemas).matchAll(/"\$ref":"#\/(?:components\/schemas|definitions)\/([^"]+)"/g)].map((match) => match[1]!);
  return names.filter((name) => !(name in schemas));
}

export interface IndexEntry { readonly path: string; readonly hash: string }

/** Clients fetch a document again when the hash in its address changes. */
export function openApiV3Index(entries: readonly IndexEntry[]): object {
  const sorted = [...entries].sort((a, b) => a.path < b.path ? -1 : 1);
  return { paths: Object.fromEntries(sorted.map(({ path, hash }) => [path, { serverRelativeURL: `/openapi/v3/${path}?hash=${hash}` }])) };
}

/** Operations by path, sorted, with what all methods of a path share taken out of them. */
export function pathsOf(
  operations: readonly Operation[], parameter: (parameter: Parameter) => object, operation: (operation: Operation, own: readonly Parameter[]) => object,
): Record<string, object> {
  const paths: Record<string, object> = {};
  for (const [path, methods] of [...Map.groupBy(operations, ({ path }) => path)].sort(([a], [b]) => a < b ? -1 : 1)) {
    const shared = methods[0]!.parameters.filter((candidate) => methods.every(({ parameters }) => parameters.some((other) => isSame(candidate, other))));
    paths[path] = {
      ...Object.fromEntries(methods.map((method) => [method.method, operation(method, method.parameters.filter((own) => !shared.some((other) => isSame(own, other))))])),
      ...(shared.length > 0 ? { parameters: shared.map(parameter) } : {}),
    };
  }
  return paths;
}

function isSame(a: Parameter, b: Parameter): boolean { return a.name === b.name && a.in === b.in && a.description === b.description; }

function operationV3({ id, description, tag, action, kind, body, consumes, produces, responses }: Operation, own: readonly Parameter[]): object {
  return {
    tags: [tag], ...(description === undefined ? {} : { description }), operationId: id,
    ...(own.length > 0 ? { parameters: own.map(parameterV3) } : {}),
    ...(body ? { requestBody: { content: contentOf(consumes, body.ref), ...(body.required ? { required: true } : {}) } } : {}),
    responses: Object.fromEntries([...responses.map((response) => [response.code, responseV3(response, produces)] as const), [401, { description: "Unauthorized" }]]),
    ...(action === undefined ? {} : { "x-kubernetes-action": action }), ...(kind === undefined ? {} : { "x-kubernetes-group-version-kind": kind }),
  };
}

function responseV3({ description, ref }: Response, produces: readonly string[]): object { return { description, content: contentOf(produces, ref) }; }

function contentOf(mediaTypes: readonly string[], ref: string | undefined): Record<string, object> {
  return Object.fromEntries(mediaTypes.map((mediaType) => [mediaType, { schema: ref === undefined ? { type: "string" } : { $ref: refPrefix("v3") + ref } }]));
}

function parameterV3({ name, in: where, type, description }: Parameter): object {
  return { name, in: where, ...(description === undefined ? {} : { description }), ...(where === "path" ? { required: true } : {}), schema: { type, uniqueItems: true } };
}
