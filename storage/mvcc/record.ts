/**
 * Records: what lies under one key of an engine, so that damage does not go unseen.
 *
 *   byte  0      format of the payload: 1 msgpackr (values.ts), 2 JSON text, 3 Meta
 *         1..4   CRC-32 of the engine key and of everything after this field
 *         5..12  revision (float64)
 *         13..   payload
 *
 * LevelDB checks its blocks only while compacting, and repairs by leaving out; hence a checksum of our own in every record, and in the meta
 * record the number of rows and a digest of them all. A row that is damaged, stale, lost or too many is then seen when the store opens.
 */
import { crc32 } from "node:zlib";
import type { Revision } from "../store.ts";

export const FORMAT_MSGPACK = 1;
export const FORMAT_JSON = 2;
const FORMAT_META = 3;

const HEADER_BYTES = 13;
const CRC_AT = 1;
const CRC_FROM = 5;
const REVISION_AT = 5;

export interface Payload {
  readonly format: number;
  readonly bytes: Uint8Array;
}

export interface StoredRecord extends Payload {
  readonly revision: Revision;
  readonly crc: number;
}

export function encodeRecord(engineKey: string, revision: Revision, payload: Payload): { readonly bytes: Uint8Array; readonly crc: number } {
  const bytes = new Uint8Array(HEADER_BYTES + payload.bytes.length);
  const view = new DataView(bytes.buffer);
  bytes[0] = payload.format;
  view.setFloat64(REVISION_AT, revision);
  bytes.set(payload.bytes, HEADER_BYTES);
  const crc = checksum(engineKey, bytes);
  view.setUint32(CRC_AT, crc);
  return { bytes, crc };
}

/** The record, or undefined if these are not the bytes that were written under this key. */
export function decodeRecord(engineKey: string, bytes: Uint8Array): StoredRecord | undefined {
  if (bytes.length < HEADER_BYTES) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const crc = view.getUint32(CRC_AT);
  if (crc !== checksum(engineKey, bytes)) return undefined;
  return { format: bytes[0]!, revision: view.getFloat64(REVISION_AT), bytes: bytes.subarray(HEADER_BYTES), crc };
}

function checksum(engineKey: string, bytes: Uint8Array): number {
  return crc32(bytes.subarray(CRC_FROM), crc32(engineKey + String.fromCharCode(bytes[0]!))); // formats are ASCII: the byte they are
}

/** What every durable batch writes beside its rows. */
export interface Meta {
  /** The newest revision of this batch and all before it. */
  readonly head: Revision;
  /** Revisions up to this one may have been handed out to writes that are not on disk: after a crash, go on behind it. */
  readonly reserved: Revision;
  /** Rows on disk. */
  readonly rows: number;
  /** The checksums of all rows on disk, combined by exclusive or. */
  readonly digest: number;
  /** Closed in order: `head` is exact and everything is on disk. */
  readonly clean: boolean;
}

/** Of the layout described in this file, keys.ts and values.ts. A store with a greater one was written by a newer program. */
export const LAYOUT = 1;

const META_BYTES = 26;

export function encodeMeta(meta: Meta): Payload {
  const bytes = new Uint8Array(META_BYTES);
  const view = new DataView(bytes.buffer);
  bytes[0] = LAYOUT;
  bytes[1] = meta.clean ? 1 : 0;
  view.setFloat64(2, meta.head);
  view.setFloat64(10, meta.reserved);
  view.setUint32(18, meta.rows);
  view.setUint32(22, meta.digest);
  return { format: FORMAT_META, bytes };
}

/** The layout comes first so that it can be read from any later one. */
export function decodeMeta(record: StoredRecord): { readonly layout: number; readonly meta: Meta } | undefined {
  const { bytes, format } = record;
  if (format !== FORMAT_META || bytes.length < META_BYTES) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return {
    layout: bytes[0]!,
    meta: { clean: bytes[1] === 1, head: view.getFloat64(2), reserved: view.getFloat64(10), rows: view.getUint32(18), digest: view.getUint32(22) },
  };
}
