import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import type { Client } from "../../../core/client/client.ts";
import { type Clock, systemClock } from "../../../core/lifecycle/clock.ts";
import { silentLog } from "../../../core/observe/log.ts";
import { ExecError, type ExecResult } from "../../os/exec.ts";
import { type Mounts, systemMounts } from "../../os/mount.ts";
import { FilesystemMismatch } from "./format-and-mount.ts";
import { localDevices, localKind } from "./local-devices.ts";
import { MountFailure } from "./mount-failure.ts";
import { type SetUpDeps, setUpVolume } from "./set-up.ts";

let dataDir = "";
beforeEach(() => { dataDir = realpathSync(mkdtempSync(join(tmpdir(), "local-devices-"))); });
afterEach(() => rmSync(dataDir, { recursive: true }));

const { signal } = new AbortController();
const volume = { name: "pv", device: "/dev/sdz", fsType: "", options: ["noatime"], readOnly: false };

/** A machine on which programs answer as told. `refuses`: nothing is mounted. */
function machine(answers: Record<string, Partial<ExecResult>>, { refuses = false, busy = new Set<string>(), hangs = { until: Promise.resolve() } } = {}) {
  const did: string[] = [];
  const table: { source: string; target: string }[] = [];
  const mounts = {
    list: () => table,
    mount() { throw new Error("within this process, which may wait for the disk"); },
    bind(from: string, target: string) { table.push({ source: table.find((mounted) => mounted.target === from)!.source, target }); },
    isMountPoint: (path: string) => table.some(({ target }) => target === path),
  } as unknown as Mounts;
  const exec = async (program: string, args: readonly string[]): Promise<ExecResult> => {
    did.push([program, ...(program === "mount" ? args.slice(0, -1) : args)].join(" "));
    if (program === "mount") {
      if (refuses) return { exitCode: 32, stdout: "", stderr: "wrong fs type" };
      table.push({ source: args.at(-2)!, target: args.at(-1)! });
    }
    if (program === "umount") {
      await hangs.until;
      if (busy.has(args[0]!)) return { exitCode: 32, stdout: "", stderr: "target is busy" };
      table.splice(table.findIndex((mounted) => mounted.target === args[0]), 1);
    }
    return { exitCode: 0, stdout: "", stderr: "", ...answers[program] };
  };
  return { did, table, devices: localDevices({ dataDir, mounts, exec, log: silentLog }) };
}
const probe = "blkid -p -s TYPE -s PTTYPE -o export /dev/sdz";
const mount = "mount -i -t ext4 -o noatime -- /dev/sdz";

test.each<[string, Partial<ExecResult>, string[], string?]>([
  ["blank is formatted as asked", { exitCode: 2 }, [probe, "mkfs.xfs -f /dev/sdz", "mount -i -t xfs -o noatime -- /dev/sdz"], "xfs"],
  ["blank is formatted", { exitCode: 2 }, [probe, "mkfs.ext4 -F -m0 /dev/sdz", mount]],
  ["that is a partition with nothing on it is formatted", { stdout: "blkid from util-linux 2.38.1\n" }, [probe, "blkid -V", "mkfs.ext4 -F -m0 /dev/sdz", mount]],
  ["with a file system is looked through", { stdout: "TYPE=ext4\n" }, [probe, "fsck -a /dev/sdz", mount]],
  ["with partitions is not formatted", { stdout: "PTTYPE=gpt\n" }, [probe, "fsck -a /dev/sdz", mount]],
])("a device %s", async (_, blkid, expected, fsType = "") => {
  const { did, devices } = machine({ blkid });
  await devices.show({ ...volume, fsType }, join(dataDir, "pods/a/volumes/v"), signal);
  expect(did).toEqual(expected);
});

test("what is mounted read-only by its own options is left as it is", async () => {
  const { did, devices } = machine({ blkid: { stdout: "TYPE=ext4\n" } });
  await devices.show({ ...volume, options: ["ro", "noatime"] }, join(dataDir, "pods/a/volumes/v"), signal);
  expect(did).toEqual([probe, "mount -i -t ext4 -o ro,noatime -- /dev/sdz"]);
  await expect(machine({ blkid: { exitCode: 2 } }).devices.show({ ...volume, options: ["ro"] }, join(dataDir, "pods/a/volumes/v"), signal)).rejects.toThrow("cannot mount unformatted disk");
});

test("a device that several pods use is mounted once, until the last of them is gone", async () => {
  const { did, table, devices } = machine({ blkid: { stdout: "TYPE=ext4\n" } });
  const [a, b] = ["a", "b"].map((pod) => join(dataDir, "pods", pod, "volumes/v"));
  await Promise.all([devices.show(volume, a!, signal), devices.show(volume, b!, signal)]);
  expect(did.filter((line) => line === mount)).toHaveLength(1);
  const shared = join(dataDir, "plugins/kubernetes.io/local-volume/mounts/pv");
  table.splice(table.findIndex(({ target }) => target === a), 1);
  await devices.sweep(signal);
  expect(table.map(({ target }) => target)).toEqual([shared, b]);
  table.pop();
  await devices.sweep(signal);
  expect([table, existsSync(shared)]).toEqual([[], false]);
});

test("a device that somebody of the machine still looks into keeps no other, and no pod, from its end, and is unmounted later", async () => {
  const root = join(dataDir, "plugins/kubernetes.io/local-volume/mounts"), busy = new Set([join(root, "pv")]);
  const { table, devices } = machine({ blkid: { stdout: "TYPE=ext4\n" } }, { busy });
  await devices.show(volume, join(dataDir, "pods/a/volumes/v"), signal);
  await devices.show({ ...volume, name: "pv2", device: "/dev/sdy" }, join(dataDir, "pods/a/volumes/w"), signal);
  table.splice(0, table.length, ...table.filter(({ target }) => target.startsWith(root)));
  await devices.sweep(signal);
  expect(table.map(({ target }) => target)).toEqual([join(root, "pv")]);
  busy.clear();
  await devices.sweep(signal);
  expect(table).toEqual([]);
});

test("a disk that does not answer is unmounted beside all else, once, and is nobody's before it has been", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { did, table, devices } = machine({ blkid: { stdout: "TYPE=ext4\n" } }, { hangs: { until: promise } });
  await devices.show(volume, join(dataDir, "pods/a/volumes/v"), signal);
  table.pop();
  const gone = new AbortController();
  const first = devices.sweep(gone.signal);
  gone.abort();
  await first;
  await devices.sweep(signal);
  const deleted = new AbortController();
  const waiting = devices.show(volume, join(dataDir, "pods/c/volumes/v"), deleted.signal);
  const shown = devices.show(volume, join(dataDir, "pods/b/volumes/v"), signal);
  deleted.abort(new Error("deleted"));
  await expect(waiting).rejects.toThrow("deleted"); // who waits for it is not kept by it
  expect(did.filter((line) => line.startsWith("umount") || line === mount)).toEqual([mount, `umount ${join(dataDir, "plugins/kubernetes.io/local-volume/mounts/pv")}`]);
  resolve();
  await shown;
  expect([did.at(-1), table.some(({ target }) => target.includes("pods/c"))]).toEqual([mount, false]);
});

test.each<[string, Record<string, Partial<ExecResult>>, boolean, string]>([
  ["a blank device is not for reading", { blkid: { exitCode: 2 } }, true, "cannot mount unformatted disk /dev/sdz as we are manipulating it in read-only mode"],
  ["what busybox's blkid says is not taken for blank", { blkid: { stdout: '/dev/sdz: UUID="5a0b1b1c" TYPE="ext4"\n' } }, false, "failed to get disk format of disk /dev/sdz: this machine's blkid, as busybox has it, does not look at one disk: install that of util-linux"],
  ["what cannot be read is not taken for blank", { blkid: { exitCode: 4, stderr: "I/O" } }, false, "failed to get disk format of disk /dev/sdz: exit status 4: I/O"],
  ["what cannot be repaired is not mounted", { blkid: { stdout: "TYPE=ext4\n" }, fsck: { exitCode: 4, stderr: "run it by hand" } }, false, "'fsck' found errors on device /dev/sdz but could not correct them: run it by hand"],
  ["what cannot be formatted is not mounted", { blkid: { exitCode: 2 }, "mkfs.ext4": { exitCode: 1, stderr: "no" } }, false, 'format of disk "/dev/sdz" failed: type:("ext4")'],
])("%s", async (_, answers, readOnly, message) => {
  const { table, devices } = machine(answers);
  await expect(devices.show({ ...volume, readOnly }, join(dataDir, "pods/a/volumes/v"), signal)).rejects.toThrow(message);
  expect([table, existsSync(join(dataDir, "plugins/kubernetes.io/local-volume/mounts/pv"))]).toEqual([[], false]);
});

test.each<[string, string, boolean]>([["xfs", "", true], ["xfs", "xfs", false], ["ext4", "", false], ["", "", false]])("a disk with %j that is to be %j and is not mounted: whose fault that is", async (format, fsType, isMismatch) => {
  const { devices } = machine({ blkid: format === "" ? { exitCode: 2 } : { stdout: `TYPE=${format}\n` } }, { refuses: true });
  const failure = await devices.show({ ...volume, fsType }, join(dataDir, "pods/a/volumes/v"), signal).catch((error: Error) => error);
  expect(failure).toMatchObject({ message: expect.stringContaining("wrong fs type"), cause: { name: isMismatch ? "FilesystemMismatch" : "Error" } });
});

test("a disk with another file system than its volume says is told of where the volume is", async () => {
  const claim = { metadata: { name: "claim", namespace: "n", uid: "claim-uid" }, spec: { volumeName: "pv" }, status: { phase: "Bound" } };
  const bound = { metadata: { name: "pv", uid: "pv-uid" }, spec: { claimRef: { uid: "claim-uid" }, iscsi: { targetPortal: "10.0.0.1", iqn: "iqn.2003-01.io.k8s:a", lun: 0 } } };
  const client = { resource: () => ({ get: async ({ metadata: { name } }: { metadata: { name: string } }) => (name === "pv" ? bound : claim) }) } as unknown as Client;
  const told: unknown[][] = [];
  const failure = { now: new FilesystemMismatch("mount ext4 /dev/sdi: EINVAL") as Error };
  const iscsi = { show: async () => { throw new MountFailure("MountVolume.MountDevice", "pv", failure.now); } };
  const deps = { dataDir, client, iscsi, hostIps: [], allocatable: () => ({}), tokens: {}, mounts: { isMountPoint: () => false }, events: { event: (...of: unknown[]) => void told.push(of) } } as unknown as SetUpDeps;
  const pod = { metadata: { uid: "u", name: "p", namespace: "n" }, spec: { containers: [] } } as unknown as Pod;
  const show = () => setUpVolume(deps, pod, { name: "v", persistentVolumeClaim: { claimName: "claim" } }, { signal, onBound: () => undefined, nested: () => [] });
  await expect(show()).rejects.toThrow('MountVolume.MountDevice failed for volume "pv" : mount ext4 /dev/sdi: EINVAL');
  failure.now = new Error("no such disk");
  await expect(show()).rejects.toThrow("no such disk");
  expect(told).toEqual([[{ apiVersion: "v1", kind: "PersistentVolume", name: "pv", uid: "pv-uid" }, "Warning", "FailedMountOnFilesystemMismatch", 'MountVolume failed for volume "pv" mount ext4 /dev/sdi: EINVAL']]);
});

test("a local volume is a directory or a device", async () => {
  const file = join(dataDir, "file");
  writeFileSync(file, "");
  expect(await localKind(dataDir)).toBe("directory");
  await expect(localKind(file)).rejects.toThrow("only directory and block device are supported");
  await expect(localKind(join(dataDir, "none"))).rejects.toThrow("does not exist");
});

test.each<[string, object, string, string?]>([
  ["Block", { volumeMounts: [{ name: "v", mountPath: "/v" }] }, "volume v has volumeMode Block, but is specified in volumeMounts"],
  ["Filesystem", { volumeDevices: [{ name: "v", devicePath: "/dev/v" }] }, "volume v has volumeMode Filesystem, but is specified in volumeDevices"],
  ["Block", { volumeDevices: [{ name: "v", devicePath: "/dev/v" }] }, "is not a block device"], // its volume is a directory
  ["Block", { volumeDevices: [{ name: "v", devicePath: "/dev/v" }] }, "failed to find BlockVolumeMapper plugin. Volume plugin is nil.", "hostPath"], // which is none of a device anywhere
])("a claim of mode %s is used as that", async (volumeMode, use, message, kind = "local") => {
  const claim = { metadata: { name: "claim", namespace: "n", uid: "claim-uid" }, spec: { volumeName: "pv", volumeMode }, status: { phase: "Bound" } };
  const bound = { metadata: { name: "pv" }, spec: { claimRef: { uid: "claim-uid" }, volumeMode, [kind]: { path: dataDir } } };
  const client = { resource: () => ({ get: async ({ metadata: { name } }: { metadata: { name: string } }) => (name === "pv" ? bound : claim) }) } as unknown as Client;
  const pod = { metadata: { uid: "u", name: "p", namespace: "n" }, spec: { containers: [{ name: "c", ...use }] } } as unknown as Pod;
  const deps = { dataDir, client, hostIps: [], allocatable: () => ({}), tokens: {} } as unknown as SetUpDeps;
  await expect(setUpVolume(deps, pod, { name: "v", persistentVolumeClaim: { claimName: "claim" } }, { signal, onBound: () => undefined, nested: () => [] })).rejects.toThrow(message);
});

test("a local directory is mounted as its volume says; it is given to the group of its first pod, and others are told that it is that one's", async () => {
  const shelf = join(dataDir, "shelf");
  mkdirSync(shelf);
  const claim = { metadata: { name: "claim", namespace: "n", uid: "claim-uid" }, spec: { volumeName: "pv" }, status: { phase: "Bound" } };
  let path = shelf;
  const bound = () => ({ metadata: { name: "pv" }, spec: { claimRef: { uid: "claim-uid" }, mountOptions: ["noexec"], local: { path } } });
  const client = { resource: () => ({ get: async ({ metadata: { name } }: { metadata: { name: string } }) => (name === "pv" ? bound() : claim) }) } as unknown as Client;
  const told: string[] = [];
  let breaks = true; // as a disk that does not answer
  const mounts = systemMounts();
  const deps = {
    dataDir, client, mounts, hostIps: [], allocatable: () => ({}), tokens: {}, clock: { ...systemClock, after(...args: Parameters<Clock["after"]>) { if (breaks) throw new Error("EIO"); return systemClock.after(...args); } }, events: { event: ({ name }: { name: string }, type: string, reason: string, message: string) => void told.push(`${name} ${type} ${reason} ${message}`) },
    expander: { inUse: async () => undefined, beforeUse: async () => undefined },
  } as unknown as SetUpDeps;
  const show = async (uid: string, fsGroup: number) => {
    const pod = { metadata: { uid, name: uid, namespace: "n" }, spec: { securityContext: { fsGroup }, containers: [] } } as unknown as Pod;
    return (await setUpVolume(deps, pod, { name: "v", persistentVolumeClaim: { claimName: "claim" } }, { signal, onBound: () => undefined, nested: () => [] })).hostPath!;
  };
  try {
    await expect(show("a", 4321)).rejects.toThrow("EIO");
    breaks = false;
    const first = await show("a", 4321); // and is not taken for one that it was given
    expect([mounts.list().find(({ target }) => target === first)?.options.includes("noexec"), statSync(shelf).gid]).toEqual([true, 4321]);
    await show("b", 4321);
    expect(told).toEqual([]);
    await show("c", 1234);
    expect([told, statSync(shelf).gid]).toEqual([["c Warning AlreadyMountedVolume The requested fsGroup is 1234, but the volume pv has GID 4321. The volume may not be shareable."], 4321]);
    path = join(dataDir, "none");
    expect(await show("a", 4321)).toBe(first); // it has it
    await expect(show("d", 1)).rejects.toThrow(`MountVolume.NewMounter initialization failed for volume "pv" : path "${path}" does not exist`);
  } finally {
    mounts.unmountAll(dataDir);
  }
});

test("a local directory that is another machine's is mounted once that answers, and is measured as one of another machine's", async () => {
  const claim = { metadata: { name: "claim", namespace: "n", uid: "claim-uid" }, spec: { volumeName: "pv" }, status: { phase: "Bound" } };
  const bound = { metadata: { name: "pv" }, spec: { claimRef: { uid: "claim-uid" }, local: { path: dataDir } } };
  const client = { resource: () => ({ get: async ({ metadata: { name } }: { metadata: { name: string } }) => (name === "pv" ? bound : claim) }) } as unknown as Client;
  let isAway = true;
  const exec = async (): Promise<object> => { if (isAway) throw new ExecError("timeout", "stat"); return { exitCode: 0, stdout: "", stderr: "" }; };
  const mounts = { list: () => [{ target: dataDir, options: [], fsType: "nfs4", source: "nas:/", superOptions: [] }], isMountPoint: () => false, bind: () => undefined } as unknown as Mounts;
  const deps = { dataDir, client, mounts, exec, hostIps: [], allocatable: () => ({}), tokens: {}, expander: { beforeUse: async () => undefined } } as unknown as SetUpDeps;
  const pod = { metadata: { uid: "u", name: "p", namespace: "n" }, spec: { containers: [] } } as unknown as Pod;
  const show = () => setUpVolume(deps, pod, { name: "v", persistentVolumeClaim: { claimName: "claim" } }, { signal, onBound: () => undefined, nested: () => [] });
  await expect(show()).rejects.toThrow(`MountVolume.NewMounter initialization failed for volume "pv" : path "${dataDir}" does not answer`);
  isAway = false;
  expect(await show()).toMatchObject({ isMeasured: true, isRemote: true });
});

test("why the directory behind a claim's volume is not there is told by the volume's name", async () => {
  const claim = { metadata: { name: "claim", namespace: "n", uid: "claim-uid" }, spec: { volumeName: "pv" }, status: { phase: "Bound" } };
  let mountOptions: string[] = [];
  const bound = () => ({ metadata: { name: "pv" }, spec: { claimRef: { uid: "claim-uid" }, mountOptions, hostPath: { path: join(dataDir, "none"), type: "Directory" } } });
  const client = { resource: () => ({ get: async ({ metadata: { name } }: { metadata: { name: string } }) => (name === "pv" ? bound() : claim) }) } as unknown as Client;
  const deps = { dataDir, client, mounts: systemMounts(), hostIps: [], allocatable: () => ({}), tokens: {} } as unknown as SetUpDeps;
  const pod = { metadata: { uid: "u", name: "p", namespace: "n" }, spec: { containers: [] } } as unknown as Pod;
  const show = () => setUpVolume(deps, pod, { name: "v", persistentVolumeClaim: { claimName: "claim" } }, { signal, onBound: () => undefined, nested: () => [] });
  await expect(show()).rejects.toThrow(`MountVolume.SetUp failed for volume "pv" : hostPath type check failed: ${join(dataDir, "none")} is not a directory`);
  mountOptions = ["noexec"];
  await expect(show()).rejects.toThrow('MountVolume.MountOptionSupport check failed for volume "pv" : mount options are not supported for this volume type');
});
