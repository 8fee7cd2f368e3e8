import { expect, test, vi } from "vitest";
import { HostPorts } from "./host-ports.ts";

test.each<[wanted: string, used: string, conflicts: boolean]>([
  ["0.0.0.0/TCP/80", "0.0.0.0/TCP/80", true], ["10.0.0.1/TCP/80", "0.0.0.0/TCP/80", true], ["0.0.0.0/TCP/80", "10.0.0.1/TCP/80", true], ["10.0.0.1/TCP/80", "10.0.0.1/TCP/80", true],
  ["10.0.0.1/TCP/80", "10.0.0.2/TCP/80", false], ["0.0.0.0/TCP/80", "0.0.0.0/UDP/80", false], ["0.0.0.0/TCP/80", "0.0.0.0/TCP/8", false], ["fd00::1/TCP/80", "fd00::1/TCP/80", true],
])("%s wanted where %s is taken: %s", (wanted, used, conflicts) => expect(new HostPorts([wanted]).conflictWith([used])).toBe(conflicts));

test.each([["of different numbers", (address: string, i: number) => `${address}/TCP/${i}`], ["of one number on different addresses", (address: string, i: number) => `${address}.${i >> 8}.${i & 255}/TCP/80`]])("thousands of ports %s are looked at once each", (_, port) => {
  const ports = (address: string): string[] => Array.from({ length: 3000 }, (__, i) => port(address, i));
  const [wanted, used] = [ports("10.1"), ports("10.2")];
  const looks = vi.spyOn(String.prototype, "indexOf"), splits = vi.spyOn(String.prototype, "split");
  try {
    expect(new HostPorts(wanted).conflictWith(used)).toBe(false);
    expect(looks.mock.calls.length + splits.mock.calls.length).toBeLessThan(3000 * 4);
  } finally {
    looks.mockRestore();
    splits.mockRestore();
  }
});
