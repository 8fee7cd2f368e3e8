import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { execOk } from "../os/exec.ts";
import { readTar } from "./tar-reader.ts";

const directory = mkdtempSync(join(tmpdir(), "tar-"));
afterAll(() => rmSync(directory, { recursive: true }));

const long = `${"d".repeat(120)}/${"f".repeat(130)}`;
mkdirSync(join(directory, "in", "d".repeat(120)), { recursive: true });
writeFileSync(join(directory, "in/small"), "hello");
chmodSync(join(directory, "in/small"), 0o750);
writeFileSync(join(directory, "in/empty"), "");
writeFileSync(join(directory, "in", long), "x".repeat(1300));
symlinkSync("small", join(directory, "in/link"));

async function archive(format: string): Promise<Uint8Array> {
  const path = join(directory, `${format}.tar`);
  await execOk("tar", [`--format=${format}`, "--sort=name", "-C", join(directory, "in"), "-cf", path, "."]);
  return Bun.file(path).bytes();
}

async function* pieces(bytes: Uint8Array, length: number): AsyncGenerator<Uint8Array> {
  for (let offset = 0; offset < bytes.length; offset += length) yield bytes.subarray(offset, offset + length);
}

async function listing(bytes: Uint8Array, length: number): Promise<Record<string, string>> {
  const seen: Record<string, string> = {};
  for await (const { path, type, mode, linkTarget, content } of readTar(pieces(bytes, length))) {
    const parts: Uint8Array[] = [];
    for await (const part of content) parts.push(part);
    seen[path.replace(/^\.\//, "")] = type === "symlink" ? `→ ${linkTarget}` : type === "file" ? `${(mode & 0o777).toString(8)} ${Buffer.concat(parts)}` : type;
  }
  return seen;
}

test.each([["gnu", 7], ["gnu", 100_000], ["pax", 513], ["posix", 10_240]] as const)("what tar writes in %s format is read, in pieces of %i bytes", async (format, length) => {
  expect(await listing(await archive(format), length)).toMatchObject({
    ".": "directory", small: "750 hello", empty: expect.stringMatching(/^6\d\d $/), link: "→ small", [long]: expect.stringMatching(/^6\d\d x{1300}$/),
  });
});

test("content nobody reads is skipped", async () => {
  const paths: string[] = [];
  for await (const { path } of readTar(pieces(await archive("gnu"), 100))) paths.push(path);
  expect(paths).toHaveLength(6);
});

test("damage and truncation are errors, not entries", async () => {
  const bytes = await archive("gnu");
  const damaged = bytes.slice();
  damaged[3] = 0xff;
  await expect(listing(damaged, 512)).rejects.toThrow("checksum");
  await expect(listing(bytes.subarray(0, 700), 512)).rejects.toThrow("ends in the middle of");
  await expect(listing(Buffer.from("junk".repeat(200)), 512)).rejects.toThrow("not an archive");
});
