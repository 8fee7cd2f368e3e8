/**
 * Reads a tar archive as it comes in, without holding more than a chunk of it: POSIX ustar with pax headers, and GNU tar's long names.
 *
 *   for await (const entry of readTar(chunks)) { … for await (const bytes of entry.content) … }
 *
 * An entry's content must be read before the next entry is asked for; what was not read is skipped.
 */
export interface TarEntry {
  /** As written in the archive, without a trailing "/". The caller decides what is a safe path. */
  readonly path: string;
  readonly type: "file" | "directory" | "symlink" | "hardlink" | "other";
  readonly mode: number;
  readonly sizeBytes: number;
  readonly linkTarget: string;
  readonly content: AsyncIterable<Uint8Array>;
}

export class TarError extends Error {
  constructor(message: string) {
    super(`tar archive: ${message}`);
    this.name = "TarError";
  }
}

const BLOCK = 512;
/** Of pax headers and long names, which are held in memory. */
const HEADER_BYTES_MAX = 1 << 20;
const TYPES: Readonly<Record<string, TarEntry["type"]>> = { "0": "file", "\0": "file", "7": "file", "5": "directory", "2": "symlink", "1": "hardlink" };

export async function* readTar(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<TarEntry> {
  const input = new Input(chunks);
  let overrides: Record<string, string> = {};
  try {
    for (;;) {
      const block = await input.take(BLOCK);
      if (block.length === 0 || block.every((byte) => byte === 0)) return; // the end, or a writer that left the end marker out
      if (block.length < BLOCK) throw new TarError("ends in the middle of a header");
      const header = parseHeader(block);
      if ("xgLK".includes(header.flag)) {
        if (header.sizeBytes > HEADER_BYTES_MAX) throw new TarError(`header of ${header.sizeBytes} bytes`);
        const bytes = await input.take(header.sizeBytes);
        await input.skip(padding(header.sizeBytes));
        if (header.flag === "x") overrides = { ...overrides, ...parsePax(bytes) };
        if (header.flag === "L") overrides["path"] = text(bytes);
        if (header.flag === "K") overrides["linkpath"] = text(bytes);
        continue; // "g" sets defaults that no entry of ours depends on
      }
      const type = TYPES[header.flag] ?? "other";
      const sizeBytes = type === "file" ? Number(overrides["size"] ?? header.sizeBytes) : 0;
      const content = input.limited(sizeBytes);
      yield { path: (overrides["path"] ?? header.path).replace(/\/+$/, ""), type, mode: header.mode, sizeBytes, linkTarget: overrides["linkpath"] ?? header.linkTarget, content };
      for await (const _ of content); // what the caller left
      await input.skip(padding(sizeBytes));
      overrides = {};
    }
  } finally {
    await input.end();
  }
}

function parseHeader(block: Uint8Array): { path: string; mode: number; sizeBytes: number; flag: string; linkTarget: string } {
  const field = (offset: number, length: number): Uint8Array => block.subarray(offset, offset + length);
  const sum = block.reduce((total, byte, i) => total + (i >= 148 && i < 156 ? 32 : byte), 0); // the checksum's own field counts as spaces
  if (sum !== number(field(148, 8))) throw new TarError("not an archive, or damaged: a header's checksum is wrong");
  const prefix = text(field(257, 5)) === "ustar" && field(263, 2).every((byte) => byte === 48) ? text(field(345, 155)) : ""; // GNU's old format has other fields there
  const name = text(field(0, 100));
  return { path: prefix === "" ? name : `${prefix}/${name}`, mode: number(field(100, 8)), sizeBytes: number(field(124, 12)), flag: String.fromCharCode(block[156]!), linkTarget: text(field(157, 100)) };
}

/** Octal, or GNU's base 256 for what does not fit. */
function number(bytes: Uint8Array): number {
  if (bytes[0]! & 0x80) return bytes.reduce((value, byte, i) => value * 256 + (i === 0 ? byte & 0x7f : byte), 0);
  const digits = text(bytes).trim();
  if (!/^[0-7]*$/.test(digits)) throw new TarError(`not an archive, or damaged: ${JSON.stringify(digits)} is not a number`);
  return digits === "" ? 0 : Number.parseInt(digits, 8);
}

/** Records of the form "<length> <key>=<value>\n". */
function parsePax(bytes: Uint8Array): Record<string, string> {
  const records: Record<string, string> = {};
  for (let offset = 0; offset < bytes.length;) {
    const blank = bytes.indexOf(32, offset);
    const length = Number(text(bytes.subarray(offset, blank)));
    if (blank < 0 || !(length > blank - offset) || offset + length > bytes.length) throw new TarError("malformed pax header");
    const record = Buffer.from(bytes.subarray(blank + 1, offset + length - 1)).toString("utf8");
    const equals = record.indexOf("=");
    records[record.slice(0, equals)] = record.slice(equals + 1);
    offset += length;
  }
  return records;
}

function text(bytes: Uint8Array): string {
  const end = bytes.indexOf(0);
  return Buffer.from(end < 0 ? bytes : bytes.subarray(0, end)).toString("utf8");
}

function padding(sizeBytes: number): number {
  return (BLOCK - (sizeBytes % BLOCK)) % BLOCK;
}

/** A stream of chunks from which an exact number of bytes can be taken. */
class Input {
  readonly #iterator: AsyncIterator<Uint8Array>;
  #rest: Uint8Array = new Uint8Array();

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#iterator = chunks[Symbol.asyncIterator]();
  }

  /** Exactly `length` bytes, or fewer at the end of the stream. */
  async take(length: number): Promise<Uint8Array> {
    const parts: Uint8Array[] = [];
    let missing = length;
    while (missing > 0) {
      const part = await this.#some(missing);
      if (part === undefined) break;
      parts.push(part);
      missing -= part.length;
    }
    return parts.length === 1 ? parts[0]! : Buffer.concat(parts);
  }

  async skip(length: number): Promise<void> {
    for await (const _ of this.limited(length));
  }

  /** The next `length` bytes, once: iterating again goes on where the last iteration stopped. */
  limited(length: number): AsyncIterable<Uint8Array> {
    let missing = length;
    const next = async (): Promise<IteratorResult<Uint8Array>> => {
      if (missing === 0) return { done: true, value: undefined };
      const part = await this.#some(missing);
      if (part === undefined) throw new TarError("ends in the middle of a file");
      missing -= part.length;
      return { done: false, value: part };
    };
    return { [Symbol.asyncIterator]: () => ({ next }) };
  }

  async end(): Promise<void> {
    await this.#iterator.return?.();
  }

  async #some(max: number): Promise<Uint8Array | undefined> {
    while (this.#rest.length === 0) {
      const { done, value } = await this.#iterator.next();
      if (done) return undefined;
      this.#rest = value;
    }
    const part = this.#rest.subarray(0, max);
    this.#rest = this.#rest.subarray(part.length);
    return part;
  }
}
