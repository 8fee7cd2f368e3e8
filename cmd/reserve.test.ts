import { existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { silentLog } from "../core/observe/log.ts";
import { StoreError } from "../storage/store.ts";
import { keepReserve, openWithReserve } from "./reserve.ts";

let dir = "";
beforeEach(() => { dir = mkdtempSync(join(tmpdir(), "reserve-")); });
afterEach(() => rmSync(dir, { recursive: true }));

const reserve = (): string => join(dir, "reserve");
/** A store that opens once the file is gone. */
function opening(code: "full" | "locked"): { readonly tries: () => number; readonly start: () => Promise<string> } {
  let tries = 0;
  return {
    tries: () => tries,
    start: () => openWithReserve({
      path: join(dir, "db"), log: silentLog,
      open: () => (tries++, existsSync(reserve()) || tries > 2 ? Promise.reject(new StoreError(code, {})) : Promise.resolve("open")),
    }),
  };
}

test("a store that has no room to open is given what was kept back, which is taken once", async () => {
  await keepReserve(join(dir, "db"));
  const { ino, size } = statSync(reserve());
  expect(size).toBe(8 * 1024 * 1024);
  await keepReserve(join(dir, "db"));
  expect(statSync(reserve()).ino).toBe(ino);
  const { start, tries } = opening("full");
  expect([await start(), tries(), existsSync(reserve())]).toEqual(["open", 2, false]);
});

test("where there was none, or it is not room that is missing, it is told why", async () => {
  await keepReserve(join(dir, "db"));
  const locked = opening("locked");
  await expect(locked.start()).rejects.toMatchObject({ code: "locked" });
  expect([locked.tries(), existsSync(reserve())]).toEqual([1, true]);
  rmSync(reserve());
  let tries = 0;
  await expect(openWithReserve({ path: join(dir, "db"), log: silentLog, open: () => (tries++, Promise.reject(new StoreError("full", {}))) })).rejects.toMatchObject({ code: "full" });
  expect(tries).toBe(1);
});
