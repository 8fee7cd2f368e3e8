/** What containerd must be told about this machine. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Mounts } from "../os/mount.ts";

const CAP_SYS_RESOURCE = 24; // include/uapi/linux/capability.h

export function canLowerOomScore(status = readFileSync("/proc/self/status", "utf8")): boolean {
  const effective = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? "0"}`);
  return ((effective >> BigInt(CAP_SYS_RESOURCE)) & 1n) === 1n;
}

/** Whether overlays can be mounted with their layers in `directory`: not on every file system, and not on every kernel. */
export function canOverlay(directory: string, mounts: Mounts): boolean {
  const trial = mkdtempSync(join(directory, "overlay-"));
  try {
    for (const name of ["lower", "upper", "work", "merged"]) mkdirSync(join(trial, name));
    const [lower, upper, work, merged] = ["lower", "upper", "work", "merged"].map((name) => join(trial, name));
    mounts.mount({ source: "overlay", target: merged!, fsType: "overlay", options: [`lowerdir=${lower}`, `upperdir=${upper}`, `workdir=${work}`] });
    mounts.unmount(merged!);
    return true;
  } catch {
    return false; // whatever the kernel's reason: containerd would fail with it too
  } finally {
    rmSync(trial, { recursive: true, force: true });
  }
}
