/** What a machine has that can go wrong on its own: a disk, and a clock. */
import { existsSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Host } from "../cluster/host.ts";
import { run } from "../../installers/bundle/run.ts";

export interface DiskSize { readonly megabytes: number; readonly files: number }

/** ext4's way to lose all that is not on the disk yet: EXT4_IOC_SHUTDOWN with NOLOGFLUSH. */
const POWER_CUT = "import fcntl,os,struct,sys; fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587D, struct.pack('I', 2))";

/** A file with a file system in it. */
const disk = (host: Host): string => `${host.directory}/disk`;

/** Gives the host's data directory a disk of its own. */
export async function makeDisk(host: Host, { megabytes, files }: DiskSize): Promise<void> {
  await host.sh(`truncate -s ${megabytes}M ${disk(host)} && mkfs.ext4 -q -N ${files} -E lazy_itable_init=1 ${disk(host)}`);
  await mountDisk(host);
}

export async function mountDisk(host: Host): Promise<void> {
  await host.sh(`mkdir -p ${host.dataDir} && (fsck.ext4 -p ${disk(host)} >/dev/null || [ $? -le 1 ]) && mount -o loop,errors=remount-ro ${disk(host)} ${host.dataDir}`);
}

/** The machine is up again afterwards, its disk mounted; nothing of ours runs. */
export async function powerCut(host: Host): Promise<void> {
  await host.ok(["python3", "-c", POWER_CUT, host.dataDir]);
  await host.reboot();
  await mountDisk(host);
}

/** The disk finds an error in itself and can only be read from now on. */
export async function failDisk(host: Host): Promise<void> {
  await host.sh(`echo 1 > /sys/fs/ext4/$(basename $(findmnt -no SOURCE ${host.dataDir}))/trigger_fs_error`);
}

/** Gives Coracle, and no other program, a clock that `stepClock` moves (stepped-clock.c). */
export async function giveClock(host: Host): Promise<void> {
  await stepClock(host, 0);
  const library = join(host.directory, "stepped-clock.so"), program = join(host.directory, "coracle");
  run("cc", ["-shared", "-fPIC", "-O2", "-o", library, join(import.meta.dirname, "stepped-clock.c")]);
  renameSync(host.binary, program);
  writeFileSync(host.binary, `#!/bin/sh\nCLOCK_OFFSET=${join(host.directory, "clock")} LD_PRELOAD=${library} exec ${program} "$@"\n`, { mode: 0o755 });
}

/** Coracle's clock is so far from the machine's. */
export async function stepClock(host: Host, seconds: number): Promise<void> {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64LE(BigInt(seconds));
  const file = join(host.directory, "clock");
  writeFileSync(file, bytes, { flag: existsSync(file) ? "r+" : "w" }); // in place: it is mapped
}
