import { createServer, type ServerHttp2Session } from "node:http2";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { systemClock } from "../../core/lifecycle/clock.ts";
import { H2Upstreams } from "./h2-upstreams.ts";
import { Upstreams } from "./upstreams.ts";

test("requests that come at once share one connection to an endpoint, also when it is made anew", async () => {
  const sessions: ServerHttp2Session[] = [];
  const server = createServer((_, response) => void response.end("here"));
  server.on("session", (session) => void sessions.push(session));
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const endpoint = { address: "127.0.0.1", port: (server.address() as AddressInfo).port };
  const upstreams = new H2Upstreams(systemClock, new Upstreams(systemClock, () => [])), { signal } = new AbortController();
  const asked = async (): Promise<string> => {
    const ask = await upstreams.connect(endpoint, undefined);
    return await text((await ask({ method: "GET", target: "/", headers: [["host", "h"]] }, signal)).body);
  };
  expect(await Promise.all([asked(), asked(), asked()])).toEqual(["here", "here", "here"]);
  expect(sessions).toHaveLength(1);
  upstreams.sweep(0);
  expect(await Promise.all([asked(), asked()])).toEqual(["here", "here"]);
  expect(sessions).toHaveLength(2);
  const ask = await upstreams.connect(endpoint, undefined);
  await expect(ask({ method: "GET", target: "/", headers: [["host", "h"], ["content-type", "a"], ["content-type", "b"]] }, signal)).rejects.toThrow(); // which HTTP/2 does not have twice
  await Bun.sleep(5);
  upstreams.sweep(1);
  await expect.poll(() => sessions[1]!.closed || sessions[1]!.destroyed).toBe(true);
  for (const session of sessions) session.destroy();
  await new Promise<void>((resolve) => void server.close(() => resolve()));
});
