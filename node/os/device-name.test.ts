import { expect, test } from "vitest";
import { deviceName } from "./device-name.ts";

const LINKS: Readonly<Record<string, string>> = {
  "/mnt/local/fast/wwn-1": "/dev/sdb", "/dev/mapper/vg-data": "/dev/dm-0", "/dev/vg/data": "/dev/dm-0", "/mnt/gone": "/dev/dm-1", "/mnt/unlinked": "/dev/dm-2", "/dev/sdb": "/dev/sdb",
};
const MAPPED: Readonly<Record<string, string>> = { "dm-0": "vg-data", "dm-2": "nowhere" };

function found(table: Readonly<Record<string, string>>, key: string): string {
  if (table[key] === undefined) throw new Error("ENOENT");
  return table[key];
}
const names = { realpath: (path: string) => found(LINKS, path), mapped: (device: string) => found(MAPPED, device), exists: (path: string) => path in LINKS };

test.each([
  ["/mnt/local/fast/wwn-1", "/dev/sdb"],
  ["/dev/sdb", "/dev/sdb"],
  ["/dev/mapper/vg-data", "/dev/mapper/vg-data"],
  ["/dev/vg/data", "/dev/mapper/vg-data"],
  ["/mnt/gone", "/dev/dm-1"],
  ["/mnt/unlinked", "/dev/dm-2"],
  ["/dev/absent", "/dev/absent"],
])("%s is mounted as %s", (path, shown) => {
  expect(deviceName(path, names)).toBe(shown);
});

test("on this machine links are followed, and what is not there stays", () => {
  expect(deviceName("/proc/self/root/dev/null")).toBe("/dev/null");
  expect(deviceName("/dev/there/is/none")).toBe("/dev/there/is/none");
});
