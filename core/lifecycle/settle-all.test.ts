import { expect, test } from "vitest";
import { settleAll, settleEach } from "./settle-all.ts";

test("all have ended before it is told what failed", async () => {
  let ended = 0;
  const end = async (n: number): Promise<number> => { await Promise.resolve(); ended++; if (n < 0) throw new Error(String(n)); return n; };
  expect(await settleAll([end(1), end(2)])).toEqual([1, 2]);
  await expect(settleAll([end(-1), end(2)])).rejects.toThrow("-1");
  expect(ended).toBe(4);
});

test("each has its turn, so many at a time, whatever fails; answers come in the order of the items", async () => {
  let now = 0, most = 0;
  const turns: number[] = [];
  const work = async (n: number): Promise<number> => {
    most = Math.max(most, ++now);
    turns.push(n);
    for (let i = 0; i < 10 - n; i++) await Promise.resolve(); // the first take longest
    now--;
    if (n % 4 === 3) throw new Error(String(n));
    return n * n;
  };
  const items = Array.from({ length: 8 }, (_, i) => i);
  await expect(settleEach(items, 3, work)).rejects.toMatchObject({ message: "2 of 8 failed" });
  expect([turns, most, now]).toEqual([items, 3, 0]);
  expect(await settleEach([0, 1, 2], 2, work)).toEqual([0, 1, 4]);
  expect(await settleEach([], 2, work)).toEqual([]);
});
