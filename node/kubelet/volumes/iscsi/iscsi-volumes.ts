/**
 * Volumes that are LUNs of iSCSI targets. A LUN comes to this machine once, however many pods use it, and goes with the last of them:
 *
 *   noted       plugins/kubernetes.io/iscsi/iface-<interface>/<portal>-<iqn>-lun-<lun>/iscsi.json, before anything else
 *   granted     the Node's status.volumesAttached names it: no other node writes to it. The controllers see to that
 *   logged in   at every portal, unless another LUN of the target has been before; the LUN becomes a disk, several of them a device of multipath's
 *   mounted     over its note; or, of mode Block (…/iscsi/volumeDevices/…), linked beside it by the uids of pods
 *
 * and back. A kubelet that was killed at any moment finds what there is by the notes, the mounts and the links.
 *
 * Source: kubernetes v1.36 pkg/volume/iscsi
 */
import { existsSync } from "node:fs";
import { mkdir, readdir, readlink, rm, rmdir, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { iscsiVolumeName } from "../../../../core/api/meta/iscsi-names.ts";
import type { Client } from "../../../../core/client/client.ts";
import { NODES } from "../../../../core/client/resources.ts";
import type { Clock } from "../../../../core/lifecycle/clock.ts";
import { backoffMs } from "../../../../core/lifecycle/backoff.ts";
import type { Log } from "../../../../core/observe/log.ts";
import type { Exec } from "../../../os/exec.ts";
import type { Mounts } from "../../../os/mount.ts";
import { readStateFile, writeStateFile } from "../../../os/state-file.ts";
import { keyedTurns } from "../../csi/keyed-turns.ts";
import { formatAndMount } from "../format-and-mount.ts";
import { MountFailure, VolumePending } from "../mount-failure.ts";
import { podDirectories, podDirectory } from "../pod-directories.ts";
import { type IscsiDisk, iscsiDirectory, type IscsiNote, iscsiRoot, type IscsiTarget, noteOf, targetOfDirectory, targetOfNote } from "./iscsi-disk.ts";
import { type IscsiSessions, iscsiSessions } from "./iscsi-sessions.ts";
import { iscsiadm } from "./iscsiadm.ts";

export interface IscsiVolumes {
  /** Makes the file system on the disk show at `directory`, in a pod's directory. Throws MountFailure, VolumePending. */
  show(disk: IscsiDisk, directory: string, signal: AbortSignal): Promise<void>;
  /** The disk's device, as long as the pod has a directory. Repeats nothing. Throws MountFailure, VolumePending. */
  map(disk: IscsiDisk, podUid: string, signal: AbortSignal): Promise<string>;
  /** Unmounts and logs out of what no pod uses any more: tried now, and again and again until it is done. */
  sweep(signal: AbortSignal): Promise<void>;
  /** For the node's status. */
  inUse(): Promise<readonly string[]>;
}

export interface IscsiDeps {
  readonly dataDir: string;
  readonly nodeName: string;
  readonly client: Client;
  readonly mounts: Mounts;
  readonly exec: Exec;
  readonly clock: Clock;
  readonly log: Log;
  /** Ends what goes on in the background. */
  readonly life: AbortSignal;
  /** status.volumesInUse changed. */
  readonly onInUse: () => void;
  /** Default: this machine's. */
  readonly sessions?: IscsiSessions | undefined;
}

/** Portals are tried so often: until all have answered, until there are two, until there is one. */
const TRIES = { all: 2, several: 5 };
const PATHS_MIN = 2;
const DISK_MS_MAX = 30_000;
const MULTIPATH_MS_MAX = 10_000;
const LOOK_MS = 200;
const RETRY = { minMs: 500, maxMs: 122_000 };
const NOTE = "iscsi.json";

/** A LUN that is here, or was to be. */
interface Here extends IscsiTarget { readonly directory: string; readonly block: boolean }

export function iscsiVolumes({ dataDir, nodeName, client, mounts, exec, clock, log, life, onInUse, sessions = iscsiSessions() }: IscsiDeps): IscsiVolumes {
  const admin = iscsiadm(exec);
  const inTurn = keyedTurns(); // by target: what one volume logs in to, another does not log out of
  let sweeping: Promise<void> | undefined;

  /** The device, /dev/sdb or /dev/dm-0. */
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

  async function attached(disk: IscsiDisk, directory: string, signal: AbortSignal): Promise<string> {
    if ((await mkdir(directory, { recursive: true, mode: 0o750 })) !== undefined) onInUse();
    writeStateFile(join(directory, NOTE), noteOf(disk));
    await granted(disk, signal);
    return await attach(disk, signal).catch((cause: Error) => { throw new MountFailure(disk.block ? "MapVolume.WaitForAttach" : "MountVolume.WaitForAttach", disk.name, cause); });
  }

  async function granted({ portals, iqn, lun }: IscsiDisk, signal: AbortSignal): Promise<void> {
    const name = iscsiVolumeName({ targetPortal: portals[0]!, iqn, lun });
    const { status } = await client.resource(NODES).get({ metadata: { name: nodeName } }, { signal });
    if (!status?.volumesAttached?.some((one) => one.name === name)) throw new VolumePending(`volume ${name} is not attached to node ${nodeName} yet`);
  }

  const show: IscsiVolumes["show"] = (disk, podDirectory, signal) => inTurn(disk.iqn, async () => {
    const directory = iscsiDirectory(dataDir, disk);
    if (!mounts.isMountPoint(directory)) {
      const device = await attached(disk, directory, signal);
      await formatAndMount({ mounts, exec }, { ...disk, device }, directory, signal).catch((cause: Error) => { throw new MountFailure("MountVolume.MountDevice", disk.name, cause); });
    }
    await mkdir(podDirectory, { recursive: true, mode: 0o750 });
    mounts.bind(directory, podDirectory, { readOnly: disk.readOnly });
  });

  async function map(disk: IscsiDisk, podUid: string, signal: AbortSignal): Promise<string> {
    const directory = iscsiDirectory(dataDir, disk);
    const link = join(directory, podUid);
    const before = await readlink(link).catch(() => undefined);
    const disks = before === undefined ? [] : await sessions.disks(disk.iqn, disk.lun);
    if (before !== undefined && [...disks, await multipathOf(disks)].some((name) => before === `/dev/${name}`)) return before;
    return await inTurn(disk.iqn, async () => {
      const device = await attached(disk, directory, signal);
      await rm(link, { force: true }); // of before the machine was started anew, which gives the name to any disk
      await symlink(device, link);
      return device;
    });
  }

  /** Of both modes, mounted or not. */
  async function all(): Promise<Here[]> {
    const found: Here[] = [];
    for (const block of [false, true]) {
      const root = iscsiRoot(dataDir, block);
      for (const iface of await namesIn(root)) {
        for (const name of iface.startsWith("iface-") ? await namesIn(join(root, iface)) : []) {
          const target = targetOfDirectory(iface, name);
          if (target) found.push({ ...target, directory: join(root, iface, name), block });
        }
      }
    }
    return found;
  }

  async function isUsed({ directory, block }: Here): Promise<boolean> {
    if (block) return (await namesIn(directory)).some((name) => name !== NOTE && existsSync(podDirectory(dataDir, name)));
    const table = mounts.list();
    const mounted = table.findLast(({ target }) => target === directory);
    return mounted !== undefined && table.some(({ source, target }) => source === mounted.source && target.startsWith(`${podDirectories(dataDir)}/`));
  }

  /** Nobody uses it, and it is its target's turn. */
  async function detach(here: Here, signal: AbortSignal): Promise<void> {
    mounts.unmount(here.directory);
    if (mounts.isMountPoint(here.directory)) throw new Error(`still mounted: ${here.directory}`); // never delete through a mount
    const note = readStateFile<IscsiNote>(join(here.directory, NOTE), log);
    const target = note ? targetOfNote(note) : here;
    const others = (await all()).filter(({ directory, iqn }) => directory !== here.directory && iqn === target.iqn);
    if (!others.some(({ lun }) => lun === target.lun)) await takeAway(target, signal);
    if (others.length === 0) await admin.logOut(target, signal);
    for (const name of await namesIn(here.directory)) await rm(join(here.directory, name));
    await rmdir(here.directory);
    await rmdir(dirname(here.directory)).catch(() => undefined); // others may be there
    onInUse();
    log.info("iSCSI volume detached", { target: target.iqn, lun: target.lun, loggedOut: others.length === 0 });
  }

  /** What stays in spite of this goes with the session. */
  async function takeAway({ iqn, lun }: IscsiTarget, signal: AbortSignal): Promise<void> {
    const disks = await sessions.disks(iqn, lun);
    for (const name of new Set((await Promise.all(disks.map(sessions.multipathOf))).filter((one) => one !== undefined))) {
      await exec("multipath", ["-f", `/dev/${name}`], { signal }).catch((error: unknown) => log.warn("map of multipath's not flushed", { device: name, error }));
    }
    for (const disk of disks) await sessions.remove(disk).catch((error: unknown) => log.warn("disk of an iSCSI volume not removed", { disk, error }));
  }

  /** Whether nothing is left that nobody uses. */
  async function sweepOnce(signal: AbortSignal): Promise<boolean> {
    let isDone = true;
    for (const here of await all()) {
      await inTurn(here.iqn, async () => {
        if (!(await isUsed(here)) && existsSync(here.directory)) await detach(here, signal);
      }).catch((error: unknown) => {
        isDone = false;
        if (!signal.aborted) log.warn("iSCSI volume not detached, next try later", { target: here.iqn, lun: here.lun, error });
      });
    }
    return isDone;
  }

  async function sweepUntilDone(): Promise<void> {
    for (let failures = 1; !life.aborted; failures++) {
      await clock.sleep(backoffMs(failures, RETRY), life);
      if (life.aborted || (await sweepOnce(life))) return;
    }
  }

  return {
    show, map,
    async sweep(signal) {
      if (!(await sweepOnce(signal))) sweeping ??= sweepUntilDone().finally(() => { sweeping = undefined; });
    },
    inUse: async () => [...new Set((await all()).map(({ portals, iqn, lun }) => iscsiVolumeName({ targetPortal: portals[0]!, iqn, lun })))].toSorted(),
  };
}

async function namesIn(directory: string): Promise<string[]> {
  return await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return [];
    throw error;
  });
}
