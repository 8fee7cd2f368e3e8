/** File systems as the kernel has them. */
import { readFileSync } from "node:fs";

/** Whether it is on no device, as proc and tmpfs are. */
export function needsNoDevice(fsType: string): boolean { return readFileSync("/proc/filesystems", "utf8").split("\n").includes(`nodev\t${fsType.split(".")[0]}`); }
