/**
 * Watch events on the wire: JSON objects one after another, or protobuf messages each with its length in front (four bytes, big-endian).
 *
 * Both take the object already encoded, so an event for a thousand watchers encodes its object once.
 */
import { BackwardWriter, LENGTH_DELIMITED } from "./protobuf-wire.ts";

export type WatchEventType = "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";

const UTF8 = new TextEncoder();
const NEWLINE = 10;
const LENGTH_BYTES = 4;

/** `object` is JSON text in UTF-8, with or without its final newline. */
export function jsonWatchEvent(type: WatchEventType, object: Uint8Array): Uint8Array {
  const head = UTF8.encode(`{"type":"${type}","object":`);
  const body = object.at(-1) === NEWLINE ? object.subarray(0, -1) : object;
  const event = new Uint8Array(head.length + body.length + 2);
  event.set(head);
  event.set(body, head.length);
  event.set([0x7d, NEWLINE], head.length + body.length);
  return event;
}

/** `object` is a complete protobuf body, envelope included. */
export function protobufWatchEvent(type: WatchEventType, object: Uint8Array): Uint8Array {
  const writer = new BackwardWriter();
  const start = writer.length;
  writer.bytes(object); writer.tag(1, LENGTH_DELIMITED);
  writer.close(2, start);
  writer.text(type); writer.tag(1, LENGTH_DELIMITED);
  const length = new Uint8Array(LENGTH_BYTES);
  new DataView(length.buffer).setUint32(0, writer.length);
  writer.raw(length);
  return writer.finish();
}
