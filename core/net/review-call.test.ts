import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, expect, test } from "vitest";
import { systemClock } from "../lifecycle/clock.ts";
import { reviewCall } from "./review-call.ts";

const { signal } = new AbortController();
const pausesMs: number[] = [];
const clock = { ...systemClock, sleep: async (ms: number) => void pausesMs.push(ms) };
let asked = 0;
let status = 200, retryAfter: string | undefined;
const server = createServer((request, response) => {
  request.resume().on("end", () => {
    asked++;
    if (status === 0) request.socket.destroy();
    else response.writeHead(status, retryAfter === undefined ? {} : { "retry-after": retryAfter }).end("{}");
  });
});
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
afterAll(() => { server.closeAllConnections(); server.close(); });
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
const call = (at = url) => reviewCall({ server: { url: at, tls: {} }, review: {}, timeoutMs: 60_000, clock }, signal);

test.each<[number, string | undefined, number]>([
  [500, undefined, 5], [502, undefined, 5], [504, undefined, 5], [429, undefined, 5], [0, undefined, 5],
  [404, undefined, 1], [503, undefined, 1], [503, "1", 5], [503, "tomorrow", 1],
])("%i, Retry-After %s: %i times", async (answer, header, times) => {
  [status, retryAfter, asked] = [answer, header, 0];
  await expect(call()).rejects.toThrow();
  expect(asked).toBe(times);
});

test("who is not there is not waited for", async () => {
  pausesMs.length = 0;
  await expect(call("http://127.0.0.1:1/")).rejects.toThrow("ECONNREFUSED");
  await expect(call("http://nobody.invalid/")).rejects.toThrow();
  expect(pausesMs).toEqual([]);
});
