import { expect, test } from "vitest";
import { Repeats } from "./repeats.ts";

const MINUTE_MS = 60_000;

/** A clock, and what was said at which minute with how many kept back. */
function repeating() {
  const said: string[] = [], later: { readonly atMs: number; readonly work: () => void }[] = [];
  let nowMs = 0;
  const repeats = new Repeats({ uptimeMs: () => nowMs, after: (ms, work) => { later.push({ atMs: nowMs + ms, work }); return { cancel: () => undefined }; } });
  return {
    said,
    tell(what: string): boolean { return repeats.tell(what, (kept, agoMs) => said.push(`${what} at ${nowMs / MINUTE_MS}: ${kept}${agoMs > 0 ? `, ${agoMs / MINUTE_MS} ago` : ""}`)); },
    goTo(minute: number): void {
      for (const { atMs, work } of later.splice(0).toSorted((a, b) => a.atMs - b.atMs)) {
        if (atMs > minute * MINUTE_MS) {
          later.push({ atMs, work });
          continue;
        }
        nowMs = atMs;
        work();
      }
      nowMs = minute * MINUTE_MS;
    },
  };
}

test("what is said again and again is said three times, then every ten minutes while it lasts, with how often it was kept back", () => {
  const { tell, goTo, said } = repeating();
  for (let minute = 0; minute < 24; minute++) {
    goTo(minute);
    tell("a");
  }
  goTo(60);
  expect(said).toEqual(["a at 0: 0", "a at 1: 0", "a at 2: 0", "a at 10: 7, 1 ago", "a at 20: 10, 1 ago", "a at 30: 4, 7 ago"]);
});

test("what begins again and is said once each time is not kept back for good: it may last", () => {
  const { tell, goTo, said } = repeating();
  for (const minute of [0, 1, 2, 3]) {
    goTo(minute);
    tell("the disk hangs");
  }
  goTo(600);
  expect(said.at(-1)).toBe("the disk hangs at 10: 1, 7 ago");
  tell("the disk hangs");
  expect(said.slice(4)).toEqual(["the disk hangs at 600: 0"]);
});

test("what comes seldom, or was over for as long, is new each time; something else is something else", () => {
  const { tell, goTo, said } = repeating();
  for (const minute of [0, 5, 12, 13, 30, 31]) {
    goTo(minute);
    tell("a");
  }
  expect(said).toEqual([0, 5, 12, 13, 30, 31].map((minute) => `a at ${minute}: 0`));
  expect(["b", "b", "b", "b", "c", "b"].map(tell)).toEqual([true, true, true, false, true, false]);
});

test("no more is remembered than has room: of what was said longest ago nothing", () => {
  const { tell } = repeating();
  for (let i = 0; i < 4; i++) tell("old");
  for (let i = 0; i < 255; i++) tell(`one ${i}`);
  expect(tell("old")).toBe(false);
  for (let i = 0; i < 300; i++) tell(`other ${i}`);
  expect(tell("old")).toBe(true);
});
