import { once } from "node:events";
import { connect } from "node:net";
import { Duplex } from "node:stream";
import { expect, test } from "vitest";
import { hastyServer } from "../../test/hasty-server.ts";
import { type Clock, systemClock } from "../lifecycle/clock.ts";
import { proxyBytes } from "./proxy-bytes.ts";

test("once one side is gone the other is read to its end, though it had to wait until then", async () => {
  const client = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
  const server = new Duplex({ read: () => undefined, write: () => undefined, writableHighWaterMark: 1 }); // takes nothing more
  const over = proxyBytes(client, server, { clock: { after: () => ({ cancel: () => undefined }) } as unknown as Clock });
  client.push("typed");
  await Bun.sleep(5);
  expect(client.isPaused()).toBe(true);
  client.push("typed too late");
  client.push(null);
  server.destroy();
  await over; // not without the end of what the client says
  expect([client.readableEnded, client.destroyed]).toEqual([true, true]);
});

test("a client that takes nothing is not waited for", async () => {
  const due: (() => void)[] = [];
  const clock = { after: (_: number, work: () => void) => { due.push(work); return { cancel: () => undefined }; } } as unknown as Clock;
  const client = new Duplex({ read: () => undefined, write: () => undefined });
  const server = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
  const over = proxyBytes(client, server, { clock });
  server.push("unheard");
  server.push(null);
  await Bun.sleep(5);
  for (let work = due.shift(); work; work = due.shift()) work();
  await Bun.sleep(5);
  for (let work = due.shift(); work; work = due.shift()) work();
  await over;
  expect([client.destroyed, server.destroyed]).toEqual([true, true]);
});

test("who goes on sending though nobody is there any more is cut off", async () => {
  const piece = Buffer.alloc(1024 * 1024);
  let sent = 0;
  const client = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
  const server = new Duplex({ read() { sent++; this.push(piece); }, write: (_chunk, _encoding, done) => done() });
  client.destroy();
  await proxyBytes(client, server, { clock: { after: () => ({ cancel: () => undefined }) } as unknown as Clock });
  expect([server.destroyed, sent > 32, sent < 128]).toEqual([true, true, true]);
});

test("what a gate lets through goes on, from the first bytes; at what it does not, both are cut off", async () => {
  const sent: string[] = [];
  const client = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
  const server = new Duplex({ read: () => undefined, write: (chunk, _encoding, done) => { sent.push(String(chunk)); done(); } });
  const gate = (chunk: Uint8Array): Buffer => {
    if (Buffer.from(chunk).includes("bad")) throw new Error("bad");
    return Buffer.from(chunk).subarray(0, 2);
  };
  const over = proxyBytes(client, server, { clock: { after: () => ({ cancel: () => undefined }) } as unknown as Clock, early: Buffer.from("early"), gate });
  client.push("late");
  await expect.poll(() => sent).toEqual(["ea", "la"]);
  client.push("bad");
  await over;
  expect(sent).toEqual(["ea", "la"]);
  expect([client.destroyed, server.destroyed]).toEqual([true, true]);
});

test("what either side says at the moment it resets its connection, unread, is heard by the other, though that just speaks itself", async () => {
  for (const swapped of [false, true]) {
    await using hasty = await hastyServer();
    const said: string[] = [];
    const quick = new Duplex({ read: () => undefined, write: (chunk, _encoding, done) => { said.push(String(chunk)); done(); } });
    const rude = connect({ host: "127.0.0.1", port: hasty.port });
    await once(rude, "connect");
    const peer = await hasty.peer;
    const over = swapped ? proxyBytes(quick, rude, { clock: systemClock }) : proxyBytes(rude, quick, { clock: systemClock });
    quick.push("unread");
    await Bun.sleep(5);
    peer.write("413", () => {
      peer.destroy();
      quick.push("more");
    });
    await expect.poll(() => said).toEqual(["413"]);
    quick.destroy();
    await over;
  }
});
