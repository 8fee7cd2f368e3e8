/**
 * A LUN as a device of this machine, and taken away again:
 *
 *   attached    logged in at every portal, unless another LUN of the target has been before; a disk by way of each; several of them are a device of multipath's
 *   detached    multipath's map flushed, the disks removed: sessions are others' to end
 *
 * Source: kubernetes v1.36 pkg/volume/iscsi
 */
import type { Clock } from "../../../../core/lifecycle/clock.ts";
import type { Log } from "../../../../core/observe/log.ts";
import type { Exec } from "../../../os/exec.ts";
import type { IscsiDisk, IscsiTarget } from "./iscsi-disk.ts";
import type { IscsiSessions } from "./iscsi-sessions.ts";
import type { Iscsiadm } from "./iscsiadm.ts";

export interface IscsiDevices {
  /** The device, /dev/sdb or /dev/dm-0. */
  attach(disk: IscsiDisk, signal: AbortSignal): Promise<string>;
  /** Whether a device is the LUN: names are given to others after a restart of the machine. */
  isOf(device: string, target: Pick<IscsiTarget, "iqn" | "lun">): Promise<boolean>;
  /** What stays in spite of this goes with the session. */
  detach(target: IscsiTarget, signal: AbortSignal): Promise<void>;
}

interface Deps {
  readonly admin: Iscsiadm;
  readonly sessions: IscsiSessions;
  readonly exec: Exec;
  readonly clock: Clock;
  readonly log: Log;
}

/** Portals are tried so often: until all have answered, until there are two, until there is one. */
const TRIES = { all: 2, several: 5 };
const PATHS_MIN = 2;
const DISK_MS_MAX = 30_000;
const MULTIPATH_MS_MAX = 10_000;
const LOOK_MS = 200;

export function iscsiDevices({ admin, sessions, exec, clock, log }: Deps): IscsiDevices {
  async function attach(disk: IscsiDisk, signal: AbortSignal): Promise<string> {
    await admin.prepare(disk, signal);
    const disks = new Map<string, string>(); // by portal
    let problem: Error | undefined;
    for (let tries = 1; disks.size < disk.portals.length; tries++) {
      for (const portal of disk.portals.filter((one) => !disks.has(one))) {
        try {
          disks.set(portal, await reach(disk, portal, signal));
        } catch (error) {
          signal.throwIfAborted();
          problem = error as Error;
        }
      }
      if (disks.size === 0) {
        await admin.discard(disk, signal);
        throw new Error(`failed to get any path for iscsi disk, last err seen:\n${problem?.message}`, { cause: problem });
      }
      if (tries >= (disks.size >= PATHS_MIN ? TRIES.all : TRIES.several)) break;
    }
    const waitMs = disk.portals.length > 1 ? MULTIPATH_MS_MAX : 0; // with one portal there is one only where multipath takes everything
    const multipath = await until(waitMs, () => multipathOf([...disks.values()]), signal);
    return `/dev/${multipath ?? [...disks.values()][0]}`;
  }

  /** The disk that the LUN is by way of one portal. */
  async function reach(disk: IscsiDisk, portal: string, signal: AbortSignal): Promise<string> {
    const { iqn, lun } = disk;
    if (!(await sessions.hosts(iqn)).has(portal)) await admin.logIn(disk, portal, signal);
    const host = (await sessions.hosts(iqn)).get(portal);
    if (host === undefined) throw new Error(`Could not get SCSI host number for portal ${portal} after logging in`);
    await sessions.scan(host, lun);
    const found = await until(DISK_MS_MAX, async () => (await sessions.disks(iqn, lun, host))[0], signal);
    if (found === undefined) throw new Error(`Timed out waiting for device at path ip-${portal}-iscsi-${iqn}-lun-${lun} after ${DISK_MS_MAX / 1000}s`);
    return found;
  }

  async function multipathOf(disks: readonly string[]): Promise<string | undefined> {
    for (const one of disks) {
      const name = await sessions.multipathOf(one);
      if (name !== undefined) return name;
    }
    return undefined;
  }

  async function until<T>(waitMs: number, look: () => Promise<T | undefined>, signal: AbortSignal): Promise<T | undefined> {
    for (const endMs = clock.uptimeMs() + waitMs; ; await clock.sleep(LOOK_MS, signal)) {
      const found = await look();
      signal.throwIfAborted();
      if (found !== undefined || clock.uptimeMs() >= endMs) return found;
    }
  }

  async function isOf(device: string, { iqn, lun }: Pick<IscsiTarget, "iqn" | "lun">): Promise<boolean> {
    const disks = await sessions.disks(iqn, lun);
    return [...disks, await multipathOf(disks)].some((name) => device === `/dev/${name}`);
  }

  async function detach({ iqn, lun }: IscsiTarget, signal: AbortSignal): Promise<void> {
    const disks = await sessions.disks(iqn, lun);
    for (const name of new Set((await Promise.all(disks.map(sessions.multipathOf))).filter((one) => one !== undefined))) {
      await exec("multipath", ["-f", `/dev/${name}`], { signal }).catch((error: unknown) => log.warn("map of multipath's not flushed", { device: name, error }));
    }
    for (const disk of disks) await sessions.remove(disk).catch((error: unknown) => log.warn("disk of an iSCSI volume not removed", { disk, error }));
  }

  return { attach, isOf, detach };
}
