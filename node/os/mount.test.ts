import { mkdtempSync, mkdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { mountOf, mountsUnder, parseMountinfo } from "./mount-table.ts";
import { systemMounts } from "./mount.ts";

test("mountinfo is read field by field, escapes undone", () => {
  const text = "36 35 98:0 /mnt1 /with\\040blank rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue\n37 36 0:40 / /with\\040blank/b ro - tmpfs t rw\n38 35 0:41 / /without rw - tmpfs t rw\n";
  const table = parseMountinfo(text);
  expect(table[0]).toEqual({
    target: "/with blank", options: ["rw", "noatime"], fsType: "ext3", source: "/dev/root", superOptions: ["rw", "errors=continue"],
  });
  expect(mountsUnder(table, "/with blank").map(({ target }) => target)).toEqual(["/with blank/b", "/with blank"]);
});

test("a path is on the mount that is nearest above it, the newest of several there", () => {
  const table = parseMountinfo(["/", "/data", "/data/a", "/data"].map((target, i) => `${i} 1 8:${i} / ${target} rw - ext4 /dev/sd${i} rw`).join("\n"));
  expect(["/data", "/data/a", "/data/a/b", "/data/ab", "/database"].map((path) => mountOf(table, path)?.source)).toEqual(["/dev/sd3", "/dev/sd2", "/dev/sd2", "/dev/sd3", "/dev/sd0"]);
});

test.skipIf(process.getuid?.() !== 0)("what is mounted shows, is read-only when asked, and is gone afterwards", () => {
  const mounts = systemMounts();
  const directory = realpathSync(mkdtempSync(join(tmpdir(), "mount-")));
  const [a, b] = [join(directory, "a"), join(directory, "b")];
  mkdirSync(a);
  mkdirSync(b);
  try {
    mounts.mount({ source: "tmpfs", target: a, fsType: "tmpfs", options: ["nosuid", "size=1m", "mode=0750"] });
    writeFileSync(join(a, "file"), "x");
    mounts.bind(a, b, { readOnly: true });
    expect(() => writeFileSync(join(b, "file"), "y")).toThrow("EROFS");
    expect(mounts.list().find(({ target }) => target === a)).toMatchObject({ fsType: "tmpfs", options: expect.arrayContaining(["nosuid"]) });
    const points = [a, b, directory, join(a, "file"), join(directory, "absent"), join(directory, "absent", "too"), "/", "/proc"];
    symlinkSync(a, join(directory, "link"));
    expect(points.map(mounts.isMountPoint)).toEqual([true, true, false, false, false, false, true, true]);
    expect([join(directory, "link"), join(directory, "link", "file")].map(mounts.isMountPoint)).toEqual([false, false]);
    expect(mounts.unmountAll(directory)).toEqual([b, a]);
    expect([mounts.isMountPoint(a), mounts.isMountPoint(b)]).toEqual([false, false]);
    expect(() => mounts.mount({ source: "x", target: join(directory, "absent"), fsType: "tmpfs" })).toThrow("ENOENT");
    mounts.unmount(a); // not mounted is fine
  } finally {
    mounts.unmountAll(directory);
    rmSync(directory, { recursive: true });
  }
});

test.skipIf(process.getuid?.() !== 0)("what is to be a disk's file system is not the kernel's: proc would show a container how to become the host", () => {
  const mounts = systemMounts();
  const target = realpathSync(mkdtempSync(join(tmpdir(), "mount-")));
  try {
    for (const fsType of ["proc", "sysfs", "tmpfs"]) expect(() => mounts.mount({ source: "/dev/null", target, fsType, onDevice: true })).toThrow(`mount ${fsType} /dev/null on ${target}: ENOTBLK`);
    expect(() => mounts.mount({ source: "/dev/null", target, fsType: "ext4", onDevice: true })).toThrow(`mount ext4 /dev/null on ${target}`);
    symlinkSync("/dev/null", `${target}/link`);
    expect(() => mounts.mount({ source: `${target}/link`, target, fsType: "ext4", onDevice: true }), "a device has its own name").toThrow(`mount ext4 /dev/null on ${target}`);
    expect(mounts.isMountPoint(target)).toBe(false);
  } finally {
    mounts.unmountAll(target);
    rmSync(target, { recursive: true });
  }
});
