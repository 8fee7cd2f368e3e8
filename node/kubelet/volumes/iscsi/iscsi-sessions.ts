/**
 * The sessions this machine has with iSCSI targets, and the devices that have come of them: as the kernel tells it in /sys.
 *
 *   /sys/class/iscsi_host/host3/device/session1/iscsi_session/session1/targetname
 *                                              /connection1:0/iscsi_connection/connection1:0/{address,port,persistent_address,persistent_port}
 *                                              /target3:0:0/3:0:0:<lun>/block/sdb
 *
 * Source: kubernetes v1.36 pkg/volume/util/device_util_linux.go, pkg/volume/iscsi/iscsi_util.go
 */
import { existsSync } from "node:fs";
import { constants, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";

export interface IscsiSessions {
  /** The SCSI hosts of the target's sessions, by portal (host:port). */
  hosts(iqn: string): Promise<ReadonlyMap<string, number>>;
  /** Names of the disks a LUN has become (sdb), as soon as there are devices of them. One for each session; with `host` that session's alone. */
  disks(iqn: string, lun: number, host?: number): Promise<readonly string[]>;
  /** Has the kernel look for one LUN, and for no other that the target may show. */
  scan(host: number, lun: number): Promise<void>;
  /** Takes a disk away; one that is gone is fine. */
  remove(disk: string): Promise<void>;
  /** dm-0, which one of multipath's devices the disk is a path of. */
  multipathOf(disk: string): Promise<string | undefined>;
}

export function iscsiSessions({ sys = "/sys", dev = "/dev" } = {}): IscsiSessions {
  const hostClass = join(sys, "class/iscsi_host");

  /** Sessions that end meanwhile are left out. */
  async function sessionsOf(iqn: string): Promise<{ readonly host: number; readonly directory: string }[]> {
    const found: { host: number; directory: string }[] = [];
    for (const hostName of await names(hostClass, /^host\d+$/)) {
      for (const session of await names(join(hostClass, hostName, "device"), /^session/)) {
        const directory = join(hostClass, hostName, "device", session);
        if ((await text(join(directory, "iscsi_session", session, "targetname"))) === iqn) found.push({ host: Number(hostName.slice("host".length)), directory });
      }
    }
    return found;
  }

  return {
    async hosts(iqn) {
      const hosts = new Map<string, number>();
      for (const { host, directory } of await sessionsOf(iqn)) {
        for (const connection of await names(directory, /^connection/)) {
          const facts = join(directory, connection, "iscsi_connection", connection);
          for (const prefix of ["", "persistent_"]) {
            const [address, port] = await Promise.all([text(join(facts, `${prefix}address`)), text(join(facts, `${prefix}port`))]);
            if (address !== undefined && port !== undefined) hosts.set(`${address.includes(":") ? `[${address}]` : address}:${port}`, host);
          }
        }
      }
      return hosts;
    },

    async disks(iqn, lun, host) {
      const sessions = (await sessionsOf(iqn)).filter((one) => host === undefined || one.host === host);
      const found = await Promise.all(sessions.map((one) => names(join(one.directory, `target${one.host}:0:0`, `${one.host}:0:0:${lun}`, "block"), /./)));
      return found.flat().filter((name) => existsSync(join(dev, name)));
    },

    scan: (host, lun) => writeFile(join(sys, `class/scsi_host/host${host}/scan`), `0 0 ${lun}`),

    async remove(disk) {
      await writeFile(join(sys, "block", disk, "device/delete"), "1", { flag: constants.O_WRONLY }).catch(unlessGone);
    },

    async multipathOf(disk) {
      for (const name of await names(join(sys, "block"), /^dm-/)) if (await stat(join(sys, "block", name, "slaves", disk)).catch(unlessGone)) return name;
      return undefined;
    },
  };
}

async function names(directory: string, of: RegExp): Promise<string[]> {
  return ((await readdir(directory).catch(unlessGone)) ?? []).filter((name) => of.test(name)).toSorted();
}

async function text(path: string): Promise<string | undefined> {
  return (await readFile(path, "utf8").catch(unlessGone))?.trim();
}

/** The kernel takes away what ends, also while somebody has it open. */
function unlessGone(error: unknown): undefined {
  if (["ENOENT", "ENOTDIR", "ENODEV", "ENOTCONN"].includes((error as NodeJS.ErrnoException).code ?? "")) return undefined;
  throw error;
}
