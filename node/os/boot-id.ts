/** Of which life of the machine's processes and mounts a note is. */
import { readFileSync } from "node:fs";
import { fileTextSync } from "../../core/lifecycle/file-text.ts";

/** Written when the disk of the data directory was unplugged: what ran from it has ended then, too (installers/linux/uninstall.sh). */
const LOST_DISK = "/run/coracle/lost-disk";

/** Changes at every boot, and when all that ran here has ended without one: then only notes on the disk tell of it. */
export function bootId(lostDisk = LOST_DISK): string {
  const lost = fileTextSync(lostDisk)?.trim() ?? "";
  return [readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim(), ...(lost === "" ? [] : [lost])].join(" ");
}
