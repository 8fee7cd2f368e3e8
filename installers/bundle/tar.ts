/**
 * A tar writer: entries in, one archive out, the same bytes for the same entries.
 *
 * POSIX ustar; a path or link that does not fit its field gets a pax header in front, as GNU tar and Go's archive/tar do.
 * Times are zero and owners are numbers, so that an archive depends on nothing but its content.
 */
export interface TarEntry {
  /** Relative, `/`-separated; a directory may end in `/`. */
  readonly path: string;
  readonly type?: "file" | "directory" | "symlink";
  readonly mode?: number;
  readonly uid?: number;
  readonly gid?: number;
  readonly data?: Uint8Array;
  /** Where a symlink points. */
  readonly target?: string;
}

const BLOCK = 512;
const TYPE_FLAG = { file: "0", directory: "5", symlink: "2" } as const;

/** The whole archive, ended by two zero blocks. */
export function tar(entries: Iterable<TarEntry>): Buffer {
  const out: Uint8Array[] = [];
  for (const entry of entries) {
    const type = entry.type ?? "file";
    const path = type === "directory" && !entry.path.endsWith("/") ? `${entry.path}/` : entry.path;
    const data = type === "file" ? (entry.data ?? new Uint8Array()) : new Uint8Array();
    const pax = [...(fits(path) ? [] : [paxRecord("path", path)]), ...(fits(entry.target ?? "") ? [] : [paxRecord("linkpath", entry.target!)])].join("");
    if (pax !== "") out.push(...blocks(header({ path: "pax", flag: "x", mode: 0o644, size: Buffer.byteLength(pax) }), Buffer.from(pax)));
    const mode = entry.mode ?? (type === "directory" ? 0o755 : 0o644);
    out.push(...blocks(header({ path, flag: TYPE_FLAG[type], mode, size: data.length, target: entry.target ?? "", uid: entry.uid ?? 0, gid: entry.gid ?? 0 }), data));
  }
  out.push(new Uint8Array(2 * BLOCK));
  return Buffer.concat(out);
}

function fits(path: string): boolean {
  return Buffer.byteLength(path) <= 100;
}

/** "<length> <key>=<value>\n", where the length counts its own digits. */
function paxRecord(key: string, value: string): string {
  const rest = ` ${key}=${value}\n`;
  let length = Buffer.byteLength(rest);
  while (String(length).length + Buffer.byteLength(rest) !== length) length = String(length).length + Buffer.byteLength(rest);
  return `${length}${rest}`;
}

function header(entry: { path: string; flag: string; mode: number; size: number; target?: string; uid?: number; gid?: number }): Buffer {
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, offset: number, length: number): void => void block.write(`${value.toString(8).padStart(length - 1, "0")}\0`, offset, "ascii");
  block.write(entry.path, 0, 100);
  octal(entry.mode, 100, 8);
  octal(entry.uid ?? 0, 108, 8);
  octal(entry.gid ?? 0, 116, 8);
  octal(entry.size, 124, 12);
  octal(0, 136, 12);
  block.write("        ", 148, "ascii"); // the checksum counts its own field as spaces
  block.write(entry.flag, 156, "ascii");
  block.write(entry.target ?? "", 157, 100);
  block.write("ustar\x0000", 257, "latin1");
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "ascii");
  return block;
}

function blocks(head: Buffer, data: Uint8Array): Uint8Array[] {
  const padding = (BLOCK - (data.length % BLOCK)) % BLOCK;
  return [head, data, new Uint8Array(padding)];
}
