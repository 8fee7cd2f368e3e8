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

const VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5;

/** A gRPC frame with the packet in it. */
export function encodePacket(packet: Exclude<Packet, { type: "unknown" }>): Buffer {
  if (packet.type === "DATA") return encodeData(packet);
  const [number, field] = KINDS[packet.type];
  const message = encodeMessage(packet);
  const content = [...(number === 0 ? [] : [1 << 3, ...varint(number)]), ...varint((field << 3) | BYTES), ...varint(message.length), ...message];
  const frame = Buffer.allocUnsafe(GRPC_PREFIX_BYTES + content.length);
  writeGrpcPrefix(frame, content.length);
  frame.set(content, GRPC_PREFIX_BYTES);
  return frame;
}

function encodeMessage(packet: Exclude<Packet, { type: "unknown" | "DATA" }>): readonly number[] {
  switch (packet.type) {
    case "DIAL_REQ": return [...text(1, packet.protocol), ...text(2, packet.address), ...int(3, packet.random)];
    case "DIAL_RSP": return [...text(1, packet.error), ...int(2, packet.connectId), ...int(3, packet.random)];
    case "DIAL_CLS": return int(1, packet.random);
    case "CLOSE_REQ": return int(1, packet.connectId);
    case "CLOSE_RSP": return [...text(1, packet.error), ...int(2, packet.connectId)];
    case "DRAIN": return [];
    case "FLOW": return [...int(1, packet.connectId), ...int(2, packet.credit), ...int(3, packet.end ? 1 : 0)];
  }
}

/** The one there are many of: one buffer, the data copied once. */
function encodeData({ connectId, error, data }: Extract<Packet, { type: "DATA" }>): Buffer {
  const [number, field] = KINDS.DATA;
  const fields = [...int(1, connectId), ...text(2, error), ...(data.length === 0 ? [] : [(3 << 3) | BYTES, ...varint(data.length)])];
  const head = [1 << 3, number, (field << 3) | BYTES, ...varint(fields.length + data.length), ...fields];
  const frame = Buffer.allocUnsafe(GRPC_PREFIX_BYTES + head.length + data.length);
  writeGrpcPrefix(frame, head.length + data.length);
  frame.set(head, GRPC_PREFIX_BYTES);
  frame.set(data, GRPC_PREFIX_BYTES + head.length);
  return frame;
}

function text(field: number, value: string): number[] {
  if (value === "") return [];
  const bytes = Buffer.from(value);
  return [(field << 3) | BYTES, ...varint(bytes.length), ...bytes];
}

function int(field: number, value: number | bigint): number[] { return Number(value) === 0 ? [] : [field << 3, ...varint(value)]; }

function varint(value: number | bigint): number[] {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  for (; rest > 0x7fn; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
  bytes.push(Number(rest));
  return bytes;
}

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
  let at = 0;

  function readVarint(): number | bigint {
    let value = 0;
    for (let shift = 0; shift < 49; shift += 7) { // as a number while it is one
      const byte = bytes[at++];
      if (byte === undefined) throw new PacketError("a packet ends in the middle of a number");
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
    let wide = BigInt(value);
    for (let shift = 49n; shift < 70n; shift += 7n) {
      const byte = bytes[at++];
      if (byte === undefined) throw new PacketError("a packet ends in the middle of a number");
      wide |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return BigInt.asIntN(64, wide);
    }
    throw new PacketError("a number of more than 64 bits");
  }

  function readBytes(length: number): Buffer {
    const end = at + length;
    if (end > bytes.length) throw new PacketError("a packet ends in the middle of a field");
    const found = bytes.subarray(at, end);
    at = end;
    return found;
  }

  while (at < bytes.length) {
    const tag = Number(readVarint());
    const field = Math.floor(tag / 8);
    switch (tag % 8) {
      case VARINT: fields.set(field, readVarint()); break;
      case BYTES: fields.set(field, readBytes(Number(readVarint()))); break;
      case FIXED64: readBytes(8); break;
      case FIXED32: readBytes(4); break;
      default: throw new PacketError(`a field of wire type ${tag % 8}`);
    }
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
