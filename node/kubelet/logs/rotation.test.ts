import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import { silentLog } from "../../../core/observe/log.ts";
import type { Cri } from "../../cri/client.ts";
import { logRotation, rotateIfLarge } from "./rotation.ts";

test("a log that grew too large is put aside, older ones are compressed, the oldest go", async () => {
  const directory = mkdtempSync(join(tmpdir(), "log-"));
  const path = join(directory, "0.log");
  let nowMs = Date.UTC(2026, 0, 1);
  const reopened: string[] = [];
  const cri = { call: async (_: string, { container_id }: { container_id: string }) => {
    reopened.push(container_id);
    appendFileSync(path, "");
    return {};
  } } as unknown as Cri;
  const deps = { cri, clock: { ...systemClock, nowMs: () => nowMs }, bytesMax: 100, filesMax: 3 };
  const rotate = () => rotateIfLarge(deps, { containerId: "c1", path }, new AbortController().signal);
  try {
    appendFileSync(path, "small");
    expect(await rotate()).toBe(false);
    expect(await rotateIfLarge({ ...deps, bytesMax: -1 }, { containerId: "c1", path }, new AbortController().signal)).toBe(false);
    for (let i = 0; i < 4; i++) {
      appendFileSync(path, `${i}`.repeat(200));
      expect(await rotate()).toBe(true);
      nowMs += 60_000;
    }
    expect(readdirSync(directory).toSorted()).toEqual(["0.log", "0.log.20260101-000200.gz", "0.log.20260101-000300"]);
    expect(gunzipSync(readFileSync(join(directory, "0.log.20260101-000200.gz"))).toString()).toBe("2".repeat(200));
    expect(reopened).toEqual(["c1", "c1", "c1", "c1"]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("after a clock was set back the oldest log goes first, not the one that was put aside last", async () => {
  const directory = mkdtempSync(join(tmpdir(), "log-"));
  const path = join(directory, "0.log");
  const times = [Date.UTC(2027, 0, 1), Date.UTC(2027, 0, 2), Date.UTC(2026, 0, 1), Date.UTC(2026, 0, 2)];
  const cri = { call: async () => (appendFileSync(path, ""), {}) } as unknown as Cri;
  for (const nowMs of times) {
    appendFileSync(path, "x".repeat(200));
    await rotateIfLarge({ cri, clock: { ...systemClock, nowMs: () => nowMs }, bytesMax: 100, filesMax: 4 }, { containerId: "c1", path }, new AbortController().signal);
  }
  expect(readdirSync(directory).toSorted()).toEqual(["0.log", "0.log.20260101-000000.gz", "0.log.20260102-000000", "0.log.20270102-000000.gz"]);
  rmSync(directory, { recursive: true });
});

test("as many logs are looked at together as there are workers, each once a round", async () => {
  const directory = mkdtempSync(join(tmpdir(), "logs-"));
  let now = 0, most = 0;
  const asked: string[] = [];
  const enough = Promise.withResolvers<void>();
  const cri = { async call(_: string, { container_id }: { container_id: string }) {
    most = Math.max(most, ++now);
    asked.push(container_id);
    await Bun.sleep(10);
    now--;
    if (asked.length === 5) enough.resolve();
    return {};
  } };
  const running = () => Array.from({ length: 5 }, (_, i) => ({ containerId: String(i), path: join(directory, `${i}.log`) })); // none is there: each is reopened
  const stop = new AbortController();
  const ended = logRotation({ cri: cri as never, clock: systemClock, log: silentLog, running, bytesMax: 10, filesMax: 5, workers: 2, periodMs: 3_600_000 }).run(stop.signal, () => {});
  await enough.promise;
  stop.abort();
  await ended;
  expect([most, asked.toSorted()]).toEqual([2, ["0", "1", "2", "3", "4"]]);
  rmSync(directory, { recursive: true });
});
