/**
 * Watch events on the wire: JSON objects one after another, or protobuf messages each with its length in front (four bytes, big-endian).
 *
 * Both take the object already encoded, and say what goes around it: an event for a thousand watchers encodes its object once.
 */
import type { Piece } from "./pieces.ts";
import { LENGTH_DELIMITED, putVarint, varintBytes } from "../../protobuf/wire.ts";

export type WatchEventType = "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";

export const WATCH_LENGTH_BYTES = 4;
const TYPE_TAG = 1 * 8 + LENGTH_DELIMITED, OBJECT_TAG = 2 * 8 + LENGTH_DELIMITED;
const RAW_TAG = 1 * 8 + LENGTH_DELIMITED; // of RawExtension, which the object is in

/** `object` is JSON text in UTF-8, without a final newline. */
export function jsonWatchPieces(type: WatchEventType, ...object: readonly Piece[]): readonly Piece[] { return [`{"type":"${type}","object":`, ...object, "}\n"]; }

/** `object` is a complete protobuf body, envelope included, in parts. */
export function protobufWatchPieces(type: WatchEventType, object: readonly Uint8Array[]): readonly Piece[] {
  let raw = 0;
  for (const { length } of object) raw += length;
  const extension = 1 + varintBytes(raw) + raw;
  const before = 2 + type.length + 1 + varintBytes(extension) + 1 + varintBytes(raw);
  const head = Buffer.allocUnsafeSlow(WATCH_LENGTH_BYTES + before);
  let at = head.writeUInt32BE(before + raw);
  head[at++] = TYPE_TAG;
  head[at++] = type.length;
  at += head.write(type, at, "latin1");
  head[at++] = OBJECT_TAG;
  at = putVarint(head, extension, at);
  head[at++] = RAW_TAG;
  putVarint(head, raw, at);
  return [head, ...object];
}
