/**
 * The OpenAPI documents of a running server, made when asked for and kept compressed until what is served changes.
 *
 *   documents.update({ versions, rows, custom });       when a custom resource comes or goes
 *   documents.index()                                   GET /openapi/v3
 *   await documents.v3("apis/apps/v1", "json")          GET /openapi/v3/apis/apps/v1
 *   await documents.v2("protobuf")                      GET /openapi/v2
 *
 * The core group's document is 1.4 MB of JSON and 80 kB gzipped; nobody may ever ask for it. Hashes come from what goes into a document, not from
 * the document, so the index costs nothing.
 */
import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Breathe } from "../../lifecycle/breather.ts";
import { stringify } from "../codec/json.ts";
import { formatApiVersion, type GroupVersion } from "../meta/gvk.ts";
import { builtInFacts, type Facts } from "../schema/facts.ts";
import type { ResourceRow, ServedGroupVersion } from "../schema/resources.ts";
import type { CustomSchema } from "./custom.ts";
import { rootOf } from "./operations.ts";
import { groupsTold, rootDocuments } from "./root-operations.ts";
import type { Descriptions } from "./schema.ts";
import { encodeOpenApiV2, OPENAPI_V2_PROTOBUF } from "./v2-protobuf.ts";
import { openApiV2, type Swagger, writeOpenApiV2 } from "./v2.ts";
import { encodeOpenApiV3, OPENAPI_V3_PROTOBUF } from "./v3-protobuf.ts";
import { openApiV3, openApiV3Index, type ServerInfo } from "./v3.ts";

export interface ServedApi {
  readonly versions: readonly ServedGroupVersion[];
  readonly rows: readonly ResourceRow[];
  /** Structural schemas of custom rows, by "group/version/Kind". */
  readonly custom: ReadonlyMap<string, CustomSchema>;
}

export interface OpenApiDocument { readonly gzip: Uint8Array; readonly contentType: string; readonly etag: string }

export interface OpenApiOptions {
  /** Part of every hash: v1.36.4. info.version has of it what upstream's effective version has: 1.36. */
  readonly version: string;
  /** It speaks CBOR, too. */
  readonly cbor?: boolean;
  /** Loaded for each document and not kept: they are a megabyte. */
  readonly descriptions: () => Promise<Descriptions>;
  readonly facts?: Facts;
  /** Asked for by each long work. */
  readonly breather?: () => Breathe;
}

const compress = promisify(gzip);
const HASH_LENGTH = 128;
const JSON_TYPE = "application/json";
const V2 = "v2"; // among the paths of documents

export type Encoding = "json" | "protobuf";
const ENCODINGS: readonly Encoding[] = ["json", "protobuf"];

function keyOf(path: string, encoding: Encoding): string { return `${path} ${encoding}`; }
function pathOfKey(key: string): string { return key.slice(0, key.lastIndexOf(" ")); }

export class OpenApiDocuments {
  readonly #version: string;
  readonly #cbor: boolean;
  readonly #descriptions: () => Promise<Descriptions>;
  readonly #facts: Facts;
  readonly #breather: () => Breathe;
  #api: ServedApi;
  readonly #made = new Map<string, Promise<OpenApiDocument>>(); // by keyOf
  #hashes: ReadonlyMap<string, string> | undefined;
  #parts: ReadonlyMap<string, ApiPart> | undefined;
  readonly #schemaHashes = new WeakMap<CustomSchema, string>();
  #foreign: string | undefined;

  constructor(api: ServedApi, { version, cbor = false, descriptions, facts = builtInFacts, breather = () => () => undefined }: OpenApiOptions) {
    this.#api = api; this.#version = version; this.#cbor = cbor; this.#descriptions = descriptions; this.#facts = facts; this.#breather = breather;
  }

  /** Before it is told what is served: of thousands of schemas others have their turn between two. */
  async hashSchemas({ custom }: Pick<ServedApi, "custom">): Promise<void> {
    const breathe = this.#breather();
    for (const schema of custom.values()) {
      if (this.#schemaHashes.has(schema)) continue;
      this.#schemaHash(schema);
      const turn = breathe();
      if (turn) await turn;
    }
  }

  /** Drops the documents that are no longer true, and only those. */
  update(api: ServedApi): void {
    const before = this.#hashesNow();
    this.#api = api;
    this.#hashes = this.#parts = undefined;
    const after = this.#hashesNow();
    for (const key of this.#made.keys()) if (before.get(pathOfKey(key)) !== after.get(pathOfKey(key))) this.#made.delete(key);
  }

  /** `extra`: documents served elsewhere, by aggregated servers. */
  index(extra: readonly { readonly path: string; readonly hash: string }[] = []): object {
    return openApiV3Index([...[...this.#hashesNow()].filter(([path]) => path !== V2).map(([path, hash]) => ({ path, hash })), ...extra]);
  }

  /** `path` as in the index; undefined if there is no such document. */
  v3(path: string, encoding: Encoding): Promise<OpenApiDocument> | undefined {
    const make = this.#maker(path);
    return make && this.#keep(path, encoding, async () => {
      const document = make(await this.#descriptions());
      return encoding === "json" ? { bytes: Buffer.from(stringify(document)), contentType: JSON_TYPE } : { bytes: encodeOpenApiV3(document), contentType: OPENAPI_V3_PROTOBUF };
    });
  }

  /** `foreign` adds what other servers tell of themselves; its hash tells one addition from another. */
  async v2(encoding: Encoding, foreign?: { readonly hash: string; add(document: Swagger): Swagger }): Promise<OpenApiDocument> {
    if (this.#foreign !== foreign?.hash) for (const one of ENCODINGS) this.#made.delete(keyOf(V2, one));
    this.#foreign = foreign?.hash;
    const made = await this.#keep(V2, encoding, async () => {
      const [api, breathe] = [this.#api, this.#breather()];
      const own = await openApiV2({ ...api, descriptions: await this.#descriptions(), facts: this.#facts }, this.#info, breathe);
      const document = foreign ? foreign.add(own) : own;
      return encoding === "json" ? { bytes: await writeOpenApiV2(document, breathe), contentType: JSON_TYPE } : { bytes: await encodeOpenApiV2(document, breathe), contentType: OPENAPI_V2_PROTOBUF };
    });
    return foreign ? { ...made, etag: `"${this.#hash([made.etag, foreign.hash])}"` } : made;
  }

  /** Of what is served now, whatever is by the time that the descriptions are there: its hash says so. */
  #maker(path: string): ((descriptions: Descriptions) => object) | undefined {
    const groupVersion = this.#api.versions.find((candidate) => pathOf(candidate) === path);
    if (groupVersion) {
      const part = this.#partOf(groupVersion);
      return (descriptions) => openApiV3({ groupVersion, ...part, descriptions, facts: this.#facts }, this.#info);
    }
    if (!this.#hashesNow().has(path)) return undefined;
    const groups = this.#groups();
    return (descriptions) => rootDocuments(groups, { facts: this.#facts, descriptions, ...this.#info }).get(path)!();
  }

  #keep(path: string, encoding: Encoding, make: () => Promise<{ readonly bytes: Uint8Array; readonly contentType: string }>): Promise<OpenApiDocument> {
    const key = keyOf(path, encoding);
    const known = this.#made.get(key);
    if (known) return known;
    const etag = `"${this.#hashesNow().get(path) ?? ""}"`;
    const made = make().then(async ({ bytes, contentType }) => ({ gzip: await compress(bytes), contentType, etag }));
    this.#made.set(key, made);
    made.catch(() => this.#made.delete(key)); // the caller has the error; the next one may try again
    return made;
  }

  #hashesNow(): ReadonlyMap<string, string> {
    if (this.#hashes) return this.#hashes;
    const hashes = new Map<string, string>();
    for (const groupVersion of this.#api.versions) {
      const { rows, custom } = this.#partOf(groupVersion);
      hashes.set(pathOf(groupVersion), this.#hash({ groupVersion, rows, custom: [...custom].map(([kind, schema]) => [kind, this.#schemaHash(schema)]) }));
    }
    for (const path of rootDocuments(this.#groups(), { facts: this.#facts, descriptions: {}, ...this.#info }).keys()) hashes.set(path, this.#hash(path));
    hashes.set(V2, this.#hash([...hashes]));
    return (this.#hashes = hashes);
  }

  /** Schemas are large and many, and one of them changes at a time. */
  #schemaHash(schema: CustomSchema): string {
    let hash = this.#schemaHashes.get(schema);
    if (hash === undefined) this.#schemaHashes.set(schema, (hash = this.#hash(schema)));
    return hash;
  }

  get #info(): ServerInfo { return { version: this.#version.replace(/^v(\d+\.\d+).*$/, "$1"), cbor: this.#cbor }; }

  #hash(content: unknown): string { return createHash("sha512").update(this.#version).update(stringify(content)).digest("hex").toUpperCase().slice(0, HASH_LENGTH); }
  #groups(): string[] { return groupsTold(this.#api.versions, this.#api.rows); }

  /** What of it all is of one group version. */
  #partOf(groupVersion: GroupVersion): ApiPart {
    this.#parts ??= partsOf(this.#api);
    return this.#parts.get(formatApiVersion(groupVersion)) ?? NO_PART;
  }
}

interface ApiPart { readonly rows: ResourceRow[]; readonly custom: Map<string, CustomSchema> }
const NO_PART: ApiPart = { rows: [], custom: new Map() };

/** By "group/version". */
function partsOf({ rows, custom }: ServedApi): ReadonlyMap<string, ApiPart> {
  const parts = new Map<string, ApiPart>();
  for (const row of rows) {
    const version = formatApiVersion(row);
    let part = parts.get(version);
    if (!part) parts.set(version, (part = { rows: [], custom: new Map() }));
    part.rows.push(row);
    const schema = custom.get(`${row.group}/${row.version}/${row.kind}`);
    if (schema) part.custom.set(row.kind, schema);
  }
  return parts;
}

/** "api/v1", "apis/apps/v1". */
function pathOf(groupVersion: GroupVersion): string { return rootOf(groupVersion).slice(1); }
