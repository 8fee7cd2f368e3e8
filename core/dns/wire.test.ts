import { expect, test, vi } from "vitest";
import { addressRecords, FormatError, nameBytes, type Query, RCODE, readName, readQuery, type Reply, TYPE, walk, writeError, writeQuery, writeReply } from "./wire.ts";

const query = (name: string, rest: Partial<Query> = {}): Query => ({
  id: 0x1234, opcode: 0, recursionDesired: true, checkingDisabled: false, edns: undefined, question: { name: name.toLowerCase(), nameBytes: nameBytes(name), type: TYPE.A, class: 1 }, ...rest,
});
const reply = (rest: Partial<Reply>): Reply => ({ rcode: 0, authoritative: true, answers: [], authorities: [], additionals: [], ...rest });
const a = (name: string, last: number) => ({ type: "A", name, ttl: 30, address: Uint8Array.of(10, 0, 0, last) }) as const;

test("a question comes back as it was asked, whatever its spelling", () => {
  const asked = query("Web.Default.svc.cluster.LOCAL", { edns: { version: 0, udpBytes: 1232, dnssecOk: true } });
  const read = readQuery(writeQuery(7, asked))!;
  expect(read).toMatchObject({ id: 7, recursionDesired: true, question: { name: "web.default.svc.cluster.local", type: 1, class: 1 }, edns: { version: 0, udpBytes: 1232, dnssecOk: true } });
  const answer = writeReply(read, reply({ answers: [a("web.default.svc.cluster.local", 1)] }), 512);
  expect(Buffer.from(answer).includes("Default")).toBe(true);
  expect([answer[2], answer[3]]).toEqual([0x85, 0x80]); // aa, rd, and ra: we ask others for the rest, and nslookup warns without it
  expect(addressRecords(answer)).toEqual([a("web.default.svc.cluster.local", 1)]);
});

test("every kind of record survives, names compressed", () => {
  const name = "_http._tcp.db.default.svc.cluster.local", host = "db-0.db.default.svc.cluster.local";
  const bytes = writeReply(query(name), reply({
    answers: [{ type: "SRV", name, ttl: 5, priority: 0, weight: 100, port: 8080, target: host }, { type: "TXT", name, ttl: 5, texts: ["1.1.0"] }, { type: "CNAME", name, ttl: 5, target: host }],
    authorities: [{ type: "SOA", name: "cluster.local", ttl: 5, primary: "ns.dns.cluster.local", mailbox: "hostmaster.cluster.local", serial: 1, refresh: 2, retry: 3, expire: 4, minimum: 5 }],
    additionals: [a(host, 2), { type: "AAAA", name: host, ttl: 5, address: new Uint8Array(16).fill(7) }],
  }), 512);
  const records = walk(bytes);
  expect(records.map(({ section, nameOffset, type }) => `${section} ${readName(bytes, nameOffset).text} ${type}`)).toEqual([
    `answer ${name} 33`, `answer ${name} 16`, `answer ${name} 5`, "authority cluster.local 6", `additional ${host} 1`, `additional ${host} 28`,
  ]);
  expect(readName(bytes, records[2]!.dataOffset).text).toBe(host);
  expect(bytes.length).toBeLessThan(280);
});

test("what does not fit is left out and said to be", () => {
  const many = Array.from({ length: 100 }, (_, i) => a("big.default.svc.cluster.local", i));
  const asked = query("big.default.svc.cluster.local", { edns: { version: 0, udpBytes: 512, dnssecOk: false } });
  const bytes = writeReply(asked, reply({ answers: many }), 512);
  expect(bytes.length).toBeLessThanOrEqual(512);
  expect(bytes[2]! & 0x02).toBe(0x02);
  expect(walk(bytes).filter(({ section }) => section === "answer").length).toBeGreaterThan(20);
  expect(walk(bytes).at(-1)!.type).toBe(TYPE.OPT);
  const courtesy = writeReply(query("x.y"), reply({ answers: [a("x.y", 1)], additionals: many }), 512);
  expect(courtesy[2]! & 0x02).toBe(0); // additional records may be missing
});

test("extended codes travel in the OPT record", () => {
  for (const dnssecOk of [true, false]) expect((walk(writeReply(query("x", { edns: { version: 0, udpBytes: 512, dnssecOk } }), reply({}), 512)).at(-1)!.ttl & 0x8000) !== 0, "DO is given back").toBe(dnssecOk);
  const bytes = writeReply(query("x", { edns: { version: 5, udpBytes: 512, dnssecOk: false } }), reply({ rcode: RCODE.BADVERS }), 512);
  expect(bytes[3]! & 0xf).toBe(0);
  expect(walk(bytes)[0]!.ttl >>> 24).toBe(1);
});

test("names with bytes that are no letters stay apart, and come back", () => {
  const odd = String.raw`a\046b.c\000d.example`;
  expect(readName(nameBytes(odd), 0)).toEqual({ text: odd, end: nameBytes(odd).length, points: false });
});

test.each([
  ["two questions", (bytes: Uint8Array) => { bytes[5] = 2; return bytes; }],
  ["a question that is cut off", (bytes: Uint8Array) => bytes.slice(0, 20)],
  ["a name that points at itself", (bytes: Uint8Array) => Uint8Array.from([...bytes.slice(0, 12), 0xc0, 12, 0, 1, 0, 1])],
  ["a name that goes on in the header", (bytes: Uint8Array) => Uint8Array.from([...bytes.slice(0, 12), 1, 97, 0xc0, 4, 0, 1, 0, 1])],
  ["a record that is cut off", (bytes: Uint8Array) => { bytes[11] = 1; return bytes; }],
])("refused: %s", (_, spoil) => {
  expect(() => readQuery(spoil(writeQuery(1, query("example.test"))))).toThrow(FormatError);
});

test("answers and scraps are no queries", () => {
  expect(readQuery(writeError(1, RCODE.FORMERR))).toBeUndefined();
  expect(readQuery(Uint8Array.of(1, 2, 3))).toBeUndefined();
});

test("no message makes the reader do anything but read or refuse, and what is read can be answered", () => {
  const good = writeReply(query("a.b.c", { edns: { version: 0, udpBytes: 512, dnssecOk: false } }), reply({ answers: [a("a.b.c", 1), { type: "CNAME", name: "a.b.c", ttl: 1, target: "d.b.c" }] }), 512);
  let seed = 7;
  const random = (below: number): number => { seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0; return (seed >>> 8) % below; };
  for (let i = 0; i < 20_000; i++) {
    const bytes = good.slice(0, random(8) === 0 ? random(good.length + 1) : good.length);
    for (let n = random(6); n > 0 && bytes.length > 0; n--) bytes[random(bytes.length)] = random(256);
    const answered = (): unknown => { const asked = readQuery(bytes); return asked && writeReply(asked, reply({ answers: [a(asked.question.name, 1)] }), 512); };
    for (const read of [answered, () => addressRecords(bytes)]) {
      try {
        read();
      } catch (error) {
        if (!(error instanceof FormatError)) throw error;
      }
    }
  }
});

test("a question with thousands of records, each with a long name in two bytes, costs no more than its bytes", () => {
  const name = Uint8Array.from([...Array.from({ length: 126 }, () => [1, 0]).flat(), 0]), record = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0], count = 5000;
  const message = Uint8Array.from([0, 1, 1, 0, 0, 1, 0, 0, 0, 0, count >> 8, count & 0xff, ...name, 0, 1, 0, 1, ...Array.from({ length: count }, () => record).flat()]);
  const decoded = vi.spyOn(String.prototype, "padStart"); // of each byte that is no letter
  expect(readQuery(message)!.question.nameBytes).toEqual(name);
  expect(walk(message)).toHaveLength(count);
  const calls = decoded.mock.calls.length;
  decoded.mockRestore();
  expect(calls).toBeLessThan(1000);
});
