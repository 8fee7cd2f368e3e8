import { createHash } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { zstdCompressSync } from "node:zlib";
import { open } from "node:fs/promises";
import { afterAll, expect, test, vi } from "vitest";
import { silentLog } from "../../core/observe/log.ts";
import { execOk } from "../os/exec.ts";
import { identify } from "./process-identity.ts";
import { mendBundle, unpackBundle, waitForUnpacking } from "./unpack.ts";

const directory = mkdtempSync(join(tmpdir(), "unpack-"));
afterAll(() => rmSync(directory, { recursive: true }));

async function bundle(hash: string, content: string, tarOptions: readonly string[] = []): Promise<{ path: string; hash: string }> {
  mkdirSync(join(directory, hash, "bin"), { recursive: true });
  writeFileSync(join(directory, hash, "bin/tool"), content);
  chmodSync(join(directory, hash, "bin/tool"), 0o755);
  await execOk("tar", ["-P", ...tarOptions, "-C", join(directory, hash), "-cf", join(directory, `${hash}.tar`), "bin"]);
  writeFileSync(join(directory, `${hash}.tar.zst`), zstdCompressSync(readFileSync(join(directory, `${hash}.tar`))));
  return { path: join(directory, `${hash}.tar.zst`), hash };
}

/** What that process writes has this at the end of its name. */
function unfinished(pid: number): string { return `${pid}-${identify(pid)!.startTicks}.unfinished`; }

/** Under the name that it has in an executable. */
function named({ path }: { readonly path: string }): { path: string; hash: string } { return { path, hash: createHash("sha256").update(readFileSync(path)).digest("hex").slice(0, 16) }; }

test("a version is unpacked once; the next one takes its place, and what was left of an attempt goes", async () => {
  const agentDir = join(directory, "agent");
  const [one, two] = [await bundle("one", "1"), await bundle("two", "2")];
  mkdirSync(join(agentDir, "bin-one.4194304-7.unfinished/bin"), { recursive: true }); // of a process that cannot be

  const first = await unpackBundle({ asset: one, agentDir, log: silentLog });
  expect([first, readlinkSync(join(agentDir, "current"))]).toEqual([join(agentDir, "bin-one"), "bin-one"]);
  expect((statSync(join(agentDir, "current/bin/tool")).mode & 0o777).toString(8)).toBe("755");

  writeFileSync(join(agentDir, "current/bin/tool"), "t");
  await unpackBundle({ asset: one, agentDir, log: silentLog });
  expect(readFileSync(join(agentDir, "current/bin/tool"), "utf8")).toBe("t");

  await unpackBundle({ asset: two, agentDir, log: silentLog });
  expect(readFileSync(join(agentDir, "current/bin/tool"), "utf8")).toBe("2");
  expect(readdirSync(agentDir).sort()).toEqual(["bin-two", "current"]);
});

test("an archive that names a path outside of it is refused, and nothing takes the old version's place", async () => {
  const agentDir = join(directory, "agent2");
  await unpackBundle({ asset: await bundle("good", "1"), agentDir, log: silentLog });
  const evil = named(await bundle("evil", "2", ["--transform=s,^bin/tool,../../escaped,"]));
  await expect(unpackBundle({ asset: evil, agentDir, log: silentLog })).rejects.toThrow("outside");
  expect([readlinkSync(join(agentDir, "current")), existsSync(join(directory, "escaped"))]).toEqual(["bin-good", false]);
});

test("attempts that are cut off again and again do not fill the disk", async () => {
  const agentDir = join(directory, "agent4");
  const asset = named(await bundle("slow", "1"));
  const cutOff = async (_: string, to: string): Promise<void> => {
    mkdirSync(join(to, "bin"), { recursive: true });
    throw new Error("cut off");
  };
  for (const suffix of ["4194304-7.unfinished", `${process.pid}-7.unfinished`, "1-7.unfinished"]) mkdirSync(join(agentDir, `bin-${asset.hash}.${suffix}/bin`), { recursive: true }); // numbers that others have after a boot
  await expect(unpackBundle({ asset, agentDir, log: silentLog, unpack: cutOff })).rejects.toThrow("cut off");
  await expect(unpackBundle({ asset, agentDir, log: silentLog, unpack: cutOff })).rejects.toThrow("cut off");
  expect(readdirSync(agentDir)).toEqual([`bin-${asset.hash}.${unfinished(process.pid)}`]);
});

test("what the disk has cut off or lost is unpacked anew; what an older version has unpacked, and nobody has noted, stays", async () => {
  const agentDir = join(directory, "agent5"), tool = join(agentDir, "current/bin/tool"), list = join(agentDir, "current/files.json");
  const asset = await bundle("worn", "whole"), told: unknown[] = [];
  const start = async (): Promise<string> => {
    await unpackBundle({ asset, agentDir, log: { ...silentLog, error: (_, fields) => void told.push(fields?.["file"]) } });
    return readFileSync(tool, "utf8");
  };
  await start();
  for (const damage of [() => writeFileSync(tool, ""), () => writeFileSync(tool, "who"), () => rmSync(tool), () => writeFileSync(list, "")]) {
    damage();
    expect(await start()).toBe("whole");
  }
  expect([told, readdirSync(agentDir).sort()]).toEqual([["bin/tool", "bin/tool", "bin/tool", "files.json"], ["bin-worn", "current"]]);
  rmSync(list);
  writeFileSync(tool, "older");
  expect(await start()).toBe("older");
});

test("of what is as long as it was a bit that is another is found by reading all, and it is unpacked anew; so is what the disk cannot read", async () => {
  const agentDir = join(directory, "agent6"), tool = join(agentDir, "current/bin/tool");
  const asset = await bundle("flipped", "whole"), told: unknown[] = [];
  const options = { asset, agentDir, log: { ...silentLog, error: (_: string, fields?: Readonly<Record<string, unknown>>) => void told.push(fields?.["file"]) } };
  await unpackBundle(options);
  expect(await mendBundle(options)).toBeUndefined();
  writeFileSync(tool, "whole".replace("h", "i"));
  await unpackBundle(options);
  expect(readFileSync(tool, "utf8")).toBe("wiole"); // a start does not read it
  expect([await mendBundle(options), readFileSync(tool, "utf8"), readdirSync(agentDir).sort()]).toEqual(["bin/tool", "whole", ["bin-flipped", "bin-flipped.damaged", "current"]]);
  await unpackBundle(options);
  expect(readdirSync(agentDir).sort()).toEqual(["bin-flipped", "current"]);
  rmSync(tool);
  symlinkSync("/proc/self/mem", tool); // is opened, and answers as a bad sector does
  expect([await mendBundle(options), readFileSync(tool, "utf8"), told]).toEqual(["bin/tool", "whole", ["bin/tool", "bin/tool"]]);
  await expect(mendBundle(options, async () => { throw new Error("enough"); })).rejects.toThrow("enough");
});

test("an executable whose components are damaged says so, and what is there stays", async () => {
  const agentDir = join(directory, "agent7");
  const asset = named(await bundle("executable", "whole")), bytes = readFileSync(asset.path);
  await unpackBundle({ asset, agentDir, log: silentLog });
  writeFileSync(join(agentDir, "current/bin/tool"), "wiole");
  bytes[0]! ^= 1; // a bit in the middle may be one of a date, and nothing is wrong
  writeFileSync(asset.path, bytes);
  await expect(mendBundle({ asset, agentDir, log: silentLog })).rejects.toThrow("the node components in this executable are damaged: install it again");
  expect(readFileSync(join(agentDir, "current/bin/tool"), "utf8")).toBe("wiole");
});

test("who only wants one of the programs waits for another process that unpacks them, as long as that lives", async () => {
  const agentDir = join(directory, "agent8"), asset = { path: "", hash: "awaited" }, slept: number[] = [];
  const other = Bun.spawn(["sleep", "60"]);
  const wait = (sleep: (ms: number) => Promise<void>): Promise<string[]> => {
    const said: string[] = [];
    return waitForUnpacking({ asset, agentDir }, { sleep, told: () => said.push("told") }).then(() => said);
  };
  const never = async (): Promise<void> => expect.unreachable();
  expect(await wait(never)).toEqual([]); // nothing is there at all
  for (const name of ["bin-awaited.4194304-7.unfinished", `bin-awaited.${other.pid}-7.unfinished`, `bin-awaited.${unfinished(process.pid)}`, `bin-another.${unfinished(other.pid)}`]) mkdirSync(join(agentDir, name), { recursive: true });
  expect(await wait(never)).toEqual([]); // cut off, also by one whose number another has now, our own, of another version
  const theirs = join(agentDir, `bin-awaited.${unfinished(other.pid)}`);
  mkdirSync(theirs);
  expect(await wait(async (ms) => { if (slept.push(ms) === 3) rmSync(theirs, { recursive: true }); })).toEqual(["told"]);
  expect(slept).toHaveLength(3);
  mkdirSync(theirs);
  expect(await wait(async () => { other.kill("SIGKILL"); await other.exited; })).toEqual(["told"]);
});

test("a large file is brought to disk piece by piece: others wait for one of them, not for all", async () => {
  await using handle = await open("/dev/null");
  const synced = vi.spyOn(Object.getPrototypeOf(handle) as typeof handle, "datasync");
  await unpackBundle({ asset: await bundle("large", "x".repeat(13 * 1024 * 1024)), agentDir: join(directory, "agent9"), log: silentLog });
  expect(synced).toHaveBeenCalledTimes(3);
  synced.mockRestore();
});

test("several processes may unpack at once", async () => {
  const agentDir = join(directory, "agent3");
  const asset = await bundle("same", "1");
  const script = `import { unpackBundle } from "${join(import.meta.dirname, "unpack.ts")}"; const log = { info() {} }; await unpackBundle({ asset: ${JSON.stringify(asset)}, agentDir: ${JSON.stringify(agentDir)}, log });`;
  await Promise.all([1, 2, 3].map(() => execOk(process.execPath, ["-e", script])));
  expect(readdirSync(agentDir).sort()).toEqual(["bin-same", "current"]);
});
