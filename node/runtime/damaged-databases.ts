/**
 * containerd's databases, which are bbolt's, after a loss of power: with one that is cut off containerd does not answer, or ends over and over; with one that is empty it forgets its snapshots and goes
 * on believing that images are unpacked, so that no container starts any more. What is damaged is removed, and what cannot go on without it: images are imported or pulled again, pods are started anew.
 *
 * Only while containerd does not run. A transaction that a loss of power has cut off is no damage: the page of the one before counts then.
 *
 * The file: go.etcd.io/bbolt internal/common/meta.go, inode and page layouts are not looked at.
 *   page 0, 1   page header of 16 bytes, then magic, version, page size, flags (u32 each), root (u64 twice), free list, end in pages, transaction, FNV-1a of all before (u64 each)
 */
import { closeSync, existsSync, fstatSync, openSync, readdirSync, readSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Log } from "../../core/observe/log.ts";
import type { RuntimePaths } from "./paths.ts";

const METADATA = "io.containerd.metadata.v1.bolt/meta.db";
/** Of a stack. */
const BBOLT = /^go\.etcd\.io\/bbolt/;
/** Of one that was about a snapshotter's database. Without it containerd's own is of no use. */
const SNAPSHOTS = /^github\.com\/containerd\/containerd\/v2\/(core\/snapshots\/storage\.|core\/metadata\.\(\*snapshotter\))/;
const SAID = /^(panic|fatal error|unexpected fault address)/;
const SNAPSHOTTER = /^io\.containerd\.snapshotter\.v1\./;
const MAGIC = 0xed0cdaed, VERSION = 2, PAGE_HEADER_BYTES = 16, META_BYTES = 64, SUMMED_BYTES = META_BYTES - 8;
/** Of 4 KiB and more, as the machine has them. */
const PAGE_BYTES_MAX = 64 * 1024;

export function removeDamagedDatabases({ root }: Pick<RuntimePaths, "root">, log: Pick<Log, "error">): void {
  const metadata = join(root, METADATA);
  const snapshotters = (existsSync(root) ? readdirSync(root) : []).filter((name) => SNAPSHOTTER.test(name)).map((name) => join(root, name)).filter((path) => isDamaged(join(path, "metadata.db")));
  const doomed = [...snapshotters, ...(snapshotters.length > 0 || isDamaged(metadata) ? [metadata] : [])];
  for (const path of doomed) {
    log.error("a database of containerd's was damaged: it begins anew, and images have to be had again", { path });
    rmSync(path, { recursive: true, force: true });
  }
}

/**
 * Of a database that is whole at its ends a page within can be another: then bbolt ends containerd at each start, or soon after. `lines`: containerd's last. Its own is the
 * one to go first; where that has not helped, or the stack says so, those of its snapshotters go as well. False: it is not that.
 */
export function removeUnusableDatabases({ root }: Pick<RuntimePaths, "root">, { lines, isFirst }: { readonly lines: readonly string[]; readonly isFirst: boolean }, log: Pick<Log, "error">): boolean {
  if (!lines.some((line) => BBOLT.test(line))) return false;
  const all = existsSync(root) ? readdirSync(root).filter((name) => SNAPSHOTTER.test(name)) : [];
  const found = [...(isFirst && !lines.some((line) => SNAPSHOTS.test(line)) ? [] : all), METADATA].map((name) => join(root, name)).filter((path) => existsSync(path));
  for (const path of found) {
    log.error("a database of containerd's ends it again and again, it must be damaged: it begins anew, and images have to be had again", { path, said: lines.find((line) => SAID.test(line)) });
    rmSync(path, { recursive: true, force: true });
  }
  return found.length > 0;
}

/** False: it is not there, too. */
function isDamaged(path: string): boolean {
  if (!existsSync(path)) return false;
  const file = openSync(path, "r");
  try {
    const { size } = fstatSync(file);
    const bytes = Buffer.alloc(Math.min(size, PAGE_BYTES_MAX + PAGE_HEADER_BYTES + META_BYTES));
    readSync(file, bytes, 0, bytes.length, 0);
    const first = metaAt(bytes, 0);
    const metas = [first, ...(first ? [metaAt(bytes, first.pageBytes)] : [4096, 16_384, PAGE_BYTES_MAX].map((at) => metaAt(bytes, at)))].flatMap((meta) => meta ?? []);
    const [newest] = metas.sort((a, b) => (a.transaction < b.transaction ? 1 : -1));
    return newest === undefined || BigInt(size) < newest.pages * BigInt(newest.pageBytes);
  } catch {
    return true; // it cannot be read
  } finally {
    closeSync(file);
  }
}

interface Meta { readonly pageBytes: number; readonly pages: bigint; readonly transaction: bigint }

/** Undefined: there is none that is whole. */
function metaAt(bytes: Buffer, page: number): Meta | undefined {
  const meta = bytes.subarray(page + PAGE_HEADER_BYTES, page + PAGE_HEADER_BYTES + META_BYTES);
  if (meta.length < META_BYTES || meta.readUInt32LE(0) !== MAGIC || meta.readUInt32LE(4) !== VERSION) return undefined;
  if (fnv1a(meta.subarray(0, SUMMED_BYTES)) !== meta.readBigUInt64LE(SUMMED_BYTES)) return undefined;
  return { pageBytes: meta.readUInt32LE(8), pages: meta.readBigUInt64LE(40), transaction: meta.readBigUInt64LE(48) };
}

function fnv1a(bytes: Uint8Array): bigint {
  let hash = 0xcbf29ce484222325n;
  for (const byte of bytes) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  return hash;
}
