import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Exec, exec, ExecError } from "../../os/exec.ts";
import { type Mounts, systemMounts } from "../../os/mount.ts";
import { mountNfs, unmountNfs } from "./nfs.ts";

const { signal } = new AbortController();
let root = "";
beforeEach(() => { root = realpathSync(mkdtempSync(join(tmpdir(), "nfs-"))); });
afterEach(() => {
  systemMounts().unmountAll(root);
  rmSync(root, { recursive: true });
});

/** What has been run; `answer` may refuse. */
function machine(answer: (line: string) => { readonly exitCode?: number; readonly stderr?: string } = () => ({}), table: readonly { readonly target: string; readonly fsType: string }[] = []) {
  const did: string[] = [];
  const run: Exec = async (program, args) => {
    did.push([program, ...args].join(" "));
    return { exitCode: 0, stdout: "", stderr: "", ...answer([program, ...args].join(" ")) };
  };
  return { did, exec: run, mounts: { isMountPoint: () => false, list: () => table } as unknown as Mounts };
}

test("mounted by the host's mount, and what it says is told", async () => {
  const { did, ...deps } = machine((line) => (line.includes("gone") ? { exitCode: 32, stderr: "no route" } : {}));
  const directory = join(root, "v");
  await mountNfs(deps, { server: "files", path: "/a" }, directory, { readOnly: false, options: [] }, signal);
  await mountNfs(deps, { server: "fd00::1", path: "/a" }, directory, { readOnly: true, options: ["nfsvers=4.2"] }, signal);
  expect(did).toEqual([`mount -t nfs -- files:/a ${directory}`, `mount -t nfs -o ro,nfsvers=4.2 -- [fd00::1]:/a ${directory}`]);
  await expect(mountNfs(deps, { server: "gone", path: "/a" }, directory, { readOnly: false, options: [] }, signal)).rejects.toThrow(`mount failed: exit status 32\nMounting command: mount\nMounting arguments: -t nfs -- gone:/a ${directory}\nOutput: no route`);
});

test.skipIf(process.getuid?.() !== 0)("a server whose name is an option of mount's mounts nothing of the host", async () => {
  const [directory, secrets, volume] = [join(root, "v"), join(root, "secrets"), join(root, "empty-dir/x:")]; // a file of the pod's own would be mount's fstab
  for (const path of [directory, secrets, volume]) mkdirSync(path, { recursive: true });
  writeFileSync(join(secrets, "key"), "");
  writeFileSync(join(volume, "fstab"), `${secrets} ${directory} none bind 0 0\n`);
  const source = { server: `-T${join(root, "empty-dir/x")}`, path: "/fstab" };
  await expect(mountNfs({ mounts: systemMounts(), exec }, source, directory, { readOnly: false, options: [] }, signal)).rejects.toThrow("is no server's name");
  await expect(mountNfs({ mounts: systemMounts(), exec }, { ...source, server: ` ${source.server}` }, directory, { readOnly: false, options: [] }, signal)).rejects.toThrow("mount failed");
  expect(readdirSync(directory)).toEqual([]);
});

test("unmounted by the host's umount, the newest first, and by force where a server does not answer", async () => {
  const table = [{ target: "/pods/1/v", fsType: "nfs4" }, { target: "/pods/1/tmp", fsType: "tmpfs" }, { target: "/pods/1/w", fsType: "nfs" }, { target: "/pods/2/v", fsType: "nfs" }];
  const { did, ...deps } = machine((line) => { if (line === "umount /pods/1/w") throw new ExecError("timeout", "did not end in time"); return {}; }, table);
  await unmountNfs(deps, "/pods/1", signal);
  expect(did).toEqual(["umount /pods/1/w", "umount -f /pods/1/w", "umount /pods/1/v"]);
  const stuck = machine(() => ({ exitCode: 16, stderr: "device is busy" }), table);
  await expect(unmountNfs(stuck, "/pods/2", signal)).rejects.toThrow("unmount failed: exit status 16: device is busy");
});
