/**
 * Images from archives instead of registries: OCI layouts and `docker save`'s, as .tar, .tar.gz, .tgz or .tar.zst. Imported by containerd's own client, so that CRI sees them.
 *
 * Archives in <data-dir>/agent/images are imported at start, those that have changed since; their images are pinned, as those are that somebody imports by hand, because the kubelet's garbage
 * collection could remove what no registry could bring back.
 */
import { closeSync, createReadStream, existsSync, mkdirSync, openSync, readdirSync, readSync, renameSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Duplex, Readable } from "node:stream";
import { createGunzip, createZstdDecompress } from "node:zlib";
import type { Clock } from "../../core/lifecycle/clock.ts";
import { fileTextSync } from "../../core/lifecycle/file-text.ts";
import type { Log } from "../../core/observe/log.ts";
import type { Cri } from "../cri/client.ts";
import { fullName } from "../cri/image-name.ts";
import { type Exec, type ExecError, exec } from "../os/exec.ts";
import type { RuntimePaths } from "./paths.ts";

/** What CRI calls an image that garbage collection must leave alone. */
const PINNED = "io.cri-containerd.pinned=pinned";
export const NAMESPACE = "k8s.io";
/** Without which no pod starts. In the bundle as images/pause.tar. */
export const PAUSE_IMAGE = "coracle.local/pause:1";
const ARCHIVE = /\.(tar|tar\.gz|tgz|tar\.zst)$/;
/** A gigabyte of image on an SD card takes minutes. */
const IMPORT_TIMEOUT_MS = 30 * 60_000;

export class ImportError extends Error {
  constructor(file: string, why: string) {
    super(`${file}: ${why}`);
    this.name = "ImportError";
  }
}

export interface ImportOptions {
  readonly pin?: boolean;
  readonly signal?: AbortSignal;
  readonly run?: Exec;
}

/** Between two looks whether the runtime answers by now. */
const LOOK_PERIOD_MS = 500;

export interface WaitOptions {
  readonly clock: Pick<Clock, "uptimeMs" | "sleep">;
  readonly waitMs: number;
  /** Told once, if there is anything to wait for. */
  readonly waiting: (what: string) => void;
  readonly run?: Exec;
}

/** Until containerd answers: right after a start it is still being unpacked. Throws when it does not within `waitMs`. */
export async function waitForRuntime(paths: Pick<RuntimePaths, "binDir" | "socket">, { clock, waitMs, waiting, run = exec }: WaitOptions): Promise<void> {
  const never = new AbortController().signal;
  const startedMs = clock.uptimeMs();
  for (let told = false; ; told = true) {
    const problem = await silence(paths, run);
    if (problem === undefined) return;
    if (clock.uptimeMs() - startedMs >= waitMs) throw new Error(`containerd does not answer at ${paths.socket}: ${problem}. Is Coracle running on this machine, with this data directory?`);
    if (!told) waiting(`waiting up to ${Math.round(waitMs / 1000)} s for containerd at ${paths.socket}: ${problem}`);
    await clock.sleep(LOOK_PERIOD_MS, never);
  }
}

/** Why it does not answer; undefined: it does. */
async function silence({ binDir, socket }: Pick<RuntimePaths, "binDir" | "socket">, run: Exec): Promise<string | undefined> {
  const ctr = join(binDir, "ctr");
  if (process.platform !== "win32" && !existsSync(ctr)) return `${ctr} is not unpacked yet`; // ctr.exe, and a named pipe, there
  if (process.platform !== "win32" && !existsSync(socket)) return "it has not been started yet";
  const { exitCode, stderr } = await run(ctr, ["--connect-timeout", "2s", "--address", socket, "version"]);
  return exitCode === 0 ? undefined : reason(stderr);
}

/** Imports the archive and returns the names of its images, in full. */
export async function importImages(paths: Pick<RuntimePaths, "binDir" | "socket">, file: string, { pin = false, signal, run = exec }: ImportOptions = {}): Promise<string[]> {
  if (!existsSync(file)) throw new ImportError(file, "no such file");
  // by ctr itself: containerd's transfer service, which ctr has do it otherwise, leaves a power cut files without a byte in an image that is there
  const stdin = decompressed(file);
  const args = ["--address", paths.socket, "--namespace", NAMESPACE, "images", "import", "--local", "--sync-fs", ...(pin ? ["--label", PINNED] : []), stdin ? "-" : file];
  const { exitCode, stdout, stderr } = await run(join(paths.binDir, "ctr"), args, { timeoutMs: IMPORT_TIMEOUT_MS, ...(stdin && { stdin }), ...(signal && { signal }) }).catch((error: unknown) => {
    const { cause, code } = error as ExecError;
    throw stdin && code === "failed" && cause instanceof Error ? new ImportError(file, `cut short or damaged: ${cause.message}`) : error;
  });
  if (exitCode !== 0) {
    const unfinished = [...stdout.matchAll(/^unpacking ([\s\S]+?) \(sha256:[0-9a-f]+\)\.\.\.(done)?/gm)].find(([, , done]) => done === undefined)?.[1]; // it is an image already, of which nothing can be started
    if (unfinished !== undefined) await run(join(paths.binDir, "ctr"), ["--address", paths.socket, "--namespace", NAMESPACE, "images", "remove", "--", unfinished], { ...(signal && { signal }) });
    throw new ImportError(file, /no match for platform/.test(stderr) ? `${unfinished ?? "an image in it"} is not for a machine of this kind (${process.platform === "win32" ? "windows" : process.platform}/${process.arch === "x64" ? "amd64" : process.arch})` : reason(stderr));
  }
  const written = new Map([...stdout.matchAll(/^unpacking ([\s\S]+?) \((sha256:[0-9a-f]+)\)\.\.\./gm)].map(([, name, digest]) => [name!, digest!]));
  if (written.size === 0) throw new ImportError(file, "no image in it has a name: save it with one (docker save NAME:TAG)");
  const ctr = async (...args: readonly string[]): Promise<void> => {
    const { exitCode, stderr: said } = await run(join(paths.binDir, "ctr"), ["--address", paths.socket, "--namespace", NAMESPACE, "images", ...args], { ...(signal && { signal }) });
    if (exitCode !== 0) throw new ImportError(file, reason(said));
  };
  const problems: string[] = [];
  const names = new Set<string>();
  for (const [name, digest] of written) {
    const full = fullNameOf(name, digest, (problem) => problems.push(problem));
    if (full !== undefined) names.add(full);
    if (full === name) continue;
    if (full !== undefined) await ctr("tag", "--local", "--force", "--", name, full); // so its labels go along
    await ctr("remove", "--", name);
  }
  if (problems.length > 0) throw new ImportError(file, problems.join("; "));
  return [...names];
}

/** What an archive is packed with, by its first bytes: what it is called is its owner's affair. */
const PACKINGS: readonly { readonly magic: string; readonly packer: string; readonly unpack?: () => Duplex }[] = [
  { magic: "1f8b", packer: "gzip", unpack: createGunzip },
  { magic: "28b52ffd", packer: "zstd", unpack: createZstdDecompress },
  { magic: "425a68", packer: "bzip2" },
  { magic: "fd377a585a00", packer: "xz" },
];
const MAGIC_BYTES = 6;

/** Undefined: ctr reads the file itself; it takes none that is packed. Throws ImportError. */
function decompressed(file: string): Readable | undefined {
  const facts = statSync(file);
  if (facts.isDirectory()) throw new ImportError(file, "is a directory, and no archive");
  if (!facts.isFile()) return createReadStream(file); // of a pipe the first bytes can be read but once, and only by this process
  const first = firstBytes(file);
  const packing = PACKINGS.find(({ magic }) => first.startsWith(magic));
  if (!packing) return undefined;
  if (!packing.unpack) throw new ImportError(file, `is packed with ${packing.packer}, which nothing here unpacks: unpack it first, or pack it with gzip or zstd`);
  const unpacked = packing.unpack(), source = createReadStream(file).on("error", (error) => unpacked.destroy(error));
  return source.pipe(unpacked).on("close", () => source.destroy()); // of what nobody wants to its end the file would stay open
}

function firstBytes(file: string): string {
  const handle = openSync(file, "r");
  try {
    const bytes = Buffer.alloc(MAGIC_BYTES);
    return bytes.subarray(0, readSync(handle, bytes)).toString("hex");
  } finally {
    closeSync(handle);
  }
}

/** A pod's word for an image is looked for in full: one under a short name would be found by none. Undefined, and why, for a name that no pod could say, or that would have pods take it for another image. */
function fullNameOf(name: string, digest: string, wrong: (problem: string) => void): string | undefined {
  try {
    const full = fullName(name);
    if (!full.includes("@") || full.endsWith(`@${digest}`)) return full;
    wrong(`${name} is ${digest}`);
  } catch (error) {
    wrong((error as Error).message);
  }
  return undefined;
}

/** Earlier versions noted, and left in the runtime, what archives called them. */
function isFullName(name: string): boolean {
  try {
    return fullName(name) === name;
  } catch {
    return false;
  }
}

/** containerd tells CRI of an import a moment later, on a busy machine seconds. */
const HEARD_MS_MAX = 30_000;

/** Until CRI has heard of these images: a pod that wanted them before would not find them. Returns those of which it has not heard in time. */
export async function untilCriKnows(names: readonly string[], { cri, clock, signal }: { readonly cri: Pick<Cri, "call">; readonly clock: Pick<Clock, "uptimeMs" | "sleep">; readonly signal: AbortSignal }): Promise<string[]> {
  const startedMs = clock.uptimeMs();
  for (;;) {
    const { images = [] } = await cri.call("ImageService/ListImages", {}, { signal });
    const known = new Set(images.flatMap(({ repo_tags = [], repo_digests = [] }) => [...repo_tags, ...repo_digests]));
    const unknown = names.filter((name) => !known.has(name));
    if (unknown.length === 0 || clock.uptimeMs() - startedMs >= HEARD_MS_MAX) return unknown;
    await clock.sleep(LOOK_PERIOD_MS, signal);
  }
}

export interface ImageName {
  readonly name: string;
  readonly digest: string;
  readonly pinned: boolean;
}

/** Every image by name; those without one are left out. */
export async function listImages(paths: Pick<RuntimePaths, "binDir" | "socket">, { signal, run = exec }: Omit<ImportOptions, "pin"> = {}): Promise<ImageName[]> {
  const result = await run(join(paths.binDir, "ctr"), ["--address", paths.socket, "--namespace", NAMESPACE, "images", "list"], { ...(signal && { signal }) });
  if (result.exitCode !== 0) throw new Error(`images cannot be listed: ${reason(result.stderr)}`);
  return result.stdout.split("\n").slice(1).flatMap((line) => {
    const [name, , digest] = line.split(/\s+/);
    return name === undefined || digest === undefined || name.startsWith("sha256:") ? [] : [{ name, digest, pinned: line.includes(PINNED) }];
  });
}

/** What has been imported: file name → what it was then. */
type Imported = Readonly<Record<string, { readonly sizeBytes: number; readonly modifiedMs: number; readonly images: readonly string[] }>>;

interface ImportDirectoryOptions {
  readonly log: Log;
  readonly signal: AbortSignal;
  /** Asked when an archive cannot be imported: whether the runtime was gone, and is back. Then it is tried once more. */
  readonly isBack?: (signal: AbortSignal) => Promise<boolean>;
  /** Called after each archive, with what was in it. Does not throw. */
  readonly imported?: (images: readonly string[]) => Promise<void>;
  readonly run?: Exec;
}

/** Imports what is new or changed in the images directory, or no longer `present`. A bad archive is reported, and keeps no other. */
export async function importDirectory(paths: RuntimePaths, present: ReadonlySet<string>, { log, signal, isBack = async () => false, imported = async () => undefined, run = exec }: ImportDirectoryOptions): Promise<void> {
  mkdirSync(paths.imagesDir, { recursive: true });
  const files = readdirSync(paths.imagesDir).filter((name) => ARCHIVE.test(name)).sort();
  if (files.length === 0) return;
  const before = readImported(paths.importedFile);
  const after: Record<string, Imported[string]> = {};
  for (const name of files) {
    if (signal.aborted) return;
    try {
      const facts = statSync(join(paths.imagesDir, name));
      if (!facts.isFile()) throw new ImportError(name, "is no file"); // a pipe would keep those after it waiting
      const { size: sizeBytes, mtimeMs: modifiedMs } = facts;
      const known = before[name];
      if (known && known.sizeBytes === sizeBytes && known.modifiedMs === modifiedMs && known.images?.every((image) => present.has(image) && isFullName(image))) {
        after[name] = known;
        continue;
      }
      log.info("importing images", { file: name, sizeBytes });
      const attempt = (): Promise<string[]> => importImages(paths, join(paths.imagesDir, name), { pin: true, signal, run });
      const images = await attempt().catch(async (error: unknown) => {
        if (!signal.aborted && (await isBack(signal))) return await attempt();
        throw error;
      });
      after[name] = { sizeBytes, modifiedMs, images };
      note(paths, { ...before, ...after }); // whoever is stopped among them goes on with the next one: on a small machine each takes minutes
      log.info("images imported", { file: name, images });
      await imported(images);
    } catch (error) {
      log.error("images cannot be imported", { file: name, error });
    }
  }
  note(paths, after);
}

function note({ importedFile }: Pick<RuntimePaths, "importedFile">, imported: Imported): void {
  mkdirSync(dirname(importedFile), { recursive: true });
  writeFileSync(`${importedFile}.new`, JSON.stringify(imported, undefined, 1));
  renameSync(`${importedFile}.new`, importedFile);
}

function readImported(path: string): Imported {
  try {
    const found: unknown = JSON.parse(fileTextSync(path) ?? "{}");
    return typeof found === "object" && found !== null ? (found as Imported) : {};
  } catch (error) {
    if (error instanceof SyntaxError) return {}; // cut off by a crash: importing again does no harm
    throw error;
  }
}

function reason(stderr: string): string {
  return stderr.trim().split("\n").filter((line) => !/ level=(info|warning) /.test(line)).map((line) => line.replace(/^ctr: /, "")).join("; ") || "failed without a word";
}
