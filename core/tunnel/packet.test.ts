import { describe, expect, test } from "vitest";
import { GRPC_PREFIX_BYTES, GrpcFrameError, GrpcFrameReader } from "../net/grpc/frames.ts";
import { GrpcError, grpcErrorOf, grpcTrailers } from "../net/grpc/status.ts";
import { decodePacket, encodePacket, type Packet, PacketError } from "./packet.ts";

function taken(reader: GrpcFrameReader, chunk: Buffer): Packet[] {
  const got: Packet[] = [];
  reader.add(chunk);
  for (let message: Buffer | undefined; (message = reader.next()); ) got.push(decodePacket(message));
  return got;
}

describe("on the wire", () => {
  test.each<[string, Packet]>([
    ["121f 0a03746370 120e31302e302e302e373a3130323530 18ffffffffffffffff7f", { type: "DIAL_REQ", protocol: "tcp", address: "10.0.0.7:10250", random: 2n ** 63n - 1n }],
    ["0801 1a04 1007 182a", { type: "DIAL_RSP", error: "", connectId: 7, random: 42n }],
    ["0801 1a05 0a01 78 182a", { type: "DIAL_RSP", error: "x", connectId: 0, random: 42n }],
    ["0805 3a02 082a", { type: "DIAL_CLS", random: 42n }],
    ["0802 2a03 08ac02", { type: "CLOSE_REQ", connectId: 300 }],
    ["0803 3205 0a01 78 1007", { type: "CLOSE_RSP", error: "x", connectId: 7 }],
    ["0804 2206 0807 1a02 6869", { type: "DATA", connectId: 7, error: "", data: Buffer.from("hi") }],
    ["0806 4200", { type: "DRAIN" }],
    ["0864 a20605 0807 108001", { type: "FLOW", connectId: 7, credit: 128, end: false }],
  ])("%s", (hex, packet) => {
    const bytes = Buffer.from(hex.replaceAll(" ", ""), "hex");
    expect(encodePacket(packet as Exclude<Packet, { type: "unknown" }>).subarray(5).toString("hex")).toBe(bytes.toString("hex"));
    expect(decodePacket(bytes)).toEqual(packet);
  });

  test("what we do not know is skipped, what makes no sense is refused", () => {
    expect(decodePacket(Buffer.from("0807", "hex"))).toEqual({ type: "unknown", number: 7 });
    expect(decodePacket(Buffer.from("0806 4200 4a0161 5001 5900000000000000006500000000".replaceAll(" ", ""), "hex"))).toEqual({ type: "DRAIN" });
    for (const hex of ["08", "0804 22ff01", "0804 2207 0807 1a05 6869", "0b", "0804 2001", "0802 2a0b 08ffffffffffffffffff01", "08ffffffffffffffffffff01"])
      expect(() => decodePacket(Buffer.from(hex.replaceAll(" ", ""), "hex")), hex).toThrow(PacketError);
  });
});

test("messages are found however the bytes were cut", () => {
  const packets = Array.from({ length: 40 }, (_, i): Packet & { type: "DATA" } => ({ type: "DATA", connectId: i + 1, error: "", data: Buffer.alloc(i * 37, i) }));
  const bytes = Buffer.concat(packets.map(encodePacket));
  for (const size of [1, 2, 3, 5, 64, 1000, bytes.length]) {
    const reader = new GrpcFrameReader({ bytesMax: 2_000 });
    const got: Packet[] = [];
    for (let at = 0; at < bytes.length; at += size) got.push(...taken(reader, bytes.subarray(at, at + size)));
    expect(got).toEqual(packets);
    expect(reader.heldBytes).toBe(0);
  }
  expect(() => taken(new GrpcFrameReader({ bytesMax: 10 }), Buffer.from("000000000b", "hex"))).toThrow(GrpcFrameError);
  expect(() => taken(new GrpcFrameReader({ bytesMax: 10 }), Buffer.from("0100000001", "hex"))).toThrow(GrpcFrameError);
});

test("a message that comes byte by byte keeps none of the pieces that it came in", () => {
  const bytes = encodePacket({ type: "DATA", connectId: 7, error: "", data: Buffer.from("as it was said") });
  const reader = new GrpcFrameReader({ bytesMax: 2_000 }), got: Packet[] = [];
  let piece = Buffer.alloc(1);
  for (const [at, byte] of bytes.entries()) {
    if (at <= GRPC_PREFIX_BYTES + 1) piece = Buffer.alloc(1); // the first of a stretch is kept as it is
    piece[0] = byte;
    got.push(...taken(reader, piece));
  }
  expect(got).toEqual([{ type: "DATA", connectId: 7, error: "", data: Buffer.from("as it was said") }]);
});

test("how a call ended", () => {
  expect(grpcErrorOf(grpcTrailers("ok"))).toBeUndefined();
  const refused = grpcErrorOf(grpcTrailers("permission-denied", "not «n-1»: 100 %\n"));
  expect(refused).toBeInstanceOf(GrpcError);
  expect([refused?.code, refused?.message]).toEqual(["permission-denied", "not «n-1»: 100 %\n"]);
  expect(grpcErrorOf({}, 403)?.code).toBe("permission-denied");
  expect(grpcErrorOf({}, 200)).toBeUndefined();
  expect(grpcErrorOf({ "grpc-status": "77" })?.code).toBe("unknown");
});
