import { expect, test } from "vitest";
import { KeyTurns } from "./key-turns.ts";

const NEVER = new AbortController().signal;
const settle = async (): Promise<void> => { for (let i = 0; i < 20; i++) await Promise.resolve(); };

function turns() {
  const alarms: { readonly ms: number; readonly work: () => void; cancelled: boolean }[] = [];
  const all = new KeyTurns({ after: (ms, work) => {
    const alarm = { ms, work, cancelled: false };
    alarms.push(alarm);
    return { cancel: () => void (alarm.cancelled = true) };
  } });
  const had: string[] = [];
  const take = async (name: string, key = "a", signal = NEVER) => {
    const turn = await all.take(key, signal);
    had.push(name);
    return turn;
  };
  return { take, had, alarms };
}

test("one after the other, each key for itself; who has gone waits no more", async () => {
  const { take, had, alarms } = turns();
  const first = await take("first"), gone = new AbortController();
  const second = take("second"), third = take("third", "a", gone.signal), fourth = take("fourth");
  await take("other", "b");
  expect(had).toEqual(["first", "other"]);
  gone.abort(new Error("gone"));
  await expect(third).rejects.toThrow("gone");
  first.end();
  (await second).end();
  (await fourth).end();
  expect([had, alarms.filter(({ cancelled }) => !cancelled).length]).toEqual([["first", "other", "second", "fourth"], 1]);
  await take("again");
  expect(had.at(-1)).toBe("again");
});

test("who goes at the moment his turn comes passes it on to nobody less", async () => {
  const { take, had } = turns();
  const first = await take("first"), gone = new AbortController();
  const second = take("second", "a", gone.signal), third = take("third");
  gone.abort(new Error("gone"));
  first.end();
  await settle();
  await second.then((turn) => turn.end(), () => undefined);
  await third;
  expect(had.at(-1)).toBe("third");
});

test("who takes long keeps nobody, and ends nobody else's turn", async () => {
  const { take, had, alarms } = turns();
  const slow = await take("slow");
  const second = take("second"), third = take("third");
  expect(alarms[0]!.ms).toBe(100);
  alarms[0]!.work();
  await second;
  expect(slow.isOver).toBe(true);
  slow.end();
  await settle();
  expect(had).toEqual(["slow", "second"]);
  (await second).end();
  await third;
});
