import { expect, test } from "vitest";
import { serverClock } from "./server-clock.ts";

test("the server's clock is what an answer said last, and goes on by uptime", () => {
  let uptimeMs = 1_000;
  const server = serverClock({ uptimeMs: () => uptimeMs });
  expect(server.nowMs()).toBeUndefined();
  server.told("Thu, 01 Jan 1970 00:10:00 GMT");
  uptimeMs += 5_000;
  expect(server.nowMs()).toBe(605_000);
  server.told("");
  expect(server.nowMs()).toBe(605_000);
  server.told("Sun, 29 Nov 2026 12:00:00 GMT");
  expect(server.nowMs()).toBe(Date.UTC(2026, 10, 29, 12));
});
