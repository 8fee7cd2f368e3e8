import { expect, test } from "vitest";
import { Writes } from "./writes.ts";

test("there is room again when one of as many as may be under way is done", async () => {
  const writes = new Writes(2);
  const works = Array.from({ length: 3 }, () => Promise.withResolvers<void>());
  expect(writes.room()).toBeUndefined();
  for (const { promise } of works) writes.add(promise);
  let hasRoom = false;
  const room = writes.room()!.then(() => { hasRoom = true; });
  works[0]!.resolve();
  await Bun.sleep(0);
  expect([writes.size, hasRoom]).toEqual([2, false]);
  works[1]!.resolve();
  await room;
  expect(writes.size).toBe(1);
  expect(writes.room()).toBeUndefined();
  const settled = writes.settled();
  works[2]!.resolve();
  await settled;
  expect(writes.size).toBe(0);
});
