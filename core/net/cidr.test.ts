import { expect, test } from "vitest";
import { cidrContains, cidrsOverlap, formatCidr, formatIp, ipBytes, ipFromBytes, nthAddress, nthSubnet, outermost, parseCidr, parseIp, parseStoredCidr, parseStoredIp, subnetCount } from "./cidr.ts";

test.each([
  ["10.43.0.1", "10.43.0.1"], ["0.0.0.0", "0.0.0.0"], ["255.255.255.255", "255.255.255.255"], ["::", "::"], ["::1", "::1"],
  ["2001:DB8::0:1", "2001:db8::1"], ["2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"], ["2001:0:1:1:1:1:1:1", "2001:0:1:1:1:1:1:1"],
  ["fd00::", "fd00::"], ["1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"], ["::ffff:10.0.0.1", "10.0.0.1"], ["64:ff9b::192.0.2.1", "64:ff9b::c000:201"],
])("%s is written %s", (text, canonical) => {
  const ip = parseIp(text)!;
  expect(formatIp(ip)).toBe(canonical);
  expect(ipFromBytes(ipBytes(ip))).toEqual(ip);
});

test.each(["", "1.2.3", "1.2.3.4.5", "256.0.0.1", "01.2.3.4", "1.2.3.4 ", ":::", "1::2::3", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "g::", "12345::", "::1.2.3", "1:2:3:4:5:6:7::8:9", "fe80::1%eth0", ":1", "1:"])(
  "%j is no address", (text) => expect(parseIp(text)).toBeUndefined());

test("ranges", () => {
  const pods = parseCidr("10.42.0.0/16")!;
  expect(formatCidr(parseCidr("10.42.7.9/16")!)).toBe("10.42.0.0/16");
  expect(cidrContains(pods, parseIp("10.42.255.255")!)).toBe(true);
  expect(cidrContains(pods, parseIp("10.43.0.0")!)).toBe(false);
  expect(cidrContains(pods, parseIp("::ffff:10.42.0.9")!)).toBe(true);
  expect(formatCidr(nthSubnet(pods, 24, 255n))).toBe("10.42.255.0/24");
  expect(subnetCount(pods, 24)).toBe(256n);
  expect(() => nthSubnet(pods, 24, 256n)).toThrow("10.42.0.0/16 has no /24 number 256");
  expect(formatIp(nthAddress(parseCidr("fd00:43::/112")!, 10n))).toBe("fd00:43::a");
  expect(formatIp(nthAddress(pods, -1n))).toBe("10.42.255.255");
  expect(cidrsOverlap(pods, parseCidr("10.42.3.0/24")!)).toBe(true);
  expect(cidrsOverlap(pods, parseCidr("10.43.0.0/16")!)).toBe(false);
  for (const bad of ["10.0.0.0", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/08", "::/129", "x/8"]) expect(parseCidr(bad)).toBeUndefined();
});

test("what is stored with leading zeros is read without them, and only there", () => {
  const read = (text: string): string | undefined => { const ip = parseStoredIp(text); return ip && formatIp(ip); };
  expect(["010.000.00.07", "10.0.0.0", "::ffff:010.0.0.7", "fd00::0010", "256.0.0.1", "0010.1", ""].map(read)).toEqual(["10.0.0.7", "10.0.0.0", "10.0.0.7", "fd00::10", undefined, undefined, undefined]);
  expect(["010.1.0.0/16", "fd00::/64", "10.0.0.0"].map((text) => { const range = parseStoredCidr(text); return range && formatCidr(range); })).toEqual(["10.1.0.0/16", "fd00::/64", undefined]);
  expect(parseIp("010.0.0.7")).toBeUndefined();
});

test("of very many ranges those stay that no other one holds, in their order", () => {
  const ranges = (...texts: string[]) => texts.map((text) => parseCidr(text)!);
  expect(outermost(ranges("10.1.0.0/16", "fd00::/8", "10.0.0.0/8", "10.255.255.255/32", "11.0.0.0/8", "10.0.0.0/8", "fd00::1/128", "9.0.0.0/8")).map(formatCidr)).toEqual(["fd00::/8", "10.0.0.0/8", "11.0.0.0/8", "9.0.0.0/8"]);
  const compared = (count: number): number => {
    let looks = 0;
    outermost(Array.from({ length: count }, (_, i) => ({ family: 4 as const, prefix: 32, get base() { looks++; return BigInt((i * 7919) % count); } })));
    return looks;
  };
  expect(compared(4_000) / compared(2_000)).toBeLessThan(3);
});
