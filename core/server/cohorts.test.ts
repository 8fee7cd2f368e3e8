import { expect, test } from "vitest";
import { inCohorts } from "./cohorts.ts";
import type { ServerRequest } from "./request.ts";

/** Requests by their paths; what each has done is told in order. */
function server(isApart?: () => boolean) {
  const told: string[] = [], turns: (() => void)[] = [];
  const handler = inCohorts(async ({ path }) => {
    for (const step of [1, 2, 3]) {
      told.push(`${path}${step}`);
      await undefined;
    }
    if (path === "bad") throw new Error("bad");
    return { type: "raw", status: 200, headers: {}, body: path };
  }, { later: (work) => void turns.push(work), isApart });
  const endTurn = async (): Promise<void> => {
    for (const work of turns.splice(0)) work();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { told, turns, endTurn, ask: (path: string, signal = new AbortController().signal) => handler({ path, signal } as ServerRequest) };
}

test("what comes in one turn of the event loop waits for its end, and takes each step side by side", async () => {
  const { told, turns, endTurn, ask } = server();
  const asked = [ask("a"), ask("b")];
  await Promise.resolve();
  expect([told, turns.length]).toEqual([[], 1]);
  await endTurn();
  expect(told).toEqual(["a1", "b1", "a2", "b2", "a3", "b3"]);
  expect(await Promise.all(asked)).toMatchObject([{ body: "a" }, { body: "b" }]);

  const [next, bad] = [ask("c"), ask("bad").catch((error: Error) => error.message)];
  await endTurn();
  expect(told.slice(6)).toEqual(["c1", "bad1", "c2", "bad2", "c3", "bad3"]);
  expect([await next, await bad]).toMatchObject([{ body: "c" }, "bad"]);
});

test("while requests wait for their turn each is served by itself", async () => {
  let isCrowded = true;
  const { told, turns, endTurn, ask } = server(() => isCrowded);
  void ask("a");
  expect([told, turns.length]).toEqual([["a1"], 0]);
  isCrowded = false;
  void ask("b");
  expect([told, turns.length]).toEqual([["a1"], 1]);
  await endTurn();
  expect(told.slice(-2)).toEqual(["b2", "b3"]);
});

test("what is taken back within the turn it came in is not begun", async () => {
  const { told, endTurn, ask } = server();
  const takenBack = new AbortController();
  const asked = [ask("a"), ask("b", takenBack.signal).catch(() => "nobody waits")];
  takenBack.abort();
  await endTurn();
  expect(told).toEqual(["a1", "a2", "a3"]);
  expect(await Promise.all(asked)).toMatchObject([{ body: "a" }, "nobody waits"]);
});
