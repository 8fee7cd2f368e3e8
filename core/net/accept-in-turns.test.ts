import * as net from "node:net";
import { expect, test } from "vitest";
import { acceptInTurns } from "./accept-in-turns.ts";

test("who opens connections without end does not hold up others: they have their turn, what is open stays, and who is refused may come again", async () => {
  let others = 0;
  const accepted: number[] = []; // by turns that others had before
  const server = acceptInTurns(net.createServer((socket) => {
    accepted[others] = (accepted[others] ?? 0) + 1;
    socket.on("error", () => undefined).on("data", (bytes) => void socket.write(bytes));
  }), { togetherMax: 10 });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as net.AddressInfo;
  const sockets = new Set<net.Socket>();
  const connected = (): Promise<net.Socket> => new Promise((resolve) => {
    const socket = net.connect(port, "127.0.0.1", () => void socket.write("?")).on("data", () => resolve(socket)).on("error", () => void connected().then(resolve));
    sockets.add(socket);
  });
  const first = await connected();
  const turn = (): void => { if (++others < 2000) setImmediate(turn); };
  turn();
  await Promise.all(Array.from({ length: 60 }, connected));
  expect(Math.max(...accepted.filter(Boolean))).toBeLessThanOrEqual(10);
  const answered = new Promise<void>((resolve) => void first.once("data", () => resolve()));
  first.write("?");
  await answered;
  for (const socket of sockets) socket.destroy();
  await new Promise<void>((resolve) => void server.close(() => resolve()));
  expect(server.listening).toBe(false);
});

test("one that is closed while it is about to listen again does not", async () => {
  const server = acceptInTurns(net.createServer((socket) => {
    socket.on("error", () => undefined);
    setImmediate(() => void server.close());
  }), { togetherMax: 1 });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as net.AddressInfo;
  const socket = net.connect(port, "127.0.0.1").on("error", () => undefined);
  await new Promise<void>((resolve) => void server.once("connection", () => resolve()));
  for (let i = 0; i < 20; i++) await new Promise<void>((resolve) => void setImmediate(resolve));
  expect(server.listening).toBe(false);
  socket.destroy();
});
