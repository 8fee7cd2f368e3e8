import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { silentLog } from "../../core/observe/log.ts";
import { removeDamagedDatabases, removeUnusableDatabases } from "./damaged-databases.ts";

let root = "";
beforeEach(() => { root = mkdtempSync(join(tmpdir(), "databases-")); });
afterEach(() => rmSync(root, { recursive: true }));

const PAGE_BYTES = 4096;
function meta(transaction: number, pages: number): Buffer {
  const bytes = Buffer.alloc(64);
  for (const [at, value] of [[0, 0xed0cdaed], [4, 2], [8, PAGE_BYTES]] as const) bytes.writeUInt32LE(value, at);
  bytes.writeBigUInt64LE(BigInt(pages), 40);
  bytes.writeBigUInt64LE(BigInt(transaction), 48);
  bytes.writeBigUInt64LE(bytes.subarray(0, 56).reduce((hash, byte) => BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n), 0xcbf29ce484222325n), 56);
  return bytes;
}
/** Of eight pages; the second transaction has six of them, the first four. */
function database(): Buffer {
  const bytes = Buffer.alloc(8 * PAGE_BYTES);
  meta(1, 4).copy(bytes, 16);
  meta(2, 6).copy(bytes, PAGE_BYTES + 16);
  return bytes;
}
function changed(bytes: Buffer, ...at: readonly number[]): Buffer {
  for (const place of at) bytes[place]! ^= 1;
  return bytes;
}

const METADATA = "io.containerd.metadata.v1.bolt/meta.db", SNAPSHOTS = "io.containerd.snapshotter.v1.overlayfs/metadata.db", LAYER = "io.containerd.snapshotter.v1.overlayfs/snapshots/1/fs/file";
function put(files: Readonly<Record<string, Uint8Array>>): void {
  for (const [name, bytes] of Object.entries({ [LAYER]: Buffer.from("x"), ...files })) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), bytes);
  }
}
const left = (): string[] => [METADATA, SNAPSHOTS, LAYER].filter((name) => existsSync(join(root, name)));

test.each<[string, Buffer, boolean]>([
  ["whole", database(), false],
  ["longer than it has to be", database().subarray(0, 6 * PAGE_BYTES), false],
  ["in the midst of a transaction", changed(database(), PAGE_BYTES + 16 + 40), false],
  ["so, and without the pages that it would have had", changed(database(), PAGE_BYTES + 16 + 40).subarray(0, 4 * PAGE_BYTES), false],
  ["without its first page", changed(database(), 16), false],
  ["cut in half", database().subarray(0, 4 * PAGE_BYTES), true],
  ["empty", Buffer.alloc(0), true],
  ["zeros", Buffer.alloc(8 * PAGE_BYTES), true],
  ["without a page that says what it is", changed(database(), 16, PAGE_BYTES + 16), true],
])("a database that is %s", (_, bytes, damaged) => {
  put({ [METADATA]: bytes, [SNAPSHOTS]: database() });
  removeDamagedDatabases({ root }, silentLog);
  expect(left()).toEqual(damaged ? [SNAPSHOTS, LAYER] : [METADATA, SNAPSHOTS, LAYER]);
});

test("without its database a snapshotter begins anew, and what containerd knows of its snapshots goes, too; nothing is there at a node's first start", () => {
  removeDamagedDatabases({ root: join(root, "none") }, silentLog);
  put({ [METADATA]: database(), [SNAPSHOTS]: Buffer.alloc(0) });
  removeDamagedDatabases({ root }, silentLog);
  expect(left()).toEqual([]);
});

test("of one that is whole at its ends but ends containerd each time its own goes first, then those of snapshotters; what ends for another reason keeps all", () => {
  const panic = ["panic: assertion failed: Page expected to be: 3, but self identifies as 0", "goroutine 1 [running]:", "go.etcd.io/bbolt.(*Tx).page(0x10?, 0x3b7ba41263c0?)"], told: unknown[] = [];
  const log = { error: (_: string, fields?: Readonly<Record<string, unknown>>) => void told.push(fields?.["said"]) };
  put({ [METADATA]: database(), [SNAPSHOTS]: database() });
  expect([removeUnusableDatabases({ root }, { lines: ["loading plugin io.containerd.metadata.v1.bolt", "containerd: no room"], isFirst: true }, log), left()]).toEqual([false, [METADATA, SNAPSHOTS, LAYER]]);
  expect([removeUnusableDatabases({ root }, { lines: panic, isFirst: true }, log), left()]).toEqual([true, [SNAPSHOTS, LAYER]]);
  put({ [METADATA]: database() });
  expect([removeUnusableDatabases({ root }, { lines: panic, isFirst: false }, log), left()]).toEqual([true, []]);
  expect([removeUnusableDatabases({ root }, { lines: panic, isFirst: false }, log), told]).toEqual([false, [panic[0], panic[0], panic[0]]]);
  put({ [METADATA]: database(), [SNAPSHOTS]: database() });
  expect([removeUnusableDatabases({ root }, { lines: [...panic, "github.com/containerd/containerd/v2/core/snapshots/storage.WalkInfo({0x2b3e858, 0x18009709a460})"], isFirst: true }, log), left()]).toEqual([true, []]);
});
