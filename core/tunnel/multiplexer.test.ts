/** Two ends of a tunnel over a pipe that delays and cuts as it likes. */
import { Duplex, PassThrough } from "node:stream";
import { expect, test, vi } from "vitest";
import { type Clock, systemClock } from "../lifecycle/clock.ts";
import { TunnelConnection } from "./connection.ts";
import { Multiplexer, type MultiplexerOptions } from "./multiplexer.ts";
import { encodePacket } from "./packet.ts";
import { PacketStream } from "./packet-stream.ts";
import { mulberry32 } from "../../test/mulberry32.ts";
import { ReceiveWindow, WINDOW_LIMITS, WindowBudget } from "./window.ts";

const sleep = (ms: number): Promise<void> => systemClock.sleep(ms, new AbortController().signal);

/** One end of a pipe that holds little: what is written comes out of the other, some time later and in other pieces. */
class PipeEnd extends Duplex {
  other!: PipeEnd;
  readonly #next: () => number;
  #resume: (() => void) | undefined;

  constructor(next: () => number) {
    super({ readableHighWaterMark: 32 * 1024, writableHighWaterMark: 32 * 1024 });
    this.#next = next;
  }

  override _read(): void {
    const resume = this.#resume;
    this.#resume = undefined;
    resume?.();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    const go = (rest: Buffer): void => {
      if (rest.length === 0 || this.other.destroyed) return done();
      const cut = 1 + Math.floor(this.#next() * 20_000);
      const onward = (): void => (this.#next() < 0.1 ? void sleep(1).then(() => go(rest.subarray(cut))) : go(rest.subarray(cut)));
      if (this.other.push(rest.subarray(0, cut))) onward();
      else this.other.#resume = onward;
    };
    go(chunk);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    done(error);
    void sleep(0).then(() => this.other.destroy());
  }
}

interface Given { next?: () => number; credit?: boolean; clock?: Clock }

/** Both ends, and connections that are there at both without having been dialled. */
function bothEnds({ next = () => 0.5, credit = true, clock = systemClock }: Given = {}) {
  const pipe = [new PipeEnd(next), new PipeEnd(next)] as const;
  pipe[0].other = pipe[1];
  pipe[1].other = pipe[0];
  const strays: string[] = [];
  const options = (end: "server" | "agent"): MultiplexerOptions => ({
    stream: pipe[end === "server" ? 0 : 1], end, peerWindowBytes: credit ? WINDOW_LIMITS.initialBytes : undefined, clock,
    onControl: () => undefined, onStray: (packet) => void strays.push(`${end} ${packet.type}`), onClose: () => undefined,
  });
  const server = new Multiplexer(options("server")), agent = new Multiplexer(options("agent"));
  let id = 0;
  const open = (): [TunnelConnection, TunnelConnection] => [server.add(++id), agent.add(id)];
  return { server, agent, pipe, strays, open };
}

/** Bytes that tell where they belong. */
function pattern(from: number, length: number, salt: number): Buffer {
  return Buffer.from(Uint8Array.from({ length }, (_, i) => ((from + i) * 31 + salt * 17 + ((from + i) >> 8)) & 0xff));
}

async function send(connection: TunnelConnection, total: number, salt: number, next: () => number): Promise<void> {
  for (let at = 0; at < total; ) {
    const length = Math.min(total - at, 1 + Math.floor(next() ** 3 * 100_000));
    if (!connection.write(pattern(at, length, salt))) await new Promise((resolve) => connection.once("drain", resolve));
    at += length;
    if (next() < 0.05) await sleep(1);
  }
}

/** Until `total`, or the end, with pauses. Returns how much there was; `heldMax` is what waited most. */
async function receive(connection: TunnelConnection, salt: number, { next, total = Number.POSITIVE_INFINITY }: { next: () => number; total?: number }): Promise<{ got: number; heldMax: number }> {
  let got = 0, heldMax = 0;
  while (got < total) {
    const chunk = connection.read() as Buffer | null;
    heldMax = Math.max(heldMax, connection.arrivedBytes);
    if (chunk === null) {
      if (connection.readableEnded || connection.destroyed) break;
      await new Promise<void>((resolve) => {
        const done = (): void => { connection.off("readable", done).off("end", done).off("close", done); resolve(); };
        connection.on("readable", done).on("end", done).on("close", done);
      });
      continue;
    }
    if (!chunk.equals(pattern(got, chunk.length, salt))) throw new Error(`wrong bytes after ${got}`);
    got += chunk.length;
    if (next() < 0.02) await sleep(2);
  }
  return { got, heldMax };
}

test.each([1, 2, 3, 4, 5, 6])("no byte is lost, none changes its place, and none waits beyond its window; seed %i", async (seed) => {
  const next = mulberry32(seed);
  const { server, agent, open, strays } = bothEnds({ next });
  const work = Array.from({ length: 8 }, async (_, salt) => {
    const [here, there] = open();
    const up = Math.floor(next() * 700_000), down = Math.floor(next() * 700_000);
    const [atAgent, atServer] = await Promise.all([
      receive(there, salt, { next }), receive(here, salt + 100, { next }),
      send(here, up, salt, next).then(() => here.end()), send(there, down, salt + 100, next).then(() => there.end()),
    ]);
    expect([atAgent.got, atServer.got]).toEqual([up, down]);
    expect(Math.max(atAgent.heldMax, atServer.heldMax)).toBeLessThanOrEqual(WINDOW_LIMITS.maxBytes);
  });
  await Promise.all(work);
  await sleep(20);
  expect([server.connectionCount, agent.connectionCount, strays]).toEqual([0, 0, []]);
});

test.each([1, 2, 3])("the same with a peer that knows no credit, whose end is the end of both directions; seed %i", async (seed) => {
  const next = mulberry32(seed);
  const { server, agent, open } = bothEnds({ next, credit: false });
  const work = Array.from({ length: 8 }, async (_, salt) => {
    const [here, there] = open();
    const up = Math.floor(next() * 700_000), down = Math.floor(next() * 700_000);
    const answer = (async () => {
      const asked = await receive(there, salt, { next, total: up });
      await send(there, down, salt + 100, next);
      there.end();
      return asked;
    })();
    const [asked, answered] = await Promise.all([answer, receive(here, salt + 100, { next }), send(here, up, salt, next)]);
    expect([asked.got, answered.got]).toEqual([up, down]);
    expect(Math.max(asked.heldMax, answered.heldMax)).toBeLessThanOrEqual(512 * 1024);
  });
  await Promise.all(work);
  await sleep(20);
  expect([server.connectionCount, agent.connectionCount]).toEqual([0, 0]);
});

test("with credit, connections nobody reads cost their windows, and others go on", async () => {
  const { open, pipe } = bothEnds();
  const stuck = Array.from({ length: 20 }, () => open());
  for (const [, there] of stuck) there.write(Buffer.alloc(4 << 20));
  const [here, there] = open();
  const [{ got }] = await Promise.all([receive(here, 7, { next: mulberry32(1) }), send(there, 500_000, 7, mulberry32(2)).then(() => there.end())]);
  expect(got).toBe(500_000);
  for (const [one] of stuck) expect(one.arrivedBytes + one.readableLength).toBeLessThanOrEqual(WINDOW_LIMITS.initialBytes + 64 * 1024);
  expect(pipe[1].writableLength).toBeLessThan(64 * 1024);
});

test("without credit one that nobody reads holds up all, for a while, and is then cut off", async () => {
  const alarms: (() => void)[] = [];
  const keep = (work: () => void): { cancel(): void } => {
    alarms.push(work);
    return { cancel: () => undefined };
  };
  const clock: Clock = { ...systemClock, after: (ms, work) => (ms >= 1_000 ? keep(work) : systemClock.after(ms, work)) };
  const { open } = bothEnds({ credit: false, clock });
  const [stuck, flooding] = open();
  const [here, there] = open();
  const cut = new Promise<Error>((resolve) => stuck.on("error", resolve));
  flooding.on("error", () => undefined).write(Buffer.alloc(4 << 20));
  await sleep(100);
  const held = stuck.arrivedBytes;
  const reading = receive(here, 1, { next: mulberry32(1), total: 1_000 });
  await send(there, 1_000, 1, mulberry32(2));
  await sleep(100);
  expect(stuck.arrivedBytes).toBe(held);
  expect(held).toBeLessThan(512 * 1024);
  expect(alarms).toHaveLength(1);
  alarms[0]!();
  expect((await cut).message).toContain("nobody read");
  expect((await reading).got).toBe(1_000);
});

test("who sends more than they may loses the connection, and only that", async () => {
  const { open, pipe } = bothEnds();
  const [here] = open();
  const [other, there] = open();
  const broken = new Promise<Error>((resolve) => here.on("error", resolve));
  pipe[1].write(encodePacket({ type: "DATA", connectId: here.connectId, error: "", data: Buffer.alloc(WINDOW_LIMITS.initialBytes + 1) }));
  expect((await broken).message).toContain("more than it may");
  there.end("fine");
  expect((await receive(other, 0, { next: () => 1, total: 0 })).got).toBe(0);
  expect(await new Promise((resolve) => other.once("data", resolve))).toEqual(Buffer.from("fine"));
});

test("packets of no data wait for nobody, and are no more than the ones before them", async () => {
  const { open, pipe } = bothEnds();
  const [here, there] = open();
  for (let i = 0; i < 1000; i++) pipe[1].write(encodePacket({ type: "DATA", connectId: here.connectId, error: "", data: Buffer.alloc(0) }));
  there.write("x");
  while (here.arrivedBytes === 0) await sleep(1);
  const push = vi.spyOn(here, "push");
  expect(await new Promise((resolve) => here.once("data", resolve))).toEqual(Buffer.from("x"));
  expect(push).toHaveBeenCalledTimes(1);
});

test("a peer that sends packets without end has its turn, and others have theirs; one that is paused meanwhile stays so", async () => {
  let nowMs = 0;
  const stream = new PassThrough(), packet = encodePacket({ type: "DRAIN" });
  const packets = new PacketStream(stream, { onPacket: () => { nowMs++; }, onRoom: () => undefined, onClose: () => undefined }, { uptimeMs: () => nowMs }); // each takes a millisecond
  for (let i = 0; i < 20; i++) stream.write(Buffer.concat(Array.from({ length: 20 }, () => packet)));
  let before = 0, most = 0;
  while (packets.packetCount < 400) {
    await new Promise((resolve) => void setImmediate(resolve));
    most = Math.max(most, packets.packetCount - before);
    before = packets.packetCount;
  }
  expect(most).toBeLessThanOrEqual(40);
  nowMs += 100;
  stream.write(Buffer.concat([packet, packet])); // the second waits for the next turn
  await expect.poll(() => packets.packetCount, { interval: 0 }).toBeGreaterThan(400);
  packets.pause();
  const { packetCount } = packets;
  stream.write(packet);
  await sleep(5);
  expect(packets.packetCount).toBe(packetCount);
  packets.resume();
  await expect.poll(() => packets.packetCount).toBe(403);
});

test("what waits for its turn when the other end has closed is taken before that is told", async () => {
  let nowMs = 0, taken = 0, closedAt = -1;
  const stream = new PassThrough();
  new PacketStream(stream, { onPacket: () => { nowMs++; taken++; }, onRoom: () => undefined, onClose: () => { closedAt = taken; } }, { uptimeMs: () => nowMs });
  stream.write(Buffer.concat(Array.from({ length: 100 }, () => encodePacket({ type: "DRAIN" }))));
  stream.destroy();
  await sleep(5);
  expect([closedAt, taken]).toEqual([100, 100]);
});

test("a peer that has small packets sent to it without end, and reads none, is cut off before they take more than they may", async () => {
  let closed: Error | undefined;
  const unread = new Duplex({ read: () => undefined, write: () => undefined });
  const packets = new PacketStream(unread, { onPacket: () => undefined, onRoom: () => undefined, onClose: (error) => { closed = error; } }, { uptimeMs: () => 0 });
  let sent = 0;
  for (; !unread.destroyed && sent < 1_000_000; sent++) packets.send({ type: "CLOSE_REQ", connectId: 7 });
  await sleep(1);
  expect([closed?.message, sent < 50_000]).toEqual(["the other end of the tunnel does not read", true]);
});

test("a peer that reads as fast as small packets are sent to it is not cut off, though there is never room for a large one", async () => {
  const taken: (() => void)[] = [];
  const slow = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => void taken.push(done) });
  const packets = new PacketStream(slow, { onPacket: () => undefined, onRoom: () => undefined, onClose: () => undefined }, { uptimeMs: () => 0 });
  while (packets.hasRoom) packets.send({ type: "CLOSE_REQ", connectId: 7 });
  for (let i = 0; i < 20_000; i++) {
    taken.shift()?.();
    packets.send({ type: "CLOSE_REQ", connectId: 7 });
    if (i % 100 === 0) await new Promise((resolve) => void setImmediate(resolve));
  }
  expect([slow.destroyed, packets.hasRoom]).toEqual([false, false]);
});

test("bytes that come one by one and wait are kept as what they weigh", async () => {
  const { open, pipe } = bothEnds();
  const [here] = open(), count = WINDOW_LIMITS.initialBytes;
  const packet = encodePacket({ type: "DATA", connectId: here.connectId, error: "", data: Buffer.from("x") });
  pipe[1].write(Buffer.concat(Array.from({ length: count }, () => packet)));
  while (here.arrivedBytes < count) await sleep(1);
  const push = vi.spyOn(here, "push");
  let got = "";
  here.on("data", (chunk: Buffer) => { got += chunk.toString(); });
  while (got.length < count) await sleep(1);
  expect([got, push.mock.calls.length <= count / 8_192 + 1]).toEqual(["x".repeat(count), true]);
});

test("a window grows while that helps, within its limits", () => {
  let nowMs = 0;
  const limits = { initialBytes: 1_000, maxBytes: 16_000, budgetBytes: 20_000 };
  const budget = new WindowBudget(limits.budgetBytes);
  /** A way that takes 10 ms, and carries at most `rate` bytes a ms. */
  const carry = (window: ReceiveWindow, rate: number): number => {
    for (let round = 0; round < 200; round++) {
      const bytes = window.sizeBytes / 2;
      nowMs += Math.max(5, bytes / rate);
      expect(window.received(bytes)).toBe(true);
      window.read(bytes, { keptUp: true });
    }
    return window.sizeBytes;
  };
  const fast = new ReceiveWindow(limits, budget, () => nowMs);
  expect(carry(fast, 1_000_000)).toBe(16_000);
  const slow = new ReceiveWindow(limits, budget, () => nowMs);
  expect(carry(slow, 200)).toBe(4_000); // 1,000 bytes fill the way; the step after that one showed that more does not help
  const third = new ReceiveWindow(limits, budget, () => nowMs);
  expect(carry(third, 1_000_000)).toBe(2_000); // what the budget has left
  fast.release();
  expect(carry(third, 1_000_000)).toBe(16_000);
  const unread = new ReceiveWindow(limits, budget, () => nowMs);
  for (let i = 0; i < 100; i++) unread.read(unread.received(10) ? 10 : 0, { keptUp: false });
  expect(unread.sizeBytes).toBe(1_000);
});

test("bytes that come one by one and wait are copied a few times, not once more for each that comes behind them", () => {
  const count = 40_000, line = { wantsToSend: () => undefined, sendData: () => undefined, sendEnd: () => undefined, onRead: () => undefined, onGone: () => undefined };
  const connection = new TunnelConnection(1, line, 0);
  const made = [vi.spyOn(Buffer, "concat"), vi.spyOn(Buffer, "allocUnsafe")] as const;
  for (let i = 0; i < count; i++) connection.takeData(Buffer.of(i % 251));
  const bytes = made.flatMap(({ mock: { results } }) => results).reduce((sum, { value }) => sum + (value as Buffer).length, 0);
  for (const spy of made) spy.mockRestore();
  expect(bytes).toBeLessThan(4 * count);
  const read: Buffer[] = [];
  for (let piece: Buffer | null; (piece = connection.read() as Buffer | null); ) read.push(piece);
  expect(Buffer.concat(read).equals(Buffer.from(Array.from({ length: count }, (_, i) => i % 251)))).toBe(true);
});
