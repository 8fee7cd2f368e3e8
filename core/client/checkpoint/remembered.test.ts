import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { systemClock as clock } from "../../lifecycle/clock.ts";
import { silentLog as log } from "../../observe/log.ts";
import { type Journal, openJournal } from "./journal.ts";
import { readOf, Remembered } from "./remembered.ts";

test("of what was asked for, and was not there or is not any more, nothing stays in memory", () => {
  const kept = new Map<string, string>();
  const journal = { keys: () => [...kept.keys()], get: (key: string) => kept.get(key), put: (key: string, json: string) => void kept.set(key, json), delete: (key: string) => void kept.delete(key) } as unknown as Journal;
  let nowMs = 0;
  const remembered = new Remembered({ journal, clock: { uptimeMs: () => nowMs } as never });
  const ask = (name: string) => readOf({ method: "GET", path: `/api/v1/namespaces/default/pods/${name}`, signal: AbortSignal.abort() })!;
  for (let i = 0; i < 100; i++) remembered.use(ask(`gone-${i}`));
  const there = ask("there");
  remembered.use(there);
  remembered.remember(there, { apiVersion: "v1", kind: "Pod", metadata: { name: "there", namespace: "default" } });
  const unwatched = remembered.watched(readOf({ method: "GET", path: "/api/v1/pods", signal: AbortSignal.abort() })!);
  nowMs = 24 * 3_600_000;
  remembered.sweep(0);
  expect([remembered.useCount, kept.size]).toEqual([102, 1]);
  nowMs = 26 * 3_600_000;
  remembered.sweep(0);
  expect([remembered.useCount, kept.size]).toEqual([1, 0]); // what is watched
  unwatched();
  nowMs += 3_600_000;
  remembered.sweep(0);
  expect(remembered.useCount).toBe(0);
});

test("an object of a list that the disk has damaged since is left out, and the others are told", async () => {
  const directory = mkdtempSync(join(tmpdir(), "checkpoint-")), path = join(directory, "objects");
  try {
    const journal = openJournal({ path, clock, log }), remembered = new Remembered({ journal, clock });
    const list = readOf({ method: "GET", path: "/api/v1/pods", signal: AbortSignal.abort() })!;
    remembered.remember(list, { items: ["a", "b", "c"].map((name) => ({ metadata: { name, namespace: "default" } })), metadata: {} });
    await journal.flush();
    writeFileSync(path, readFileSync(path, "utf8").replace('"name":"b"', '"name":"x"'));
    expect((remembered.recall(list) as { readonly items: readonly { readonly metadata: { readonly name: string } }[] }).items.map(({ metadata }) => metadata.name)).toEqual(["a", "c"]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
