import { expect, test } from "vitest";
import { netlinkOver } from "./netlink.ts";
import { attribute, nested, readAttributes, readMessages, readText, readU32, text, u32, writeMessage } from "./netlink-message.ts";
import { NetlinkError } from "./netlink-socket.ts";
import { writeBatch } from "./nft-batch.ts";

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");

test("messages and attributes are padded, nested and read back", () => {
  const payload = Buffer.concat([attribute(3, text("cni0")), nested(18, attribute(1, text("bridge")), attribute(2, u32(7)))]);
  const message = writeMessage({ type: 16, flags: 5, sequence: 9, payload: Uint8Array.from(payload) });
  const [read] = readMessages(Uint8Array.from([...message, ...message.slice(0, 10)])); // the second is cut off
  expect(read).toMatchObject({ type: 16, flags: 5, sequence: 9 });
  const attributes = readAttributes(read!.payload);
  expect(readText(attributes.get(3))).toBe("cni0");
  expect(readU32(readAttributes(attributes.get(18)!).get(2))).toBe(7);
});

test("a route, a neighbour, a forwarding entry and a rule as the kernel wants them", () => {
  const requests: string[] = [];
  const net = netlinkOver({ request: (type, flags, payload) => void requests.push(`${type} ${flags.toString(16)} ${hex(payload)}`), batch() {}, get: () => [], dump: () => [], dumpInParts: () => [], close() {} });
  net.replaceRoute({ to: "10.42.1.0/24", via: "10.42.1.0", device: 4, onlink: true, protocol: 171 });
  net.replaceNeighbour({ device: 4, ip: "fd42::1", mac: "0a:58:0a:2a:01:00" });
  net.replaceForwarding({ device: 4, ip: "172.30.0.2", mac: "0a:58:0a:2a:01:00" });
  net.addRule({ family: 4, table: 171, priority: 40_171 });
  net.replaceRoute({ to: "fd43::/112", device: 4, protocol: 171, table: 171 });
  expect(requests).toEqual([
    "24 505 02180000feab000104000000" + "080001000a2a0100" + "0800040004000000" + "080005000a2a0100",
    "28 505 0a000000" + "04000000" + "80000000" + "14000100fd420000000000000000000000000001" + "0a0002000a580a2a01000000",
    "28 505 07000000" + "04000000" + "80000200" + "08000100ac1e0002" + "0a0002000a580a2a01000000",
    "32 605 020000" + "00ab000001" + "00000000" + "08000600eb9c0000",
    "24 505 0a700000ababfd0100000000" + "14000100fd430000000000000000000000000000" + "0800040004000000",
  ]);
});

test("what is there already, and what is gone, are no errors; all else is", () => {
  const failing = (errno: number) => netlinkOver({ request() { throw new NetlinkError("x", errno); }, batch() {}, get: () => [], dump: () => [], dumpInParts: () => [], close() {} });
  expect(() => failing(17).addAddress(1, "10.0.0.1/24")).not.toThrow();
  expect(() => failing(3).removeRoute({ to: "10.0.0.0/8", device: 1, protocol: 171 })).not.toThrow();
  expect(() => failing(1).addAddress(1, "10.0.0.1/24")).toThrow(NetlinkError);
});

test("elements of the packet filter's sets: one batch, of which the last change is acknowledged", () => {
  const messages = readMessages(writeBatch({ family: "ip", table: "t", remove: [{ set: "s", key: Uint8Array.of(10, 0, 0, 1) }], add: [{ set: "m", key: Uint8Array.of(10, 0, 0, 2), value: { verdict: "goto", chain: "c" }, comment: "x" }, { set: "d", key: u32(1), value: u32(2) }] }, 7));
  expect(messages.map(({ type, flags, sequence }) => `${type.toString(16)} ${flags.toString(16)} ${sequence}`)).toEqual(["10 1 7", "a0e 1 7", "a0c 401 7", "a0c 405 7", "11 1 7"]);
  expect(messages.map(({ payload }) => hex(payload))).toEqual([
    "0000000a",
    "02000000" + "0600010074000000" + "0600020073000000" + "14000380" + "10000180" + "0c000180" + "08000100" + "0a000001",
    "02000000" + "0600010074000000" + "060002006d000000" + "34000380" + "30000180" + "0c000180" + "08000100" + "0a000002" + "18000280" + "14000280" + "08000100fffffffc" + "0600020063000000" + "08000600" + "00027800",
    "02000000" + "0600010074000000" + "0600020064000000" + "20000380" + "1c000180" + "0c000180" + "08000100" + "01000000" + "0c000280" + "08000100" + "02000000",
    "0000000a",
  ]);
});
