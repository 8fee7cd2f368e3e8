import { closeSync, mkdtempSync, openSync, read, readSync, realpathSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Exec, exec, sparing } from "../../os/exec.ts";
import { eventually } from "../../../test/eventually.ts";
import { hasFuse, silentFileSystem } from "../../../test/silent-file-system.ts";
import { systemMounts } from "../../os/mount.ts";
import { fileSystemUsage } from "../stats/disk-usage.ts";
import { doesAnswer, isElsewhere, remoteUsage, subPathsAnswer } from "./remote-volumes.ts";
import type { ReadyVolume } from "./ready-volume.ts";

const { signal } = new AbortController();
const container = { name: "c", volumeMounts: [{ name: "far", mountPath: "/a", subPath: "a" }, { name: "far", mountPath: "/b", subPathExpr: "$(B)" }, { name: "near", mountPath: "/n", subPath: "n" }, { name: "whole", mountPath: "/w" }] };
const ready = (hostPath: string, isRemote: boolean): ReadyVolume => ({ hostPath, readOnly: false, managed: false, isRemote });

test("a remote volume of which a part is wanted is asked whether it answers, once; others are not", async () => {
  const asked: string[] = [];
  const run: Exec = async (program, args) => { asked.push([program, ...args].join(" ")); return { exitCode: 0, stdout: "", stderr: "" }; };
  await subPathsAnswer(run, container, new Map([["far", ready("/far", true)], ["near", ready("/near", false)], ["whole", ready("/whole", true)]]), { signal });
  expect(asked).toEqual(["stat /far"]);
});

test("what the machine has mounted of another one is remote, and what is below it", () => {
  const mount = (target: string, fsType: string) => ({ target, options: [], fsType, source: "", superOptions: [] });
  const table = [mount("/", "ext4"), mount("/mnt/nas", "nfs4"), mount("/mnt/nas/disk", "xfs"), mount("/cloud", "fuse.s3fs"), mount("/usb", "fuseblk")];
  expect(["/mnt/nas", "/mnt/nas/a", "/cloud/b", "/mnt/nas/disk/a", "/mnt/nasty", "/usb/a", "/"].map((path) => isElsewhere(table, path))).toEqual([true, true, true, false, false, false, false]);
});

/** One of which somebody takes the first question and does not answer it: whoever asked cannot even be killed. */
async function mutedFileSystem(): Promise<Disposable & { readonly path: string }> {
  const path = realpathSync(mkdtempSync(join(tmpdir(), "muted-")));
  const fd = openSync("/dev/fuse", "r+"), question = Buffer.alloc(64 * 1024), answer = Buffer.alloc(80);
  systemMounts().mount({ source: "somebody", target: path, fsType: "fuse", options: [`fd=${fd}`, "rootmode=40000", "user_id=0", "group_id=0"] });
  readSync(fd, question); // what it can do: FUSE_INIT
  answer.writeUInt32LE(answer.length, 0);
  question.copy(answer, 8, 8, 16); // its number
  for (const [at, value] of [[16, 7], [20, 31], [36, 4096]] as const) answer.writeUInt32LE(value, at); // version 7.31, writes of 4 KiB
  writeSync(fd, answer);
  read(fd, question, () => undefined);
  return { path, [Symbol.dispose]() { closeSync(fd); systemMounts().unmount(path, { lazy: true }); rmSync(path, { recursive: true }); } };
}

test.skipIf(!hasFuse())("one that does not answer keeps the container from starting, and nobody waiting", async () => {
  using silent = silentFileSystem();
  const told = subPathsAnswer(exec, container, new Map([["far", ready(silent.path, true)]]), { signal, timeoutMs: 500 });
  await expect(told).rejects.toThrow('failed to prepare subPath for volumeMount "far" of container "c": the volume does not answer');
});

test("how full a remote volume is, a program of its own finds out", async () => {
  await expect.poll(async () => {
    const [own, far] = [await fileSystemUsage("/dev/shm"), await remoteUsage(exec, "/dev/shm", { signal })];
    return [far.capacityBytes === own.capacityBytes, far.inodes === own.inodes, Math.abs(far.usedBytes - own.usedBytes) < 64 << 20, far.availableBytes + far.usedBytes === own.capacityBytes];
  }).toEqual([true, true, true, true]); // others write there meanwhile, hundreds of megabytes at a time
  await expect(remoteUsage(exec, "/dev/nothing", { signal })).rejects.toThrow("/dev/nothing");
});

test.skipIf(!hasFuse())("of one that does not answer nothing is known, and nobody waits", async () => {
  using silent = silentFileSystem();
  await expect(remoteUsage(exec, silent.path, { signal, timeoutMs: 500 })).rejects.toThrow("stat -f");
});

test.skipIf(!hasFuse())("nor does anybody wait where whoever asks cannot be ended; until he has, nobody asks again", async () => {
  const run = sparing(exec);
  let path: string;
  {
    using muted = await mutedFileSystem();
    ({ path } = muted);
    await expect(remoteUsage(run, path, { signal, timeoutMs: 500 })).rejects.toThrow("did not end in time");
    await expect(remoteUsage(run, path, { signal, timeoutMs: 500 })).rejects.toThrow("one of before has not ended");
    expect(await doesAnswer(run, "/", { signal })).toBe(true);
  }
  await eventually("it is asked about again", async () => String(await remoteUsage(run, path, { signal }).catch((error: Error) => error.message)).includes("cannot be found out"));
});
