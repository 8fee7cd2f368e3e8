/** An answer in the encoding the client asked for: JSON, YAML, protobuf or CBOR; the objects themselves, Tables, or only their metadata. */
import { goPackage } from "../api/codec/body.ts";
import { keysInOrder } from "../api/codec/json-document.ts";
import { encodeJson, jsonText } from "../api/codec/json.ts";
import { type Convertible, convertibleToMeta, MEDIA_TYPES, negotiateOutput, negotiateStream, type Output } from "../api/codec/negotiate.ts";
import { cborCodec } from "../api/codec/cbor/codec.ts";
import { assemble, lengthOf, type Piece } from "../api/codec/pieces.ts";
import { envelopePieces, protobufCodec } from "../api/codec/protobuf.ts";
import { checkInclude, renderTable, type Table } from "../api/codec/table/table.ts";
import { jsonWatchPieces, protobufWatchPieces, type WatchEventType } from "../api/codec/watch-frames.ts";
import { encodeYaml } from "../api/codec/yaml.ts";
import { type GroupKind, gvkOf, parseApiVersion } from "../api/meta/gvk.ts";
import type { ApiObject, ListMeta } from "../api/meta/object-meta.ts";
import { type StatusError, statusError, statusOf } from "../api/meta/status-error.ts";
import { canonicalOwn } from "../api/schema/canonical.ts";
import { builtInFacts } from "../api/schema/facts.ts";
import { atOnce, type Breathe, inSlices, type Pausing } from "../lifecycle/breather.ts";
import type { Cached } from "../registry/generic/cached.ts";
import type { ServedResource } from "../registry/registry.ts";
import type { BookmarkItem, ErrorItem, ListAnswer, ObjectAnswer, WatchAnswer, WatchItem } from "./answer.ts";
import { type EventBytes, SHARED_ITEMS_MAX } from "./event-bytes.ts";
import { bookmarkObject, listObject } from "./in-process.ts";
import { metadataEvent, metadataJson, metadataList, partialMetadata } from "./partial-metadata.ts";
import type { ServerRequest } from "./request.ts";
import { tableRows } from "./table-rows.ts";

export interface Encoded {
  readonly status: number;
  readonly contentType: string;
  /** Parts of the body, to be sent one after another: api/codec/pieces.ts. */
  readonly body: readonly Piece[];
  /** Of all of them, where somebody has counted already. */
  readonly length?: number;
}

export interface Presentation {
  readonly request: ServerRequest;
  /** The time of day in milliseconds: ages in Tables count from it, of a watch those of each event. */
  readonly nowMs: () => number;
  /** The documentation of an API field, for the columns of Tables. */
  readonly describe: ((field: string) => string | undefined) | undefined;
  /** What watchers share. Absent: each has its events encoded for itself. */
  readonly events?: EventBytes | undefined;
}

/** Throws 406. */
export function encodeObject(answer: ObjectAnswer, how: Presentation): Encoded {
  const { status, object, stored } = answer;
  const output = outputFor(answer, how.request);
  if (output.convert && !isStatus(object)) {
    if (output.convert.kind === "PartialObjectMetadataList") throw otherShape("PartialObjectMetadataList", "not a list", object as Readonly<ApiObject>);
    const shown = output.convert.kind === "Table"
      ? tableOf(answer.printedAs!, [stored && !stored.served.custom ? stored.entry.object : (object as Readonly<ApiObject>)], undefined, how, output, stored?.served, answer.printer)
      : partialMetadata(object as Readonly<ApiObject>, output.convert.version);
    return whole(status, output, shown);
  }
  if (stored && !output.pretty && isShownAsStored(stored.served, stored.entry)) {
    if (output.encoding === "json") return { status, contentType: output.contentType, body: [stored.entry.json(), NEWLINE] };
    if (output.encoding === "protobuf") return { status, contentType: output.contentType, body: envelopePieces(gvkOf(stored.entry.object), messageOf(stored.served, stored.entry)) };
  }
  return whole(status, output, object as object);
}

/** Makes of an object what the answer to its write will need of it. Throws where the client cannot be told, as its answer will. */
export function encodeAhead(request: ServerRequest, served: ServedResource, entry: Cached): void {
  if (!request.wire || entry.object.apiVersion !== served.apiVersion || !isShownAsStored(served, entry)) return; // one of another version has yet to be converted
  const { encoding, pretty, convert } = outputOf(request, served);
  if (pretty || convert) return;
  if (encoding === "json") entry.json();
  else if (encoding === "protobuf") messageOf(served, entry);
}

/** A list was asked for of one object, or the other way round. One custom resource is first looked into for items, in vain. */
function otherShape(wanted: string, is: string, { apiVersion, kind }: Pick<ApiObject, "apiVersion" | "kind">): StatusError {
  const isBuiltIn = builtInFacts.typeOf({ ...parseApiVersion(apiVersion), kind: kind.replace(/List$/, "") }) !== undefined;
  if (!isBuiltIn && is === "not a list") return statusError({ code: 500, reason: "", message: "content is not a list" });
  const type = isBuiltIn ? `${goPackage(parseApiVersion(apiVersion).group)}.${kind}` : "unstructured.UnstructuredList";
  return statusError({ code: 406, reason: "NotAcceptable", message: `you requested ${wanted}, but the requested object is ${is} (*${type})` });
}

/** What went wrong is told whatever the client asked for, to a person then (responsewriters WriteRawJSON); so is a Status that is an answer. */
function outputFor({ status, object, stored, printedAs, viewOf }: ObjectAnswer, request: ServerRequest): Output {
  if (!isStatus(object)) return outputOf(request, stored?.served ?? viewOf, (target, encoding) => convertibleToMeta(target, encoding) && (target.kind !== "Table" || printedAs !== undefined));
  try {
    return outputOf(request, undefined, () => status < 400);
  } catch (error) {
    if (status < 400) throw error;
    return { encoding: "json", pretty: true, convert: undefined, contentType: MEDIA_TYPES.json };
  }
}

function isStatus(object: ObjectAnswer["object"]): boolean {
  return object["kind" as never] === "Status" && object["apiVersion" as never] === "v1";
}

/** To write many objects is long work: others have their turn between two, and it ends when `breathe` throws. Throws 406. */
export async function encodeList(answer: ListAnswer, how: Presentation, breathe: Breathe): Promise<Encoded> {
  const { served, entries, metadata } = answer;
  const { encoding, pretty, contentType, convert } = outputOf(how.request, served);
  if (!convert && encoding === "json" && !pretty) return { status: 200, contentType, body: await jsonList(served, entries, metadata, breathe) };
  if (!convert && encoding === "protobuf") {
    const items = await each(entries, (entry) => messageOf(served, entry), breathe);
    return { status: 200, contentType, body: protobufCodec.listPieces({ apiVersion: served.apiVersion, kind: `${served.row.kind}List`, metadata }, items) };
  }
  if (!convert && encoding === "json" && entries.length > 0) return { status: 200, contentType, body: await prettyList(answer, breathe) };
  if (convert || encoding !== "yaml" || entries.length === 0) return inSlices(converted(answer, how), breathe);
  const { items: _, ...head } = listObject({ ...answer, entries: [] });
  const items = await each(entries, ({ object }) => encodeYaml([itemOf(served, object)]), breathe);
  return { status: 200, contentType, body: [encodeYaml({ apiVersion: head.apiVersion }), "items:\n", ...items, encodeYaml({ kind: head.kind, metadata: listMeta(served, metadata) })] };
}

async function each<R>(entries: readonly Cached[], encode: (entry: Cached) => R, breathe: Breathe): Promise<R[]> {
  const encoded: R[] = [];
  for (const entry of entries) {
    encoded.push(encode(entry));
    const turn = breathe();
    if (turn) await turn;
  }
  return encoded;
}

/** For who cannot wait. Throws 406. */
export function encodeListAtOnce(answer: ListAnswer, how: Presentation): Encoded { return atOnce(converted(answer, how)); }

/** In another form than objects' own, or for people. */
function* converted(answer: ListAnswer, how: Presentation): Pausing<Encoded> {
  const { served, entries, metadata } = answer;
  const output = outputOf(how.request, served);
  const plain = output.encoding === "json" && !output.pretty;
  if (output.convert?.kind === "Table") {
    if (plain) return { status: 200, contentType: output.contentType, body: yield* tablePieces(answer, how, output) };
    return whole(200, output, tableOf(served.row, entries.map(({ object }) => (served.custom ? served.fromStorage(object) : object)), metadata, how, output, served));
  }
  if (output.convert) {
    if (output.convert.kind === "PartialObjectMetadata") throw otherShape("PartialObjectMetadata", "a list", { apiVersion: served.apiVersion, kind: served.row.listKind ?? `${served.row.kind}List` });
    const { encoding, pretty, contentType, convert: { version } } = output;
    if ((encoding === "json" || encoding === "protobuf") && !pretty) return { status: 200, contentType, body: yield* metadataList(answer, encoding, version) };
    const items = entries.map(({ object }) => partialMetadata(served.custom ? served.fromStorage(object) : object, version));
    return whole(200, output, { kind: "PartialObjectMetadataList", apiVersion: `meta.k8s.io/${version}`, metadata, items: items.length > 0 ? items : null });
  }
  return whole(200, output, listOf(answer, entries.map(({ object }) => itemOf(served, object))));
}

function listOf(answer: ListAnswer, items: readonly object[]): object {
  const { served, metadata } = answer, list = { ...listObject({ ...answer, entries: [] }), items };
  return builtIn(served) ? list : keysInOrder({ ...list, metadata: listMeta(served, metadata) });
}

/** For people, and for curl, whose name upstream goes by. */
async function prettyList(answer: ListAnswer, breathe: Breathe): Promise<readonly Piece[]> {
  const [before = "", after = ""] = jsonText(listOf(answer, []), { pretty: true }).split('\n  "items": []'); // what is below the list's own fields is indented more
  const items = await each(answer.entries, ({ object }) => `    ${jsonText(itemOf(answer.served, object), { pretty: true }).replaceAll("\n", "\n    ")}`, breathe);
  return [`${before}\n  "items": [\n`, ...items.flatMap((item, i) => (i === 0 ? [item] : [",\n", item])), `\n  ]${after}`];
}

function itemOf(served: ServedResource, object: Readonly<ApiObject>): object {
  const shown = served.fromStorage(object);
  return builtIn(served) ? withoutType(shown) : shown;
}

const NEWLINE = Buffer.from("\n");

/** The items' own bytes. Upstream's typed lists leave apiVersion and kind out of the items; custom resources keep them, and their lists are written as maps, too. */
async function jsonList(served: ServedResource, entries: readonly Cached[], metadata: ListMeta, breathe: Breathe): Promise<readonly Piece[]> {
  const { kind } = served.row;
  const isTyped = builtIn(served);
  const [ofKind, ofVersion, ofMeta] = [`"kind":${JSON.stringify(served.row.listKind ?? `${kind}List`)},`, `"apiVersion":${JSON.stringify(served.apiVersion)},`, `"metadata":${JSON.stringify(listMeta(served, metadata))}`];
  const pieces: Piece[] = [isTyped ? `{${ofKind}${ofVersion}${ofMeta},"items":[` : `{${ofVersion}"items":[`];
  let before = "";
  for (const entry of entries) {
    if (!isTyped) pieces.push(before, jsonOf(served, entry));
    else if (isShownAsStored(served, entry)) pieces.push(`${before}{`, entry.itemJson());
    else pieces.push(before, jsonText(withoutType(served.fromStorage(entry.object))));
    before = ",";
    const turn = breathe(); // nobody may have asked for them lately: then they are written now
    if (turn) await turn;
  }
  pieces.push(isTyped ? "]}\n" : `],${ofKind}${ofMeta}}\n`);
  return pieces;
}

/** Upstream's lists of custom resources say of a continuation that there is none. */
function listMeta(served: ServedResource, metadata: ListMeta): ListMeta { return builtIn(served) ? metadata : keysInOrder({ continue: "", ...metadata }); }

/** Rows with the metadata of their objects, as kubectl asks for them, or with the objects, as it does to sort them. Throws 400. */
function* tablePieces({ served, entries, metadata }: ListAnswer, how: Presentation, output: Output): Pausing<readonly Piece[]> {
  const version = output.convert!.version as "v1" | "v1beta1", include = checkInclude(how.request.query.get("includeObject") ?? "");
  const { head, rows, none } = yield* tableRows(served, entries, { listMeta: metadata, nowMs: how.nowMs(), version, describe: how.describe });
  if (rows.length === 0) return [`${jsonText({ ...head, rows: none })}\n`];
  const isMetadata = include === "Metadata", end = isMetadata ? "}}" : "}";
  const object = Buffer.from(isMetadata ? `,"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/${version}","metadata":` : ',"object":');
  const between = Buffer.from(`${end},{"cells":`);
  const pieces: Piece[] = [`${jsonText(head).slice(0, -1)},"rows":[`];
  let start: Piece = '{"cells":';
  for (const { entry, before, age, after } of rows) {
    yield;
    pieces.push(start, before, age, after, object, isMetadata ? metadataJson(served, entry) : include === "Object" ? jsonOf(served, entry) : "null");
    start = between;
  }
  pieces.push(`${end}]}\n`);
  return pieces;
}

/** The protobuf message in the version that is served: the bytes that are kept, if it is stored in that version. */
function messageOf(served: ServedResource, entry: Cached): Uint8Array {
  const type = builtInFacts.typeOf(served.row)!;
  const shown = served.fromStorage(entry.object);
  return shown === entry.object ? entry.protobuf((object) => protobufCodec.encodeMessage(type, object)) : protobufCodec.encodeMessage(type, shown);
}

/** An object in the version that is served: the bytes that are kept, if it is stored in that version. */
function jsonOf(served: ServedResource, entry: Cached): Buffer {
  const shown = served.fromStorage(entry.object);
  return shown === entry.object ? entry.json() : Buffer.from(jsonText(shown));
}

function isShownAsStored(served: ServedResource, { object }: Cached): boolean { return served.fromStorage(object) === object; }

function builtIn({ row }: ServedResource): boolean {
  return builtInFacts.typeOf(row) !== undefined;
}

function withoutType({ apiVersion: _, kind: __, ...rest }: Readonly<ApiObject>): object {
  return rest;
}

function outputOf(request: ServerRequest, served: ServedResource | undefined, convertible?: Convertible): Output {
  const custom = served !== undefined && !builtIn(served);
  return negotiateOutput({
    accept: request.header("accept"),
    userAgent: request.header("user-agent"),
    pretty: request.query.get("pretty") ?? undefined,
    cbor: request.cbor,
    custom,
    ...(convertible && { convertible }),
  });
}

function whole(status: number, output: Output, value: object): Encoded {
  return { status, contentType: output.contentType, body: [encodeValue(value, output)] };
}

function encodeValue(value: object, { encoding, pretty }: Output): Uint8Array {
  if (encoding === "yaml") return Buffer.from(encodeYaml(value));
  if (encoding === "protobuf") return protobufCodec.encode(value as { apiVersion: string; kind: string });
  if (encoding === "cbor") return cborCodec.encode(value);
  return encodeJson(value, { pretty });
}

function tableOf(kind: GroupKind, objects: readonly Readonly<ApiObject>[], listMeta: ListMeta | undefined, how: Presentation, output: Output, served?: ServedResource, printer = served?.custom?.printer): object {
  return renderTable({
    kind,
    printer,
    objects,
    listMeta,
    nowMs: how.nowMs(),
    includeObject: how.request.query.get("includeObject") ?? "",
    version: output.convert!.version as "v1" | "v1beta1",
    describe: how.describe,
    ...(served && { present: (object) => served.fromStorage(object) }),
  });
}

function isChange(item: WatchItem | BookmarkItem | ErrorItem): item is WatchItem { return item.type !== "BOOKMARK" && item.type !== "ERROR"; }

type WatchBatch = readonly (WatchItem | BookmarkItem | ErrorItem)[];

/** Events one after another: bytes that other watchers are sent too, or pieces for this one. */
export type EventBatch = Uint8Array | readonly Piece[];

export interface WatchEncoder {
  readonly contentType: string;
  /** Of one watcher, in order: its first Table has columns. */
  encode(batch: WatchBatch): EventBatch;
}

/** A bookmark is an object of its kind that has nothing but metadata: what each must have, it has, too. Of a custom resource its fields stand in the order of their names. */
function withRequired(bookmark: ApiObject): ApiObject {
  const type = builtInFacts.typeOf(gvkOf(bookmark));
  if (type) return canonicalOwn(type, bookmark);
  const { apiVersion, kind, metadata: { annotations, resourceVersion } } = bookmark;
  return { apiVersion, kind, metadata: { ...(annotations && { annotations }), resourceVersion } } as ApiObject;
}

/** What each event of a watch is sent as. Throws 406, and 400 for a Table of what there is not. */
export function watchEncoder(answer: WatchAnswer, how: Presentation): WatchEncoder {
  const { served, eventSized } = answer;
  const custom = !builtIn(served);
  const output = negotiateStream({ accept: how.request.header("accept"), cbor: how.request.cbor, custom });
  const isTable = output.convert?.kind === "Table";
  if (isTable) checkInclude(how.request.query.get("includeObject") ?? "");
  let headersSent = false;

  function frame(type: WatchEventType, object: object): readonly Piece[] {
    if (output.encoding === "protobuf") return protobufWatchPieces(type, [protobufCodec.encode(object as { apiVersion: string; kind: string })]);
    if (output.encoding === "cbor") return [cborCodec.encodeEvent(type, object)];
    return jsonWatchPieces(type, Buffer.from(jsonText(object)));
  }

  /** One event, from the object's own bytes where they are at hand. */
  function piecesOf({ type, entry }: WatchItem): readonly Piece[] {
    if (output.encoding === "cbor") return frame(type, output.convert && !isTable ? partialMetadata(served.custom ? served.fromStorage(entry.object) : entry.object, output.convert.version) : shown(entry.object));
    if (output.convert && !isTable && output.encoding !== "yaml") return metadataEvent(type, { served, entry }, output.encoding, output.convert.version);
    if (output.convert || !isShownAsStored(served, entry)) return frame(type, shown(entry.object));
    if (output.encoding === "protobuf") return protobufWatchPieces(type, envelopePieces(gvkOf(entry.object), messageOf(served, entry)));
    return jsonWatchPieces(type, entry.json());
  }

  function eventOf(item: WatchItem): Uint8Array { return assemble(piecesOf(item)); }

  /** Tables tell the time, and their first event has columns: they are each watcher's own. In CBOR the order of fields is, too. */
  const isShared = !isTable && output.encoding !== "cbor";
  const encoding = `${output.contentType} ${served.apiVersion} ${output.convert ? `${output.convert.kind}.${output.convert.version}` : ""}`;

  function shown(object: Readonly<ApiObject>): object {
    return isTable ? tableOfOne(served.custom ? served.fromStorage(object) : object, how.request.query.get("includeObject") ?? "", (stored) => served.fromStorage(stored)) : served.fromStorage(object);
  }

  function tableOfOne(object: Readonly<ApiObject>, includeObject: string, present: (object: Readonly<ApiObject>) => unknown): Table {
    const table = renderTable({
      kind: served.row, printer: served.custom?.printer, objects: [object], listMeta: { resourceVersion: object.metadata.resourceVersion }, nowMs: how.nowMs(), noHeaders: headersSent,
      includeObject, version: output.convert!.version as "v1" | "v1beta1", describe: how.describe, present,
    });
    headersSent = true;
    return table;
  }

  function encode(batch: WatchBatch): EventBatch {
    if (how.events && isShared && batch.length <= SHARED_ITEMS_MAX && batch.every(isChange)) return how.events.of(encoding, batch, eventOf, eventSized);
    return batch.flatMap((item) => {
      const pieces = piecesOfAny(item);
      eventSized?.(lengthOf(pieces));
      return pieces;
    });
  }

  function piecesOfAny(item: WatchBatch[number]): readonly Piece[] {
    if (item.type === "ERROR") return frame("ERROR", statusOf(item.error));
    if (item.type !== "BOOKMARK") return piecesOf(item);
    const object = bookmarkObject(served.apiVersion, served.row.kind, item.resourceVersion, item.initialEventsEnd);
    return frame("BOOKMARK", isTable ? bookmarkTable(object, item.initialEventsEnd ?? false) : output.convert ? partialMetadata(object, output.convert.version) : withRequired(object));
  }

  /** A row of an object in which there is nothing; who asks for none is given it all the same where it ends what there was at the beginning. */
  function bookmarkTable(object: ApiObject, endsInitial: boolean): object {
    const include = how.request.query.get("includeObject") ?? "";
    const { rows, ...table } = tableOfOne({ ...object, metadata: { ...object.metadata, name: "" } }, endsInitial && include === "None" ? "Metadata" : include, () => object);
    const row = rows![0]!;
    return { ...table, rows: [row.object !== null && include !== "Object" ? { ...row, object: partialMetadata(object, output.convert!.version) } : row] };
  }

  return { contentType: output.contentType, encode };
}
