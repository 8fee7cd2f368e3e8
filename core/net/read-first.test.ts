import { once } from "node:events";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { hastyServer } from "../../test/hasty-server.ts";
import { readFirst } from "./read-first.ts";

test("who is written to at the moment it says its last and resets the connection is heard", async () => {
  await using server = await hastyServer();
  const socket = readFirst(connect({ host: "127.0.0.1", port: server.port }));
  const got: string[] = [];
  const closed = new Promise((resolve) => { socket.on("data", (chunk: Buffer) => got.push(chunk.toString())).on("error", () => undefined).on("close", resolve); });
  const sent = new Promise((resolve) => { socket.write("unread", resolve); });
  const peer = await server.peer;
  await sent;
  peer.write("no such command", () => {
    peer.destroy();
    socket.write("more");
    socket.write("and more");
  });
  await closed;
  expect(got).toEqual(["no such command"]);
});

test("whenever the reset comes: between two looks at the connection it is a write that hears of it first", async () => {
  await using server = await hastyServer();
  const socket = readFirst(connect({ host: "127.0.0.1", port: server.port }));
  const got: string[] = [], failed: string[] = [];
  const closed = new Promise((resolve) => { socket.on("data", (chunk: Buffer) => got.push(chunk.toString())).on("error", ({ message }) => failed.push(message)).on("close", resolve); });
  await new Promise((resolve) => { socket.write("unread", resolve); });
  const peer = await server.peer;
  setImmediate(() => setImmediate(() => {
    peer.write("no such command");
    peer.destroy();
    socket.write("and more");
  }));
  socket.write("more");
  await closed;
  expect(got).toEqual(["no such command"]);
  expect(failed).toEqual([expect.stringMatching(/ECONNRESET|EPIPE/)]);
});

test("what is written arrives in order, and the end behind it", async () => {
  await using server = await hastyServer();
  const socket = readFirst(connect({ host: "127.0.0.1", port: server.port }));
  const peer = await server.peer;
  for (const text of ["a", "b", "c"]) socket.write(text);
  socket.end("d");
  let got = "";
  peer.on("data", (chunk: Buffer) => { got += chunk.toString(); }).resume();
  await once(peer, "end");
  expect(got).toBe("abcd");
  socket.destroy();
});

test("who has paused is given what came before the reset", async () => {
  await using server = await hastyServer();
  const socket = readFirst(connect({ host: "127.0.0.1", port: server.port }));
  let got = "";
  const closed = new Promise((resolve) => { socket.on("data", (chunk: Buffer) => { got += chunk.toString(); }).on("error", () => undefined).on("close", resolve); });
  socket.write("unread");
  const peer = await server.peer;
  await new Promise<void>((resolve) => void peer.write("first", () => resolve()));
  await expect.poll(() => got).toBe("first");
  socket.pause();
  peer.write(" and last", () => peer.destroy());
  await closed;
  expect(got).toBe("first and last");
});
