import { expect, test } from "vitest";
import { FairPlaces } from "./fair-places.ts";

test("one alone has half of the places; whoever comes next finds some, and what is given back is there for all", () => {
  const places = new FairPlaces(120);
  const fill = (who: string): number => { let taken = 0; while (places.take(who)) taken++; return taken; };
  expect([fill("a"), fill("b"), fill("c")]).toEqual([60, 30, 15]);
  for (let i = 0; i < 60; i++) places.give("a");
  expect([places.has("a"), fill("b"), fill("a")]).toEqual([true, 23, 26]);
});
