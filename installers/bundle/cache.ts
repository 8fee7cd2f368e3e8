/**
 * What builds leave for the next build: ${XDG_CACHE_HOME:-~/.cache}/coracle, outside the tree. Every entry is named by what it was made from, so nothing in it goes
 * stale, and the whole may be deleted at any time.
 */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";

export function cacheDirectory(...parts: string[]): string {
  return join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "coracle", ...parts);
}

export function sha256(bytes: Uint8Array | string): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** Writes the file whole or not at all. */
export function writeWhole(path: string, bytes: Uint8Array | string, mode = 0o644): void {
  mkdirSync(dirname(path), { recursive: true });
  const temporary = `${path}.${process.pid}.tmp`;
  writeFileSync(temporary, bytes, { mode });
  renameSync(temporary, path);
}

/** An empty directory, removed when disposed. */
export function scratchDirectory(name: string): { readonly path: string } & Disposable {
  const path = cacheDirectory("tmp", `${name}-${process.pid}`);
  rmSync(path, { recursive: true, force: true });
  mkdirSync(path, { recursive: true });
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

/** Hash of files of this folder: what is made by them is made anew when they change. */
export function hashOf(...parts: readonly (string | Uint8Array)[]): string {
  return sha256(JSON.stringify(parts.map((part) => (typeof part === "string" ? part : sha256(part))))).slice(0, 16);
}

export function readBytes(path: string): Uint8Array {
  return readFileSync(path);
}
