import { expect, test } from "vitest";
import { Repeats } from "./repeats.ts";

const MINUTE_MS = 60_000;

test("what is said again and again is said three times, then every ten minutes while it lasts, with how often it was kept back", () => {
  const repeats = new Repeats(), said: string[] = [];
  for (let minute = 0; minute < 24; minute++) {
    const kept = repeats.next("no tunnel", minute * MINUTE_MS);
    if (kept !== undefined) said.push(`${minute} min: ${kept}`);
  }
  expect(said).toEqual(["0 min: 0", "1 min: 0", "2 min: 0", "10 min: 7", "20 min: 9"]);
});

test("what comes seldom, or was over for as long, is new each time; something else is something else", () => {
  const repeats = new Repeats();
  expect([0, 5, 12, 13, 30, 31].map((minute) => repeats.next("a", minute * MINUTE_MS))).toEqual([0, 0, 0, 0, 0, 0]);
  expect(["b", "b", "b", "b", "c", "b"].map((what) => repeats.next(what, 0))).toEqual([0, 0, 0, undefined, 0, undefined]);
});

test("no more is remembered than has room: of what was said longest ago nothing", () => {
  const repeats = new Repeats();
  const say = (what: string): number | undefined => repeats.next(what, 0);
  for (let i = 0; i < 4; i++) say("old");
  for (let i = 0; i < 255; i++) say(`one ${i}`);
  expect(say("old")).toBeUndefined();
  for (let i = 0; i < 300; i++) say(`other ${i}`);
  expect(say("old")).toBe(0);
});
