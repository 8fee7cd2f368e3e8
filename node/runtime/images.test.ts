import { execFileSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { text as textOf } from "node:stream/consumers";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { afterAll, expect, test, vi } from "vitest";
import { silentLog } from "../../core/observe/log.ts";
import type { Cri } from "../cri/client.ts";
import { type Exec, exec } from "../os/exec.ts";
import { importDirectory, importImages, listImages, untilCriKnows, waitForRuntime } from "./images.ts";
import { runtimePaths } from "./paths.ts";

const directory = mkdtempSync(join(tmpdir(), "images-"));
afterAll(() => rmSync(directory, { recursive: true }));
const paths = runtimePaths(directory);
const signal = new AbortController().signal;

/** ctr as it answers: each archive holds the images its text names, one a line or word. `known`: what containerd has, by name. */
function ctr(calls: string[] = [], known = new Map<string, string>()): Exec {
  return async (_, args, { stdin } = {}) => {
    const [, , , , , verb] = args;
    const done = { exitCode: 0, stdout: "", stderr: "" };
    const file = args.at(-1)!;
    if (verb === "remove") known.delete(file);
    if (verb === "tag") known.set(file, known.get(args.at(-2)!)!);
    if (verb !== "import") return done;
    calls.push(file.slice(file.lastIndexOf("/") + 1));
    const text = file === "-" ? await textOf(stdin as Readable) : readFileSync(file, "utf8");
    const names = text.split(text.includes("\n") ? "\n" : " ").filter((name) => name !== "");
    if (names.includes("broken")) return { exitCode: 1, stdout: "", stderr: 'time="…" level=warning msg="…"\ntime="…" level=info msg="…"\nctr: unexpected EOF\n' };
    for (const name of names) known.set(name, digestOf(name));
    return { ...done, stdout: names.map((name) => `unpacking ${name} (${digestOf(name)})...done\n`).join("") };
  };
}

function digestOf(name: string): string {
  return `sha256:${createHash("sha256").update(name.split("@")[0]!).digest("hex")}`;
}

function put(name: string, text: string): string {
  mkdirSync(paths.imagesDir, { recursive: true });
  writeFileSync(join(paths.imagesDir, name), text);
  return join(paths.imagesDir, name);
}

test("an import answers with the images' names, or why there are none", async () => {
  expect(await importImages(paths, put("a.tar", "docker.io/library/a:1 b.example/b-c:2"), { run: ctr() })).toEqual(["docker.io/library/a:1", "b.example/b-c:2"]);
  await expect(importImages(paths, put("bad.tar", "broken"), { run: ctr() })).rejects.toThrow("bad.tar: unexpected EOF");
  await expect(importImages(paths, put("anonymous.tar", ""), { run: ctr() })).rejects.toThrow("no image in it has a name");
  await expect(importImages(paths, join(directory, "absent.tar"), { run: ctr() })).rejects.toThrow("no such file");
  rmSync(paths.imagesDir, { recursive: true });
});

test("what is packed with gzip or zstd is unpacked for ctr, whatever it is called: ctr itself takes no such archive", async () => {
  const packed = (name: string, bytes: Uint8Array): string => {
    put(name, "");
    writeFileSync(join(paths.imagesDir, name), bytes);
    return join(paths.imagesDir, name);
  };
  for (const pack of [gzipSync, zstdCompressSync])
    for (const name of ["a.tar.gz", "a.tar.zst", "a.tar"]) expect(await importImages(paths, packed(name, pack("docker.io/library/a:1")), { run: ctr() })).toEqual(["docker.io/library/a:1"]);
  const twice = Buffer.concat(["docker.io/library/a:1 ", "b:1"].map((part) => zstdCompressSync(part)));
  expect(await importImages(paths, packed("frames.tar.zst", twice), { run: ctr() })).toEqual(["docker.io/library/a:1", "docker.io/library/b:1"]); // as pzstd writes
  await expect(importImages(paths, packed("a.tar.xz", Buffer.from("fd377a585a0000", "hex")), { run: ctr() })).rejects.toThrow("a.tar.xz: is packed with xz, which nothing here unpacks");
  const bytes = gzipSync(randomBytes(100_000));
  await expect(importImages(paths, packed("cut.tar.gz", bytes.subarray(0, 50_000)), { run: (_, _args, options) => exec("cat", [], options) })).rejects.toThrow(/cut\.tar\.gz: cut short or damaged/);
  rmSync(paths.imagesDir, { recursive: true });
});

test("of a packed archive that ctr does not read to its end the file is closed", { skip: process.platform !== "linux" }, async () => {
  const file = put("large.tar.gz", "");
  writeFileSync(file, gzipSync(randomBytes(4_000_000)));
  const isOpen = (): boolean => readdirSync("/proc/self/fd").some((fd) => { try { return readlinkSync(`/proc/self/fd/${fd}`) === file; } catch { return false; } });
  await expect(importImages(paths, file, { run: (_, _args, options) => exec("sh", ["-c", "head -c 100 >/dev/null; echo disk full >&2; exit 1"], options) })).rejects.toThrow("disk full");
  await vi.waitFor(() => expect(isOpen()).toBe(false));
  rmSync(paths.imagesDir, { recursive: true });
});

test("an image that is for machines of another kind is said to be, and is not kept: pods would have found it, and could not be started", async () => {
  const calls: (readonly string[])[] = [];
  const run: Exec = async (_, args) => {
    calls.push(args.slice(4));
    if (args[5] !== "import") return { exitCode: 0, stdout: "", stderr: "" };
    return { exitCode: 1, stdout: `unpacking docker.io/library/web:1 (${digestOf("web:1")})...done\nunpacking docker.io/library/arm:1 (${digestOf("arm:1")})...`, stderr: "ctr: no match for platform in manifest sha256:0: not found" };
  };
  await expect(importImages(paths, put("arm.tar", "x"), { run })).rejects.toThrow("arm.tar: docker.io/library/arm:1 is not for a machine of this kind (");
  expect(calls.at(-1)).toEqual(["images", "remove", "--", "docker.io/library/arm:1"]);
  await expect(importImages(paths, paths.imagesDir, { run })).rejects.toThrow("is a directory, and no archive");
  rmSync(paths.imagesDir, { recursive: true });
});

test("a short name is made a full one, as pods' words are: under the short one no pod found the image; one that no pod could say is not kept", async () => {
  const known = new Map<string, string>();
  expect(await importImages(paths, put("short.tar", "web:1 me/app:2 plain localhost/web:1 docker.io/library/web:1"), { run: ctr([], known) })).toEqual([
    "docker.io/library/web:1", "docker.io/me/app:2", "docker.io/library/plain:latest", "localhost/web:1",
  ]);
  expect([...known.keys()].sort()).toEqual(["docker.io/library/plain:latest", "docker.io/library/web:1", "docker.io/me/app:2", "localhost/web:1"]);
  known.clear();
  const run = ctr([], known);
  await expect(importImages(paths, put("spaces.tar", "docker.io/library/sp ace:1\ngood:1"), { run })).rejects.toThrow("spaces.tar: couldn't parse image name \"docker.io/library/sp ace:1\": invalid reference format");
  await expect(importImages(paths, put("upper.tar", "docker.io/library/UPPER:1"), { run })).rejects.toThrow("must be lowercase");
  const ofBoth = digestOf("docker.io/library/both:1");
  expect(await importImages(paths, put("both.tar", `docker.io/library/both:1@${ofBoth}`), { run })).toEqual([`docker.io/library/both@${ofBoth}`]); // of a pod's tag and digest the runtime heeds the digest
  const claimed = `docker.io/library/other@sha256:${"a".repeat(64)}`;
  await expect(importImages(paths, put("claimed.tar", claimed), { run })).rejects.toThrow(`${claimed} is ${digestOf(claimed)}`);
  expect([...known.keys()]).toEqual(["docker.io/library/good:1", `docker.io/library/both@${ofBoth}`]);
  rmSync(paths.imagesDir, { recursive: true });
});

test("what is imported is on the disk before it is an image: a power cut a moment later left it with files without a byte", async () => {
  const asked: (readonly string[])[] = [];
  const run = ctr();
  await importImages(paths, put("a.tar", "docker.io/library/a:1"), { pin: true, run: async (...call) => { asked.push(call[1]); return await run(...call); } });
  expect(asked[0]!.slice(4, -1)).toEqual(["images", "import", "--local", "--sync-fs", "--label", "io.cri-containerd.pinned=pinned"]); // the former for the latter: containerd 2 does not hear it otherwise
  rmSync(paths.imagesDir, { recursive: true });
});

test("an import is over when CRI has heard of it, or after half a minute", async () => {
  let nowMs = 0;
  const clock = { uptimeMs: () => nowMs, sleep: async (ms: number) => void (nowMs += ms) };
  const heardAtMs = { "a:1": 2_000, "b:1": 40_000 };
  const cri = { call: async () => ({ images: [{ id: "sha256:1", size: "1", repo_tags: Object.entries(heardAtMs).flatMap(([name, ms]) => (nowMs >= ms ? [name] : [])) }] }) } as unknown as Pick<Cri, "call">;
  expect(await untilCriKnows(["a:1"], { cri, clock, signal })).toEqual([]);
  expect(nowMs).toBe(2_000);
  expect(await untilCriKnows(["a:1", "b:1"], { cri, clock, signal })).toEqual(["b:1"]);
  expect(nowMs).toBe(32_000);
});

test("at start, archives are imported that are new, changed, or whose images are gone; a broken one harms no other", async () => {
  const round = async (present: readonly string[]): Promise<string[]> => {
    const calls: string[] = [];
    await importDirectory(paths, new Set(present), { log: silentLog, signal, run: ctr(calls) });
    return calls;
  };
  put("a.tar", "a:1");
  put("b.tar.zst", "b:1");
  put("broken.tar", "broken");
  put("README", "not an archive");
  expect(await round([])).toEqual(["a.tar", "b.tar.zst", "broken.tar"]);
  expect(await round(["docker.io/library/a:1", "docker.io/library/b:1"])).toEqual(["broken.tar"]);
  put("a.tar", "a:1 a:2");
  expect(await round(["a:1"])).toEqual(["a.tar", "b.tar.zst", "broken.tar"]);
  const noted = JSON.parse(readFileSync(paths.importedFile, "utf8")) as Record<string, { images: string[] }>;
  noted["b.tar.zst"]!.images = ["b:1"]; // by an earlier version, which left it the name that its archive gave it
  writeFileSync(paths.importedFile, JSON.stringify(noted));
  expect(await round(["docker.io/library/a:1", "docker.io/library/a:2", "b:1"])).toEqual(["b.tar.zst", "broken.tar"]);
});

test("what is called an archive and is none keeps no archive from being imported: one after a pipe waited half an hour, one after a link that led nowhere for ever", { skip: process.platform === "win32" }, async () => {
  const those = runtimePaths(join(directory, "strange"));
  mkdirSync(join(those.imagesDir, "a.tar"), { recursive: true });
  execFileSync("mkfifo", [join(those.imagesDir, "b.tar")]);
  symlinkSync("nowhere", join(those.imagesDir, "c.tar"));
  symlinkSync("d.tar", join(those.imagesDir, "d.tar"));
  writeFileSync(join(those.imagesDir, "e.tar"), "docker.io/library/e:1");
  const calls: string[] = [], errors: unknown[] = [];
  await importDirectory(those, new Set(), { log: { ...silentLog, error: (_: string, { file }: { file?: unknown } = {}) => void errors.push(file) }, signal, run: ctr(calls) });
  expect([calls, errors]).toEqual([["e.tar"], ["a.tar", "b.tar", "c.tar", "d.tar"]]);
});

test("an import that is stopped between two archives goes on with the second", async () => {
  const those = runtimePaths(join(directory, "stopped"));
  mkdirSync(those.imagesDir, { recursive: true });
  for (const name of ["c", "d"]) writeFileSync(join(those.imagesDir, `${name}.tar`), `${name}:1`);
  const stop = new AbortController();
  const calls: string[] = [];
  const run = ctr(calls);
  await importDirectory(those, new Set(), { log: silentLog, signal: stop.signal, run: async (...call) => await run(...call).finally(() => stop.abort()) });
  expect(calls.splice(0)).toEqual(["c.tar"]);
  await importDirectory(those, new Set(["docker.io/library/c:1"]), { log: silentLog, signal, run });
  expect(calls.splice(0)).toEqual(["d.tar"]);
  await importDirectory(those, new Set(["docker.io/library/c:1", "docker.io/library/d:1"]), { log: silentLog, signal, run });
  expect(calls).toEqual([]);
});

test("an archive during whose import the runtime ended is tried once more when it is back", async () => {
  const those = runtimePaths(join(directory, "ended"));
  mkdirSync(those.imagesDir, { recursive: true });
  for (const name of ["e", "f"]) writeFileSync(join(those.imagesDir, `${name}.tar`), `${name}:1`);
  const calls: string[] = [];
  const run = ctr(calls);
  let ends = 1;
  const asked: boolean[] = [];
  const names: string[] = [];
  await importDirectory(those, new Set(), {
    log: silentLog, signal,
    imported: async (images) => void names.push(...images),
    isBack: async () => { asked.push(true); return true; },
    run: async (...call) => (call[1]!.includes("import") && ends-- > 0 ? { exitCode: 1, stdout: "", stderr: "ctr: error reading from server: EOF" } : await run(...call)),
  });
  expect([names, calls, asked.length]).toEqual([["docker.io/library/e:1", "docker.io/library/f:1"], ["e.tar", "f.tar"], 1]);
});

test("images are listed by name", async () => {
  const stdout = [
    "REF                         TYPE                                       DIGEST      SIZE    PLATFORMS   LABELS",
    "coracle.local/pause:1       application/vnd.oci.image.manifest.v1+json sha256:aa 3.3 KiB linux/amd64 io.cri-containerd.image=managed,io.cri-containerd.pinned=pinned",
    "docker.io/library/busybox:1 application/vnd.oci.image.manifest.v1+json sha256:bb 2.1 MiB linux/amd64 io.cri-containerd.image=managed",
    "sha256:8652980e77d369a48f1e application/vnd.oci.image.manifest.v1+json sha256:aa 3.3 KiB linux/amd64 io.cri-containerd.image=managed", "",
  ].join("\n");
  expect(await listImages(paths, { run: async () => ({ exitCode: 0, stdout, stderr: "" }) })).toEqual([
    { name: "coracle.local/pause:1", digest: "sha256:aa", pinned: true }, { name: "docker.io/library/busybox:1", digest: "sha256:bb", pinned: false },
  ]);
});

test("right after a start, an import waits until the runtime answers, and says so once; not for ever", async () => {
  const told: string[] = [];
  let nowMs = 0, calls = 0;
  const clock = {
    uptimeMs: () => nowMs,
    sleep: async (ms: number) => {
      nowMs += ms;
      if (nowMs === 1000) put("../../bin/ctr", "");
      if (nowMs === 2000) put("../../sock", "");
    },
  };
  const starting = { binDir: join(directory, "bin"), socket: join(directory, "sock") };
  for (const path of [starting.binDir, join(directory, "agent/images")]) mkdirSync(path, { recursive: true });
  const run: Exec = async () => (++calls < 3 ? { exitCode: 1, stdout: "", stderr: "ctr: connection refused\n" } : { exitCode: 0, stdout: "", stderr: "" });
  await waitForRuntime(starting, { clock, waitMs: 60_000, waiting: (what) => told.push(what), run });
  expect([nowMs, calls]).toEqual([3000, 3]);
  expect(told).toEqual([`waiting up to 60 s for containerd at ${starting.socket}: ${starting.binDir}/ctr is not unpacked yet`]);
  await expect(waitForRuntime(starting, { clock, waitMs: 5_000, waiting: () => undefined, run: async () => ({ exitCode: 1, stdout: "", stderr: "ctr: connection refused\n" }) }))
    .rejects.toThrow(/containerd does not answer at .*sock: connection refused\. Is Coracle running on this machine/);
  expect(nowMs).toBe(8000);
});
