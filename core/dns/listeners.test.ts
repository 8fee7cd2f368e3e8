import { createSocket } from "node:dgram";
import { expect, test } from "vitest";
import { systemClock as clock } from "../lifecycle/clock.ts";
import { type Log, silentLog } from "../observe/log.ts";
import { listeners } from "./listeners.ts";

test("an address that goes while a question is being answered takes the answer with it, and nothing else", async () => {
  const { port, close } = await free();
  close();
  const asked = Promise.withResolvers<void>(), answer = Promise.withResolvers<Uint8Array>(), told = Promise.withResolvers<string>();
  const log: Log = { ...silentLog, debug: (message) => told.resolve(message) };
  const open = listeners({ clock, log, signal: new AbortController().signal, mayAsk: () => true, async respond() {
    asked.resolve();
    return await answer.promise;
  } });
  await open.update([{ address: "127.0.0.1", port }]);
  const client = await free();
  client.socket.send("?", port, "127.0.0.1");
  await asked.promise;
  await open.update([]);
  answer.resolve(Uint8Array.of(1));
  expect(await told.promise).toBe("the DNS socket was closed before its answer was there");
  client.close();
});

async function free(): Promise<{ readonly socket: ReturnType<typeof createSocket>; readonly port: number; close(): void }> {
  const socket = createSocket("udp4");
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  return { socket, port: socket.address().port, close: () => void socket.close() };
}
