import { mkdtempSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { exec, ExecError } from "./exec.ts";
import { mountDevice } from "./mount-device.ts";
import { type Mounts, systemMounts } from "./mount.ts";

const { signal } = new AbortController();
const limits = { timeoutMs: 60_000, signal };
let target = "";
beforeEach(() => { target = realpathSync(mkdtempSync(join(tmpdir(), "mount-device-"))); });
afterEach(() => { systemMounts().unmountAll(target); rmSync(target, { recursive: true }); });

const disk = { device: "/dev/null", fsType: "ext4", options: [] };

test.skipIf(process.getuid?.() !== 0).each(["proc", "sysfs", "tmpfs", "proc,tmpfs", "noext4", "auto", "-v", "fuseblk"])("a disk is not mounted as %j: proc would show a container how to become the host, and a helper does what it is told", async (fsType) => {
  const mounts = systemMounts();
  await expect(mountDevice({ mounts, exec }, { ...disk, target, fsType }, limits)).rejects.toThrow();
  expect(mounts.isMountPoint(target)).toBe(false);
});

test.skipIf(process.getuid?.() !== 0)("a disk is mounted by its own name, and what keeps it from that is told", async () => {
  symlinkSync("/dev/null", join(target, "link"));
  await expect(mountDevice({ mounts: systemMounts(), exec }, { ...disk, target, device: join(target, "link"), options: ["noatime", "ro"] }, limits))
    .rejects.toThrow(`mount failed: exit status 32\nMounting command: mount\nMounting arguments: -i -t ext4 -o noatime,ro -- /dev/null ${target}\nOutput: `);
});

test.skipIf(process.platform !== "linux")("where there is no such program the kernel is asked from here", async () => {
  const asked: unknown[] = [];
  const mounts = { mount: (of: unknown) => void asked.push(of) } as unknown as Mounts;
  const missing = async (): Promise<never> => { throw new ExecError("not-found", "mount: no such program"); };
  await mountDevice({ mounts, exec: missing }, { ...disk, target }, limits);
  expect(asked).toEqual([{ source: "/dev/null", target, fsType: "ext4", options: [], onDevice: true }]);
});
