/**
 * What can be done with the rows of a group version, one Operation per path and method, before it is written as OpenAPI v2 or v3.
 *
 * Operation ids, actions and parameters are upstream's: generated clients are named after the ids, and kubectl looks for x-kubernetes-action "patch"
 * with a parameter fieldValidation before it trusts a server with validation.
 *
 * Source: kubernetes v1.36 apiserver/pkg/endpoints/installer.go, apiserver/pkg/endpoints/openapi/openapi.go
 */
import { compareText } from "../meta/compare-text.ts";
import { formatApiVersion, type GroupVersion, type GroupVersionKind } from "../meta/gvk.ts";
import type { Facts, Type } from "../schema/facts.ts";
import type { HttpMethod, ResourceRow, Subresource } from "../schema/resources.ts";
import { META, PATCH, type Descriptions } from "./schema.ts";

export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query";
  readonly type: "boolean" | "integer" | "string";
  readonly description: string | undefined;
}

/** `ref` is a type's OpenAPI name; without one the answer is plain text. */
export interface Response { readonly code: number; readonly description: string; readonly ref: string | undefined }

export interface Operation {
  readonly path: string;
  readonly method: Lowercase<HttpMethod>;
  readonly id: string;
  readonly description: string | undefined;
  readonly tag: string;
  readonly action: string | undefined;
  readonly kind: GroupVersionKind | undefined;
  /** Sorted by name. */
  readonly parameters: readonly Parameter[];
  readonly body: { readonly ref: string; readonly required: boolean } | undefined;
  readonly consumes: readonly string[];
  readonly produces: readonly string[];
  readonly responses: readonly Response[];
}

export interface OperationOptions {
  readonly facts: Facts;
  readonly descriptions: Descriptions;
  /** The OpenAPI name of a kind's type. */
  readonly refOf: (kind: GroupVersionKind) => string;
  /** The server speaks CBOR, too. Of custom resources that is not told. */
  readonly cbor?: boolean | undefined;
}

const ANY_MEDIA_TYPE = ["*/*"];
export const PRODUCES = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
const PRODUCES_CUSTOM = ["application/json", "application/yaml"];
const CONSUMES_CUSTOM = PRODUCES_CUSTOM;
const STREAMS = ["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];
const PATCHES = ["application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml"];
const PATCHES_CUSTOM = PATCHES.filter((type) => type !== "application/strategic-merge-patch+json");

const NAMESPACE: Parameter = { name: "namespace", in: "path", type: "string", description: "object name and auth scope, such as for teams and projects" };
const PATH: Parameter = { name: "path", in: "path", type: "string", description: "path to the resource" };
const PRETTY: Parameter = {
  name: "pretty", in: "query", type: "string",
  description: "If 'true', then the output is pretty printed. Defaults to 'false' unless the user-agent indicates a browser or command-line HTTP tool (curl and wget).",
};
/** Of a list's options, what deleting a collection has no use for. */
const WATCH_OPTIONS = new Set(["watch", "allowWatchBookmarks"]);
const USE_WATCH = "deprecated: use the 'watch' parameter with a list operation instead";

/** "rbac.authorization.k8s.io" → ["Rbac", "Authorization"]; "cert-manager.io" → ["Cert", "Manager", "Io"]; the core group → ["Core"]. */
export function groupWords(group: string): string[] { return (group === "" ? "core" : group.replace(/\.k8s\.io$/, "")).split(/[.-]/).map(capitalize); }

/** "apps_v1", "rbacAuthorization_v1". */
function tagOf({ group, version }: GroupVersion): string { return `${uncapitalize(groupWords(group).join(""))}_${version}`; }

export function rootOf(groupVersion: GroupVersion): string { return `/${groupVersion.group === "" ? "api" : "apis"}/${formatApiVersion(groupVersion)}`; }

/** Everything under a group version's path, its own resource list first. Of a group that consists of custom resources nobody tells that list. */
export function operationsOf(groupVersion: GroupVersion, rows: readonly ResourceRow[], options: OperationOptions): Operation[] {
  const version = new Version(groupVersion, options);
  const operations = [
    ...(isCustom(rows) ? [] : [version.resourceList()]),
    ...rows.flatMap((row) => [...version.collection(row), ...version.item(row), ...version.watches(row), ...row.subresources.flatMap((subresource) => version.subresource(row, subresource))]),
  ];
  return options.cbor && !isCustom(rows) ? operations.map((operation) => ({ ...operation, consumes: withCbor(operation.consumes), produces: withCbor(operation.produces) })) : operations;
}

/** Each after what it is most like. */
const CBOR_AFTER: Readonly<Record<string, string>> = {
  "application/vnd.kubernetes.protobuf": "application/cbor", "application/vnd.kubernetes.protobuf;stream=watch": "application/cbor-seq",
  "application/apply-patch+yaml": "application/apply-patch+cbor",
};

function withCbor(types: readonly string[]): readonly string[] { return types.flatMap((type) => [type, ...(CBOR_AFTER[type] === undefined ? [] : [CBOR_AFTER[type]])]); }

/** Whether these, of one group or one version of it, all come from CustomResourceDefinitions. */
export function isCustom(rows: readonly ResourceRow[]): boolean { return rows.length > 0 && rows.every(({ custom }) => custom); }

/** Where a resource's objects are: in a namespace, or not. */
interface Place { readonly path: string; readonly scope: string; readonly parameters: readonly Parameter[] }

class Version {
  readonly #options: OperationOptions;
  readonly #groupVersion: GroupVersion;
  readonly #root: string;
  readonly #prefix: string;
  readonly #tag: string;

  constructor(groupVersion: GroupVersion, options: OperationOptions) {
    this.#options = options;
    this.#groupVersion = groupVersion;
    this.#root = rootOf(groupVersion);
    this.#prefix = groupWords(groupVersion.group).join("") + capitalize(groupVersion.version);
    this.#tag = tagOf(groupVersion);
  }

  resourceList(): Operation {
    return {
      path: `${this.#root}/`, method: "get", id: `get${this.#prefix}APIResources`, description: "get available resources", tag: this.#tag, action: undefined, kind: undefined,
      parameters: [], body: undefined, consumes: PRODUCES, produces: PRODUCES, responses: [ok(`${META}APIResourceList`)],
    };
  }

  collection(row: ResourceRow): Operation[] {
    const { verbs, kind } = row;
    const place = this.#place(row);
    const operations: Operation[] = [];
    const ref = this.#ref(row);
    if (verbs.includes("list")) {
      operations.push(this.#list(row, place, `list${this.#prefix}${place.scope}${kind}`));
      if (row.namespaced) operations.push(this.#list(row, this.#everywhere(row), `list${this.#prefix}${kind}ForAllNamespaces`));
    }
    if (verbs.includes("create")) operations.push(this.#build(row, place, {
      method: "post", id: `create${this.#prefix}${place.scope}${kind}`, description: `create${article(kind)} ${kind}`, action: "post", query: this.#query("CreateOptions"),
      body: { ref, required: true }, responses: created(ref),
    }));
    if (verbs.includes("deletecollection")) operations.push(this.#build(row, place, {
      method: "delete", id: `delete${this.#prefix}Collection${place.scope}${kind}`, description: `delete collection of ${kind}`, action: "deletecollection",
      ...(row.custom ? { query: this.#query("ListOptions") } : {
        query: [...this.#query("DeleteOptions"), ...this.#query("ListOptions").filter(({ name }) => !WATCH_OPTIONS.has(name))],
        body: { ref: `${META}DeleteOptions`, required: false },
      }),
      responses: [ok(`${META}Status`)],
    }));
    return operations;
  }

  item(row: ResourceRow): Operation[] {
    const { verbs, kind } = row;
    const place = this.#itemPlace(row, kind);
    const ref = this.#ref(row);
    const deleted = row.returnsDeleted ? ref : `${META}Status`;
    const id = `${this.#prefix}${place.scope}${kind}`;
    return [
      ...(verbs.includes("get") ? [this.#build(row, place, { method: "get", id: `read${id}`, description: `read the specified ${kind}`, action: "get", query: this.#getQuery(row), responses: [ok(ref)] })] : []),
      ...(verbs.includes("update") ? [this.#replace(row, place, { id, description: `replace the specified ${kind}`, ref })] : []),
      ...(verbs.includes("patch") ? [this.#patch(row, place, { id, description: `partially update the specified ${kind}`, ref })] : []),
      ...(verbs.includes("delete") ? [this.#build(row, place, {
        method: "delete", id: `delete${id}`, description: `delete${article(kind)} ${kind}`, action: "delete", query: this.#query("DeleteOptions"),
        body: { ref: `${META}DeleteOptions`, required: false }, responses: [ok(deleted), accepted(deleted)],
      })] : []),
    ];
  }

  /** The old way to watch: under /watch. */
  watches(row: ResourceRow): Operation[] {
    if (!row.verbs.includes("watch") || row.custom) return [];
    const { kind } = row;
    const place = this.#place(row, "/watch");
    const item = this.#itemPlace(row, kind, "/watch");
    const watch = (at: Place, id: string, description: string, action: string): Operation => this.#build(row, at, {
      method: "get", id, description, action, query: this.#query("ListOptions"), responses: [ok(`${META}WatchEvent`)], produces: [...PRODUCES, ...STREAMS],
    });
    const listed = `watch individual changes to a list of ${kind}. ${USE_WATCH}.`;
    return [
      watch(place, `watch${this.#prefix}${place.scope}${kind}List`, listed, "watchlist"),
      ...(row.namespaced ? [watch(this.#everywhere(row, "/watch"), `watch${this.#prefix}${kind}ListForAllNamespaces`, listed, "watchlist")] : []),
      ...(row.verbs.includes("get") ? [watch(item, `watch${this.#prefix}${item.scope}${kind}`,
        `watch changes to an object of kind ${kind}. ${USE_WATCH}, filtered to a single item with the 'fieldSelector' parameter.`, "watch")] : []),
    ];
  }

  subresource(row: ResourceRow, subresource: Subresource): Operation[] {
    const { name, verbs, connects } = subresource;
    const kind = row.custom ? { group: row.group, version: row.version, kind: row.kind } : subresource.kind; // upstream tells custom resources' scale as theirs
    const item = this.#itemPlace(row, kind.kind);
    const place = { ...item, path: `${item.path}/${name}` };
    const id = `${this.#prefix}${place.scope}${row.kind}${capitalize(name)}`;
    if (connects.length > 0) return this.#connects(row, subresource, place);
    if (name === "log") return [this.#build(row, place, {
      method: "get", id: `read${id}`, description: `read log of the specified ${row.kind}`, action: "get", kind, query: this.#query("PodLogOptions"),
      responses: [ok(undefined)], produces: ["text/plain", ...PRODUCES],
    })];
    const ref = this.#options.refOf(subresource.kind);
    return [
      ...(verbs.includes("get") ? [this.#build(row, place, { method: "get", id: `read${id}`, description: `read ${name} of the specified ${row.kind}`, action: "get", kind, query: this.#getQuery(row), responses: [ok(ref)] })] : []),
      ...(verbs.includes("update") ? [this.#replace(row, place, { id, description: `replace ${name} of the specified ${row.kind}`, ref, kind })] : []),
      ...(verbs.includes("patch") ? [this.#patch(row, place, { id, description: `partially update ${name} of the specified ${row.kind}`, ref, kind })] : []),
      ...(verbs.includes("create") ? [this.#build(row, place, {
        method: "post", id: `create${id}`, description: `create ${name} of${article(row.kind)} ${row.kind}`, action: "post", kind, query: this.#query("CreateOptions"),
        body: { ref, required: true }, responses: created(ref),
      })] : []),
    ];
  }

  #connects(row: ResourceRow, { name, kind, connects }: Subresource, place: Place): Operation[] {
    const connect = (method: HttpMethod, at: Place, suffix: string): Operation => this.#build(row, at, {
      method: method.toLowerCase() as Lowercase<HttpMethod>, id: `connect${this.#prefix}${capitalize(method.toLowerCase())}${place.scope}${row.kind}${capitalize(name)}${suffix}`,
      description: `connect ${method} requests to ${name} of ${row.kind}`, action: "connect", kind, query: this.#query(kind.kind), responses: [ok(undefined)],
      produces: ANY_MEDIA_TYPE, unpretty: true,
    });
    const deeper = { ...place, path: `${place.path}/{path}`, parameters: [...place.parameters, PATH] };
    return connects.flatMap((method) => [connect(method, place, ""), ...(name === "proxy" ? [connect(method, deeper, "WithPath")] : [])]);
  }

  #list(row: ResourceRow, place: Place, id: string): Operation {
    return this.#build(row, place, {
      method: "get", id, description: `list ${row.verbs.includes("watch") && !row.custom ? "or watch " : ""}objects of kind ${row.kind}`, action: "list", query: this.#query("ListOptions"),
      responses: [ok(this.#ref({ ...row, kind: row.listKind ?? `${row.kind}List` }))], produces: row.custom ? PRODUCES_CUSTOM : [...PRODUCES, ...STREAMS],
    });
  }

  #replace(row: ResourceRow, place: Place, { id, description, ref, kind }: { readonly id: string; readonly description: string; readonly ref: string; readonly kind?: GroupVersionKind }): Operation {
    return this.#build(row, place, { method: "put", id: `replace${id}`, description, action: "put", kind, query: this.#query("UpdateOptions"), body: { ref, required: true }, responses: [ok(ref), { code: 201, description: "Created", ref }] });
  }

  #patch(row: ResourceRow, place: Place, { id, description, ref, kind }: { readonly id: string; readonly description: string; readonly ref: string; readonly kind?: GroupVersionKind }): Operation {
    return this.#build(row, place, {
      method: "patch", id: `patch${id}`, description, action: "patch", kind, query: this.#query("PatchOptions"), body: { ref: PATCH, required: true },
      responses: [ok(ref), { code: 201, description: "Created", ref }].slice(0, row.custom ? 1 : 2), consumes: row.custom ? PATCHES_CUSTOM : PATCHES,
    });
  }

  #build(row: ResourceRow, place: Place, operation: {
    readonly method: Lowercase<HttpMethod>; readonly id: string; readonly description: string; readonly action: string; readonly query: readonly Parameter[];
    readonly responses: readonly Response[]; readonly kind?: GroupVersionKind | undefined; readonly body?: Operation["body"]; readonly consumes?: readonly string[];
    readonly produces?: readonly string[]; readonly unpretty?: boolean;
  }): Operation {
    const { method, id, description, action, query, responses, kind, body, consumes = row.custom ? CONSUMES_CUSTOM : ANY_MEDIA_TYPE, produces = row.custom ? PRODUCES_CUSTOM : PRODUCES, unpretty } = operation;
    const { group, version } = this.#groupVersion;
    return {
      path: place.path, method, id, description, tag: this.#tag, action, kind: kind ?? { group, version, kind: row.kind }, body, consumes, produces, responses,
      parameters: [...new Map([...place.parameters, ...(unpretty ? [] : [PRETTY]), ...query].map((parameter) => [`${parameter.in} ${parameter.name}`, parameter])).values()]
        .sort((a, b) => compareText(a.name, b.name) || compareText(a.in, b.in)),
    };
  }

  /** Described as that of a list. */
  #getQuery(row: ResourceRow): Parameter[] { return row.custom ? this.#query("ListOptions").filter(({ name }) => name === "resourceVersion") : []; }

  #ref({ group, version, kind }: GroupVersionKind): string { return this.#options.refOf({ group, version, kind }); }

  #everywhere({ plural }: ResourceRow, under = ""): Place { return { path: `${this.#root}${under}/${plural}`, scope: "", parameters: [] }; }

  #place(row: ResourceRow, under = ""): Place {
    if (!row.namespaced) return this.#everywhere(row, under);
    return { path: `${this.#root}${under}/namespaces/{namespace}/${row.plural}`, scope: "Namespaced", parameters: [NAMESPACE] };
  }

  #itemPlace(row: ResourceRow, kind: string, under = ""): Place {
    const place = this.#place(row, under);
    return { ...place, path: `${place.path}/{name}`, parameters: [{ name: "name", in: "path", type: "string", description: `name of the ${kind}` }, ...place.parameters] };
  }

  /** The plain fields of an options type. */
  #query(kind: string): Parameter[] {
    const core = this.#options.facts.typeOf({ group: "", version: "v1", kind });
    if (!core) throw new Error(`openapi: no options type ${kind}`);
    return core.fields.flatMap(({ name, type }) => {
      const plain = parameterType(type);
      return plain === undefined || name === "kind" || name === "apiVersion" ? [] : [{ name, in: "query" as const, type: plain, description: this.#options.descriptions[core.name]?.[name] }];
    });
  }
}

/** A list in a query is its parameter repeated. */
function parameterType(type: Type): Parameter["type"] | undefined {
  if (type.kind === "list") return parameterType(type.items);
  if (type.kind !== "scalar") return undefined;
  return type.scalar === "bool" ? "boolean" : type.scalar === "int32" || type.scalar === "int64" ? "integer" : "string";
}

function ok(ref: string | undefined): Response { return { code: 200, description: "OK", ref }; }
function accepted(ref: string): Response { return { code: 202, description: "Accepted", ref }; }
function created(ref: string): Response[] { return [ok(ref), { code: 201, description: "Created", ref }, accepted(ref)]; }

/** " a", " an", or nothing before a plural. */
function article(noun: string): string { return noun.endsWith("s") && !noun.endsWith("ss") ? "" : /^[aeiou]/i.test(noun) ? " an" : " a"; }

function capitalize(word: string): string { return word.charAt(0).toUpperCase() + word.slice(1); }
function uncapitalize(word: string): string { return word.charAt(0).toLowerCase() + word.slice(1); }
