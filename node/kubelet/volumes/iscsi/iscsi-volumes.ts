/**
 * Volumes that are LUNs of iSCSI targets. A LUN comes to this machine once, however many pods use it, and goes with the last of them:
 *
 *   noted       plugins/kubernetes.io/iscsi/iface-<interface>/<portal>-<iqn>-lun-<lun>/iscsi.json, before anything else
 *   granted     the Node's status.volumesAttached names it: no other node writes to it. The controllers see to that
 *   attached    as a device (iscsi-devices.ts)
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
import { type InTurn, keyedTurns } from "../../../../core/lifecycle/keyed-turns.ts";
import { formatAndMount } from "../format-and-mount.ts";
import { patiently, unmountDisk } from "../unmount-disk.ts";
import { MountFailure, VolumePending } from "../mount-failure.ts";
import { podDirectories, podDirectory } from "../pod-directories.ts";
import { type IscsiDisk, iscsiDirectory, type IscsiNote, iscsiRoot, type IscsiTarget, noteOf, targetOfDirectory, targetOfNote } from "./iscsi-disk.ts";
import { iscsiDevices } from "./iscsi-devices.ts";
import { type IscsiSessions, iscsiSessions } from "./iscsi-sessions.ts";
import { iscsiadm } from "./iscsiadm.ts";

export interface IscsiVolumes {
  /** Makes the file system on the disk show at `directory`, in a pod's directory. Throws MountFailure, VolumePending. */
  show(disk: IscsiDisk, directory: string, signal: AbortSignal): Promise<void>;
  /** The disk's device, as long as the pod has a directory. Repeats nothing. Throws MountFailure, VolumePending. */
  map(disk: IscsiDisk, podUid: string, signal: AbortSignal): Promise<string>;
  /** Unmounts and logs out of what no pod uses any more: tried now, and again and again until it is done. A target that is busy, or did not let go, keeps nobody: it has its turn beside that. */
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

const RETRY = { minMs: 500, maxMs: 122_000 };
const NOTE = "iscsi.json";

/** A LUN that is here, or was to be. */
interface Here extends IscsiTarget { readonly directory: string; readonly block: boolean }

export function iscsiVolumes({ dataDir, nodeName, client, mounts, exec, clock, log, life, onInUse, sessions = iscsiSessions() }: IscsiDeps): IscsiVolumes {
  const admin = iscsiadm(exec);
  const devices = iscsiDevices({ admin, sessions, exec, clock, log });
  const turns = keyedTurns(); // by target: what one volume logs in to, another does not log out of
  const underWay = new Map<string, number>(); // how many have, or wait for, a target's turn: what they do may take minutes
  const failing = new Set<string>(); // targets that did not let go when they were asked last
  let sweeping: Promise<void> | undefined;

  const inTurn: InTurn = async (iqn, work, signal) => {
    underWay.set(iqn, (underWay.get(iqn) ?? 0) + 1);
    try {
      return await turns(iqn, work, signal);
    } finally {
      const left = underWay.get(iqn)! - 1;
      if (left > 0) underWay.set(iqn, left);
      else underWay.delete(iqn);
    }
  };

  async function attached(disk: IscsiDisk, directory: string, signal: AbortSignal): Promise<string> {
    if ((await mkdir(directory, { recursive: true, mode: 0o750 })) !== undefined) onInUse();
    await writeStateFile(join(directory, NOTE), noteOf(disk));
    await granted(disk, signal);
    return await devices.attach(disk, signal).catch((cause: Error) => { throw new MountFailure(disk.block ? "MapVolume.WaitForAttach" : "MountVolume.WaitForAttach", disk.name, cause); });
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
  }, signal);

  async function map(disk: IscsiDisk, podUid: string, signal: AbortSignal): Promise<string> {
    const directory = iscsiDirectory(dataDir, disk);
    const link = join(directory, podUid);
    const before = await readlink(link).catch(() => undefined);
    if (before !== undefined && (await devices.isOf(before, disk))) return before;
    return await inTurn(disk.iqn, async () => {
      const device = await attached(disk, directory, signal);
      await rm(link, { force: true }); // of before the machine was started anew, which gives the name to any disk
      await symlink(device, link);
      return device;
    }, signal);
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
    if (block) return (await namesIn(directory)).some((name) => name !== NOTE && existsSync(join(podDirectory(dataDir, name), "volumes")));
    const table = mounts.list();
    const mounted = table.findLast(({ target }) => target === directory);
    return mounted !== undefined && table.some(({ source, target }) => source === mounted.source && target.startsWith(`${podDirectories(dataDir)}/`));
  }

  /** Nobody uses it, and it is its target's turn. */
  async function detach(here: Here, signal: AbortSignal): Promise<void> {
    await unmountDisk({ mounts, exec }, here.directory);
    if (mounts.isMountPoint(here.directory)) throw new Error(`still mounted: ${here.directory}`); // never delete through a mount
    const note = readStateFile<IscsiNote>(join(here.directory, NOTE), log);
    const target = note ? targetOfNote(note) : here;
    const others = (await all()).filter(({ directory, iqn }) => directory !== here.directory && iqn === target.iqn);
    if (!others.some(({ lun }) => lun === target.lun)) await devices.detach(target, signal);
    if (others.length === 0) await admin.logOut(target, signal);
    for (const name of await namesIn(here.directory)) await rm(join(here.directory, name));
    await rmdir(here.directory);
    await rmdir(dirname(here.directory)).catch(() => undefined); // others may be there
    onInUse();
    log.info("iSCSI volume detached", { target: target.iqn, lun: target.lun, loggedOut: others.length === 0 });
  }

  /** Whether nothing is left that nobody uses. `asksFailing`: also targets that did not let go, which may take long. None keeps another. */
  async function sweepOnce(signal: AbortSignal, { asksFailing }: { readonly asksFailing: boolean }): Promise<boolean> {
    const targets = Map.groupBy(await all(), ({ iqn }) => iqn);
    return (await Promise.all([...targets.values()].map((luns) => sweepTarget(luns, signal, { asksFailing })))).every((isDone) => isDone);
  }

  /** One LUN after the other. */
  async function sweepTarget(luns: readonly Here[], signal: AbortSignal, { asksFailing }: { readonly asksFailing: boolean }): Promise<boolean> {
    let isDone = true;
    for (const here of luns) {
      if (await isUsed(here)) continue;
      if (underWay.has(here.iqn) || (failing.has(here.iqn) && !asksFailing)) {
        isDone = false;
        continue;
      }
      await inTurn(here.iqn, async () => {
        if (!(await isUsed(here)) && existsSync(here.directory)) await detach(here, signal);
        failing.delete(here.iqn);
      }).catch((error: unknown) => {
        isDone = false;
        failing.add(here.iqn);
        if (!signal.aborted) log.warn("iSCSI volume not detached, next try later", { target: here.iqn, lun: here.lun, error });
      });
    }
    return isDone;
  }

  async function sweepUntilDone(): Promise<void> {
    for (let failures = 1; !life.aborted; failures++) {
      await clock.sleep(backoffMs(failures, RETRY), life);
      const isDone = !life.aborted && (await patiently(sweepOnce(life, { asksFailing: true }), life).catch((error: unknown) => log.warn("iSCSI volumes not looked through, next try later", { error }))); // nobody waits for this: thrown, it would end the process
      if (life.aborted || isDone) return;
    }
  }

  return {
    show, map,
    async sweep(signal) {
      if (!(await patiently(sweepOnce(life, { asksFailing: false }), signal))) sweeping ??= sweepUntilDone().finally(() => { sweeping = undefined; });
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
