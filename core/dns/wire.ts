/**
 * DNS messages as bytes: questions are read, answers of our own are written, answers of others are walked through without being taken apart.
 *
 * Names are lower-case strings without the final dot; a byte that is neither letter, digit, "-" nor "_" is written \DDD. A question also keeps its bytes, since
 * clients expect their own spelling back.
 *
 * RFC 1035 (format, compression), 2782 (SRV), 3596 (AAAA), 6891 (EDNS0)
 */
export const TYPE = { A: 1, NS: 2, CNAME: 5, SOA: 6, PTR: 12, TXT: 16, AAAA: 28, SRV: 33, OPT: 41, IXFR: 251, AXFR: 252, ANY: 255 } as const;
export const RCODE = { NOERROR: 0, FORMERR: 1, SERVFAIL: 2, NXDOMAIN: 3, NOTIMP: 4, REFUSED: 5, BADVERS: 16 } as const;
export const CLASS_IN = 1;

export const UDP_BYTES_MIN = 512;
/** What fits unfragmented nearly everywhere: DNS flag day 2020. */
export const UDP_BYTES_MAX = 1232;
export const TCP_BYTES_MAX = 65_535;
const HEADER_BYTES = 12;
const NAME_BYTES_MAX = 255, LABEL_BYTES_MAX = 63, POINTERS_MAX = 64;

export interface Question { readonly name: string; readonly nameBytes: Uint8Array; readonly type: number; readonly class: number }

export interface Query {
  readonly id: number;
  readonly opcode: number;
  readonly recursionDesired: boolean;
  readonly checkingDisabled: boolean;
  readonly question: Question;
  /** Absent: the client knows nothing of EDNS. */
  readonly edns: { readonly version: number; readonly udpBytes: number; readonly dnssecOk: boolean } | undefined;
}

export type RecordData =
  | { readonly type: "A" | "AAAA"; readonly address: Uint8Array }
  | { readonly type: "CNAME" | "NS" | "PTR"; readonly target: string }
  | { readonly type: "SRV"; readonly priority: number; readonly weight: number; readonly port: number; readonly target: string }
  | { readonly type: "TXT"; readonly texts: readonly string[] }
  | { readonly type: "SOA"; readonly primary: string; readonly mailbox: string; readonly serial: number; readonly refresh: number; readonly retry: number; readonly expire: number; readonly minimum: number };

export type ResourceRecord = RecordData & { readonly name: string; readonly ttl: number };

export interface Reply {
  readonly rcode: number;
  readonly authoritative: boolean;
  readonly answers: readonly ResourceRecord[];
  readonly authorities: readonly ResourceRecord[];
  readonly additionals: readonly ResourceRecord[];
}

/** The message is not one we can answer but by saying so. `id` is there if it got that far. */
export class FormatError extends Error {
  readonly id: number | undefined;
  constructor(message: string, id?: number) {
    super(message);
    this.name = "FormatError";
    this.id = id;
  }
}

/** Undefined for a message that is no query (an answer, or too short to say): it gets no answer. Throws FormatError. */
export function readQuery(message: Uint8Array): Query | undefined {
  if (message.length < HEADER_BYTES) return undefined;
  const view = viewOf(message);
  const id = view.getUint16(0), flags = view.getUint16(2);
  if ((flags & 0x8000) !== 0) return undefined;
  const opcode = (flags >> 11) & 0xf;
  if (view.getUint16(4) !== 1) throw new FormatError("a query has one question", id);
  try {
    const name = readName(message, HEADER_BYTES);
    if (name.points) throw new FormatError("there is no name yet that a question's could point to", id); // and elsewhere its bytes would mean another
    if (name.end + 4 > message.length) throw new FormatError("the question is cut off", id);
    const question = { name: name.text, nameBytes: message.slice(HEADER_BYTES, name.end), type: view.getUint16(name.end), class: view.getUint16(name.end + 2) };
    const records = opcode === 0 ? walk(message) : [];
    const opt = records.find(({ section, type }) => section === "additional" && type === TYPE.OPT);
    const edns = opt && { version: (opt.ttl >>> 16) & 0xff, udpBytes: opt.class, dnssecOk: (opt.ttl & 0x8000) !== 0 };
    return { id, opcode, recursionDesired: (flags & 0x0100) !== 0, checkingDisabled: (flags & 0x0010) !== 0, question, edns };
  } catch (error) {
    throw error instanceof FormatError ? new FormatError(error.message, id) : error;
  }
}

export interface WalkedRecord {
  readonly section: "answer" | "authority" | "additional";
  /** Where its name is, for readName: a message may have thousands of records, each with a name of 127 labels in two bytes. */
  readonly nameOffset: number;
  readonly type: number;
  readonly class: number;
  readonly ttl: number;
  readonly ttlOffset: number;
  readonly dataOffset: number;
  readonly dataBytes: number;
}

/** All records of a message, in order. Throws FormatError. */
export function walk(message: Uint8Array): WalkedRecord[] {
  if (message.length < HEADER_BYTES) throw new FormatError("shorter than a header");
  const view = viewOf(message);
  let at = HEADER_BYTES;
  for (let i = view.getUint16(4); i > 0; i--) at = nameEnd(message, at) + 4;
  const records: WalkedRecord[] = [];
  for (const [section, offset] of [["answer", 6], ["authority", 8], ["additional", 10]] as const) {
    for (let i = view.getUint16(offset); i > 0; i--) {
      const nameOffset = at, end = nameEnd(message, at);
      if (end + 10 > message.length) throw new FormatError("a record is cut off");
      const dataBytes = view.getUint16(end + 8);
      if (end + 10 + dataBytes > message.length) throw new FormatError("a record is cut off");
      records.push({ section, nameOffset, type: view.getUint16(end), class: view.getUint16(end + 2), ttl: view.getUint32(end + 4), ttlOffset: end + 4, dataOffset: end + 10, dataBytes });
      at = end + 10 + dataBytes;
    }
  }
  return records;
}

/** The addresses and aliases among the answers of somebody else's message. */
export function addressRecords(message: Uint8Array): ResourceRecord[] {
  return walk(message).flatMap(({ section, nameOffset, type, ttl, dataOffset, dataBytes }): ResourceRecord[] => {
    if (section !== "answer" || ![TYPE.A, TYPE.AAAA, TYPE.CNAME].includes(type as 1)) return [];
    const name = readName(message, nameOffset).text;
    if (type === TYPE.A && dataBytes === 4) return [{ type: "A", name, ttl, address: message.slice(dataOffset, dataOffset + 4) }];
    if (type === TYPE.AAAA && dataBytes === 16) return [{ type: "AAAA", name, ttl, address: message.slice(dataOffset, dataOffset + 16) }];
    if (type === TYPE.CNAME) return [{ type: "CNAME", name, ttl, target: readName(message, dataOffset).text }];
    return [];
  });
}

/** `end`: the offset after the name, where it stands; `points`: the rest of it stands elsewhere. Throws FormatError for what is no name, in bounded time. */
export function readName(message: Uint8Array, start: number): { readonly text: string; readonly end: number; readonly points: boolean } {
  const labels: string[] = [];
  const { end, points } = followName(message, start, (at, length) => labels.push(labelText(message.subarray(at, at + length))));
  return { text: labels.join("."), end, points };
}

/** The same without its text, of which nobody wants to know. */
function nameEnd(message: Uint8Array, start: number): number { return followName(message, start, undefined).end; }

function followName(message: Uint8Array, start: number, onLabel: ((at: number, length: number) => void) | undefined): { readonly end: number; readonly points: boolean } {
  let at = start, end = -1, bytes = 0;
  for (let pointers = 0; ; ) {
    const length = message[at];
    if (length === undefined) throw new FormatError("a name is cut off");
    if (length >= 0xc0) {
      const low = message[at + 1];
      if (low === undefined || ++pointers > POINTERS_MAX) throw new FormatError("a name points astray");
      if (end < 0) end = at + 2;
      at = ((length & 0x3f) << 8) | low;
      continue;
    }
    if (length > LABEL_BYTES_MAX) throw new FormatError("a label of an unknown kind");
    if (length === 0) return { end: end < 0 ? at + 1 : end, points: end >= 0 };
    if (at + 1 + length > message.length || (bytes += length + 1) > NAME_BYTES_MAX) throw new FormatError("a name is too long");
    onLabel?.(at + 1, length);
    at += length + 1;
  }
}

function labelText(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) {
    const lower = byte >= 0x41 && byte <= 0x5a ? byte + 32 : byte;
    const plain = (lower >= 0x61 && lower <= 0x7a) || (lower >= 0x30 && lower <= 0x39) || lower === 0x2d || lower === 0x5f;
    text += plain ? String.fromCharCode(lower) : `\\${String(byte).padStart(3, "0")}`;
  }
  return text;
}

/** An answer to `query` of at most `bytesMax` bytes: what does not fit is left out and the message marked as truncated. */
export function writeReply(query: Query, reply: Reply, bytesMax: number): Uint8Array {
  const writer = new Writer(query.question.nameBytes, bytesMax - (query.edns ? 11 : 0));
  const { question: { nameBytes, type, class: classNumber } } = query;
  const out = writer.bytes;
  out.set(nameBytes, HEADER_BYTES);
  writer.at = HEADER_BYTES + nameBytes.length;
  writer.u16(type);
  writer.u16(classNumber);
  let truncated = false;
  const counts = ([reply.answers, reply.authorities, reply.additionals] as const).map((records, section) => {
    let count = 0;
    for (const record of records) {
      if (truncated || !writer.record(record)) {
        if (section < 2) truncated = true; // additional records are a courtesy
        break;
      }
      count++;
    }
    return count;
  });
  if (query.edns) {
    writer.limit += 11;
    writer.opt(reply.rcode >> 4, query.edns.dnssecOk); // RFC 3225 section 3
    counts[2]!++;
  }
  const view = viewOf(out);
  view.setUint16(0, query.id);
  view.setUint16(2, 0x8000 | (query.opcode << 11) | (reply.authoritative ? 0x0400 : 0) | (truncated ? 0x0200 : 0) | (query.recursionDesired ? 0x0100 : 0) | 0x0080 | (query.checkingDisabled ? 0x0010 : 0) | (reply.rcode & 0xf));
  view.setUint16(4, 1);
  for (const [i, count] of counts.entries()) view.setUint16(6 + 2 * i, count);
  return out.slice(0, writer.at);
}

/** A header alone, for a message whose question could not be read. */
export function writeError(id: number, rcode: number): Uint8Array {
  const out = new Uint8Array(HEADER_BYTES);
  const view = viewOf(out);
  view.setUint16(0, id);
  view.setUint16(2, 0x8000 | rcode);
  return out;
}

/** The same question, for another server. */
export function writeQuery(id: number, { question, checkingDisabled, edns }: Pick<Query, "question" | "checkingDisabled" | "edns">): Uint8Array {
  const writer = new Writer(question.nameBytes, UDP_BYTES_MIN);
  const view = viewOf(writer.bytes);
  view.setUint16(0, id);
  view.setUint16(2, 0x0100 | (checkingDisabled ? 0x0010 : 0));
  view.setUint16(4, 1);
  view.setUint16(10, edns ? 1 : 0);
  writer.bytes.set(question.nameBytes, HEADER_BYTES);
  writer.at = HEADER_BYTES + question.nameBytes.length;
  writer.u16(question.type);
  writer.u16(question.class);
  if (edns) writer.opt(0, edns.dnssecOk);
  return writer.bytes.slice(0, writer.at);
}

/** The bytes of a name that is not compressed. */
export function nameBytes(name: string): Uint8Array {
  const bytes: number[] = [];
  for (const label of name === "" ? [] : name.split(".")) {
    const raw = labelBytes(label);
    bytes.push(raw.length, ...raw);
  }
  return Uint8Array.from([...bytes, 0]);
}

function labelBytes(label: string): number[] {
  const bytes: number[] = [];
  for (let i = 0; i < label.length; i++) {
    if (label[i] === "\\") {
      bytes.push(Number(label.slice(i + 1, i + 4)));
      i += 3;
    } else bytes.push(label.charCodeAt(i) & 0xff);
  }
  if (bytes.length === 0 || bytes.length > LABEL_BYTES_MAX) throw new FormatError(`"${label}" is no label`);
  return bytes;
}

class Writer {
  readonly bytes: Uint8Array;
  readonly #view: DataView;
  readonly #names = new Map<string, number>();
  at = HEADER_BYTES;
  limit: number;

  constructor(question: Uint8Array, limit: number) {
    this.bytes = new Uint8Array(limit + 16);
    this.#view = viewOf(this.bytes);
    this.limit = limit;
    const text = readName(question, 0).text;
    if (text !== "") this.#names.set(text, HEADER_BYTES);
  }

  u16(value: number): void {
    this.#view.setUint16(this.at, value);
    this.at += 2;
  }

  /** False, and nothing written, if there is no room. */
  record(record: ResourceRecord): boolean {
    const start = this.at;
    try {
      this.#name(record.name, true);
      this.#room(10);
      this.u16(TYPE[record.type]);
      this.u16(CLASS_IN);
      this.#u32(record.ttl);
      const lengthAt = this.at;
      this.at += 2;
      this.#data(record);
      this.#view.setUint16(lengthAt, this.at - lengthAt - 2);
      return true;
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      this.at = start;
      for (const [name, at] of this.#names) if (at >= start) this.#names.delete(name);
      return false;
    }
  }

  opt(extendedRcode: number, dnssecOk = false): void {
    this.bytes[this.at++] = 0;
    this.u16(TYPE.OPT);
    this.u16(UDP_BYTES_MAX);
    this.#u32(((extendedRcode << 24) | (dnssecOk ? 0x8000 : 0)) >>> 0);
    this.u16(0);
  }

  #data(record: ResourceRecord): void {
    switch (record.type) {
      case "A": case "AAAA":
        this.#raw(record.address);
        return;
      case "CNAME": case "NS": case "PTR":
        this.#name(record.target, true);
        return;
      case "SRV":
        this.#room(6);
        this.u16(record.priority);
        this.u16(record.weight);
        this.u16(record.port);
        this.#name(record.target, false);
        return;
      case "TXT":
        for (const text of record.texts) {
          const raw = Buffer.from(text).subarray(0, 255);
          this.#raw(Uint8Array.from([raw.length, ...raw]));
        }
        return;
      case "SOA":
        this.#name(record.primary, true);
        this.#name(record.mailbox, true);
        this.#room(20);
        for (const value of [record.serial, record.refresh, record.retry, record.expire, record.minimum]) this.#u32(value);
    }
  }

  #name(name: string, compress: boolean): void {
    let rest = name;
    while (rest !== "") {
      const known = compress ? this.#names.get(rest) : undefined;
      if (known !== undefined) {
        this.#room(2);
        this.u16(0xc000 | known);
        return;
      }
      if (compress && this.at < 0x4000) this.#names.set(rest, this.at);
      const dot = rest.indexOf(".");
      const raw = labelBytes(dot < 0 ? rest : rest.slice(0, dot));
      this.#raw(Uint8Array.from([raw.length, ...raw]));
      rest = dot < 0 ? "" : rest.slice(dot + 1);
    }
    this.#raw(Uint8Array.of(0));
  }

  #raw(bytes: Uint8Array): void {
    this.#room(bytes.length);
    this.bytes.set(bytes, this.at);
    this.at += bytes.length;
  }

  #u32(value: number): void {
    this.#view.setUint32(this.at, value);
    this.at += 4;
  }

  #room(bytes: number): void {
    if (this.at + bytes > this.limit) throw new RangeError("the message is full");
  }
}

function viewOf(bytes: Uint8Array): DataView { return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength); }
