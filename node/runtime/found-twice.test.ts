import { expect, test } from "vitest";
import { silentLog } from "../../core/observe/log.ts";
import { removeFoundTwice } from "./found-twice.ts";

test("what is found twice in a row goes; a look that fails is told, and is not the last", async () => {
  const looks: (string[] | Error)[] = [["a", "b"], ["b", "c"], new Error("too many open files"), ["c"], ["a"]];
  const removed: string[] = [], told: unknown[] = [];
  const clock = { async *every() { for (const _ of [...looks]) yield; } };
  const find = (): string[] => {
    const found = looks.shift()!;
    if (found instanceof Error) throw found;
    return found;
  };
  await removeFoundTwice({ what: "litter", find, keyOf: (one) => one, remove: (one) => void removed.push(one) }, { clock, log: { ...silentLog, warn: (message, facts) => void told.push([message, (facts?.["error"] as Error | undefined)?.message]) } }, new AbortController().signal);
  expect([removed, told]).toEqual([["b", "c"], [["could not look for litter, the next look is in a minute", "too many open files"]]]);
});
