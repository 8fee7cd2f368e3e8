import { expect, test } from "vitest";
import { flowTable, readFlow } from "./flow-table.ts";
import { attribute, be16, joined, nested, u32, u8 } from "./netlink-message.ts";
import { NetlinkError, type NetlinkSocket } from "./netlink-socket.ts";

const tuple = (source: Uint8Array, destination: Uint8Array, port: number): Uint8Array => joined([
  nested(1, attribute(3, source), attribute(4, destination)), nested(2, attribute(1, u8(17)), attribute(2, be16(port)), attribute(3, be16(53))),
]);
const ip = (last: number): Uint8Array => Uint8Array.of(0xfd, ...new Array<number>(14).fill(0), last);
const ORIGINAL = tuple(ip(1), ip(2), 40_000);
const ID = Uint8Array.of(1, 2, 3, 4), ZONE = be16(7);
const TOLD = joined([Uint8Array.of(10, 0, 0, 0), nested(1, ORIGINAL), nested(2, joined([nested(1, attribute(3, ip(3)), attribute(4, ip(1))), nested(2, attribute(1, u8(17)), attribute(2, be16(5353)), attribute(3, be16(40_000)))])), attribute(12, ID), attribute(18, ZONE)]);
const ONLY_UDP = joined([nested(1, nested(2, attribute(1, u8(17)))), nested(25, attribute(1, u32(8)), attribute(2, u32(0)))]);
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
const socketOf = (calls: Partial<NetlinkSocket>): NetlinkSocket => ({ request() {}, batch() {}, get: () => [], dump: () => [], dumpInParts: () => [], close() {}, ...calls });

test("a flow is read, and deleted by its first direction, its zone and its id", () => {
  const requests: string[] = [];
  const table = flowTable(() => socketOf({ dumpInParts: (type, payload) => (requests.push(`${type.toString(16)} ${hex(payload)}`), [[TOLD]]), request: (type, flags, payload) => void requests.push(`${type.toString(16)} ${flags} ${hex(payload)}`) }));
  const flow = readFlow([...table.list(6)][0]![0]!, () => true)!;
  expect(flow).toMatchObject({ originalIp: ip(2), originalPort: 53, replyIp: ip(3), replyPort: 5353 });
  table.delete(flow);
  expect(requests).toEqual([`101 0a000000${hex(ONLY_UDP)}`, `102 5 0a000000${hex(nested(1, ORIGINAL))}${hex(attribute(18, ZONE))}${hex(attribute(12, ID))}`]);
  expect(readFlow(TOLD, (port) => port !== 53)).toBeUndefined();
});

test("a flow that is gone already is no failure; all else is", () => {
  const failing = (errno: number) => flowTable(() => socketOf({ request() { throw new NetlinkError("x", errno); } }));
  const flow = readFlow(TOLD, () => true)!;
  expect(() => failing(2).delete(flow)).not.toThrow();
  expect(() => failing(1).delete(flow)).toThrow(NetlinkError);
});

test("a list that nobody reads to its end is left with the socket that it comes over", () => {
  let opened = 0, closed = 0;
  const table = flowTable(() => (opened++, socketOf({ dumpInParts: () => [[TOLD], [TOLD]], close: () => void closed++ })));
  expect([...table.list(6)]).toHaveLength(2);
  expect([...table.list(6)]).toHaveLength(2);
  expect({ opened, closed }).toEqual({ opened: 1, closed: 0 });
  for (const _ of table.list(6)) break;
  expect([...table.list(6)]).toHaveLength(2);
  expect({ opened, closed }).toEqual({ opened: 2, closed: 1 });
});
