/** /openapi/v2 and /openapi/v3: documents made when asked for and kept compressed. Source: kubernetes v1.36 kube-openapi/pkg/{handler,handler3} */
import { gunzipSync } from "node:zlib";
import type { CustomSchema } from "../api/openapi/custom.ts";
import { type OpenApiDocument, OpenApiDocuments } from "../api/openapi/documents.ts";
import type { Descriptions } from "../api/openapi/schema.ts";
import { OPENAPI_V2_PROTOBUF, OPENAPI_V2_PROTOBUF_OLD } from "../api/openapi/v2-protobuf.ts";
import type { Registry } from "../registry/registry.ts";
import type { Aggregation } from "./aggregation/aggregator.ts";
import { type Answer, json, raw } from "./answer.ts";
import { groupVersions } from "./discovery.ts";
import type { PathHandler } from "./handler.ts";
import type { ServerRequest } from "./request.ts";

interface Deps {
  readonly registry: Registry;
  readonly version: string;
  readonly descriptions: () => Promise<Descriptions>;
  /** What other servers serve behind this one. */
  readonly foreign?: Pick<Aggregation, "openApiIndex" | "openApiV2"> | undefined;
}

const V2 = "/openapi/v2";
const V3 = "/openapi/v3";

export function openApiPaths({ registry, version, descriptions, foreign }: Deps): PathHandler {
  let documents: OpenApiDocuments | undefined;
  let changes = -1;

  function current(): OpenApiDocuments {
    const api = () => ({ versions: groupVersions(registry), rows: registry.rows(), custom: customSchemas(registry) });
    if (!documents) documents = new OpenApiDocuments(api(), { version, descriptions });
    else if (changes !== registry.changes) documents.update(api());
    changes = registry.changes;
    return documents;
  }

  return async (request) => {
    const { path } = request;
    if (path === V3 || path === `${V3}/`) return json(current().index(foreign?.openApiIndex()));
    if (path.startsWith(`${V3}/`)) {
      const document = await current().v3(path.slice(V3.length + 1));
      return document && answer(request, document);
    }
    if (path !== V2) return undefined;
    const accept = request.header("accept") ?? "";
    const protobuf = accept.includes(OPENAPI_V2_PROTOBUF) || accept.includes(OPENAPI_V2_PROTOBUF_OLD);
    return answer(request, await current().v2(protobuf ? "protobuf" : "json", foreign?.openApiV2()));
  };
}

/** By "group/version/Kind". */
function customSchemas(registry: Registry): ReadonlyMap<string, CustomSchema> {
  const schemas = new Map<string, CustomSchema>();
  for (const { row, custom } of registry.served())
    if (custom?.openApi) schemas.set(`${row.group}/${row.version}/${row.kind}`, custom.openApi as CustomSchema);
  return schemas;
}

/** A URL that names the hash of its content may be kept for ever. */
function answer(request: ServerRequest, { gzip, contentType, etag }: OpenApiDocument): Answer {
  const headers: Record<string, string> = { etag, vary: "Accept-Encoding, Accept", "cache-control": request.query.has("hash") ? "public, immutable" : "no-cache, private" };
  if (request.header("if-none-match") === etag) return raw("", contentType, 304, headers);
  if (/\bgzip\b/.test(request.header("accept-encoding") ?? "")) return raw(gzip, contentType, 200, { ...headers, "content-encoding": "gzip" });
  return raw(gunzipSync(gzip), contentType, 200, headers);
}
