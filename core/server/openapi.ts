/**
 * /openapi/v2 and /openapi/v3: documents made when asked for and kept compressed.
 *
 * Source: kubernetes v1.36 kube-openapi/pkg/{handler,handler3}
 */
import { randomBytes } from "node:crypto";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { parseAccept } from "../api/codec/negotiate.ts";
import { type CustomSchema, SELECTABLE } from "../api/openapi/custom.ts";
import { type OpenApiDocument, OpenApiDocuments } from "../api/openapi/documents.ts";
import type { Descriptions } from "../api/openapi/schema.ts";
import { OPENAPI_V2_PROTOBUF, OPENAPI_V2_PROTOBUF_OLD } from "../api/openapi/v2-protobuf.ts";
import { OPENAPI_V3_PROTOBUF, OPENAPI_V3_PROTOBUF_OLD } from "../api/openapi/v3-protobuf.ts";
import { breather } from "../lifecycle/breather.ts";
import type { Clock } from "../lifecycle/clock.ts";
import { takesGzip } from "../net/takes-gzip.ts";
import type { Registry } from "../registry/registry.ts";
import type { Aggregation } from "./aggregation/aggregator.ts";
import { type Answer, raw, type RawAnswer } from "./answer.ts";
import { partOf } from "./byte-ranges.ts";
import { groupVersions } from "./group-versions.ts";
import type { ServerRequest } from "./request.ts";
import type { PathHandler } from "./scope.ts";

interface Deps {
  readonly clock: Clock;
  readonly registry: Registry;
  readonly version: string;
  /** It speaks CBOR, too. */
  readonly cbor?: boolean;
  readonly descriptions: () => Promise<Descriptions>;
  /** What other servers serve behind this one. */
  readonly foreign?: Pick<Aggregation, "openApiIndex" | "openApiV2"> | undefined;
}

const V2 = "/openapi/v2";
const V3 = "/openapi/v3";

/** In which forms a document is told, the preferred one first, and what a client may ask for it by. */
const JSON_FORM = ["json", "application/json"] as const;
const FORMS_V3 = [JSON_FORM, ["protobuf", OPENAPI_V3_PROTOBUF], ["protobuf", OPENAPI_V3_PROTOBUF_OLD]] as const;
const FORMS_V2 = [JSON_FORM, ["protobuf", OPENAPI_V2_PROTOBUF_OLD], ["protobuf", OPENAPI_V2_PROTOBUF]] as const;

export function openApiPaths({ clock, registry, version, cbor = false, descriptions, foreign }: Deps): PathHandler {
  const documents = new OpenApiDocuments({ versions: [], rows: [], custom: new Map() }, { version, cbor, descriptions, breather: () => breather(clock) });
  let changes = -1;
  const madeMs = new WeakMap<Uint8Array, number>();

  /** When it was first told: what is kept is not made again. */
  function modifiedMs({ gzip }: OpenApiDocument): number {
    const known = madeMs.get(gzip) ?? clock.nowMs();
    madeMs.set(gzip, known);
    return known;
  }

  let told = { text: "", sinceMs: 0 };

  /** The aggregator, which tells it upstream, names no type. */
  async function indexAnswer(request: ServerRequest): Promise<Answer> {
    const text = JSON.stringify((await current()).index(foreign?.openApiIndex()));
    if (text !== told.text) told = { text, sinceMs: clock.nowMs() };
    const contentType = "text/plain; charset=utf-8", headers = { ...RANGES, "last-modified": new Date(told.sinceMs).toUTCString() };
    return askedPart(request, { bytes: Buffer.from(text), contentType, etag: "", headers }) ?? raw(text, contentType, 200, headers);
  }

  async function current(): Promise<OpenApiDocuments> {
    while (changes < registry.changes) {
      const now = registry.changes, api = { versions: groupVersions(registry), rows: registry.rows(), custom: customSchemas(registry) };
      await documents.hashSchemas(api);
      if (changes >= now) continue; // another request was there first, and what it has told may be newer
      documents.update(api);
      changes = now;
    }
    return documents;
  }

  return async (request) => {
    const { path } = request;
    if (path === V3) return indexAnswer(request);
    if (path.startsWith(`${V3}/`)) {
      const place = path.slice(V3.length + 1);
      const form = formOf(request, FORMS_V3);
      const document = await (await current()).v3(place, form ?? "json");
      if (!document) return empty(404);
      return form === undefined ? notAcceptable() : answer(request, document, { modifiedMs: modifiedMs(document), v3: { place, nowMs: clock.nowMs() } });
    }
    if (path !== V2) return undefined;
    const form = formOf(request, FORMS_V2);
    if (form === undefined) return notAcceptable();
    const document = await (await current()).v2(form, foreign?.openApiV2());
    return answer(request, document, { modifiedMs: modifiedMs(document) });
  };
}

function formOf<T extends string>(request: ServerRequest, forms: readonly (readonly [form: T, mediaType: string])[]): T | undefined {
  const accept = request.header("accept")?.trim() || "*/*";
  for (const { type, subtype } of parseAccept(accept)) {
    const found = forms.find(([, mediaType]) => {
      const [ownType, ownSubtype] = mediaType.split("/");
      return (type === "*" || type === ownType) && (subtype === "*" || subtype === ownSubtype);
    });
    if (found) return found[0];
  }
  return undefined;
}

const RANGES = { "accept-ranges": "bytes" };

function askedPart(request: ServerRequest, document: Parameters<typeof partOf>[0]): RawAnswer | undefined {
  const range = request.header("range") ?? "";
  return range === "" ? undefined : partOf(document, { range, of: request.header("if-range"), boundary: () => randomBytes(30).toString("hex") });
}

function notAcceptable(): Answer { return empty(406, { vary: "Accept" }); }

function empty(status: number, headers: Readonly<Record<string, string>> = {}): Answer { return { type: "raw", status, headers, body: "" }; }

/** By "group/version/Kind". */
function customSchemas(registry: Registry): ReadonlyMap<string, CustomSchema> {
  const schemas = new Map<string, CustomSchema>();
  for (const { row, custom } of registry.served())
    if (custom?.openApi) schemas.set(`${row.group}/${row.version}/${row.kind}`, withSelectable(custom.openApi, custom.version.selectableFields));
  return schemas;
}

function withSelectable(schema: CustomSchema, fields: readonly { readonly jsonPath: string }[] = []): CustomSchema {
  return fields.length === 0 ? schema : { ...schema, [SELECTABLE]: fields.map(({ jsonPath }) => ({ fieldPath: jsonPath.replace(/^\./, "") })) };
}

/** Whether what a client has is what there is: as Go's http.ServeContent compares. */
function hasNow(known: string, etag: string): boolean {
  return known.trim() === "*" || known.split(",").some((one) => one.trim().replace(/^W\//, "") === etag);
}

/**
 * A URL that names the hash of its content may be kept for ever; one that names another hash is sent to where the content is now. Who asks for what has changed since some time
 * is told all of it: the clocks of small machines run backwards, and clients know the etag.
 */
async function answer(request: ServerRequest, { gzip, contentType, etag }: OpenApiDocument, { modifiedMs, v3 }: { readonly modifiedMs: number; readonly v3?: { readonly place: string; readonly nowMs: number } }): Promise<Answer> {
  const hash = v3 && request.query.get("hash");
  const headers: Record<string, string> = { etag, vary: "Accept-Encoding, Accept", "cache-control": "no-cache, private" };
  if (v3 && hash) {
    const current = etag.replaceAll('"', "");
    if (hash !== current) return raw("", contentType, 301, { ...headers, location: `${V3}/${v3.place}?hash=${current}` });
    const kept = new Date(v3.nowMs);
    kept.setUTCFullYear(kept.getUTCFullYear() + 1);
    headers["cache-control"] = "public, immutable";
    headers["expires"] = kept.toUTCString();
  }
  if (hasNow(request.header("if-none-match") ?? "", etag)) return empty(304, headers);
  Object.assign(headers, RANGES, { "last-modified": new Date(modifiedMs).toUTCString() });
  const part = request.header("range") && askedPart(request, { bytes: await promisify(gunzip)(gzip), contentType, etag, headers });
  if (part) return part;
  if (takesGzip(request.header("accept-encoding"))) return raw(gzip, contentType, 200, { ...headers, "content-encoding": "gzip" });
  return raw(await promisify(gunzip)(gzip), contentType, 200, headers);
}
