import { createSocket } from "node:dgram";
import { connect, type Socket } from "node:net";
import { expect, test } from "vitest";
import { systemClock as clock } from "../lifecycle/clock.ts";
import { type Log, silentLog } from "../observe/log.ts";
import { listeners } from "./listeners.ts";

test("an address that goes while a question is being answered takes the answer with it, and nothing else", async () => {
  const asked = Promise.withResolvers<void>(), answer = Promise.withResolvers<Uint8Array>(), told = Promise.withResolvers<string>();
  const log: Log = { ...silentLog, debug: (message) => told.resolve(message) };
  const open = listeners({ clock, log, signal: new AbortController().signal, mayAsk: () => true, async respond() {
    asked.resolve();
    return await answer.promise;
  } });
  const port = await listenSomewhere(open);
  const client = await free();
  client.socket.send("?", port, "127.0.0.1");
  await asked.promise;
  await open.update([]);
  answer.resolve(Uint8Array.of(1));
  expect(await told.promise).toBe("the DNS socket was closed before its answer was there");
  client.close();
});

/** A port that was free a moment ago may be somebody's by now. */
async function listenSomewhere(open: ReturnType<typeof listeners>): Promise<number> {
  for (;;) {
    const { port, close } = await free();
    close();
    if (await open.update([{ address: "127.0.0.1", port }])) return port;
  }
}

async function free(address = "127.0.0.1"): Promise<{ readonly socket: ReturnType<typeof createSocket>; readonly port: number; close(): void }> {
  const socket = createSocket("udp4");
  await new Promise<void>((resolve) => socket.bind(0, address, resolve));
  return { socket, port: socket.address().port, close: () => void socket.close() };
}

test("over TCP a question that takes long does not hold up those behind it", async () => {
  const slow = Promise.withResolvers<Uint8Array>();
  const open = listeners({ clock, log: silentLog, signal: new AbortController().signal, mayAsk: () => true, respond: async (message) => (message[0] === 1 ? await slow.promise : message) });
  const port = await listenSomewhere(open);
  const seen: number[] = [];
  await new Promise<void>((resolve) => {
    const socket = connect(port, "127.0.0.1", () => void socket.write(Uint8Array.of(0, 1, 1, 0, 1, 2, 0, 1, 3)));
    socket.on("data", (bytes) => {
      for (let at = 2; at < bytes.length; at += 3) seen.push((bytes as Buffer)[at]!);
      if (seen.length === 2) slow.resolve(Uint8Array.of(1));
      if (seen.length === 3) socket.end(() => resolve());
    });
  });
  expect(seen).toEqual([2, 3, 1]);
  await open.close();
});

test("over TCP a client that has said that it asks no more has its answers, and then the end", async () => {
  const slow = Promise.withResolvers<Uint8Array>();
  const open = listeners({ clock, log: silentLog, signal: new AbortController().signal, mayAsk: () => true, respond: async (message) => (message[0] === 1 ? await slow.promise : message) });
  const port = await listenSomewhere(open);
  const seen: number[] = [];
  await new Promise<void>((resolve) => {
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true }, () => void socket.end(Uint8Array.of(0, 1, 1, 0, 1, 2)));
    socket.on("data", (bytes) => {
      seen.push(...(bytes as Buffer));
      if (seen.length === 3) setImmediate(() => slow.resolve(Uint8Array.of(1)));
    });
    socket.on("end", () => resolve());
  });
  expect(seen).toEqual([0, 1, 2, 0, 1, 1]);
  await open.close();
});

test("over TCP a client that does not take its answers has no more of its questions answered, until it does", async () => {
  const count = 2_000, answer = new Uint8Array(60_000);
  let asked = 0;
  const open = listeners({ clock, log: silentLog, signal: new AbortController().signal, mayAsk: () => true, respond: async () => (asked++, answer) });
  const port = await listenSomewhere(open);
  const socket = connect(port, "127.0.0.1", () => void socket.write(Buffer.concat(Array<Uint8Array>(count).fill(Uint8Array.of(0, 1, 1)))));
  socket.pause();
  let before = -1;
  await expect.poll(() => { const isQuiet = asked > 0 && asked === before; before = asked; return isQuiet; }, { interval: 300, timeout: 20_000 }).toBe(true);
  expect(asked).toBeLessThan(count);
  let got = 0;
  socket.on("data", (chunk) => { got += chunk.length; });
  socket.resume();
  await expect.poll(() => got, { timeout: 20_000 }).toBe(count * (answer.length + 2));
  socket.destroy();
  await open.close();
});

test("over TCP clients who only hold on keep nobody out: the first of them gives way", async () => {
  const open = listeners({ clock, log: silentLog, signal: new AbortController().signal, mayAsk: () => true, respond: async (message) => message });
  const port = await listenSomewhere(open);
  const holding = await Promise.all(Array.from({ length: 300 }, () => new Promise<Socket>((resolve) => {
    const socket = connect(port, "127.0.0.1", () => resolve(socket));
    socket.on("error", () => undefined).write(Uint8Array.of(0));
  })));
  const answer = await new Promise<Buffer>((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => void socket.write(Uint8Array.of(0, 1, 7)));
    socket.on("error", reject).on("close", () => reject(new Error("hung up on"))).on("data", (bytes) => resolve(bytes as Buffer));
  });
  expect([...answer]).toEqual([0, 1, 7]);
  for (const socket of holding) socket.destroy();
  await open.close();
});

test("an address that is not there yet, as the pod network's when a machine boots, is told of only when it does not come", async () => {
  const told: unknown[] = [];
  let uptimeMs = 0;
  const open = listeners({ clock: { ...clock, uptimeMs: () => uptimeMs }, log: { ...silentLog, warn: (_, facts) => void told.push(facts?.["address"]) }, signal: new AbortController().signal, mayAsk: () => true, respond: async (message) => message });
  const { socket, port, close } = await free();
  const absent = { address: "192.0.2.1", port }, taken = { address: "127.0.0.1", port: socket.address().port };
  expect(await open.update([absent, taken])).toBe(false);
  expect(told).toEqual(["127.0.0.1"]);
  uptimeMs = 60_000;
  await open.update([absent, taken]);
  await open.update([absent, taken]);
  expect(told).toEqual(["127.0.0.1", "192.0.2.1"]);
  close();
  await open.close();
});

/** Each of whose answers takes 4 ms; how many of them were given at most before others had a turn. */
async function slowListeners(): Promise<{ readonly open: ReturnType<typeof listeners>; readonly port: number; answeredTogether(): number }> {
  let upMs = 0, others = 0, isOver = false;
  const worked: number[] = []; // by turns that others had before
  const open = listeners({ clock: { ...clock, uptimeMs: () => upMs }, log: silentLog, signal: new AbortController().signal, mayAsk: () => true, async respond(message) {
    upMs += 4;
    worked[others] = (worked[others] ?? 0) + 1;
    return message;
  } });
  const turn = (): void => { others++; if (!isOver) setImmediate(turn); };
  turn();
  return { open, port: await listenSomewhere(open), answeredTogether() {
    isOver = true;
    return Math.max(...worked.filter(Boolean));
  } };
}

test("of many questions that come at once those wait that there is no time for: others have their turn, and all are answered", async () => {
  const { open, port, answeredTogether } = await slowListeners();
  const client = await free(), answers = new Set<number>();
  const all = new Promise<void>((resolve) => client.socket.on("message", (message) => { if (answers.add(message[0]!).size === 100) resolve(); }));
  for (let i = 0; i < 100; i++) client.socket.send(Uint8Array.of(i), port, "127.0.0.1");
  await all;
  expect(answeredTogether()).toBeLessThanOrEqual(4);
  client.close();
  await open.close();
});

test("who asks without end is not listened to without end: others have their turn, and the next who asks has his answer", async () => {
  let upMs = 0, others = 0;
  const taken: number[] = []; // by turns that others had before
  const open = listeners({ clock: { ...clock, uptimeMs: () => upMs }, log: silentLog, signal: new AbortController().signal, respond: async (message) => message, mayAsk() {
    upMs += 5;
    taken[others] = (taken[others] ?? 0) + 1;
    return true;
  } });
  const port = await listenSomewhere(open);
  const client = await free();
  for (let i = 0; i < 200; i++) client.socket.send(Uint8Array.of(1), port, "127.0.0.1");
  const turn = (): void => { if (++others < 1000) setImmediate(turn); };
  turn();
  const answer = new Promise<void>((resolve) => client.socket.on("message", (message) => { if (message[0] === 2) resolve(); }));
  const again = setInterval(() => void client.socket.send(Uint8Array.of(2), port, "127.0.0.1"), 20); // what waited in the closed socket is lost
  await answer;
  clearInterval(again);
  expect(Math.max(...taken.filter(Boolean))).toBeLessThanOrEqual(22); // of two sockets eleven each
  client.close();
  await open.close();
});

test("who asks more than can be answered leaves room for others", async () => {
  const answers = new Map<string, number>();
  const never = Promise.withResolvers<undefined>();
  const open = listeners({ clock, log: silentLog, signal: new AbortController().signal, mayAsk: () => true, async respond(message, _, from) {
    answers.set(from, (answers.get(from) ?? 0) + 1);
    return from === "127.0.0.1" ? await never.promise : message;
  } });
  const port = await listenSomewhere(open);
  const much = await free(), other = await free("127.0.0.2");
  const askMuch = (): void => { for (let i = 0; i < 100; i++) much.socket.send(Uint8Array.of(1), port, "127.0.0.1"); };
  await expect.poll(() => { askMuch(); return answers.get("127.0.0.1"); }, { interval: 20, timeout: 20_000 }).toBe(1000);
  const answer = new Promise<void>((resolve) => other.socket.on("message", () => resolve()));
  const again = setInterval(() => { askMuch(); other.socket.send(Uint8Array.of(2), port, "127.0.0.1"); }, 20);
  await answer;
  clearInterval(again);
  expect(answers.get("127.0.0.1")).toBe(1000); // of two thousand
  never.resolve(undefined);
  much.close();
  other.close();
  await open.close();
});

test("who asks much takes turns with who asks little", async () => {
  let upMs = 0;
  const asked: string[] = [];
  const much = await free(), other = await free("127.0.0.2");
  const open = listeners({ clock: { ...clock, uptimeMs: () => upMs }, log: silentLog, signal: new AbortController().signal, mayAsk: () => true, async respond(message, _, from) {
    upMs += 10;
    if (asked.push(from) === 1) other.socket.send(Uint8Array.of(2), port, "127.0.0.1");
    return message;
  } });
  const port = await listenSomewhere(open);
  for (let i = 0; i < 200; i++) much.socket.send(Uint8Array.of(1), port, "127.0.0.1");
  await expect.poll(() => asked.includes("127.0.0.2") && asked.length > 150, { timeout: 20_000 }).toBe(true);
  expect(asked.indexOf("127.0.0.2")).toBeLessThan(50);
  much.close();
  other.close();
  await open.close();
});

test("over TCP too many of one address take the places of their own", async () => {
  const open = listeners({ clock, log: silentLog, signal: new AbortController().signal, mayAsk: () => true, respond: async (message) => message });
  const port = await listenSomewhere(open);
  const hold = (localAddress: string): Promise<Socket> => new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1", localAddress }, () => resolve(socket));
    socket.on("error", () => undefined).on("close", () => resolve(socket)); // it may have given way already
  });
  const first = await hold("127.0.0.2");
  const holding = await Promise.all(Array.from({ length: 300 }, () => hold("127.0.0.1")));
  const answer = await new Promise<Buffer>((resolve, reject) => {
    first.on("close", () => reject(new Error("hung up on"))).on("data", (bytes) => resolve(bytes as Buffer));
    first.write(Uint8Array.of(0, 1, 7));
  });
  expect([...answer]).toEqual([0, 1, 7]);
  for (const socket of [first, ...holding]) socket.destroy();
  await open.close();
});

test("of many questions that come at once over TCP those wait that there is no time for", async () => {
  const { open, port, answeredTogether } = await slowListeners();
  await new Promise<void>((resolve) => {
    let got = 0;
    const socket = connect(port, "127.0.0.1", () => void socket.write(Buffer.concat(Array<Uint8Array>(500).fill(Uint8Array.of(0, 1, 1)))));
    socket.on("data", (bytes) => { if ((got += bytes.length) === 1500) socket.end(() => resolve()); });
  });
  expect(answeredTogether()).toBeLessThanOrEqual(4);
  await open.close();
});
