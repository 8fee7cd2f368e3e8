/**
 * Fields, each with its tag. As the writer goes, so must its callers: the last field of a message first, the last item of a list first.
 *
 *   nest(writer, 1, () => {              { 1: { 1: "a", 2: 7 } }
 *     intField(writer, 2, 7);
 *     textField(writer, 1, "a");
 *   });
 */
import { type BackwardWriter, FIXED64, LENGTH_DELIMITED, VARINT } from "./wire.ts";

/** A message within a message. */
export function nest(writer: BackwardWriter, field: number, write: () => void): void {
  const before = writer.length;
  write();
  writer.close(field, before);
}

export function textField(writer: BackwardWriter, field: number, value: string): void {
  writer.text(value);
  writer.tag(field, LENGTH_DELIMITED);
}

export function bytesField(writer: BackwardWriter, field: number, value: Uint8Array): void {
  writer.bytes(value);
  writer.tag(field, LENGTH_DELIMITED);
}

/** Of int32, int64, uint32, uint64 and enums alike: negative numbers take ten bytes. */
export function intField(writer: BackwardWriter, field: number, value: number | bigint): void {
  writer.int64(value);
  writer.tag(field, VARINT);
}

export function boolField(writer: BackwardWriter, field: number, value: boolean): void { intField(writer, field, value ? 1 : 0); }

export function doubleField(writer: BackwardWriter, field: number, value: number): void {
  writer.double(value);
  writer.tag(field, FIXED64);
}
