import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { eventually } from "../../test/eventually.ts";
import { silentLog } from "../../core/observe/log.ts";
import { listen } from "./listen.ts";

test("a port that somebody else has is told of once, and taken when it is free; what has ended asks no more", async () => {
  const other = createServer().listen(0, "127.0.0.1");
  await once(other, "listening");
  const { port } = other.address() as AddressInfo;
  const told: string[] = [];
  const waiting: (() => void)[] = [];
  let cancelled = 0;
  const clock = { after: (_: number, work: () => void) => (waiting.push(work), { cancel: () => void cancelled++ }) };
  const log = { ...silentLog, warn: (message: string) => void told.push(message) };
  const where = { address: "127.0.0.1", port };
  const end = listen(where, (_, response) => void response.end("well"), { clock, log });
  const ended = listen(where, (_, response) => void response.end("ill"), { clock, log });
  await eventually("both have been refused", async () => waiting.length === 2);
  ended();
  expect(cancelled).toBe(1);
  waiting[0]!();
  await eventually("it is refused again", async () => waiting.length === 3);
  expect(told.length).toBe(2); // once each
  await new Promise((resolve) => other.close(resolve));
  waiting[2]!();
  expect(await eventually("it is served", async () => await (await fetch(`http://127.0.0.1:${port}/`)).text())).toBe("well");
  end();
});

test("a server that serves is not started again for what befalls it, and one that has ended is not asked for", async () => {
  const waiting: (() => void)[] = [];
  const clock = { after: (_: number, work: () => void) => (waiting.push(work), { cancel: () => undefined }) };
  let server!: Server;
  const other = createServer().listen(0, "127.0.0.1");
  await once(other, "listening");
  const { port } = other.address() as AddressInfo;
  await new Promise((resolve) => other.close(resolve));
  const end = listen({ address: "127.0.0.1", port }, (request, response) => {
    server = (request.socket as unknown as { readonly server: Server }).server;
    response.end("well");
  }, { clock, log: silentLog });
  const ask = async (): Promise<string> => await (await fetch(`http://127.0.0.1:${port}/`)).text();
  expect(await eventually("it is served", ask)).toBe("well");
  server.emit("error", new Error("too many open files"));
  waiting[0]!();
  expect(await ask()).toBe("well");
  end();
  server.emit("error", new Error("late"));
  expect(waiting).toHaveLength(1);
});
