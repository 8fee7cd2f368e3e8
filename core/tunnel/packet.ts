/**
 * Konnectivity's packets, and their Protocol Buffers form.
 *
 *   DIAL_REQ → DIAL_RSP        the server asks the agent for a connection; `random` says which answer belongs to which question
 *   DIAL_CLS                   the server does not want it any more
 *   DATA                       both ways, under the connectID the agent gave in DIAL_RSP
 *   CLOSE_REQ → CLOSE_RSP      the server has closed; the agent answers when it has too, or says so unasked
 *   DRAIN                      the agent is about to leave: dial elsewhere if you can
 *   FLOW                       ours, used only where both ends have said they know it (headers.ts): more may be sent, or: no more will come
 *
 * Source: sigs.k8s.io/apiserver-network-proxy konnectivity-client/proto/client/client.proto
 */
import { GRPC_PREFIX_BYTES, writeGrpcPrefix } from "../net/grpc/frames.ts";
import { intField, textField } from "../protobuf/fields.ts";
import { BackwardWriter, LENGTH_DELIMITED, ProtobufError, VARINT, WireReader } from "../protobuf/wire.ts";

export type Packet =
  | { readonly type: "DIAL_REQ"; /** "tcp" */ readonly protocol: string; /** host:port */ readonly address: string; readonly random: bigint }
  | { readonly type: "DIAL_RSP"; /** "": it went well */ readonly error: string; readonly connectId: number; readonly random: bigint }
  | { readonly type: "DIAL_CLS"; readonly random: bigint }
  | { readonly type: "CLOSE_REQ"; readonly connectId: number }
  | { readonly type: "CLOSE_RSP"; readonly error: string; readonly connectId: number }
  | { readonly type: "DATA"; readonly connectId: number; readonly error: string; readonly data: Buffer }
  | { readonly type: "DRAIN" }
  | { readonly type: "FLOW"; readonly connectId: number; /** Further bytes that may be sent. */ readonly credit: number; /** No DATA follows. */ readonly end: boolean }
  /** Of a later version: to be ignored. */
  | { readonly type: "unknown"; readonly number: number };

/** Where a kind of packet says what it is (field 1 of Packet), and the field that holds its message. */
const KINDS = {
  DIAL_REQ: [0, 2], DIAL_RSP: [1, 3], CLOSE_REQ: [2, 5], CLOSE_RSP: [3, 6], DATA: [4, 4], DIAL_CLS: [5, 7], DRAIN: [6, 8],
  FLOW: [100, 100], // far from what upstream may add; its readers skip what they do not know
} as const;
type Kind = keyof typeof KINDS;

export class PacketError extends Error {
  override readonly name = "PacketError";
}

/** Of a packet without its data: most are far shorter. */
const HEAD_BYTES = 64;

/** A gRPC frame with the packet in it; data is copied once. */
export function encodePacket(packet: Exclude<Packet, { type: "unknown" }>): Buffer {
  const data = packet.type === "DATA" ? packet.data : EMPTY;
  const [number, field] = KINDS[packet.type];
  const writer = new BackwardWriter(HEAD_BYTES);
  writeFields(writer, packet);
  writer.varint(writer.length + data.length);
  writer.tag(field, LENGTH_DELIMITED);
  if (number !== 0) intField(writer, 1, number);
  const head = writer.finish();
  const frame = Buffer.allocUnsafe(GRPC_PREFIX_BYTES + head.length + data.length);
  writeGrpcPrefix(frame, head.length + data.length);
  frame.set(head, GRPC_PREFIX_BYTES);
  frame.set(data, GRPC_PREFIX_BYTES + head.length);
  return frame;
}

/** The last first, as the writer goes. Of data, which is at the end, the bytes themselves are left to the caller. */
function writeFields(writer: BackwardWriter, packet: Exclude<Packet, { type: "unknown" }>): void {
  switch (packet.type) {
    case "DIAL_REQ":
      int(writer, 3, packet.random);
      text(writer, 2, packet.address);
      return text(writer, 1, packet.protocol);
    case "DIAL_RSP":
      int(writer, 3, packet.random);
      int(writer, 2, packet.connectId);
      return text(writer, 1, packet.error);
    case "DIAL_CLS": return int(writer, 1, packet.random);
    case "CLOSE_REQ": return int(writer, 1, packet.connectId);
    case "CLOSE_RSP":
      int(writer, 2, packet.connectId);
      return text(writer, 1, packet.error);
    case "DATA":
      if (packet.data.length > 0) {
        writer.varint(packet.data.length);
        writer.tag(3, LENGTH_DELIMITED);
      }
      text(writer, 2, packet.error);
      return int(writer, 1, packet.connectId);
    case "DRAIN": return;
    case "FLOW":
      int(writer, 3, packet.end ? 1 : 0);
      int(writer, 2, packet.credit);
      return int(writer, 1, packet.connectId);
  }
}

function text(writer: BackwardWriter, field: number, value: string): void { if (value !== "") textField(writer, field, value); }

function int(writer: BackwardWriter, field: number, value: number | bigint): void { if (Number(value) !== 0) intField(writer, field, value); }

/** The packet in a gRPC message; `data` is a view of it. Throws PacketError. */
export function decodePacket(message: Buffer): Packet {
  const top = readFields(message);
  const number = numberOf(top.get(1));
  const kind = (Object.keys(KINDS) as Kind[]).find((name) => KINDS[name][0] === number);
  if (kind === undefined) return { type: "unknown", number };
  const body = bytesOf(top.get(KINDS[kind][1]));
  const fields = readFields(body);
  switch (kind) {
    case "DIAL_REQ": return { type: kind, protocol: textOf(fields.get(1)), address: textOf(fields.get(2)), random: bigintOf(fields.get(3)) };
    case "DIAL_RSP": return { type: kind, error: textOf(fields.get(1)), connectId: numberOf(fields.get(2)), random: bigintOf(fields.get(3)) };
    case "DIAL_CLS": return { type: kind, random: bigintOf(fields.get(1)) };
    case "CLOSE_REQ": return { type: kind, connectId: numberOf(fields.get(1)) };
    case "CLOSE_RSP": return { type: kind, error: textOf(fields.get(1)), connectId: numberOf(fields.get(2)) };
    case "DATA": return { type: kind, connectId: numberOf(fields.get(1)), error: textOf(fields.get(2)), data: bytesOf(fields.get(3)) };
    case "DRAIN": return { type: kind };
    case "FLOW": return { type: kind, connectId: numberOf(fields.get(1)), credit: numberOf(fields.get(2)), end: numberOf(fields.get(3)) !== 0 };
  }
}

type Value = number | bigint | Buffer;
const EMPTY = Buffer.alloc(0);

/** By number; of a field that comes twice, the last counts. */
function readFields(bytes: Buffer): Map<number, Value> {
  const fields = new Map<number, Value>();
  const reader = new WireReader(bytes);
  try {
    while (!reader.done) {
      const tag = reader.varint();
      const field = Math.floor(tag / 8), type = tag % 8;
      if (type === VARINT) fields.set(field, reader.int64());
      else if (type === LENGTH_DELIMITED) fields.set(field, reader.bytes());
      else reader.skip(type);
    }
  } catch (error) {
    if (!(error instanceof ProtobufError)) throw error;
    throw new PacketError(`a packet that cannot be read: ${error.message}`, { cause: error });
  }
  return fields;
}

function bytesOf(value: Value | undefined): Buffer {
  if (value === undefined) return EMPTY;
  if (!Buffer.isBuffer(value)) throw new PacketError("a number where bytes belong");
  return value;
}

function textOf(value: Value | undefined): string { return bytesOf(value).toString("utf8"); }

function bigintOf(value: Value | undefined): bigint {
  if (Buffer.isBuffer(value)) throw new PacketError("bytes where a number belongs");
  return BigInt(value ?? 0);
}

function numberOf(value: Value | undefined): number {
  const number = Number(bigintOf(value));
  if (!Number.isSafeInteger(number) || number < 0) throw new PacketError(`${number} is no number we can keep`);
  return number;
}
