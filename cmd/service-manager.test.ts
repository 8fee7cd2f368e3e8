import { expect, test } from "vitest";
import { systemClock } from "../core/lifecycle/clock.ts";
import { silentLog as log } from "../core/observe/log.ts";
import { serviceManager, toldBySystemd } from "./service-manager.ts";

test("what systemd told is taken, and not passed on; a watchdog of another process is not ours", () => {
  const env = (more: object = {}): Record<string, string | undefined> => ({ NOTIFY_SOCKET: "/run/systemd/notify", PATH: "/bin", ...more });
  const given = env({ WATCHDOG_USEC: "30000000", WATCHDOG_PID: "7" });
  expect(toldBySystemd(given, 7)).toEqual({ socket: "/run/systemd/notify", watchdogMs: 30_000 });
  expect(given).toEqual({ PATH: "/bin" });
  expect(toldBySystemd(env({ WATCHDOG_USEC: "30000000", WATCHDOG_PID: "8" }), 7)).toEqual({ socket: "/run/systemd/notify" });
  expect(toldBySystemd(env(), 7)).toEqual({ socket: "/run/systemd/notify" });
  expect(toldBySystemd({}, 7)).toBeUndefined();
  expect(() => toldBySystemd(env({ WATCHDOG_USEC: "900000" }), 7)).toThrow("configure watchdog timeout too small: 900000us");
});

test("systemd is told that all is ready, that it lives, and that it stops; who does not listen is borne", async () => {
  const said: string[] = [];
  const stop = new AbortController();
  const part = serviceManager({ systemd: { socket: "@told", watchdogMs: 20 }, send: (socket, text) => { said.push(`${socket} ${text}`); throw new Error("nobody is there"); }, clock: systemClock, log });
  const ended = part.run(stop.signal, () => {});
  await expect.poll(() => said.filter((text) => text === "@told WATCHDOG=1").length).toBeGreaterThan(1);
  stop.abort();
  await ended;
  expect([said[0], said.at(-1)]).toEqual(["@told READY=1", "@told STOPPING=1"]);
});
