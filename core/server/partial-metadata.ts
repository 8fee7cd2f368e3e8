/**
 * PartialObjectMetadata: for who looks after names, labels and owners of everything, as garbage collectors do. It is made of the objects' own bytes where those are at hand, and kept beside them.
 */
import { jsonText } from "../api/codec/json.ts";
import type { Piece } from "../api/codec/pieces.ts";
import { envelopePieces, firstField, protobufCodec } from "../api/codec/protobuf.ts";
import { jsonWatchPieces, protobufWatchPieces, type WatchEventType } from "../api/codec/watch-frames.ts";
import type { ApiObject } from "../api/meta/object-meta.ts";
import { isShownApart, metadataAlone } from "../api/schema/canonical-custom.ts";
import { builtInFacts } from "../api/schema/facts.ts";
import type { Pausing } from "../lifecycle/breather.ts";
import type { Cached } from "../registry/generic/cached.ts";
import type { ServedResource } from "../registry/registry.ts";
import type { ListAnswer } from "./answer.ts";

const KIND = "PartialObjectMetadata", GROUP = "meta.k8s.io";
const MESSAGE = builtInFacts.structNamed("io.k8s.apimachinery.pkg.apis.meta.v1.PartialObjectMetadata")!;

/** `version`: of meta.k8s.io, v1 or v1beta1. */
export function partialMetadata(object: Readonly<ApiObject>, version: string): object { return { kind: KIND, apiVersion: `${GROUP}/${version}`, metadata: metadataAlone(object) }; }

/** The metadata as it is served, from bytes that are kept, where the object is served as it is stored. */
export function metadataJson(served: ServedResource, entry: Cached): Piece {
  if (isShownApart(entry.object)) return jsonText(metadataAlone(entry.object));
  if (!served.custom) return entry.metadataJson(); // versions of built-in kinds share their metadata
  const shown = served.fromStorage(entry.object);
  return shown === entry.object ? entry.metadataJson(metadataAlone) : jsonText(metadataAlone(shown));
}

/** The message of PartialObjectMetadata, which says nothing of kind and version. */
function metadataMessage(served: ServedResource, entry: Cached): Uint8Array {
  if (isShownApart(entry.object)) return protobufCodec.encodeMessage(MESSAGE, { metadata: metadataAlone(entry.object) });
  if (!served.custom) return entry.metadataProtobuf((metadata, own) => (own ? firstField(own) : protobufCodec.encodeMessage(MESSAGE, { metadata })));
  const shown = served.fromStorage(entry.object);
  const encode = (): Uint8Array => protobufCodec.encodeMessage(MESSAGE, { metadata: metadataAlone(shown) });
  return shown === entry.object ? entry.metadataProtobuf(encode) : encode();
}

export function* metadataList({ served, entries, metadata }: ListAnswer, encoding: "json" | "protobuf", version: string): Pausing<readonly Piece[]> {
  const apiVersion = `${GROUP}/${version}`;
  if (encoding === "protobuf") {
    const messages: Uint8Array[] = [];
    for (const entry of entries) {
      yield;
      messages.push(metadataMessage(served, entry));
    }
    return protobufCodec.listPieces({ apiVersion, kind: `${KIND}List`, metadata }, messages);
  }
  const head = headOf(version);
  const between = Buffer.from(`},${head}`);
  const pieces: Piece[] = [`{"kind":"${KIND}List","apiVersion":"${apiVersion}","metadata":${JSON.stringify(metadata)},"items":`];
  for (const [i, entry] of entries.entries()) {
    yield;
    pieces.push(i === 0 ? `[${head}` : between, metadataJson(served, entry));
  }
  pieces.push(entries.length > 0 ? "}]}\n" : "null}\n"); // as Go writes a list that was never made
  return pieces;
}

/** One event of a watch. */
export function metadataEvent(type: WatchEventType, { served, entry }: { readonly served: ServedResource; readonly entry: Cached }, encoding: "json" | "protobuf", version: string): readonly Piece[] {
  if (encoding === "protobuf") return protobufWatchPieces(type, envelopePieces({ group: GROUP, version, kind: KIND }, metadataMessage(served, entry)));
  return jsonWatchPieces(type, headOf(version), metadataJson(served, entry), "}");
}

function headOf(version: string): string { return `{"kind":"${KIND}","apiVersion":"${GROUP}/${version}","metadata":`; }
