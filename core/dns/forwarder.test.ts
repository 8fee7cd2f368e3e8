import { createSocket } from "node:dgram";
import { createServer, type AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { systemClock } from "../lifecycle/clock.ts";
import { systemRandom } from "../lifecycle/random.ts";
import { forwarder } from "./forwarder.ts";
import { hostUpstreams, nameservers } from "./upstreams.ts";
import { addressRecords, nameBytes, type Query, readQuery, type Reply, writeReply } from "./wire.ts";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const asker = { from: "10.42.0.7", signal: new AbortController().signal };
const closing: (() => void)[] = [];
afterEach(() => { for (const close of closing.splice(0)) close(); });

const query = (name: string, id = 1): Query => ({ id, opcode: 0, recursionDesired: true, checkingDisabled: false, edns: undefined, question: { name: name.toLowerCase(), nameBytes: nameBytes(name), type: 1, class: 1 } });

/** A name server on a port of the loopback; `answer` gives undefined to stay silent. Counts what it is asked over each protocol. */
async function server(answer: (name: string, tcp: boolean) => Partial<Reply> & { truncated?: boolean } | undefined) {
  const asked: string[] = [];
  const respond = (message: Uint8Array, tcp: boolean): Uint8Array | undefined => {
    const read = readQuery(message)!;
    asked.push(`${tcp ? "tcp" : "udp"} ${read.question.name}`);
    const reply = answer(read.question.name, tcp);
    if (!reply) return undefined;
    const bytes = writeReply(read, { rcode: 0, authoritative: false, answers: [], authorities: [], additionals: [], ...reply }, 65_535);
    if (reply.truncated) bytes[2]! |= 0x02;
    return bytes;
  };
  const tcp = createServer((socket) => void socket.on("data", (data) => {
    const bytes = respond(Uint8Array.from(data as Buffer).slice(2), true)!;
    socket.write(Buffer.concat([Uint8Array.of(bytes.length >> 8, bytes.length & 0xff), bytes]));
  }));
  await new Promise<void>((resolve) => tcp.listen(0, "127.0.0.1", resolve));
  const { port } = tcp.address() as AddressInfo;
  const udp = createSocket("udp4");
  udp.on("message", (message, from) => { const bytes = respond(Uint8Array.from(message), false); if (bytes) udp.send(bytes, from.port, from.address); });
  await new Promise<void>((resolve) => udp.bind(port, "127.0.0.1", resolve));
  closing.push(() => { udp.close(); tcp.close(); });
  return { port, asked, udp };
}

const address = (name: string, last: number, ttl = 60) => ({ answers: [{ type: "A" as const, name, ttl, address: Uint8Array.of(192, 0, 2, last) }] });

test("an answer is kept, and given to the next asker with their id and spelling", async () => {
  const { port, asked } = await server((name) => address(name, 1));
  const { ask } = forwarder({ upstreams: () => ["127.0.0.1"], port, clock: systemClock, random: systemRandom });
  const [first, second] = await Promise.all([ask(query("a.test", 1), 512, asker), ask(query("A.test", 2), 512, asker)]); // at the same time: asked once
  const third = await ask(query("a.TEST", 3), 512, asker);
  expect(asked).toEqual(["udp a.test"]);
  expect([first, second, third].map((bytes) => bytes![1])).toEqual([1, 2, 3]);
  expect(Buffer.from(third!).includes("TEST")).toBe(true);
  expect(addressRecords(third!)[0]).toMatchObject({ name: "a.test", ttl: 60 });
});

test("what answers another question is no answer, nor is what has the question by a pointer, where an asker's spelling would overwrite what follows", async () => {
  const udp = createSocket("udp4");
  udp.on("message", (message, from) => {
    const good = Buffer.from(writeReply(readQuery(Uint8Array.from(message))!, { rcode: 0, authoritative: false, additionals: [], authorities: [], ...address("a.test", 1) }, 512));
    const changed = (at: number, value: number): Buffer => Buffer.from(good.map((byte, i) => (i === at ? value : byte)));
    const pointing = Buffer.concat([good.subarray(0, 6), Buffer.alloc(6), Buffer.from([0xc0, 18, 0, 1, 0, 1]), good.subarray(12, 20)]);
    for (const answer of [changed(1, message[1]! ^ 1), changed(13, 98), changed(21, 28), pointing, changed(23, 3), good]) udp.send(answer, from.port, from.address);
  });
  await new Promise<void>((resolve) => udp.bind(0, "127.0.0.1", resolve));
  closing.push(() => udp.close());
  const { ask } = forwarder({ upstreams: () => ["127.0.0.1"], port: udp.address().port, clock: systemClock, random: systemRandom });
  const answer = (await ask(query("A.test"), 512, asker))!;
  expect([Buffer.from(answer.subarray(12, 24)).toString("latin1"), addressRecords(answer)]).toMatchObject(["\x01A\x04test\0\0\x01\0\x01", [{ name: "a.test", ttl: 60 }]]);
});

test("of a server whose datagrams answer nothing, without end, TCP is asked", async () => {
  let sent = 0;
  const { port, asked, udp } = await server((name, tcp) => (tcp ? address(name, 1) : undefined));
  udp.on("message", (message, from) => {
    const wrong = Buffer.from(message);
    wrong[0]! ^= 1;
    const send = (): void => udp.send(wrong, from.port, from.address, (error) => { if (!error && ++sent < 5000) send(); });
    send();
  });
  const { ask } = forwarder({ upstreams: () => ["127.0.0.1"], port, clock: systemClock, random: systemRandom });
  expect(addressRecords((await ask(query("a.test"), 512, asker))!)).toHaveLength(1);
  expect(asked).toEqual(["udp a.test", "tcp a.test"]);
});

test("who asks more than is answered leaves room for the others", async () => {
  const { port } = await server((name) => (name.startsWith("silent") ? undefined : address(name, 1)));
  const quit = new AbortController();
  const { ask } = forwarder({ upstreams: () => ["127.0.0.1"], port, pendingMax: 10, clock: systemClock, random: systemRandom });
  const much = { from: "10.42.0.1", signal: quit.signal };
  const asked = Array.from({ length: 20 }, (_, i) => ask(query(`silent${i}.test`), 512, much));
  expect(await Promise.all(asked.slice(5))).toEqual(Array.from({ length: 15 }, () => undefined)); // at once: five wait
  expect(await ask(query("a.test"), 512, asker)).toBeDefined();
  quit.abort();
  await Promise.all(asked);
  expect(await ask(query("b.test"), 512, { ...much, signal: asker.signal })).toBeDefined();
});

test("names that a server does not answer do not take it from others, as long as it answers about the root", async () => {
  const { port, asked } = await server((name) => (name.startsWith("silent") ? undefined : address(name, 1)));
  const { ask } = forwarder({ upstreams: () => ["127.0.0.1"], port, clock: { ...systemClock, after: (ms, told) => systemClock.after(ms / 20, told) }, random: systemRandom });
  expect(await Promise.all([1, 2, 3].map((i) => ask(query(`silent${i}.test`), 512, asker)))).toEqual([undefined, undefined, undefined]);
  await expect.poll(() => asked.at(-1)).toBe("udp ");
  await expect.poll(() => ask(query("a.test"), 512, asker), { timeout: 400 }).toBeDefined();
});

test("no TTL, no keeping", async () => {
  const { port, asked } = await server((name) => address(name, 1, 0));
  const { ask } = forwarder({ upstreams: () => ["127.0.0.1"], port, clock: systemClock, random: systemRandom });
  for (let i = 0; i < 2; i++) await ask(query("a.test"), 512, asker);
  expect(asked).toHaveLength(2);
});

test("a long answer goes over TCP for who asks over TCP; others are told that it is cut off", async () => {
  const { port, asked } = await server((name, tcp) => (tcp ? { answers: Array.from({ length: 200 }, (_, i) => address(name, i).answers[0]!) } : { ...address(name, 1), truncated: true }));
  const { ask } = forwarder({ upstreams: () => ["127.0.0.1"], port, clock: systemClock, random: systemRandom });
  expect(addressRecords((await ask(query("long.test"), 65_535, asker))!)).toHaveLength(200);
  expect(((await ask(query("long.test"), 512, asker))![2]! & 0x02)).toBe(0x02);
  expect(asked).toEqual(["udp long.test", "tcp long.test", "udp long.test"]);
});

test("a server that is not there is passed over; when there is no other, failure comes at once", async () => {
  const { port } = await server((name) => address(name, 1));
  const failures: string[] = [];
  const upstreams = ["127.0.0.2", "127.0.0.1"];
  const { ask } = forwarder({ upstreams: () => upstreams, port, clock: systemClock, random: systemRandom, onAsked: (to, _, failure) => { if (failure !== "") failures.push(to); } });
  expect(await ask(query("a.test"), 512, asker)).toBeDefined();
  expect(await ask(query("b.test"), 512, asker)).toBeDefined();
  expect(failures).toEqual(["127.0.0.2"]);
  upstreams.pop();
  expect(await ask(query("c.test"), 512, asker)).toBeUndefined();
  expect(failures).toEqual(["127.0.0.2"]); // it is not asked again so soon
});

test("the host's servers: the stub's own list, without ourselves, read again when the file changes", () => {
  const dir = mkdtempSync(join(tmpdir(), "resolv-"));
  closing.push(() => rmSync(dir, { recursive: true }));
  const [stub, real] = [join(dir, "stub.conf"), join(dir, "real.conf")];
  writeFileSync(stub, "search example\nnameserver 127.0.0.53\noptions edns0\n");
  writeFileSync(real, "nameserver 192.0.2.1\nnameserver 10.43.0.10\n  nameserver fe80::1%eth0\n# nameserver 192.0.2.9\nnameserver bogus\n");
  let nowMs = 0;
  const upstreams = hostUpstreams({ files: [stub, real], exclude: () => ["10.43.0.10"], clock: { ...systemClock, uptimeMs: () => nowMs } });
  expect(upstreams()).toEqual(["192.0.2.1", "fe80::1%eth0"]);
  writeFileSync(stub, "nameserver 192.0.2.2\n");
  nowMs += 10_000;
  expect(upstreams()).toEqual(["192.0.2.2"]);
  expect(nameservers("nameserver 2001:DB8::1")).toEqual(["2001:db8::1"]);
});
