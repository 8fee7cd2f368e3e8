/** An answer in the encoding the client asked for: JSON, YAML or protobuf; the objects themselves, Tables, or only their metadata. */
import type { Readable } from "node:stream";
import { encodeJson, jsonText } from "../api/codec/json.ts";
import { type Convertible, convertibleToMeta, ENCODINGS, ENCODINGS_CUSTOM, MEDIA_TYPES, negotiateOutput, negotiateStream, type Output } from "../api/codec/negotiate.ts";
import { protobufCodec } from "../api/codec/protobuf.ts";
import { renderTable } from "../api/codec/table/table.ts";
import { jsonWatchEvent, protobufWatchEvent, type WatchEventType } from "../api/codec/watch-frames.ts";
import { encodeYaml } from "../api/codec/yaml.ts";
import type { GroupKind } from "../api/meta/gvk.ts";
import type { ApiObject, ListMeta } from "../api/meta/object-meta.ts";
import { statusOf } from "../api/meta/status-error.ts";
import { builtInFacts } from "../api/schema/facts.ts";
import type { Cached } from "../registry/generic/cached.ts";
import type { ServedResource } from "../registry/registry.ts";
import type { ListAnswer, ObjectAnswer, WatchAnswer } from "./answer.ts";
import { bookmarkObject, listObject } from "./in-process.ts";
import type { ServerRequest } from "./request.ts";

export interface Encoded {
  readonly status: number;
  readonly contentType: string;
  /** Parts of the body, to be sent one after another. */
  readonly body: readonly Uint8Array[] | Readable;
}

export interface Presentation {
  readonly request: ServerRequest;
  readonly nowMs: number;
  /** The documentation of an API field, for the columns of Tables. */
  readonly describe: ((field: string) => string | undefined) | undefined;
}

/** Throws 406. */
export function encodeObject(answer: ObjectAnswer, how: Presentation): Encoded {
  const { status, object, stored } = answer;
  const output = outputFor(answer, how.request);
  if (output.convert && !isStatus(object)) {
    const shown = output.convert.kind === "Table"
      ? tableOf(answer.printedAs!, [stored && !stored.served.custom ? stored.entry.object : (object as Readonly<ApiObject>)], undefined, how, output, stored?.served, answer.printer)
      : metadataOnly(object as Readonly<ApiObject>, output);
    return whole(status, output, shown);
  }
  if (stored && output.encoding === "json" && !output.pretty && isShownAsStored(stored.served, stored.entry)) return { status, contentType: output.contentType, body: [stored.entry.json(), NEWLINE] };
  return whole(status, output, object as object);
}

/** What went wrong is told whatever the client asked for; so is a Status that is an answer. */
function outputFor({ status, object, stored, printedAs }: ObjectAnswer, request: ServerRequest): Output {
  if (!isStatus(object)) return outputOf(request, stored?.served, (target, encoding) => convertibleToMeta(target, encoding) && (target.kind !== "Table" || printedAs !== undefined));
  try {
    return outputOf(request, undefined, () => true);
  } catch (error) {
    if (status < 400) throw error;
    return { encoding: "json", pretty: false, convert: undefined, contentType: MEDIA_TYPES.json };
  }
}

function isStatus(object: ObjectAnswer["object"]): boolean {
  return object["kind" as never] === "Status" && object["apiVersion" as never] === "v1";
}

/** Throws 406. */
export function encodeList(answer: ListAnswer, how: Presentation): Encoded {
  const { served, entries, metadata } = answer;
  const output = outputOf(how.request, served);
  if (output.convert?.kind === "Table") return whole(200, output, tableOf(served.row, entries.map(({ object }) => (served.custom ? served.fromStorage(object) : object)), metadata, how, output, served));
  if (output.convert) {
    const items = entries.map(({ object }) => metadataOnly(served.custom ? served.fromStorage(object) : object, output));
    return whole(200, output, { kind: "PartialObjectMetadataList", apiVersion: `meta.k8s.io/${output.convert.version}`, metadata, items });
  }
  if (output.encoding === "json" && !output.pretty) return { status: 200, contentType: output.contentType, body: jsonList(served, entries, metadata) };
  if (output.encoding === "protobuf") {
    const type = builtInFacts.typeOf(served.row)!;
    const items = entries.map(({ object }) => protobufCodec.encodeMessage(type, served.fromStorage(object)));
    return { status: 200, contentType: output.contentType, body: [protobufCodec.encodeList({ apiVersion: served.apiVersion, kind: `${served.row.kind}List`, metadata }, items)] };
  }
  const list = listObject(answer);
  return whole(200, output, builtIn(served) ? { ...list, items: list.items.map(withoutType) } : list);
}

const NEWLINE = Buffer.from("\n");
const COMMA = Buffer.from(",");
const BRACE = Buffer.from("{");

/** The items' own bytes. Upstream's typed lists leave apiVersion and kind out of the items; custom resources keep them. */
function jsonList(served: ServedResource, entries: readonly Cached[], metadata: ListMeta): Uint8Array[] {
  const { kind } = served.row;
  const head = Buffer.from(`{"kind":${JSON.stringify(served.row.listKind ?? `${kind}List`)},"apiVersion":${JSON.stringify(served.apiVersion)},"metadata":${JSON.stringify(metadata)},"items":[`);
  const typeMeta = builtIn(served) ? Buffer.from(`{"kind":${JSON.stringify(kind)},"apiVersion":${JSON.stringify(served.apiVersion)},`) : undefined;
  const parts: Uint8Array[] = [head];
  for (const [i, entry] of entries.entries()) {
    if (i > 0) parts.push(COMMA);
    const bytes = jsonOf(served, entry);
    if (typeMeta && bytes.length > typeMeta.length && typeMeta.equals(bytes.subarray(0, typeMeta.length))) parts.push(BRACE, bytes.subarray(typeMeta.length));
    else parts.push(bytes);
  }
  parts.push(Buffer.from("]}\n"));
  return parts;
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
    encodings: custom ? ENCODINGS_CUSTOM : ENCODINGS,
    ...(convertible && { convertible }),
  });
}

function whole(status: number, output: Output, value: object): Encoded {
  return { status, contentType: output.contentType, body: [encodeValue(value, output)] };
}

function encodeValue(value: object, { encoding, pretty }: Output): Uint8Array {
  if (encoding === "yaml") return Buffer.from(encodeYaml(value));
  if (encoding === "protobuf") return protobufCodec.encode(value as { apiVersion: string; kind: string });
  return encodeJson(value, { pretty });
}

function tableOf(kind: GroupKind, objects: readonly Readonly<ApiObject>[], listMeta: ListMeta | undefined, how: Presentation, output: Output, served?: ServedResource, printer = served?.custom?.printer): object {
  return renderTable({
    kind,
    printer,
    objects,
    listMeta,
    nowMs: how.nowMs,
    includeObject: how.request.query.get("includeObject") ?? "",
    version: output.convert!.version as "v1" | "v1beta1",
    describe: how.describe,
    ...(served && { present: (object) => served.fromStorage(object) }),
  });
}

function metadataOnly({ metadata }: Readonly<ApiObject>, { convert }: Output): object {
  return { kind: "PartialObjectMetadata", apiVersion: `meta.k8s.io/${convert!.version}`, metadata };
}

/** What each event of a watch is sent as. Throws 406. */
export function watchEncoder(answer: WatchAnswer, how: Presentation): { readonly contentType: string; readonly batches: AsyncIterable<Uint8Array> } {
  const { served } = answer;
  const custom = !builtIn(served);
  const output = negotiateStream({ accept: how.request.header("accept"), encodings: custom ? ENCODINGS_CUSTOM : ENCODINGS });
  let headersSent = false;

  function frame(type: WatchEventType, object: object | undefined, entry?: Cached): Uint8Array {
    if (output.encoding === "protobuf") return protobufWatchEvent(type, protobufCodec.encode(object as { apiVersion: string; kind: string }));
    return jsonWatchEvent(type, entry ? entry.json() : encodeJson(object));
  }

  function shown(object: Readonly<ApiObject>): object {
    if (output.convert?.kind === "Table") {
      const table = renderTable({
        kind: served.row, printer: served.custom?.printer, objects: [served.custom ? served.fromStorage(object) : object], listMeta: { resourceVersion: object.metadata.resourceVersion }, nowMs: how.nowMs, noHeaders: headersSent,
        includeObject: how.request.query.get("includeObject") ?? "", version: output.convert.version as "v1" | "v1beta1", describe: how.describe,
        present: (stored) => served.fromStorage(stored),
      });
      headersSent = true;
      return table;
    }
    return output.convert ? metadataOnly(served.custom ? served.fromStorage(object) : object, output) : served.fromStorage(object);
  }

  async function* batches(): AsyncIterable<Uint8Array> {
    for await (const batch of answer.batches) {
      const frames = batch.map((item) => {
        if (item.type === "ERROR") return frame("ERROR", statusOf(item.error));
        if (item.type === "BOOKMARK") {
          const object = bookmarkObject(served.apiVersion, served.row.kind, item.resourceVersion, item.initialEventsEnd);
          return frame("BOOKMARK", output.convert?.kind === "Table" ? emptyTable(object) : output.convert ? metadataOnly(object, output) : object);
        }
        const asStored = !output.convert && output.encoding === "json" && isShownAsStored(served, item.entry);
        return asStored ? frame(item.type, undefined, item.entry) : frame(item.type, shown(item.entry.object));
      });
      yield Buffer.concat(frames);
    }
  }

  function emptyTable(object: ApiObject): object {
    return { kind: "Table", apiVersion: `meta.k8s.io/${output.convert!.version}`, metadata: { resourceVersion: object.metadata.resourceVersion }, columnDefinitions: null, rows: [{ cells: [], object: metadataOnly(object, output) }] };
  }

  return { contentType: output.contentType, batches: batches() };
}
