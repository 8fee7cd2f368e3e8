import { expect, test } from "vitest";
import { type Breathe, breather, breathers, inPieces, type Pausing } from "./breather.ts";

test("work goes on until its slice is used up; then what waits has its turn", async () => {
  let nowMs = 0;
  const breathe = breather({ uptimeMs: () => nowMs });
  nowMs += 5;
  expect(breathe()).toBeUndefined();
  nowMs += 5;
  let others = 0;
  setImmediate(() => { others++; });
  await breathe();
  expect(others).toBe(1);
  expect(breathe()).toBeUndefined();
});

test("where a turn of all takes long the slice of whom it may be longer for is a part of that, and no more than others can wait for", async () => {
  const workIn = async (othersMs: number): Promise<readonly number[]> => {
    let upMs = 0, others = 0, isOver = false;
    const breathe = breathers({ uptimeMs: () => upMs }, { sliceMsMax: 50 })();
    const worked: number[] = []; // ms, by turns that others had before
    const turn = (): void => {
      others++;
      upMs += othersMs;
      if (!isOver) setImmediate(turn);
    };
    setImmediate(turn);
    while (others < 5) {
      upMs++;
      worked[others] = (worked[others] ?? 0) + 1;
      await breathe();
    }
    isOver = true;
    return worked.slice(0, 5);
  };
  expect(await workIn(30)).toEqual([10, 10, 10, 10, 10]);
  expect(await workIn(160)).toEqual([10, 34, 39, 40, 40]);
  expect(await workIn(2_000)).toEqual([10, 50, 50, 50, 50]);
});

test("however many are busy, none takes longer because of the others", async () => {
  let upMs = 0, isOver = false;
  const clock = { uptimeMs: () => upMs }, turnsAtMs: number[] = [];
  const turn = (): void => {
    turnsAtMs.push(upMs);
    isOver = turnsAtMs.length >= 30;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  await Promise.all(Array.from({ length: 8 }, async () => {
    const breathe = breather(clock);
    while (!isOver) {
      upMs++;
      await breathe();
    }
  }));
  expect(turnsAtMs.at(-1)! - turnsAtMs.at(-2)!).toBe(80);
});

test("several that work at the same time have one slice of time, not one each", async () => {
  let upMs = 0, others = 0;
  const breathe = breather({ uptimeMs: () => upMs });
  const worked: number[] = []; // by turns that others had before
  const turn = (): void => { if (++others < 20) setImmediate(turn); };
  setImmediate(turn);
  await Promise.all(Array.from({ length: 8 }, async () => {
    for (let i = 0; i < 10; i++) {
      upMs++;
      worked[others] = (worked[others] ?? 0) + 1;
      await breathe();
    }
  }));
  expect(Math.max(...worked.filter(Boolean))).toBeLessThan(30);
});

test("of several whose work takes a slice and more, each lets others have their turn before the next one does", async () => {
  let upMs = 0, others = 0;
  const breathe = breather({ uptimeMs: () => upMs });
  const worked: number[] = []; // by turns that others had before
  const turn = (): void => { if (++others < 40) setImmediate(turn); };
  setImmediate(turn);
  upMs = 50;
  await Promise.all(Array.from({ length: 5 }, async () => {
    for (let i = 0; i < 4; i++) {
      await breathe();
      upMs += 50;
      worked[others] = (worked[others] ?? 0) + 1;
    }
  }));
  expect(worked.filter(Boolean)).toEqual(Array.from({ length: 20 }, () => 1));
});

test("of many that come and go only one works in a turn, and what is short does not wait for all that is long", async () => {
  let upMs = 0, others = 0, isOver = false;
  const begun = breathers({ uptimeMs: () => upMs });
  const worked: number[] = []; // by turns that others had before
  const turn = (): void => { others++; if (!isOver) setImmediate(turn); };
  setImmediate(turn);
  begun();
  upMs = 50; // that has taken all of the slice
  const work = async (slices: number): Promise<number> => {
    const breathe = begun();
    for (let i = 0; i < slices; i++) {
      await breathe();
      upMs += 50;
      worked[others] = (worked[others] ?? 0) + 1;
    }
    return others;
  };
  const long = Array.from({ length: 20 }, () => work(10));
  const [short, ended] = await Promise.all([work(1), Promise.all(long)]);
  isOver = true;
  expect(worked.filter((times) => times > 1)).toEqual([]);
  expect(short).toBeLessThan(Math.min(...ended) / 2);
});

test("small pieces that wait do not take a turn each, but as many as last a slice", async () => {
  let upMs = 0, others = 0, isOver = false;
  const begun = breathers({ uptimeMs: () => upMs });
  const turn = (): void => { others++; if (!isOver) setImmediate(turn); };
  setImmediate(turn);
  begun();
  upMs = 50;
  const worked: number[] = []; // ms, by turns that others had before
  const inner = async (breathe: Breathe): Promise<void> => { await breathe(); };
  await Promise.all(Array.from({ length: 1000 }, async (_, i) => {
    const breathe = begun();
    if (i % 2 === 0) await breathe();
    else await inner(breathe); // those that are awaited have the same
    upMs += 0.1;
    worked[others] = (worked[others] ?? 0) + 0.1;
  }));
  isOver = true;
  const turns = worked.filter(Boolean);
  expect(turns.length).toBeLessThanOrEqual(11);
  expect(Math.max(...turns)).toBeLessThan(10.5);
});

test("others have their turns after each piece that takes a slice of time", async () => {
  let upMs = 0, others = 0;
  const turn = (): void => { if (++others < 40) setImmediate(turn); };
  setImmediate(turn);
  const seen: number[] = [];
  function* work(): Pausing<string> {
    for (let i = 0; i < 4; i++) {
      upMs += 50;
      seen.push(others);
      yield;
    }
    return "done";
  }
  expect(await inPieces(work(), breather({ uptimeMs: () => upMs }))).toBe("done");
  expect(new Set(seen).size).toBe(4);
});
